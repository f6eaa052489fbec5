//! The paths of an engine, and which of them may have changed since their views were built.

use core::ops::Deref;

use fairpath_core::{PathId, PathMap, Timestamp};

use crate::path::Path;

/// The paths. Mutable access to one marks its view as stale.
#[derive(Debug, Default)]
pub(crate) struct Paths(PathMap<Path>);

impl Paths {
    #[inline]
    pub(crate) fn get_mut(&mut self, path: PathId) -> Option<&mut Path> {
        let state = self.0.get_mut(path)?;
        state.seen_until = Timestamp::ZERO;
        Some(state)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut Path)> {
        self.0.iter_mut().map(|(id, state)| {
            state.seen_until = Timestamp::ZERO;
            (id, state)
        })
    }

    /// Whether the packet sent on the path at `sent_at`, and acknowledged now, left before the path
    /// fell silent, while another went on.
    ///
    /// The acknowledgement then came by way of that other path, and does not tell of this one. Its
    /// delay is no round trip, and one of seconds would keep a dead path from being suspected for
    /// twice as long. If no other path works, it is a round trip like any.
    #[inline]
    pub(crate) fn is_bygone(&self, path: PathId, sent_at: Timestamp, now: Timestamp) -> bool {
        let Some(since) = self.get(path).and_then(|state| state.fell_silent(sent_at, now)) else { return false };
        self.0.iter().any(|(id, other)| id != path && other.is_usable() && other.answers.proven_at > Some(since))
    }

    /// A change that affects all views.
    pub(crate) fn mark_all(&mut self) {
        self.iter_mut().for_each(drop);
    }

    /// The paths, for marking their views as built.
    pub(crate) fn drawn(&mut self) -> impl Iterator<Item = (PathId, &mut Path)> {
        self.0.iter_mut()
    }

    pub(crate) fn insert(&mut self, path: PathId, state: Path) {
        self.0.insert(path, state);
        self.mark_all();
    }

    pub(crate) fn remove(&mut self, path: PathId) -> Option<Path> {
        let removed = self.0.remove(path);
        self.mark_all();
        removed
    }
}

impl Deref for Paths {
    type Target = PathMap<Path>;

    fn deref(&self) -> &PathMap<Path> {
        &self.0
    }
}
