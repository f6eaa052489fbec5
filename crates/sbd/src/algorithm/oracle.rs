//! The oracle: it is told which paths share a bottleneck, and so is never wrong and never late. It
//! shows what a controller could reach if detection were perfect.
//!
//! # Source
//! A bound of the evaluations; no detection takes place.
//!
//! # Symbols
//! None.
//!
//! # Deviations
//! None.

use fairpath_core::{Groups, PathId, Timestamp};

use crate::detector::{Detector, PairVerdict};
use crate::pairs::Pairs;

/// The detector that knows. A path that it was told nothing of is alone.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    /// The true groups from when on, in order of time.
    truth: Vec<(Timestamp, Groups)>,
    pairs: Pairs<()>,
}

impl Oracle {
    /// These groups, always.
    pub fn new(groups: Groups) -> Self {
        Self::with_changes(vec![(Timestamp::ZERO, groups)])
    }

    /// These groups, each from its time on; before the first time every path is alone.
    pub fn with_changes(truth: Vec<(Timestamp, Groups)>) -> Self {
        let mut oracle = Self::default();
        oracle.set_changes(truth);
        oracle
    }

    /// Replaces the true groups, as in [`Oracle::with_changes`].
    pub fn set_changes(&mut self, mut truth: Vec<(Timestamp, Groups)>) {
        truth.sort_by_key(|(from, _)| *from);
        self.truth = truth;
    }
}

impl Detector for Oracle {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        self.pairs.open(path, now, || ());
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.pairs.close(path, now);
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        let groups = self.truth.iter().rev().find(|(from, _)| *from <= now).map(|(_, groups)| groups);
        self.pairs.link(now, |_, _, pair| groups.is_some_and(|groups| groups.together(pair.low, pair.high)));
        self.pairs.take_news()
    }

    fn verdicts(&self) -> Vec<PairVerdict> {
        self.pairs.iter().map(|pair| pair.verdict(f64::from(u8::from(pair.together())))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    #[test]
    fn the_groups_are_those_of_the_time_and_of_the_open_paths() {
        let (one, two) = (Timestamp::from_secs(1), Timestamp::from_secs(2));
        let all = Groups::one((0..3).map(path));
        // Told in any order.
        let mut oracle = Oracle::with_changes(vec![(two, Groups::default()), (one, all)]);
        [0, 2].into_iter().for_each(|id| oracle.on_path_opened(path(id), Timestamp::ZERO));
        let members = |groups: Option<Groups>| groups.map(|groups| groups.members());
        assert_eq!(members(oracle.poll(Timestamp::ZERO)), Some(vec![vec![path(0)], vec![path(2)]]));
        assert_eq!(members(oracle.poll(one)), Some(vec![vec![path(0), path(2)]]));
        assert_eq!(oracle.verdicts()[0].confidence, 1.0);
        assert_eq!(members(oracle.poll(one)), None);
        assert_eq!(members(oracle.poll(two)), Some(vec![vec![path(0)], vec![path(2)]]));
        oracle.on_path_closed(path(2), two);
        assert_eq!(members(oracle.poll(two)), Some(vec![vec![path(0)]]));
    }
}
