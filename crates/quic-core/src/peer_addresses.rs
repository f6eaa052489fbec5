//! The addresses of an end that listens, told again when they change.
//!
//! A ticket names the addresses that the listening end had when it was printed. Where it gets others, it says so on
//! every path that is open: the end that opens paths then opens some to the new ones.
//!
//! In a QUIC datagram: the kind (1 byte), then for each address the family (1 byte, 4 or 6), the IP address, and the port
//! (2 bytes, big-endian).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use web_time::{Duration, Instant};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The first byte of such a datagram.
pub(crate) const KIND: u8 = 9;

/// As many are told as a ticket names.
const ADDRESSES_MAX: usize = 32;

/// How often they are told, and how long after the first time the second follows; each wait is twice the one before. Where
/// all addresses changed at once, nothing is acknowledged before a new path is open.
const TIMES: u32 = 6;
const AGAIN: Duration = Duration::from_millis(250);

/// A list that is being told.
#[derive(Debug)]
pub(crate) struct Announcement {
    datagram: Bytes,
    said: u32,
    next: Instant,
}

impl Announcement {
    pub(crate) fn new(addresses: &[SocketAddr], now: Instant) -> Self {
        Self { datagram: write(addresses), said: 0, next: now }
    }

    /// The datagram to be said now, if any.
    pub(crate) fn say(&mut self, now: Instant) -> Option<Bytes> {
        if self.said == TIMES || now < self.next {
            return None;
        }
        self.next = now + AGAIN * 2_u32.pow(self.said);
        self.said += 1;
        Some(self.datagram.clone())
    }
}

fn write(addresses: &[SocketAddr]) -> Bytes {
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

    #[test]
    fn a_change_is_told_a_few_times() {
        let begun = Instant::now();
        let mut announcement = Announcement::new(&[], begun);
        let times = (0..200).filter(|step| announcement.say(begun + Duration::from_millis(50) * *step).is_some());
        assert_eq!(times.collect::<Vec<u32>>(), [0, 5, 15, 35, 75, 155]);
    }
}
