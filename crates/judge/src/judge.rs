//! Plays traces to a detector, and sums up what it said.
//!
//! A detector speaks of now, and a person asks about the whole trace. So a pair is judged by the
//! second half of the time in which both were measured: it shares a bottleneck if it was in one
//! group for more than half of that. In the first half the detector may learn, and it may change
//! its mind for a while later; what it said last alone would count such a while as the answer.
//! The confidence is the mean of the detector's confidence over the same half. Three and more are
//! merged into groups as long as the members of two groups were together for more than half of
//! that time on average. So the answer is a partition even where single pairs contradict it.
//!
//! Three other rules were tried with the default detector: the whole time, what held in the end, and
//! the mean confidence above a half. All four are right on the training traces `00` and `01` of
//! `crates/sbd/tests/traces.rs`. On 100 simulated pairs their numbers of errors differ by one: a
//! pair that the detector mistakes, nearly all of them mistake. Of these pairs 60 last for 40 s only
//! and have twins in all parameters for separate queues. So the one was taken that forgives what is
//! learnt late.

use core::time::Duration;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::Detector;
use fairpath_trace::rtt::RttSample;

/// How often the confidence is noted, by the clock of the traces.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// A time from and until.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From.
    pub from: Timestamp,
    /// Until.
    pub until: Timestamp,
}

impl Span {
    /// How long that is.
    pub fn length(&self) -> Duration {
        self.until.since(self.from)
    }

    /// The time that both have in common; empty where that is nothing.
    fn common(&self, other: &Self) -> Self {
        let from = self.from.max(other.from);
        Self { from, until: self.until.min(other.until).max(from) }
    }

    fn second_half(&self) -> Self {
        Self { from: self.from + self.length() / 2, ..*self }
    }
}

/// The verdict on two series.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Their places, the lower first.
    pub series: (usize, usize),
    /// When both were measured; `None`: never.
    pub common: Option<Span>,
    /// When the detector had them in one group.
    pub evidence: Vec<Span>,
    /// How likely they share a bottleneck; `None`: the detector does not say.
    pub confidence: Option<f64>,
    /// Whether they are in one group in the end.
    pub shared: bool,
}

impl Pair {
    /// The part of the common time in which they were in one group.
    pub fn part_together(&self) -> f64 {
        self.common.map_or(0.0, |common| self.part_of(&common))
    }

    /// From when on they were in one group for three quarters of the time and more; `None`: they do
    /// not share.
    pub fn since(&self) -> Option<Timestamp> {
        let end = self.common?.until;
        let mostly = |span: &&Span| self.part_of(&Span { from: span.from, until: end }) >= 0.75;
        let first = self.evidence.iter().find(mostly).or(self.evidence.last());
        first.filter(|_| self.shared).map(|span| span.from)
    }

    /// The part of a span in which they were in one group.
    fn part_of(&self, span: &Span) -> f64 {
        let together: Duration = self.evidence.iter().map(|one| one.common(span).length()).sum();
        if span.length().is_zero() { 0.0 } else { together.as_secs_f64() / span.length().as_secs_f64() }
    }
}

/// The verdict on all series.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// All pairs, in order.
    pub pairs: Vec<Pair>,
    /// The places of the series, group by group; each series is in one.
    pub groups: Vec<Vec<usize>>,
}

/// Plays the series to a detector as an engine would: a path is opened with its first sample and
/// closed after its last one. `progress` is told of every sample.
pub(crate) fn judge(detector: &mut dyn Detector, series: &[&[RttSample]], mut progress: impl FnMut()) -> Judgement {
    let mut pairs = Playing::new(series);
    let mut next = vec![0; series.len()];
    let mut queue: BinaryHeap<_> =
        series.iter().enumerate().filter_map(|(at, one)| Some(Reverse((one.first()?.at, at)))).collect();
    let mut noted: Option<Timestamp> = None;
    while let Some(Reverse((now, at))) = queue.pop() {
        let path = PathId::new(at as u32);
        if next[at] == 0 {
            detector.on_path_opened(path, now);
        }
        let sample = series[at][next[at]];
        detector.on_sample(path, &DelaySample { now, rtt: sample.rtt, one_way: None });
        if let Some(groups) = detector.poll(now) {
            pairs.on_groups(now, |a, b| groups.together(a, b));
        }
        if noted.is_none_or(|noted| now.since(noted) >= NOTED_EVERY) {
            noted = Some(now);
            pairs.note(now, detector);
        }
        next[at] += 1;
        match series[at].get(next[at]) {
            Some(sample) => queue.push(Reverse((sample.at, at))),
            None => {
                detector.on_path_closed(path, now);
                pairs.on_closed(now, at);
            }
        }
        progress();
    }
    pairs.finish()
}

/// The pairs while they are played.
struct Playing {
    pairs: Vec<Pair>,
    /// Since when each pair is in one group.
    since: Vec<Option<Timestamp>>,
    /// The sum of the confidences of the second half, and how many they are.
    confidences: Vec<(f64, u32)>,
    count: usize,
}

impl Playing {
    fn new(series: &[&[RttSample]]) -> Self {
        let span = |one: &[RttSample]| Some(Span { from: one.first()?.at, until: one.last()?.at });
        let mut pairs = Vec::new();
        for low in 0..series.len() {
            for high in low + 1..series.len() {
                let common = span(series[low]).zip(span(series[high])).map(|(a, b)| a.common(&b));
                let common = common.filter(|common| !common.length().is_zero());
                let series = (low, high);
                pairs.push(Pair { series, common, evidence: Vec::new(), confidence: None, shared: false });
            }
        }
        let (since, confidences) = (vec![None; pairs.len()], vec![(0.0, 0); pairs.len()]);
        Self { pairs, since, confidences, count: series.len() }
    }

    fn on_groups(&mut self, now: Timestamp, together: impl Fn(PathId, PathId) -> bool) {
        for at in 0..self.pairs.len() {
            let (low, high) = self.pairs[at].series;
            let now_together = together(PathId::new(low as u32), PathId::new(high as u32));
            match (self.since[at], now_together) {
                (None, true) => self.since[at] = Some(now),
                (Some(_), false) => self.end(at, now),
                _ => {}
            }
        }
    }

    fn on_closed(&mut self, now: Timestamp, series: usize) {
        for at in 0..self.pairs.len() {
            let (low, high) = self.pairs[at].series;
            if low == series || high == series {
                self.end(at, now);
            }
        }
    }

    /// The pair is not in one group any more.
    fn end(&mut self, at: usize, now: Timestamp) {
        self.pairs[at].evidence.extend(self.since[at].take().map(|from| Span { from, until: now }));
    }

    fn note(&mut self, now: Timestamp, detector: &dyn Detector) {
        for verdict in detector.verdicts() {
            let (low, high) = (verdict.paths.0.get() as usize, verdict.paths.1.get() as usize);
            // The pairs of lower first members come before: n - 1, n - 2, … of them.
            let at = low * (2 * self.count - low - 1) / 2 + high - low - 1;
            let half = self.pairs[at].common.map(|common| common.second_half());
            if half.is_some_and(|half| (half.from..=half.until).contains(&now)) {
                let (sum, count) = &mut self.confidences[at];
                *sum += verdict.confidence;
                *count += 1;
            }
        }
    }

    fn finish(mut self) -> Judgement {
        for (pair, (sum, count)) in self.pairs.iter_mut().zip(self.confidences) {
            pair.confidence = (count > 0).then(|| sum / f64::from(count));
        }
        let groups = groups(&self.pairs, self.count);
        for pair in &mut self.pairs {
            let (low, high) = pair.series;
            pair.shared = groups.iter().any(|group| group.contains(&low) && group.contains(&high));
        }
        Judgement { pairs: self.pairs, groups }
    }
}

/// Merges the two groups that were together most, as long as that is more than half of the time.
fn groups(pairs: &[Pair], count: usize) -> Vec<Vec<usize>> {
    let mut together = vec![vec![0.0; count]; count];
    for pair in pairs {
        let (low, high) = pair.series;
        let part = pair.common.map_or(0.0, |common| pair.part_of(&common.second_half()));
        together[low][high] = part;
        together[high][low] = part;
    }
    let mut groups: Vec<Vec<usize>> = (0..count).map(|at| vec![at]).collect();
    loop {
        let mean = |a: &[usize], b: &[usize]| {
            let sum: f64 = a.iter().flat_map(|one| b.iter().map(|other| together[*one][*other])).sum();
            sum / (a.len() * b.len()) as f64
        };
        let candidates = (0..groups.len()).flat_map(|low| (low + 1..groups.len()).map(move |high| (low, high)));
        let best = candidates.map(|(low, high)| (mean(&groups[low], &groups[high]), low, high));
        match best.max_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((part, low, high)) if part > 0.5 => {
                let merged = groups.remove(high);
                groups[low].extend(merged);
                groups[low].sort_unstable();
            }
            _ => return groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use fairpath_sbd::{Groups, HoldTime};

    use super::*;

    /// Says that the first two paths are together at some seconds.
    #[derive(Debug)]
    struct Told(std::ops::Range<u64>);

    impl Detector for Told {
        fn on_path_opened(&mut self, _: PathId, _: Timestamp) {}
        fn on_path_closed(&mut self, _: PathId, _: Timestamp) {}
        fn poll(&mut self, now: Timestamp) -> Option<Groups> {
            let paths = [PathId::new(0), PathId::new(1)];
            let together = self.0.contains(&now.since(Timestamp::ZERO).as_secs());
            Some(if together {
                Groups::one(paths)
            } else {
                Groups::from_members(paths.map(|path| vec![path]).to_vec())
            })
        }
    }

    fn samples(seconds: std::ops::RangeInclusive<u64>) -> Vec<RttSample> {
        seconds.map(|at| RttSample { at: Timestamp::from_secs(at), rtt: Duration::from_millis(20) }).collect()
    }

    fn span(from: u64, until: u64) -> Span {
        Span { from: Timestamp::from_secs(from), until: Timestamp::from_secs(until) }
    }

    /// The verdict of a detector on paths that are open, of which the second one is measured at these
    /// seconds.
    fn judged(together: std::ops::Range<u64>, second: std::ops::RangeInclusive<u64>) -> Judgement {
        let mut detector = HoldTime::new(Box::new(Told(together)), Duration::ZERO);
        judge(&mut detector, &[&samples(0..=30), &samples(second)], || {})
    }

    #[test]
    fn a_pair_is_judged_by_the_second_half_of_the_common_time() {
        // The common time is 10 to 30 s, its second half 20 to 30 s.
        let early = judged(10..24, 10..=50);
        assert_eq!(early.pairs[0].common, Some(span(10, 30)));
        assert_eq!((early.groups.len(), early.pairs[0].shared, early.pairs[0].since()), (2, false, None));
        assert_eq!(early.pairs[0].part_together(), 0.7);
        let late = judged(24..50, 10..=50);
        assert_eq!(late.groups, [[0, 1]]);
        assert_eq!(late.pairs[0].since(), Some(Timestamp::from_secs(24)));
        assert_eq!(late.pairs[0].evidence, [span(24, 30)], "the first path was closed then");
    }

    #[test]
    fn those_that_were_never_measured_at_once_share_nothing() {
        let judgement = judged(0..100, 40..=50);
        assert_eq!((judgement.pairs[0].common, judgement.groups.len()), (None, 2));
    }

    #[test]
    fn a_word_from_before_does_not_count_as_since() {
        let pair = Pair {
            series: (0, 1),
            common: Some(span(0, 100)),
            evidence: vec![span(5, 6), span(40, 70), span(71, 100)],
            confidence: None,
            shared: true,
        };
        // From 5 s on it is 60 of 95 s, from 40 s on 59 of 60 s.
        assert_eq!(pair.since(), Some(Timestamp::from_secs(40)));
    }

    #[test]
    fn groups_are_a_partition_even_where_pairs_contradict_each_other() {
        let pair = |low, high, seconds: u64| Pair {
            series: (low, high),
            common: Some(span(0, 100)),
            evidence: vec![span(100 - seconds, 100)],
            confidence: None,
            shared: false,
        };
        // In the second half 0 and 1 were together for 80 %, 1 and 2 for 60 %, 0 and 2 for 20 %:
        // the mean of the last two is 40 %.
        assert_eq!(groups(&[pair(0, 1, 40), pair(0, 2, 10), pair(1, 2, 30)], 3), [vec![0, 1], vec![2]]);
        assert_eq!(groups(&[pair(0, 1, 40), pair(0, 2, 25), pair(1, 2, 30)], 3), [vec![0, 1, 2]]);
    }

    #[test]
    fn the_confidence_of_a_pair_is_its_own() {
        // A queue of one pair, by the default detector; the third path is flat.
        let wave = |base: u64, flat: bool| -> Vec<RttSample> {
            let rtt = |at: u64| base + if flat { 0 } else { (at * at / 700) % 2100 / 40 };
            (0..3000u64)
                .map(|n| RttSample { at: Timestamp::from_millis(n * 20), rtt: Duration::from_millis(rtt(n)) })
                .collect()
        };
        let mut detector = fairpath_sbd::by_name("concordance").unwrap();
        let (a, b, c) = (wave(50, true), wave(60, false), wave(70, false));
        let judgement = judge(detector.as_mut(), &[&a, &b, &c], || {});
        let confidence: Vec<f64> = judgement.pairs.iter().map(|pair| pair.confidence.unwrap()).collect();
        assert!(confidence[2] > 0.9 && confidence[0] < 0.6 && confidence[1] < 0.6, "{confidence:?}");
        assert_eq!(judgement.groups, [vec![0], vec![1, 2]]);
    }

    /// A file may say any times, and round-trip times as well.
    #[test]
    fn no_detector_minds_what_lies_centuries_apart() {
        let times = [0, 1, 2_000_000_000, 3_000_000_000, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        let series = |turn: u32| {
            times.map(|at| RttSample { at: Timestamp::from_nanos(at), rtt: Duration::from_nanos(at.rotate_left(turn)) })
        };
        for name in fairpath_sbd::NAMES {
            let mut detector = HoldTime::new(fairpath_sbd::by_name(name).unwrap(), Duration::MAX);
            let judgement = judge(&mut detector, &[&series(0), &series(1), &series(32)], || {});
            assert_eq!(judgement.groups.iter().flatten().count(), 3, "{name}");
        }
    }
}
