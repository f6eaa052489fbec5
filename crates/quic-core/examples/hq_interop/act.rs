//! An act of a server on one of the paths, so that its peer's side of it is tried too.

use std::time::{Duration, Instant};

use fairpath_quic_core::{Connection, PathReport, PathState};

/// The least that was acknowledged on each path before the act, in bytes: slow start is over by then.
const ACT_AFTER: u64 = 250_000;

/// How long acknowledgements of what was in flight are waited for at most.
const GRACE: Duration = Duration::from_secs(3);

/// The most that a path without data has acknowledged, in bytes: probes and keep-alives.
const IDLE_MAX: u64 = 20_000;

/// An act on the first path of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Act {
    /// It is closed.
    Abandon,
    /// It becomes a backup.
    Status,
}

/// How far an act on one connection is.
#[derive(Debug)]
pub(crate) struct Acting {
    act: Act,
    acted: Option<Instant>,
    /// The paths when acknowledgements of what was in flight had come.
    settled: Option<Vec<PathReport>>,
    /// The paths as they were last, the first one first.
    last: Vec<PathReport>,
}

impl Acting {
    pub(crate) fn new(act: Act) -> Self {
        Self { act, acted: None, settled: None, last: Vec::new() }
    }

    /// Does what is due on a connection that lives.
    pub(crate) fn go_on(&mut self, connection: &mut Connection, now: Instant) {
        connection.measure(now);
        self.last = connection.paths();
        let Some(acted) = self.acted else {
            let has_carried = |path: &PathReport| path.state == PathState::Open && path.acked.get() >= ACT_AFTER;
            if self.last.len() > 1
                && self.last.iter().all(has_carried)
                && let Some(PathReport { local: Some(local), remote, .. }) = self.last.first()
            {
                match self.act {
                    Act::Abandon => connection.close_path(*local, *remote, now),
                    Act::Status => connection.set_path_backup(*local, *remote, true, now),
                };
                self.acted = Some(now);
            }
            return;
        };
        let in_flight = self.last.first().and_then(|path| path.snapshot).map_or(0, |path| path.in_flight.get());
        if self.settled.is_none() && (in_flight < IDLE_MAX || now > acted + GRACE) {
            self.settled = Some(self.last.clone());
        }
    }

    /// A line on how it went, once the connection is over.
    pub(crate) fn judge(&self) -> String {
        let name = match self.act {
            Act::Abandon => "abandon",
            Act::Status => "status",
        };
        match self.verdict() {
            Ok(words) => format!("{name}: passed: {words}"),
            Err(words) => format!("{name}: failed: {words}"),
        }
    }

    fn verdict(&self) -> Result<String, String> {
        if self.acted.is_none() {
            return Err(format!("no two paths were open with {ACT_AFTER} B acknowledged on each"));
        }
        let Some(settled) = &self.settled else {
            return Err("the connection ended right after the act: take larger files".to_owned());
        };
        let grew = |at: usize| {
            let before = settled.get(at).map_or(0, |path| path.acked.get());
            self.last[at].acked.get().saturating_sub(before)
        };
        let (first, others) = (grew(0), (1..self.last.len()).map(grew).sum::<u64>());
        let path = &self.last[0];
        // The peer may open the path again, with another id.
        let again = if path.opened > 1 { ", opened again by the peer" } else { "" };
        let words = format!("the first path is {}{again}, {first} B on it since, {others} B on the others", path.state);
        let is_free = first < IDLE_MAX.max(others / 20);
        let is_right = others > IDLE_MAX
            && match self.act {
                Act::Abandon => path.opened > 1 || path.state == PathState::Closed && is_free,
                Act::Status => path.state != PathState::Closed && path.opened == 1 && is_free,
            };
        if is_right { Ok(words) } else { Err(words) }
    }
}
