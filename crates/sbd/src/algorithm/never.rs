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

use fairpath_core::{Groups, PathId};

use crate::fixed::{Fixed, FixedRule};

/// Every path is a group of its own: nothing is ever coupled.
pub type Never = Fixed<Apart>;

/// The rule of [`Never`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Apart;

impl FixedRule for Apart {
    fn partition(paths: &[PathId]) -> Groups {
        Groups::singletons(paths.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_alone() {
        let groups = Apart::partition(&[0, 1, 2].map(PathId::new));
        assert!(!groups.together(PathId::new(0), PathId::new(2)));
    }
}
