//! Copies of what streams wait for on a path whose answer is late.
//!
//! A path is suspected after two probe timeouts, and what is in flight on it is then sent again on others. Until then a
//! stream whose next bytes lie there stands still, however well the others work. So after the first probe timeout the
//! piece that each stream waits for is copied once: few packets, of which most arrive twice where the path was but slow.

use std::collections::{BTreeSet, VecDeque};

use fairpath_engine::PathId;

use super::part::StreamDatagram;

/// Pieces to be copied.
#[derive(Debug, Default)]
pub(super) struct Rescue {
    /// Paths whose answer is late, for which that was found out.
    late: BTreeSet<PathId>,
    /// Pieces, each with the path that it is in flight on.
    waiting: VecDeque<(PathId, StreamDatagram)>,
}

impl Rescue {
    /// Whether it is new that the answer of `path` is late. Then the pieces that streams wait for there are to be added.
    pub(super) fn note_late(&mut self, path: PathId) -> bool {
        self.late.insert(path)
    }

    /// Its answer is not late: nothing is to be copied.
    pub(super) fn note_answer(&mut self, path: PathId) {
        if self.late.remove(&path) {
            self.waiting.retain(|(origin, _)| *origin != path);
        }
    }

    /// Adds pieces that are in flight on `path`.
    pub(super) fn add(&mut self, path: PathId, pieces: impl Iterator<Item = StreamDatagram>) {
        self.waiting.extend(pieces.map(|part| (path, part)));
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
