//! What an emulation has done so far.

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
    /// By how much datagrams were released late.
    pub timing: TimingReport,
}

impl EmulatorStats {
    /// What `path` has done.
    ///
    /// # Panics
    ///
    /// If `path` is not of the emulation.
    pub fn path(&self, path: PathId) -> &PathStats {
        &self.paths[path.get() as usize]
    }

    /// What the link of this name has done.
    pub fn link(&self, name: &str) -> Option<&LinkStats> {
        self.links.iter().find(|link| link.name == name).map(|link| &link.stats)
    }
}

/// What a link has done.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Whether it is on.
    pub up: bool,
    /// Its counters, in IP packets.
    pub stats: LinkStats,
}

/// What a path has done.
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

/// What one direction of a path has done, in datagrams and their payload. What is missing between
/// received and released is on the links, or was dropped there; links that duplicate release more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// What came in.
    pub received: Count,
    /// What was passed on.
    pub released: Count,
    /// Dropped while the path was off.
    pub down: Count,
    /// Dropped because their packets are larger than the links carry ([`MTU`](crate::MTU)).
    pub too_large: Count,
    /// Not passed on: the operating system refused it, or its client has lost its place.
    pub failed: Count,
}
