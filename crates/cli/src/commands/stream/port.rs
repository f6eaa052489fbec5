//! The UDP ports at which packets come in and go out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, anyhow};
use tokio::net::UdpSocket;

/// An address as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(pub(super) SocketAddr);

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "udp://{}", self.0)
    }
}

/// What `udp://ADDRESS:PORT` names.
pub(super) fn place(text: &str) -> Result<Place, &'static str> {
    const RIGHT: &str = "udp:// with an IP address and a port is needed, such as udp://127.0.0.1:5000";
    let address: SocketAddr = text.strip_prefix("udp://").ok_or(RIGHT)?.parse().map_err(|_| RIGHT)?;
    match address.port() {
        0 => Err(RIGHT),
        _ if address.ip().is_multicast() => Err("groups are not joined: give an address of one machine"),
        _ => Ok(Place(address)),
    }
}

/// No more packets than this wait at a port: the system holds some hundred kB for a program that does not read.
const WAITING_MAX: usize = 65_536;

/// A port of one flow.
#[derive(Debug)]
pub(super) struct Port {
    socket: UdpSocket,
    /// Where packets go: the program given, or whoever sent the last packet.
    peer: Mutex<Option<SocketAddr>>,
    is_fixed: bool,
}

impl Port {
    /// A port at which programs send packets, and are answered.
    pub(super) async fn at(place: Place) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(place.0).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => anyhow!("cannot take packets at {place}: another program uses this port"),
            io::ErrorKind::AddrNotAvailable => {
                anyhow!(
                    "cannot take packets at {place}: this machine has no such address; 0.0.0.0 takes all of its own"
                )
            }
            _ => anyhow::Error::from(error).context(format!("cannot take packets at {place}")),
        })?;
        Ok(Self { socket, peer: Mutex::new(None), is_fixed: false })
    }

    /// A port from which packets go to a program.
    pub(super) async fn towards(place: Place) -> anyhow::Result<Self> {
        let any: IpAddr = match place.0 {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let bound = async {
            let socket = UdpSocket::bind((any, 0)).await?;
            socket.connect(place.0).await?;
            Ok::<_, io::Error>(socket)
        };
        let socket = bound.await.with_context(|| format!("cannot send packets to {place}"))?;
        Ok(Self { socket, peer: Mutex::new(Some(place.0)), is_fixed: true })
    }

    fn peer(&self) -> Option<SocketAddr> {
        *self.peer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next packet of the program, in `buffer`. Nobody is there to hear of errors: a program that is not there yet,
    /// or not any more, may come.
    pub(super) async fn recv<'a>(&self, buffer: &'a mut [u8]) -> &'a [u8] {
        loop {
            match self.socket.recv_from(buffer).await {
                Ok((length, from)) => {
                    self.remember(from);
                    return &buffer[..length];
                }
                // The answer that nobody listens there comes at once, for each packet that was sent.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
            }
        }
    }

    /// Leaves out what came while nobody could carry it: to a stream with a deadline it is late, and whoever is sent it
    /// shows pictures of the past. Who sent it is answered all the same.
    pub(super) fn forget_waiting(&self) {
        // Of a packet that is longer than the buffer the rest is dropped.
        let mut buffer = [0; 1];
        for _ in 0..WAITING_MAX {
            match self.socket.try_recv_from(&mut buffer) {
                Ok((_, from)) => self.remember(from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Nobody listened at a program's port for a moment.
                Err(_) => {}
            }
        }
    }

    /// Who sends is answered.
    fn remember(&self, from: SocketAddr) {
        if !self.is_fixed {
            *self.peer.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
        }
    }

    /// Hands a packet to the program. False where nobody is there to have it.
    pub(super) async fn send(&self, packet: &[u8]) -> bool {
        let Some(peer) = self.peer() else { return false };
        match self.is_fixed {
            true => self.socket.send(packet).await.is_ok(),
            false => self.socket.send_to(packet, peer).await.is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_and_a_port() {
        assert_eq!(place("udp://127.0.0.1:5000"), Ok(Place("127.0.0.1:5000".parse().unwrap())));
        assert!(place("udp://[::1]:5000").is_ok());
        for wrong in ["127.0.0.1:5000", "udp://127.0.0.1", "udp://127.0.0.1:0", "srt://127.0.0.1:5000", "udp://:5000"] {
            assert!(place(wrong).unwrap_err().contains("such as udp://127.0.0.1:5000"), "{wrong}");
        }
        assert!(place("udp://239.0.0.1:5000").unwrap_err().contains("groups"));
    }
}
