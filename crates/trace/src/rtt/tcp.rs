//! Round-trip times of a TCP connection, from the packets that somebody between its ends saw.
//!
//! # Source
//!
//! A receiver echoes the timestamps of what it got [RFC7323 §3.2]: from a packet to the first one
//! of the other direction that echoes its timestamp it is one round trip between the observer and
//! that receiver. Without timestamps the round trip is from a segment to the acknowledgement of its
//! end, and segments that were sent twice say nothing [RFC6298 §3].

use std::collections::VecDeque;

use fairpath_core::Timestamp;

use super::RttSample;

/// So much may be on its way; of more, the oldest is forgotten.
const WAITING_MAX: usize = 1 << 16;

/// What is taken from a TCP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) at: Timestamp,
    pub(super) sequence: u32,
    /// Bytes in the space of sequence numbers: the payload, and one for SYN and FIN each.
    pub(super) length: u32,
    /// What it acknowledges.
    pub(super) acknowledges: Option<u32>,
    /// The timestamp and the echo.
    pub(super) stamps: Option<(u32, u32)>,
    pub(super) syn: bool,
}

/// The packets of one direction that wait for an answer, and the round trips of those that got one.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    /// By timestamps.
    stamps: Waiting,
    /// By sequence numbers.
    segments: Waiting,
}

#[derive(Clone, Debug, Default)]
struct Waiting {
    /// Numbers in order, and when each was first seen; `None`: it was sent twice.
    sent: VecDeque<(u32, Option<Timestamp>)>,
    newest: Option<u32>,
    samples: Vec<RttSample>,
}

impl Direction {
    /// A packet was sent in this direction.
    pub(super) fn on_sent(&mut self, packet: &Packet) {
        if packet.syn {
            // Another connection may use the same ports again, with other numbers.
            self.stamps.forget();
            self.segments.forget();
        }
        if let Some((stamp, _)) = packet.stamps {
            self.stamps.on_sent(stamp, packet.at);
        }
        if packet.length > 0 {
            let end = packet.sequence.wrapping_add(packet.length);
            if !self.segments.on_sent(end, packet.at) {
                self.segments.sent_again(packet.sequence);
            }
        }
    }

    /// A packet came back in the other direction.
    pub(super) fn on_answer(&mut self, packet: &Packet) {
        let Some(acknowledged) = packet.acknowledges else { return };
        if let Some((_, echo)) = packet.stamps {
            self.stamps.on_answer(echo, packet.at);
        }
        self.segments.on_answer(acknowledged, packet.at);
    }

    /// How many packets are measured or wait for an answer.
    pub(super) fn kept(&self) -> usize {
        let of = |waiting: &Waiting| waiting.samples.len() + waiting.sent.len();
        of(&self.stamps).max(of(&self.segments))
    }

    /// The round trips: by timestamps where there are any.
    pub(super) fn samples(self) -> Vec<RttSample> {
        if self.stamps.samples.is_empty() { self.segments.samples } else { self.stamps.samples }
    }
}

impl Waiting {
    /// True: the number is a new one.
    fn on_sent(&mut self, number: u32, at: Timestamp) -> bool {
        let new = self.newest.is_none_or(|newest| after(number, newest));
        if new {
            self.newest = Some(number);
            self.sent.push_back((number, Some(at)));
            if self.sent.len() > WAITING_MAX {
                self.sent.pop_front();
            }
        }
        new
    }

    /// Everything after `number` may have been sent twice.
    fn sent_again(&mut self, number: u32) {
        self.sent.iter_mut().rev().take_while(|(sent, _)| after(*sent, number)).for_each(|(_, at)| *at = None);
    }

    fn on_answer(&mut self, number: u32, at: Timestamp) {
        while let Some((sent, sent_at)) = self.sent.front().copied().filter(|(sent, _)| !after(*sent, number)) {
            if let (true, Some(sent_at)) = (sent == number, sent_at) {
                self.samples.push(RttSample { at, rtt: at.since(sent_at) });
            }
            self.sent.pop_front();
        }
    }

    fn forget(&mut self) {
        self.sent.clear();
        self.newest = None;
    }
}

// [RFC7323 §5.2] the order of numbers of 32 bits that wrap
//     s < t if 0 < (t - s) < 2^31
fn after(a: u32, b: u32) -> bool {
    (1..1 << 31).contains(&a.wrapping_sub(b))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn packet(at_ms: u64, sequence: u32, length: u32, stamps: Option<(u32, u32)>) -> Packet {
        let at = Timestamp::from_millis(at_ms);
        Packet { at, sequence, length, acknowledges: None, stamps, syn: false }
    }

    fn answer(at_ms: u64, acknowledges: u32, stamps: Option<(u32, u32)>) -> Packet {
        Packet { acknowledges: Some(acknowledges), ..packet(at_ms, 0, 0, stamps) }
    }

    fn rtts_ms(direction: Direction) -> Vec<u128> {
        direction.samples().iter().map(|sample| sample.rtt.as_millis()).collect()
    }

    #[test]
    fn the_first_packet_of_a_timestamp_counts_until_its_first_echo() {
        let mut direction = Direction::default();
        direction.on_sent(&packet(0, 0, 100, Some((7, 0))));
        direction.on_sent(&packet(1, 100, 100, Some((7, 0))));
        direction.on_sent(&packet(4, 200, 100, Some((9, 0))));
        direction.on_answer(&answer(20, 100, Some((50, 7))));
        direction.on_answer(&answer(22, 200, Some((50, 7))));
        direction.on_answer(&answer(25, 300, Some((51, 9))));
        // 20 - 0 and 25 - 4; by sequence numbers there would be a third.
        assert_eq!(rtts_ms(direction), [20, 21]);
    }

    #[test]
    fn timestamps_and_sequence_numbers_wrap() {
        for stamps in [true, false] {
            let stamp = |value: u32| stamps.then_some((value, value));
            let mut direction = Direction::default();
            direction.on_sent(&packet(0, u32::MAX - 99, 100, stamp(u32::MAX)));
            direction.on_sent(&packet(1, 0, 100, stamp(1)));
            direction.on_answer(&answer(10, 0, stamp(u32::MAX)));
            direction.on_answer(&answer(15, 100, stamp(1)));
            assert_eq!(rtts_ms(direction), [10, 14]);
        }
    }

    #[test]
    fn a_segment_that_was_sent_twice_says_nothing() {
        let mut direction = Direction::default();
        direction.on_sent(&packet(0, 0, 100, None));
        direction.on_sent(&packet(1, 100, 100, None));
        direction.on_sent(&packet(50, 100, 100, None));
        direction.on_sent(&packet(51, 200, 100, None));
        direction.on_answer(&answer(10, 100, None));
        direction.on_answer(&answer(60, 200, None));
        direction.on_answer(&answer(71, 300, None));
        assert_eq!(rtts_ms(direction), [10, 20]);
    }

    #[test]
    fn an_acknowledgement_of_several_segments_is_the_round_trip_of_the_last() {
        let mut direction = Direction::default();
        (0..3).for_each(|n| direction.on_sent(&packet(n, n as u32 * 100, 100, None)));
        direction.on_answer(&answer(30, 300, None));
        assert_eq!(rtts_ms(direction), [28]);
    }

    #[test]
    fn ports_may_be_used_again() {
        let mut direction = Direction::default();
        direction.on_sent(&packet(0, 0, 100, Some((1_000_000, 0))));
        direction.on_sent(&Packet { syn: true, ..packet(100, 5, 1, Some((10, 0))) });
        direction.on_answer(&answer(120, 6, Some((3, 10))));
        assert_eq!(direction.samples()[0].rtt, Duration::from_millis(20));
    }
}
