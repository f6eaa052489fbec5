//! A socket that asks one peer: only one that is connected is told that a host or a router refused.

use std::io;
use std::net::SocketAddr;
#[cfg(feature = "simulation")]
use std::sync::Arc;
use std::task::Poll;

use super::{Tied, bindable, tied};
use socket2::Socket;

use crate::interfaces::Interface;
use crate::machine::Machine;
#[cfg(feature = "simulation")]
use crate::machine::SimulatedSocket;

/// A socket connected to one peer.
#[derive(Debug)]
pub(crate) enum Asking {
    Kernel {
        own: tokio::net::UdpSocket,
        /// Takes what comes on other interfaces.
        elsewhere: Option<tokio::net::UdpSocket>,
    },
    #[cfg(feature = "simulation")]
    Simulated(Arc<dyn SimulatedSocket>, SocketAddr),
}

impl Asking {
    /// A socket that is tied to the interface, on any port, and connected to `remote`.
    pub(crate) fn open(machine: &Machine, from: &Interface, remote: SocketAddr) -> io::Result<Self> {
        let address = bindable(from, 0);
        match machine {
            Machine::System | Machine::Links | Machine::Sockets(_) => {
                let Tied { own, elsewhere, .. } = tied(from, address)?;
                let connected = |socket: Socket| {
                    socket.connect(&remote.into())?;
                    tokio::net::UdpSocket::from_std(socket.into())
                };
                // Where the routing table knows no way, nothing comes on another interface either.
                let elsewhere = elsewhere.and_then(|socket| connected(socket).ok());
                Ok(Self::Kernel { own: connected(own)?, elsewhere })
            }
            #[cfg(feature = "simulation")]
            Machine::Simulated(machine) => Ok(Self::Simulated(machine.bind(address)?, remote)),
        }
    }

    /// Has no packet be sent in pieces: where it is too large for the way, as far as that is known, sending it fails.
    pub(crate) fn keep_whole(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Self::Kernel { own, .. } => {
                use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
                // Where the system refuses, pieces are what there is.
                let _ = rustix::net::sockopt::set_ip_mtu_discover(own, Ipv4PathMtuDiscovery::DO);
                let _ = rustix::net::sockopt::set_ipv6_mtu_discover(own, Ipv6PathMtuDiscovery::DO);
            }
            #[cfg(not(target_os = "linux"))]
            Self::Kernel { .. } => {}
            #[cfg(feature = "simulation")]
            Self::Simulated(..) => {}
        }
    }

    pub(crate) async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self {
            Self::Kernel { own, .. } => own.send(datagram).await.map(drop),
            #[cfg(feature = "simulation")]
            Self::Simulated(socket, remote) => {
                socket.send(*remote, datagram);
                Ok(())
            }
        }
    }

    /// The next datagram of the peer: how long it is.
    pub(crate) async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Kernel { own, elsewhere: None } => own.recv(buffer).await,
            Self::Kernel { own, elsewhere: Some(elsewhere) } => {
                std::future::poll_fn(|cx| {
                    let mut into = tokio::io::ReadBuf::new(buffer);
                    let polled = match own.poll_recv(cx, &mut into) {
                        Poll::Pending => elsewhere.poll_recv(cx, &mut into),
                        ready => ready,
                    };
                    polled.map_ok(|()| into.filled().len())
                })
                .await
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(socket, remote) => loop {
                let (length, from) = std::future::poll_fn(|cx| socket.poll_recv(cx, buffer)).await?;
                if from == *remote {
                    return Ok(length);
                }
            },
        }
    }
}
