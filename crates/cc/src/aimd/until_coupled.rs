//! Two rules in one: a path that is alone follows the first, and paths that are coupled follow the second.
//!
//! The published coupled rules are Reno on a path that is alone. Hosts whose single-path congestion
//! control is another one, as the CUBIC of Linux and of QUIC, run that until a shared bottleneck is found.

use fairpath_core::{Ack, ByteCount, Timestamp};

use super::group_view::Projected;
use super::{Adjustment, Followed, GroupView, PathWindow, Rule};

/// A rule for paths that are alone, and one for paths that are coupled. Windows, thresholds and
/// recovery are kept when a path goes from one to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UntilCoupled<A, C> {
    /// The rule of a path whose group has no other path.
    pub alone: A,
    /// The rule of the others.
    pub coupled: C,
}

/// The memory of both rules of a path.
#[derive(Clone, Debug, Default)]
pub struct Both<A, C> {
    alone: A,
    coupled: C,
    is_coupled: bool,
    /// How often the path went from one rule to the other.
    changes: u32,
}

impl<A, C> Both<A, C> {
    fn alone(&self) -> &A {
        &self.alone
    }

    fn coupled(&self) -> &C {
        &self.coupled
    }
}

impl<A: Rule, C: Rule> Rule for UntilCoupled<A, C> {
    type Memory = Both<A::Memory, C::Memory>;
    type News = C::News;

    fn increase(&self, group: &impl GroupView<Self::Memory>, acked: ByteCount) -> f64 {
        if group.is_coupled() {
            self.coupled.increase(&Projected { view: group, part: Both::coupled }, acked)
        } else {
            self.alone.increase(&Projected { view: group, part: Both::alone }, acked)
        }
    }

    fn decrease(&self, group: &impl GroupView<Self::Memory>) -> f64 {
        if group.is_coupled() {
            self.coupled.decrease(&Projected { view: group, part: Both::coupled })
        } else {
            self.alone.decrease(&Projected { view: group, part: Both::alone })
        }
    }

    fn min_ssthresh_datagrams(&self, group: &impl GroupView<Self::Memory>, configured: u32) -> u32 {
        if group.is_coupled() {
            self.coupled.min_ssthresh_datagrams(&Projected { view: group, part: Both::coupled }, configured)
        } else {
            self.alone.min_ssthresh_datagrams(&Projected { view: group, part: Both::alone }, configured)
        }
    }

    fn lowers_threshold(&self) -> bool {
        self.coupled.lowers_threshold()
    }

    fn on_delay(&self, group: &impl GroupView<Self::Memory>, ack: &Ack) -> Option<Adjustment<Self::Memory>> {
        let both = group.own_memory();
        if group.is_coupled() {
            let view = Projected { view: group, part: Both::coupled };
            let Adjustment { cwnd, memory } = self.coupled.on_delay(&view, ack)?;
            Some(Adjustment { cwnd, memory: Both { coupled: memory, ..both.clone() } })
        } else {
            let view = Projected { view: group, part: Both::alone };
            let Adjustment { cwnd, memory } = self.alone.on_delay(&view, ack)?;
            Some(Adjustment { cwnd, memory: Both { alone: memory, ..both.clone() } })
        }
    }

    fn news(&self, group: &impl GroupView<Self::Memory>) -> Option<C::News> {
        if group.is_coupled() { self.coupled.news(&Projected { view: group, part: Both::coupled }) } else { None }
    }

    fn follow(&self, both: &mut Self::Memory, window: &PathWindow, news: C::News) -> Option<Followed> {
        self.coupled.follow(&mut both.coupled, window, news)
    }

    /// The rule of paths that are alone begins anew with [`on_recoupled`](Self::on_recoupled): it need not hear of what
    /// comes before.
    fn on_ack(&self, both: &mut Self::Memory, window: &PathWindow, ack: &Ack) {
        if !both.is_coupled {
            self.alone.on_ack(&mut both.alone, window, ack);
        }
        self.coupled.on_ack(&mut both.coupled, window, ack);
    }

    fn on_reduced(&self, both: &mut Self::Memory, window: &PathWindow, now: Timestamp) {
        self.alone.on_reduced(&mut both.alone, window, now);
        self.coupled.on_reduced(&mut both.coupled, window, now);
    }

    fn on_collapsed(&self, both: &mut Self::Memory) {
        self.alone.on_collapsed(&mut both.alone);
        self.coupled.on_collapsed(&mut both.coupled);
    }

    /// A rule that follows the time since the last congestion, as CUBIC does, would take the window to where
    /// it would be had it not been another rule's meanwhile. It begins anew where the window is.
    fn on_recoupled(&self, both: &mut Self::Memory, coupled: bool) {
        both.alone = A::Memory::default();
        both.is_coupled = coupled;
        both.changes += 1;
        self.coupled.on_recoupled(&mut both.coupled, coupled);
    }

    fn on_undone(&self, both: &mut Self::Memory, before: &Self::Memory) {
        if both.changes == before.changes {
            self.alone.on_undone(&mut both.alone, &before.alone);
        }
        self.coupled.on_undone(&mut both.coupled, &before.coupled);
    }
}

#[cfg(test)]
mod tests {
    use fairpath_core::Groups;

    use super::*;
    use crate::testing::*;
    use crate::{Aimd, Controller, Cubic, Lia, Reno};

    type CubicUntilCoupled = Aimd<UntilCoupled<Cubic, Lia>>;

    fn packets(controller: &impl Controller) -> f64 {
        controller.window(path(0)).as_f64() / PACKET.as_f64()
    }

    /// Acknowledges the window in each of these round trips of 100 ms.
    fn run(controller: &mut impl Controller, start_ms: u64, rounds: u64) {
        for round in 0..rounds {
            for _ in 0..controller.window(path(0)) / PACKET {
                controller.on_ack(path(0), &ack(start_ms + round * 100, PACKET, 100));
            }
        }
    }

    /// Two paths in avoidance, path 0 with 100 packets after a loss at 200.
    fn two_paths() -> CubicUntilCoupled {
        let rule = UntilCoupled { alone: Cubic::default(), coupled: Lia };
        let mut controller = Aimd::new(rule, IN_PACKETS);
        for id in 0..2 {
            controller.on_path_opened(path(id), PACKET, Timestamp::ZERO);
            controller.on_ack(path(id), &ack(1_000, PACKET * 199, 100));
            controller.on_congestion(path(id), &loss(2_000));
            controller.on_ack(path(id), &Ack { window_limited: false, ..ack(10_000, ByteCount::ZERO, 100) });
        }
        controller
    }

    fn paths(together: bool) -> Groups {
        let both = [path(0), path(1)];
        if together { Groups::one(both) } else { Groups::singletons(both) }
    }

    #[test]
    fn a_path_alone_loses_three_tenths_and_a_coupled_one_half() {
        let mut controller = two_paths();
        // Both met their loss before the other had a sample, the second one while it was coupled.
        assert_near(packets(&controller), 140.0);
        controller.on_congestion(path(0), &loss(11_000));
        assert_near(packets(&controller), 70.0);
        controller.on_groups(&paths(false));
        controller.on_congestion(path(0), &loss(12_000));
        assert_near(packets(&controller), 49.0);
    }

    #[test]
    fn a_coupled_path_grows_as_lia_does() {
        // w = (140, 100), equal round-trip times: 140/240² for an acknowledged packet.
        assert_near(growth(&mut two_paths(), 0, 100), 140.0 / (240.0 * 240.0));
    }

    #[test]
    fn a_path_that_is_alone_again_goes_on_from_where_it_is() {
        let mut controller = two_paths();
        controller.on_groups(&paths(true));
        // A minute coupled, at a third of what CUBIC would have reached: C (t - K)³ is 0.4 · 50³.
        for second in 11..71 {
            controller.on_ack(path(0), &ack(second * 1000, PACKET, 100));
        }
        let before = packets(&controller);
        controller.on_groups(&paths(false));
        run(&mut controller, 71_000, 5);
        // One packet in a round trip at first, as Reno, and not up to half of the window.
        assert!((4.0..6.5).contains(&(packets(&controller) - before)), "{before} {}", packets(&controller));
        run(&mut controller, 71_500, 100);
        let mut reno = in_avoidance(Reno, &[(before.round() as u64, 100)]);
        run(&mut reno, 71_000, 105);
        assert!(packets(&controller) > packets(&reno), "{} {}", packets(&controller), packets(&reno));
    }

    #[test]
    fn a_partition_that_couples_the_same_paths_changes_nothing() {
        let mut told = two_paths();
        told.on_groups(&paths(false));
        let mut retold = told.clone();
        for step in 0..50 {
            told.on_ack(path(0), &ack(11_000 + 100 * step, PACKET, 100));
            retold.on_groups(&paths(false));
            retold.on_ack(path(0), &ack(11_000 + 100 * step, PACKET, 100));
        }
        assert_eq!(told.window(path(0)), retold.window(path(0)));
    }
}
