//! Paths are asked for an answer: whose round-trip times are stale, where that remedy is on, and whose newest packets
//! have none while the stack waits for older ones.

use fairpath_engine::{Engine, PathId, Timestamp};
use web_time::Instant;

use super::Connection;

impl Connection {
    /// When the next path is to be probed. Only while the application has something under way: of a connection at rest
    /// the probe of each path would call for one of another, for ever.
    pub(super) fn probe_at(&self, now: Instant) -> Option<Instant> {
        if self.lanes.are_idle() {
            return None;
        }
        self.engine.instant(self.engine.with(now, |engine, _| engine.probe_at())?)
    }

    /// Probes the paths for which it is time.
    pub(super) fn probe(&mut self, now: Instant) {
        while let Some((_, path)) = self.engine.probe_due().filter(|(at, _)| *at <= now) {
            self.engine.note_probe(path);
            self.ask(path);
        }
        self.refresh(now);
    }

    /// Asks the path for an answer.
    fn ask(&mut self, path: PathId) {
        let Self { quic, policy: Some(policy), output, .. } = self else { return };
        let id = policy.open_paths().find(|(_, open)| *open == Some(path)).map(|(id, _)| id);
        if id.is_some_and(|id| quic.ping_path(id).is_ok()) {
            output.give_turn(path);
            output.look_again();
        }
    }

    /// Asks for new round-trip times.
    fn refresh(&mut self, now: Instant) {
        if self.probe_at(now).is_none_or(|at| at > now) {
            return;
        }
        let due = |engine: &mut Engine, at: Timestamp| {
            let path = engine.probe_due(at)?;
            engine.on_probed(path, at);
            Some(path)
        };
        while let Some(path) = self.engine.with(now, due) {
            self.ask(path);
        }
    }
}
