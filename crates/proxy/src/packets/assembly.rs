//! Pieces of packets, put together.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{ECN_SHIFT, PACKET_MAX, PIECE};
use crate::target::TARGET_MAX;
use crate::udp::Ecn;

/// The most pieces of a packet.
const COUNT_MAX: u8 = (PACKET_MAX + TARGET_MAX).div_ceil(PIECE) as u8;

/// The memory for all packets that are not whole yet, in bytes.
const MEMORY: usize = 4 << 20;

/// A piece that is later than this behind the first one of its packet finds it given up.
const LATE: Duration = Duration::from_secs(2);

/// The memory that a packet takes beside its pieces, about.
const OVERHEAD: usize = 192;

/// The incomplete packets of a connection. When memory is short the oldest is given up.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    parts: BTreeMap<Key, Part>,
    /// All of them in the order in which they began, and some that are not there any more.
    begun: VecDeque<(Key, Instant)>,
    memory: usize,
}

/// A packet: its association and its number.
type Key = (u32, u32);

/// The head of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) association: u32,
    pub(super) number: u32,
    /// The place of the piece, from 0.
    pub(super) at: u8,
    /// How many there are.
    pub(super) count: u8,
    /// The field of congestion, of the packet or as the queue has marked it.
    pub(super) ecn: Ecn,
}

#[derive(Debug)]
struct Part {
    begun: Instant,
    /// Room for all pieces.
    data: Vec<u8>,
    count: u8,
    /// A bit for each piece that has come.
    came: u64,
    ecn: Ecn,
    /// The length of the whole, where the last piece has come.
    length: Option<usize>,
}

impl Head {
    /// Reads the last two bytes of a head.
    pub(super) fn read(association: u32, number: u32, [place, count]: [u8; 2]) -> Self {
        let at = place & ((1 << ECN_SHIFT) - 1);
        Self { association, number, at, count, ecn: Ecn::of_bits(place >> ECN_SHIFT) }
    }

    /// Whether several packets follow, and no piece.
    pub(super) fn is_of_bundle(&self) -> bool {
        self.count == 0
    }

    /// Whether a piece of this length can be.
    pub(super) fn fits(&self, length: usize) -> bool {
        let is_last = self.count.checked_sub(1) == Some(self.at);
        self.at < self.count && self.count <= COUNT_MAX && (length == PIECE || (is_last && length < PIECE))
    }
}

impl Assembly {
    /// Takes a piece that [fits](Head::fits); the packet, where it is whole now.
    pub(super) fn take(&mut self, head: Head, piece: &[u8], now: Instant) -> Option<(Bytes, Ecn)> {
        if head.count == 1 {
            return Some((Bytes::copy_from_slice(piece), head.ecn));
        }
        self.give_up(|_, begun| now.saturating_duration_since(begun) > LATE);
        let key = (head.association, head.number);
        if self.parts.get(&key).is_none_or(|part| part.count != head.count) {
            self.remove(&key);
            let cost = cost(head.count);
            self.give_up(|memory, _| memory + cost > MEMORY);
            let data = vec![0; usize::from(head.count) * PIECE];
            let part = Part { begun: now, data, count: head.count, came: 0, ecn: head.ecn, length: None };
            self.parts.insert(key, part);
            self.begun.push_back((key, now));
            self.memory += cost;
            if self.begun.len() > 2 * self.parts.len() + 64 {
                let parts = &self.parts;
                self.begun.retain(|(key, begun)| parts.get(key).is_some_and(|part| part.begun == *begun));
            }
        }
        let part = self.parts.get_mut(&key)?;
        let from = usize::from(head.at) * PIECE;
        part.data[from..from + piece.len()].copy_from_slice(piece);
        part.came |= 1 << head.at;
        part.ecn = part.ecn.and(head.ecn);
        if head.at + 1 == head.count {
            part.length = Some(from + piece.len());
        }
        if part.came.count_ones() < head.count.into() {
            return None;
        }
        let mut part = self.remove(&key)?;
        part.data.truncate(part.length?);
        Some((part.data.into(), part.ecn))
    }

    /// Gives up all packets of an association.
    pub(super) fn forget(&mut self, association: u32) {
        let keys: Vec<Key> =
            self.parts.range((association, 0)..=(association, u32::MAX)).map(|(key, _)| *key).collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Gives up the oldest while this holds of the memory that is taken and of the time when it began.
    fn give_up(&mut self, is_to_go: impl Fn(usize, Instant) -> bool) {
        while let Some((key, begun)) = self.begun.front().copied() {
            let is_there = self.parts.get(&key).is_some_and(|part| part.begun == begun);
            if is_there && !is_to_go(self.memory, begun) {
                return;
            }
            self.begun.pop_front();
            if is_there {
                self.remove(&key);
            }
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Part> {
        let part = self.parts.remove(key)?;
        self.memory -= cost(part.count);
        Some(part)
    }
}

fn cost(count: u8) -> usize {
    usize::from(count) * PIECE + OVERHEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(association: u32, number: u32, at: u8, count: u8) -> Head {
        Head { association, number, at, count, ecn: Ecn::default() }
    }

    /// The memory that is taken, and that which the parts say.
    fn is_true(assembly: &Assembly) -> bool {
        let all: usize = assembly.parts.values().map(|part| cost(part.count)).sum();
        all == assembly.memory && all <= MEMORY
    }

    #[test]
    fn memory_is_bounded_whoever_sends_pieces_of_how_many_packets() {
        let (mut assembly, now) = (Assembly::default(), Instant::now());
        for number in 0..40_000 {
            // Never whole, from many associations, of every size.
            let count = 2 + (number % 59) as u8;
            assert_eq!(assembly.take(head(number % 256, number, 0, count), &[0; PIECE], now), None);
            assert!(is_true(&assembly), "{number}");
        }
        assert!(assembly.memory > MEMORY / 2, "it is used all the same");
        assert!(assembly.begun.len() <= 2 * assembly.parts.len() + 64);
        // A packet whose pieces come together is put together beside them.
        assert_eq!(assembly.take(head(1, 50_000, 1, 2), b"end", now), None);
        let (whole, _) = assembly.take(head(1, 50_000, 0, 2), &[1; PIECE], now).unwrap();
        assert_eq!((whole.len(), &whole[PIECE..]), (PIECE + 3, &b"end"[..]));
    }

    #[test]
    fn old_pieces_and_those_of_an_association_that_ended_take_no_memory() {
        let (mut assembly, begun) = (Assembly::default(), Instant::now());
        let _ = assembly.take(head(1, 1, 0, 2), &[0; PIECE], begun);
        let _ = assembly.take(head(2, 1, 0, 2), &[0; PIECE], begun);
        assembly.forget(1);
        assert!(is_true(&assembly) && assembly.parts.len() == 1);
        let later = begun + LATE + Duration::from_millis(1);
        let _ = assembly.take(head(3, 1, 0, 2), &[0; PIECE], later);
        assert!(is_true(&assembly) && assembly.parts.len() == 1);
        assert_eq!(assembly.take(head(2, 1, 1, 2), b"x", later), None, "its first piece was given up");
    }

    #[test]
    fn pieces_that_cannot_be_do_not_fit() {
        assert!(head(0, 0, 0, 1).fits(0) && head(0, 0, 0, 2).fits(PIECE) && head(0, 0, 1, 2).fits(7));
        for (head, length) in [
            (head(0, 0, 0, 0), 1),
            (head(0, 0, 1, 1), 1),
            (head(0, 0, 0, COUNT_MAX + 1), PIECE),
            (head(0, 0, 0, 2), PIECE - 1),
            (head(0, 0, 1, 2), PIECE + 1),
            (head(0, 0, u8::MAX, u8::MAX), 1),
        ] {
            assert!(!head.fits(length), "{head:?} {length}");
        }
    }
}
