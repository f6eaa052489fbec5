//! What each path has still to carry after others, where every one of them is to carry all data.

use std::collections::VecDeque;

use fairpath_engine::{Choice, PathId, PathMap, PathSet};

use super::lanes::{Debt, Lanes, Load};

/// The fragments that other paths have carried, path by path, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// The paths that owe what is sent next.
    debtors: Option<PathSet>,
    paths: PathMap<VecDeque<Debt>>,
}

impl Owed {
    /// What is sent next is chosen so.
    pub(super) fn begin(&mut self, choice: Choice) {
        self.debtors = match choice {
            Choice::Copies(paths) => Some(paths.iter().skip(1).collect()),
            _ => None,
        };
    }

    /// A fragment was made that leaves on another path.
    pub(super) fn order(&mut self, load: &Load, lanes: &Lanes) {
        // What is sent again they owe already.
        let (Some(debtors), Some(debt)) = (&self.debtors, load.debt()) else { return };
        for path in debtors.iter() {
            if !self.paths.contains(path) {
                self.paths.insert(path, VecDeque::new());
            }
            let Some(owed) = self.paths.get_mut(path) else { continue };
            // A path that carries nothing for long owes no more than what is on its way elsewhere.
            forgive(owed, lanes);
            owed.push_back(debt);
        }
    }

    /// The oldest that a path owes.
    pub(super) fn take(&mut self, path: PathId, lanes: &Lanes) -> Option<Debt> {
        let owed = self.paths.get_mut(path)?;
        forgive(owed, lanes);
        owed.pop_front()
    }

    /// The path is gone.
    pub(super) fn forget(&mut self, path: PathId) {
        self.paths.remove(path);
    }
}

/// What has arrived is owed no longer.
fn forgive(owed: &mut VecDeque<Debt>, lanes: &Lanes) {
    while owed.front().is_some_and(|debt| lanes.has_arrived(*debt)) {
        owed.pop_front();
    }
}
