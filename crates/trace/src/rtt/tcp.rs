//! Round-trip times of a TCP connection, from the packets that somebody between its ends saw.
//!
//! # Source
//!
//! A receiver echoes the timestamps of the packets that it got [RFC7323 §3.2]. The time from a
//! packet to the first one of the other direction that echoes its timestamp is one round trip
//! between the observer and that receiver. During loss recovery the receiver echoes the timestamp
//! of the last packet before the gap, so nothing new [RFC7323 §4.3], though that is when the queue
//! is the fullest.
//!
//! From a segment to the acknowledgement of its end it is a round trip as well; segments that were
//! sent twice give no sample [RFC6298 §3]. During loss recovery the first block of a selective
//! acknowledgement ends with the segment that has just arrived, if that is the newest [RFC2018 §4].
//!
//! Both are taken. If one packet answers in both ways, the shorter of the two times counts: an echo
//! may be of the first of several packets for whose acknowledgement the receiver waited.

use std::collections::VecDeque;

use fairpath_core::Timestamp;

use super::RttSample;

/// The most segments that may be on their way; of more, the oldest is forgotten.
const WAITING_MAX: usize = 1 << 16;

/// The fields of a TCP packet that are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) at: Timestamp,
    pub(super) sequence: u32,
    /// Bytes in the space of sequence numbers: the payload, and one for SYN and FIN each.
    pub(super) length: u32,
    /// The number that it acknowledges.
    pub(super) acknowledges: Option<u32>,
    /// The end of the first block that it acknowledges selectively.
    pub(super) selective: Option<u32>,
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
    /// Whether the other end acknowledges selectively.
    selective: bool,
}

#[derive(Clone, Debug, Default)]
struct Waiting {
    /// Numbers in order, and what is known of each.
    sent: VecDeque<(u32, Sent)>,
    newest: Option<u32>,
    samples: Vec<RttSample>,
}

/// The state of a number that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    /// It was first seen at this time.
    At(Timestamp),
    /// It was sent twice: nobody knows what is answered.
    Twice,
    /// It was answered, though one before it was not.
    Answered,
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
                // A host that hears of single segments sends the missing ones again; others send all that follows.
                self.segments.sent_again(packet.sequence, self.selective.then_some(end));
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
        if let Some(end) = packet.selective {
            self.selective = true;
            self.segments.on_selective(end, packet.at);
        }
    }

    /// How many packets are measured or wait for an answer.
    pub(super) fn kept(&self) -> usize {
        let of = |waiting: &Waiting| waiting.samples.len() + waiting.sent.len();
        of(&self.stamps).max(of(&self.segments))
    }

    /// The round trips in the order of the answers.
    pub(super) fn samples(self) -> Vec<RttSample> {
        let mut samples = [self.stamps.samples, self.segments.samples].concat();
        samples.sort_by_key(|sample| (sample.at, sample.rtt));
        samples.dedup_by_key(|sample| sample.at);
        samples
    }
}

impl Waiting {
    /// True: the number is a new one.
    fn on_sent(&mut self, number: u32, at: Timestamp) -> bool {
        let new = self.newest.is_none_or(|newest| after(number, newest));
        if new {
            self.newest = Some(number);
            self.sent.push_back((number, Sent::At(at)));
            if self.sent.len() > WAITING_MAX {
                self.sent.pop_front();
            }
        }
        new
    }

    /// Bytes after `number`, up to `end` if that is known, may have been sent twice.
    fn sent_again(&mut self, number: u32, end: Option<u32>) {
        let later = self.sent.iter_mut().rev().take_while(|(sent, _)| after(*sent, number));
        let again = later.filter(|(sent, _)| end.is_none_or(|end| !after(*sent, end)));
        again.for_each(|(_, state)| *state = Sent::Twice);
    }

    fn on_answer(&mut self, number: u32, at: Timestamp) {
        // Where a gap is filled, what follows it arrived long before.
        let mut filled = false;
        while let Some((sent, state)) = self.sent.front().copied().filter(|(sent, _)| !after(*sent, number)) {
            filled |= state == Sent::Twice;
            if let (true, false, Sent::At(sent_at)) = (sent == number, filled, state) {
                self.samples.push(RttSample { at, rtt: at.since(sent_at) });
            }
            self.sent.pop_front();
        }
    }

    /// The number was answered, though some before it were not.
    fn on_selective(&mut self, number: u32, at: Timestamp) {
        let place = self.sent.partition_point(|(sent, _)| after(number, *sent));
        if let Some((_, state)) = self.sent.get_mut(place).filter(|(sent, _)| *sent == number)
            && let Sent::At(sent_at) = *state
        {
            *state = Sent::Answered;
            self.samples.push(RttSample { at, rtt: at.since(sent_at) });
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
        Packet { at, sequence, length, acknowledges: None, selective: None, stamps, syn: false }
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
        // 20 - 0 and 25 - 4; the second answer echoes nothing new, but acknowledges what was sent at 1.
        assert_eq!(rtts_ms(direction), [20, 21, 21]);
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

    /// One segment every 10 ms from 0 on, of which the second is lost and sent again at 60; the receiver answers
    /// each that arrives after a round trip of 40 ms.
    fn repaired(selective: bool, stamps: bool) -> Vec<(u64, u128)> {
        let stamp = |own: u32, echo: u32| stamps.then_some((own, echo));
        let mut events: Vec<(u64, bool, Packet)> = Vec::new();
        for n in 0..8u64 {
            events.push((n * 10, true, packet(n * 10, n as u32 * 100, 100, stamp(n as u32 * 10 + 1, 0))));
        }
        events.push((60, true, packet(60, 100, 100, stamp(61, 0))));
        events.push((40, false, answer(40, 100, stamp(0, 1))));
        for n in 2..8u64 {
            let at = n * 10 + 40;
            // The repair, sent at 60, arrives before what was sent then or later.
            let (acknowledges, echo) = if n < 6 { (100, 1) } else { (n as u32 * 100 + 100, n as u32 * 10 + 1) };
            let block = (selective && n < 6).then_some(n as u32 * 100 + 100);
            events.push((at, false, Packet { selective: block, ..answer(at, acknowledges, stamp(0, echo)) }));
        }
        events.push((100, false, answer(100, 600, stamp(0, 61))));
        events.sort_by_key(|(at, sent, packet)| (*at, *sent, packet.acknowledges));
        let mut direction = Direction::default();
        for (_, sent, packet) in events {
            if sent { direction.on_sent(&packet) } else { direction.on_answer(&packet) }
        }
        let samples = direction.samples();
        samples.iter().map(|sample| (sample.at.as_nanos() / 1_000_000, sample.rtt.as_millis())).collect()
    }

    #[test]
    fn while_a_loss_is_repaired_selective_acknowledgements_go_on_to_tell() {
        let all = [40, 60, 70, 80, 90, 100, 110].map(|at| (at, 40));
        assert_eq!(repaired(true, true), all);
        assert_eq!(repaired(true, false), all);
    }

    #[test]
    fn without_them_nothing_is_told_of_what_waited_for_the_repair() {
        for stamps in [true, false] {
            let samples = repaired(false, stamps);
            assert!(samples.iter().all(|(_, rtt)| *rtt == 40), "{samples:?}");
            assert!(samples.iter().all(|(at, _)| !(60..100).contains(at)), "{samples:?}");
        }
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
