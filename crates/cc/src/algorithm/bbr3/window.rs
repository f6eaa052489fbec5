//! The window: what the model holds for right, reached step by step [BBRv3 §5.6.4].

use fairpath_core::{Bitrate, ByteCount, Congestion};

use super::{Bbr3Path, Phase};
use crate::model::{Delivery, bdp_multiple, send_quantum};

/// Datagrams that a probe may have in flight beyond the target [BBRv3 §5.6.4.2].
const UP_DATAGRAMS: u64 = 2;

impl Bbr3Path {
    // [BBRv3 §5.6.4.2, BDPMultiple]
    pub(super) fn bdp_multiple(&self, gain: f64, bandwidth: Bitrate) -> ByteCount {
        match self.min_rtt.get() {
            Some(min_rtt) => bdp_multiple(gain, bandwidth, min_rtt),
            None => self.sizes.initial_window,
        }
    }

    // [BBRv3 §5.6.4.2, Inflight]
    pub(super) fn inflight(&self, gain: f64, bandwidth: Bitrate) -> ByteCount {
        self.with_quantization_budget(self.bdp_multiple(gain, bandwidth))
    }

    // [BBRv3 §5.6.4.2, UpdateMaxInflight]
    fn max_inflight(&self) -> ByteCount {
        let product = self.bdp_multiple(self.phase.gains().cwnd, self.bandwidth);
        self.with_quantization_budget(product + self.aggregation.extra())
    }

    // [BBRv3 §5.6.4.2, QuantizationBudget] [BBRv3 §5.5.8.2]
    fn with_quantization_budget(&self, in_flight: ByteCount) -> ByteCount {
        let quantum = send_quantum(self.pacing.rate(), self.sizes.datagram * 2);
        let probe = if self.phase == Phase::Up { self.sizes.datagram * UP_DATAGRAMS } else { ByteCount::ZERO };
        in_flight.max(quantum).max(self.sizes.min_pipe()) + probe
    }

    // [BBRv3 §5.3.3.8, TargetInflight]
    pub(super) fn target_inflight(&self) -> ByteCount {
        self.bdp_multiple(1.0, self.bandwidth).min(self.cwnd)
    }

    // [BBRv3 §5.6.4.6, SetCwnd]
    pub(super) fn set_cwnd(&mut self, delivery: &Delivery) {
        if self.collapsed_at.is_some_and(|at| delivery.sent_at > at) {
            self.collapsed_at = None;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        let max_inflight = self.max_inflight();
        if self.was_full {
            self.cwnd = (self.cwnd + delivery.newly_acked).min(max_inflight);
        } else if self.cwnd < max_inflight || delivery.delivered < self.sizes.initial_window {
            self.cwnd += delivery.newly_acked;
        }
        self.cwnd = self.cwnd.max(self.sizes.min_pipe());
        if self.phase == Phase::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    // [BBRv3 §5.6.4.7, BoundCwndForModel] [BBRv3 §5.6.1]
    fn bound_cwnd(&mut self) {
        let long_term = match self.phase {
            Phase::Startup | Phase::Drain => None,
            Phase::Down | Phase::Refill | Phase::Up => self.long_term.in_flight,
            Phase::Cruise | Phase::ProbeRtt => self.inflight_with_headroom(),
        };
        for bound in [long_term, self.short_term.in_flight()].into_iter().flatten() {
            self.cwnd = self.cwnd.min(bound.max(self.sizes.min_pipe()));
        }
    }

    // [BBRv3 §5.6.4.4, OnEnterRTO]
    /// Everything in flight was lost.
    pub(super) fn collapse(&mut self, event: &Congestion) {
        self.prior_cwnd = if self.collapsed_at.is_some() || self.phase == Phase::ProbeRtt {
            self.prior_cwnd.max(self.cwnd)
        } else {
            self.cwnd
        };
        self.collapsed_at = Some(event.now);
        let left = event.in_flight.saturating_sub(event.lost) + ByteCount::new(1);
        self.cwnd = self.cwnd.min(left.max(self.sizes.min_window()));
    }
}
