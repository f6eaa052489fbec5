//! The results of several runs: the numbers that are kept of each, and their means over the seeds.

use core::array;
use core::time::Duration;

use fairpath_core::Estimate;
use fairpath_scenario::{ParameterValue, Scenario};
use fairpath_sim::{FlowOutcome, LinkOutcome, Outcome, PathOutcome, jain_index};
use serde::{Deserialize, Serialize};

use crate::summary::{classes, lost_percent, mbps, mean, ms, quantile, total};

/// A column of a table.
pub(crate) struct Quantity {
    /// Its name for programs, with the unit.
    pub(crate) name: &'static str,
    pub(crate) heading: &'static str,
    /// How many digits stand behind the point.
    pub(crate) digits: usize,
}

const fn quantity(name: &'static str, heading: &'static str, digits: usize) -> Quantity {
    Quantity { name, heading, digits }
}

/// The columns of the flows of a class. The rate and the rest of a flow are means over the class.
pub(crate) const CLASS: [Quantity; 6] = [
    quantity("goodput_mbps", "Mbit/s", 3),
    quantity("jain", "Jain", 3),
    quantity("lost_percent", "lost %", 2),
    quantity("rtt_ms", "RTT ms", 1),
    quantity("completion_ms", "completion ms", 1),
    quantity("frame_99_percent_ms", "99 % of frames ms", 1),
];

/// The columns of one path of the flows of a class.
pub(crate) const PATH: [Quantity; 3] =
    [quantity("goodput_mbps", "Mbit/s", 3), quantity("lost_percent", "lost %", 2), quantity("rtt_ms", "RTT ms", 1)];

/// In which columns of [`CLASS`] the quantities of [`PATH`] stand.
pub(crate) const PATH_IN_CLASS: [usize; 3] = [0, 2, 3];

/// The columns of a link.
pub(crate) const LINK: [Quantity; 4] = [
    quantity("rate_mbps", "Mbit/s", 2),
    quantity("used_percent", "used %", 1),
    quantity("dropped_percent", "dropped %", 2),
    quantity("wait_ms", "wait ms", 1),
];

type Numbers<const N: usize> = [Option<f64>; N];
type Means<const N: usize> = [Option<Estimate>; N];

/// The part of a run that is kept.
#[derive(Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) result: Numbered,
}

/// The numbers of a run.
#[derive(PartialEq, Serialize, Deserialize)]
pub(crate) struct Numbered {
    pub(crate) goodput_bps: Vec<u64>,
    classes: Vec<(Numbers<{ CLASS.len() }>, Vec<Numbers<{ PATH.len() }>>)>,
    links: Vec<Numbers<{ LINK.len() }>>,
}

impl Run {
    pub(crate) fn new(scenario: &Scenario, outcome: &Outcome) -> Self {
        let class = |class| {
            let flows: Vec<&FlowOutcome> = outcome.class(class).collect();
            let paths = flows.iter().map(|flow| flow.paths.len()).max().unwrap_or(0);
            let path = |at| path_numbers(flows.iter().filter_map(|flow| flow.paths.get(at)).collect());
            (class_numbers(&flows), (0..paths).map(path).collect())
        };
        Self {
            seed: scenario.seed,
            result: Numbered {
                goodput_bps: outcome.flows.iter().map(|flow| flow.goodput.as_bps()).collect(),
                classes: classes(scenario).into_iter().map(class).collect(),
                links: outcome.links.iter().map(link_numbers).collect(),
            },
        }
    }
}

fn class_numbers(flows: &[&FlowOutcome]) -> Numbers<{ CLASS.len() }> {
    let count = total(flows.iter().copied());
    let frames: Vec<Duration> = flows.iter().flat_map(|flow| flow.frame_delays.iter().copied()).collect();
    [
        mean(flows.iter().map(|flow| mbps(flow))),
        (flows.len() > 1).then(|| jain_index(flows.iter().map(|flow| mbps(flow)))),
        Some(lost_percent(&count)),
        count.mean_rtt().map(ms),
        mean(flows.iter().flat_map(|flow| &flow.completions).copied().map(ms)),
        quantile(&frames, 0.99).map(ms),
    ]
}

fn path_numbers(paths: Vec<&PathOutcome>) -> Numbers<{ PATH.len() }> {
    [
        mean(paths.iter().map(|path| path.goodput.as_mbps_f64())),
        mean(paths.iter().map(|path| lost_percent(&path.count))),
        mean(paths.iter().filter_map(|path| path.count.mean_rtt()).map(ms)),
    ]
}

fn link_numbers(link: &LinkOutcome) -> Numbers<{ LINK.len() }> {
    [
        Some(link.rate.as_mbps_f64()),
        link.utilisation.map(|used| used * 100.0),
        Some(link.drop_share() * 100.0),
        Some(ms(link.mean_wait)),
    ]
}

/// All that is the same in all runs of one point of a sweep.
#[derive(Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) measured: Duration,
    pub(crate) warm_up: Duration,
    /// The classes of flows, and how many flows each has.
    classes: Vec<(String, usize)>,
    links: Vec<String>,
}

impl Facts {
    pub(crate) fn new(scenario: &Scenario, outcome: &Outcome) -> Self {
        let class = |class: &str| (class.to_owned(), outcome.class(class).count());
        Self {
            title: scenario.title.clone(),
            measured: outcome.measured,
            warm_up: scenario.warm_up,
            classes: classes(scenario).into_iter().map(class).collect(),
            links: outcome.links.iter().map(|link| link.name.clone()).collect(),
        }
    }
}

/// A combination of the values of the parameters, and its runs with one seed after the other.
pub(crate) struct Point {
    pub(crate) values: Vec<ParameterValue>,
    pub(crate) facts: Facts,
    pub(crate) runs: Vec<Run>,
}

/// The means of the flows of a class.
pub(crate) struct ClassMeans<'a> {
    pub(crate) class: &'a str,
    pub(crate) number: usize,
    pub(crate) means: Means<{ CLASS.len() }>,
    pub(crate) paths: Vec<Means<{ PATH.len() }>>,
}

/// The means of a link.
pub(crate) struct LinkMeans<'a> {
    pub(crate) link: &'a str,
    pub(crate) means: Means<{ LINK.len() }>,
}

impl LinkMeans<'_> {
    /// Whether something was dropped, or more than a hundredth of it used.
    pub(crate) fn is_busy(&self) -> bool {
        let [_, used, dropped, _] = &self.means;
        let above = |estimate: &Option<Estimate>, least| estimate.as_ref().is_some_and(|known| known.mean > least);
        above(used, 1.0) || above(dropped, 0.0)
    }
}

impl Point {
    /// The first and the last seed.
    pub(crate) fn seeds(&self) -> (u64, u64) {
        let seed = |run: Option<&Run>| run.map_or(0, |run| run.seed);
        (seed(self.runs.first()), seed(self.runs.last()))
    }

    /// Whether there are several seeds, and the runs with all of them are equal.
    pub(crate) fn seeds_change_nothing(&self) -> bool {
        self.runs.len() > 1 && self.runs.windows(2).all(|pair| pair[0].result == pair[1].result)
    }

    pub(crate) fn classes(&self) -> Vec<ClassMeans<'_>> {
        let classes = self.facts.classes.iter().enumerate();
        classes.map(|(at, (class, number))| self.class(at, class, *number)).collect()
    }

    fn class<'a>(&self, at: usize, class: &'a str, number: usize) -> ClassMeans<'a> {
        let runs = || self.runs.iter().filter_map(|run| run.result.classes.get(at));
        // Where ways are drawn, not every seed has as many.
        let paths = runs().map(|(_, paths)| paths.len()).max().unwrap_or(0);
        let path = |at| means(runs().filter_map(|(_, paths)| paths.get(at)));
        let paths = (0..paths).map(path).collect();
        ClassMeans { class, number, means: means(runs().map(|(numbers, _)| numbers)), paths }
    }

    pub(crate) fn links(&self) -> Vec<LinkMeans<'_>> {
        let numbers = |at| means(self.runs.iter().filter_map(move |run| run.result.links.get(at)));
        self.facts.links.iter().enumerate().map(|(at, link)| LinkMeans { link, means: numbers(at) }).collect()
    }
}

fn means<'n, const N: usize>(rows: impl Iterator<Item = &'n Numbers<N>>) -> Means<N> {
    let rows: Vec<&Numbers<N>> = rows.collect();
    array::from_fn(|at| estimate(rows.iter().filter_map(|row| row[at]).collect()))
}

/// The mean with its interval; without one where all samples are equal, since an interval of nothing
/// would say that the mean is known, and not that seeds do not matter.
fn estimate(samples: Vec<f64>) -> Option<Estimate> {
    let differ = samples.windows(2).any(|pair| pair[0] != pair[1]);
    let estimate = Estimate::of(samples)?;
    let half_width = estimate.half_width.filter(|_| differ);
    Some(Estimate::with_interval(estimate.mean, half_width, estimate.samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_samples_have_no_interval() {
        assert_eq!(estimate(vec![]), None);
        assert_eq!(estimate(vec![0.1; 3]).and_then(|estimate| estimate.half_width), None);
        // 12.706 · 1/√2 · √2 · 1/2, of two samples that are 1 apart
        let half = estimate(vec![1.0, 2.0]).and_then(|estimate| estimate.half_width).unwrap();
        assert!((half - 6.353).abs() < 1e-3, "{half}");
    }

    #[test]
    fn the_columns_of_paths_are_columns_of_classes() {
        for (path, class) in PATH.iter().zip(PATH_IN_CLASS) {
            assert_eq!((path.name, path.heading), (CLASS[class].name, CLASS[class].heading));
        }
    }
}
