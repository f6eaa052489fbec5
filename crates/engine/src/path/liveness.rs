//! Whether a path answers what is sent on it.
//!
//! One state, by the probe timeouts [RFC9002 §6.2.1] for which the path owes an answer. It is the
//! only test of whether a path works in the direction of its data: for the scheduler, the pacer's
//! host, health, recovery, streams and live flows.
//!
//! An answer to a packet that left before the path was late tells of the path's earlier state. The
//! acknowledgements of all paths may have taken one that went dark, and those that come at last on
//! another path concern both. Such an answer ends a silence, or bulk transfers would stop whenever
//! a queue grows by two probe timeouts. The path stays late until a packet that left later is
//! answered, or nothing is in flight.

use core::time::Duration;

use fairpath_core::{RttEstimator, Timestamp};

/// The least silence that counts. Variable delays have shorter ones among them, and leaving these
/// samples out would make a path seem quicker than it is. One late sample must not inflate the
/// timeout tenfold.
const SILENCE: Duration = Duration::from_millis(500);

/// A peer may hold an acknowledgement back for this long [RFC9000 §18.2, max_ack_delay].
const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// Before the first sample a path is silent after this long [RFC9002 §6.2.2, kInitialRtt · 3].
const FIRST_ANSWER: Duration = Duration::from_millis(999);

/// Whether a path answers what is sent on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liveness {
    /// It owes no answer, or has owed one for less than a probe timeout.
    #[default]
    Alive,
    /// It has owed an answer for more than a probe timeout, or did, and nothing that left later was
    /// answered. Data that others wait for is worth a copy elsewhere.
    Late,
    /// It has owed an answer for more than two probe timeouts: no new data is sent on it.
    Silent,
}

/// The times by which a path is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answers {
    /// When the newest packet left.
    pub(crate) sent_at: Timestamp,
    /// When the first packet left after the newest acknowledgement.
    asked_at: Timestamp,
    /// When the newest acknowledgement came that tells of the path's current state.
    pub(crate) heard_at: Timestamp,
    /// When the newest packet that was acknowledged had been sent.
    pub(crate) proven_at: Option<Timestamp>,
    /// Since when its answers are late; `None` once a packet that left later was answered.
    late_since: Option<Timestamp>,
}

impl Answers {
    /// For a path that was opened now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { sent_at: now, asked_at: now, heard_at: now, proven_at: None, late_since: None }
    }

    /// A packet left. `is_alone`: nothing else is in flight.
    #[inline]
    pub(crate) fn on_sent(&mut self, is_alone: bool, now: Timestamp) {
        self.sent_at = now;
        if is_alone {
            self.late_since = None;
        }
        if self.asked_at <= self.heard_at {
            self.asked_at = now;
        }
    }

    /// An acknowledgement of the path is read, whose oldest packet in flight left at `oldest`. It
    /// may come late.
    #[inline]
    pub(crate) fn on_ack_begin(&mut self, oldest: Option<Timestamp>, rtt: &RttEstimator, now: Timestamp) {
        let Some(since) = self.owes_since(oldest) else { return };
        if self.late_since.is_none() && !is_short(since, now) {
            self.late_since = Some(since + patience(rtt) / 2).filter(|late| now > *late);
        }
    }

    /// A packet that was sent at `sent_at` was acknowledged. `is_bygone`: it left before the path
    /// fell silent, so that the answer does not tell of its current state.
    #[inline]
    pub(crate) fn on_acked(&mut self, sent_at: Timestamp, is_bygone: bool, now: Timestamp) {
        if !is_bygone {
            self.heard_at = now;
        }
        self.proven_at = self.proven_at.max(Some(sent_at));
        self.late_since = self.late_since.filter(|late| sent_at <= *late);
    }

    /// The liveness of the path, whose oldest packet in flight left at `oldest`. A good but old
    /// round-trip time does not count.
    pub(crate) fn liveness(&self, oldest: Option<Timestamp>, rtt: &RttEstimator, now: Timestamp) -> Liveness {
        let Some(owing) = self.owes_since(oldest).map(|since| now.since(since)) else { return Liveness::Alive };
        let patience = patience(rtt);
        if owing > patience {
            Liveness::Silent
        } else if owing > patience / 2 || self.late_since.is_some() {
            Liveness::Late
        } else {
            Liveness::Alive
        }
    }

    /// Whether the path is [`Liveness::Silent`]. Every packet asks this, and usually the last one
    /// left a moment ago.
    #[inline]
    pub(crate) fn is_silent(&self, oldest: Option<Timestamp>, rtt: &RttEstimator, now: Timestamp) -> bool {
        let owes_for_long = self.owes_since(oldest).is_some_and(|since| !is_short(since, now));
        owes_for_long && self.liveness(oldest, rtt, now) == Liveness::Silent
    }

    /// When the path becomes silent at the earliest, if nothing happens; `None` if it owes nothing,
    /// or is silent.
    pub(crate) fn silent_at(&self, oldest: Option<Timestamp>, rtt: &RttEstimator, now: Timestamp) -> Option<Timestamp> {
        let since = self.owes_since(oldest)?;
        // A cheap bound, sufficient in most cases, as in `is_silent`.
        let soon = since + 2 * ACK_DELAY_MAX;
        Some(if now < soon { soon } else { since + patience(rtt) }).filter(|at| *at >= now)
    }

    /// Since when the path was silent, if that is longer than an answer takes. `None` if the packet
    /// that is acknowledged now, sent at `sent_at`, left after the silence was known.
    #[inline]
    pub(crate) fn fell_silent(&self, sent_at: Timestamp, rtt: &RttEstimator, now: Timestamp) -> Option<Timestamp> {
        let since = self.asked_at.max(self.heard_at);
        if now.nanos_since(since) <= SILENCE.as_nanos() as u64 {
            return None;
        }
        let patience = patience(rtt);
        (now.since(since) > patience && sent_at < since + patience).then_some(since)
    }

    /// Since when it owes an answer; `None` where nothing is in flight.
    #[inline]
    fn owes_since(&self, oldest: Option<Timestamp>) -> Option<Timestamp> {
        Some(oldest?.max(self.heard_at))
    }
}

/// Whether the time since then is too short for a silence: a cheap test that usually suffices.
#[inline]
fn is_short(since: Timestamp, now: Timestamp) -> bool {
    now.nanos_since(since) <= ACK_DELAY_MAX.as_nanos() as u64
}

/// How long an answer may take before it counts as missing: two probe timeouts.
#[inline(never)]
pub(crate) fn patience(rtt: &RttEstimator) -> Duration {
    rtt.get().map_or(FIRST_ANSWER, |rtt| 2 * (rtt.probe_timeout() + ACK_DELAY_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A round trip of 100 ms whose deviation is half of it: a probe timeout of 100 + 4 · 50 + 25 = 325 ms.
    fn rtt() -> RttEstimator {
        let mut rtt = RttEstimator::new();
        rtt.on_sample(ms(100), Duration::from_millis(100), Duration::ZERO);
        rtt
    }

    #[test]
    fn a_path_is_late_after_one_probe_timeout_and_silent_after_two() {
        let (mut answers, rtt) = (Answers::new(ms(0)), rtt());
        answers.on_sent(true, ms(1_000));
        let at = |millis| answers.liveness(Some(ms(1_000)), &rtt, ms(millis));
        assert_eq!([1_325, 1_326, 1_650, 1_651].map(at), {
            use Liveness::{Alive, Late, Silent};
            [Alive, Late, Late, Silent]
        });
        assert_eq!(answers.liveness(None, &rtt, ms(9_000)), Liveness::Alive, "it owes nothing");
        for millis in [1_000, 1_049, 1_051, 1_650, 1_651, 3_000] {
            let is_silent = answers.is_silent(Some(ms(1_000)), &rtt, ms(millis));
            assert_eq!(is_silent, at(millis) == Liveness::Silent, "at {millis} ms");
        }
    }

    #[test]
    fn before_the_first_sample_a_path_is_silent_after_a_second() {
        let answers = Answers::new(ms(0));
        let at = |millis| answers.liveness(Some(ms(0)), &RttEstimator::new(), ms(millis));
        assert_eq!([499, 500, 999, 1_000].map(at), [Liveness::Alive, Liveness::Late, Liveness::Late, Liveness::Silent]);
    }

    #[test]
    fn a_word_that_left_before_the_silence_ends_nothing() {
        let (mut answers, rtt) = (Answers::new(ms(0)), rtt());
        answers.on_sent(true, ms(1_000));
        assert_eq!(answers.fell_silent(ms(1_000), &rtt, ms(1_600)), None, "still within two probe timeouts");
        assert_eq!(answers.fell_silent(ms(1_000), &rtt, ms(1_700)), Some(ms(1_000)));
        assert_eq!(answers.fell_silent(ms(1_690), &rtt, ms(1_700)), None, "it left after the silence was known");
        answers.on_acked(ms(1_000), true, ms(1_700));
        assert_eq!(answers.liveness(Some(ms(1_600)), &rtt, ms(2_300)), Liveness::Silent, "only `heard_at` ends it");
        answers.on_acked(ms(1_690), false, ms(1_710));
        assert_eq!(answers.liveness(Some(ms(1_690)), &rtt, ms(1_800)), Liveness::Alive);
    }

    #[test]
    fn a_path_is_late_until_something_is_answered_that_left_since() {
        let (mut answers, rtt) = (Answers::new(ms(0)), rtt());
        answers.on_sent(true, ms(1_000));
        // The path is late from 1,325 ms on. The columns: the time of an acknowledgement, when the
        // packet that it answers had left, when the oldest packet in flight before and after it had
        // left, and the expected liveness.
        use Liveness::{Alive, Late};
        for (now, answered, before, after, expected) in [
            (1_300, 1_000, 1_000, Some(1_100), Alive),
            (1_700, 1_100, 1_100, Some(1_200), Late),
            (1_710, 1_624, 1_200, Some(1_200), Late),
            (1_720, 1_626, 1_200, Some(1_650), Alive),
            (2_400, 1_650, 1_650, None, Alive),
        ] {
            answers.on_ack_begin(Some(ms(before)), &rtt, ms(now));
            answers.on_acked(ms(answered), false, ms(now));
            assert_eq!(answers.liveness(after.map(ms), &rtt, ms(now)), expected, "at {now} ms");
        }
        answers.on_sent(false, ms(2_410));
        assert_eq!(answers.liveness(Some(ms(2_000)), &rtt, ms(2_420)), Late, "it owes answers for what left before");
        answers.on_sent(true, ms(2_430));
        assert_eq!(answers.liveness(Some(ms(2_430)), &rtt, ms(2_440)), Alive, "it owes none");
    }
}
