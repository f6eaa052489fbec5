//! The short-term model: what losses say of the bandwidth and the amount in flight that are safe
//! just now, while nothing is being probed [BBRv3 §5.5.10.3].

use fairpath_core::{Bitrate, ByteCount};

use super::{BETA, Bbr3Path};
use crate::model::Rate;

/// A rate and an amount that arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    bandwidth: Bitrate,
    in_flight: ByteCount,
}

/// The short-term model of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShortTerm {
    bandwidth: Option<Bitrate>,
    in_flight: Option<ByteCount>,
    /// The most that arrived in this round.
    latest: Arrived,
    /// Whether something was lost in this round.
    lossy: bool,
    /// A packet that is sent after this much was delivered ends the round.
    round_ends: ByteCount,
    round_starts: bool,
}

impl ShortTerm {
    // [BBRv3 §5.5.10.2, NoteLoss]
    pub(super) fn note_loss(&mut self, delivered: ByteCount) {
        if !self.lossy {
            self.round_ends = delivered;
        }
        self.lossy = true;
    }

    // [BBRv3 §5.5.10.3, UpdateLatestDeliverySignals]
    pub(super) fn update_latest(&mut self, rate: &Rate, delivered: ByteCount) {
        self.latest.bandwidth = self.latest.bandwidth.max(rate.bandwidth);
        self.latest.in_flight = self.latest.in_flight.max(rate.delivered);
        self.round_starts = rate.prior_delivered >= self.round_ends;
        if self.round_starts {
            self.round_ends = delivered;
        }
    }

    // [BBRv3 §5.5.10.3, AdvanceLatestDeliverySignals]
    pub(super) fn advance_latest(&mut self, rate: &Rate) {
        if self.round_starts {
            self.latest = Arrived { bandwidth: rate.bandwidth, in_flight: rate.delivered };
        }
    }

    // [BBRv3 §5.5.10.3, ResetCongestionSignals]
    pub(super) fn reset_signals(&mut self) {
        self.lossy = false;
        self.latest = Arrived::default();
    }

    // [BBRv3 §5.5.10.3, ResetShortTermModel]
    pub(super) fn reset(&mut self) {
        self.bandwidth = None;
        self.in_flight = None;
    }

    /// Whether the newest acknowledgement ended a round, counted from its first loss.
    pub(super) fn round_starts(&self) -> bool {
        self.round_starts
    }

    /// The highest rate at which anything arrived in this round.
    pub(super) fn bandwidth_latest(&self) -> Bitrate {
        self.latest.bandwidth
    }

    /// The most that arrived in this round.
    pub(super) fn in_flight_latest(&self) -> ByteCount {
        self.latest.in_flight
    }

    /// The most that may be in flight; `None`: losses set no bound.
    pub(super) fn in_flight(&self) -> Option<ByteCount> {
        self.in_flight
    }

    // [BBRv3 §5.5.10.3, BoundBWForModel]
    pub(super) fn bounded(&self, max_bandwidth: Bitrate) -> Bitrate {
        self.bandwidth.map_or(max_bandwidth, |bound| bound.min(max_bandwidth))
    }

    // [BBRv3 §5.5.10.3, InitLowerBounds and LossLowerBounds]
    //           bw_shortterm = max(       bw_latest, BBR.Beta *       BBR.bw_shortterm )
    //     inflight_shortterm = max( inflight_latest, BBR.Beta * BBR.inflight_shortterm )
    fn lower(&mut self, max_bandwidth: Bitrate, cwnd: ByteCount) {
        let bandwidth = self.bandwidth.unwrap_or(max_bandwidth).scaled(BETA);
        let in_flight = ByteCount::from_f64(self.in_flight.unwrap_or(cwnd).as_f64() * BETA);
        self.bandwidth = Some(bandwidth.max(self.latest.bandwidth));
        self.in_flight = Some(in_flight.max(self.latest.in_flight));
    }
}

impl Bbr3Path {
    // [BBRv3 §5.5.10.3, UpdateCongestionSignals]
    pub(super) fn adapt_short_term(&mut self) {
        if self.short_term.round_starts {
            if self.short_term.lossy && !self.phase.accelerates() {
                self.short_term.lower(self.max_bandwidth.get(), self.cwnd);
            }
            self.short_term.lossy = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(mbps: u64, delivered: u64, prior_delivered: u64) -> Rate {
        Rate {
            bandwidth: Bitrate::from_mbps(mbps),
            delivered: ByteCount::new(delivered),
            prior_delivered: ByteCount::new(prior_delivered),
            app_limited: false,
            tx_in_flight: ByteCount::ZERO,
            lost: ByteCount::ZERO,
        }
    }

    #[test]
    fn a_lossy_round_leaves_what_arrived_or_seven_tenths() {
        let mut short = ShortTerm::default();
        short.update_latest(&rate(6, 30_000, 0), ByteCount::new(30_000));
        // 0.7 · 10 = 7 Mbit/s is more than the 6 that arrived; 0.7 · 40,000 = 28,000 B less than 30,000
        short.lower(Bitrate::from_mbps(10), ByteCount::new(40_000));
        assert_eq!((short.bandwidth, short.in_flight), (Some(Bitrate::from_mbps(7)), Some(ByteCount::new(30_000))));
        // Again: 0.7 · 7 = 4.9 is less than 6; 0.7 · 30,000 = 21,000 less than 30,000
        short.lower(Bitrate::from_mbps(10), ByteCount::new(40_000));
        assert_eq!((short.bandwidth, short.in_flight), (Some(Bitrate::from_mbps(6)), Some(ByteCount::new(30_000))));
        assert_eq!(short.bounded(Bitrate::from_mbps(10)), Bitrate::from_mbps(6));
        short.reset();
        assert_eq!(short.bounded(Bitrate::from_mbps(10)), Bitrate::from_mbps(10));
    }

    #[test]
    fn a_round_with_losses_is_counted_from_the_first_of_them() {
        let mut short = ShortTerm::default();
        short.update_latest(&rate(1, 1, 0), ByteCount::new(10_000));
        assert!(short.round_starts());
        short.note_loss(ByteCount::new(15_000));
        short.note_loss(ByteCount::new(18_000));
        short.update_latest(&rate(1, 1, 12_000), ByteCount::new(20_000));
        assert!(!short.round_starts(), "sent before the first loss was found");
        short.update_latest(&rate(1, 1, 15_000), ByteCount::new(30_000));
        assert!(short.round_starts());
    }
}
