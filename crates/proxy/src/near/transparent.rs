//! Connections that the system's rules lead here, whatever their programs know of proxies.
//!
//! The rules turn each connection round to a port of this machine: of loopback for its own programs, and of the interface for
//! machines behind one. Where it was going, the system tells of the socket. Questions for names go to one resolver, which the
//! far end reaches. Other packets of UDP come in as they are ([`gate`]).

mod gate;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use socket2::{Domain, SockRef, Socket, Type};
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
use crate::udp::{RawUdp, Udp};
use gate::Gate;

/// The most connections at once. More wait until the system refuses them.
const CONNECTIONS_MAX: usize = 16_384;

/// The connections that may wait to be accepted.
const BACKLOG: i32 = 1_024;

/// The traffic that rules of the system lead here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Led {
    /// The resolver, as the far end reaches it.
    pub dns: Target,
    /// The interfaces behind which other machines are carried, too.
    pub clients: Vec<String>,
    /// The mark of answers to packets of UDP of this machine. Rules for routes have to keep what has it in this machine.
    pub answers: u32,
}

/// The ports of this machine to which rules lead what programs send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// For what programs of this machine send.
    pub own: GatePorts,
    /// For what comes in at the interfaces of other machines, where some were named.
    pub clients: Option<GatePorts>,
}

/// The ports for connections and for questions for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatePorts {
    /// The port for connections over IPv4.
    pub tcp_v4: u16,
    /// The same over IPv6; `None` where the machine has none.
    pub tcp_v6: Option<u16>,
    /// The port for questions for names, over both.
    pub dns: u16,
    /// The port for other packets over both; `None` where rules cannot lead them.
    pub udp: Option<u16>,
}

/// The ports, open.
#[derive(Debug)]
pub(super) struct Transparent {
    own: Open,
    clients: Vec<Open>,
    dns: Target,
    pub(super) gates: Gates,
}

/// The sockets for loopback, or for one interface.
#[derive(Debug)]
struct Open {
    tcp: Vec<TcpListener>,
    dns_tcp: Vec<TcpListener>,
    dns_udp: Vec<UdpSocket>,
    udp: Vec<Gate>,
    ports: GatePorts,
}

impl Transparent {
    /// Opens them.
    pub(super) fn bind(led: Led) -> Result<Self, NearError> {
        let Led { dns, clients: interfaces, answers } = led;
        let own = Open::bind(Place::Loopback { answers }, None)?;
        let mut clients: Vec<Open> = Vec::new();
        for interface in &interfaces {
            // The rules know one port for all of them.
            let ports = clients.first().map(|first| first.ports);
            clients.push(Open::bind(Place::Interface(interface), ports)?);
        }
        let gates = Gates { own: own.ports, clients: clients.first().map(|first| first.ports) };
        Ok(Self { own, clients, dns, gates })
    }

    /// Serves them until the set is dropped.
    pub(super) fn serve(self, link: &Arc<Link>) -> JoinSet<()> {
        let all: Vec<Open> = std::iter::once(self.own).chain(self.clients).collect();
        let (mut tcp, mut dns_tcp, mut dns_udp, mut udp) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for open in all {
            udp.extend(open.udp);
            tcp.extend(open.tcp);
            dns_tcp.extend(open.dns_tcp);
            dns_udp.extend(open.dns_udp);
        }
        let mut tasks = Ports::of(dns_tcp, dns_udp, &self.dns).serve(link, &[]);
        for listener in tcp {
            tasks.spawn(connections(listener, link.clone()));
        }
        for gate in udp {
            tasks.spawn(gate.serve(link.clone()));
        }
        tasks
    }
}

/// Where packets have to come in.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// From this machine. Answers to its programs have this mark, which keeps them in it, also where the address of a
    /// program is not its own any more.
    Loopback { answers: u32 },
    /// At any address, but through this interface alone: whoever is behind another one reaches no socket, whatever becomes
    /// of the rules.
    Interface(&'a str),
}

impl Open {
    /// Opens the sockets at these ports, or at any.
    fn bind(place: Place<'_>, ports: Option<GatePorts>) -> Result<Self, NearError> {
        let tcp_v4 = place.tcp(Domain::IPV4, ports.map_or(0, |ports| ports.tcp_v4))?;
        // A machine may have no IPv6.
        let tcp_v6 = match ports {
            None => place.tcp(Domain::IPV6, 0).ok(),
            Some(ports) => ports.tcp_v6.map(|port| place.tcp(Domain::IPV6, port)).transpose()?,
        };
        let first = place.udp(Domain::IPV4, ports.map_or(0, |ports| ports.dns))?;
        let port = |address: io::Result<SocketAddr>| address.map_or(0, |address| address.port());
        let dns = port(first.local_addr());
        let (mut dns_tcp, mut dns_udp) = (vec![place.tcp(Domain::IPV4, dns)?], vec![first]);
        if tcp_v6.is_some() {
            dns_tcp.push(place.tcp(Domain::IPV6, dns)?);
            dns_udp.push(place.udp(Domain::IPV6, dns)?);
        }
        let gate = place.gate(Domain::IPV4, ports.and_then(|ports| ports.udp).unwrap_or(0))?;
        let at = port(gate.local_addr());
        let mut udp = vec![gate];
        if tcp_v6.is_some() {
            udp.push(place.gate(Domain::IPV6, at)?);
        }
        let ports = GatePorts {
            udp: Some(at),
            tcp_v4: port(tcp_v4.local_addr()),
            tcp_v6: tcp_v6.as_ref().map(|listener| port(listener.local_addr())),
            dns,
        };
        Ok(Self { tcp: std::iter::once(tcp_v4).chain(tcp_v6).collect(), dns_tcp, dns_udp, udp, ports })
    }
}

impl Place<'_> {
    fn tcp(self, domain: Domain, port: u16) -> Result<TcpListener, NearError> {
        self.socket(domain, Type::STREAM, port, |socket| {
            socket.listen(BACKLOG)?;
            TcpListener::from_std(socket.into())
        })
    }

    fn udp(self, domain: Domain, port: u16) -> Result<UdpSocket, NearError> {
        self.socket(domain, Type::DGRAM, port, |socket| UdpSocket::from_std(socket.into()))
    }

    fn gate(self, domain: Domain, port: u16) -> Result<Gate, NearError> {
        self.socket(domain, Type::DGRAM, port, |socket| {
            let answers = RawUdp::open(domain, |raw| match self {
                Self::Loopback { answers } => set_mark(raw, answers),
                Self::Interface(name) => bind_to(raw, name),
            })?;
            Ok(Gate::new(Udp::transparent(UdpSocket::from_std(socket.into())?)?, answers))
        })
    }

    /// A socket that is bound.
    fn socket<T>(
        self,
        domain: Domain,
        kind: Type,
        port: u16,
        finish: impl FnOnce(Socket) -> io::Result<T>,
    ) -> Result<T, NearError> {
        let ip = match (self, domain == Domain::IPV6) {
            (Self::Loopback { .. }, false) => IpAddr::from(Ipv4Addr::LOCALHOST),
            (Self::Loopback { .. }, true) => Ipv6Addr::LOCALHOST.into(),
            (Self::Interface(_), false) => Ipv4Addr::UNSPECIFIED.into(),
            (Self::Interface(_), true) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let address = SocketAddr::new(ip, port);
        let bound = || {
            let socket = Socket::new(domain, kind, None)?;
            if domain == Domain::IPV6 {
                socket.set_only_v6(true)?;
            }
            if let Self::Interface(name) = self {
                bind_to(&socket, name)?;
            }
            socket.bind(&address.into())?;
            socket.set_nonblocking(true)?;
            finish(socket)
        };
        bound().map_err(|source| NearError::Listen { address, source })
    }
}

/// The socket takes only what comes in through this interface, and sends out of no other.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_to(socket: &Socket, interface: &str) -> io::Result<()> {
    socket.bind_device(Some(interface.as_bytes()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_to(_socket: &Socket, _interface: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Packets of the socket have this mark.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_mark(socket: &Socket, mark: u32) -> io::Result<()> {
    socket.set_mark(mark)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_mark(_socket: &Socket, _mark: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
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
