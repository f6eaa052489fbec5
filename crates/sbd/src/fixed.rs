//! Detectors that detect nothing: a fixed rule makes the partition of whatever paths are open.

use core::fmt::Debug;

use fairpath_core::{Groups, PathId, Timestamp};

use crate::detector::Detector;

/// A rule that needs no evidence.
pub trait FixedRule: Debug + Default + Send {
    /// The partition of the open paths.
    fn partition(paths: &[PathId]) -> Groups;
}

/// A detector that follows a [`FixedRule`].
#[derive(Clone, Debug, Default)]
pub struct Fixed<R> {
    rule: core::marker::PhantomData<R>,
    paths: Vec<PathId>,
    changed: bool,
}

impl<R: FixedRule> Detector for Fixed<R> {
    fn on_path_opened(&mut self, path: PathId, _now: Timestamp) {
        if !self.paths.contains(&path) {
            self.paths.push(path);
            self.changed = true;
        }
    }

    fn on_path_closed(&mut self, path: PathId, _now: Timestamp) {
        let before = self.paths.len();
        self.paths.retain(|open| *open != path);
        self.changed |= self.paths.len() < before;
    }

    fn observes(&self) -> bool {
        false
    }

    fn poll(&mut self, _now: Timestamp) -> Option<Groups> {
        core::mem::take(&mut self.changed).then(|| R::partition(&self.paths))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Always, Detector};
    use fairpath_core::{PathId, Timestamp};

    #[test]
    fn a_new_partition_comes_with_every_change_of_the_paths_and_only_then() {
        let mut detector = Always::default();
        assert_eq!(detector.poll(Timestamp::ZERO), None);
        for id in 0..3 {
            detector.on_path_opened(PathId::new(id), Timestamp::ZERO);
        }
        assert!(detector.poll(Timestamp::ZERO).is_some());
        assert_eq!(detector.poll(Timestamp::ZERO), None, "nothing changed since");
        detector.on_path_closed(PathId::new(1), Timestamp::ZERO);
        let left: Vec<_> = detector.poll(Timestamp::ZERO).expect("a path was closed").paths().collect();
        assert_eq!(left, [PathId::new(0), PathId::new(2)]);
    }
}
