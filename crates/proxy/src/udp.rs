//! Sockets for packets of programs: each packet comes with the address of this machine that it was sent to, from which its
//! answer has to leave.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::UdpSocket;

/// A socket for packets.
#[derive(Debug)]
pub(crate) struct Udp(UdpSocket);

/// A packet that was read: its length, and where it came from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Came {
    pub(crate) length: usize,
    pub(crate) from: SocketAddr,
    pub(crate) here: Option<Here>,
}

/// An address of this machine, and the number of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Here {
    address: IpAddr,
    interface: u32,
}

impl Udp {
    /// Reads and sends with addresses where the system can. Elsewhere the system chooses the address of answers.
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

    /// Sends a packet from this address of the machine, or from the one that the system chooses.
    pub(crate) async fn send(&self, data: &[u8], to: SocketAddr, from: Option<Here>) -> io::Result<()> {
        system::send(&self.0, data, to, from).await
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

    use super::{Came, Here};

    pub(super) fn prepare(socket: &UdpSocket) {
        // Without it the system chooses the address of answers.
        let _ = match socket.local_addr() {
            Ok(SocketAddr::V4(_)) => setsockopt(socket, sockopt::Ipv4PacketInfo, &true),
            _ => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true),
        };
    }

    pub(super) async fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        socket.async_io(Interest::READABLE, || read(socket, buffer)).await
    }

    fn read(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        let mut space = nix::cmsg_space!(in6_pktinfo);
        let mut slices = [IoSliceMut::new(buffer)];
        let read = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut space), MsgFlags::empty())?;
        let here = read.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                Some(Here { address: IpAddr::from(info.ipi_spec_dst.s_addr.to_ne_bytes()), interface: 0 })
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                Some(Here { address: IpAddr::from(info.ipi6_addr.s6_addr), interface: info.ipi6_ifindex })
            }
            _ => None,
        });
        let from = read.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Came { length: read.bytes, from, here })
    }

    fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = storage.as_sockaddr_in().map(|v4| SocketAddr::new(v4.ip().into(), v4.port()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
    }

    pub(super) async fn send(socket: &UdpSocket, data: &[u8], to: SocketAddr, from: Option<Here>) -> io::Result<()> {
        socket.async_io(Interest::WRITABLE, || write(socket, data, to, from)).await
    }

    fn write(socket: &UdpSocket, data: &[u8], to: SocketAddr, from: Option<Here>) -> io::Result<()> {
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
        let messages: Vec<ControlMessage<'_>> = from.into_iter().collect();
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

    use super::{Came, Here};

    pub(super) fn prepare(_socket: &UdpSocket) {}

    pub(super) async fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Came> {
        let (length, from) = socket.recv_from(buffer).await?;
        Ok(Came { length, from, here: None })
    }

    pub(super) async fn send(socket: &UdpSocket, data: &[u8], to: SocketAddr, _from: Option<Here>) -> io::Result<()> {
        socket.send_to(data, to).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of 127.0.0.0/8 is this machine's. The system would answer from 127.0.0.1 whatever was asked.
    #[cfg(target_os = "linux")]
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
            socket.send(b"answer", came.from, came.here).await.unwrap();
            let (length, from) = program.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..length], from), (&b"answer"[..], at));
        }
    }
}
