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

use fairpath_core::{Groups, PathId};

use crate::fixed::{Fixed, FixedRule};

/// All paths are one group: coupling never stops.
pub type Always = Fixed<Together>;

/// The rule of [`Always`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Together;

impl FixedRule for Together {
    fn partition(paths: &[PathId]) -> Groups {
        Groups::one(paths.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_are_one_group() {
        let groups = Together::partition(&[0, 1, 2].map(PathId::new));
        assert!(groups.together(PathId::new(0), PathId::new(2)));
    }
}
