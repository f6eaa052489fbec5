//! Which packets of a path are lost, where the stack is too quick to say so.
//!
//! noq takes a packet for lost when three later ones have arrived, or an eighth of a round trip too late, and forgets
//! it: that it arrived after all is told of no single packet, and only once all that was taken for lost has arrived.
//! Where packets overtake each other all the time that never is, and a window stays at its least: 0.8 of 50 Mbit/s
//! with 20 ms of jitter. noq's thresholds are fixed for a connection, and fixed ones that bear reordering would be slow
//! everywhere else. So noq is told to be patient ([`GIVEN_UP_AFTER`]), which keeps its packets known, and what is lost is
//! found here: at RFC 9002's thresholds, which grow on a path that turns out to reorder
//! ([`Reordering`], as in the simulator), and with what was wrong taken back [RFC9438 §4.9].
//!
//! While noq waits it sends no probe of its own, though the newest packets may be lost, too. So the path is asked here
//! after a probe timeout [RFC9002 §6.2].
//!
//! What noq finds lost in the end is final. A handshake has packets of three spaces with the same numbers, and is left
//! to it.

use std::collections::VecDeque;
use web_time::Duration;

use fairpath_engine::{CongestionSignal, INITIAL_RTT, PathId, Reordering, Rtt, Timestamp};

use super::{Fate, Shared};

/// How many round trips the stack waits for a packet that later ones have overtaken before it gives it up, where losses
/// are found here: longer than is usual, an eighth, so that what arrives by then is known to have been
/// late. What is found here may wait longer still ([`Reordering`]), but the stack sends its own frames
/// again only then: with 6, two links of 50 Mbit/s with 20 ms of jitter carry 25 Mbit/s in place of 8, and what is lost
/// of a set-up over 300 ms comes a second later.
pub(crate) const GIVEN_UP_AFTER: f32 = 3.0;

/// How many later packets must have arrived then. noq's receiver takes one that more than 128 have overtaken for one that
/// came before, and drops it.
pub(crate) const GIVEN_UP_BEHIND: u32 = 129;

/// A peer may hold an acknowledgement back for this long [RFC9000 §18.2, max_ack_delay].
const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// A packet that was taken for lost is waited for, if others follow it, for so many probe timeouts; as the simulator's
/// hosts do.
const LATE_AT_MOST: u32 = 2;

/// A packet that was sent and not settled since it was added, in the order of numbers.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: u64,
    at: Timestamp,
    is_settled: bool,
}

/// The packets of one path that may be lost.
#[derive(Debug, Default)]
pub(super) struct Losses {
    open: VecDeque<Open>,
    /// Those that were taken for lost not long ago, in the order of numbers, and when they were sent.
    suspects: VecDeque<(u64, Timestamp)>,
    newest_acked: Option<u64>,
    /// The number of the next packet, if none is left out.
    next: u64,
    /// The newest packet whose loss says nothing of congestion: up to there packets asked whether the path works, or
    /// left before one that did.
    newest_question: Option<u64>,
    reordering: Reordering,
    /// When losses last began an episode of congestion [RFC9002 §7.3.2], and the one before, as the congestion
    /// control has it: an episode that is taken back has never been.
    episode_at: Option<Timestamp>,
    episode_before: Option<Timestamp>,
    /// The first packet that was taken for lost in the newest episode, if that may still be taken back.
    episode_from: Option<u64>,
    /// When the next packet is late enough to be taken for lost.
    due: Option<Timestamp>,
    /// The newest packet that the path was asked after.
    asked_after: Option<u64>,
}

impl Losses {
    /// A packet left. Numbers rise.
    fn on_sent(&mut self, number: u64, at: Timestamp) {
        self.open.push_back(Open { number, at, is_settled: false });
        self.next = number + 1;
    }

    /// A packet that was sent at `at` was acknowledged. Whether it had been taken for lost.
    fn on_acked(&mut self, number: u64, at: Timestamp) -> bool {
        if let Ok(place) = self.suspects.binary_search(&(number, at)) {
            self.suspects.remove(place);
            return true;
        }
        if self.settle(number, at) {
            self.newest_acked = self.newest_acked.max(Some(number));
        }
        false
    }

    /// Takes out a packet that was sent at `at`. Whether there was one.
    fn settle(&mut self, number: u64, at: Timestamp) -> bool {
        let place = match self.open.front() {
            Some(first) if first.number == number => 0,
            _ => self.open.partition_point(|open| open.number < number),
        };
        let Some(open) = self.open.get_mut(place) else { return false };
        if (open.number, open.at, open.is_settled) != (number, at, false) {
            return false;
        }
        open.is_settled = true;
        self.forget_settled();
        true
    }

    fn forget_settled(&mut self) {
        while self.open.front().is_some_and(|open| open.is_settled) {
            self.open.pop_front();
        }
    }

    /// Puts what must be taken for lost by now into `lost`, oldest first, and whether it counts [RFC9002 §6.1]. When the
    /// newest that counts was sent.
    fn find(&mut self, rtt: Option<Rtt>, now: Timestamp, lost: &mut Vec<(u64, bool)>) -> Option<Timestamp> {
        self.due = None;
        let newest_acked = self.newest_acked?;
        let (patience, packets) = (self.reordering.patience(rtt), self.reordering.packet_threshold());
        let known_before = self.suspects.len();
        let mut newest = None;
        for open in self.open.iter_mut().take_while(|open| open.number < newest_acked).filter(|open| !open.is_settled) {
            let late_at = open.at + patience;
            if newest_acked - open.number < packets && late_at > now {
                // Those that follow left later.
                self.due = Some(late_at);
                break;
            }
            open.is_settled = true;
            let counts = self.newest_question.is_none_or(|newest| open.number > newest);
            lost.push((open.number, counts));
            if counts {
                self.suspects.push_back((open.number, open.at));
                newest = Some(open.at);
            }
        }
        self.forget_settled();
        let newest_at = newest?;
        self.reordering.on_lost(newest_acked, self.next);
        if self.episode_at.is_none_or(|began| newest_at > began) {
            (self.episode_before, self.episode_at) = (self.episode_at, Some(now));
            self.episode_from = self.suspects.get(known_before).map(|(number, _)| *number);
            let timeout = rtt.map_or(INITIAL_RTT * 3, |rtt| rtt.probe_timeout() + ACK_DELAY_MAX);
            self.forget_suspects(known_before, timeout * LATE_AT_MOST, now);
        }
        newest
    }

    /// Forgets which of the oldest `count` suspects were sent longer than `late` ago: they do not arrive any more. But
    /// what was lost in an episode speaks against taking it back, and is forgotten at the earliest when the next one
    /// begins.
    fn forget_suspects(&mut self, count: usize, late: Duration, now: Timestamp) {
        let new = self.suspects.split_off(count);
        self.suspects.retain(|(_, at)| now.since(*at) <= late);
        self.suspects.extend(new);
    }

    /// Packets that had been taken for lost, the oldest of which was sent at `sent_at`, were acknowledged; `newest` is the
    /// newest of them. Whether now nothing of what made the last episode is missing: then it has been none. What was lost
    /// before has had an episode of its own.
    fn on_late(&mut self, sent_at: Timestamp, newest: u64, rtt: Option<Rtt>, now: Timestamp) -> bool {
        self.reordering.on_late(sent_at, rtt, now);
        let is_missing = |from: u64| self.suspects.back().is_some_and(|(number, _)| *number >= from);
        let was_none = self.episode_from.is_some_and(|from| newest >= from && !is_missing(from));
        if was_none {
            (self.episode_at, self.episode_from) = (self.episode_before, None);
        }
        was_none
    }

    /// When to ask for an answer to the newest packet, where noq does not, since it waits for one that was taken for
    /// lost here.
    fn probe_due(&self, rtt: Option<Rtt>) -> Option<Timestamp> {
        let rtt = rtt?;
        let newest = self.open.back().filter(|open| self.newest_acked < Some(open.number))?;
        let (_, suspect_at) = self.suspects.back()?;
        let due = newest.at + rtt.probe_timeout() + ACK_DELAY_MAX;
        let is_held = due < *suspect_at + rtt.smoothed.max(rtt.latest).mul_f32(GIVEN_UP_AFTER);
        (is_held && self.asked_after < Some(newest.number)).then_some(due)
    }

    /// Whether the packet was taken for lost here.
    pub(super) fn is_suspect(&self, number: u64) -> bool {
        self.suspects.binary_search_by_key(&number, |(number, _)| *number).is_ok()
    }
}

impl Shared {
    /// A packet left; whose loss says nothing of congestion, as `newest_question` has it.
    pub(super) fn watch(&mut self, path: PathId, number: u64, newest_question: Option<u64>, at: Timestamp) {
        if let Some(losses) = self.losses.get_mut(path).filter(|_| self.finds_losses) {
            losses.newest_question = newest_question;
            losses.on_sent(number, at);
        }
    }

    /// Of what was sent on the path so far nothing will be heard.
    pub(super) fn unwatch(&mut self, path: PathId) {
        if let Some(losses) = self.losses.get_mut(path) {
            *losses = Losses::default();
        }
    }

    /// The packets of an acknowledgement that came on the path now, with the times of their sending, in no order.
    pub(super) fn note_acked(&mut self, path: PathId, acked: &[(u64, Timestamp)], now: Timestamp) {
        let Some(losses) = self.losses.get_mut(path) else { return };
        let late = acked.iter().copied().filter(|(number, at)| losses.on_acked(*number, *at));
        let span = |(at, newest): (Timestamp, u64), other: (Timestamp, u64)| (at.min(other.0), newest.max(other.1));
        if let Some((oldest, newest)) = late.map(|(number, at)| (at, number)).reduce(span)
            && losses.on_late(oldest, newest, self.engine.rtt(path), now)
        {
            self.engine.on_spurious_congestion(path, now);
        }
    }

    /// noq has given up a packet. Whether it was taken for lost here before.
    pub(super) fn note_given_up(&mut self, path: PathId, number: u64, sent: Option<Timestamp>) -> bool {
        let Some(losses) = self.losses.get_mut(path) else { return false };
        if let Some(at) = sent {
            losses.settle(number, at);
        }
        losses.is_suspect(number)
    }

    /// Gives up what of the path must be taken for lost by now.
    pub(super) fn find_lost(&mut self, path: PathId, now: Timestamp) {
        let Self { losses, engine, fates, lost, .. } = self;
        let Some(losses) = losses.get_mut(path) else { return };
        let newest = losses.find(engine.rtt(path), now, lost);
        let is_usable = engine.is_usable(path);
        for (number, counts) in lost.drain(..) {
            fates.push(Fate::Lost(path, number));
            match is_usable && counts {
                true => engine.on_lost(path, number, now),
                false => engine.on_discarded(path, number),
            }
        }
        if let Some(sent_at) = newest.filter(|_| is_usable) {
            engine.on_congestion(path, CongestionSignal::Loss, sent_at, false, now);
        }
    }

    /// When the first packet is late enough to be taken for lost.
    pub(super) fn loss_due(&self) -> Option<Timestamp> {
        self.losses.values().filter_map(|losses| losses.due).min()
    }

    /// When a path is to be asked for an answer, and which.
    pub(super) fn probe_due(&self) -> Option<(Timestamp, PathId)> {
        let due = |(path, losses): (PathId, &Losses)| Some((losses.probe_due(self.engine.rtt(path))?, path));
        self.losses.iter().filter_map(due).min()
    }

    /// The path is being asked.
    pub(super) fn note_probe(&mut self, path: PathId) {
        if let Some(losses) = self.losses.get_mut(path) {
            losses.asked_after = losses.open.back().map(|newest| newest.number);
        }
    }

    /// Gives up what is late on all paths.
    pub(super) fn find_all_lost(&mut self, now: Timestamp) {
        let is_due = |losses: &Losses| losses.due.is_some_and(|at| at <= now);
        let due: Vec<PathId> = self.losses.iter().filter(|(_, losses)| is_due(losses)).map(|(path, _)| path).collect();
        due.iter().for_each(|path| self.find_lost(*path, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn rtt_ms(millis: u64) -> Option<Rtt> {
        let rtt = Duration::from_millis(millis);
        Some(Rtt::steady(rtt))
    }

    /// Packets that left a millisecond apart.
    fn sent(count: u64) -> Losses {
        let mut losses = Losses::default();
        (0..count).for_each(|number| losses.on_sent(number, ms(number)));
        losses
    }

    fn lost(losses: &mut Losses, now: u64) -> Vec<u64> {
        let mut lost = Vec::new();
        losses.find(rtt_ms(100), ms(now), &mut lost);
        lost.into_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn a_packet_is_lost_when_three_later_ones_have_arrived_or_an_eighth_of_a_round_trip_too_late() {
        let mut losses = sent(6);
        assert!(!losses.on_acked(3, ms(3)));
        assert_eq!((lost(&mut losses, 103), losses.due), (vec![0], Some(Timestamp::from_micros(113_500))));
        assert_eq!((lost(&mut losses, 114), losses.due), (vec![1], Some(Timestamp::from_micros(114_500))));
        assert!(losses.is_suspect(1) && !losses.is_suspect(2));
        losses.on_acked(2, ms(2));
        assert_eq!((lost(&mut losses, 200), losses.due), (vec![], None), "4 and 5 may be on their way");
    }

    #[test]
    fn where_packets_were_late_time_alone_tells_and_they_were_no_congestion() {
        let mut losses = sent(10);
        losses.on_acked(4, ms(4));
        assert_eq!(lost(&mut losses, 104), [0, 1]);
        assert!(losses.on_acked(0, ms(0)));
        assert!(!losses.on_late(ms(0), 0, rtt_ms(100), ms(120)), "1 is missing still");
        assert!(losses.on_acked(1, ms(1)));
        assert!(losses.on_late(ms(1), 1, rtt_ms(100), ms(121)));
        losses.on_acked(9, ms(9));
        assert_eq!(lost(&mut losses, 122), [] as [u64; 0], "five later ones have arrived");
        // 20 ms later than an eighth of a round trip.
        assert_eq!(losses.due, Some(Timestamp::from_micros(134_500)));
    }

    #[test]
    fn what_an_earlier_episode_lost_does_not_speak_for_this_one() {
        let mut losses = sent(20);
        losses.on_acked(4, ms(4));
        assert_eq!(lost(&mut losses, 104), [0, 1]);
        // Sent after that was found.
        (20..30).for_each(|number| losses.on_sent(number, ms(100 + number)));
        (5..20).for_each(|number| assert!(!losses.on_acked(number, ms(number))));
        losses.on_acked(2, ms(2));
        losses.on_acked(3, ms(3));
        losses.on_acked(25, ms(125));
        assert_eq!(lost(&mut losses, 225), [20, 21, 22]);
        for (number, was_none) in [(20, false), (22, false), (21, true)] {
            assert!(losses.on_acked(number, ms(100 + number)));
            assert_eq!(losses.on_late(ms(100 + number), number, rtt_ms(100), ms(230)), was_none, "{number}");
        }
        // What is late of the first one takes nothing back: it was followed by another.
        assert!([0, 1].into_iter().all(|number| losses.on_acked(number, ms(number))));
        assert!(!losses.on_late(ms(0), 1, rtt_ms(100), ms(240)));
    }

    #[test]
    fn a_question_whether_the_path_works_is_lost_without_counting() {
        let mut losses = sent(6);
        losses.newest_question = Some(0);
        losses.on_acked(4, ms(4));
        let mut lost = Vec::new();
        assert_eq!(losses.find(rtt_ms(100), ms(104), &mut lost), Some(ms(1)));
        assert_eq!(lost, [(0, false), (1, true)]);
        assert!(!losses.is_suspect(0) && losses.is_suspect(1));
    }

    #[test]
    fn the_path_is_asked_after_its_newest_packets_while_the_stack_waits_for_an_older_one() {
        let mut losses = sent(6);
        losses.on_acked(3, ms(3));
        let due = |losses: &Losses| losses.probe_due(rtt_ms(100));
        assert_eq!(due(&losses), None, "the stack asks by itself");
        assert_eq!(lost(&mut losses, 103), [0]);
        // The newest left at 5 ms: a round trip, a millisecond for the timer, and 25 for the peer.
        assert_eq!(due(&losses), Some(ms(131)));
        losses.asked_after = Some(5);
        assert_eq!(due(&losses), None);
        losses.on_sent(6, ms(131));
        assert_eq!(due(&losses), Some(ms(257)));
        losses.on_sent(7, ms(200));
        assert_eq!(due(&losses), None, "by then the stack has given up and asks");
    }

    #[test]
    fn another_packet_of_the_same_number_is_not_meant() {
        let mut losses = sent(6);
        losses.on_acked(5, ms(50));
        assert_eq!(lost(&mut losses, 200), [] as [u64; 0]);
    }
}
