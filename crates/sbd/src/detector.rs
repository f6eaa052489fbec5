//! The contract of a shared-bottleneck detector.

use core::fmt::Debug;

use fairpath_core::{DelaySample, Groups, Lost, PathId, Timestamp};

/// Says which paths share a bottleneck, as a partition of the paths into groups.
pub trait Detector: Debug + Send {
    /// A path was opened.
    fn on_path_opened(&mut self, path: PathId, now: Timestamp);
    /// A path is gone.
    fn on_path_closed(&mut self, path: PathId, now: Timestamp);
    /// A delay was measured on a path.
    fn on_sample(&mut self, _path: PathId, _sample: &DelaySample) {}
    /// Packets of a path were lost.
    fn on_loss(&mut self, _path: PathId, _lost: &Lost) {}
    /// The partition, where it changed since the last call; `None`: nothing new.
    fn poll(&mut self, now: Timestamp) -> Option<Groups>;
}
