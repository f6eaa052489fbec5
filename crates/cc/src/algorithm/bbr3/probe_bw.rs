//! ProbeBW, where BBR spends its life: down, cruise, refill, up, and down again [BBRv3 §5.3.3].

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

use super::{Bbr3Path, Phase};
use crate::model::{Delivery, Random, Rate};

/// The least time between probes; up to `WAIT_SPREAD` more is drawn [BBRv3 §5.3.3.8].
const WAIT: Duration = Duration::from_secs(2);
/// The time that is drawn [BBRv3 §5.3.3.8].
const WAIT_SPREAD: Duration = Duration::from_secs(1);

/// Limit on the rounds between probes [BBRv3 §5.3.3.8]. Reno needs as many rounds without loss as
/// the path holds packets, so it survives beside BBR on paths of up to this many packets.
const ROUNDS_MAX: u64 = 63;

/// The verdict of acknowledgements on the newest probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feedback {
    /// Nothing.
    None,
    /// The pipe is being refilled for the next one.
    Refilling,
    /// It has begun; nothing of it has arrived yet.
    Starting,
    /// Its packets arrive.
    Arriving,
    /// It is over, but its packets still arrive.
    Stopping,
}

/// Where in the cycle a path is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    since: Timestamp,
    wait: Duration,
    rounds_since_up: u64,
    feedback: Feedback,
}

impl Cycle {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { since: now, wait: Duration::ZERO, rounds_since_up: 0, feedback: Feedback::None }
    }

    /// How long the next probe waits.
    #[cfg(test)]
    pub(super) fn wait(&self) -> Duration {
        self.wait
    }

    pub(super) fn count_round(&mut self) {
        self.rounds_since_up += 1;
    }

    // [BBRv3 §5.3.3.8, PickProbeWait]
    fn restart(&mut self, now: Timestamp, random: &mut Random) {
        self.rounds_since_up = random.below(2).into();
        self.wait = WAIT + WAIT_SPREAD.mul_f64(random.fraction());
        self.since = now;
    }

    /// Whether a probe of the bandwidth is on its way: what is sent, or what arrives, belongs to it.
    pub(super) fn is_probing(&self) -> bool {
        self.feedback != Feedback::None
    }

    /// A probe is over, or gives way to another phase: what follows are its last packets.
    pub(super) fn stop(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}

impl Bbr3Path {
    // [BBRv3 §5.3.3.9, UpdateProbeBWCyclePhase]
    pub(super) fn update_cycle(&mut self, delivery: &Delivery, rate: &Rate) {
        if !self.was_full || self.follow_feedback(delivery, rate) {
            return;
        }
        let phase = self.phase;
        match phase {
            Phase::Down if self.is_time_to_probe(delivery.now) => self.start_refill(),
            Phase::Down if self.is_time_to_cruise(delivery.in_flight) => self.phase = Phase::Cruise,
            Phase::Cruise if self.is_time_to_probe(delivery.now) => self.start_refill(),
            Phase::Refill if self.rounds.starts() => self.start_up(rate),
            Phase::Up if self.is_time_to_go_down(delivery, rate) => {
                self.long_term.was_too_high = false;
                self.start_down(delivery.now);
            }
            _ => {}
        }
    }

    // [BBRv3 §5.3.3.9, AdaptLongTermModel]
    /// Follows what the acknowledgements say of the newest probe. Says whether it has begun a phase.
    fn follow_feedback(&mut self, delivery: &Delivery, rate: &Rate) -> bool {
        if self.cycle.feedback == Feedback::Starting && self.rounds.starts() {
            self.cycle.feedback = Feedback::Arriving;
        }
        if self.cycle.feedback == Feedback::Stopping && self.rounds.starts() {
            self.cycle.feedback = Feedback::None;
            self.long_term.is_probe_sample = false;
            if self.phase.is_probe_bw() && !rate.app_limited {
                self.max_bandwidth.advance();
            }
            // The probe stopped early and did no harm: another may go further at once.
            if self.phase.is_probe_bw() && self.long_term.was_precautionary && !self.long_term.was_too_high {
                self.start_refill();
                return true;
            }
        }
        self.raise_long_term(delivery, rate);
        false
    }

    // [BBRv3 §5.3.3.9, StartProbeBW_DOWN]
    pub(super) fn start_down(&mut self, now: Timestamp) {
        self.short_term.reset_signals();
        self.long_term.stop_growing();
        self.cycle.restart(now, &mut self.random);
        self.cycle.stop();
        self.rounds.restart(self.delivered);
        self.phase = Phase::Down;
    }

    /// From ProbeRTT, where little is in flight anyway.
    pub(super) fn start_cruise(&mut self) {
        self.phase = Phase::Cruise;
    }

    // [BBRv3 §5.3.3.9, StartProbeBW_REFILL]
    fn start_refill(&mut self) {
        self.short_term.reset();
        self.long_term.begin_probe();
        self.cycle.feedback = Feedback::Refilling;
        self.rounds.restart(self.delivered);
        self.phase = Phase::Refill;
    }

    // [BBRv3 §5.3.3.9, StartProbeBW_UP]
    fn start_up(&mut self, rate: &Rate) {
        self.long_term.is_probe_sample = true;
        self.cycle.feedback = Feedback::Starting;
        self.rounds.restart(self.delivered);
        self.full_pipe.reset(rate.bandwidth);
        self.phase = Phase::Up;
        self.long_term.raise_slope(self.cwnd, self.sizes.datagram);
    }

    // [BBRv3 §5.3.3.8, IsTimeToProbeBW and IsRenoCoexistenceProbeTime]
    fn is_time_to_probe(&self, now: Timestamp) -> bool {
        let reno_rounds = self.target_inflight() / self.sizes.datagram;
        now > self.cycle.since + self.cycle.wait || self.cycle.rounds_since_up >= reno_rounds.min(ROUNDS_MAX)
    }

    // [BBRv3 §5.3.3.9, IsTimeToCruise]
    fn is_time_to_cruise(&self, in_flight: ByteCount) -> bool {
        let headroom = self.inflight_with_headroom().is_none_or(|bound| in_flight <= bound);
        headroom && in_flight <= self.inflight(1.0, self.max_bandwidth.get())
    }

    // [BBRv3 §5.3.3.9, IsTimeToGoDown]
    fn is_time_to_go_down(&mut self, delivery: &Delivery, rate: &Rate) -> bool {
        if self.long_term.was_too_high && self.long_term.in_flight.is_some_and(|bound| delivery.in_flight >= bound) {
            self.long_term.was_precautionary = true;
            return true;
        }
        if self.fills_long_term(delivery) {
            // Arrivals are bounded by ourselves: that they do not grow says nothing.
            self.full_pipe.reset(rate.bandwidth);
        }
        self.full_pipe.is_full()
    }
}
