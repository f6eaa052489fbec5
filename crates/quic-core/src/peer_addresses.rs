//! The addresses of an end that listens, told again when they change.
//!
//! A ticket names the addresses that the listening end had when it was printed. Where it gets others, it says so on
//! every path that is open: the end that opens paths then opens some to the new ones.
//!
//! In a QUIC datagram: the kind (1 byte), then for each address the family (1 byte, 4 or 6), the IP address, and the port
//! (2 bytes, big-endian).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The first byte of such a datagram.
pub(crate) const KIND: u8 = 9;

/// As many are told as a ticket names.
const ADDRESSES_MAX: usize = 32;

/// The datagram that tells of these.
pub(crate) fn write(addresses: &[SocketAddr]) -> Bytes {
    let mut datagram = BytesMut::new();
    datagram.put_u8(KIND);
    for address in addresses.iter().take(ADDRESSES_MAX) {
        match address.ip() {
            IpAddr::V4(v4) => {
                datagram.put_u8(4);
                datagram.put(&v4.octets()[..]);
            }
            IpAddr::V6(v6) => {
                datagram.put_u8(6);
                datagram.put(&v6.octets()[..]);
            }
        }
        datagram.put_u16(address.port());
    }
    datagram.freeze()
}

/// The addresses of a datagram without its first byte, as far as it is whole.
pub(crate) fn read(mut entries: &[u8]) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    while addresses.len() < ADDRESSES_MAX {
        let ip = match entries.try_get_u8() {
            Ok(4) => entries.try_get_u32().map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))),
            Ok(6) => entries.try_get_u128().map(|bits| IpAddr::from(Ipv6Addr::from_bits(bits))),
            _ => break,
        };
        let (Ok(ip), Ok(port)) = (ip, entries.try_get_u16()) else { break };
        addresses.push(SocketAddr::new(ip, port));
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_and_what_is_cut_or_too_long_is_left_out() {
        let all: Vec<SocketAddr> =
            ["192.0.2.7:4433", "[2001:db8::1]:1"].iter().map(|text| text.parse().unwrap()).collect();
        let datagram = write(&all);
        assert_eq!((datagram[0], read(&datagram[1..])), (KIND, all.clone()));
        for length in 1..datagram.len() {
            assert!(read(&datagram[1..length]).len() < 2, "{length}");
        }
        assert_eq!(read(&write(&vec![all[0]; 100])[1..]).len(), ADDRESSES_MAX);
        assert!(read(&[5, 1, 2, 3]).is_empty());
    }
}
