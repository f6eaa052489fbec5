//! A few paths.

use fairpath_core::PathId;

/// A few paths, in the order in which they were put in. It holds up to [`PathSet::MAX`]; more are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathSet {
    ids: [PathId; PathSet::MAX],
    count: usize,
}

impl PathSet {
    /// As many as one packet is sent on at most.
    pub const MAX: usize = 8;

    /// The paths in it.
    pub fn iter(&self) -> impl Iterator<Item = PathId> + '_ {
        self.ids[..self.count].iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl core::fmt::Debug for PathSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<PathId> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathId>>(paths: I) -> Self {
        let mut set = Self { ids: [PathId::new(0); Self::MAX], count: 0 };
        for path in paths.into_iter().take(Self::MAX) {
            set.ids[set.count] = path;
            set.count += 1;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_up_to_its_size() {
        let ids = |count: u32| (0..count).map(PathId::new).collect::<Vec<_>>();
        for count in [0, 1, 8, 12] {
            let set: PathSet = ids(count).into_iter().collect();
            assert_eq!(set.iter().collect::<Vec<_>>(), ids(count.min(8)), "{set:?}");
            assert_eq!((set.len(), set.is_empty()), (count.min(8) as usize, count == 0));
        }
    }
}
