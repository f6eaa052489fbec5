//! The grouping: the flows at a bottleneck are sorted by one statistic after the other, and each
//! time the list is cut where neighbours differ.

use super::config::{LossSplit, Split, SummaryConfig};
use super::statistics::Estimates;

/// Sorts and cuts; what it needs to do so is kept, so that nothing is allocated each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Grouping {
    /// The flows at a bottleneck, by position; those of a group stand together.
    order: Vec<usize>,
    /// Where groups end in `order`.
    ends: Vec<usize>,
    cut: Vec<usize>,
    /// The group of each flow; `None`: it is alone.
    group: Vec<Option<usize>>,
}

impl Grouping {
    /// Groups the flows that these estimates are of.
    // [RFC8382 §3.3.1; RFC8382 §3.3.2]
    pub(super) fn group(&mut self, flows: &[Estimates], config: &SummaryConfig) {
        self.order.clear();
        self.order.extend((0..flows.len()).filter(|flow| flows[*flow].congested));
        self.ends.clear();
        self.ends.push(self.order.len());
        let all = |_: &[usize]| true;
        self.split(all, |flow| flows[flow].oscillation, config.split_oscillation);
        self.split(all, |flow| flows[flow].variability, config.split_variability);
        let loss_max = config.congested.map_or(f64::INFINITY, |limits| limits.loss);
        let lossy = |group: &[usize]| group.iter().any(|flow| flows[*flow].loss > loss_max);
        match config.split_loss {
            LossSplit::InsteadOfSkewness(_) => {
                self.split(|group| !lossy(group), |flow| flows[flow].skewness, config.split_skewness);
            }
            _ => self.split(all, |flow| flows[flow].skewness, config.split_skewness),
        }
        if let LossSplit::InsteadOfSkewness(split) | LossSplit::AfterSkewness(split) = config.split_loss {
            self.split(lossy, |flow| flows[flow].loss, split);
        }
        self.group.clear();
        self.group.resize(flows.len(), None);
        let mut begin = 0;
        for end in &self.ends {
            for flow in &self.order[begin..*end] {
                self.group[*flow] = Some(*end);
            }
            begin = *end;
        }
    }

    /// Whether two flows are in one group.
    pub(super) fn together(&self, a: usize, b: usize) -> bool {
        self.group[a].is_some() && self.group[a] == self.group[b]
    }

    /// Sorts each group that is `concerned` from the largest statistic to the smallest and cuts it.
    fn split(&mut self, concerned: impl Fn(&[usize]) -> bool, statistic: impl Fn(usize) -> f64, split: Split) {
        self.cut.clear();
        let mut begin = 0;
        for end in self.ends.iter().copied() {
            let group = &mut self.order[begin..end];
            if concerned(group) {
                group.sort_unstable_by(|a, b| statistic(*b).total_cmp(&statistic(*a)));
                let apart = |at: &usize| differ(statistic(group[*at - 1]), statistic(group[*at]), split);
                self.cut.extend((1..group.len()).filter(apart).map(|at| begin + at));
            }
            self.cut.push(end);
            begin = end;
        }
        core::mem::swap(&mut self.ends, &mut self.cut);
    }
}

/// Whether two neighbours belong to different groups; `larger` is not below `smaller`.
fn differ(larger: f64, smaller: f64, split: Split) -> bool {
    let difference = larger - smaller;
    match split {
        Split::Absolute(limit) => difference >= limit,
        // Two zeros do not differ.
        Split::Relative(part) => difference > 0.0 && difference >= part * larger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Estimates =
        Estimates { skewness: 0.0, variability: 10.0, oscillation: 0.2, loss: 0.0, congested: true };

    fn groups(flows: &[Estimates]) -> Grouping {
        let mut grouping = Grouping::default();
        grouping.group(flows, &SummaryConfig::rfc8382());
        grouping
    }

    #[test]
    fn flows_that_differ_little_are_one_group() {
        // 9.5 is 5 % below 10; 0.1 apart in skewness; 0.05 in frequency.
        let other = Estimates { skewness: 0.1, variability: 9.5, oscillation: 0.15, ..FLOW };
        assert!(groups(&[FLOW, other]).together(0, 1));
    }

    #[test]
    fn each_statistic_parts_flows() {
        let others = [
            Estimates { oscillation: 0.31, ..FLOW },
            // 10 - 9 = 10 % of the larger.
            Estimates { variability: 9.0, ..FLOW },
            Estimates { skewness: -0.15, ..FLOW },
            Estimates { congested: false, ..FLOW },
        ];
        for other in others {
            assert!(!groups(&[FLOW, other]).together(0, 1), "{other:?}");
        }
    }

    #[test]
    fn a_chain_of_small_differences_is_one_group() {
        let flow = |variability| Estimates { variability, ..FLOW };
        let grouping = groups(&[flow(10.0), flow(8.4), flow(9.2)]);
        assert!(grouping.together(0, 1) && grouping.together(1, 2));
    }

    #[test]
    fn two_flows_without_a_bottleneck_are_apart() {
        let idle = Estimates { congested: false, ..FLOW };
        assert!(!groups(&[idle, idle]).together(0, 1));
    }

    #[test]
    fn loss_parts_flows_only_where_it_is_high() {
        let lossy = |loss| Estimates { loss, ..FLOW };
        assert!(groups(&[lossy(0.01), lossy(0.09)]).together(0, 1), "both below 0.1");
        assert!(!groups(&[lossy(0.12), lossy(0.20)]).together(0, 1));
        assert!(groups(&[lossy(0.12), lossy(0.13)]).together(0, 1), "8 % apart");
    }

    #[test]
    fn where_loss_replaces_skewness_skewness_parts_no_more() {
        let flows = [Estimates { loss: 0.2, ..FLOW }, Estimates { loss: 0.2, skewness: -0.9, ..FLOW }];
        let mut grouping = Grouping::default();
        grouping.group(&flows, &SummaryConfig::mptcp_sbd());
        assert!(grouping.together(0, 1));
        assert!(!groups(&flows).together(0, 1), "in the RFC it does");
    }
}
