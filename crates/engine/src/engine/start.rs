//! How paths start of which nothing is known, as far as the engine has to do with it: see `joint_start`.

use fairpath_cc::{ControlState, Phase};
use fairpath_core::{Groups, PathId, Timestamp};

use super::{Engine, SURELY_SEPARATE};
use crate::joint_start::JointStart;

impl Engine {
    /// The first slow start of a path ends with what is told now, if it has not ended yet.
    pub(super) fn end_start(&mut self, path: PathId, now: Timestamp) {
        let Self { joint_start: Some(start), paths, .. } = self else { return };
        start.on_end(path, now, |path| paths.get(path)?.rtt.get());
        self.regroup(None);
    }

    /// Looks whether a slow start has ended without a loss, and whether paths have proved separate.
    #[inline]
    pub(super) fn settle_start(&mut self, now: Timestamp) {
        let Self { joint_start: Some(start), controller, detector, paths, .. } = self else { return };
        let has_ended = |path: &&PathId| controller.state(**path).is_some_and(|state| !starts(&state));
        let ended = start.starting().iter().find(has_ended).copied();
        start.update(now, |members| {
            let is_separate = |low, high| members.contains(&low) && members.contains(&high);
            let verdicts = detector.verdicts();
            verdicts.iter().any(|pair| pair.confidence < SURELY_SEPARATE && is_separate(pair.paths.0, pair.paths.1))
        });
        let is_silent = |path| paths.get(path).is_some_and(|state| state.suspected(now));
        start.on_silent(is_silent);
        if let Some(path) = ended {
            self.end_start(path, now);
        }
    }

    /// Tells the controller of another partition, if there is one.
    #[inline]
    pub(super) fn regroup(&mut self, found: Option<Groups>) {
        if found.is_none() && self.joint_start.is_none() {
            return;
        }
        let is_new = found.is_some() || self.joint_start.as_ref().is_some_and(JointStart::has_news);
        if let Some(found) = found {
            self.groups = found;
        }
        if is_new && !self.is_live {
            let joined = self.joint_start.as_mut().map(|start| start.joined(&self.groups));
            self.controller.on_groups(joined.as_ref().unwrap_or(&self.groups));
        }
    }
}

/// Whether a path is in its first slow start.
fn starts(state: &ControlState) -> bool {
    state.phase == Phase::SlowStart && state.ssthresh.is_none()
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::{Bytes, CongestionSignal};

    use super::super::tests::{MTU, ms, path};
    use super::*;
    use crate::config::{Coupling, EngineConfig};

    /// Ten packets go and are answered after `rtt_ms`, so that the window doubles.
    fn round(engine: &mut Engine, id: u32, first: u64, at_ms: u64, rtt_ms: u64) {
        (first..first + 10).for_each(|number| engine.on_sent(path(id), number, MTU, ms(at_ms)));
        engine.on_fully_used(path(id), ms(at_ms));
        (first..first + 10).for_each(|number| engine.on_ack(path(id), number, ms(at_ms + rtt_ms)));
        engine.on_ack_end(path(id), Duration::ZERO, ms(at_ms + rtt_ms));
    }

    /// What the second path has after its next acknowledgement, in parts of what it had, where the first one loses a
    /// packet while its own packets wait for 50 ms and those of the second for so long.
    fn left_of_the_second(waits_ms: u64, joint_start: bool) -> f64 {
        let congestion = "coupled_cubic".into();
        let config = EngineConfig { congestion, coupling: Coupling::Auto, joint_start, ..EngineConfig::default() };
        let mut engine = config.build().unwrap();
        for id in 0..2 {
            engine.on_path_opened(path(id), MTU, ms(0));
            engine.set_usable(path(id), true);
            round(&mut engine, id, 0, 0, 40);
        }
        round(&mut engine, 0, 10, 100, 90);
        round(&mut engine, 1, 10, 100, 40 + waits_ms);
        engine.on_sent(path(0), 20, MTU, ms(200));
        engine.on_sent(path(1), 20, MTU, ms(200));
        let before: Bytes = engine.verdict(path(1), ms(200)).window;
        engine.on_lost(path(0), 20, ms(290));
        engine.on_congestion(path(0), CongestionSignal::Loss, ms(200), false, ms(290));
        engine.on_ack(path(1), 20, ms(290));
        engine.on_ack_end(path(1), Duration::ZERO, ms(290));
        assert!(!engine.groups().together(path(0), path(1)), "nothing was found");
        engine.verdict(path(1), ms(290)).window.as_f64() / before.as_f64()
    }

    #[test]
    fn paths_that_meet_one_queue_end_slow_start_as_one_flow() {
        // The group is left with 0.7, of which the path that lost gives up a part: 0.7 · 1.15.
        for waits_ms in [45, 50, 60] {
            assert!((left_of_the_second(waits_ms, true) - 0.805).abs() < 0.001, "{waits_ms}");
        }
    }

    #[test]
    fn a_path_without_that_queue_goes_on_as_it_would_by_itself() {
        for waits_ms in [0, 20, 100] {
            assert_eq!(left_of_the_second(waits_ms, true), left_of_the_second(waits_ms, false), "{waits_ms}");
        }
        assert!(left_of_the_second(50, false) >= 1.0);
    }
}
