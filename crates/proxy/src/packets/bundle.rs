//! Small packets that travel in one datagram.
//!
//! ```text
//! head        10 bytes   as that of a piece, the first of none
//! packets      1 byte    how many there are
//! lengths      2 bytes   of the data of each
//! a target in SOCKS5's form, and the data of all
//! ```
//!
//! Packets wait for no others: those that are there at once travel together. They are for one host or from one, and share a
//! mark of congestion.

use bytes::{Buf as _, Bytes};

use super::{ECN_SHIFT, HEAD, PIECE};
use crate::target::Target;
use crate::udp::{Burst, Ecn};

/// The most packets of a bundle, which the system sends at once at the other end.
const PACKETS_MAX: usize = 64;

/// The bytes that each packet takes beside its data.
const LENGTH: usize = 2;

/// Packets for one target that are to travel together.
#[derive(Debug)]
pub(super) struct Bundle {
    target: Vec<u8>,
    lengths: Vec<u16>,
    data: Vec<u8>,
}

impl Bundle {
    pub(super) fn new(target: &Target) -> Self {
        let mut encoded = Vec::with_capacity(32);
        target.encode(&mut encoded);
        Self { target: encoded, lengths: Vec::new(), data: Vec::new() }
    }

    /// Whether one more packet has room. The first one always has, whatever its size.
    pub(super) fn takes(&self, packet: &[u8]) -> bool {
        let taken = 1 + LENGTH * (self.lengths.len() + 1) + self.target.len() + self.data.len();
        self.lengths.is_empty() || (self.lengths.len() < PACKETS_MAX && taken + packet.len() <= PIECE)
    }

    pub(super) fn push(&mut self, packet: &[u8]) {
        self.lengths.push(packet.len() as u16);
        self.data.extend_from_slice(packet);
    }

    /// The packet, where there is only one.
    pub(super) fn single(&self) -> Option<&[u8]> {
        (self.lengths.len() == 1).then_some(&self.data)
    }

    /// The datagram for all of them; `None` where there are none.
    pub(super) fn datagram(&self, (id, number): (u32, u32), ecn: Ecn) -> Option<Vec<u8>> {
        if self.lengths.is_empty() {
            return None;
        }
        let lengths = LENGTH * self.lengths.len();
        let mut datagram = Vec::with_capacity(HEAD + 1 + lengths + self.target.len() + self.data.len());
        datagram.extend(id.to_be_bytes());
        datagram.extend(number.to_be_bytes());
        datagram.extend([ecn.bits() << ECN_SHIFT, 0, self.lengths.len() as u8]);
        datagram.extend(self.lengths.iter().flat_map(|length| length.to_be_bytes()));
        datagram.extend_from_slice(&self.target);
        datagram.extend_from_slice(&self.data);
        Some(datagram)
    }

    pub(super) fn clear(&mut self) {
        self.lengths.clear();
        self.data.clear();
    }
}

/// The target and the packets of a bundle behind its head. `None` where it can be none.
pub(super) fn read(mut datagram: Bytes) -> Option<(Target, Burst)> {
    let count = usize::from(datagram.try_get_u8().ok()?);
    if !(1..=PACKETS_MAX).contains(&count) || datagram.len() < LENGTH * count {
        return None;
    }
    let lengths: Vec<u16> = (0..count).map(|_| datagram.get_u16()).collect();
    let (target, length) = Target::decode(&datagram).ok().flatten()?;
    datagram.advance(length);
    let bytes: usize = lengths.iter().copied().map(usize::from).sum();
    (bytes == datagram.len()).then(|| (target, Burst::joined(lengths, datagram)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(target: &Target, lengths: &[usize]) -> Bundle {
        let mut bundle = Bundle::new(target);
        for (number, length) in (0..).zip(lengths) {
            let packet = vec![number; *length];
            assert!(bundle.takes(&packet), "{number}");
            bundle.push(&packet);
        }
        bundle
    }

    #[test]
    fn packets_of_one_datagram_come_out_as_they_were() {
        let target: Target = "example.com:51820".parse().unwrap();
        for lengths in [&[64; 15][..], &[0, 7, 0, 300], &[0; 64]] {
            let datagram = bundle(&target, lengths).datagram((7, 1), Ecn::CE).unwrap();
            assert!(datagram.len() <= HEAD + PIECE);
            let (read_target, packets) = read(Bytes::from(datagram).slice(HEAD..)).unwrap();
            let packets: Vec<&[u8]> = packets.packets().collect();
            assert_eq!(read_target, target);
            assert!(packets.iter().map(|packet| packet.len()).eq(lengths.iter().copied()), "{packets:?}");
            assert!((0..).zip(&packets).all(|(number, packet)| packet.iter().all(|byte| *byte == number)));
        }
    }

    #[test]
    fn a_bundle_is_no_larger_than_a_piece_and_a_large_packet_is_alone() {
        let target: Target = "192.0.2.1:5000".parse().unwrap();
        let full = bundle(&target, &[64; 16]);
        assert!(!full.takes(&[0; 64]) && full.takes(&[0; 10]));
        let mut large = Bundle::new(&target);
        assert!(large.takes(&[0; 9_000]));
        large.push(&[0; 9_000]);
        assert!(!large.takes(&[]) && large.single().is_some_and(|packet| packet.len() == 9_000));
        assert_eq!(Bundle::new(&target).datagram((1, 1), Ecn::default()), None);
    }

    #[test]
    fn what_can_be_no_bundle_is_none() {
        let target: Target = "192.0.2.1:5000".parse().unwrap();
        let right = bundle(&target, &[3, 4]).datagram((7, 1), Ecn::default()).unwrap().split_off(HEAD);
        for length in 0..right.len() {
            assert_eq!(read(Bytes::copy_from_slice(&right[..length])), None, "{length}");
        }
        assert_eq!(read([&right[..], b"x"].concat().into()), None);
        let none = [&[0][..], &right[5..12]].concat();
        assert_eq!(read(none.into()), None);
    }
}
