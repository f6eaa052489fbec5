//! Receipts: how many datagrams each end has got on each path.
//!
//! noq sends the acknowledgements of all paths on one of them, so a missing acknowledgement says nothing of
//! the direction that failed. A receipt counts what came on every path, and goes out on every path that can
//! carry one. So where one direction of each of two paths works, each end learns which.
//!
//! In a QUIC datagram: the kind (1 byte), then for each path its id [RFC9000 §16] and the count, modulo 2³²
//! (4 bytes, big-endian).

use std::collections::BTreeMap;
use web_time::{Duration, Instant};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use fairpath_engine::ByteCount;
use noq_proto::PathId;
use noq_proto::coding::{Decodable as _, Encodable as _};

use crate::transport::PATH_IDS;

/// The first byte of a receipt.
pub(crate) const KIND: u8 = 3;

/// How often receipts are given while data flows or something is wrong: three of them are lost before a path
/// is taken for deaf.
pub(crate) const EVERY: Duration = Duration::from_millis(150);

/// A receipt for these counts.
pub(crate) fn write(counts: &[(PathId, u64)]) -> Bytes {
    let mut datagram = BytesMut::with_capacity(1 + 8 * counts.len());
    datagram.put_u8(KIND);
    for (path, count) in counts {
        path.encode(&mut datagram);
        datagram.put_u32(*count as u32);
    }
    datagram.freeze()
}

/// Least size of a padded receipt, in bytes. Three times that is the least datagram that validates
/// an address [RFC9000 §8.1] [RFC9000 §8.2.1].
const PADDED_MIN: usize = 400;

/// Excess of data in flight over a path's window above which receipts are not padded. It is thirty
/// receipts, the price of ten address validations.
pub(crate) const PADDED_BEYOND: ByteCount = ByteCount::new(30 * PADDED_MIN as u64);

/// The same receipt in a larger datagram: it says all several times.
pub(crate) fn padded(receipt: &[u8]) -> Bytes {
    let mut datagram = BytesMut::from(receipt);
    while datagram.len() < PADDED_MIN && receipt.len() > 1 {
        datagram.extend_from_slice(&receipt[1..]);
    }
    datagram.freeze()
}

/// The peer's receipts: how many datagrams it has received on each path.
#[derive(Debug, Default)]
pub(crate) struct Receipts(BTreeMap<PathId, (u32, Instant)>);

impl Receipts {
    /// Takes a receipt without its first byte, as far as it is whole and of no more paths than there can be.
    pub(crate) fn on_receipt(&mut self, mut entries: &[u8], now: Instant) {
        for _ in 0..PATH_IDS {
            let Ok(path) = PathId::decode(&mut entries) else { break };
            let Ok(count) = entries.try_get_u32() else { break };
            let (known, grew_at) = self.0.entry(path).or_insert((0, now));
            // Receipts may come out of order, and counts begin again at zero.
            if (count.wrapping_sub(*known) as i32) > 0 {
                (*known, *grew_at) = (count, now);
            }
        }
        // Path ids are never used twice: those that were closed long ago are of no interest.
        while self.0.len() > 2 * PATH_IDS as usize {
            self.0.pop_first();
        }
    }

    /// When it was last heard that more had come on the path.
    pub(crate) fn grew_at(&self, path: PathId) -> Option<Instant> {
        self.0.get(&path).map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_count_that_grew_says_that_something_came() {
        let (begun, mut receipts) = (Instant::now(), Receipts::default());
        let at = |ms| begun + Duration::from_millis(ms);
        let path = PathId::from(1_u32);
        assert_eq!(receipts.grew_at(path), None);
        for (ms, count, grew) in [(0, 5, 0), (100, 5, 0), (200, 6, 200), (300, 4, 200), (400, 7, 400)] {
            receipts.on_receipt(&write(&[(path, count)])[1..], at(ms));
            assert_eq!(receipts.grew_at(path), Some(at(grew)), "{count} at {ms} ms");
        }
        receipts.on_receipt(&write(&[(path, u64::from(u32::MAX) + 3)])[1..], at(500));
        assert_eq!(receipts.grew_at(path), Some(at(400)), "less than before, modulo 2³²");
    }

    #[test]
    fn a_padded_receipt_says_what_it_said_before() {
        let (now, mut plain, mut padded) = (Instant::now(), Receipts::default(), Receipts::default());
        let receipt = write(&[(PathId::from(1_u32), 5), (PathId::from(300_u32), 7)]);
        let large = super::padded(&receipt);
        assert!((PADDED_MIN..PADDED_MIN + receipt.len()).contains(&large.len()), "{}", large.len());
        plain.on_receipt(&receipt[1..], now);
        padded.on_receipt(&large[1..], now);
        assert_eq!(plain.0, padded.0);
    }

    #[test]
    fn what_is_no_receipt_is_ignored_and_memory_is_bounded() {
        let (now, mut receipts) = (Instant::now(), Receipts::default());
        receipts.on_receipt(&[], now);
        receipts.on_receipt(&[0; 4], now);
        assert!(receipts.0.is_empty(), "an id and no whole count");
        let many: Vec<_> = (0..100_u32).map(|path| (PathId::from(path), 1)).collect();
        receipts.on_receipt(&write(&many)[1..], now);
        assert_eq!(receipts.0.len(), PATH_IDS as usize);
        for path in 0..1_000_u32 {
            receipts.on_receipt(&write(&[(PathId::from(path), 1)])[1..], now);
        }
        assert!(receipts.0.len() <= 2 * PATH_IDS as usize);
    }
}
