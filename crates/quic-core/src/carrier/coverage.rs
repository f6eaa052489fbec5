//! The bytes of a piece of data that have arrived, or are acknowledged.

use core::ops::Range;

use fixedbitset::FixedBitSet;

/// A set of byte positions below a length.
///
/// While it grows from the front it is a number. After that it is a bit for each byte: at most an
/// eighth of the body, whatever the peer sends. A peer that sends every second byte would make a set of
/// ranges many times as large as the body.
#[derive(Clone, Debug)]
pub(crate) struct Coverage {
    length: u32,
    covered: u32,
    /// Empty while exactly the first `covered` positions are in the set.
    bits: FixedBitSet,
}

impl Coverage {
    /// The empty set of positions below `length`.
    pub(crate) fn new(length: u32) -> Self {
        Self { length, covered: 0, bits: FixedBitSet::new() }
    }

    /// The length of what may be covered.
    pub(crate) fn length(&self) -> u32 {
        self.length
    }

    /// Whether every position is in the set.
    pub(crate) fn is_full(&self) -> bool {
        self.covered == self.length
    }

    /// Adds a range that does not end beyond the length; says how many positions are new.
    pub(crate) fn insert(&mut self, range: Range<u32>) -> u32 {
        debug_assert!(range.start < range.end && range.end <= self.length, "{range:?} in {}", self.length);
        if self.bits.is_empty() {
            if range.start <= self.covered {
                let new = range.end.saturating_sub(self.covered);
                self.covered += new;
                return new;
            }
            self.bits.grow(self.length as usize);
            self.bits.insert_range(..self.covered as usize);
        }
        let range = range.start as usize..range.end as usize;
        let new = self.bits.count_zeroes(range.clone()) as u32;
        self.bits.insert_range(range);
        self.covered += new;
        new
    }

    /// The first position at or after `at` that is not in the set; the length where there is none.
    pub(crate) fn end_of_run(&self, at: u32) -> u32 {
        if self.bits.is_empty() {
            return self.covered.max(at);
        }
        let word_bits = usize::BITS as usize;
        let (mut at, length) = (at as usize, self.length as usize);
        let words = self.bits.as_slice();
        while at < length {
            let run = (words[at / word_bits] >> (at % word_bits)).trailing_ones() as usize;
            at += run;
            if run == 0 || !at.is_multiple_of(word_bits) {
                break;
            }
        }
        at.min(length) as u32
    }

    /// Calls `each` with the parts of `range` that are not in the set, in order.
    pub(crate) fn missing(&self, range: Range<u32>, mut each: impl FnMut(Range<u32>)) {
        if self.bits.is_empty() {
            let start = range.start.max(self.covered);
            if start < range.end {
                each(start..range.end);
            }
            return;
        }
        // Nearly always all of it is missing or nothing is, and then no bit need be looked at by itself.
        let missing = self.bits.count_zeroes(range.start as usize..range.end as usize) as u32;
        if missing == range.end - range.start {
            return each(range);
        }
        let (mut at, mut left) = (range.start, missing);
        while left > 0 {
            while self.bits.contains(at as usize) {
                at += 1;
            }
            let start = at;
            while at < range.end && !self.bits.contains(at as usize) {
                at += 1;
            }
            left -= at - start;
            each(start..at);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_comes_in_order_takes_no_bits() {
        let mut coverage = Coverage::new(300);
        for start in [0, 100, 200] {
            assert_eq!(coverage.insert(start..start + 100), 100);
            assert_eq!(coverage.insert(start..start + 50), 0);
        }
        assert!(coverage.is_full() && coverage.bits.is_empty());
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_what_was_put_in(
            ranges in proptest::collection::vec((0u32..200, 1u32..80), 0..12), asked in (0u32..200, 1u32..200),
        ) {
            let mut coverage = Coverage::new(200);
            let mut model = BTreeSet::new();
            for (start, length) in ranges {
                let range = start..(start + length).min(200);
                let new = range.clone().filter(|at| model.insert(*at)).count();
                prop_assert_eq!(coverage.insert(range) as usize, new);
                prop_assert_eq!(coverage.is_full(), model.len() == 200);
            }
            let asked = asked.0..(asked.0 + asked.1).min(200);
            let mut missing = Vec::new();
            coverage.missing(asked.clone(), |range| missing.push(range));
            prop_assert!(missing.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", missing);
            let missing: Vec<_> = missing.into_iter().flatten().collect();
            for at in asked.clone() {
                let run = (at..200).take_while(|at| model.contains(at)).count() as u32;
                prop_assert_eq!(coverage.end_of_run(at), at + run);
            }
            prop_assert_eq!(missing, asked.filter(|at| !model.contains(at)).collect::<Vec<_>>());
        }
    }
}
