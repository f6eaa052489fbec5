//! Linux: many packets with one call, with their addresses and their congestion field.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

use nix::libc::{EINVAL, EIO, ENOPROTOOPT, EOPNOTSUPP, in_addr, in_pktinfo, in6_addr, in6_pktinfo, sockaddr_in6};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, RecvMsg, SockaddrIn, SockaddrIn6, SockaddrStorage,
    recvmmsg, sendmsg, setsockopt, sockopt,
};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::{BUFFER, Came, Ecn, Here, Room};

pub(super) fn prepare(socket: &UdpSocket) {
    // Where the system refuses one of these, packets come without it, or are lost where many come at once.
    let is_v4 = socket.local_addr().is_ok_and(|address| address.is_ipv4());
    if is_v4 {
        let _ = setsockopt(socket, sockopt::Ipv4PacketInfo, &true);
    } else {
        let _ = setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true);
        let _ = setsockopt(socket, sockopt::Ipv6RecvTClass, &true);
    }
    // A socket of IPv6 may be one for IPv4, too.
    let _ = setsockopt(socket, sockopt::IpRecvTos, &true);
    // Packets of one length that came together are read as one, where the system knows how.
    let _ = setsockopt(socket, sockopt::UdpGroSegment, &true);
    // Only root may have more than the system's most.
    if setsockopt(socket, sockopt::RcvBufForce, &BUFFER).is_err() {
        let _ = setsockopt(socket, sockopt::RcvBuf, &BUFFER);
    }
}

pub(super) fn make_transparent(socket: &UdpSocket) -> io::Result<()> {
    setsockopt(socket, sockopt::IpTransparent, &true)?;
    match socket.local_addr()?.is_ipv4() {
        true => setsockopt(socket, sockopt::Ipv4OrigDstAddr, &true)?,
        false => setsockopt(socket, sockopt::Ipv6OrigDstAddr, &true)?,
    }
    Ok(())
}

/// A socket whose packets have their header of UDP already, and leave from any address.
pub(super) fn raw(domain: Domain) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::UDP))?;
    // Bound to no address it would get a copy of every packet. To these nobody sends any (RFC 5737, RFC 3849).
    let nowhere: IpAddr = match domain == Domain::IPV4 {
        true => {
            socket.set_ip_transparent_v4(true)?;
            Ipv4Addr::new(192, 0, 2, 1).into()
        }
        false => {
            socket.set_ip_transparent_v6(true)?;
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()
        }
    };
    socket.bind(&SocketAddr::new(nowhere, 0).into())?;
    Ok(socket)
}

pub(super) fn try_recv(socket: &UdpSocket, room: &mut Room) -> io::Result<()> {
    room.came.clear();
    socket.try_io(Interest::READABLE, || read(socket, room))
}

fn read(socket: &UdpSocket, room: &mut Room) -> io::Result<()> {
    let mut came = std::mem::take(&mut room.came);
    let read = read_into(socket, room, &mut came);
    room.came = came;
    read
}

fn read_into(socket: &UdpSocket, room: &mut Room, came: &mut Vec<Came>) -> io::Result<()> {
    let mut places: Vec<[IoSliceMut<'_>; 1]> = room.places().map(|place| [IoSliceMut::new(place)]).collect();
    let space = nix::cmsg_space!(in6_pktinfo, sockaddr_in6, i32, i32, i32);
    let mut heads = MultiHeaders::<SockaddrStorage>::preallocate(places.len(), Some(space));
    let read = recvmmsg(socket.as_raw_fd(), &mut heads, &mut places, MsgFlags::MSG_DONTWAIT, None)?;
    came.extend((0..).zip(read).filter_map(|(place, one)| head(place, &one)));
    Ok(())
}

/// The head of the packet, or of the packets, at a place.
fn head(place: usize, read: &RecvMsg<'_, '_, SockaddrStorage>) -> Option<Came> {
    let (mut here, mut to, mut ecn, mut each) = (None, None, Ecn::default(), read.bytes);
    for message in read.cmsgs().ok()? {
        match message {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let address = IpAddr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
                here = Some(Here { address, interface: 0 });
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                here = Some(Here { address: info.ipi6_addr.s6_addr.into(), interface: info.ipi6_ifindex });
            }
            ControlMessageOwned::Ipv4OrigDstAddr(before) => to = Some(SocketAddr::V4(SockaddrIn::from(before).into())),
            ControlMessageOwned::Ipv6OrigDstAddr(before) => to = Some(SocketAddr::V6(SockaddrIn6::from(before).into())),
            ControlMessageOwned::Ipv4Tos(bits) => ecn = Ecn::of_bits(bits),
            ControlMessageOwned::Ipv6TClass(bits) => ecn = Ecn::of_bits((bits & 0xff) as u8),
            ControlMessageOwned::UdpGroSegments(length) => each = usize::try_from(length).unwrap_or(read.bytes),
            _ => {}
        }
    }
    let from = read.address.as_ref().and_then(address)?;
    Some(Came { place, length: read.bytes, each, from, here, to, ecn })
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::new(v4.ip().into(), v4.port()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

/// Sends data as one packet, or as packets of this length.
pub(super) async fn send(
    socket: &UdpSocket,
    data: &[u8],
    length: Option<usize>,
    way: (SocketAddr, Option<Here>, Ecn),
) -> io::Result<()> {
    socket.async_io(Interest::WRITABLE, || write(socket, data, length, way)).await
}

/// Whether the system does not take many packets at once, whatever they are.
pub(super) fn cannot_take_many(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EIO | EOPNOTSUPP | ENOPROTOOPT | EINVAL))
}

fn write(
    socket: &UdpSocket,
    data: &[u8],
    length: Option<usize>,
    (to, from, ecn): (SocketAddr, Option<Here>, Ecn),
) -> io::Result<()> {
    let (mut v4, mut v6) = (None, None);
    match from {
        Some(Here { address: IpAddr::V4(address), .. }) => {
            let source = in_addr { s_addr: u32::from_ne_bytes(address.octets()) };
            v4 = Some(in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: in_addr { s_addr: 0 } });
        }
        Some(Here { address: IpAddr::V6(address), interface }) => {
            let source = in6_addr { s6_addr: address.octets() };
            v6 = Some(in6_pktinfo { ipi6_addr: source, ipi6_ifindex: interface });
        }
        None => {}
    }
    let from = v4.as_ref().map(ControlMessage::Ipv4PacketInfo);
    let from = from.or(v6.as_ref().map(ControlMessage::Ipv6PacketInfo));
    let (tos, class) = (ecn.bits(), i32::from(ecn.bits()));
    let mark = match to.ip().to_canonical() {
        _ if !ecn.is_markable() => None,
        IpAddr::V4(_) => Some(ControlMessage::Ipv4Tos(&tos)),
        IpAddr::V6(_) => Some(ControlMessage::Ipv6TClass(&class)),
    };
    let segment = length.map(|length| length as u16);
    let segments = segment.as_ref().map(ControlMessage::UdpGsoSegments);
    let messages: Vec<ControlMessage<'_>> = from.into_iter().chain(mark).chain(segments).collect();
    let to = SockaddrStorage::from(to);
    sendmsg(socket.as_raw_fd(), &[IoSlice::new(data)], &messages, MsgFlags::empty(), Some(&to))?;
    Ok(())
}
