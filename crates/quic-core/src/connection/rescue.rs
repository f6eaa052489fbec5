//! Streams do not wait for a path that falls silent until it is known to be dead.

use std::num::NonZeroUsize;
use web_time::{Duration, Instant};

use fairpath_engine::{ByteCount, Liveness, PathId as EnginePath, PathMap, PathSnapshot, Timestamp};
use noq_proto::Transmit;

use super::Connection;
use super::queue::Queued;
use crate::adapter::Gate;

/// The least time between two looks that acknowledgements ask for: a look costs more than an acknowledgement.
const RESCUES_APART: Duration = Duration::from_millis(5);

/// Paths whose answers are late, and since when.
#[derive(Debug, Default)]
pub(super) struct LatePaths(PathMap<Timestamp>);

impl LatePaths {
    /// Whether the path answers. Where it was late, only an acknowledgement of a packet that left since counts. The
    /// acknowledgements of all paths may have taken a path that went dark. Those that come at last on another one tell how
    /// the path was before.
    fn judge(&mut self, path: &PathSnapshot, now: Timestamp) -> Liveness {
        let is_answered = |since: Timestamp| path.proven.is_some_and(|age| now.since(since) > age);
        if self.0.get(path.path).is_some_and(|since| is_answered(*since)) || path.in_flight == ByteCount::ZERO {
            self.0.remove(path.path);
        }
        if path.liveness != Liveness::Alive && !self.0.contains(path.path) {
            self.0.insert(path.path, now);
        }
        if self.0.contains(path.path) { path.liveness.max(Liveness::Late) } else { path.liveness }
    }

    /// Nothing will be heard of the path any more.
    pub(super) fn forget(&mut self, path: EnginePath) {
        self.0.remove(path);
    }
}

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
        let late = &mut self.late;
        let paths: Vec<(EnginePath, Liveness)> = self.engine.with(now, |engine, at| {
            let open = engine.snapshots(at).filter(|path| path.usable || used.contains(&path.path));
            open.map(|path| (path.path, late.judge(&path, at))).collect()
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

#[cfg(test)]
mod tests {
    use fairpath_engine::EngineConfig;

    use super::*;

    #[test]
    fn a_path_is_late_until_something_is_answered_that_left_since() {
        let (ms, path) = (Timestamp::from_millis, EnginePath::new(0));
        let mut engine = EngineConfig::default().build().expect("the default");
        let size = ByteCount::new(1_200);
        engine.on_path_opened(path, size, ms(0));
        engine.on_sent(path, 0, size, ms(0));
        let seen = engine.snapshot(path, ms(0)).expect("a path");
        let mut late = LatePaths::default();
        // In order: the time, how the engine has it, when the newest packet left that was answered, and what is in flight.
        use Liveness::{Alive, Late, Silent};
        for (at, liveness, answered, in_flight, expected) in [
            (100, Alive, 50, size, Alive),
            (300, Late, 90, size, Late),
            (400, Alive, 110, size, Late),
            (500, Silent, 110, size, Silent),
            (600, Alive, 301, size, Alive),
            (900, Late, 301, size, Late),
            (1_000, Alive, 301, ByteCount::ZERO, Alive),
        ] {
            let proven = Some(ms(at).since(ms(answered)));
            let path = PathSnapshot { liveness, proven, in_flight, ..seen };
            assert_eq!(late.judge(&path, ms(at)), expected, "at {at} ms");
        }
    }
}
