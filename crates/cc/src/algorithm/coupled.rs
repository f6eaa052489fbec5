//! COUPLED, the fully coupled algorithm: growth and reduction both follow the windows of the whole
//! group, so that only the least congested paths are used and the congestion is balanced as well as
//! it can be. It is slow to find a path again that it has left, and flaps between equally good ones.
//!
//! # Source
//!
//! \[NSDI2011\] §2.2, after \[KellyVoice2005\].
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | w_r | `Member::cwnd` | bytes |
//! | w_total | `Totals::cwnd` | bytes |
//!
//! # Deviations
//!
//! - The constants are those of TCP, 1 and 1/2, and not those of Scalable TCP, 0.01 and 1/8, which
//!   \[KellyVoice2005\] has: one path alone is then Reno.
//! - A window that would fall below one datagram stops there, or at the minimum window.
//! - No path grows faster than Reno would, also while another one recovers.

use fairpath_core::Bytes;

use super::{coupled_increase, reno};
use crate::aimd::{GroupView, Member, Rule, Totals};

/// The fully coupled algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coupled;

impl Rule for Coupled {
    type Memory = ();

    fn increase(&self, group: &GroupView<'_, ()>, acked: Bytes) -> f64 {
        coupled_increase(group, acked, gain)
    }

    fn decrease(&self, group: &GroupView<'_, ()>) -> f64 {
        match group.coupled_member() {
            Some(own) => own.cwnd - cut(&group.totals()),
            None => reno::halved(group.own()),
        }
    }

    /// One where the path is coupled: a path that is not worth using must cost little.
    fn min_ssthresh_datagrams(&self, group: &GroupView<'_, ()>, configured: u32) -> u32 {
        if group.is_coupled() { 1 } else { configured }
    }
}

/// What an acknowledged packet adds to the window, both in packets where the group is.
// [NSDI2011 §2.2]
//         1
//     ---------
//      w_total
pub fn gain<M>(own: &Member<'_, M>, group: &Totals) -> f64 {
    1.0 / group.cwnd.max(own.cwnd)
}

/// What a lost packet takes from the window, in the unit of the group's windows.
// [NSDI2011 §2.2]
//      w_total
//     ---------
//         2
pub fn cut(group: &Totals) -> f64 {
    group.cwnd / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    #[test]
    fn every_path_grows_by_one_packet_for_all_windows_together() {
        // w = (20, 10): 1/30 on both
        assert_near(growth(&mut in_avoidance(Coupled, &[(20, 100), (10, 50)]), 0, 100), 1.0 / 30.0);
        assert_near(growth(&mut in_avoidance(Coupled, &[(20, 100), (10, 50)]), 1, 50), 1.0 / 30.0);
    }

    #[test]
    fn congestion_takes_half_of_all_windows_from_one_path() {
        // 20 − 30/2 = 5; 10 − 30/2 < 1
        let mut coupled = in_avoidance(Coupled, &[(20, 100), (10, 50)]);
        coupled.on_congestion(path(0), &loss(11_000));
        assert_eq!((coupled.window(path(0)), coupled.window(path(1))), (PACKET * 5, PACKET * 10));
        let mut coupled = in_avoidance(Coupled, &[(20, 100), (10, 50)]);
        coupled.on_congestion(path(1), &loss(11_000));
        assert_eq!((coupled.window(path(0)), coupled.window(path(1))), (PACKET * 20, PACKET));
    }

    #[test]
    fn a_path_alone_is_reno() {
        let mut coupled = in_avoidance(Coupled, &[(20, 100)]);
        assert_near(growth(&mut coupled.clone(), 0, 100), 1.0 / 20.0);
        coupled.on_congestion(path(0), &loss(11_000));
        assert_eq!(coupled.window(path(0)), PACKET * 10);
    }
}
