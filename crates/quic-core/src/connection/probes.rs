//! A path whose newest packets have no answer is asked for one, while the stack waits for that to older ones.

use fairpath_engine::PathId;
use web_time::Instant;

use super::Connection;

impl Connection {
    /// Probes the paths whose probes are due.
    pub(super) fn probe(&mut self, now: Instant) {
        while let Some((_, path)) = self.engine.probe_due().filter(|(at, _)| *at <= now) {
            self.engine.note_probe(path);
            self.ask(path);
        }
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
}
