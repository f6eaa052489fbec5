//! EWTCP, Equally-Weighted TCP: each path is a TCP that grows more slowly, so that all of a group
//! together take as much of a shared bottleneck as one TCP. No path knows how congested the others
//! are, so nothing is moved to better ones.
//!
//! # Source
//!
//! \[NSDI2011\] §2.1, after M. Honda et al.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | w_r | `Member::cwnd` | bytes |
//! | a | `Ewtcp::increase` | 1 |
//! | n | `Totals::paths` | 1 |
//!
//! # Deviations
//!
//! - a is 1/n² unless it is set. n flows that each grow by a per round trip and halve have windows of
//!   √(2a/p), which add up to one TCP's √(2/p) where a = 1/n².
//! - A path that is alone is Reno, whatever a is.

use fairpath_core::ByteCount;

use super::{coupled_increase, reno};
use crate::aimd::{GroupView, Member, Rule, Totals};

/// Equally-Weighted TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ewtcp {
    /// How many packets a path grows per round trip, where Reno grows by one. `None`: 1/n² for n
    /// paths.
    pub increase: Option<f64>,
}

impl Rule for Ewtcp {
    type Memory = ();
    type News = ();

    fn increase(&self, group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        coupled_increase(group, acked, |own, totals| gain(own, totals, self.increase))
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        reno::halved(group.own())
    }
}

/// The packets that an acknowledged packet adds to the window, in packets where the group is.
// [NSDI2011 §2.1]
//       a
//     -----
//      w_r
pub fn gain<M>(own: &Member<'_, M>, group: &Totals, increase: Option<f64>) -> f64 {
    let n = f64::from(group.paths);
    increase.unwrap_or(1.0 / (n * n)) / own.cwnd
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    #[test]
    fn two_paths_each_grow_a_quarter_as_fast_as_reno() {
        // w = (20, 10): (1/4)/20 = 0.0125, (1/4)/10 = 0.025
        assert_near(growth(&mut in_avoidance(Ewtcp::default(), &[(20, 100), (10, 50)]), 0, 100), 0.0125);
        assert_near(growth(&mut in_avoidance(Ewtcp::default(), &[(20, 100), (10, 50)]), 1, 50), 0.025);
    }

    #[test]
    fn the_increase_can_be_set_and_does_not_reach_a_path_that_is_alone() {
        let half = Ewtcp { increase: Some(0.5) };
        assert_near(growth(&mut in_avoidance(half, &[(20, 100), (10, 50)]), 0, 100), 0.5 / 20.0);
        assert_near(growth(&mut in_avoidance(half, &[(20, 100)]), 0, 100), 1.0 / 20.0);
    }

    #[test]
    fn congestion_halves_only_the_path_it_met() {
        let mut ewtcp = in_avoidance(Ewtcp::default(), &[(20, 100), (10, 50)]);
        ewtcp.on_congestion(path(0), &loss(11_000));
        assert_eq!((ewtcp.window(path(0)), ewtcp.window(path(1))), (PACKET * 10, PACKET * 10));
    }
}
