//! How right a detector was: what is counted of a run, and over runs.

use core::time::Duration;
use serde::{Deserialize, Serialize};

use super::factors::Draw;
use super::network::{BEGIN, Case};
use super::watch::pairs;
use crate::{Cell, Estimate};

/// The score of a detector in a run. A run counts once, however many pairs it has: each pair of a run
/// with six counts a sixth.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Score {
    /// The part of the time in which pairs had the bottleneck in common, and of this the part in
    /// which they were together.
    shared: f64,
    found: f64,
    /// The same of the time in which they had not: a mistake.
    separate: f64,
    mistaken: f64,
    /// The part of the pairs that ever had a bottleneck in common; of these those that were together
    /// while they had; and of those that never had it, those that were ever together.
    pairs_shared: f64,
    pairs_found: f64,
    pairs_mistaken: f64,
    /// How often a pair that had no bottleneck in common came to be together, and for how many hours pairs
    /// had none.
    alarms: f64,
    hours_separate: f64,
    /// The time to detection, once for each time that a pair came to share a bottleneck; `None`: never.
    firsts: Vec<Option<f64>>,
}

impl Score {
    /// Scores the verdicts on the pairs of a run.
    pub(super) fn of(case: &Case, verdicts: &[Vec<(Duration, bool)>]) -> Self {
        let mut score = Self::default();
        let end = case.scenario.duration;
        let weight = 1.0 / verdicts.len() as f64;
        let time_weight = weight / end.saturating_sub(BEGIN).as_secs_f64();
        for ((low, high), verdicts) in pairs(case.common.len()).zip(verdicts) {
            let (mut ever_shared, mut ever_found, mut ever_mistaken) = (false, false, false);
            for (at, (from, common)) in case.phases.iter().enumerate() {
                let from = (*from).max(BEGIN);
                let until = case.phases.get(at + 1).map_or(end, |(next, _)| *next);
                let (together, first) = together(verdicts, from, until);
                let whole = until.saturating_sub(from).as_secs_f64();
                if case.share(low, high, *common) {
                    score.shared += time_weight * whole;
                    score.found += time_weight * together;
                    score.firsts.push(first);
                    ever_shared = true;
                    ever_found |= first.is_some();
                } else {
                    score.separate += time_weight * whole;
                    score.mistaken += time_weight * together;
                    score.alarms += begun(verdicts, from, until) as f64;
                    score.hours_separate += whole / 3600.0;
                    ever_mistaken |= first.is_some();
                }
            }
            score.pairs_shared += weight * f64::from(u8::from(ever_shared));
            score.pairs_found += weight * f64::from(u8::from(ever_shared && ever_found));
            score.pairs_mistaken += weight * f64::from(u8::from(!ever_shared && ever_mistaken));
        }
        score
    }
}

/// How often a pair came to be together within a span.
fn begun(verdicts: &[(Duration, bool)], from: Duration, until: Duration) -> usize {
    verdicts.iter().filter(|(at, together)| *together && (from..until).contains(at)).count()
}

/// For how long of a span a pair was together, in seconds, and how long after its begin first.
fn together(verdicts: &[(Duration, bool)], from: Duration, until: Duration) -> (f64, Option<f64>) {
    let ends = verdicts.iter().skip(1).map(|(at, _)| *at).chain([until]);
    let spans = verdicts.iter().zip(ends).filter(|((_, together), _)| *together);
    let inside = spans.map(|((begin, _), end)| ((*begin).max(from), end.min(until))).filter(|(begin, end)| begin < end);
    let (mut time, mut first) = (0.0, None);
    for (begin, end) in inside {
        time += (end - begin).as_secs_f64();
        first = first.or(Some((begin - from).as_secs_f64()));
    }
    (time, first)
}

/// A part of something over runs: the sum of the parts over the sum of the wholes. The interval is
/// that of the runs, as pairs within one are not independent.
//
//     z_i = R + (n_i - R d_i) / mean(d),   R = sum(n) / sum(d)
//
// have the mean R and, to first order, the variance of the ratio.
fn ratio(parts: &[(f64, f64)]) -> Cell {
    let (sum, whole) = parts.iter().fold((0.0, 0.0), |(sum, whole), (part, all)| (sum + part, whole + all));
    if whole == 0.0 {
        return Cell::EMPTY;
    }
    let (ratio, mean) = (sum / whole, whole / parts.len() as f64);
    Cell::of(parts.iter().map(|(part, all)| ratio + (part - ratio * all) / mean))
}

/// How right a detector was over runs.
#[derive(Clone, Debug)]
pub(super) struct Summed {
    /// The part of the pairs with a bottleneck in common that were found while they had it.
    pub(super) recall: Cell,
    /// The part of the pairs that were ever found together that ever had a bottleneck in common.
    pub(super) precision: Cell,
    /// The part of the time that shared pairs were together.
    pub(super) shared: Cell,
    /// The part of the time that separate pairs were.
    pub(super) separate: Cell,
    /// The part of the time together that was right.
    pub(super) right: Cell,
    /// How often in an hour a separate pair came to be together.
    pub(super) alarms: Cell,
    /// The median time to the first correct verdict, in seconds; none: most have none.
    pub(super) first: Cell,
    /// The part of the times a pair came to share a bottleneck at which it was not found at all.
    pub(super) never: Cell,
}

impl Summed {
    /// The columns of the tables, in their order, for this many runs.
    pub(super) fn cells(self, runs: usize) -> [Cell; super::COLUMNS.len()] {
        let Self { recall, precision, shared, separate, right, alarms, first, never } = self;
        let runs = Cell::from(Estimate::from(runs as f64));
        [recall, precision, shared, separate, right, alarms, first, never, runs]
    }

    /// Over these runs.
    pub(super) fn over<'a>(scores: impl Iterator<Item = &'a Score>) -> Self {
        let scores: Vec<&Score> = scores.collect();
        let part = |of: fn(&Score) -> (f64, f64)| ratio(&scores.iter().map(|score| of(score)).collect::<Vec<_>>());
        let firsts: Vec<&[Option<f64>]> = scores.iter().map(|score| &score.firsts[..]).collect();
        Self {
            recall: part(|score| (score.pairs_found, score.pairs_shared)),
            precision: part(|score| (score.pairs_found, score.pairs_found + score.pairs_mistaken)),
            shared: part(|score| (score.found, score.shared)),
            separate: part(|score| (score.mistaken, score.separate)),
            right: part(|score| (score.found, score.found + score.mistaken)),
            alarms: part(|score| (score.alarms, score.hours_separate)),
            first: median(&firsts),
            never: part(|score| {
                let never = score.firsts.iter().filter(|first| first.is_none()).count();
                (never as f64, score.firsts.len() as f64)
            }),
        }
    }
}

/// The median over all times of all runs, where never is longer than any time; the interval is that
/// of 400 samples of as many runs, drawn with replacement.
fn median(runs: &[&[Option<f64>]]) -> Cell {
    let of = |runs: &mut dyn Iterator<Item = &[Option<f64>]>| {
        let mut all: Vec<f64> = runs.flatten().map(|first| first.unwrap_or(f64::INFINITY)).collect();
        all.sort_by(f64::total_cmp);
        (!all.is_empty()).then(|| 0.5 * (all[(all.len() - 1) / 2] + all[all.len() / 2]))
    };
    let Some(mean) = of(&mut runs.iter().copied()).filter(|median| median.is_finite()) else { return Cell::EMPTY };
    let mut draw = Draw::resampling();
    let mut one = || of(&mut (0..runs.len()).map(|_| runs[(draw.unit() * runs.len() as f64) as usize]));
    let mut medians: Vec<f64> = (0..400).map(|_| one().unwrap_or(mean)).collect();
    medians.sort_by(f64::total_cmp);
    let half_width = Some(0.5 * (medians[389] - medians[10])).filter(|half| half.is_finite());
    Cell::from(Estimate::with_interval(mean, half_width, runs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn time_together_is_that_within_the_span() {
        let verdicts = [(s(10), true), (s(20), false), (s(30), true)];
        // 12 to 20 and 30 to 35; at once.
        assert_eq!(together(&verdicts, s(12), s(35)), (13.0, Some(0.0)));
        assert_eq!(together(&verdicts, s(22), s(35)), (5.0, Some(8.0)));
        assert_eq!(together(&verdicts, s(20), s(30)), (0.0, None));
        assert_eq!(together(&[], s(0), s(30)), (0.0, None));
    }

    #[test]
    fn a_false_verdict_counts_where_it_begins() {
        let verdicts = [(s(10), true), (s(20), false), (s(30), true)];
        assert_eq!(
            [(5, 35), (10, 30), (11, 30), (11, 31)].map(|(from, to)| begun(&verdicts, s(from), s(to))),
            [2, 1, 0, 1]
        );
    }

    #[test]
    fn a_ratio_weighs_runs_by_their_wholes() {
        // (1 + 0) / (1 + 3) = 0.25, and not the mean of 1 and 0.
        let estimate = ratio(&[(1.0, 1.0), (0.0, 3.0)]).ours.unwrap();
        assert!((estimate.mean - 0.25).abs() < 1e-12);
        // z = 0.25 + 0.75/2, 0.25 - 0.75/2: the mean of two with t = 12.706 and s = 0.5303.
        assert!((estimate.half_width.unwrap() - 12.706 * 0.375).abs() < 1e-3);
        assert_eq!(ratio(&[(0.0, 0.0)]), Cell::EMPTY);
    }

    #[test]
    fn never_counts_as_longer_than_any_time() {
        let runs: [&[Option<f64>]; 2] = [&[Some(1.0), None], &[Some(3.0)]];
        assert_eq!(median(&runs).mean(), 3.0);
        assert_eq!(median(&[&[None, None, Some(1.0)]]), Cell::EMPTY);
    }
}
