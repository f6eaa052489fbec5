//! The paths as a recorder or a person may see them.

use core::time::Duration;

use fairpath_cc::Phase;
use fairpath_core::{Bitrate, ByteCount, GroupId, PathId, Rtt, Timestamp};
use fairpath_sched::Terms;

use super::Engine;
use crate::path::{Liveness, PathUse};

/// The state of a path for recorders and people.
#[derive(Clone, Copy, Debug)]
pub struct PathSnapshot {
    /// The path.
    pub path: PathId,
    /// The congestion window.
    pub window: ByteCount,
    /// The slow-start threshold; `None` while it is unlimited.
    pub ssthresh: Option<ByteCount>,
    /// The phase of congestion control.
    pub phase: Phase,
    /// How often a measured delay, and not a loss or a mark, has reduced the window.
    pub delay_cuts: u64,
    /// The bytes in flight.
    pub in_flight: ByteCount,
    /// The round-trip times; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// The newest one-way delay from here to the peer, less an unknown constant; `None` if the host
    /// does not report it.
    pub one_way: Option<Duration>,
    /// The newest delivery rate; `None` before the first sample.
    pub rate: Option<Bitrate>,
    /// The bytes delivered in all.
    pub delivered: ByteCount,
    /// The bytes lost in all.
    pub lost: ByteCount,
    /// The group the path is coupled with.
    pub group: GroupId,
    /// Whether the path can carry data, by its host and its terms.
    pub usable: bool,
    /// Whether it carries data only while no other path works.
    pub backup: bool,
    /// Its use, with the reason: by its host, and by the terms of both ends.
    pub path_use: PathUse,
    /// The terms of both ends together.
    pub terms: Terms,
    /// Whether the path answers.
    pub liveness: Liveness,
    /// The age of the newest acknowledged packet, which proves that the path worked then; `None` if
    /// there is none.
    pub proven: Option<Duration>,
}

impl PathSnapshot {
    /// Whether the path has owed an answer for more than two probe timeouts.
    pub fn is_silent(&self) -> bool {
        self.liveness == Liveness::Silent
    }
}

impl Engine {
    /// When the newest acknowledged packet of all open paths had left.
    pub fn proven_at(&self) -> Option<Timestamp> {
        self.paths.paths().filter_map(|path| self.paths.get(path)?.answers.proven_at).max()
    }

    /// Every path as a recorder may see it.
    pub fn snapshots(&self, now: Timestamp) -> impl Iterator<Item = PathSnapshot> + '_ {
        self.paths.paths().filter_map(move |path| self.snapshot(path, now))
    }

    /// A path as a recorder may see it; `None` for one that is not open.
    pub fn snapshot(&self, path: PathId, now: Timestamp) -> Option<PathSnapshot> {
        let state = self.paths.get(path)?;
        let control = self.controller.state(path)?;
        Some(PathSnapshot {
            path,
            window: control.window,
            ssthresh: control.ssthresh,
            phase: control.phase,
            delay_cuts: control.delay_cuts,
            in_flight: state.in_flight(),
            rtt: state.rtt.get(),
            one_way: state.one_way.get().map(|delay| delay.latest),
            rate: state.rate.last(),
            delivered: state.rate.delivered(),
            lost: state.lost,
            group: self.groups.of(path),
            usable: state.is_usable(),
            backup: state.is_backup(),
            path_use: state.path_use(),
            terms: state.terms(),
            liveness: state.liveness(now),
            proven: state.answers.proven_at.map(|at| now.since(at)),
        })
    }
}
