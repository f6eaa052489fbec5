//! The UDP ports at which packets come in and go out.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::{Mutex, PoisonError};

use anyhow::anyhow;
use fairpath_quic::interfaces::{index, interfaces};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::place::Place;

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
    /// A port at which programs send packets, and are answered. Of a group all that is sent to it is taken.
    pub(super) async fn at(place: &Place) -> anyhow::Result<Self> {
        let mut refused = None;
        for address in place.at.resolve().await? {
            match bound(address, place) {
                Ok(socket) => return Ok(Self { socket, peer: Mutex::new(None), is_fixed: false }),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let error = refused.expect("a host has an address");
        Err(match error.kind() {
            _ if is_group(place) && place.local.is_none() => {
                anyhow!("cannot join the group of {place}: {error}; {}", advice(place))
            }
            io::ErrorKind::AddrInUse => anyhow!("cannot take packets at {place}: another program uses this port"),
            io::ErrorKind::AddrNotAvailable => {
                anyhow!(
                    "cannot take packets at {place}: this machine has no such address; 0.0.0.0 takes all of its own"
                )
            }
            _ => anyhow::Error::from(error).context(format!("cannot take packets at {place}")),
        })
    }

    /// A port from which packets go to a program, or to a group.
    pub(super) async fn towards(place: &Place) -> anyhow::Result<Self> {
        let mut refused = None;
        for address in place.at.resolve().await? {
            match connected(address, place) {
                Ok(socket) => return Ok(Self { socket, peer: Mutex::new(Some(address)), is_fixed: true }),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let error = refused.expect("a host has an address");
        Err(match is_group(place) && place.local.is_none() {
            true => anyhow!("cannot send packets to {place}: {error}; {}", advice(place)),
            false => anyhow::Error::from(error).context(format!("cannot send packets to {place}")),
        })
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
        // One byte is enough: the rest of a longer packet is dropped.
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

    /// Replies go to the last sender.
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

fn is_group(place: &Place) -> bool {
    place.at.ip().is_some_and(|ip| ip.is_multicast())
}

/// A socket on which comes what is sent to this address.
fn bound(address: SocketAddr, place: &Place) -> io::Result<UdpSocket> {
    let socket = unbound(address)?;
    if address.ip().is_multicast() {
        // Every program on this machine that joins a group has its packets.
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())?;
    match (address, place.local) {
        (SocketAddr::V4(v4), local) if v4.ip().is_multicast() => {
            let on = local.map_or(Ok(Ipv4Addr::UNSPECIFIED), v4_only)?;
            socket.join_multicast_v4(v4.ip(), &on)?;
        }
        (SocketAddr::V6(v6), local) if v6.ip().is_multicast() => {
            socket.join_multicast_v6(v6.ip(), interface_of(v6, local)?)?
        }
        _ => {}
    }
    UdpSocket::from_std(socket.into())
}

/// A socket that sends to this address.
fn connected(address: SocketAddr, place: &Place) -> io::Result<UdpSocket> {
    let socket = unbound(address)?;
    if let SocketAddr::V6(v6) = address
        && v6.ip().is_multicast()
    {
        socket.set_multicast_if_v6(interface_of(v6, place.local)?)?;
    }
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    socket.bind(&SocketAddr::new(place.local.unwrap_or(any), 0).into())?;
    if address.is_ipv4() && address.ip().is_multicast() {
        if let Some(local) = place.local {
            socket.set_multicast_if_v4(&v4_only(local)?)?;
        }
        if let Some(ttl) = place.ttl {
            socket.set_multicast_ttl_v4(ttl)?;
        }
    } else if address.ip().is_multicast()
        && let Some(ttl) = place.ttl
    {
        socket.set_multicast_hops_v6(ttl)?;
    }
    socket.connect(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// The number of the interface that is meant for a group, by its zone or by an address of it; 0: the system chooses.
fn interface_of(group: SocketAddrV6, local: Option<IpAddr>) -> io::Result<u32> {
    match local {
        _ if group.scope_id() > 0 => Ok(group.scope_id()),
        None => Ok(0),
        Some(IpAddr::V4(_)) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "localaddr of a group of IPv6 is one of IPv6, or its interface stands behind it (%eth0)",
        )),
        Some(local) => {
            let own = interfaces(&[])?.into_iter().find(|one| one.address == local);
            let index = own.and_then(|one| index(&one.name));
            index.ok_or_else(|| {
                io::Error::new(io::ErrorKind::AddrNotAvailable, format!("{local} is not on this machine"))
            })
        }
    }
}

/// The advice on a group that the system finds no interface for.
fn advice(place: &Place) -> String {
    match place.at.ip() {
        Some(IpAddr::V6(group)) => format!("name its interface, such as udp://[{group}%eth0]:{}", place.at.port()),
        _ => format!("name an address of its interface, such as {place}?localaddr=192.0.2.7"),
    }
}

fn unbound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn v4_only(address: IpAddr) -> io::Result<Ipv4Addr> {
    match address {
        IpAddr::V4(v4) => Ok(v4),
        IpAddr::V6(_) => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "localaddr of a group of IPv4 is one of IPv4"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_ipv6_has_the_interface_of_its_zone_or_of_the_local_address() {
        let group = |zone| SocketAddrV6::new("ff15::1".parse().unwrap(), 5000, 0, zone);
        let interface = |zone, local: &str| interface_of(group(zone), Some(local.parse().unwrap()));
        assert_eq!(interface_of(group(7), None).unwrap(), 7);
        assert_eq!(interface(7, "2001:db8::1").unwrap(), 7);
        assert_eq!(interface_of(group(0), None).unwrap(), 0, "the system chooses");
        if let Some(loopback) = interfaces(&[]).unwrap().iter().find(|one| one.address == Ipv6Addr::LOCALHOST) {
            assert_eq!(interface(0, "::1").ok(), index(&loopback.name));
        }
        assert!(interface(0, "127.0.0.1").unwrap_err().to_string().contains("is one of IPv6"));
        assert!(interface(0, "2001:db8::1").unwrap_err().to_string().contains("2001:db8::1 is not on this machine"));
    }
}
