//! What each path has still to carry after others, where every one of them is to carry all data.

use std::collections::VecDeque;

use fairpath_engine::{Choice, PathId, PathMap, PathSet};

use crate::bulk::Part;
use crate::channel::{Cargo, Channel, ChannelId};

/// The fragments that other paths have carried, path by path, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// The paths that owe what is sent next.
    debtors: Option<PathSet>,
    paths: PathMap<VecDeque<(ChannelId, Part)>>,
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
    pub(super) fn order(&mut self, id: ChannelId, cargo: &Cargo, channels: &[Channel; 2]) {
        // What is sent again they owe already.
        let (Some(debtors), Cargo::Fragment(part)) = (&self.debtors, cargo) else { return };
        if !part.is_new() {
            return;
        }
        for path in debtors.iter() {
            if !self.paths.contains(path) {
                self.paths.insert(path, VecDeque::new());
            }
            let Some(owed) = self.paths.get_mut(path) else { continue };
            // A path that carries nothing for long owes no more than what is on its way elsewhere.
            forgive(owed, channels);
            owed.push_back((id, *part));
        }
    }

    /// The oldest that a path owes.
    pub(super) fn take(&mut self, path: PathId, channels: &[Channel; 2]) -> Option<(ChannelId, Part)> {
        let owed = self.paths.get_mut(path)?;
        forgive(owed, channels);
        owed.pop_front()
    }

    /// The path is gone.
    pub(super) fn forget(&mut self, path: PathId) {
        self.paths.remove(path);
    }
}

/// What has arrived is owed no longer.
fn forgive(owed: &mut VecDeque<(ChannelId, Part)>, channels: &[Channel; 2]) {
    while owed.front().is_some_and(|(id, part)| channels[*id as usize].sender.has_arrived(*part)) {
        owed.pop_front();
    }
}
