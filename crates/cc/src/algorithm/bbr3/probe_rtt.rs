//! The round-trip time of the empty path, and ProbeRTT, which looks for it [BBRv3 §5.3.4].

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use super::{Bbr3Path, Phase};
use crate::model::{Delivery, Rate};

/// Length of the filter of the least round-trip time [BBRv3 §2.16.1].
const FILTER: Duration = Duration::from_secs(10);

/// ProbeRTT begins when no sample was as small for this long [BBRv3 §2.16.2].
const INTERVAL: Duration = Duration::from_secs(5);

/// Duration of ProbeRTT, with little in flight [BBRv3 §2.16.2].
const DURATION: Duration = Duration::from_millis(200);

/// The least round-trip times.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// The least of the filter's window, and when it was measured.
    value: Option<Duration>,
    at: Timestamp,
    /// The least since the last probe, and when it was measured.
    recent: Option<Duration>,
    recent_at: Timestamp,
    /// Whether the next probe is due.
    expired: bool,
}

impl MinRtt {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { value: None, at: now, recent: None, recent_at: now, expired: false }
    }

    /// Takes what was measured elsewhere, at `at`.
    pub(super) fn restore(&mut self, value: Option<Duration>, at: Timestamp) {
        (self.value, self.at) = (value, at);
    }

    /// When the least was measured.
    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// The least round-trip time; `None` before the first sample.
    pub(super) fn get(&self) -> Option<Duration> {
        self.value
    }

    // [BBRv3 §5.3.4.3, UpdateMinRTT]
    fn update(&mut self, now: Timestamp, rtt: Duration) {
        self.expired = now > self.recent_at + INTERVAL;
        if self.expired || self.recent.is_none_or(|recent| rtt < recent) {
            self.recent = Some(rtt);
            self.recent_at = now;
        }
        if now > self.at + FILTER || self.value.is_none_or(|value| self.recent.is_some_and(|recent| recent < value)) {
            self.value = self.recent;
            self.at = self.recent_at;
        }
    }
}

/// How far a probe has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end; `None` while what is in flight is still falling.
    done_at: Option<Timestamp>,
    round_done: bool,
    /// The rate of arrivals when it began; `None` where that says nothing of the path.
    arrived: Option<Bitrate>,
}

impl Bbr3Path {
    pub(super) fn update_min_rtt(&mut self, delivery: &Delivery) {
        self.min_rtt.update(delivery.now, delivery.rtt());
    }

    // [BBRv3 §5.3.4.3, CheckProbeRTT]
    pub(super) fn check_probe_rtt(&mut self, delivery: &Delivery, rate: &Rate) {
        if self.phase != Phase::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.prior_cwnd = if self.collapsed_at.is_some() { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
            self.phase = Phase::ProbeRtt;
            let arrived = (!rate.app_limited).then(|| self.short_term.bandwidth_latest());
            self.probe_rtt = ProbeRtt { arrived, ..ProbeRtt::default() };
            self.own_limit.begin(delivery.delivered);
            if self.cycle.is_probing() {
                self.max_bandwidth.advance();
            }
            self.cycle.stop();
            self.rounds.restart(delivery.delivered);
        }
        if self.phase == Phase::ProbeRtt {
            self.probe_min_rtt(delivery);
        }
        self.idle_restart = false;
    }

    // [BBRv3 §5.3.4.3, HandleProbeRTT]
    fn probe_min_rtt(&mut self, delivery: &Delivery) {
        self.own_limit.extend(delivery.delivered, delivery.in_flight);
        if self.probe_rtt.done_at.is_none() {
            if delivery.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt.done_at = Some(delivery.now + DURATION);
                self.rounds.restart(delivery.delivered);
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.starts();
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(delivery.now);
        }
    }

    // [BBRv3 §5.3.4.3, CheckProbeRTTDone] [BBRv3 §5.3.4.4, ExitProbeRTT]
    pub(super) fn check_probe_rtt_done(&mut self, now: Timestamp) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.recent_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        self.short_term.reset();
        if self.was_full {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.phase = Phase::Startup;
        }
    }

    // [BBRv3 §5.6.4.5, ProbeRTTCwnd]
    pub(super) fn probe_rtt_cwnd(&self) -> ByteCount {
        let bandwidth = self.probe_rtt.arrived.map_or(self.bandwidth, |arrived| arrived.min(self.bandwidth));
        self.bdp_multiple(Phase::ProbeRtt.gains().cwnd, bandwidth).max(self.sizes.min_pipe())
    }
}
