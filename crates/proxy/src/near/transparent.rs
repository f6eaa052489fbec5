//! Connections that the system's rules lead here, whatever their programs know of proxies.
//!
//! The rules turn each connection round to a port of loopback. Where it was going, the system tells of the socket. Questions for
//! names go to one resolver, which the far end reaches.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::NearError;
use super::link::Link;
use super::ports::Ports;
use crate::relay::{Side, relay, reset_whole};
use crate::snapshot::Kind;
use crate::target::Target;

/// The most connections at once. More wait until the system refuses them.
const CONNECTIONS_MAX: usize = 16_384;

/// The ports of this machine to which rules lead what programs send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// The port for connections over IPv4.
    pub tcp_v4: u16,
    /// The same over IPv6; `None` where the machine has none.
    pub tcp_v6: Option<u16>,
    /// The port for questions for names, over both.
    pub dns: u16,
}

/// The ports, open.
#[derive(Debug)]
pub(super) struct Transparent {
    listeners: Vec<TcpListener>,
    dns: Ports,
    pub(super) gates: Gates,
}

impl Transparent {
    /// Opens them. `dns` is the resolver, as the far end reaches it.
    pub(super) async fn bind(dns: &Target) -> Result<Self, NearError> {
        let at = |ip: IpAddr, port| SocketAddr::new(ip, port);
        let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
        let failed = |address| move |source| NearError::Listen { address, source };
        let first = TcpListener::bind(at(v4, 0)).await.map_err(failed(at(v4, 0)))?;
        let second = TcpListener::bind(at(v6, 0)).await.ok();
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
        let tcp_v4 = port(&first).map_err(failed(at(v4, 0)))?;
        let tcp_v6 = second.as_ref().and_then(|listener| port(listener).ok());

        let udp = UdpSocket::bind(at(v4, 0)).await.map_err(failed(at(v4, 0)))?;
        let dns_port = udp.local_addr().map_err(failed(at(v4, 0)))?.port();
        let mut tcp = vec![TcpListener::bind(at(v4, dns_port)).await.map_err(failed(at(v4, dns_port)))?];
        let mut sockets = vec![udp];
        if second.is_some() {
            sockets.push(UdpSocket::bind(at(v6, dns_port)).await.map_err(failed(at(v6, dns_port)))?);
            tcp.push(TcpListener::bind(at(v6, dns_port)).await.map_err(failed(at(v6, dns_port)))?);
        }
        let dns = Ports::of(tcp, sockets, dns);
        let listeners = std::iter::once(first).chain(second).collect();
        Ok(Self { listeners, dns, gates: Gates { tcp_v4, tcp_v6, dns: dns_port } })
    }

    /// Serves them until the set is dropped.
    pub(super) fn serve(self, link: &Arc<Link>) -> JoinSet<()> {
        let mut tasks = self.dns.serve(link, &[]);
        for listener in self.listeners {
            tasks.spawn(connections(listener, link.clone()));
        }
        tasks
    }
}

async fn connections(listener: TcpListener, link: Arc<Link>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((tcp, _)) = listener.accept().await else {
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let link = link.clone();
        tokio::spawn(async move {
            connection(tcp, &link).await;
            drop(place);
        });
    }
}

async fn connection(tcp: TcpStream, link: &Link) {
    let Some(target) = destination(&tcp).ok().flatten() else { return reset_whole(tcp) };
    let target = Target::from(target);
    match link.connect(&target).await {
        Ok(stream) => {
            let entry = link.enter(&target, Kind::Transparent);
            relay(tcp, Bytes::new(), stream, Side::Program, &entry).await;
        }
        Err(refusal) => {
            tracing::debug!(%refusal, "a connection that was led here was refused");
            reset_whole(tcp);
        }
    }
}

/// The address to which a connection was going; `None` where no rule led it here.
fn destination(tcp: &TcpStream) -> io::Result<Option<SocketAddr>> {
    let (socket, here) = (SockRef::from(tcp), tcp.local_addr()?);
    let before = if here.is_ipv4() { socket.original_dst_v4()? } else { socket.original_dst_v6()? };
    // Somebody who connects to the port itself would be led in a circle.
    Ok(before.as_socket().filter(|before| *before != here))
}
