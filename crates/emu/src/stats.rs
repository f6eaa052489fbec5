//! The counters of an emulation.

use fairpath_core::PathId;
use fairpath_net::{Count, LinkStats};

use crate::timing::TimingReport;

/// A snapshot of everything that an emulation counts.
#[derive(Clone, Debug)]
pub struct EmulatorStats {
    /// The links, in the order in which they were added.
    pub links: Vec<LinkReport>,
    /// The paths, in order of their ids.
    pub paths: Vec<PathStats>,
    /// How late datagrams were released.
    pub timing: TimingReport,
}

impl EmulatorStats {
    /// The counters of `path`.
    ///
    /// # Panics
    ///
    /// If `path` is not of the emulation.
    pub fn path(&self, path: PathId) -> &PathStats {
        &self.paths[path.get() as usize]
    }

    /// The counters of the link of this name.
    pub fn link(&self, name: &str) -> Option<&LinkStats> {
        self.links.iter().find(|link| link.name == name).map(|link| &link.stats)
    }
}

/// The counters of a link.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Whether it is on.
    pub up: bool,
    /// Its counters, in IP packets.
    pub stats: LinkStats,
}

/// The counters of a path.
#[derive(Clone, Copy, Debug)]
pub struct PathStats {
    /// Whether it is on.
    pub up: bool,
    /// How many clients it keeps apart now.
    pub clients: usize,
    /// Towards the server.
    pub forward: DirectionStats,
    /// Towards the clients.
    pub backward: DirectionStats,
}

/// The counters of one direction of a path, in datagrams and their payload. The difference between
/// received and released is on the links, or was dropped there; links that duplicate release more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Datagrams that came in.
    pub received: Count,
    /// Datagrams that were passed on.
    pub released: Count,
    /// Dropped while the path was off.
    pub down: Count,
    /// Dropped because their packets are larger than the links carry ([`MTU`](crate::MTU)).
    pub too_large: Count,
    /// Not passed on: the operating system refused it, or its client has lost its place.
    pub failed: Count,
}
