//! CUBIC: the window grows along a cubic function of the time since the last congestion, fast far
//! from the window where that happened and slowly near it, and never slower than Reno. It ignores
//! the other paths.
//!
//! # Source
//!
//! \[RFC9438\] CUBIC for Fast and Long-Distance Networks.
//!
//! # Symbols
//!
//! The equations are in segments and seconds; everything that is kept is in bytes, so that a change
//! of the datagram size does not change what was learned.
//!
//! | source | here | unit |
//! |---|---|---|
//! | cwnd | `PathWindow::cwnd` | bytes |
//! | W_max | `Curve::w_max` | bytes |
//! | cwnd_prior | `Curve::cwnd_prior` | bytes |
//! | W_est | `Epoch::w_est` | bytes |
//! | K | `Epoch::k_s` | s |
//! | t | `Epoch::elapsed_s` | s |
//! | C | `C` | segments/s³ |
//! | beta_cubic | `BETA` | 1 |
//! | alpha_cubic | `alpha` | 1 |
//!
//! # Deviations
//!
//! - The threshold is taken from the window, which [RFC9438 §4.6] allows where the window grows only
//!   while it is full.
//! - In the Reno-friendly region a window above W_est stays; [RFC9438 §4.3] would set it to W_est.
//! - One acknowledgement of many segments stops at the target, which the sum of its segments would
//!   overshoot.
//! - Where the window at the start of an epoch is not below W_max, because the minimum window held
//!   it up, it is taken for W_max with K = 0, as after a timeout.
//! - The time between a reduction and its undoing [RFC9438 §4.9.2] does not count as time of the epoch that
//!   is restored: the window was not that of the curve.

use core::cmp::Ordering;

use fairpath_core::{Ack, ByteCount, Timestamp};

use crate::aimd::{GroupView, PathWindow, Rule};

/// CUBIC, on each path by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cubic {
    /// Whether a window that did not reach the last W_max leaves room for new flows [RFC9438 §4.7].
    pub fast_convergence: bool,
}

impl Default for Cubic {
    fn default() -> Self {
        Self { fast_convergence: true }
    }
}

/// The memory of the last congestion, and of the growth since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Curve {
    /// `None` after a timeout: the window at which congestion avoidance begins will be it.
    w_max: Option<f64>,
    cwnd_prior: f64,
    /// `None` until the first growth of congestion avoidance.
    epoch: Option<Epoch>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    elapsed_s: f64,
    /// When the window was last known to be, or not to be, the limit.
    counted_until: Timestamp,
    k_s: f64,
    w_est: f64,
}

/// [RFC9438 §5], in segments/s³.
pub const C: f64 = 0.4;
/// [RFC9438 §4.6]
pub const BETA: f64 = 0.7;

/// The flow of a curve: the window of one path, or of several together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    /// In bytes.
    pub(super) cwnd: f64,
    /// The size of a full datagram, in bytes.
    pub(super) segment: f64,
}

impl Grown {
    fn of(window: &PathWindow) -> Self {
        Self { cwnd: window.cwnd(), segment: window.max_datagram() }
    }
}

impl Rule for Cubic {
    type Memory = Curve;
    type News = ();

    fn increase(&self, group: &impl GroupView<Curve>, acked: ByteCount) -> f64 {
        let own = group.own();
        // Without a sample the target is the curve now, not the curve a round trip ahead.
        let rtt_s = own.inverse_rtt().map_or(0.0, |inverse| 1.0 / inverse);
        group.own_memory().growth(Grown::of(own), rtt_s, acked.as_f64())
    }

    // [RFC9438 §4.6]
    //     ssthresh = cwnd * beta_cubic
    fn decrease(&self, group: &impl GroupView<Curve>) -> f64 {
        group.own().cwnd() * BETA
    }

    fn on_ack(&self, curve: &mut Curve, window: &PathWindow, ack: &Ack) {
        if window.may_grow(ack) && !window.in_slow_start() {
            curve.count(Grown::of(window), ack, ack.bytes.as_f64());
        } else if let Some(epoch) = &mut curve.epoch {
            epoch.counted_until = ack.now;
        }
    }

    fn on_reduced(&self, curve: &mut Curve, window: &PathWindow, _now: Timestamp) {
        *curve = curve.reduced(window.cwnd(), BETA, self.fast_convergence);
    }

    // [RFC9438 §4.8]
    fn on_collapsed(&self, curve: &mut Curve) {
        curve.forget();
    }

    // [RFC9438 §4.9.2]
    fn on_undone(&self, curve: &mut Curve, before: &Curve) {
        *curve = *before;
    }
}

impl Curve {
    /// By how many bytes the window grows for `acked` bytes.
    pub(super) fn growth(&self, grown: Grown, rtt_s: f64, acked: f64) -> f64 {
        let (Some(epoch), Some(w_max)) = (self.epoch, self.w_max) else { return 0.0 };
        let segment = grown.segment;
        let (cwnd, w_max, w_est) = (grown.cwnd / segment, w_max / segment, epoch.w_est / segment);
        let growth = if w_cubic(epoch.elapsed_s, epoch.k_s, w_max) < w_est {
            (w_est - cwnd).max(0.0)
        } else {
            let target = target(w_cubic(epoch.elapsed_s + rtt_s, epoch.k_s, w_max), cwnd);
            towards(target, cwnd, acked / segment)
        };
        growth * segment
    }

    /// Counts an acknowledgement of `acked` bytes that lets the window grow; with the first of them an epoch
    /// begins.
    pub(super) fn count(&mut self, grown: Grown, ack: &Ack, acked: f64) {
        match &mut self.epoch {
            Some(epoch) => epoch.count(ack),
            None => self.begin(grown, ack.now),
        }
        if let Some(epoch) = &mut self.epoch {
            let alpha = alpha(epoch.w_est, self.cwnd_prior);
            epoch.w_est += reno_step(alpha, acked, grown.cwnd, grown.segment);
        }
    }

    /// The curve after a reduction from `cwnd` bytes to the part `left` of it.
    pub(super) fn reduced(&self, cwnd: f64, left: f64, fast_convergence: bool) -> Self {
        let w_max = match self.w_max {
            Some(last) if fast_convergence => converged(cwnd, last, left),
            _ => cwnd,
        };
        Self { w_max: Some(w_max), cwnd_prior: cwnd, epoch: None }
    }

    /// Nothing is known any more of where the network was full.
    pub(super) fn forget(&mut self) {
        self.w_max = None;
        self.epoch = None;
    }

    /// The order of two curves that began alike: the one in which more has been counted is greater.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let counted = |curve: &Self| curve.epoch.map(|epoch| (epoch.counted_until, epoch.elapsed_s, epoch.w_est));
        let known = |curve: &Self| (counted(curve), curve.w_max, curve.cwnd_prior);
        known(self).partial_cmp(&known(other)).unwrap_or(Ordering::Equal)
    }

    fn begin(&mut self, grown: Grown, now: Timestamp) {
        let Grown { cwnd, segment } = grown;
        let w_max = self.w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        self.w_max = Some(w_max);
        self.epoch =
            Some(Epoch { elapsed_s: 0.0, counted_until: now, k_s: k(w_max / segment, cwnd / segment), w_est: cwnd });
    }
}

impl Epoch {
    /// Counts the time in which the window was the limit; the rest does not count [RFC9438 §5.8].
    /// The news of an acknowledgement goes back to the sending of its packet, not through an idle
    /// time before that.
    fn count(&mut self, ack: &Ack) {
        let limited = ack.now.since(self.counted_until).min(ack.now.since(ack.sent_at));
        self.elapsed_s += limited.as_secs_f64();
        self.counted_until = ack.now;
    }
}

// [RFC9438 §4.2]
//     W_cubic(t) = C * (t - K)^3 + W_max
fn w_cubic(t_s: f64, k_s: f64, w_max: f64) -> f64 {
    let distance = t_s - k_s;
    C * distance * distance * distance + w_max
}

// [RFC9438 §4.2]
//              /  W_max - cwnd_epoch
//     K =  3  /  --------------------
//           \/            C
fn k(w_max: f64, cwnd_epoch: f64) -> f64 {
    libm::cbrt((w_max - cwnd_epoch) / C)
}

// [RFC9438 §4.2]
//              / cwnd               if W_cubic(t + RTT) < cwnd
//     target = | 1.5 * cwnd         if W_cubic(t + RTT) > 1.5 * cwnd
//              \ W_cubic(t + RTT)   otherwise
fn target(w_cubic: f64, cwnd: f64) -> f64 {
    w_cubic.clamp(cwnd, 1.5 * cwnd)
}

// [RFC9438 §4.4], for each segment acknowledged
//      target - cwnd
//     ---------------
//          cwnd
fn towards(target: f64, cwnd: f64, segments_acked: f64) -> f64 {
    let distance = target - cwnd;
    (distance / cwnd * segments_acked).min(distance)
}

// [RFC9438 §4.3]
//                         segments_acked
//     alpha_cubic * ----------------------
//                             cwnd
// In bytes: bytes_acked * max_datagram for segments_acked, and cwnd in bytes.
fn reno_step(alpha: f64, acked: f64, cwnd: f64, max_datagram: f64) -> f64 {
    alpha * acked * max_datagram / cwnd
}

// [RFC9438 §4.3], and 1 from where W_est has reached cwnd_prior
//                         1 - beta_cubic
//     alpha_cubic = 3 * ----------------
//                         1 + beta_cubic
fn alpha(w_est: f64, cwnd_prior: f64) -> f64 {
    if w_est >= cwnd_prior { 1.0 } else { 3.0 * (1.0 - BETA) / (1.0 + BETA) }
}

// [RFC9438 §4.7]
//             / cwnd * ( 1 + beta_cubic ) / 2   if cwnd < W_max
//     W_max = |
//             \ cwnd                            otherwise
// `left` is beta_cubic.
fn converged(cwnd: f64, w_max: f64, left: f64) -> f64 {
    if cwnd < w_max { cwnd * (1.0 + left) / 2.0 } else { cwnd }
}

#[cfg(test)]
mod tests {
    use fairpath_core::Congestion;

    use super::*;
    use crate::testing::*;
    use crate::{Aimd, Controller};

    /// Acknowledges each packet of the window in each of `rounds` round trips of 100 ms, one
    /// millisecond after `start_ms`.
    fn run(cubic: &mut Aimd<Cubic>, start_ms: u64, rounds: u64) -> f64 {
        for round in 0..rounds {
            for _ in 0..cubic.window(path(0)) / PACKET {
                cubic.on_ack(path(0), &ack(start_ms + 1 + round * 100, PACKET, 100));
            }
        }
        packets(cubic)
    }

    fn packets(cubic: &Aimd<Cubic>) -> f64 {
        cubic.window(path(0)).as_f64() / PACKET.as_f64()
    }

    /// One path that met congestion at 100 packets, at 11 s.
    fn reduced_from_100() -> Aimd<Cubic> {
        let mut cubic = Aimd::new(Cubic::default(), IN_PACKETS);
        cubic.on_path_opened(path(0), PACKET, Timestamp::ZERO);
        cubic.on_ack(path(0), &ack(1_000, PACKET * 99, 100));
        cubic.on_congestion(path(0), &loss(11_000));
        cubic
    }

    #[test]
    fn the_curve_starts_at_the_reduced_window_and_levels_out_at_the_old_one() {
        // cwnd 100 at the loss: W_max = 100, cwnd = 70, K = ∛(30/0.4) = 4.2172 s
        let k_s = k(100.0, 70.0);
        assert_near(k_s, 4.217_163);
        assert_near(w_cubic(0.0, k_s, 100.0), 70.0);
        assert_near(w_cubic(k_s, k_s, 100.0), 100.0);
        // 1 s past K: 100 + 0.4 · 1³
        assert_near(w_cubic(k_s + 1.0, k_s, 100.0), 100.4);
    }

    #[test]
    fn congestion_at_100_packets_leaves_70_and_the_window_is_back_after_k_seconds() {
        let mut cubic = reduced_from_100();
        assert_near(packets(&cubic), 70.0);
        // 43 round trips of 0.1 s: 4.2 s after the first of them, which is K. The window follows the
        // curve one round trip ahead, and a round trip behind.
        let window = run(&mut cubic, 11_100, 43);
        assert!((99.5..100.5).contains(&window), "{window}");
        // Convex from there: 3 s later 100 + 0.4 · 3³ = 110.8, but Reno's estimate grows faster:
        // 0.53 to 1 packet for each of 72 round trips.
        assert!(run(&mut cubic, 15_400, 30) > 110.0);
    }

    #[test]
    fn a_second_congestion_below_the_first_leaves_room_for_new_flows() {
        // cwnd 70 < W_max 100: W_max = 70 · 1.7/2 = 59.5
        assert_near(converged(70.0, 100.0, BETA), 59.5);
        assert_near(converged(100.0, 70.0, BETA), 100.0);
    }

    #[test]
    fn the_window_never_grows_by_more_than_half_per_round_trip() {
        assert_near(target(1000.0, 100.0), 150.0);
        assert_near(target(90.0, 100.0), 100.0);
        // 400 segments in one acknowledgement stop at the target: (150 − 100)/100 · 400 = 200 > 50
        assert_near(towards(150.0, 100.0, 400.0), 50.0);
        assert_near(towards(150.0, 100.0, 1.0), 0.5);
    }

    #[test]
    fn a_small_window_grows_as_reno_does() {
        // 9/17 per round trip up to cwnd_prior, then 1
        assert_near(alpha(9.0, 10.0), 9.0 / 17.0);
        assert_near(alpha(10.0, 10.0), 1.0);
        let mut cubic = Aimd::new(Cubic::default(), IN_PACKETS);
        cubic.on_path_opened(path(0), PACKET, Timestamp::ZERO);
        cubic.on_ack(path(0), &ack(1_000, PACKET * 9, 10));
        cubic.on_congestion(path(0), &loss(2_000));
        // 7 packets, round trips of 10 ms: the curve needs ∛(3/0.4) = 1.96 s to get back to 10,
        // Reno's estimate about 6 round trips.
        for round in 0..12 {
            for _ in 0..cubic.window(path(0)) / PACKET {
                cubic.on_ack(path(0), &ack(2_100 + round * 10, PACKET, 10));
            }
        }
        assert!(packets(&cubic) > 10.0, "{}", packets(&cubic));
    }

    #[test]
    fn time_without_data_does_not_count() {
        let (mut busy, mut idle) = (reduced_from_100(), reduced_from_100());
        run(&mut busy, 11_100, 10);
        run(&mut idle, 11_100, 10);
        // A pause of 100 s counts as the one round trip that its first acknowledgement vouches for.
        assert_eq!(run(&mut busy, 12_100, 10), run(&mut idle, 112_100, 10));
        // So does a time in which acknowledgements come but the window is not the limit.
        let mut limited = reduced_from_100();
        run(&mut limited, 11_100, 10);
        for second in 13..100 {
            limited.on_ack(path(0), &Ack { window_limited: false, ..ack(second * 1000, PACKET, 100) });
        }
        assert!(run(&mut limited, 112_100, 10) <= packets(&busy));
    }

    #[test]
    fn after_a_timeout_the_curve_is_level_where_slow_start_ends() {
        let mut cubic = reduced_from_100();
        cubic.on_congestion(path(0), &Congestion { persistent: true, ..loss(12_000) });
        assert_near(packets(&cubic), 1.0);
        // ssthresh = 0.7 · 70 = 49; K = 0: after 1 s the curve is at 49 + 0.4, Reno's estimate at
        // 49 + 10 · 9/17 = 54.3
        cubic.on_ack(path(0), &ack(13_000, PACKET * 48, 100));
        assert_near(packets(&cubic), 49.0);
        let window = run(&mut cubic, 13_100, 11);
        assert!((53.5..55.5).contains(&window), "{window}");
    }
}
