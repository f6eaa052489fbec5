//! OLIA, the Opportunistic Linked Increases Algorithm: couples the paths of a group so that the
//! congestion is balanced as well as it can be, and still probes each path. The first term of its
//! growth finds the optimum, the second moves traffic from the paths with the largest windows to
//! better ones whose windows are still small.
//!
//! # Source
//!
//! \[OLIA\] draft-khalili-mptcp-congestion-control-05.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | w_r | `Member::cwnd` | bytes |
//! | rtt_r | one over `Member::inverse_rtt` | s |
//! | MSS_r | `max_datagram` | bytes |
//! | l1_r | `Delivered::between_losses` | bytes |
//! | l2_r | `Delivered::since_loss` | bytes |
//! | l_r | `Delivered::estimate` | bytes |
//! | best_paths | within `BEST_TOLERANCE` of `Survey::metric_max` | |
//! | max_w_paths | at `Survey::whole_datagrams_max` | |
//! | collected_paths | best and not max_w | |
//! | n | `Survey::paths` | 1 |
//! | alpha_r | `alpha` | 1 |
//!
//! # Deviations
//!
//! - The best paths are those with the largest l/rtt² and not, as the draft writes, l²/rtt:
//!   [`PathMetric`] says why and has both.
//! - A loss moves l2 to l1 only if something was acknowledged since the last one. A burst of losses
//!   would otherwise set l1 to zero, and the path would count as the worst.
//! - The largest windows are compared in whole datagrams and the best paths with a tolerance: equal
//!   is what integers would call equal, and rounding does not decide.
//! - The sets are formed for each acknowledgement and not once per round trip [OLIA §4].
//! - A window that α shrinks below the slow-start threshold stays out of slow start: the threshold
//!   goes with it. The Linux kernel on which the sources measured leaves the threshold where it is.
//!   It grows as in slow start up to and including the threshold, so the next acknowledgement gives
//!   back what α took there. [`Olia::keeps_threshold`] does the same, and `olia/sensitivity` shows
//!   the difference.
//! - A path that is alone is Reno, with Reno's least threshold.

use fairpath_core::{Ack, ByteCount, Timestamp};

use super::reno;
use crate::aimd::{GroupView, Member, PathWindow, Rule};

/// The Opportunistic Linked Increases Algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Olia {
    /// The measure by which a path is the best.
    pub metric: PathMetric,
    /// Whether the slow-start threshold stays where it is when α shrinks a window, and a window at its threshold
    /// grows as in slow start.
    pub keeps_threshold: bool,
}

/// The measure by which a path is the best, where l is how much it delivers between losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathMetric {
    /// l/rtt²: orders the paths by the rate √(2l)/rtt that a TCP would have on them, which is the
    /// draft's own reason, and what is deployed.
    #[default]
    LOverRttSq,
    /// l²/rtt: as the draft writes it.
    LSqOverRtt,
}

/// How much a path delivers between losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    between_losses: ByteCount,
    since_loss: ByteCount,
}

impl Delivered {
    // [OLIA §2]
    //     l_r = max{ l1_r, l2_r }
    fn estimate(&self) -> f64 {
        self.between_losses.max(self.since_loss).as_f64()
    }
}

impl Rule for Olia {
    type Memory = Delivered;
    type News = ();

    fn increase(&self, group: &impl GroupView<Delivered>, acked: ByteCount) -> f64 {
        match group.own_member() {
            Some(own) if group.is_coupled() => {
                let survey = Survey::of(group, self.metric);
                let alpha = survey.alpha(group, &own);
                (optimum(&own, survey.rate) + alpha / own.cwnd) * acked.as_f64() * own.max_datagram
            }
            _ => reno::increase(group.own(), acked),
        }
    }

    fn decrease(&self, group: &impl GroupView<Delivered>) -> f64 {
        reno::halved(group.own())
    }

    /// One where the path is coupled [OLIA §3]: a path that is not worth using must cost little.
    fn min_ssthresh_datagrams(&self, group: &impl GroupView<Delivered>, configured: u32) -> u32 {
        if group.is_coupled() { 1 } else { configured }
    }

    fn lowers_threshold(&self) -> bool {
        !self.keeps_threshold
    }

    fn on_ack(&self, delivered: &mut Delivered, _window: &PathWindow, ack: &Ack) {
        delivered.since_loss += ack.bytes;
    }

    fn on_reduced(&self, delivered: &mut Delivered, _window: &PathWindow, _now: Timestamp) {
        if delivered.since_loss > ByteCount::ZERO {
            *delivered = Delivered { between_losses: delivered.since_loss, since_loss: ByteCount::ZERO };
        }
    }

    fn on_undone(&self, delivered: &mut Delivered, before: &Delivered) {
        // Without the loss that was none the count goes on where it was.
        let since_loss = before.since_loss + delivered.since_loss;
        *delivered = Delivered { between_losses: before.between_losses, since_loss };
    }
}

/// Two metrics whose ratio is closer to one than this are equal.
const BEST_TOLERANCE: f64 = 1e-9;

// [OLIA §2]; which of the two, see `PathMetric`
//     l_r / rtt_r^2        l_r^2 / rtt_r
fn metric(path: &Member<'_, Delivered>, metric: PathMetric) -> f64 {
    let delivered = path.memory.estimate();
    match metric {
        PathMetric::LOverRttSq => delivered * path.inverse_rtt * path.inverse_rtt,
        PathMetric::LSqOverRtt => delivered * delivered * path.inverse_rtt,
    }
}

/// The packets that an acknowledged packet adds to the window without the term that moves windows between paths, in
/// packets where the group is.
// [OLIA §3], the first term
//            w_r / rtt_r^2
//     -------------------------
//      ( sum_p w_p / rtt_p )^2
pub fn optimum<M>(own: &Member<'_, M>, rate_sum: f64) -> f64 {
    own.rate() * own.inverse_rtt / (rate_sum * rate_sum)
}

/// Sums over the whole group, for the equations.
#[derive(Clone, Copy, Debug)]
struct Survey {
    which: PathMetric,
    paths: u32,
    /// sum_p w_p / rtt_p, in bytes per second.
    rate: f64,
    whole_datagrams_max: f64,
    metric_max: f64,
}

impl Survey {
    fn of(group: &impl GroupView<Delivered>, which: PathMetric) -> Self {
        let (mut paths, mut rate, mut datagrams_max, mut metric_max) = (0, 0.0, 0.0f64, 0.0f64);
        for path in group.members() {
            paths += 1;
            rate += path.rate();
            datagrams_max = datagrams_max.max(path.datagrams());
            metric_max = metric_max.max(metric(&path, which));
        }
        Self { which, paths, rate, whole_datagrams_max: datagrams_max.floor(), metric_max }
    }

    // [OLIA §2]
    //                      1
    //     alpha_r = + -----------------------    if r is in collected_paths
    //                  n * |collected_paths|
    //
    //                      1
    //             = - -------------------        if r is in max_w_paths and collected_paths is not empty
    //                  n * |max_w_paths|
    //
    //             = 0                            otherwise
    fn alpha(&self, group: &impl GroupView<Delivered>, own: &Member<'_, Delivered>) -> f64 {
        let (own_is_largest, own_is_best) = (self.is_largest(own), self.is_best(own));
        if !own_is_largest && !own_is_best {
            return 0.0;
        }
        let (mut collected, mut largest) = (0, 0);
        for path in group.members() {
            let is_largest = self.is_largest(&path);
            largest += u32::from(is_largest);
            collected += u32::from(!is_largest && self.is_best(&path));
        }
        match (collected, own_is_largest) {
            (0, _) => 0.0,
            (_, true) => -1.0 / f64::from(self.paths * largest),
            (_, false) => 1.0 / f64::from(self.paths * collected),
        }
    }

    /// ⌊w⌋ ≥ ⌊max w⌋ in datagrams, which is w ≥ ⌊max w⌋.
    fn is_largest(&self, path: &Member<'_, Delivered>) -> bool {
        path.datagrams() >= self.whole_datagrams_max
    }

    fn is_best(&self, path: &Member<'_, Delivered>) -> bool {
        metric(path, self.which) >= self.metric_max * (1.0 - BEST_TOLERANCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{Aimd, Controller};

    /// Two paths of this (window, round-trip time in ms, packets delivered between losses).
    fn two_paths(metric: PathMetric, paths: [(u64, u64, u64); 2]) -> Aimd<Olia> {
        with(Olia { metric, ..Olia::default() }, paths)
    }

    fn with(olia: Olia, paths: [(u64, u64, u64); 2]) -> Aimd<Olia> {
        let mut olia = in_avoidance(olia, &paths.map(|(packets, rtt_ms, _)| (packets, rtt_ms)));
        for (id, (_, rtt_ms, delivered)) in (0..).zip(paths) {
            // Not limited by the window: delivered, and no growth.
            olia.on_ack(path(id), &Ack { window_limited: false, ..ack(10_000, PACKET * delivered, rtt_ms) });
        }
        olia
    }

    #[test]
    fn a_good_path_with_a_small_window_takes_from_the_largest() {
        // w = (20, 10), rtt = (0.1, 0.05), (Σ w/rtt)² = 400² = 160,000.
        // best = {1}: 1000/0.05² > 1000/0.1²; max_w = {0}; alpha = (−1/2, +1/2).
        // growth = (2000/160,000 − 0.5/20, 4000/160,000 + 0.5/10) = (−0.0125, 0.075).
        let both = [(20, 100, 1000), (10, 50, 1000)];
        assert_near(growth(&mut two_paths(PathMetric::default(), both), 0, 100), -0.0125);
        assert_near(growth(&mut two_paths(PathMetric::default(), both), 1, 50), 0.075);
    }

    #[test]
    fn slow_start_takes_back_what_alpha_took_where_the_threshold_stays() {
        // As above, but that the window of 20 is at its threshold: it grows by the packet that is acknowledged, and
        // then shrinks as it should.
        let both = [(20, 100, 1000), (10, 50, 1000)];
        let mut lowers = two_paths(PathMetric::default(), both);
        assert_near(growth(&mut lowers, 0, 100), -0.0125);
        assert!(growth(&mut lowers, 0, 100) < -0.012);
        let mut keeps = with(Olia { keeps_threshold: true, ..Olia::default() }, both);
        assert_near(growth(&mut keeps, 0, 100), 1.0);
        let shrunk: Vec<f64> = (0..100).map(|_| growth(&mut keeps, 0, 100)).collect();
        assert!(shrunk[0] < -0.01 && shrunk.iter().any(|one| *one > 0.9), "{shrunk:?}");
    }

    #[test]
    fn nothing_moves_while_the_best_path_has_the_largest_window() {
        // best = max_w = {0}: 10,000/0.1² > 1000/0.05², so alpha = 0 on both
        let both = [(20, 100, 10_000), (10, 50, 1000)];
        assert_near(growth(&mut two_paths(PathMetric::default(), both), 0, 100), 0.0125);
        assert_near(growth(&mut two_paths(PathMetric::default(), both), 1, 50), 0.025);
    }

    #[test]
    fn the_two_metrics_disagree_where_they_should() {
        // l = (100, 60), rtt = (0.1, 0.05): l/rtt² = (10⁴, 2.4·10⁴), l²/rtt = (10⁵, 7.2·10⁴).
        // w = (20, 10): the first metric takes from path 0 for path 1, the second sees path 0 both
        // best and largest.
        let both = [(20, 100, 100), (10, 50, 60)];
        assert_near(growth(&mut two_paths(PathMetric::LOverRttSq, both), 1, 50), 0.025 + 0.05);
        assert_near(growth(&mut two_paths(PathMetric::LSqOverRtt, both), 1, 50), 0.025);
    }

    #[test]
    fn two_equal_paths_are_both_best_and_both_largest() {
        // (10/0.1²)/(200²) = 0.025 and alpha = 0
        let both = [(10, 100, 1000), (10, 100, 1000)];
        assert_near(growth(&mut two_paths(PathMetric::default(), both), 0, 100), 0.025);
    }

    #[test]
    fn windows_that_differ_by_less_than_a_packet_are_equally_large() {
        let mut olia = two_paths(PathMetric::default(), [(10, 100, 1000), (10, 100, 3000)]);
        // Path 1 is best, and grows to 10.025 packets: still as large as path 0 in whole ones, so it
        // is not collected, and path 0 is not made to give way.
        assert_near(growth(&mut olia, 1, 100), 0.025);
        assert!(growth(&mut olia, 0, 100) > 0.024);
    }

    #[test]
    fn a_burst_of_losses_does_not_make_a_path_look_bad() {
        let mut delivered = Delivered { between_losses: PACKET, since_loss: PACKET * 40 };
        let window = PathWindow::new(&IN_PACKETS, PACKET);
        Olia::default().on_reduced(&mut delivered, &window, Timestamp::ZERO);
        Olia::default().on_reduced(&mut delivered, &window, Timestamp::ZERO);
        assert_eq!(delivered.estimate(), (PACKET * 40).as_f64());
    }

    #[test]
    fn the_threshold_goes_down_to_one_packet_only_where_paths_are_coupled() {
        let config = crate::AimdConfig { initial_window_datagrams: 2, min_ssthresh_datagrams: 2, ..IN_PACKETS };
        let mut olia = Aimd::new(Olia::default(), config);
        olia.on_path_opened(path(0), PACKET, Timestamp::ZERO);
        olia.on_ack(path(0), &Ack { window_limited: false, ..ack(1_000, PACKET, 100) });
        olia.on_congestion(path(0), &loss(2_000));
        assert_eq!(olia.window(path(0)), PACKET * 2);
        olia.on_path_opened(path(1), PACKET, Timestamp::ZERO);
        olia.on_ack(path(1), &Ack { window_limited: false, ..ack(3_000, PACKET, 100) });
        olia.on_congestion(path(0), &loss(4_000));
        assert_eq!(olia.window(path(0)), PACKET);
    }

    #[test]
    fn a_window_that_gives_way_stops_where_it_is_as_small_as_the_smallest() {
        // Path 1 is a hundred times as fast, so the first term of path 0 is next to nothing:
        // 3/203² − 0.5/3. It ends between one packet and two, as large as path 1 in whole packets.
        let mut olia = two_paths(PathMetric::default(), [(3, 1000, 10), (2, 10, 100_000)]);
        olia.on_congestion(path(1), &loss(11_000));
        for step in 0..1000 {
            olia.on_ack(path(0), &ack(12_000 + step, PACKET, 1000));
        }
        assert!((PACKET..PACKET * 2).contains(&olia.window(path(0))), "{}", olia.window(path(0)));
    }
}
