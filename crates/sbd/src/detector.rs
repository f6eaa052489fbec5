//! The contract of a shared-bottleneck detector.

use core::fmt::Debug;

use fairpath_core::{DelaySample, Groups, Lost, PathId, Timestamp};

/// Says which paths share a bottleneck, as a partition of the paths into groups.
///
/// Only paths that are open are in the partition. What is reported of a path that is not open is
/// ignored. `now` must not go backwards.
pub trait Detector: Debug + Send {
    /// A path was opened.
    fn on_path_opened(&mut self, path: PathId, now: Timestamp);
    /// A path is gone.
    fn on_path_closed(&mut self, path: PathId, now: Timestamp);
    /// A delay was measured on a path.
    fn on_sample(&mut self, _path: PathId, _sample: &DelaySample) {}
    /// A delay was measured on a path that uses all it is allowed. Its queue is then no burst that
    /// the application sends on all paths at once, so the changes of delays within a burst count,
    /// too.
    fn on_saturated_sample(&mut self, path: PathId, sample: &DelaySample) {
        self.on_sample(path, sample);
    }
    /// Packets of a path were lost.
    fn on_loss(&mut self, _path: PathId, _lost: &Lost) {}
    /// A path sends less for a moment, to show which delays fall. Measurements between these times
    /// show the effect.
    fn on_dip(&mut self, _path: PathId, _from: Timestamp, _until: Timestamp) {}
    /// The partition, where it changed since the last call; `None`: nothing new.
    fn poll(&mut self, now: Timestamp) -> Option<Groups>;

    /// Whether samples and losses make a difference.
    fn observes(&self) -> bool {
        true
    }

    /// The evidence for the partition, pair by pair, for people to read. Nothing is decided by it.
    /// Empty: the detector gathers no evidence.
    fn verdicts(&self) -> Vec<PairVerdict> {
        Vec::new()
    }
}

/// A detector's opinion of two paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairVerdict {
    /// The two paths, the lower id first.
    pub paths: (PathId, PathId),
    /// How sure the detector is that they share a bottleneck, from 0 (surely not) to 1. Each
    /// detector says what it means by that.
    pub confidence: f64,
    /// Whether they are in one group. Two paths may be in one group because of a third.
    pub together: bool,
    /// Since when they have been in one group, or in two.
    pub since: Timestamp,
}
