//! Sockets for packets of programs: each packet comes with the address of this machine that it was sent to, from which its
//! answer has to leave, and with what its header says of congestion.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

/// A socket for packets.
#[derive(Debug)]
pub(crate) struct Udp(UdpSocket);

/// A packet that was read: its length, and where it came from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    pub(crate) here: Option<Here>,
    pub(crate) ecn: Ecn,
}

/// An address of this machine, and the number of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Here {
    address: IpAddr,
    interface: u32,
}

/// The congestion field of a packet's header: two bits (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ecn(u8);

impl Ecn {
    /// The packet met congestion.
    pub(crate) const CE: Self = Self(0b11);

    /// The last two bits of these.
    pub(crate) fn of_bits(bits: u8) -> Self {
        Self(bits & Self::CE.0)
    }

    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// Whether the sender wants to hear of congestion by a mark.
    pub(crate) fn is_markable(self) -> bool {
        self.0 != 0
    }

    /// The field of a packet whose pieces have these two: one that met congestion tells for all.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Udp {
    /// Reads and sends all of it where the system can. Elsewhere the system chooses the address of answers, and no packet says
    /// anything of congestion.
    pub(crate) fn new(socket: UdpSocket) -> Self {
        system::prepare(&socket);
        Self(socket)
    }

    /// The next packet.
    ///
    /// Cancellation safety: no packet is lost where this is given up before it is ready.
    pub(crate) async fn recv(&self, buffer: &mut [u8]) -> io::Result<Came> {
        system::recv(&self.0, buffer).await
    }

    /// The next packet, if one is there already.
    pub(crate) fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Came> {
        system::try_recv(&self.0, buffer)
    }

    /// Waits until there may be a packet.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Sends a packet from this address of the machine, or from the one that the system chooses.
    pub(crate) async fn send(&self, data: &[u8], to: SocketAddr, from: Option<Here>, ecn: Ecn) -> io::Result<()> {
        system::send(&self.0, data, to, from, ecn).await
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// The only host that it sends to and hears of, where it is connected.
    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.0.peer_addr()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{IpAddr, SocketAddr};
    use std::os::fd::AsRawFd as _;

    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt,
    };
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    use super::{Came, Ecn, Here};

    pub(super) fn prepare(socket: &UdpSocket) {
        // Where the system refuses one of these, packets come without it.
        let is_v4 = socket.local_addr().is_ok_and(|address| address.is_ipv4());
        if is_v4 {
            let _ = setsockopt(socket, sockopt::Ipv4PacketInfo, &true);
        } else {
            let _ = setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true);
            let _ = setsockopt(socket, sockopt::Ipv6RecvTClass, &true);
        }
        // A socket of IPv6 may be one for IPv4, too.
        let _ = setsockopt(socket, sockopt::IpRecvTos, &true);
    }

    pub(super) async fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        socket.async_io(Interest::READABLE, || read(socket, buffer)).await
    }

    pub(super) fn try_recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        socket.try_io(Interest::READABLE, || read(socket, buffer))
    }

    fn read(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        let mut space = nix::cmsg_space!(in6_pktinfo, i32, i32);
        let mut slices = [IoSliceMut::new(buffer)];
        let read = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty())?;
        let (mut here, mut ecn) = (None, Ecn::default());
        for message in read.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    let address = IpAddr::from(info.ipi_spec_dst.s_addr.to_ne_bytes());
                    here = Some(Here { address, interface: 0 });
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    here = Some(Here { address: info.ipi6_addr.s6_addr.into(), interface: info.ipi6_ifindex });
                }
                ControlMessageOwned::Ipv4Tos(bits) => ecn = Ecn::of_bits(bits),
                ControlMessageOwned::Ipv6TClass(bits) => ecn = Ecn::of_bits((bits & 0xff) as u8),
                _ => {}
            }
        }
        let from = read.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Came { length: read.bytes, from, here, ecn })
    }

    fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::new(v4.ip().into(), v4.port()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
    }

    pub(super) async fn send(
        socket: &UdpSocket,
        data: &[u8],
        to: SocketAddr,
        from: Option<Here>,
        ecn: Ecn,
    ) -> io::Result<()> {
        socket.async_io(Interest::WRITABLE, || write(socket, data, to, from, ecn)).await
    }

    fn write(socket: &UdpSocket, data: &[u8], to: SocketAddr, from: Option<Here>, ecn: Ecn) -> io::Result<()> {
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
        let messages: Vec<ControlMessage<'_>> = from.into_iter().chain(mark).collect();
        let to = SockaddrStorage::from(to);
        sendmsg(socket.as_raw_fd(), &[IoSlice::new(data)], &messages, MsgFlags::empty(), Some(&to))?;
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::net::SocketAddr;

    use tokio::net::UdpSocket;

    use super::{Came, Ecn, Here};

    pub(super) fn prepare(_socket: &UdpSocket) {}

    fn came((length, from): (usize, SocketAddr)) -> Came {
        Came { length, from, here: None, ecn: Ecn::default() }
    }

    pub(super) async fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        socket.recv_from(buffer).await.map(came)
    }

    pub(super) fn try_recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        socket.try_recv_from(buffer).map(came)
    }

    pub(super) async fn send(
        socket: &UdpSocket,
        data: &[u8],
        to: SocketAddr,
        _from: Option<Here>,
        _ecn: Ecn,
    ) -> io::Result<()> {
        match socket.peer_addr() {
            Ok(_) => socket.send(data).await.map(drop),
            Err(_) => socket.send_to(data, to).await.map(drop),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// All of 127.0.0.0/8 is this machine's. The system would answer from 127.0.0.1 whatever was asked.
    #[tokio::test]
    async fn an_answer_leaves_from_the_address_that_was_asked() {
        for (everywhere, asked, asker) in [
            ("0.0.0.0:0", "127.9.8.7", "127.0.0.1:0"),
            ("[::]:0", "::ffff:127.9.8.7", "[::]:0"),
            ("[::]:0", "::1", "[::1]:0"),
        ] {
            // Not every machine has IPv6.
            let Ok(socket) = UdpSocket::bind(everywhere).await else { continue };
            let at = SocketAddr::new(asked.parse().unwrap(), socket.local_addr().unwrap().port());
            let (socket, program) = (Udp::new(socket), UdpSocket::bind(asker).await.unwrap());
            program.send_to(b"question", at).await.unwrap();
            let mut buffer = [0; 64];
            let came = socket.recv(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..came.length], b"question", "{asked}");
            socket.send(b"answer", came.from, came.here, Ecn::default()).await.unwrap();
            let (length, from) = program.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..length], from), (&b"answer"[..], at));
        }
    }

    #[tokio::test]
    async fn congestion_is_told_and_heard_over_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let (Ok(one), Ok(two)) = (UdpSocket::bind(address).await, UdpSocket::bind(address).await) else { continue };
            let to = match address {
                // An address of IPv4, of a socket that has both families.
                "[::]:0" => SocketAddr::new("::ffff:127.0.0.1".parse().unwrap(), two.local_addr().unwrap().port()),
                _ => two.local_addr().unwrap(),
            };
            let (one, two) = (Udp::new(one), Udp::new(two));
            for bits in 0..4 {
                one.send(b"packet", to, None, Ecn::of_bits(bits)).await.unwrap();
                let came = two.recv(&mut [0; 64]).await.unwrap();
                assert_eq!((came.ecn.bits(), came.length), (bits, 6), "{address}");
            }
        }
    }
}
