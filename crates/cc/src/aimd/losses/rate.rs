//! Losses that depend on how much is sent: those of a policer, which has no queue that could show it.
//!
//! A policer drops what comes faster than its rate; a radio link loses its part however little is sent. So each time that
//! a window is reduced for too many losses beside an empty queue, what is lost afterwards says which of them it was.
//!
//! # Source
//!
//! Ours. [Flach2016] shows how common policers are, and finds them by the rate that comes through while packets are lost.
//!
//! # Symbols
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | p | `Trial::share`, the part of the packets that were lost before the reduction | 1 |
//! | n, l | `Trial::sent`, `Trial::lost`: what was sent since, and is acknowledged or lost | byte |

use fairpath_core::{Ack, Congestion, Timestamp};

use super::MEMORY;

/// Losses to expect of the packets since the reduction before a trial is over.
const EXPECTED: f64 = 12.0;
/// Share of the expected losses below which they have fallen. With random losses of 2 %, of which
/// chance made 5 %, one trial in twenty shows as few.
const FALLEN: f64 = 1.0 / 6.0;
/// The number of trials in a row that tell.
const TRIALS: u32 = 2;

/// Trials of whether losses fall when less is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct RateTest {
    trial: Option<Trial>,
    /// How many trials in a row showed that losses fell.
    fell: u32,
    /// Until when a loss is taken for a policer's.
    until: Option<Timestamp>,
}

/// The time after a reduction.
#[derive(Clone, Copy, Debug)]
struct Trial {
    begun: Timestamp,
    share: f64,
    sent: f64,
    lost: f64,
}

impl RateTest {
    /// Whether losses are those of a policer.
    pub(super) fn is_policed(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    pub(super) fn on_ack(&mut self, ack: &Ack, datagram: f64) {
        let Some(trial) = self.trial.as_mut().filter(|trial| ack.sent_at > trial.begun) else { return };
        trial.sent += ack.bytes.as_f64();
        //     p n >= EXPECTED: fallen if l < FALLEN p n
        let expected = trial.share * trial.sent;
        if expected < EXPECTED * datagram {
            return;
        }
        self.fell = if trial.lost < FALLEN * expected { self.fell + 1 } else { 0 };
        if self.fell >= TRIALS {
            self.until = Some(ack.now + MEMORY);
        }
        self.trial = None;
    }

    /// Packets were lost.
    pub(super) fn on_loss(&mut self, event: &Congestion) {
        let lost = event.lost.as_f64();
        if let Some(trial) = self.trial.as_mut().filter(|trial| event.sent_at > trial.begun) {
            (trial.sent, trial.lost) = (trial.sent + lost, trial.lost + lost);
        }
    }

    /// Nothing was lost: a path that reorders says nothing of what it loses.
    pub(super) fn on_spurious(&mut self) {
        (self.trial, self.fell) = (None, 0);
    }

    /// The window is reduced for losses beside an empty queue, which were this part of all.
    pub(super) fn on_reduced(&mut self, event: &Congestion, share: f64) {
        if self.trial.is_none_or(|trial| event.sent_at > trial.begun) {
            self.trial = Some(Trial { begun: event.now, share, sent: 0.0, lost: 0.0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::ByteCount;

    use super::*;
    use crate::testing::*;

    /// A reduction after 5 % of losses, then packets a millisecond apart, of which each
    /// `lost_every`th is lost.
    fn reduced(test: &mut RateTest, at_ms: u64, packets: u64, lost_every: u64) {
        let datagram = PACKET.as_f64();
        test.on_reduced(&loss(at_ms), 0.05);
        for packet in 1..=packets {
            let now_ms = at_ms + 100 + packet;
            match packet % lost_every {
                0 => test.on_loss(&Congestion { sent_at: Timestamp::from_millis(at_ms + packet), ..loss(now_ms) }),
                _ => test.on_ack(&ack(now_ms, PACKET, 100), datagram),
            }
        }
    }

    fn is_policed(trials: &[(u64, u64)]) -> bool {
        let mut test = RateTest::default();
        for (at, (packets, lost_every)) in (0..).zip(trials) {
            reduced(&mut test, 1_000 + 1_000 * at, *packets, *lost_every);
        }
        test.is_policed(Timestamp::from_millis(10_000))
    }

    #[test]
    fn losses_that_fall_after_two_reductions_are_those_of_a_policer() {
        // 12 losses are expected of 240 packets; less than two of these are few.
        assert!(is_policed(&[(240, 1_000), (240, 1_000)]));
        assert!(!is_policed(&[(240, 1_000)]), "one may be chance");
        assert!(!is_policed(&[(239, 1_000), (239, 1_000)]), "too few packets tell nothing");
    }

    #[test]
    fn losses_that_come_however_little_is_sent_are_none() {
        for lost_every in [20, 50, 100] {
            assert!(!is_policed(&[(250, 1_000), (260, lost_every), (250, 1_000)]), "{lost_every}");
        }
    }

    #[test]
    fn a_path_that_reorders_and_packets_from_before_the_reduction_tell_nothing() {
        let mut test = RateTest::default();
        (0..2).for_each(|at| reduced(&mut test, 1_000 + 1_000 * at, 200, 1_000));
        test.on_spurious();
        (0..100).for_each(|at| test.on_ack(&ack(2_400 + at, PACKET, 100), PACKET.as_f64()));
        assert!(!test.is_policed(Timestamp::from_millis(3_000)));
        test.on_reduced(&loss(4_000), 0.05);
        (0..1_000).for_each(|_| test.on_ack(&Ack { bytes: ByteCount::new(1), ..ack(4_050, PACKET, 100) }, 0.001));
        assert_eq!(test.fell, 0, "they left before it");
    }

    #[test]
    fn a_policer_is_forgotten_after_half_a_minute_without_a_sign_of_it() {
        let mut test = RateTest::default();
        (0..2).for_each(|at| reduced(&mut test, 1_000 + 1_000 * at, 240, 1_000));
        let last = Timestamp::from_millis(2_340);
        assert!(test.is_policed(last + MEMORY - Duration::from_millis(1)) && !test.is_policed(last + MEMORY));
    }
}
