//! The long-term model: how much in flight probes of the bandwidth have shown to be safe
//! [BBRv3 §5.3.3.9, §5.5.10.2].

use fairpath_core::{ByteCount, Timestamp};

use super::{BETA, Bbr3Path, LOSS_THRESHOLD, Phase};
use crate::model::{Delivery, Rate};

/// The part of the amount in flight that is left to others, for bursts and for a fairer share [BBRv3 §2.8].
const HEADROOM: f64 = 0.15;

/// The growth doubles each round, up to 2³⁰ datagrams [BBRv3 §5.3.3.9].
const DOUBLINGS_MAX: u32 = 30;

/// The long-term model of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTerm {
    /// The bound; `None` until a probe went too high.
    pub(super) in_flight: Option<ByteCount>,
    /// Whether acknowledgements and losses still tell of packets of the newest probe.
    pub(super) is_probe_sample: bool,
    /// Whether the newest probe lost too much.
    pub(super) was_too_high: bool,
    /// Whether the newest probe stopped at the bound, to see first what that does.
    pub(super) was_precautionary: bool,
    /// How many rounds of this probe the bound has grown.
    doublings: u32,
    /// How much must be acknowledged for one datagram of growth; `None`: it does not grow.
    acked_per_datagram: Option<ByteCount>,
    acked: ByteCount,
}

impl LongTerm {
    /// No growth until the next probe.
    pub(super) fn stop_growing(&mut self) {
        self.acked_per_datagram = None;
    }

    /// A probe is about to begin.
    pub(super) fn begin_probe(&mut self) {
        self.doublings = 0;
        self.acked = ByteCount::ZERO;
        self.was_precautionary = false;
    }

    // [BBRv3 §5.3.3.9, RaiseInflightLongtermSlope]
    //     max( C.cwnd / ( 1 << BBR.bw_probe_up_rounds ), C.SMSS )
    pub(super) fn raise_slope(&mut self, cwnd: ByteCount, datagram: ByteCount) {
        self.acked_per_datagram = Some(ByteCount::new(cwnd.get() >> self.doublings).max(datagram));
        self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
    }

    /// Grows by a datagram for each portion that was acknowledged.
    fn grow(&mut self, acked: ByteCount, datagram: ByteCount) {
        if let (Some(in_flight), Some(portion)) = (&mut self.in_flight, self.acked_per_datagram) {
            self.acked += acked;
            let portions = self.acked / portion;
            self.acked -= portion * portions;
            *in_flight += datagram * portions;
        }
    }
}

impl Bbr3Path {
    // [BBRv3 §5.3.3.9, AdaptLongTermModel], the part that raises the bound. The loss rate is safe.
    pub(super) fn raise_long_term(&mut self, delivery: &Delivery, rate: &Rate) {
        if is_too_high(rate.lost, rate.tx_in_flight) {
            return;
        }
        let Some(in_flight) = self.long_term.in_flight else { return };
        self.long_term.in_flight = Some(in_flight.max(rate.tx_in_flight));
        if self.phase == Phase::Up && self.fills_long_term(delivery) {
            // [BBRv3 §5.3.3.9, ProbeInflightLongtermUpward]
            self.long_term.grow(delivery.newly_acked, self.sizes.datagram);
            if self.rounds.starts() {
                self.long_term.raise_slope(self.cwnd, self.sizes.datagram);
            }
        }
    }

    /// Whether the window was full, and it is the bound that keeps it from being larger.
    pub(super) fn fills_long_term(&self, delivery: &Delivery) -> bool {
        delivery.window_limited && self.long_term.in_flight.is_some_and(|bound| self.cwnd >= bound)
    }

    // [BBRv3 §5.5.10.2, HandleInflightTooHigh]
    //     BBR.inflight_longterm = max( RS.tx_in_flight, TargetInflight() * BBR.Beta )
    pub(super) fn probe_went_too_high(&mut self, now: Timestamp, in_flight: ByteCount, app_limited: bool) {
        self.long_term.was_too_high = true;
        self.long_term.is_probe_sample = false;
        if !app_limited {
            let floor = ByteCount::from_f64(self.target_inflight().as_f64() * BETA);
            self.long_term.in_flight = Some(in_flight.max(floor));
        }
        if self.phase == Phase::Up {
            self.start_down(now);
        }
    }

    // [BBRv3 §5.3.3.9, InflightWithHeadroom]
    pub(super) fn inflight_with_headroom(&self) -> Option<ByteCount> {
        let in_flight = self.long_term.in_flight?;
        let headroom = ByteCount::from_f64(in_flight.as_f64() * HEADROOM).max(self.sizes.datagram);
        Some(in_flight.saturating_sub(headroom).max(self.sizes.min_pipe()))
    }
}

// [BBRv3 §5.5.10.2, IsInflightTooHigh]
//     RS.lost > RS.tx_in_flight * BBR.LossThresh
pub(super) fn is_too_high(lost: ByteCount, tx_in_flight: ByteCount) -> bool {
    lost.as_f64() > tx_in_flight.as_f64() * LOSS_THRESHOLD
}

// [BBRv3 §5.5.10.2, InflightAtLoss]
//                    BBR.LossThresh * inflight_prev - lost_prev
//     lost_prefix = --------------------------------------------
//                               1 - BBR.LossThresh
//     inflight_prev + lost_prefix
pub(super) fn in_flight_at_loss(size: ByteCount, tx_in_flight: ByteCount, lost: ByteCount) -> ByteCount {
    let before = tx_in_flight.saturating_sub(size).as_f64();
    let lost_before = lost.saturating_sub(size).as_f64();
    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    ByteCount::from_f64(before + prefix.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_000);

    #[test]
    fn more_than_two_percent_is_too_high() {
        // 2 % of 100,000 B are 2,000 B
        assert!(!is_too_high(PACKET * 2, PACKET * 100));
        assert!(is_too_high(PACKET * 2 + ByteCount::new(1), PACKET * 100));
    }

    #[test]
    fn the_bound_is_where_the_losses_crossed_two_percent() {
        // 100 packets in flight, 3 lost, this one included: before it 99 and 2.
        // (0.02 · 99,000 − 2,000) / 0.98 = −20 B: it had been crossed already.
        assert_eq!(in_flight_at_loss(PACKET, PACKET * 100, PACKET * 3), PACKET * 99);
        // A burst of 10 packets as one, 200 in flight and nothing lost before:
        // (0.02 · 190,000 − 0) / 0.98 = 3,877 B of it were safe.
        assert_eq!(in_flight_at_loss(PACKET * 10, PACKET * 200, PACKET * 10), ByteCount::new(193_877));
    }

    #[test]
    fn the_bound_grows_by_one_then_two_then_four_datagrams_a_round() {
        let mut long = LongTerm { in_flight: Some(PACKET * 16), ..LongTerm::default() };
        long.begin_probe();
        for growth in [1, 2, 4, 8] {
            let before = long.in_flight.unwrap();
            // A window of 16 packets is acknowledged in a round.
            long.raise_slope(PACKET * 16, PACKET);
            (0..16).for_each(|_| long.grow(PACKET, PACKET));
            assert_eq!(long.in_flight.unwrap() - before, PACKET * growth);
        }
        long.stop_growing();
        let before = long.in_flight;
        long.grow(PACKET * 99, PACKET);
        assert_eq!(long.in_flight, before);
    }
}
