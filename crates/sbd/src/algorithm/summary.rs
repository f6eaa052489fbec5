//! SSC, summary statistics of delay: paths share a bottleneck if their delays are skewed, vary and
//! oscillate alike, and if they lose alike where they lose much. Delays are summed up over
//! intervals of 350 ms; the paths at a bottleneck are sorted by each statistic, and the list is cut
//! where neighbours differ.
//!
//! # Source
//!
//! [RFC8382] Shared Bottleneck Detection for Coupled Congestion Control for RTP Media;
//! [Hayes2014]; [Ferlin2016]; [DrainQueue] for the weakened variant. [`SummaryConfig`] has a set of
//! parameters for each.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | T, N, M, F | `interval`, `oscillation_intervals`, `mean_intervals`, `flat_intervals` | s, 1, 1, 1 |
//! | skew_est | `Estimates::skewness` | 1 |
//! | var_est, PDV | `Estimates::variability` | ms |
//! | freq_est | `Estimates::oscillation` | 1/T |
//! | pkt_loss | `Estimates::loss` | 1 |
//! | PB | `Estimates::congested` | |
//! | c_s, c_h, p_l | `Congested` | 1 |
//! | p_v | `Variability` | 1 |
//! | p_f, p_mad, p_s, p_d | `split_oscillation`, `split_variability`, `split_skewness`, `split_loss` | |
//!
//! # Deviations
//!
//! - The round-trip time is taken where no one-way delay is known, as [TR2018] does.
//! - The values of c_s, p_f, p_mad, p_s, p_d, p_l and the weights of §4.1 were taken from memory of
//!   the RFC and compared with programs that name it; its text was not at hand. All are those of
//!   [MPQUICSBD], the published one that implements the RFC. Of p_l programs disagree: it has 0.1, and so
//!   has [Ferlin2016], three of whose authors are the RFC's; others have 0.05. Here it is 0.1, and can be set.
//! - The loss rate counts a sample as two packets: not every packet has an acknowledgement.
//! - Intervals begin for all paths together. One in which a path has no sample is left out for that
//!   path. After N intervals without any sample of any path the statistics begin anew.
//! - A path that passes no bottleneck is alone.
//! - The confidence of a pair is the part of the last ten observations that had it in one group.
//! - A path takes less than 5 kB, a pair less than 60 bytes.

mod config;
mod grouping;
mod statistics;

use core::time::Duration;

use fairpath_core::{DelaySample, Groups, Lost, PathId, PathMap, Timestamp};

pub use self::config::{Congested, LossSplit, Oscillation, Persistence, Split, SummaryConfig, Variability};
use self::grouping::Grouping;
use self::statistics::{Estimates, INTERVALS_MAX, Statistics};
use crate::detector::{Detector, PairVerdict};
use crate::grid::millis;
use crate::pairs::{Pairs, positions};

/// How many observations are remembered.
const OBSERVATIONS: u32 = 10;

/// The summary-statistics detector.
#[derive(Clone, Debug)]
pub struct Summary {
    config: SummaryConfig,
    paths: PathMap<Statistics>,
    pairs: Pairs<Observations>,
    /// When the interval under way began; `None`: there is no path.
    began: Option<Timestamp>,
    /// How many intervals have ended.
    ended: u32,
    estimates: Vec<Estimates>,
    grouping: Grouping,
}

/// How often two flows were seen in one group.
#[derive(Clone, Copy, Debug, Default)]
struct Observations {
    /// The last ten, the newest in the lowest bit.
    together: u16,
    /// The last time.
    last: Option<Timestamp>,
}

impl Default for Summary {
    fn default() -> Self {
        Self::new(SummaryConfig::default())
    }
}

impl Summary {
    /// A detector with these parameters.
    pub fn new(config: SummaryConfig) -> Self {
        let config = SummaryConfig {
            oscillation_intervals: config.oscillation_intervals.clamp(1, INTERVALS_MAX),
            mean_intervals: config.mean_intervals.clamp(1, INTERVALS_MAX),
            interval: config.interval.max(Duration::from_millis(1)),
            ..config
        };
        Self {
            config,
            paths: PathMap::new(),
            pairs: Pairs::default(),
            began: None,
            ended: 0,
            estimates: Vec::new(),
            grouping: Grouping::default(),
        }
    }

    /// Ends the intervals that are over.
    fn advance(&mut self, now: Timestamp) {
        let Some(mut began) = self.began else { return };
        let passed = now.since(began);
        if passed < self.config.interval {
            return;
        }
        if passed.as_nanos() / self.config.interval.as_nanos() > self.config.oscillation_intervals as u128 {
            // Such a silence leaves nothing to count on.
            self.paths.iter_mut().for_each(|(_, path)| *path = Statistics::new());
            self.began = Some(now);
            self.ended = 0;
            return;
        }
        while now.since(began) >= self.config.interval {
            began = began + self.config.interval;
            self.began = Some(began);
            self.end_interval(began);
        }
    }

    fn end_interval(&mut self, now: Timestamp) {
        let config = self.config;
        self.estimates.clear();
        self.estimates.extend(self.paths.iter_mut().map(|(_, path)| path.end_interval(&config)));
        self.ended = self.ended.saturating_add(1);
        if self.ended < config.warm_up_intervals {
            return;
        }
        self.grouping.group(&self.estimates, &config);
        for ((low, high), pair) in positions(self.pairs.paths().len()).zip(self.pairs.iter_mut()) {
            let together = self.grouping.together(low, high);
            pair.state.together = (pair.state.together << 1 | u16::from(together)) & ((1 << OBSERVATIONS) - 1);
            if together {
                pair.state.last = Some(now);
            }
        }
        self.pairs.link(now, |_, _, pair| match config.persistence {
            Persistence::Latest => pair.state.together & 1 == 1,
            Persistence::OfLastTen(count) => pair.state.together.count_ones() >= count,
            Persistence::Hold(hold) => pair.state.last.is_some_and(|last| now.since(last) <= hold),
        });
    }
}

impl Detector for Summary {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        self.advance(now);
        if self.pairs.open(path, now, Observations::default) {
            self.paths.insert(path, Statistics::new());
            self.began.get_or_insert(now);
        }
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.advance(now);
        self.paths.remove(path);
        self.pairs.close(path, now);
    }

    fn on_sample(&mut self, path: PathId, sample: &DelaySample) {
        self.advance(sample.now);
        if let Some(path) = self.paths.get_mut(path) {
            path.on_delay(millis(sample.one_way.unwrap_or(sample.rtt)));
        }
    }

    fn on_loss(&mut self, path: PathId, lost: &Lost) {
        self.advance(lost.now);
        if let Some(path) = self.paths.get_mut(path) {
            path.on_loss();
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        self.advance(now);
        self.pairs.take_news()
    }

    fn verdicts(&self) -> Vec<PairVerdict> {
        let confidence = |observed: &Observations| f64::from(observed.together.count_ones()) / f64::from(OBSERVATIONS);
        self.pairs.iter().map(|pair| pair.verdict(confidence(&pair.state))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, sample};

    /// A delay that swings with this period, mostly near its top: a bottleneck.
    fn swing(at_ms: u64, period_ms: u64, ms: f64) -> f64 {
        let part = (at_ms % period_ms) as f64 / period_ms as f64;
        50.0 + ms * libm::sqrt(part)
    }

    fn run(config: SummaryConfig, delays: impl Fn(u32, u64) -> f64, until_ms: u64) -> (Summary, Option<u64>) {
        let mut detector = Summary::new(config);
        (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
        let mut first = None;
        for at in (0..until_ms).step_by(10) {
            (0..2).for_each(|id| detector.on_sample(path(id), &sample(at, delays(id, at))));
            if detector.poll(Timestamp::from_millis(at)).is_some_and(|groups| groups.together(path(0), path(1))) {
                first.get_or_insert(at);
            }
        }
        (detector, first)
    }

    #[test]
    fn equal_delays_are_one_group_once_the_warm_up_is_over() {
        // 60 intervals of 350 ms are 21 s, 50 of them 17.5 s.
        let same = |_, at| swing(at, 2000, 40.0);
        assert_eq!(run(SummaryConfig::rfc8382(), same, 30_000).1, Some(21_000));
        assert_eq!(run(SummaryConfig::lcn14(), same, 30_000).1, Some(17_500));
        // Five observations later.
        assert_eq!(run(SummaryConfig::mptcp_sbd(), same, 30_000).1, Some(17_500 + 4 * 350));
    }

    #[test]
    fn delays_that_vary_otherwise_are_two_groups() {
        let other = |id, at| swing(at, 2000, 40.0 + 20.0 * f64::from(id));
        for config in [SummaryConfig::rfc8382(), SummaryConfig::lcn14(), SummaryConfig::mptcp_sbd()] {
            assert_eq!(run(config, other, 40_000).1, None, "{config:?}");
        }
    }

    #[test]
    fn the_variant_of_the_authors_compares_by_a_tenth_of_a_millisecond() {
        // 2 % more of 40 ms of swing: alike to the RFC, and not to the variant.
        let near = |id, at| swing(at, 2000, 40.0 + 0.8 * f64::from(id));
        assert!(run(SummaryConfig::rfc8382(), near, 30_000).1.is_some());
        assert_eq!(run(SummaryConfig::author_variant(), near, 30_000).1, None);
    }

    #[test]
    fn a_long_silence_is_a_new_beginning() {
        let (mut detector, first) = run(SummaryConfig::rfc8382(), |_, at| swing(at, 2000, 40.0), 25_000);
        assert!(first.is_some());
        detector.on_sample(path(0), &sample(10_000_000, 50.0));
        assert_eq!(detector.ended, 0);
        assert!(detector.verdicts()[0].together, "nothing has been observed since");
    }

    #[test]
    fn the_memory_of_a_path_and_of_a_pair_is_what_the_head_says() {
        assert!(size_of::<Statistics>() < 5000, "{}", size_of::<Statistics>());
        assert!(size_of::<crate::pairs::Pair<Observations>>() < 60);
    }
}
