//! From evidence about pairs to a partition: a third path that speaks against two others weighs
//! against the group as a whole.

/// Merges clusters while the evidence for it, the mean over all pairs that it joins, exceeds a
/// limit; the strongest first.
///
/// The sum would be wrong: each of these pairs compares the same two queues, so chance likeness
/// shows in all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Clusters {
    /// The cluster of each path: the position of its first member.
    of: Vec<usize>,
    /// The evidence for merging two clusters, summed over their pairs, and whether any pair is
    /// together now; a square. Entries of merged clusters are unused.
    evidence: Vec<(f64, bool)>,
}

impl Clusters {
    /// Begins with `paths` paths that know nothing of each other.
    pub(super) fn begin(&mut self, paths: usize) {
        self.of.clear();
        self.of.extend(0..paths);
        self.evidence.clear();
        self.evidence.resize(paths * paths, (0.0, false));
    }

    /// The evidence about two paths, and whether they are together now.
    pub(super) fn set(&mut self, a: usize, b: usize, log_odds: f64, together: bool) {
        let paths = self.of.len();
        self.evidence[a * paths + b] = (log_odds, together);
        self.evidence[b * paths + a] = (log_odds, together);
    }

    /// Forms the clusters. Clusters are merged above `join`, and those with a pair together already
    /// above `stay`.
    pub(super) fn form(&mut self, join: f64, stay: f64) {
        while let Some((a, b)) = self.strongest(join, stay) {
            let paths = self.of.len();
            for other in 0..paths {
                let (add, together) = self.evidence[b * paths + other];
                let sum = &mut self.evidence[a * paths + other];
                *sum = (sum.0 + add, sum.1 | together);
                self.evidence[other * paths + a] = *sum;
            }
            self.of.iter_mut().filter(|cluster| **cluster == b).for_each(|cluster| *cluster = a);
        }
    }

    /// Whether two paths are in one cluster.
    pub(super) fn together(&self, a: usize, b: usize) -> bool {
        self.of[a] == self.of[b]
    }

    /// The two clusters with the strongest evidence for each other, if it is enough.
    fn strongest(&self, join: f64, stay: f64) -> Option<(usize, usize)> {
        let paths = self.of.len();
        let alive = |cluster: &usize| self.of[*cluster] == *cluster;
        let pairs = (0..paths).filter(alive).flat_map(|a| (a + 1..paths).filter(alive).map(move |b| (a, b)));
        let size = |cluster: usize| self.of.iter().filter(|of| **of == cluster).count() as f64;
        let surplus = |(a, b): (usize, usize)| {
            let (sum, together) = self.evidence[a * paths + b];
            sum / (size(a) * size(b)) - if together { stay } else { join }
        };
        pairs
            .map(|pair| (surplus(pair), pair))
            .filter(|(surplus, _)| *surplus > 0.0)
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .map(|(_, pair)| pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clusters(paths: usize, evidence: &[(usize, usize, f64)]) -> Vec<usize> {
        let mut clusters = Clusters::default();
        clusters.begin(paths);
        evidence.iter().for_each(|(a, b, log_odds)| clusters.set(*a, *b, *log_odds, false));
        clusters.form(3.0, 0.0);
        clusters.of
    }

    #[test]
    fn two_links_make_a_group_of_three_where_nothing_speaks_against_it() {
        assert_eq!(clusters(3, &[(0, 1, 5.0), (1, 2, 4.0), (0, 2, 2.5)]), [0, 0, 0], "3.25 is above 3");
    }

    #[test]
    fn a_pair_that_is_surely_apart_keeps_the_group_from_forming() {
        // 0 and 1 first; then (4 - 6)/2 speaks against 2.
        assert_eq!(clusters(3, &[(0, 1, 5.0), (1, 2, 4.0), (0, 2, -6.0)]), [0, 0, 2]);
    }

    #[test]
    fn weak_evidence_of_many_pairs_is_weak() {
        let evidence = [(0, 1, 5.0), (2, 3, 5.0), (0, 2, 1.0), (0, 3, 1.0), (1, 2, 1.0), (1, 3, 1.0)];
        assert_eq!(clusters(4, &evidence), [0, 0, 2, 2], "two queues are compared, four times");
    }

    #[test]
    fn what_is_together_stays_so_on_less() {
        let mut clusters = Clusters::default();
        clusters.begin(2);
        clusters.set(0, 1, 1.0, true);
        clusters.form(3.0, 0.0);
        assert!(clusters.together(0, 1));
    }
}
