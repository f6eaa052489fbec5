//! All paths are one group: coupling never stops.
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

/// All paths are one group: coupling never stops.
#[derive(Clone, Debug, Default)]
pub struct Always {
    paths: Vec<PathId>,
    changed: bool,
}

impl Detector for Always {
    fn on_path_opened(&mut self, path: PathId, _now: Timestamp) {
        self.paths.push(path);
        self.changed = true;
    }

    fn on_path_closed(&mut self, path: PathId, _now: Timestamp) {
        self.paths.retain(|open| *open != path);
        self.changed = true;
    }

    fn poll(&mut self, _now: Timestamp) -> Option<Groups> {
        core::mem::take(&mut self.changed).then(|| Groups::one(self.paths.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_are_one_group() {
        let mut detector = Always::default();
        assert_eq!(detector.poll(Timestamp::ZERO), None);
        for id in 0..3 {
            detector.on_path_opened(PathId::new(id), Timestamp::ZERO);
        }
        let groups = detector.poll(Timestamp::ZERO).expect("paths were opened");
        assert!(groups.together(PathId::new(0), PathId::new(2)));
        assert_eq!(detector.poll(Timestamp::ZERO), None, "nothing changed since");
        detector.on_path_closed(PathId::new(1), Timestamp::ZERO);
        let left: Vec<_> = detector.poll(Timestamp::ZERO).expect("a path was closed").paths().collect();
        assert_eq!(left, [PathId::new(0), PathId::new(2)]);
    }
}
