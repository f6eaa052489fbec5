//! LIA, the Linked Increases Algorithm: the paths of a group together take as much as one TCP would
//! on the best of them. Growth is coupled and favours the less congested paths; each path halves
//! by itself.
//!
//! # Source
//!
//! \[RFC6356\] Coupled Congestion Control for Multipath Transport Protocols.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | cwnd_i | `Member::cwnd` | bytes |
//! | rtt_i | one over `Member::inverse_rtt` | s |
//! | MSS_i | `max_datagram` | bytes |
//! | cwnd_total | `Totals::cwnd` | bytes |
//! | alpha | `alpha` | 1 |
//!
//! # Deviations
//!
//! - alpha is computed for each acknowledgement and not once per round trip [RFC6356 §4.1]: it is
//!   cheap, and never stale.
//! - A path that is alone grows by Reno's formula itself, of which the coupled one is an identity
//!   only up to rounding.

use fairpath_core::ByteCount;

use super::{coupled_increase, reno};
use crate::aimd::{GroupView, Member, Rule, Totals};

/// The Linked Increases Algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lia;

impl Rule for Lia {
    type Memory = ();
    type News = ();

    fn increase(&self, group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        coupled_increase(group, acked, gain)
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        reno::halved(group.own())
    }
}

// [RFC6356 §3 eq. 2]
//                             max_i ( cwnd_i / rtt_i^2 )
//     alpha = cwnd_total * -------------------------------
//                            ( sum_i ( cwnd_i / rtt_i ) )^2
fn alpha(group: &Totals) -> f64 {
    group.cwnd * group.rate_over_rtt_max / (group.rate * group.rate)
}

/// The packets that an acknowledged packet adds to the window, in packets where the group is.
// [RFC6356 §3 eq. 1], without the factor bytes_acked * MSS_i that both have
//            alpha * bytes_acked * MSS_i     bytes_acked * MSS_i
//     min ( ----------------------------- , --------------------- )
//                    cwnd_total                    cwnd_i
pub fn gain<M>(own: &Member<'_, M>, group: &Totals) -> f64 {
    (alpha(group) / group.cwnd).min(1.0 / own.cwnd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    #[test]
    fn two_paths_of_equal_rate_over_rtt_grow_alike() {
        // w = (20, 10), rtt = (0.1, 0.05): w/rtt = (200, 200), w/rtt² = (2000, 4000)
        // alpha = 30 · 4000 / 400² = 0.75; growth = min(0.75/30, 1/w) = 0.025 on both
        for id in [0, 1] {
            let mut lia = in_avoidance(Lia, &[(20, 100), (10, 50)]);
            assert_near(growth(&mut lia, id, [100, 50][id as usize]), 0.025);
        }
    }

    #[test]
    fn alpha_is_the_worked_example() {
        let group = Totals { cwnd: 30.0, rate: 400.0, rate_over_rtt_max: 4000.0, ..Totals::default() };
        assert_eq!(alpha(&group), 0.75);
    }

    #[test]
    fn two_equal_paths_each_grow_a_quarter_as_fast() {
        // alpha = 20 · 1000 / 200² = 0.5; growth = 0.5/20 = 0.025, where Reno's is 1/10
        let mut lia = in_avoidance(Lia, &[(10, 100), (10, 100)]);
        assert_near(growth(&mut lia, 0, 100), 0.025);
    }

    #[test]
    fn no_path_grows_faster_than_one_alone() {
        // w = (100, 1), rtt = (1, 0.01): w/rtt = (100, 100), w/rtt² = (100, 10⁴)
        // coupled: 10⁴/200² = 0.25 on both; the cap of the first is 1/100
        let lia = in_avoidance(Lia, &[(100, 1000), (1, 10)]);
        assert_near(growth(&mut lia.clone(), 0, 1000), 0.01);
        assert_near(growth(&mut lia.clone(), 1, 10), 0.25);
    }

    #[test]
    fn congestion_halves_only_the_path_it_met() {
        let mut lia = in_avoidance(Lia, &[(20, 100), (10, 50)]);
        lia.on_congestion(path(0), &loss(11_000));
        assert_eq!((lia.window(path(0)), lia.window(path(1))), (PACKET * 10, PACKET * 10));
    }
}
