//! The receiving side of a connection: acknowledgements path by path, data in order.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::Timestamp;

use crate::packet::{AckFrame, Chunk};
use crate::timers::Lazy;

/// The arrivals on one path.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    largest: Option<u64>,
    /// Bit i: `largest` − i has arrived.
    seen: u64,
    largest_at: Timestamp,
    /// How many wait for their acknowledgement, and since when the first of them does.
    unacked: u32,
    unacked_since: Timestamp,
    marked: u32,
}

/// The decision about an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckNow {
    /// Send it.
    Yes,
    /// Wait for the next packet, until then at the latest.
    By(Timestamp),
    /// Send one for this packet alone: it is older than what others name.
    Alone,
    /// None: the packet has come before.
    No,
}

/// The receiving side of a connection.
#[derive(Debug)]
pub(crate) struct Receiver {
    paths: Vec<Arrivals>,
    pub(crate) ack_timers: Vec<Lazy>,
    /// The first piece that has not arrived, and for each from there on whether it has, and its size.
    expected: u64,
    held: VecDeque<Option<u32>>,
    held_count: u64,
    /// When it was last summed up how long they have waited.
    waited_at: Timestamp,
    /// How many pieces from `expected` on are taken.
    buffer: u64,
    end: Option<u64>,
    delivered_bytes: u64,
    duplicates: u64,
    ack_every: u32,
    ack_delay_max: Duration,
}

impl Receiver {
    /// A receiver of `paths` paths.
    pub(crate) fn new(paths: usize, buffer: u64, ack_every: u32, ack_delay_max: Duration) -> Self {
        Self {
            paths: vec![Arrivals::default(); paths],
            ack_timers: vec![Lazy::default(); paths],
            expected: 0,
            held: VecDeque::new(),
            held_count: 0,
            waited_at: Timestamp::ZERO,
            buffer,
            end: None,
            delivered_bytes: 0,
            duplicates: 0,
            ack_every,
            ack_delay_max,
        }
    }

    /// Packet `number` came on `path`.
    #[inline]
    pub(crate) fn on_packet(&mut self, path: usize, number: u64, marked: bool, now: Timestamp) -> AckNow {
        let arrivals = &mut self.paths[path];
        let in_order = arrivals.largest.map_or(number == 0, |largest| number == largest + 1);
        match arrivals.largest {
            Some(largest) if number <= largest => {
                let age = largest - number;
                if age < 64 && arrivals.seen & (1 << age) != 0 {
                    // Marks of a copy do not count [RFC9000 §13.4.1].
                    return AckNow::No;
                }
                if age >= 64 {
                    arrivals.marked += u32::from(marked);
                    return AckNow::Alone;
                }
                arrivals.seen |= 1 << age;
            }
            largest => {
                let step = largest.map_or(64, |largest| number - largest);
                arrivals.seen = if step < 64 { arrivals.seen << step } else { 0 } | 1;
                arrivals.largest = Some(number);
                arrivals.largest_at = now;
            }
        }
        if arrivals.unacked == 0 {
            arrivals.unacked_since = now;
        }
        arrivals.unacked += 1;
        arrivals.marked += u32::from(marked);
        if !in_order || marked || arrivals.unacked >= self.ack_every {
            AckNow::Yes
        } else {
            AckNow::By(arrivals.unacked_since + self.ack_delay_max)
        }
    }

    /// How long pieces have waited for what comes before them since this was last asked, all of them together.
    pub(crate) fn waited(&mut self, now: Timestamp) -> Duration {
        let since = core::mem::replace(&mut self.waited_at, now);
        match u32::try_from(self.held_count) {
            Ok(held) if held > 0 => now.since(since) * held,
            _ => Duration::ZERO,
        }
    }

    /// A piece of data came. How many bytes of it are new: none, where it had come before.
    #[inline]
    pub(crate) fn on_chunk(&mut self, chunk: Chunk) -> u32 {
        if chunk.is_probe() {
            return 0;
        }
        if chunk.last {
            self.end = Some(chunk.number);
        }
        let Some(at) = chunk.number.checked_sub(self.expected) else {
            self.duplicates += 1;
            return 0;
        };
        if at == 0 && self.held.is_empty() {
            // The usual case: in order, and nothing is held.
            self.expected += 1;
            self.delivered_bytes += u64::from(chunk.bytes);
            return chunk.bytes;
        }
        self.hold(at as usize, chunk)
    }

    /// A piece that is new has come ahead of others, or behind them where some are held.
    fn hold(&mut self, at: usize, chunk: Chunk) -> u32 {
        if at >= self.held.len() {
            self.held.resize(at + 1, None);
        }
        if self.held[at].is_some() {
            self.duplicates += 1;
            return 0;
        }
        self.held[at] = Some(chunk.bytes);
        self.held_count += 1;
        while let Some(Some(bytes)) = self.held.front().copied() {
            self.held.pop_front();
            self.held_count -= 1;
            self.expected += 1;
            self.delivered_bytes += u64::from(bytes);
        }
        chunk.bytes
    }

    /// The acknowledgement of `path` as it stands; `None` where nothing has come.
    #[inline]
    pub(crate) fn ack(&mut self, path: usize, now: Timestamp) -> Option<AckFrame> {
        let arrivals = &mut self.paths[path];
        arrivals.unacked = 0;
        Some(AckFrame {
            largest: arrivals.largest?,
            seen: arrivals.seen,
            delay_ns: u32::try_from(now.since(arrivals.largest_at).as_nanos()).unwrap_or(u32::MAX),
            expected: self.expected,
            marked: arrivals.marked,
        })
    }

    /// An acknowledgement of the packet `number` of `path` and of no other.
    pub(crate) fn ack_alone(&self, path: usize, number: u64) -> AckFrame {
        AckFrame { largest: number, seen: 1, delay_ns: 0, expected: self.expected, marked: self.paths[path].marked }
    }

    /// When the acknowledgement of `path` has waited long enough.
    pub(crate) fn ack_deadline(&self, path: usize) -> Timestamp {
        let arrivals = &self.paths[path];
        if arrivals.unacked > 0 { arrivals.unacked_since + self.ack_delay_max } else { Timestamp::MAX }
    }

    /// The first piece that has not arrived: everything below has been delivered, in order.
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// How many bytes were delivered in order.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// How many pieces came more than once.
    pub(crate) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// For how many pieces there is an entry.
    pub(crate) fn entries(&self) -> usize {
        self.held.len()
    }

    /// How many pieces wait for an earlier one.
    pub(crate) fn held_count(&self) -> u64 {
        self.held_count
    }

    /// How many pieces may wait.
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Whether the last piece and all before it were delivered.
    pub(crate) fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.expected > end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(25);

    fn receiver(ack_every: u32) -> Receiver {
        Receiver::new(1, 10, ack_every, DELAY)
    }

    fn chunk(number: u64) -> Chunk {
        Chunk { number, bytes: 1000, last: number == 3 }
    }

    #[test]
    fn every_second_packet_is_acknowledged_at_once_and_a_gap_too() {
        let mut receiver = receiver(2);
        let now = Timestamp::from_millis(10);
        assert_eq!(receiver.on_packet(0, 0, false, now), AckNow::By(now + DELAY));
        assert_eq!(receiver.on_packet(0, 1, false, now), AckNow::Yes);
        assert_eq!(receiver.ack(0, now).map(|ack| (ack.largest, ack.seen)), Some((1, 0b11)));
        assert_eq!(receiver.on_packet(0, 3, false, now), AckNow::Yes, "2 is missing");
        let ack = receiver.ack(0, now + Duration::from_millis(1)).unwrap();
        assert_eq!((ack.largest, ack.seen, ack.delay_ns), (3, 0b1101, 1_000_000));
        assert_eq!(receiver.ack_deadline(0), Timestamp::MAX);
    }

    #[test]
    fn a_copy_is_not_acknowledged_and_its_mark_does_not_count() {
        let mut receiver = receiver(1);
        let now = Timestamp::ZERO;
        assert_eq!(receiver.on_packet(0, 0, true, now), AckNow::Yes);
        assert_eq!(receiver.on_packet(0, 0, true, now), AckNow::No);
        assert_eq!(receiver.on_packet(0, 1, false, now), AckNow::Yes);
        assert_eq!(receiver.on_packet(0, 0, true, now), AckNow::No);
        assert_eq!(receiver.ack(0, now).map(|ack| ack.marked), Some(1));
    }

    #[test]
    fn what_comes_after_64_later_ones_is_acknowledged_alone() {
        let mut receiver = receiver(1);
        let now = Timestamp::ZERO;
        (1..=64).for_each(|number| assert_eq!(receiver.on_packet(0, number, false, now), AckNow::Yes));
        assert_eq!(receiver.on_packet(0, 0, false, now), AckNow::Alone);
        let ack = receiver.ack_alone(0, 0);
        assert_eq!((ack.largest, ack.seen, ack.delay_ns), (0, 1, 0));
        assert_eq!(receiver.ack(0, now).map(|ack| (ack.largest, ack.seen)), Some((64, u64::MAX)));
    }

    #[test]
    fn data_is_delivered_once_and_in_order() {
        let mut receiver = receiver(1);
        assert_eq!(receiver.on_chunk(chunk(1)), 1000);
        assert_eq!((receiver.delivered_bytes(), receiver.held_count()), (0, 1));
        assert_eq!(receiver.on_chunk(chunk(1)), 0, "again");
        assert_eq!(receiver.on_chunk(chunk(0)), 1000);
        assert_eq!((receiver.delivered_bytes(), receiver.held_count()), (2000, 0));
        assert_eq!(receiver.on_chunk(chunk(0)), 0, "again");
        assert_eq!(receiver.on_chunk(chunk(3)), 1000);
        assert!(!receiver.is_complete());
        assert_eq!(receiver.on_chunk(chunk(2)), 1000);
        assert!(receiver.is_complete());
        assert_eq!((receiver.expected(), receiver.duplicates()), (4, 2));
    }

    #[test]
    fn an_acknowledgement_tells_of_what_is_missing_with_what_was_delivered() {
        let mut receiver = receiver(1);
        receiver.on_packet(0, 0, false, Timestamp::ZERO);
        receiver.on_chunk(chunk(1));
        assert_eq!(receiver.ack(0, Timestamp::ZERO).unwrap().expected, 0);
        receiver.on_chunk(chunk(0));
        assert_eq!(receiver.ack(0, Timestamp::ZERO).unwrap().expected, 2);
    }
}
