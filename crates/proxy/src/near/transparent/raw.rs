//! Answers to programs of this machine, with headers that are written here.
//!
//! A socket that is bound to the address that answers would take less. But the system has none for it where a program here
//! uses that port at all of its addresses: WireGuard and NTP often have one port at both ends.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use crate::udp::Ecn;

/// The protocol whose sockets send packets as they are given (raw(7)).
const RAW: i32 = 255;

/// The number of UDP.
const UDP: u8 = 17;

/// The lengths of the headers of IPv4, of IPv6 and of UDP, in bytes.
const V4: usize = 20;
const V6: usize = 40;
const HEAD: usize = 8;

/// How many machines a packet may pass. It passes none.
const HOPS: u8 = 64;

/// Sockets that send packets with their headers. They receive nothing.
#[derive(Debug)]
pub(super) enum Raw {
    V4(Socket),
    V6(Socket),
}

impl Raw {
    /// Opens one, whose packets have this mark. Rules of the system keep those in this machine, also where the program's
    /// address is not its own any more.
    pub(super) fn open(domain: Domain, mark: u32) -> io::Result<Self> {
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(RAW)))?;
        socket.set_nonblocking(true)?;
        set_mark(&socket, mark)?;
        Ok(if domain == Domain::IPV4 { Self::V4(socket) } else { Self::V6(socket) })
    }

    /// Sends data from an address to a program. One that the system does not take is lost, as others are.
    pub(super) fn send(&self, from: SocketAddr, data: &[u8], to: SocketAddr, ecn: Ecn) {
        let Some(packet) = packet(from, data, to, ecn) else { return };
        let (Self::V4(socket) | Self::V6(socket)) = self;
        // The port is in the header. Here it would be a protocol.
        let sent = socket.send_to(&packet, &SocketAddr::new(to.ip(), 0).into());
        if let Err(error) = sent {
            tracing::debug!(%error, %from, "an answer to a program was not sent");
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_mark(socket: &Socket, mark: u32) -> io::Result<()> {
    socket.set_mark(mark)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_mark(_socket: &Socket, _mark: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The whole packet; `None` where the addresses are of two families, or the data is longer than its header can say.
fn packet(from: SocketAddr, data: &[u8], to: SocketAddr, ecn: Ecn) -> Option<Vec<u8>> {
    let length = HEAD + data.len();
    let udp = u16::try_from(length).ok()?.to_be_bytes();
    let mut packet = Vec::with_capacity(V6 + length);
    let mut sum = Sum::default();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let all = u16::try_from(V4 + length).ok()?.to_be_bytes();
            // The system writes the number and the checksum.
            packet.extend([0x45, ecn.bits(), all[0], all[1], 0, 0, 0, 0, HOPS, UDP, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            sum.add(&packet[V4 - 8..]);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            packet.extend([0x60, ecn.bits() << 4, 0, 0, udp[0], udp[1], UDP, HOPS]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            sum.add(&packet[V6 - 32..]);
        }
        _ => return None,
    }
    let ports = [from.port().to_be_bytes(), to.port().to_be_bytes(), udp].concat();
    for part in [&[0, UDP][..], &udp, &ports, data] {
        sum.add(part);
    }
    packet.extend(ports);
    packet.extend(sum.checksum());
    packet.extend(data);
    Some(packet)
}

/// The sum of words of 16 bits (RFC 1071).
#[derive(Default)]
struct Sum(u64);

impl Sum {
    /// Adds a part that begins with a word.
    fn add(&mut self, part: &[u8]) {
        for word in part.chunks(2) {
            self.0 += u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
        }
    }

    /// Its complement. None at all is told by zero, so that is never the answer (RFC 768).
    fn checksum(self) -> [u8; 2] {
        let mut folded = self.0;
        while folded > 0xffff {
            folded = (folded & 0xffff) + (folded >> 16);
        }
        match !(folded as u16) {
            0 => [0xff, 0xff],
            checksum => checksum.to_be_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(from: &str, data: &[u8], to: &str, ecn: u8) -> Option<Vec<u8>> {
        packet(from.parse().unwrap(), data, to.parse().unwrap(), Ecn::of_bits(ecn))
    }

    #[test]
    fn headers_say_from_where_and_to_where_with_a_sum_that_is_right() {
        // 0102 + 0304 + 0a00 + 0001 + 0011 + 000b + 0035 + 1000 + 000b + 6162 + 6300 = e2c5 (the last byte is padded).
        let v4 = made("1.2.3.4:53", b"abc", "10.0.0.1:4096", 1).unwrap();
        assert_eq!(v4[..12], [0x45, 1, 0, 31, 0, 0, 0, 0, 64, 17, 0, 0]);
        assert_eq!(v4[12..20], [1, 2, 3, 4, 10, 0, 0, 1]);
        assert_eq!(v4[20..], [0, 53, 0x10, 0, 0, 11, 0x1d, 0x3a, b'a', b'b', b'c']);
        let v6 = made("[2600::1]:53", b"", "[fd00::2]:4096", 3).unwrap();
        assert_eq!(v6[..8], [0x60, 0x30, 0, 0, 0, 8, 17, 64]);
        // 2600 + 0001 + fd00 + 0002 + 0011 + 0008 + 0035 + 1000 + 0008 = 13359, folded 335a.
        assert_eq!(v6[40..], [0, 53, 0x10, 0, 0, 8, 0xcc, 0xa5]);
    }

    #[test]
    fn a_sum_of_nothing_is_not_taken_for_none_and_lengths_fit_their_fields() {
        // 1.2.3.4 + 10.0.0.1 + 0011 + 000a + 0035 + 1000 + 000a = 1e61, and the data makes it ffff.
        let packet = made("1.2.3.4:53", &[0xe1, 0x9e], "10.0.0.1:4096", 0).unwrap();
        assert_eq!(packet[26..28], [0xff, 0xff]);
        assert!(made("1.2.3.4:53", &[0; 65_507], "10.0.0.1:4096", 0).is_some());
        assert!(made("1.2.3.4:53", &[0; 65_508], "10.0.0.1:4096", 0).is_none());
        assert!(made("1.2.3.4:53", b"", "[fd00::2]:4096", 0).is_none(), "two families");
    }
}
