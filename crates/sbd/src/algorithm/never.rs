//! Every path is a group of its own: nothing is ever coupled.
//!
//! # Source
//! A baseline of the evaluations; no detection takes place.
//!
//! # Symbols
//! None.
//!
//! # Deviations
//! None.

use fairpath_core::{Groups, PathId, Timestamp};

use crate::detector::Detector;

/// Every path is a group of its own: nothing is ever coupled.
#[derive(Clone, Debug, Default)]
pub struct Never {
    paths: Vec<PathId>,
    changed: bool,
}

impl Detector for Never {
    fn on_path_opened(&mut self, path: PathId, _now: Timestamp) {
        self.paths.push(path);
        self.changed = true;
    }

    fn on_path_closed(&mut self, path: PathId, _now: Timestamp) {
        self.paths.retain(|open| *open != path);
        self.changed = true;
    }

    fn poll(&mut self, _now: Timestamp) -> Option<Groups> {
        core::mem::take(&mut self.changed).then(|| Groups::singletons(self.paths.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_alone() {
        let mut detector = Never::default();
        assert_eq!(detector.poll(Timestamp::ZERO), None);
        for id in 0..3 {
            detector.on_path_opened(PathId::new(id), Timestamp::ZERO);
        }
        let groups = detector.poll(Timestamp::ZERO).expect("paths were opened");
        assert!(!groups.together(PathId::new(0), PathId::new(2)));
        assert_eq!(detector.poll(Timestamp::ZERO), None, "nothing changed since");
        detector.on_path_closed(PathId::new(1), Timestamp::ZERO);
        let left: Vec<_> = detector.poll(Timestamp::ZERO).expect("a path was closed").paths().collect();
        assert_eq!(left, [PathId::new(0), PathId::new(2)]);
    }
}
