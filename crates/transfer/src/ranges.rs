//! A set of byte ranges: which parts of a file are present.

use std::collections::BTreeMap;

/// A set of disjoint, non-adjacent byte ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    // start -> end (exclusive)
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// The set of these ranges, each `(start, end)` with the end excluded; `None` where one is
    /// empty, reversed or ends behind `limit`.
    pub(crate) fn from_pairs(pairs: &[(u64, u64)], limit: u64) -> Option<Self> {
        let mut set = Self::default();
        for &(start, end) in pairs {
            if start >= end || end > limit {
                return None;
            }
            set.insert(start, end);
        }
        Some(set)
    }

    /// The ranges in order, at most `count` of them.
    pub(crate) fn to_pairs(&self, count: usize) -> Vec<(u64, u64)> {
        self.ranges.iter().take(count).map(|(&start, &end)| (start, end)).collect()
    }

    /// Adds a range and returns how many of its bytes are new.
    pub(crate) fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut merged_start, mut merged_end, mut known) = (start, end, 0);
        // A range that begins at or before our end and reaches our start touches us.
        while let Some((&s, &e)) = self.ranges.range(..=end).next_back() {
            if e < start {
                break;
            }
            self.ranges.remove(&s);
            known += e.min(end).saturating_sub(s.max(start));
            merged_start = merged_start.min(s);
            merged_end = merged_end.max(e);
        }
        self.ranges.insert(merged_start, merged_end);
        (end - start) - known
    }

    /// How many bytes the set holds.
    pub(crate) fn total(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// The number of ranges in the set.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Where the range that begins at zero ends.
    pub(crate) fn prefix(&self) -> u64 {
        self.ranges.get(&0).copied().unwrap_or(0)
    }

    /// Where the last range ends.
    pub(crate) fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, &end)| end)
    }

    /// Whether everything from zero to `size` is present.
    pub(crate) fn is_complete(&self, size: u64) -> bool {
        self.prefix() >= size
    }

    /// The parts of `start..end` that are absent.
    pub(crate) fn missing(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut absent = Vec::new();
        let mut position = start;
        let first = self.ranges.range(..=start).next_back().map_or(start, |(&s, _)| s);
        for (&s, &e) in self.ranges.range(first..end.max(first)) {
            if s > position {
                absent.push((position, s));
            }
            position = position.max(e);
        }
        if position < end {
            absent.push((position, end));
        }
        absent
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_become_one_range() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(0, 10), 10);
        assert_eq!(set.insert(20, 30), 10);
        assert_eq!(set.insert(10, 20), 10);
        assert_eq!(set.to_pairs(9), [(0, 30)]);
        assert!(set.is_complete(30));
        assert!(!set.is_complete(31));
    }

    #[test]
    fn an_empty_file_is_complete_from_the_start() {
        assert!(RangeSet::default().is_complete(0));
        assert!(RangeSet::default().missing(0, 0).is_empty());
    }

    #[test]
    fn ranges_from_outside_are_checked() {
        assert!(RangeSet::from_pairs(&[(0, 5)], 5).is_some());
        for bad in [(0, 6), (3, 3), (4, 2)] {
            assert!(RangeSet::from_pairs(&[bad], 5).is_none());
        }
    }

    proptest! {
        #[test]
        fn the_set_agrees_with_a_list_of_bytes(pieces in prop::collection::vec((0u64..60, 0u64..20), 0..20), window in (0u64..60, 0u64..40)) {
            let (mut set, mut present) = (RangeSet::default(), [false; 128]);
            for (start, length) in pieces {
                let new = (start..start + length).filter(|&at| !std::mem::replace(&mut present[at as usize], true)).count();
                prop_assert_eq!(set.insert(start, start + length), new as u64);
            }
            prop_assert_eq!(set.total(), present.iter().filter(|&&byte| byte).count() as u64);
            let absent: Vec<u64> = set.missing(window.0, window.0 + window.1).into_iter().flat_map(|(s, e)| s..e).collect();
            let expected: Vec<u64> = (window.0..window.0 + window.1).filter(|&at| !present[at as usize]).collect();
            prop_assert_eq!(absent, expected);
        }
    }
}
