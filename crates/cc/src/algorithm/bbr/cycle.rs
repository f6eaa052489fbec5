//! ProbeBW, where BBR spends its life: a cycle of gains [BBRv1 §4.3.4].

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

use super::{BbrPath, Phase};
use crate::model::{Delivery, Random, bdp_multiple};

/// The phases of a cycle, each about a round-trip time long: one that probes, one that drains what
/// the probe may have queued, and others that cruise [BBRv1 §4.3.4].
pub(in crate::algorithm) const PHASES: u32 = 8;

const PROBE: u32 = 0;
const DRAIN: u32 = 1;

/// Where in the cycle a path is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    phase: u32,
    since: Timestamp,
    cruise_gain: f64,
}

impl Cycle {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { phase: PROBE, since: now, cruise_gain: 1.0 }
    }

    /// The pacing gain.
    pub(super) fn gain(&self) -> f64 {
        match self.phase {
            PROBE => 1.25,
            DRAIN => 0.75,
            _ => self.cruise_gain,
        }
    }

    /// Starts in a phase drawn from all but the one that drains: there is no queue to drain yet
    /// [BBRv1 §4.3.4.2].
    fn restart(&mut self, now: Timestamp, random: &mut Random) {
        let drawn = random.below(PHASES - 1);
        self.phase = if drawn >= DRAIN { drawn + 1 } else { drawn };
        self.since = now;
    }

    fn advance(&mut self, now: Timestamp) {
        self.phase = (self.phase + 1) % PHASES;
        self.since = now;
    }

    /// How long the phase has lasted.
    fn age(&self, now: Timestamp) -> Duration {
        now.since(self.since)
    }
}

impl BbrPath {
    /// Cruises with this gain from now on, but not below the least window per round-trip time, and
    /// not above a gain of 1.
    pub(in crate::algorithm) fn set_cruise_gain(&mut self, gain: f64) {
        let bdp = self.min_rtt.map_or(ByteCount::ZERO, |min_rtt| bdp_multiple(1.0, self.bandwidth, min_rtt));
        let least = self.sizes.min_pipe().as_f64() / bdp.as_f64();
        self.cycle.cruise_gain = gain.max(least).min(1.0);
    }

    // [BBRv1 §4.3.4.3, BBREnterProbeBW]
    pub(super) fn enter_probe_bw(&mut self, now: Timestamp) {
        self.phase = Phase::ProbeBw;
        self.cycle.restart(now, &mut self.random);
    }

    // [BBRv1 §4.3.4.3, BBRCheckCyclePhase]
    pub(super) fn check_cycle(&mut self, delivery: &Delivery) {
        let lost = self.recovery.take_news();
        if self.phase == Phase::ProbeBw && self.phase_is_over(delivery.now, delivery.prior_in_flight, lost) {
            self.cycle.advance(delivery.now);
        }
    }

    // [BBRv1 §4.3.4.3, BBRIsNextCyclePhase]
    fn phase_is_over(&self, now: Timestamp, prior_in_flight: ByteCount, lost: bool) -> bool {
        let full_length = self.min_rtt.is_some_and(|min_rtt| self.cycle.age(now) > min_rtt);
        match self.cycle.phase {
            PROBE => full_length && (lost || prior_in_flight >= self.inflight(self.cycle.gain())),
            DRAIN => full_length || prior_in_flight <= self.inflight(1.0),
            _ => full_length,
        }
    }
}
