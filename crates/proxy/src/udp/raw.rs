//! Packets of UDP that seem to come from any address and port, with headers that are written here.
//!
//! A socket that is bound to that address would take less. But the system has none for it where a program here uses that
//! port at all of its addresses: WireGuard and NTP often have one port at both ends.

use std::io;
use std::net::{IpAddr, SocketAddr};

use socket2::{Domain, Socket};
use tokio::net::UdpSocket;

use super::{Ecn, Here, system};

/// The number of UDP.
const UDP: u8 = 17;

/// The length of its header, in bytes.
const HEAD: usize = 8;

/// A socket that sends such packets. It receives nothing.
#[derive(Debug)]
pub(crate) struct RawUdp(UdpSocket);

impl RawUdp {
    /// Opens one, which `prepare` prepares. It takes the rights of root.
    pub(crate) fn open(domain: Domain, prepare: impl FnOnce(&Socket) -> io::Result<()>) -> io::Result<Self> {
        let socket = system::raw(domain)?;
        prepare(&socket)?;
        socket.set_nonblocking(true)?;
        // It is of no kind that tokio knows, which has to know no more than when it may send.
        UdpSocket::from_std(socket.into()).map(Self)
    }

    /// Sends data from an address. One that the system does not take is lost, as others are.
    pub(crate) async fn send(&self, from: SocketAddr, data: &[u8], mut to: SocketAddr, ecn: Ecn) {
        let Some(packet) = packet(from, data, to) else { return };
        let here = Here { address: from.ip(), interface: 0 };
        // The port is in the header. Here it would be a protocol.
        to.set_port(0);
        if let Err(error) = system::send(&self.0, &packet, None, (to, Some(here), ecn)).await {
            tracing::debug!(%error, %from, "a packet was not sent");
        }
    }
}

/// The data behind its header; `None` where the addresses are of two families, or the data is longer than the header can say.
fn packet(from: SocketAddr, data: &[u8], to: SocketAddr) -> Option<Vec<u8>> {
    let length = u16::try_from(HEAD + data.len()).ok()?.to_be_bytes();
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => [from.octets(), to.octets()].concat(),
        (IpAddr::V6(from), IpAddr::V6(to)) => [from.octets(), to.octets()].concat(),
        _ => return None,
    };
    let (from, to) = (from.port().to_be_bytes(), to.port().to_be_bytes());
    let mut sum = Sum::default();
    for part in [&addresses, &[0, UDP][..], &length, &from, &to, &length, data] {
        sum.add(part);
    }
    Some([&from, &to, &length, &sum.checksum(), data].concat())
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

    fn made(from: &str, data: &[u8], to: &str) -> Option<Vec<u8>> {
        packet(from.parse().unwrap(), data, to.parse().unwrap())
    }

    #[test]
    fn headers_say_from_where_and_to_where_with_a_sum_that_is_right() {
        // 0102 + 0304 + 0a00 + 0001 + 0011 + 000b + 0035 + 1000 + 000b + 6162 + 6300 = e2c5 (the last byte is padded).
        let v4 = made("1.2.3.4:53", b"abc", "10.0.0.1:4096").unwrap();
        assert_eq!(v4, [0, 53, 0x10, 0, 0, 11, 0x1d, 0x3a, b'a', b'b', b'c']);
        let v6 = made("[2600::1]:53", b"", "[fd00::2]:4096").unwrap();
        // 2600 + 0001 + fd00 + 0002 + 0011 + 0008 + 0035 + 1000 + 0008 = 13359, folded 335a.
        assert_eq!(v6, [0, 53, 0x10, 0, 0, 8, 0xcc, 0xa5]);
    }

    #[test]
    fn a_sum_of_nothing_is_not_taken_for_none_and_lengths_fit_their_fields() {
        // 1.2.3.4 + 10.0.0.1 + 0011 + 000a + 0035 + 1000 + 000a = 1e61, and the data makes it ffff.
        let packet = made("1.2.3.4:53", &[0xe1, 0x9e], "10.0.0.1:4096").unwrap();
        assert_eq!(packet[6..8], [0xff, 0xff]);
        assert!(made("1.2.3.4:53", &[0; 65_527], "10.0.0.1:4096").is_some());
        assert!(made("1.2.3.4:53", &[0; 65_528], "10.0.0.1:4096").is_none());
        assert!(made("1.2.3.4:53", b"", "[fd00::2]:4096").is_none(), "two families");
    }
}
