//! BALIA, the Balanced Linked Adaptation Algorithm: couples both growth and reduction, so as to be
//! friendly to single-path TCP and yet quick to respond. A path that is slower than the fastest of
//! its group grows and shrinks more strongly than in LIA.
//!
//! # Source
//!
//! \[BALIA\] draft-walid-mptcp-congestion-control-04.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | w_r | `Member::cwnd` | bytes |
//! | rtt_r | one over `Member::inverse_rtt` | s |
//! | x_r | `Member::rate` | bytes/s |
//! | alpha_r | `alpha` | 1 |
//!
//! # Deviations
//!
//! - A path that is alone is Reno, with Reno's least threshold.

use fairpath_core::ByteCount;

use super::{coupled_increase, reno};
use crate::aimd::{GroupView, Member, Rule, Totals};

/// The Balanced Linked Adaptation Algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balia;

impl Rule for Balia {
    type Memory = ();
    type News = ();

    fn increase(&self, group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        coupled_increase(group, acked, gain)
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        match group.coupled_member() {
            Some(own) => own.cwnd - cut(&own, &group.totals()),
            None => reno::halved(group.own()),
        }
    }

    /// One where the path is coupled [BALIA §2].
    fn min_ssthresh_datagrams(&self, group: &impl GroupView<()>, configured: u32) -> u32 {
        if group.is_coupled() { 1 } else { configured }
    }
}

// [BALIA §2]
//                max_k x_k
//     alpha_r = -----------
//                   x_r
fn alpha<M>(own: &Member<'_, M>, group: &Totals) -> f64 {
    group.rate_max / own.rate()
}

/// The packets that an acknowledged packet adds to the window, in packets where the group is.
// [BALIA §2]
//             x_r            1 + alpha_r     4 + alpha_r
//     ------------------- * ------------- * -------------
//      rtt_r (sum x_k)^2          2               5
pub fn gain<M>(own: &Member<'_, M>, group: &Totals) -> f64 {
    let alpha = alpha(own, group);
    own.rate() * own.inverse_rtt / (group.rate * group.rate) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0)
}

/// The part that a lost packet takes from the window, in the unit of the group's windows.
// [BALIA §2]
//      w_r
//     ----- * min{ alpha_r, 1.5 }
//       2
pub fn cut<M>(own: &Member<'_, M>, group: &Totals) -> f64 {
    own.cwnd / 2.0 * alpha(own, group).min(1.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    /// By how many packets congestion shrinks the window of `id`.
    fn lost(paths: &[(u64, u64)], id: u32) -> f64 {
        let mut balia = in_avoidance(Balia, paths);
        balia.on_congestion(path(id), &loss(11_000));
        paths[id as usize].0 as f64 - balia.window(path(id)).as_f64() / PACKET.as_f64()
    }

    #[test]
    fn paths_of_equal_rate_grow_by_the_optimum_term_and_halve() {
        // w = (20, 10), rtt = (0.1, 0.05): x = (200, 200), alpha = 1;
        // growth = (200/(0.1 · 400²), 200/(0.05 · 400²)) = (0.0125, 0.025)
        let paths = [(20, 100), (10, 50)];
        assert_near(growth(&mut in_avoidance(Balia, &paths), 0, 100), 0.0125);
        assert_near(growth(&mut in_avoidance(Balia, &paths), 1, 50), 0.025);
        assert_near(lost(&paths, 0), 10.0);
        assert_near(lost(&paths, 1), 5.0);
    }

    #[test]
    fn a_slower_path_grows_and_shrinks_more_strongly() {
        // w = (20, 5), rtt = 0.1: x = (200, 50), alpha = (1, 4).
        // growth = 200/(0.1 · 250²) = 0.032, and 50/(0.1 · 250²) · 5/2 · 8/5 = 0.032.
        // reduction = 20/2 · 1 = 10, and 5/2 · min(4, 1.5) = 3.75.
        let paths = [(20, 100), (5, 100)];
        assert_near(growth(&mut in_avoidance(Balia, &paths), 0, 100), 0.032);
        assert_near(growth(&mut in_avoidance(Balia, &paths), 1, 100), 0.032);
        assert_near(lost(&paths, 0), 10.0);
        assert_near(lost(&paths, 1), 3.75);
    }

    #[test]
    fn the_threshold_goes_down_to_one_packet_only_where_paths_are_coupled() {
        // alpha = 10: 2 − 2/2 · 1.5 = 0.5, held at one packet
        assert_near(lost(&[(20, 100), (2, 100)], 1), 1.0);
        let mut alone = in_avoidance(Balia, &[(20, 100)]);
        alone.on_congestion(path(0), &loss(11_000));
        assert_eq!(alone.window(path(0)), PACKET * 10);
    }
}
