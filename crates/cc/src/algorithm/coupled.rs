//! COUPLED, the fully coupled algorithm: growth and reduction both follow the windows of the whole
//! group. So only the least congested paths are used, and the congestion is balanced as well as it
//! can be. It is slow to find a path again that it has left, and flaps between equally good ones.
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
//! - The constants are those of TCP, 1 and 1/2, so that one path alone is Reno. \[KellyVoice2005\] has
//!   those of Scalable TCP, 0.01 and 1/8: [`CoupledConstants`] has both.
//! - A window that would fall below one datagram stops there, or at the minimum window.
//! - With the constants of TCP no path grows faster than Reno would, also while another one recovers.

use fairpath_core::ByteCount;

use super::{coupled_increase, reno};
use crate::aimd::{GroupView, Member, Rule, Totals};

/// The fully coupled algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coupled {
    /// The constants of growth and reduction.
    pub constants: CoupledConstants,
}

/// The constants of growth and reduction in the fully coupled algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CoupledConstants {
    /// By 1/w_total of a packet for each that is acknowledged, and half of w_total for a loss.
    #[default]
    Tcp,
    /// By a hundredth of a packet, and an eighth of w_total, which is that of the path where it is alone: what
    /// the algorithm was first stated with.
    Scalable,
}

impl Rule for Coupled {
    type Memory = ();
    type News = ();

    fn increase(&self, group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        match self.constants {
            CoupledConstants::Tcp => coupled_increase(group, acked, gain),
            CoupledConstants::Scalable => scalable_gain() * acked.as_f64(),
        }
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        match (self.constants, group.coupled_member()) {
            (CoupledConstants::Tcp, Some(own)) => own.cwnd - cut(&group.totals()),
            (CoupledConstants::Tcp, None) => reno::halved(group.own()),
            (CoupledConstants::Scalable, Some(own)) => own.cwnd - scalable_cut(group.totals().cwnd),
            (CoupledConstants::Scalable, None) => group.own().cwnd() - scalable_cut(group.own().cwnd()),
        }
    }

    /// One where the path is coupled: a path that is not worth using must cost little.
    fn min_ssthresh_datagrams(&self, group: &impl GroupView<()>, configured: u32) -> u32 {
        if group.is_coupled() { 1 } else { configured }
    }
}

/// The packets that an acknowledged packet adds to the window, in packets where the group is.
// [NSDI2011 §2.2]
//         1
//     ---------
//      w_total
pub fn gain<M>(own: &Member<'_, M>, group: &Totals) -> f64 {
    1.0 / group.cwnd.max(own.cwnd)
}

/// The part that a lost packet takes from the window, in the unit of the group's windows.
// [NSDI2011 §2.2]
//      w_total
//     ---------
//         2
pub fn cut(group: &Totals) -> f64 {
    group.cwnd / 2.0
}

/// The packets that an acknowledged packet adds to the window.
// [KellyVoice2005], as [htsim] has it
//     a = 0.01
fn scalable_gain() -> f64 {
    0.01
}

/// The part that a lost packet takes from the window, in the unit of the group's windows.
// [KellyVoice2005], as [htsim] has it
//     b * w_total, b = 1/8
fn scalable_cut(cwnd_total: f64) -> f64 {
    cwnd_total / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    #[test]
    fn every_path_grows_by_one_packet_for_all_windows_together() {
        // w = (20, 10): 1/30 on both
        assert_near(growth(&mut in_avoidance(Coupled::default(), &[(20, 100), (10, 50)]), 0, 100), 1.0 / 30.0);
        assert_near(growth(&mut in_avoidance(Coupled::default(), &[(20, 100), (10, 50)]), 1, 50), 1.0 / 30.0);
    }

    #[test]
    fn congestion_takes_half_of_all_windows_from_one_path() {
        // 20 − 30/2 = 5; 10 − 30/2 < 1
        let mut coupled = in_avoidance(Coupled::default(), &[(20, 100), (10, 50)]);
        coupled.on_congestion(path(0), &loss(11_000));
        assert_eq!((coupled.window(path(0)), coupled.window(path(1))), (PACKET * 5, PACKET * 10));
        let mut coupled = in_avoidance(Coupled::default(), &[(20, 100), (10, 50)]);
        coupled.on_congestion(path(1), &loss(11_000));
        assert_eq!((coupled.window(path(0)), coupled.window(path(1))), (PACKET * 20, PACKET));
    }

    #[test]
    fn the_first_constants_are_those_of_scalable_tcp() {
        let mut coupled = crate::Aimd::new(Coupled { constants: CoupledConstants::Scalable }, IN_PACKETS);
        for (id, packets) in [(0, 40), (1, 16)] {
            coupled.on_path_opened(path(id), PACKET, fairpath_core::Timestamp::ZERO);
            coupled.on_ack(path(id), &fairpath_core::Ack { rtt: None, ..ack(1_000, PACKET * (packets - 1), 100) });
            coupled.on_congestion(path(id), &loss(2_000));
        }
        // Alone, before there are samples: 40 · 7/8 = 35 and 16 · 7/8 = 14.
        assert_eq!((coupled.window(path(0)), coupled.window(path(1))), (PACKET * 35, PACKET * 14));
        for id in 0..2 {
            coupled.on_ack(path(id), &ack(10_000, ByteCount::ZERO, 100));
            assert_near(growth(&mut coupled.clone(), id, 100), 0.01);
        }
        // 35 − 49/8 = 28.875
        coupled.on_congestion(path(0), &loss(11_000));
        assert_eq!(coupled.window(path(0)), ByteCount::new(28_875_000));
    }

    #[test]
    fn a_path_alone_is_reno() {
        let mut coupled = in_avoidance(Coupled::default(), &[(20, 100)]);
        assert_near(growth(&mut coupled.clone(), 0, 100), 1.0 / 20.0);
        coupled.on_congestion(path(0), &loss(11_000));
        assert_eq!(coupled.window(path(0)), PACKET * 10);
    }
}
