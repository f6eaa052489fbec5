//! Data on paths that nobody watches, for simulations to look for.

use std::collections::BTreeSet;

use fairpath_engine::PathId as EnginePath;

use super::Connection;
use crate::adapter::PathHandle;

impl Connection {
    /// The paths on which data waits for its fate though they are none of the connection's open paths: nobody would find
    /// that they are silent, and what they carried would never be sent again.
    pub fn stray_paths(&self) -> BTreeSet<EnginePath> {
        let Some(policy) = self.policy.as_ref().filter(|_| self.closed.is_none()) else { return BTreeSet::new() };
        let of = |id| PathHandle::of(self.quic.congestion_state(id)?.clone_box());
        let watched: BTreeSet<EnginePath> = policy.watched_paths().filter_map(of).collect();
        self.lanes.answerable_paths().filter(|path| !watched.contains(path)).collect()
    }
}
