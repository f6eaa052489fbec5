//! The pairs of the open paths, and the partition that follows from what is held of each.

use fairpath_core::{Groups, PathId, Timestamp};

use crate::detector::PairVerdict;

/// Two paths and what a detector knows of them.
#[derive(Clone, Debug)]
pub(crate) struct Pair<T> {
    /// The path with the lower id.
    pub(crate) low: PathId,
    /// The path with the higher id.
    pub(crate) high: PathId,
    /// Whether the partition has them in one group, and since when.
    together: bool,
    since: Timestamp,
    /// The detector's state of them.
    pub(crate) state: T,
}

impl<T> Pair<T> {
    /// Whether the pair has `path`.
    pub(crate) fn has(&self, path: PathId) -> bool {
        self.low == path || self.high == path
    }

    /// Whether the partition has both in one group.
    pub(crate) fn together(&self) -> bool {
        self.together
    }

    /// The verdict on the pair that people are told.
    pub(crate) fn verdict(&self, confidence: f64) -> PairVerdict {
        PairVerdict { paths: (self.low, self.high), confidence, together: self.together, since: self.since }
    }
}

/// All pairs of the open paths, and the partition in force.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<T> {
    /// The open paths in order of their ids.
    paths: Vec<PathId>,
    /// The group of each of them: the position in `paths` of its first member.
    group: Vec<usize>,
    /// Where the next partition is made.
    draft: Vec<usize>,
    /// The pairs, in order of the lower and then of the higher id.
    pairs: Vec<Pair<T>>,
    /// Whether the partition in force was not yet asked for.
    untold: bool,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self { paths: Vec::new(), group: Vec::new(), draft: Vec::new(), pairs: Vec::new(), untold: false }
    }
}

impl<T> Pairs<T> {
    /// Adds a path, which is alone at first; false: it is there already.
    pub(crate) fn open(&mut self, path: PathId, now: Timestamp, state: impl Fn() -> T) -> bool {
        let Err(at) = self.paths.binary_search(&path) else { return false };
        for other in &self.paths {
            let (low, high) = (path.min(*other), path.max(*other));
            self.pairs.push(Pair { low, high, together: false, since: now, state: state() });
        }
        self.pairs.sort_by_key(|pair| (pair.low, pair.high));
        self.paths.insert(at, path);
        self.keep_together(now);
        true
    }

    /// Removes a path; the others stay grouped as they are. False: it was not there.
    pub(crate) fn close(&mut self, path: PathId, now: Timestamp) -> bool {
        let Ok(at) = self.paths.binary_search(&path) else { return false };
        self.paths.remove(at);
        self.pairs.retain(|pair| !pair.has(path));
        self.keep_together(now);
        true
    }

    /// The open paths in order.
    pub(crate) fn paths(&self) -> &[PathId] {
        &self.paths
    }

    /// The pairs, in order of the lower and then of the higher id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pair<T>> {
        self.pairs.iter()
    }

    /// The pairs, mutable.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pair<T>> {
        self.pairs.iter_mut()
    }

    /// Sets the partition: two paths are in one group if `linked` says so of them, or of a chain
    /// of pairs that leads from one to the other. It is also given the positions of both paths.
    pub(crate) fn link(&mut self, now: Timestamp, linked: impl Fn(usize, usize, &Pair<T>) -> bool) {
        self.draft.clear();
        self.draft.extend(0..self.paths.len());
        for ((low, high), pair) in positions(self.paths.len()).zip(&self.pairs) {
            let (a, b) = (self.draft[low], self.draft[high]);
            if a != b && linked(low, high, pair) {
                let (first, other) = (a.min(b), a.max(b));
                self.draft.iter_mut().filter(|group| **group == other).for_each(|group| *group = first);
            }
        }
        if self.draft != self.group {
            core::mem::swap(&mut self.draft, &mut self.group);
            self.untold = true;
            for ((low, high), pair) in positions(self.paths.len()).zip(&mut self.pairs) {
                let together = self.group[low] == self.group[high];
                if pair.together != together {
                    pair.together = together;
                    pair.since = now;
                }
            }
        }
    }

    /// The partition, if it was not yet asked for.
    pub(crate) fn take_news(&mut self) -> Option<Groups> {
        core::mem::take(&mut self.untold).then(|| {
            let (paths, group) = (&self.paths, &self.group);
            let members = |first| (0..paths.len()).filter(move |at| group[*at] == first).map(|at| paths[at]);
            Groups::from_members((0..paths.len()).map(members))
        })
    }

    /// The partition after the paths have changed.
    fn keep_together(&mut self, now: Timestamp) {
        self.link(now, |_, _, pair| pair.together);
        self.untold = true;
    }
}

/// The positions of the two paths of each pair, in the order of the pairs.
pub(crate) fn positions(paths: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..paths).flat_map(move |low| (low + 1..paths).map(move |high| (low, high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1);

    fn opened(count: u32) -> Pairs<()> {
        let mut pairs = Pairs::default();
        (0..count).rev().for_each(|id| assert!(pairs.open(PathId::new(id), NOW, || ())));
        pairs
    }

    fn members(pairs: &mut Pairs<()>) -> Option<Vec<Vec<u32>>> {
        let groups = pairs.take_news()?.members();
        Some(groups.into_iter().map(|group| group.into_iter().map(PathId::get).collect()).collect())
    }

    #[test]
    fn every_pair_is_there_once_and_in_order() {
        let pairs = opened(4);
        let seen: Vec<_> = pairs.iter().map(|pair| (pair.low.get(), pair.high.get())).collect();
        assert_eq!(seen, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    }

    #[test]
    fn a_chain_of_linked_pairs_is_one_group() {
        let mut pairs = opened(4);
        assert_eq!(members(&mut pairs), Some(vec![vec![0], vec![1], vec![2], vec![3]]));
        pairs.link(NOW, |_, _, pair| matches!((pair.low.get(), pair.high.get()), (0, 3) | (1, 3)));
        assert_eq!(members(&mut pairs), Some(vec![vec![0, 1, 3], vec![2]]));
        assert!(pairs.iter().any(|pair| pair.low.get() == 0 && pair.high.get() == 1 && pair.together()));
    }

    #[test]
    fn the_same_partition_is_no_news() {
        let mut pairs = opened(3);
        pairs.link(NOW, |_, _, pair| pair.low.get() == 0);
        assert_eq!(members(&mut pairs), Some(vec![vec![0, 1, 2]]));
        pairs.link(NOW, |_, _, pair| pair.high.get() == 2);
        assert_eq!(members(&mut pairs), None, "other links, the same group");
    }

    #[test]
    fn a_group_outlives_the_path_that_linked_it() {
        let mut pairs = opened(3);
        pairs.link(NOW, |_, _, pair| pair.low.get() == 0);
        pairs.close(PathId::new(0), NOW);
        assert_eq!(members(&mut pairs), Some(vec![vec![1, 2]]));
    }
}
