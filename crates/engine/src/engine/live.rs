//! What is different where a live stream is sent.
//!
//! A stream sends at rates of its own, which are friendly to TCP on every set of paths that share a bottleneck
//! [Pluntke2011 §2 eq. 1]: by them, and not by their windows, its paths are held together. Windows that are coupled as
//! well would hold it back twice: what it leaves unused makes them grow slowly, and coupled ones more slowly still. So
//! each path has a window of its own, as for a TCP alone, and the groups that were found are the stream's.
//!
//! A transfer beside it has no such rates: it takes what the windows let out. So windows are coupled while they hold one back.
//!
//! The detector hears all delays of a stream. It has to hear them where others fill the queue: an encoder keeps below
//! its windows, and the optimum moves what it sends from one path to another. Where nobody else does, pictures fill and
//! empty the queues of all paths at once, and paths are taken for one that are none. This costs little: a stream that
//! loses nothing is bound by the sum of its windows, whatever its groups are, and where it loses something, on paths that
//! are no group, its rates move to some of them, and their queues go apart. Until they have, its budget is lower.

use core::time::Duration;

use fairpath_core::{Bitrate, Groups, PathId, Timestamp};

use super::Engine;

/// A transfer beside a stream that was not held back for so long is over, or less than the windows let out. It is the
/// least timeout of TCP [RFC6298 §2.4].
const TRANSFER_OVER: Duration = Duration::from_secs(1);

impl Engine {
    /// A live stream is sent from now on, whose sender keeps its rates friendly within [`groups`](Engine::groups).
    pub fn set_live(&mut self) {
        self.is_live = true;
        self.couple();
    }

    /// Data waits for windows that is not the stream's: of a transfer beside it.
    #[inline]
    pub fn on_transfer_held_back(&mut self, now: Timestamp) {
        if self.is_live {
            let had_transfer = self.transfer_at.replace(now).is_some();
            if !had_transfer {
                self.couple();
            }
        }
    }

    /// Windows are no longer coupled where none of late held back anything but the stream.
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

    /// The rate that the path carries, where congestion control keeps its queue short and knows that nobody else fills
    /// it. A window says less: one that an encoder does not fill may be larger than what the path holds.
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

    /// A packet goes and is acknowledged after a round trip of `rtt_ms`.
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
            // Slow start ends, and then a full window of each is acknowledged.
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
            // A packet on each every 20 ms, now and then one after 150 ms without any: one queue that rises and falls.
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
