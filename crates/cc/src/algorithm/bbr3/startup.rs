//! Startup and Drain: finding the bandwidth by doubling, and clearing the queue that this leaves
//! [BBRv3 §5.3.1, §5.3.2].

use super::{Bbr3Path, Phase, long_term};
use crate::model::{Delivery, Rate};

/// Startup ends for losses only where they are not one burst but several [BBRv3 §5.3.1.3].
const LOSSES_MIN: u32 = 6;

/// Drain ends after this many rounds, even if a queue is left [BBRv3 §5.3.2].
const DRAIN_ROUNDS_MAX: u64 = 3;

/// The losses of one round, neighbours counted once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    ranges: u32,
    newest: Option<u64>,
}

impl Losses {
    pub(super) fn count(&mut self, number: u64) {
        if self.newest.is_none_or(|newest| newest.checked_add(1) != Some(number)) {
            self.ranges = self.ranges.saturating_add(1);
        }
        self.newest = Some(number);
    }
}

impl Bbr3Path {
    // [BBRv3 §5.3.1.1, CheckStartupDone] [BBRv3 §5.3.1.3, CheckStartupHighLoss]
    pub(super) fn check_startup_done(&mut self, rate: &Rate) {
        if self.short_term.round_starts() {
            let many = self.losses.ranges >= LOSSES_MIN;
            self.losses.ranges = 0;
            if self.phase == Phase::Startup && many && long_term::is_too_high(rate.lost, rate.tx_in_flight) {
                self.leave_startup_for_losses();
            }
        }
        if self.phase == Phase::Startup && self.was_full {
            self.enter_drain();
        }
    }

    /// Startup has met losses, or a mark, that say that the pipe is full.
    pub(super) fn leave_startup_for_losses(&mut self) {
        self.was_full = true;
        let bdp = self.bdp_multiple(1.0, self.bandwidth);
        self.long_term.in_flight = Some(bdp.max(self.short_term.in_flight_latest()));
        self.enter_drain();
    }

    fn enter_drain(&mut self) {
        self.phase = Phase::Drain;
        self.drain_round = self.rounds.count();
    }

    // [BBRv3 §5.3.2, CheckDrainDone]
    pub(super) fn check_drain_done(&mut self, delivery: &Delivery) {
        if self.phase == Phase::Drain {
            let drained = delivery.in_flight <= self.inflight(1.0, self.bandwidth);
            if drained || self.rounds.count() > self.drain_round + DRAIN_ROUNDS_MAX {
                self.start_down(delivery.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_loss() {
        let mut losses = Losses::default();
        [3, 4, 5, 9, 11, 12].into_iter().for_each(|number| losses.count(number));
        assert_eq!(losses.ranges, 3);
    }
}
