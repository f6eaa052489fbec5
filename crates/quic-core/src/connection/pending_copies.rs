//! The copies that each path still has to carry, when all data is sent on several paths.

use std::collections::VecDeque;

use fairpath_engine::{Choice, PathId, PathMap, PathSet};

use super::lanes::{Debt, Lanes, Load};

/// The fragments that other paths have carried, path by path, the oldest first.
#[derive(Debug, Default)]
pub(super) struct PendingCopies {
    /// The paths that owe what is sent next.
    carriers: Option<PathSet>,
    paths: PathMap<VecDeque<Debt>>,
}

impl PendingCopies {
    /// Notes the other paths that are to carry copies of the next fragments.
    pub(super) fn begin(&mut self, choice: Choice) {
        self.carriers = match choice {
            Choice::Copies(paths) => Some(paths.iter().skip(1).collect()),
            _ => None,
        };
    }

    /// A fragment was made that leaves on another path.
    pub(super) fn order(&mut self, load: &Load, lanes: &Lanes) {
        // Data that is retransmitted is pending on those paths already.
        let (Some(carriers), Some(debt)) = (&self.carriers, load.debt()) else { return };
        for path in carriers.iter() {
            if !self.paths.contains(path) {
                self.paths.insert(path, VecDeque::new());
            }
            let Some(pending) = self.paths.get_mut(path) else { continue };
            // A path that carries nothing for long owes no more than what is on its way elsewhere.
            drop_arrived(pending, lanes);
            pending.push_back(debt);
        }
    }

    /// The oldest that a path owes.
    pub(super) fn take(&mut self, path: PathId, lanes: &Lanes) -> Option<Debt> {
        let pending = self.paths.get_mut(path)?;
        drop_arrived(pending, lanes);
        pending.pop_front()
    }

    /// The path is gone.
    pub(super) fn forget(&mut self, path: PathId) {
        self.paths.remove(path);
    }
}

/// Drops copies of data that has arrived.
fn drop_arrived(pending: &mut VecDeque<Debt>, lanes: &Lanes) {
    while pending.front().is_some_and(|debt| lanes.has_arrived(*debt)) {
        pending.pop_front();
    }
}
