//! Copies of what streams wait for on a path whose answer is late.
//!
//! A path is suspected after two probe timeouts, and what is in flight on it is then sent again on others. Until then a
//! stream whose next bytes lie there stands still, however well the others work. So after the first probe timeout the
//! piece that each stream waits for is copied once, and when that has arrived the next one there. These are few packets,
//! which arrive twice where the path was but slow.

use std::collections::{BTreeMap, VecDeque};

use fairpath_engine::PathId;

use super::part::StreamDatagram;

/// Pieces to be copied.
#[derive(Debug, Default)]
pub(super) struct Rescue {
    /// The paths whose answer is late, with the position of the last piece that was to be copied of each stream.
    late: BTreeMap<PathId, BTreeMap<u64, u64>>,
    /// Pieces, each with the path that it is in flight on.
    waiting: VecDeque<(PathId, StreamDatagram)>,
}

impl Rescue {
    /// The answer of `path` is late, and these pieces there are waited for, each with its stream and position. Those that
    /// are new are to be copied.
    pub(super) fn note_late(&mut self, path: PathId, awaited: impl Iterator<Item = (u64, u64, StreamDatagram)>) {
        let known = self.late.entry(path).or_default();
        for (id, start, part) in awaited {
            if known.get(&id).is_none_or(|last| *last < start) {
                known.insert(id, start);
                self.waiting.push_back((path, part));
            }
        }
    }

    /// Its answer is not late: nothing is to be copied.
    pub(super) fn note_answer(&mut self, path: PathId) {
        if self.late.remove(&path).is_some() {
            self.waiting.retain(|(origin, _)| *origin != path);
        }
    }

    /// Whether there is nothing to copy.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next piece to be copied to `path`.
    pub(super) fn next(&mut self, path: PathId) -> Option<StreamDatagram> {
        let at = self.waiting.iter().position(|(origin, _)| *origin != path)?;
        self.waiting.remove(at).map(|(_, part)| part)
    }
}
