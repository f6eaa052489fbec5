//! Loss recovery of one path: what was sent, what must be given up, when to probe [RFC9002 §6].
//!
//! # Deviations
//!
//! - Persistent congestion is looked for within the losses that one acknowledgement shows
//!   [RFC9002 §7.6.2 has it over all losses]: an outage ends with one acknowledgement that shows
//!   all of it.
//! - Where a path turns out to reorder, thresholds grow (`reordering.rs` of the engine).

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{Rtt, Timestamp};
use fairpath_engine::{INITIAL_RTT, Reordering};

use crate::packet::{AckFrame, Chunk};

/// [RFC9002 §7.6.1, kPersistentCongestionThreshold]
const PERSISTENT: u32 = 3;
/// A probe timeout is doubled at most so often: 2^10 of 100 ms are 102 s.
const DOUBLINGS_MAX: u32 = 10;

/// A packet that was declared lost is waited for, if others follow it, for so many probe timeouts; ours.
const LATE_AT_MOST: u32 = 2;

/// What is remembered of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) at: Timestamp,
    pub(crate) chunk: Chunk,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Acked,
    Lost,
}

impl SentPacket {
    /// Whether it was declared lost. Where it is acknowledged, that was wrong.
    pub(crate) fn was_lost(&self) -> bool {
        self.fate == Fate::Lost
    }
}

/// What an acknowledgement says of packets that were declared lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckNews {
    /// It acknowledges all that was declared lost and is not forgotten yet: then nothing was.
    pub(crate) none_lost: bool,
    /// When the oldest of them was sent that it acknowledges: later ones had come before it, so the path reorders.
    pub(crate) overtaken: Option<Timestamp>,
}

/// The packets that an acknowledgement shows to be lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossBatch {
    /// When the newest of them was sent; `None` where there are none.
    pub(crate) newest: Option<Timestamp>,
    /// Whether everything over longer than the period of persistent congestion was lost.
    pub(crate) persistent: bool,
}

/// The packets of one path.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    first: u64,
    sent: VecDeque<SentPacket>,
    /// Packets that were declared lost not long ago, by number, and in which episode of congestion.
    lost: VecDeque<(u64, SentPacket, u32)>,
    /// When losses last began an episode of congestion [RFC9002 §7.3.2], and the one before, as the congestion
    /// control has it: an episode that is taken back has never been.
    episode_at: Option<Timestamp>,
    episode_before: Option<Timestamp>,
    /// How many there were, those that were taken back included.
    episodes: u32,
    reordering: Reordering,
    outstanding: u32,
    newest_acked: Option<u64>,
    seen: u64,
    last_sent_at: Timestamp,
    /// When the next packet is late enough to be given up; `None` where none waits for that.
    loss_at: Option<Timestamp>,
    probes: u32,
}

impl Recovery {
    /// A packet leaves; its number.
    #[inline]
    pub(crate) fn on_sent(&mut self, chunk: Chunk, now: Timestamp) -> u64 {
        self.sent.push_back(SentPacket { at: now, chunk, fate: Fate::Outstanding });
        self.outstanding += 1;
        self.last_sent_at = now;
        self.next() - 1
    }

    /// The number of the next packet.
    fn next(&self) -> u64 {
        self.first + self.sent.len() as u64
    }

    /// The newest packet that is acknowledged.
    pub(crate) fn newest_acked(&self) -> Option<u64> {
        self.newest_acked
    }

    /// For how many packets there is an entry.
    pub(crate) fn entries(&self) -> usize {
        self.sent.len()
    }

    /// What is on its way, oldest first.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = &SentPacket> {
        self.sent.iter().filter(|packet| packet.fate == Fate::Outstanding)
    }

    /// Hands each packet that this acknowledges for the first time to `acked`, oldest first, those that were
    /// declared lost included.
    #[inline]
    pub(crate) fn on_ack(&mut self, frame: &AckFrame, mut acked: impl FnMut(u64, &SentPacket)) -> AckNews {
        // What was declared lost is older than something that was acknowledged before; mostly nothing here is.
        let any_lost = !self.lost.is_empty();
        let lost_below = self.newest_acked.filter(|_| any_lost).unwrap_or(0);
        let fresh = self.note(frame);
        if fresh != 0 {
            self.probes = 0;
        }
        if fresh == 1
            && frame.largest == self.first
            && frame.largest >= lost_below
            && self.sent.front().is_some_and(|oldest| oldest.fate == Fate::Outstanding)
            && let Some(oldest) = self.sent.pop_front()
        {
            // The usual case: it is the oldest, and nothing else.
            self.first += 1;
            self.outstanding -= 1;
            acked(frame.largest, &oldest);
            self.forget();
            return AckNews::default();
        }
        self.on_fresh(frame, fresh, lost_below, &mut acked)
    }

    /// The same for all that is new, bit i for packet `largest` − i.
    #[inline(never)]
    fn on_fresh(
        &mut self,
        frame: &AckFrame,
        mut fresh: u64,
        lost_below: u64,
        acked: &mut dyn FnMut(u64, &SentPacket),
    ) -> AckNews {
        let mut newest_late = None;
        let mut news = AckNews::default();
        while fresh != 0 {
            let age = 63 - u64::from(fresh.leading_zeros());
            fresh &= !(1 << age);
            let Some(number) = frame.largest.checked_sub(age) else { continue };
            if number < lost_below
                && let Some(place) = self.lost.iter().position(|(lost, ..)| *lost == number)
                && let Some((_, late, episode)) = self.lost.remove(place)
            {
                news.overtaken = Some(news.overtaken.map_or(late.at, |at| at.min(late.at)));
                newest_late = newest_late.max(Some(episode));
                acked(number, &late);
                continue;
            }
            let Some(at) = number.checked_sub(self.first) else { continue };
            let Some(packet) = self.sent.get_mut(at as usize) else { continue };
            if packet.fate == Fate::Outstanding {
                packet.fate = Fate::Acked;
                self.outstanding -= 1;
                acked(number, packet);
            }
        }
        self.forget();
        // What was lost before has had an episode of its own.
        let is_of_newest = |episode: u32| episode == self.episodes;
        if newest_late.is_some_and(is_of_newest) && !self.lost.iter().any(|(.., episode)| is_of_newest(*episode)) {
            news.none_lost = true;
            self.episode_at = self.episode_before;
        }
        news
    }

    /// Notes what this acknowledges, and gives what of it is new: bit i for packet `largest` − i. A packet that was
    /// overtaken by more than 64 is not noted, and may seem new again.
    #[inline]
    fn note(&mut self, frame: &AckFrame) -> u64 {
        let Some(newest) = self.newest_acked else {
            (self.newest_acked, self.seen) = (Some(frame.largest), frame.seen);
            return frame.seen;
        };
        if frame.largest < newest {
            let behind = newest - frame.largest;
            let known = shift_right(self.seen, behind);
            self.seen |= shift_left(frame.seen, behind);
            return frame.seen & !known;
        }
        let known = shift_left(self.seen, frame.largest - newest);
        (self.newest_acked, self.seen) = (Some(frame.largest), known | frame.seen);
        frame.seen & !known
    }

    /// An acknowledgement has shown that the path reorders: a packet that was sent at `sent_at` was overtaken and
    /// declared lost.
    pub(crate) fn on_overtaken(&mut self, sent_at: Timestamp, rtt: Option<Rtt>, now: Timestamp) {
        self.reordering.on_late(sent_at, rtt, now);
    }

    /// Whether [`Recovery::deadline`] may have come nearer with the acknowledgement that is read
    /// next: it ends probing, or brings the first round-trip time.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.probes > 0 || self.newest_acked.is_none()
    }

    /// Whether something older than what has arrived is still missing.
    pub(crate) fn has_gap(&self) -> bool {
        !self.sent.is_empty() && self.newest_acked.is_some_and(|newest| self.first <= newest)
    }

    /// Hands each packet that must be taken for lost by now to `lost`, oldest first
    /// [RFC9002 §6.1].
    pub(crate) fn find_lost(
        &mut self,
        rtt: Option<Rtt>,
        ack_delay_max: Duration,
        now: Timestamp,
        mut lost: impl FnMut(u64, &SentPacket),
    ) -> LossBatch {
        self.loss_at = None;
        let mut batch = LossBatch::default();
        let Some(newest_acked) = self.newest_acked else { return batch };
        let (patience, packet_threshold) = (self.reordering.patience(rtt), self.reordering.packet_threshold());
        let known_before = self.lost.len();
        let mut run_began: Option<Timestamp> = None;
        let mut run_max = Duration::ZERO;
        for (at, packet) in self.sent.iter_mut().enumerate() {
            let number = self.first + at as u64;
            if number > newest_acked {
                break;
            }
            match packet.fate {
                Fate::Lost => continue,
                Fate::Acked => {
                    run_began = None;
                    continue;
                }
                Fate::Outstanding => {}
            }
            let late_at = packet.at + patience;
            if newest_acked - number < packet_threshold && late_at > now {
                self.loss_at = Some(self.loss_at.map_or(late_at, |at| at.min(late_at)));
                continue;
            }
            packet.fate = Fate::Lost;
            self.outstanding -= 1;
            self.lost.push_back((number, *packet, self.episodes));
            batch.newest = Some(packet.at);
            run_max = run_max.max(packet.at.since(*run_began.get_or_insert(packet.at)));
            lost(number, packet);
        }
        batch.persistent = rtt.is_some_and(|rtt| run_max > (rtt.probe_timeout() + ack_delay_max) * PERSISTENT);
        if let Some(newest) = batch.newest {
            self.reordering.on_lost(newest_acked, self.next());
            if self.episode_at.is_none_or(|began| newest > began) {
                (self.episode_before, self.episode_at) = (self.episode_at, Some(now));
                self.episodes += 1;
                self.lost.range_mut(known_before..).for_each(|(.., episode)| *episode = self.episodes);
                let late = rtt.map_or(INITIAL_RTT * 3, |rtt| rtt.probe_timeout() + ack_delay_max) * LATE_AT_MOST;
                self.forget_lost(known_before, late, now);
            }
        }
        self.forget();
        batch
    }

    /// Forgets which of the oldest `count` packets that were declared lost were sent longer than `late` ago: they do
    /// not arrive any more, and do not speak for what is late now. But what was lost in an episode speaks against
    /// taking it back, however long ago it was, and is forgotten at the earliest when the next one begins.
    fn forget_lost(&mut self, count: usize, late: Duration, now: Timestamp) {
        let new = self.lost.split_off(count);
        self.lost.retain(|(_, packet, _)| now.since(packet.at) <= late);
        self.lost.extend(new);
    }

    /// Whether packets are due to be given up, not probed for.
    pub(crate) fn loss_is_due(&self, now: Timestamp) -> bool {
        self.loss_at.is_some_and(|at| at <= now)
    }

    /// When something must be done though no acknowledgement comes [RFC9002 §6.2.1].
    pub(crate) fn deadline(&self, rtt: Option<Rtt>, ack_delay_max: Duration) -> Timestamp {
        if let Some(at) = self.loss_at {
            return at;
        }
        if self.outstanding == 0 {
            return Timestamp::MAX;
        }
        let timeout = rtt.map_or(INITIAL_RTT * 3, |rtt| rtt.probe_timeout() + ack_delay_max);
        self.last_sent_at + timeout * (1 << self.probes.min(DOUBLINGS_MAX))
    }

    /// The probe timeout has passed: how often in a row.
    pub(crate) fn on_probe_timeout(&mut self) -> u32 {
        self.probes += 1;
        self.probes
    }

    /// The time between probes grows no further: somebody waits for the path to come back.
    pub(crate) fn keep_probing(&mut self) {
        self.probes = self.probes.min(1);
    }

    #[inline]
    fn forget(&mut self) {
        while self.sent.front().is_some_and(|packet| packet.fate != Fate::Outstanding) {
            self.sent.pop_front();
            self.first += 1;
        }
    }
}

fn shift_left(bits: u64, by: u64) -> u64 {
    if by < 64 { bits << by } else { 0 }
}

fn shift_right(bits: u64, by: u64) -> u64 {
    if by < 64 { bits >> by } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(number: u64) -> Chunk {
        Chunk { number, bytes: 1448, last: false }
    }

    fn frame(largest: u64, seen: u64) -> AckFrame {
        AckFrame { largest, seen, delay_ns: 0, expected: 0, marked: 0 }
    }

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn rtt_ms(millis: u64) -> Option<Rtt> {
        let rtt = Duration::from_millis(millis);
        Some(Rtt::steady(rtt))
    }

    fn sent(count: u64) -> Recovery {
        let mut recovery = Recovery::default();
        for number in 0..count {
            assert_eq!(recovery.on_sent(chunk(number), ms(number)), number);
        }
        recovery
    }

    fn acked(recovery: &mut Recovery, frame: AckFrame) -> Vec<u64> {
        let mut numbers = Vec::new();
        recovery.on_ack(&frame, |number, packet| numbers.extend((!packet.was_lost()).then_some(number)));
        numbers
    }

    fn lost(recovery: &mut Recovery, now: Timestamp) -> (Vec<u64>, LossBatch) {
        let mut numbers = Vec::new();
        let batch = recovery.find_lost(rtt_ms(100), Duration::ZERO, now, |number, _| numbers.push(number));
        (numbers, batch)
    }

    #[test]
    fn each_packet_is_acknowledged_once() {
        let mut recovery = sent(6);
        assert_eq!(acked(&mut recovery, frame(1, 0b11)), [0, 1]);
        assert!(acked(&mut recovery, frame(1, 0b11)).is_empty());
        assert_eq!(acked(&mut recovery, frame(4, 0b11011)), [3, 4], "0 and 1 are known, 2 is missing");
        assert_eq!(acked(&mut recovery, frame(4, 0b11111)), [2]);
        assert!(acked(&mut recovery, frame(3, 0b1)).is_empty(), "an old one that came late");
    }

    #[test]
    fn nothing_was_lost_where_all_that_seemed_so_is_acknowledged_after_all() {
        let mut recovery = sent(8);
        let news = |recovery: &mut Recovery, seen, largest| {
            let mut late = Vec::new();
            let news = recovery.on_ack(&frame(largest, seen), |number, packet| {
                late.extend(packet.was_lost().then_some((number, packet.chunk.number)));
            });
            (late, news.none_lost, news.overtaken)
        };
        assert_eq!(news(&mut recovery, 0b1, 5), (vec![], false, None), "nothing seemed lost");
        assert_eq!(lost(&mut recovery, ms(100)).0, [0, 1, 2]);
        let two = (vec![(0, 0), (1, 1)], false, Some(ms(0)));
        assert_eq!(news(&mut recovery, 0b0110_0011, 6), two, "2 may be lost");
        assert_eq!(news(&mut recovery, 0b0110_0011, 6), (vec![], false, None), "the same again");
        assert_eq!(news(&mut recovery, 0b1110_0111, 7), (vec![(2, 2)], true, Some(ms(2))));
        assert_eq!(news(&mut recovery, 0b1110_0111, 7), (vec![], false, None), "told once");
    }

    #[test]
    fn what_is_overtaken_by_more_than_an_acknowledgement_names_is_acknowledged_alone() {
        let mut recovery = sent(100);
        acked(&mut recovery, frame(99, u64::MAX));
        let (numbers, _) = lost(&mut recovery, ms(200));
        assert_eq!(numbers, (0..36).collect::<Vec<_>>());
        let mut late = Vec::new();
        let news = recovery.on_ack(&frame(5, 0b1), |number, packet| late.push((number, packet.was_lost())));
        assert_eq!((late, news.overtaken), (vec![(5, true)], Some(ms(5))));
        assert_eq!(recovery.newest_acked(), Some(99));
    }

    #[test]
    fn an_acknowledgement_that_was_overtaken_is_no_news() {
        let mut recovery = sent(8);
        assert_eq!(acked(&mut recovery, frame(5, 0b10_1111)), [0, 2, 3, 4, 5]);
        assert!(acked(&mut recovery, frame(4, 0b1)).is_empty());
        // What an old one alone says is not new a second time.
        assert_eq!(acked(&mut recovery, frame(1, 0b11)), [1]);
        assert!(acked(&mut recovery, frame(5, 0b11_1111)).is_empty());
    }

    #[test]
    fn what_was_lost_in_an_episode_is_not_forgotten_before_the_next_one() {
        let mut recovery = Recovery::default();
        // 100 ms late: patience is 212.5 ms, longer than the 202 ms after which losses are forgotten.
        recovery.on_overtaken(ms(0), rtt_ms(100), ms(200));
        for (number, at) in [(0, 0), (1, 150), (2, 160)] {
            assert_eq!(recovery.on_sent(chunk(number), ms(at)), number);
        }
        acked(&mut recovery, frame(2, 0b1));
        assert_eq!(lost(&mut recovery, ms(213)).0, [0]);
        assert_eq!(lost(&mut recovery, ms(363)).0, [1], "sent before 0 was found lost: the same episode");
        let news = recovery.on_ack(&frame(2, 0b11), |_, _| {});
        assert_eq!((news.overtaken, news.none_lost), (Some(ms(150)), false));
    }

    #[test]
    fn an_episode_that_is_taken_back_has_never_been() {
        let mut recovery = Recovery::default();
        recovery.on_overtaken(ms(0), rtt_ms(100), ms(200));
        for at in [0, 100, 220, 230] {
            recovery.on_sent(chunk(at), ms(at));
        }
        acked(&mut recovery, frame(3, 0b1));
        assert_eq!(lost(&mut recovery, ms(213)).0, [0]);
        assert!(recovery.on_ack(&frame(3, 0b1001), |_, _| {}).none_lost);
        // 1 was sent before that episode, and begins one of its own; 2 was sent before this second one began.
        assert_eq!(lost(&mut recovery, ms(313)).0, [1]);
        assert_eq!(lost(&mut recovery, ms(433)).0, [2]);
        assert!(!recovery.on_ack(&frame(3, 0b1011), |_, _| {}).none_lost, "1 is missing still");
    }

    #[test]
    fn where_packets_are_overtaken_time_alone_tells_what_is_lost() {
        let mut recovery = sent(10);
        acked(&mut recovery, frame(5, 0b01_1111));
        assert_eq!(lost(&mut recovery, ms(100)).0, [0]);
        let news = recovery.on_ack(&frame(6, 0b111_1111), |_, _| {});
        recovery.on_overtaken(news.overtaken.unwrap(), rtt_ms(100), ms(120));
        // 7 is missing, and 8 to 10 have arrived. It was sent at 7, and 9/8 · 100 + 20 ms later it is late.
        recovery.on_sent(chunk(10), ms(10));
        acked(&mut recovery, frame(10, 0b111));
        assert!(lost(&mut recovery, ms(121)).0.is_empty());
        assert_eq!(recovery.deadline(rtt_ms(100), Duration::ZERO), Timestamp::from_micros(139_500));
        assert_eq!(lost(&mut recovery, ms(140)).0, [7]);
    }

    #[test]
    fn what_was_lost_long_ago_does_not_speak_for_what_is_late_now() {
        let mut recovery = sent(6);
        acked(&mut recovery, frame(5, 0b01_1111));
        assert_eq!(lost(&mut recovery, ms(100)).0, [0]);
        for number in 6..10 {
            recovery.on_sent(chunk(number), ms(1000 + number));
        }
        acked(&mut recovery, frame(9, 0b1));
        assert_eq!(lost(&mut recovery, ms(1100)).0, [6]);
        // 0 is forgotten, 7 and 8 are not late yet.
        assert!(recovery.on_ack(&frame(9, 0b1001), |_, _| {}).none_lost);
    }

    #[test]
    fn what_an_earlier_episode_lost_does_not_speak_for_this_one() {
        let mut recovery = sent(6);
        acked(&mut recovery, frame(5, 0b01_1111));
        assert_eq!(lost(&mut recovery, ms(100)).0, [0]);
        for number in 6..10 {
            assert_eq!(recovery.on_sent(chunk(number), ms(101 + number)), number);
        }
        acked(&mut recovery, frame(9, 0b1));
        assert_eq!(lost(&mut recovery, ms(210)).0, [6]);
        // 0 never came, and is not forgotten yet.
        assert!(recovery.on_ack(&frame(9, 0b1001), |_, _| {}).none_lost);
        assert!(!recovery.on_ack(&frame(9, 0b10_0000_1001), |_, _| {}).none_lost, "that one was followed by another");
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_have_arrived() {
        let mut recovery = sent(6);
        acked(&mut recovery, frame(2, 0b110));
        assert!(lost(&mut recovery, ms(100)).0.is_empty(), "0 and 1 arrived, 2 did not; largest is 2");
        let mut recovery = sent(6);
        acked(&mut recovery, frame(3, 0b1));
        let (numbers, batch) = lost(&mut recovery, ms(100));
        assert_eq!((numbers, batch.newest, batch.persistent), (vec![0], Some(ms(0)), false));
        acked(&mut recovery, frame(4, 0b11));
        assert_eq!(lost(&mut recovery, ms(101)).0, [1]);
    }

    #[test]
    fn a_packet_is_lost_when_it_is_an_eighth_of_a_round_trip_late() {
        let mut recovery = sent(2);
        acked(&mut recovery, frame(1, 0b1));
        assert!(lost(&mut recovery, ms(100)).0.is_empty());
        // Sent at 0: 9/8 · 100 ms.
        assert_eq!(recovery.deadline(rtt_ms(100), Duration::ZERO), Timestamp::from_micros(112_500));
        assert!(recovery.loss_is_due(ms(113)));
        assert_eq!(lost(&mut recovery, ms(113)).0, [0]);
        assert_eq!(recovery.deadline(rtt_ms(100), Duration::ZERO), Timestamp::MAX, "nothing is under way");
    }

    #[test]
    fn probe_timeouts_double_until_something_arrives() {
        let mut recovery = sent(1);
        // 100 + max(4 · 0, 1) = 101 ms, and 25 for the peer's waiting.
        let delay = Duration::from_millis(25);
        assert_eq!(recovery.deadline(rtt_ms(100), delay), ms(126));
        assert_eq!(recovery.on_probe_timeout(), 1);
        assert_eq!(recovery.deadline(rtt_ms(100), delay), ms(252));
        recovery.on_sent(chunk(0), ms(126));
        acked(&mut recovery, frame(1, 0b1));
        lost(&mut recovery, ms(230));
        recovery.on_sent(chunk(1), ms(300));
        assert_eq!(recovery.deadline(rtt_ms(100), delay), ms(426));
    }

    #[test]
    fn losing_everything_for_three_probe_timeouts_is_persistent_congestion() {
        // 3 · 101 ms = 303 ms.
        for (last, persistent) in [(301, false), (302, true)] {
            let mut recovery = Recovery::default();
            recovery.on_sent(chunk(0), ms(0));
            recovery.on_sent(chunk(1), ms(last));
            for at in 1..=3 {
                recovery.on_sent(chunk(2), ms(last + at));
            }
            acked(&mut recovery, frame(4, 0b1));
            let (_, batch) = lost(&mut recovery, ms(1000));
            // Of the five the last arrived; the fourth, 2 ms after `last`, is the newest lost.
            assert_eq!((batch.newest, batch.persistent), (Some(ms(last + 2)), persistent));
        }
        let mut recovery = Recovery::default();
        for (number, at) in [(0, 0), (1, 200), (2, 400)] {
            recovery.on_sent(chunk(number), ms(at));
        }
        acked(&mut recovery, frame(1, 0b1));
        recovery.on_sent(chunk(3), ms(401));
        acked(&mut recovery, frame(3, 0b101));
        let (numbers, batch) = lost(&mut recovery, ms(1000));
        assert_eq!((numbers, batch.persistent), (vec![0, 2], false), "one in between arrived");
    }
}
