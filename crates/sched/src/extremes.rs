//! The least and the greatest smoothed round-trip time that each path has had.

use core::time::Duration;

use fairpath_core::{PathId, PathMap};

use crate::scheduler::PathView;

/// The schedulers' memory of the round-trip times of paths.
#[derive(Debug, Default)]
pub(crate) struct Extremes(PathMap<(Duration, Duration)>);

impl Extremes {
    /// Notes the times of a path.
    pub(crate) fn note(&mut self, path: &PathView) {
        let Some(smoothed) = path.smoothed() else { return };
        match self.0.get_mut(path.id) {
            Some((least, greatest)) => (*least, *greatest) = ((*least).min(smoothed), (*greatest).max(smoothed)),
            None => {
                self.0.insert(path.id, (smoothed, smoothed));
            }
        }
    }

    /// The least and the greatest; of a path that was not noted yet what it has now.
    pub(crate) fn of(&self, path: &PathView) -> Option<(Duration, Duration)> {
        let now = path.smoothed();
        self.0.get(path.id).copied().or_else(|| Some((now?, now?)))
    }

    /// The path is not the one of that id any more.
    pub(crate) fn forget(&mut self, path: PathId) {
        self.0.remove(path);
    }
}
