//! Streams do not wait for a path that falls silent until it is known to be dead.

use std::num::NonZeroUsize;
use web_time::{Duration, Instant};

use fairpath_engine::{Liveness, PathId as EnginePath, PathSnapshot};
use noq_proto::Transmit;

use super::Connection;
use super::queue::Queued;
use crate::adapter::Gate;

/// The least time between two looks that acknowledgements ask for: a look costs more than an acknowledgement.
const RESCUES_APART: Duration = Duration::from_millis(5);

impl Connection {
    /// Something was acknowledged. A stream may wait for another piece now, or the path that answered has room for copies.
    pub(super) fn rescue_streams_again(&mut self, now: Instant) {
        if now >= self.rescue_at {
            self.rescue_streams(now);
        }
    }

    /// Where the answer of a path is late and another path answers, what streams wait for is copied; once the path is
    /// suspected, all that streams have on it is sent again. Health comes to the same later, when the path is to be closed
    /// or kept as a backup (600 ms), which costs more where it was wrong.
    pub(super) fn rescue_streams(&mut self, now: Instant) {
        self.rescue_at = now + RESCUES_APART;
        let used = self.lanes.streams.paths_in_use();
        if used.is_empty() {
            return;
        }
        let paths: Vec<(EnginePath, Liveness)> = self.engine.with(now, |engine, at| {
            let open = engine.snapshots(at).filter(|path| path.usable || used.contains(&path.path));
            open.map(|path| (path.path, path.liveness)).collect()
        });
        let does_any_answer = paths.iter().any(|(_, liveness)| *liveness == Liveness::Alive);
        for (path, liveness) in paths.into_iter().filter(|(path, _)| used.contains(path)) {
            if liveness == Liveness::Silent && does_any_answer {
                self.lanes.streams.resend(path);
            }
            self.lanes.streams.note_late(path, liveness != Liveness::Alive && does_any_answer);
        }
    }

    /// The next copy of what a stream waits for, on the quickest path that has room and answers.
    pub(super) fn emit_rescue(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if !self.lanes.streams.has_rescue() || !self.output.is_clear() {
            return None;
        }
        let path = self.engine.with(now, |engine, at| {
            let paths = engine.snapshots(at).filter(|path| path.usable).collect::<Vec<_>>();
            let is_alive = |one: &PathSnapshot| one.liveness == Liveness::Alive;
            let free = paths.into_iter().filter(|one| is_alive(one) && engine.verdict(one.path, at).may_send);
            free.min_by_key(|one| one.rtt.map(|rtt| rtt.smoothed)).map(|one| one.path)
        })?;
        let (datagram, load) = self.lanes.next_rescue(path)?;
        if !self.put(datagram, Queued::Load(load)) {
            return None;
        }
        self.engine.open_gate(Gate::Only(path));
        self.emit(now, NonZeroUsize::MIN, buffer)
    }
}
