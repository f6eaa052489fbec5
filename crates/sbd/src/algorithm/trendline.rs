//! TR, delay trend-line regression: two paths share a bottleneck if their delays grow equally fast
//! at the same time.
//!
//! While a queue builds up, the delays of all flows through it grow by the same slope, whatever
//! their round-trip times. So each path's longest build-up of the last seconds is fitted with a
//! line, and the slopes are compared.
//!
//! # Source
//!
//! [TR2018] Shared Bottleneck Detection Based on Trend Line Regression for Multipath Transmission,
//! §4.3. [`TrendlineConfig::overlapping`] is a variant of ours: the build-ups must overlap.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | α | `alpha` | 1 |
//! | y_k, s_k | what [`Smoothed`] takes and gives | ms |
//! | g, G | the groups of [`MaxFilter`] | |
//! | M | the merged groups of [`GroupMerge`] | |
//! | k | `Line::slope` | ms/s |
//! | err | `error` | 1 |
//! | 50 ms, 5 s, 0.2, 1000 ms, 100 s | `merge_gap`, `round`, `error_max`, `Nearness::Gap`, `hold` | |
//!
//! # Deviations
//!
//! - α is lost in the text that the paper is known by; 0.1 is an assumption. So are the least size
//!   of a group, two points, and the normaliser of the error, the larger slope.
//! - The paper has two paths. Here all pairs are compared, and pairs that have a path in common are
//!   one group.
//! - The paper's program smooths what its transport has smoothed already; `presmoothing` does that.
//! - Points are not kept: the sums that the regression needs are updated with each sample. A path
//!   takes less than 400 bytes, a pair less than 50, however many samples a round has.
//! - The confidence of a pair is how fresh the last yes is: 1 at once, 0 when it is forgotten.

mod group_merge;
mod max_filter;
mod regression;
mod smoothing;

use core::time::Duration;

use fairpath_core::{DelaySample, Groups, PathId, PathMap, Timestamp};

use self::group_merge::GroupMerge;
use self::max_filter::MaxFilter;
use self::regression::Line;
use self::smoothing::Smoothed;
use crate::detector::{Detector, PairVerdict};
use crate::grid::millis;
use crate::pairs::Pairs;

/// How near in time two build-ups must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nearness {
    /// One begins at most this long after the other has ended.
    Gap(Duration),
    /// The overlap of both is at least this part of the time that they cover together.
    Overlap(f64),
}

/// The parameters of [`Trendline`]; the default is the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrendlineConfig {
    /// The weight of a new sample in the smoothed delay.
    pub alpha: f64,
    /// The weight of a new sample in a smoothing before that one; `None`: there is none.
    pub presmoothing: Option<f64>,
    /// The least number of points of a group.
    pub group_points_min: u32,
    /// Groups that begin this long after the end of another are not merged with it.
    pub merge_gap: Duration,
    /// How often the slopes are compared.
    pub round: Duration,
    /// The largest difference of the slopes, as part of the larger one.
    pub error_max: f64,
    /// How near the build-ups must be.
    pub nearness: Nearness,
    /// How long a pair stays together after the last yes.
    pub hold: Duration,
    /// The least number of points of a build-up that is compared.
    pub points_min: u32,
    /// Slopes up to this one, in ms/s, are not compared.
    pub slope_min_ms_per_s: f64,
    /// The least duration of a build-up that is compared.
    pub lasting_min: Duration,
    /// Samples of a path that has been open for less than this are ignored.
    pub settle: Duration,
}

impl Default for TrendlineConfig {
    fn default() -> Self {
        Self {
            alpha: 0.1,
            presmoothing: None,
            group_points_min: 2,
            merge_gap: Duration::from_millis(50),
            round: Duration::from_secs(5),
            error_max: 0.2,
            nearness: Nearness::Gap(Duration::from_secs(1)),
            hold: Duration::from_secs(100),
            points_min: 2,
            slope_min_ms_per_s: 0.0,
            lasting_min: Duration::ZERO,
            settle: Duration::ZERO,
        }
    }
}

impl TrendlineConfig {
    /// The paper's rule as its program for multipath QUIC has it: what it is fed with are smoothed
    /// round-trip times.
    // [TR2018 §5.2]
    pub fn smoothed_input() -> Self {
        Self { presmoothing: Some(0.125), ..Self::default() }
    }

    /// The paper's rule with a stricter condition on time: both build-ups last at least 300 ms,
    /// have ten points, and have 70 % in common. Fewer separate paths are called shared by it.
    pub fn overlapping() -> Self {
        Self {
            nearness: Nearness::Overlap(0.7),
            points_min: 10,
            lasting_min: Duration::from_millis(300),
            ..Self::smoothed_input()
        }
    }
}

/// A queue that builds up, as its regression line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BuildUp {
    /// When its first sample came.
    pub begin: Timestamp,
    /// When its last sample came.
    pub end: Timestamp,
    /// How many samples it has.
    pub points: u32,
    /// How fast the delay grows.
    pub slope_ms_per_s: f64,
    /// The delay at the beginning of the line.
    pub begin_delay_ms: f64,
}

impl BuildUp {
    /// How far the slopes of two build-ups are apart, in parts of the larger.
    pub fn error(&self, other: &Self) -> f64 {
        error(self.slope_ms_per_s, other.slope_ms_per_s)
    }

    /// The delay at the end of the line.
    pub fn end_delay_ms(&self) -> f64 {
        self.begin_delay_ms + self.slope_ms_per_s * millis(self.end.since(self.begin)) / 1000.0
    }
}

/// The delay trend-line regression detector.
#[derive(Clone, Debug, Default)]
pub struct Trendline {
    config: TrendlineConfig,
    paths: PathMap<Path>,
    /// The time of the last yes of each pair.
    pairs: Pairs<Option<Timestamp>>,
    /// When the round under way began.
    round_began: Timestamp,
    /// When the one before began.
    last_round_began: Timestamp,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    opened: Timestamp,
    presmoothed: Smoothed,
    smoothed: Smoothed,
    filter: MaxFilter,
    merge: GroupMerge,
    /// The longest build-up of the last round.
    longest: Option<Line>,
}

impl Trendline {
    /// A detector with these parameters.
    pub fn new(config: TrendlineConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Compares all pairs, and begins the next round.
    fn end_round(&mut self, now: Timestamp) {
        let config = self.config;
        for (_, path) in self.paths.iter_mut() {
            if let Some(group) = path.filter.finish(config.group_points_min) {
                path.merge.push(group, millis(config.merge_gap));
            }
            path.longest = path.merge.finish();
        }
        for pair in self.pairs.iter_mut() {
            let longest = |path| self.paths.get(path).and_then(|path| path.longest);
            if let (Some(low), Some(high)) = (longest(pair.low), longest(pair.high))
                && alike(&low, &high, &config)
            {
                pair.state = Some(now);
            }
        }
        self.pairs.link(now, |_, _, pair| pair.state.is_some_and(|yes| now.since(yes) <= config.hold));
        self.last_round_began = self.round_began;
        self.round_began = now;
    }

    /// The longest build-up of a path in the last complete round, for people to see; `None` where
    /// the path had none.
    pub fn build_up(&self, path: PathId) -> Option<BuildUp> {
        let line = self.paths.get(path)?.longest?;
        let slope_ms_per_s = line.slope()?;
        let at = |at_ms: f64| self.last_round_began + Duration::from_secs_f64(at_ms / 1000.0);
        Some(BuildUp {
            begin: at(line.first_ms()),
            end: at(line.last_ms()),
            points: line.points(),
            slope_ms_per_s,
            begin_delay_ms: line.delay_at(line.first_ms(), slope_ms_per_s),
        })
    }

    /// The build-ups of two paths in the last complete round, if they are taken for one queue's.
    pub fn matched(&self, a: PathId, b: PathId) -> Option<[BuildUp; 2]> {
        let longest = |path| self.paths.get(path).and_then(|path| path.longest);
        let is_match = alike(&longest(a)?, &longest(b)?, &self.config);
        Some([self.build_up(a)?, self.build_up(b)?]).filter(|_| is_match)
    }

    /// The smoothed delay after a path's last sample, in ms, and the points so far in the group
    /// that it belongs to; for display.
    pub fn smoothed(&self, path: PathId) -> Option<(f64, u32)> {
        let path = self.paths.get(path)?;
        path.smoothed.get().map(|delay| (delay, path.filter.points()))
    }
}

impl Detector for Trendline {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        if self.paths.is_empty() {
            self.round_began = now;
        }
        if self.pairs.open(path, now, || None) {
            let state = Path {
                opened: now,
                presmoothed: Smoothed::default(),
                smoothed: Smoothed::default(),
                filter: MaxFilter::default(),
                merge: GroupMerge::default(),
                longest: None,
            };
            self.paths.insert(path, state);
        }
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.paths.remove(path);
        self.pairs.close(path, now);
    }

    fn on_sample(&mut self, path: PathId, sample: &DelaySample) {
        let config = &self.config;
        let Some(path) = self.paths.get_mut(path) else { return };
        if sample.now.since(path.opened) < config.settle {
            return;
        }
        let measured = millis(sample.one_way.unwrap_or(sample.rtt));
        let measured = config.presmoothing.map_or(measured, |weight| path.presmoothed.update(measured, weight));
        let delay = path.smoothed.update(measured, config.alpha);
        let at_ms = millis(sample.now.since(self.round_began));
        if let Some(group) = path.filter.push(at_ms, delay, config.group_points_min) {
            path.merge.push(group, millis(config.merge_gap));
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        if now.since(self.round_began) >= self.config.round {
            self.end_round(now);
        }
        self.pairs.take_news()
    }

    fn verdicts(&self) -> Vec<PairVerdict> {
        let freshness = |yes: Timestamp| {
            let hold = millis(self.config.hold);
            (1.0 - millis(self.round_began.since(yes)) / hold).clamp(0.0, 1.0)
        };
        self.pairs.iter().map(|pair| pair.verdict(pair.state.map_or(0.0, freshness))).collect()
    }
}

/// Whether two build-ups are those of one queue.
// [TR2018 Algorithm 3]
//     k_1 > 0, k_2 > 0, err <= 0.2, max(ts_1, ts_2) - min(te_1, te_2) <= 1000 ms
fn alike(a: &Line, b: &Line, config: &TrendlineConfig) -> bool {
    let usable = |line: &Line| {
        let lasts = line.last_ms() - line.first_ms() >= millis(config.lasting_min);
        line.slope().filter(|slope| *slope > config.slope_min_ms_per_s && lasts && line.points() >= config.points_min)
    };
    let (Some(slope_a), Some(slope_b)) = (usable(a), usable(b)) else { return false };
    let near = match config.nearness {
        Nearness::Gap(gap) => distance_ms(a, b) <= millis(gap),
        Nearness::Overlap(part) => overlap(a, b) >= part,
    };
    near && slope_a.min(slope_b) > 0.0 && error(slope_a, slope_b) <= config.error_max
}

// [TR2018 eq. 18]
//     err = |k_1 - k_2| / max(k_1, k_2)
fn error(a: f64, b: f64) -> f64 {
    (a - b).abs() / a.max(b)
}

/// How long after the end of one the other begins; negative where they overlap.
fn distance_ms(a: &Line, b: &Line) -> f64 {
    a.first_ms().max(b.first_ms()) - a.last_ms().min(b.last_ms())
}

/// The overlap of both, as a part of the time that they cover together.
fn overlap(a: &Line, b: &Line) -> f64 {
    let together = a.last_ms().max(b.last_ms()) - a.first_ms().min(b.first_ms());
    if together > 0.0 { (-distance_ms(a, b)).max(0.0) / together } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ms, path, sample};

    /// A build-up of these slopes, from and to these times.
    fn line(slope_ms_per_s: f64, from_ms: f64, to_ms: f64) -> Line {
        let mut line = Line::new(from_ms, 100.0);
        line.append(&Line::new(to_ms, 100.0 + slope_ms_per_s * (to_ms - from_ms) / 1000.0));
        line
    }

    #[test]
    fn the_rows_of_table_5_have_the_errors_of_table_5() {
        // k1, k2 and err as printed.
        for (a, b, printed) in [(473.0, 441.0, 0.068), (219.0, 190.0, 0.132), (348.0, 317.0, 0.089)] {
            assert!((error(a, b) - printed).abs() < 0.001, "{a}, {b}: {}", error(a, b));
        }
    }

    #[test]
    fn slopes_may_differ_by_a_fifth_of_the_larger() {
        let config = TrendlineConfig::default();
        let steep = line(100.0, 0.0, 500.0);
        assert!(alike(&steep, &line(81.0, 0.0, 500.0), &config));
        assert!(!alike(&steep, &line(79.0, 0.0, 500.0), &config));
        assert!(!alike(&line(0.0, 0.0, 500.0), &line(0.0, 0.0, 500.0), &config), "nothing builds up");
    }

    #[test]
    fn build_ups_may_be_a_second_apart_or_must_overlap() {
        let (first, second) = (line(100.0, 0.0, 500.0), line(100.0, 1500.0, 2000.0));
        let config = TrendlineConfig::default();
        assert!(alike(&first, &second, &config) && alike(&second, &first, &config));
        assert!(!alike(&first, &line(100.0, 1501.0, 2000.0), &config));
        // 400 of 600 ms in common are two thirds.
        let overlapping = TrendlineConfig { points_min: 2, ..TrendlineConfig::overlapping() };
        assert!(!alike(&first, &line(100.0, 100.0, 600.0), &overlapping));
        assert!(alike(&first, &line(100.0, 80.0, 580.0), &overlapping), "420 of 580 ms");
    }

    /// Feeds both paths for five seconds from `from_ms`, growing by these slopes, and polls.
    fn round(detector: &mut Trendline, from_ms: u64, slopes: [u64; 2]) -> Option<Groups> {
        for at in (0..5000).step_by(10) {
            for (id, slope) in (0..).zip(slopes) {
                detector.on_sample(path(id), &sample(from_ms + at, 50.0 + (at * slope) as f64 / 1000.0));
            }
        }
        detector.poll(Timestamp::from_millis(from_ms + 5000))
    }

    fn opened() -> Trendline {
        let mut detector = Trendline::default();
        (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
        assert!(detector.poll(Timestamp::ZERO).is_some());
        detector
    }

    #[test]
    fn a_yes_holds_for_a_hundred_seconds() {
        let mut detector = opened();
        let groups = round(&mut detector, 0, [100, 100]).expect("they grow alike");
        assert!(groups.together(path(0), path(1)));
        // The yes was at 5 s. Rounds end at 10, 15, ... 105 s; the one after that is too late.
        for second in (5..105).step_by(5) {
            assert_eq!(round(&mut detector, second * 1000, [100, 30]), None, "at {} s", second + 5);
        }
        let groups = round(&mut detector, 105_000, [100, 30]).expect("the yes is 105 s old");
        assert!(!groups.together(path(0), path(1)));
    }

    #[test]
    fn other_slopes_are_no_yes() {
        let mut detector = opened();
        assert_eq!(round(&mut detector, 0, [100, 30]), None);
        assert_eq!(detector.matched(path(0), path(1)), None);
    }

    #[test]
    fn the_build_ups_that_matched_can_be_seen() {
        let mut detector = opened();
        round(&mut detector, 0, [100, 30]);
        round(&mut detector, 5000, [100, 100]);
        let [a, b] = detector.matched(path(0), path(1)).expect("they grow alike");
        // The smoothed delay lags behind; in the long run it grows as fast.
        assert!((a.slope_ms_per_s - 100.0).abs() < 5.0, "{a:?}");
        assert!(a.begin >= Timestamp::from_secs(5) && a.end == Timestamp::from_millis(9990), "{a:?}");
        assert!((a.end_delay_ms() - 540.0).abs() < 5.0, "549 ms less the lag of nine samples: {a:?}");
        assert!(a.error(&b) <= 0.2 && a.points > 400, "{a:?} {b:?}");
        let (smoothed, points) = detector.smoothed(path(0)).unwrap();
        // The round's end has closed the group.
        assert!((smoothed - 540.0).abs() < 2.0 && points == 0, "{smoothed} {points}");
    }

    #[test]
    fn the_confidence_is_how_fresh_the_yes_is() {
        let mut detector = opened();
        round(&mut detector, 0, [100, 100]);
        round(&mut detector, 5000, [100, 30]);
        // The yes is 5 of 100 s old.
        let verdict = detector.verdicts()[0];
        assert!(verdict.together && (verdict.confidence - 0.95).abs() < 1e-9, "{verdict:?}");
        assert_eq!(verdict.since, Timestamp::ZERO + ms(5000));
    }

    #[test]
    fn the_memory_of_a_path_and_of_a_pair_is_what_the_head_says() {
        assert!(size_of::<Path>() < 400 && size_of::<crate::pairs::Pair<Option<Timestamp>>>() < 50);
    }
}
