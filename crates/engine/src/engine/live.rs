//! The differences for live streams.
//!
//! A stream sends at rates of its own, which are friendly to TCP on every set of paths that share a
//! bottleneck [Pluntke2011 §2 eq. 1]. These rates couple its paths, and not its windows. Coupled
//! windows would hold it back twice: the unused part of a window makes it grow slowly, and coupling
//! makes it grow more slowly still. So each path has a window of its own, as for a TCP alone, and
//! the stream uses the detected groups.
//!
//! A transfer beside it has no such rates and takes what the windows allow. So windows are coupled
//! while they hold a transfer back.
//!
//! The detector hears all delays of a stream. They are needed where other traffic fills the queue:
//! an encoder stays below its windows, and the optimum moves its data from one path to another.
//! Without other traffic, pictures fill and empty the queues of all paths at once, and separate
//! paths look shared. This costs little: a stream without losses is bound by the sum of its
//! windows, whatever its groups are. After losses on paths that are no group, its rates move to
//! some of them, and their queues diverge. Until then its budget is lower.

use core::time::Duration;

use fairpath_core::{Bitrate, Groups, PathId, Timestamp};

use super::Engine;

/// A transfer beside a stream is over, or below its windows, once it was not held back for this
/// long: the least timeout of TCP [RFC6298 §2.4].
const TRANSFER_OVER: Duration = Duration::from_secs(1);

impl Engine {
    /// Declares that a live stream is sent from now on. Its sender keeps its rates friendly within
    /// [`groups`](Engine::groups).
    pub fn set_live(&mut self) {
        self.is_live = true;
        self.couple();
    }

    /// Data of a transfer beside the stream waits for windows.
    #[inline]
    pub fn on_transfer_held_back(&mut self, now: Timestamp) {
        if self.is_live {
            let had_transfer = self.transfer_at.replace(now).is_some();
            if !had_transfer {
                self.couple();
            }
        }
    }

    /// Decouples the windows once they have held back nothing but the stream for a while.
    #[inline]
    pub(super) fn forget_transfer(&mut self, now: Timestamp) {
        if self.transfer_at.is_some_and(|at| now.since(at) > TRANSFER_OVER) {
            self.transfer_at = None;
            self.couple();
        }
    }

    /// Tells the controller which windows are coupled.
    pub(super) fn couple(&mut self) {
        match self.is_live && self.transfer_at.is_none() {
            true => self.controller.on_groups(&Groups::default()),
            false => self.controller.on_groups(&self.groups),
        }
    }

    /// The bottleneck's service rate for the path, if congestion control keeps its queue short and
    /// knows that no other flow fills it. A window tells less: without an encoder that fills it, it
    /// may exceed the path's capacity.
    pub fn served(&self, path: PathId) -> Option<Bitrate> {
        self.controller.served(path)
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::tests::{MTU, engine, ms, path};
    use crate::config::{Coupling, EngineConfig};
    use crate::engine::Engine;
    use crate::path::PathUse;

    /// A packet is sent, and acknowledged after a round trip of `rtt_ms`.
    fn round(engine: &mut Engine, id: u32, number: u64, at_ms: u64, rtt_ms: u64) {
        engine.on_sent(path(id), number, MTU, ms(at_ms));
        engine.on_ack(path(id), number, ms(at_ms + rtt_ms));
        engine.on_ack_end(path(id), Duration::ZERO, ms(at_ms + rtt_ms));
    }

    #[test]
    fn paths_of_one_group_have_windows_of_their_own() {
        let after_a_loss = |is_live: bool| {
            let mut engine = engine("min_rtt", Coupling::Always);
            if is_live {
                engine.set_live();
            }
            engine.on_path_opened(path(2), MTU, ms(0));
            engine.set_use(path(2), PathUse::Open);
            // Slow start ends, and then a full window of the last path is acknowledged.
            for id in 0..3 {
                round(&mut engine, id, 0, 0, 50);
                engine.on_sent(path(id), 1, MTU, ms(60));
                engine.on_lost(path(id), 1, ms(110));
                engine.on_congestion(path(id), fairpath_core::CongestionSignal::Loss, ms(60), false, ms(110));
            }
            let before = engine.verdict(path(2), ms(200)).window;
            for number in 2..102 {
                engine.on_sent(path(2), number, MTU, ms(200));
            }
            engine.on_fully_used(path(2), ms(200));
            for number in 2..102 {
                engine.on_ack(path(2), number, ms(250));
            }
            engine.on_ack_end(path(2), Duration::ZERO, ms(250));
            assert!(engine.groups().together(path(0), path(2)), "what was found is told all the same");
            engine.verdict(path(2), ms(250)).window.as_f64() - before.as_f64()
        };
        let (coupled, own) = (after_a_loss(false), after_a_loss(true));
        assert!(coupled > 0.0 && own > 2.0 * coupled, "{own} for {coupled} bytes");
    }

    #[test]
    fn a_transfer_beside_a_stream_is_coupled_until_it_is_over() {
        let mut engine = engine("min_rtt", Coupling::Always);
        engine.set_live();
        let is_coupled = |engine: &Engine| engine.transfer_at.is_some();
        assert!(!is_coupled(&engine));
        engine.on_transfer_held_back(ms(100));
        engine.poll(ms(600));
        assert!(is_coupled(&engine));
        engine.on_transfer_held_back(ms(1_000));
        engine.poll(ms(2_000));
        assert!(is_coupled(&engine));
        engine.poll(ms(2_001));
        assert!(!is_coupled(&engine));
    }

    #[test]
    fn delays_of_a_stream_that_is_far_below_its_windows_are_heard() {
        let confidence = |is_live: bool| {
            let config = EngineConfig { coupling: Coupling::Auto, ..EngineConfig::live() };
            let mut engine = config.build().unwrap();
            for id in 0..2 {
                engine.on_path_opened(path(id), MTU, ms(0));
                engine.set_use(path(id), PathUse::Open);
            }
            if is_live {
                engine.set_live();
            }
            // A packet on each path every 20 ms, with regular pauses of 150 ms: one queue that
            // rises and falls.
            let times = (0..20_000).step_by(20).filter(|at| at % 500 > 150);
            for (number, at) in (0..).zip(times) {
                let waits = (at as f64 / 700.0).sin().mul_add(20.0, 30.0) as u64;
                (0..2).for_each(|id| round(&mut engine, id, number, at, 40 + 10 * u64::from(id) + waits));
            }
            engine.pair_verdicts()[0].confidence
        };
        assert!((confidence(false) - 0.5).abs() < 1e-9, "nothing is known: {}", confidence(false));
        assert!(confidence(true) > 0.9, "{}", confidence(true));
    }
}
