//! Concordance: two paths share a bottleneck if their delays change by the same amounts at the same
//! moments.
//!
//! All flows through one queue see it, in milliseconds and not just in proportion. Each time both
//! delays bend, that is a piece of evidence for one queue or for two. The evidence is added up
//! until the answer is clear.
//!
//! The delay of a path is the least in each step of 50 ms. Detection compares its *change*: how
//! much more it grew in 300 ms than in the 300 ms before. For round trips longer than that it also
//! compares changes over 0.6 s, and from 0.6 s on over 1.2 s. Growth itself is no evidence, as all
//! queues grow most of the time.
//!
//! The changes of two paths give the concordance of a span, and that gives a logarithm of
//! likelihoods. It is added to the log-odds of the pair, which forget slowly, as a route may
//! change. This is done for each lag that the round-trip times allow, since the position of the
//! queue is unknown. Coinciding losses add to it. The partition follows from the evidence of all
//! pairs: a third path that speaks against a group weighs against the whole group.
//!
//! With one-way delays, on paths that use all they are allowed, the order of arrivals is compared
//! as well. One queue preserves it, however short it is and whatever its hosts do.
//!
//! Dips of one path after the other, announced to the detector, answer one more question. Two
//! queues that are alike and fill in step look like one until something disturbs them, and no
//! amount of such evidence excludes them. Only measurements during a dip do. These are also added
//! up separately, and paths share a bottleneck only if both sums say so.
//!
//! # Source
//!
//! Our own. It combines the concordance coefficient of [Lin1989], the likelihood ratio that follows
//! from [Fisher1924], and the degrees of freedom of series with a rhythm by [Bartlett1935]. The
//! sequential test is that of [Wald1945], the forgetting that of [Shiryaev1963]. Delays grow by the
//! same slope for all flows of a queue by [TR2018 eq. 10].
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | w(t), m(t), S | `Changes::change`, `SPAN` | ms, ms, steps |
//! | rho_c | `Sums::concordance` | 1 |
//! | rho_1 | `one_queue` | 1 |
//! | n | `freedom`, at most; `Changes::steps_per_comparison` | 1 |
//! | ln LR | `log_ratio` | 1 |
//! | p, h | `confidence`, `changes_per_second` × time | 1 |
//! | p, c | `Losses::by_chance`, `COMMON` | 1 |
//! | o_1, o_2 | `Evidence::log_odds`, `Evidence::tested` | 1 |
//!
//! # Deviations
//!
//! There is no paper to deviate from. The choices, and their reasons:
//!
//! - `one_queue`, `freedom`, `quiet`, `noise_ms`, `join` and the span in steps were chosen on
//!   training data. These are the traces `shared-00`, `shared-01`, `separate-00` and `separate-01`
//!   of another simulator, and some 300 runs of a small packet simulator written for this.
//! - The step, the largest lag, the longest gap, `changes_per_second` and the distance of
//!   coinciding losses were chosen on the training runs 1 to 315 of the experiment `tr/grid`, which
//!   reports on others.
//! - The weight of evidence by the rhythm of the delays, joining groups by the mean, and the effect
//!   of silences were chosen on its training runs 1 to 105. The trace `separate-00` of a Linux
//!   kernel was used for silences, too.
//! - Neighbouring values give nearly the same result there: with the noise between 0.7 and 1.5 ms,
//!   `one_queue` between 0.9 and 0.95, `join` up to 0.98 or twice the `changes_per_second`. The
//!   time that shared paths are together changes by about 0.01 at most, and that of separate ones
//!   by less. With steps of 100 ms shared paths are together for 0.06 less of the time. With 25 ms
//!   it is 0.08 less: few packets come in a step, and its changes are more often noise.
//! - Queues with a rhythm of their own, as those that RED governs, are alike for several beats if
//!   their phases happen to meet. So a piece of evidence counts only as many independent
//!   comparisons as the rhythm of both leaves, at most `freedom`. For delays without rhythm, each
//!   change shares five sixths of its data with the next, and a piece of six steps is worth 6/4.86
//!   = 1.23.
//! - A host that stands still, or an application that pauses, lets all queues of its paths fall at
//!   once and may fill them with one burst. Both paths are then silent during the same interval,
//!   and changes in the 0.9 s after it are left out.
//! - With `freedom` at 1, chance gives no evidence on average, whatever the sizes of the changes
//!   are (a test works that out). At 1.2 shared paths are found a little sooner, and on the training
//!   data separate ones are mistaken no more often.
//! - Two separate queues that are alike in all respects, and fill in step, cannot be told from one
//!   until they get out of step, or a path dips. `IN_STEP` was chosen on links drawn for this, on
//!   which 0.05 and 0.12 give nearly the same. Without changes of a queue there is no evidence, and
//!   paths stay apart.
//! - A flow that fills a queue hears of it after a round trip, and differences of two delays within
//!   one are mostly each path's own. So paths of long round trips are compared on longer scales,
//!   beside the shortest and not in its place. Their odds are a mean, which chance raises no more
//!   than those of one scale. Longer scales for all paths would take queues that are alike and fill
//!   in step for one, as short dips hardly show on them. A path that opens onto a deep queue seems
//!   long until the queue is empty, and the shortest scale alone would detect it as soon.
//! - The confidence of a pair is the probability of one queue; 0.5 if nothing is known.
//! - A path takes 3.9 kB, a pair 2 kB. A sample looks at other paths twenty times a second, and
//!   with orders also at the newest trains of each.

mod changes;
mod cluster;
mod comparison;
mod evidence;
mod losses;
mod order;
mod scales;
mod silences;

use core::ops::Range;
use core::time::Duration;

use fairpath_core::{DelaySample, Groups, Lost, PathId, PathMap, Timestamp};

use self::cluster::Clusters;
use self::comparison::Comparison;
use self::evidence::{against_both, any_of, confidence, log_odds};
use self::losses::{LossEvidence, Losses};
pub use self::order::OrderParameters;
use self::order::{Course, Order};
use self::scales::{SCALES, Scale, Scales};
use self::silences::Silences;
use crate::detector::{Detector, PairVerdict};
use crate::pairs::{Pairs, positions};

/// How many spans of changes an event affects: a silence with its effect on queues, and a dip.
const SILENCE_SPANS: u64 = 3;
const DIP_SPANS: u64 = 2;

/// The probability that two queues are almost equal and fill in step, as those of two links of one
/// kind without other traffic.
const IN_STEP: f64 = 0.05;

/// The parameters of [`Concordance`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConcordanceConfig {
    /// The distance of two points of a delay.
    pub step: Duration,
    /// Samples of a path that has been open for less than this are ignored: all paths of a
    /// connection begin alike.
    pub settle: Duration,
    /// The concordance of two paths with one queue, below 1.
    pub one_queue: f64,
    /// The largest number of independent comparisons in a piece of evidence, reached if the delays
    /// have no rhythm of their own.
    pub freedom: f64,
    /// Changes below it, in ms, may be noise.
    pub noise_ms: f64,
    /// Changes whose power is below this part of the usual one may be noise.
    pub quiet: f64,
    /// How often a route is expected to change.
    pub changes_per_second: f64,
    /// Paths are put into one group where the confidence is above this.
    pub join: f64,
    /// Paths stay in one group while the confidence is above this.
    pub stay: f64,
    /// How the order of arrivals is judged.
    pub order: OrderParameters,
}

impl Default for ConcordanceConfig {
    fn default() -> Self {
        Self {
            step: Duration::from_millis(50),
            settle: Duration::from_secs(1),
            one_queue: 0.93,
            freedom: 1.2,
            noise_ms: 1.5,
            quiet: 0.1,
            changes_per_second: 5e-3,
            join: 0.95,
            stay: 0.5,
            order: OrderParameters::default(),
        }
    }
}

/// The detector by concordance of changes.
#[derive(Clone, Debug, Default)]
pub struct Concordance {
    config: ConcordanceConfig,
    paths: PathMap<Path>,
    pairs: Pairs<Evidence>,
    clusters: Clusters,
    /// Whether there is evidence that the partition does not reflect.
    fresh: bool,
}

#[derive(Clone, Debug)]
struct Path {
    opened: Timestamp,
    scales: Scales,
    course: Course,
    losses: Losses,
    silences: Silences,
    /// The shortest steps in which the last dip shows; empty before the first.
    dipped: Range<u64>,
}

impl Path {
    /// The longer of the round-trip times of two paths, in ms. It is the least ever, not the recent
    /// one: a queue that stands for a minute makes no long path.
    fn long_ms(&self, other: &Self) -> f64 {
        self.scales.least_rtt_ms().max(other.scales.least_rtt_ms())
    }

    /// Whether a dip affects the change of a step on a scale: a change looks back on two spans
    /// before its own.
    fn is_dipped(&self, step: u64, scale: Scale) -> bool {
        scale.shows_in(&self.dipped, DIP_SPANS).contains(&(step * scale.steps()))
    }
}

/// The state of a pair.
#[derive(Clone, Debug)]
struct Evidence {
    comparisons: [Comparison; SCALES],
    order: Order,
    losses: LossEvidence,
    /// All evidence, as log-odds.
    total: f64,
    /// The shortest steps in which both paths fell silent at once, so that they do not tell of the
    /// queues; empty before the first.
    silent: Range<u64>,
}

impl Default for Evidence {
    fn default() -> Self {
        let comparisons = Scale::all().map(Comparison::new);
        Self { comparisons, order: Order::default(), losses: LossEvidence::default(), total: 0.0, silent: 0..0 }
    }
}

impl Concordance {
    /// A detector with these parameters.
    pub fn new(config: ConcordanceConfig) -> Self {
        Self { config, ..Self::default() }
    }
}

impl Evidence {
    /// Looks at all steps that both paths have by now. True: there is new evidence.
    fn advance(&mut self, low: &Path, high: &Path, config: &ConcordanceConfig) -> bool {
        let [shortest, longer @ ..] = &mut self.comparisons;
        let (steps, mut fresh) = shortest.advance(low, high, &self.silent, config);
        for comparison in longer.iter_mut().take(Scale::longer_within(low.long_ms(high), config.step)) {
            fresh |= comparison.advance(low, high, &self.silent, config).1;
        }
        self.losses.age(config.changed(steps.end - steps.start));
        let left_out = Scale::SHORTEST.shows_in(&self.silent, SILENCE_SPANS);
        for step in steps.filter(|step| !left_out.contains(step)) {
            self.losses.look(&low.losses, &high.losses, step);
        }
        if fresh {
            self.add_up(low, high, config);
        }
        fresh
    }

    /// Compares a packet that came on one of the paths with those of the other. True: there is new
    /// evidence.
    fn compare_order(
        &mut self,
        sample: &DelaySample,
        [low, high]: [&Path; 2],
        is_high: bool,
        config: &ConcordanceConfig,
    ) -> bool {
        let fresh = self.order.compare(sample, [low, high], is_high, config);
        if fresh {
            self.add_up(low, high, config);
        }
        fresh
    }

    /// Adds up the evidence. The scale on which the queues move is as unknown as their position.
    fn add_up(&mut self, low: &Path, high: &Path, config: &ConcordanceConfig) {
        let behind_ms = high.scales.base_rtt_ms() - low.scales.base_rtt_ms();
        let is_tested = !low.dipped.is_empty() || !high.dipped.is_empty();
        let with_losses = |[all, tested]: [f64; 2]| {
            let total = all + self.losses.log_odds();
            if is_tested { against_both(total, -log_odds(IN_STEP) + tested) } else { total }
        };
        let on_scale = |comparison: &Comparison| with_losses(comparison.log_odds(behind_ms, config.step));
        let scales = 1 + Scale::longer_within(low.long_ms(high), config.step);
        let order = self.order.log_odds().map(with_losses);
        let mut all = [0.0; SCALES + 1];
        let mut count = 0;
        for one in self.comparisons[..scales].iter().map(on_scale).chain(order) {
            all[count] = one;
            count += 1;
        }
        self.total = any_of(&all[..count]);
    }

    /// Leaves out the effect of a silence that both paths have in common: changes look back on
    /// three spans. The same time after it is never left out. Silences that are more frequent may
    /// be the bottleneck's, as those of a radio are.
    fn leave_out_silence(&mut self, low: &Path, high: &Path) {
        let Some((begin, end)) = low.silences.common(&high.silences) else { return };
        let begin = low.scales.step_of(begin);
        let steps = begin..low.scales.step_of(end).max(begin + 1);
        let last = Scale::SHORTEST.shows_in(&self.silent, SILENCE_SPANS);
        if steps.start >= last.end + (last.end - last.start) {
            self.silent = steps;
        }
    }
}

impl ConcordanceConfig {
    /// The probability that a route has changed within this many steps.
    fn changed(&self, steps: u64) -> f64 {
        (self.changes_per_second * steps as f64 * self.step.as_secs_f64()).clamp(0.0, 0.5)
    }
}

impl Detector for Concordance {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        if self.pairs.open(path, now, Evidence::default) {
            let scales = Scales::new(self.config.step);
            self.paths.insert(
                path,
                Path {
                    opened: now,
                    scales,
                    course: Course::new(self.config.order),
                    losses: Losses::default(),
                    silences: Silences::default(),
                    dipped: 0..0,
                },
            );
        }
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.paths.remove(path);
        self.pairs.close(path, now);
    }

    fn on_sample(&mut self, path: PathId, sample: &DelaySample) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let (silent, fresh) = (state.silences.add(sample.now), state.scales.add(sample));
        if fresh {
            state.losses.advance(state.scales.step_of(sample.now));
        }
        if !silent && !fresh {
            return;
        }
        for pair in self.pairs.iter_mut().filter(|pair| pair.has(path)) {
            if let (Some(low), Some(high)) = (self.paths.get(pair.low), self.paths.get(pair.high)) {
                if silent {
                    pair.state.leave_out_silence(low, high);
                }
                self.fresh |= pair.state.advance(low, high, &self.config);
            }
        }
    }

    fn on_saturated_sample(&mut self, path: PathId, sample: &DelaySample) {
        for pair in self.pairs.iter_mut().filter(|pair| pair.has(path)) {
            let is_high = pair.high == path;
            if let (Some(low), Some(high)) = (self.paths.get(pair.low), self.paths.get(pair.high)) {
                self.fresh |= pair.state.compare_order(sample, [low, high], is_high, &self.config);
            }
        }
        if let Some(state) = self.paths.get_mut(path) {
            state.course.add(sample);
        }
        self.on_sample(path, sample);
    }

    fn on_loss(&mut self, path: PathId, lost: &Lost) {
        if let Some(state) = self.paths.get_mut(path) {
            state.losses.on_loss(state.scales.step_of(lost.now));
        }
    }

    fn on_dip(&mut self, path: PathId, from: Timestamp, until: Timestamp) {
        if let Some(state) = self.paths.get_mut(path) {
            let steps = state.scales.step_of(from)..state.scales.step_of(until) + 1;
            let is_continued = steps.start <= Scale::SHORTEST.shows_in(&state.dipped, DIP_SPANS).end;
            state.dipped = if is_continued { state.dipped.start..steps.end } else { steps };
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        if core::mem::take(&mut self.fresh) {
            let paths = self.pairs.paths().len();
            self.clusters.begin(paths);
            for ((low, high), pair) in positions(paths).zip(self.pairs.iter()) {
                self.clusters.set(low, high, pair.state.total, pair.together());
            }
            self.clusters.form(log_odds(self.config.join), log_odds(self.config.stay));
            let clusters = &self.clusters;
            self.pairs.link(now, |low, high, _| clusters.together(low, high));
        }
        self.pairs.take_news()
    }

    fn verdicts(&self) -> Vec<PairVerdict> {
        self.pairs.iter().map(|pair| pair.verdict(confidence(pair.state.total))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, sample};

    /// A queue of up to `full_ms` that grows for 2 to 3 s and drains, again and again; the times
    /// are drawn by `seed`.
    fn queue(at_ms: f64, full_ms: f64, seed: u64) -> f64 {
        let (mut begin, mut state) = (0.0, seed);
        loop {
            state = draw(state);
            let period = 2000.0 + 1000.0 * (state >> 32) as f64 / f64::from(u32::MAX);
            if at_ms < begin + period {
                return full_ms * libm::sqrt((at_ms - begin) / period);
            }
            begin += period;
        }
    }

    fn draw(state: u64) -> u64 {
        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
    }

    const ONE: u64 = 1 << 40;
    const OTHER: u64 = 7 << 50;

    /// How long a dip lasts, and how often one of the two paths dips in turn.
    const DIP_MS: u64 = 350;
    const DIP_EVERY_MS: u64 = 4_000;

    /// The path that dips.
    fn dipping(at_ms: f64) -> Option<u32> {
        let (dip, into) = (at_ms as u64 / DIP_EVERY_MS, at_ms as u64 % DIP_EVERY_MS);
        (dip > 0 && into < DIP_MS).then_some((dip % 2) as u32)
    }

    struct Run {
        detector: Concordance,
        /// The times in ms at which the partition changed, and its groups.
        changes: Vec<(u64, Vec<Vec<PathId>>)>,
    }

    impl Run {
        /// Samples every 20 ms; the delay of a path by its id and the time.
        fn new(paths: u32, until_ms: u64, delay: impl Fn(u32, f64) -> f64) -> Self {
            Self::with_dips(false, paths, until_ms, delay)
        }

        fn with_dips(dips: bool, paths: u32, until_ms: u64, delay: impl Fn(u32, f64) -> f64) -> Self {
            let mut run = Self { detector: Concordance::default(), changes: Vec::new() };
            (0..paths).for_each(|id| run.detector.on_path_opened(path(id), Timestamp::ZERO));
            for at in (0..until_ms).step_by(20) {
                if at % DIP_EVERY_MS == 0
                    && let Some(id) = dipping(at as f64).filter(|_| dips)
                {
                    let now = Timestamp::from_millis(at);
                    run.detector.on_dip(path(id), now, now + Duration::from_millis(DIP_MS));
                }
                (0..paths).for_each(|id| run.detector.on_sample(path(id), &sample(at, delay(id, at as f64))));
                if let Some(groups) = run.detector.poll(Timestamp::from_millis(at)) {
                    run.changes.push((at, groups.members()));
                }
            }
            run
        }

        /// How long both paths of a run were in one group.
        fn together_ms(&self, until_ms: u64) -> u64 {
            let ends = self.changes.iter().skip(1).map(|(at, _)| *at).chain([until_ms]);
            let together = self.changes.iter().zip(ends).filter(|((_, groups), _)| groups.len() == 1);
            together.map(|((from, _), to)| to - from).sum()
        }

        fn confidence(&self) -> f64 {
            self.detector.verdicts()[0].confidence
        }
    }

    #[test]
    fn one_queue_is_found_within_seconds() {
        let run = Run::new(2, 30_000, |id, at| [50.0, 70.0][id as usize] + queue(at, 60.0, ONE));
        let at: Vec<u64> = run.changes.iter().map(|(at, _)| *at).collect();
        // Detection starts at 1 s and the largest lag, 0.4 s; pieces of evidence of 0.3 s follow.
        assert!(at.len() == 2 && (3_000..7_000).contains(&at[1]), "{at:?}");
        assert!(run.confidence() > 0.99);
    }

    #[test]
    fn two_queues_of_one_kind_are_together_for_less_than_a_tenth_of_the_time() {
        // The worst case: both grow and drain by the same amounts, and from time to time in step
        // for several periods.
        let of = |n: u64| [n << 33, (n + 100) << 41];
        let together = |n| {
            let run = Run::new(2, 100_000, |id, at| 50.0 + queue(at, 60.0, of(n)[id as usize]));
            run.together_ms(100_000)
        };
        let sum: u64 = (0..20).map(together).sum();
        assert!(sum < 20 * 10_000, "{sum} ms of 20 times 100 s");
    }

    #[test]
    fn queues_in_step_are_two_where_a_dip_shows_on_one_path_only() {
        // A quarter less in flight than a round trip of 50 ms and a queue of up to 25 ms hold.
        let delay = |both: bool, seed: u64| {
            move |id, at: f64| {
                let full = 50.0 + queue(at, 25.0, seed);
                let dips = dipping(at).is_some_and(|dipping| both || dipping == id);
                if dips { (0.75 * full).max(50.0) } else { full }
            }
        };
        // The mean over eight runs, in parts of the time.
        let together = |is_told, both| {
            let run = |n: u64| Run::with_dips(is_told, 2, 40_000, delay(both, n << 33)).together_ms(40_000);
            (1..=8).map(run).sum::<u64>() as f64 / 320_000.0
        };
        let [deceived, told, shared] =
            [(false, false), (true, false), (true, true)].map(|(told, both)| together(told, both));
        // No harder case is known: the queues stay in step for ever, and move more than a dip does.
        assert!(deceived > 0.8, "who is not told of the dips: {deceived}");
        assert!(told < 0.2, "{told}");
        assert!(shared > 0.8, "{shared}");
    }

    #[test]
    fn queues_that_grow_alike_and_never_drain_are_no_evidence() {
        let run = Run::new(2, 60_000, |_, at| 50.0 + at / 1000.0);
        assert_eq!(run.changes.len(), 1);
        assert!((run.confidence() - 0.5).abs() < 0.01, "{}", run.confidence());
    }

    #[test]
    fn changes_of_another_size_are_another_queue() {
        let run = Run::new(2, 60_000, |id, at| 50.0 + queue(at, [60.0, 20.0][id as usize], ONE));
        assert_eq!(run.changes.len(), 1, "{:?}", run.changes);
    }

    #[test]
    fn a_path_that_sees_the_queue_later_is_found_where_its_round_trip_is_longer() {
        let behind = |rtt_ms: f64| {
            move |id, at: f64| {
                if id == 0 { 50.0 + queue(at, 60.0, ONE) } else { rtt_ms + queue((at - 400.0).max(0.0), 60.0, ONE) }
            }
        };
        assert_eq!(Run::new(2, 30_000, behind(500.0)).changes.len(), 2);
        assert_eq!(Run::new(2, 30_000, behind(60.0)).changes.len(), 1, "0.4 s cannot come from 10 ms");
    }

    #[test]
    fn where_round_trips_are_long_what_differs_within_one_is_each_paths_own() {
        // Movements over 2 to 4 s are those of one queue or two; a value that is new every tenth of
        // a second is the path's own.
        let slow = |at: f64, of: f64| 25.0 * (libm::sin(at * of / 500.0) + libm::sin(at * of / 350.0));
        let own = |id: u32, at: f64| 30.0 * (draw(draw(at as u64 / 100 * 2 + u64::from(id)) >> 29) >> 32) as f64 / 4e9;
        let found = |rtt_ms: f64, of: [f64; 2]| {
            let run = Run::new(2, 60_000, |id, at| rtt_ms + slow(at, of[id as usize]) + own(id, at));
            run.changes.get(1).map(|(at, _)| *at)
        };
        assert!(found(600.0, [1.0; 2]).is_some_and(|at| at < 20_000), "{:?}", found(600.0, [1.0; 2]));
        assert_eq!([found(200.0, [1.0; 2]), found(600.0, [1.0, 0.8])], [None, None]);
    }

    /// A full queue with dips of some ms, which it refills a moment later. It drains no faster than
    /// time passes, as it is first in, first out.
    fn dips(at_ms: u64, seed: u64) -> f64 {
        let (dip, into) = (at_ms / 25, (at_ms % 25) as f64);
        let depth = 8.0 * (draw(draw(dip ^ seed) >> 7) >> 32) as f64 / f64::from(u32::MAX);
        20.0 - into.min(depth * (25.0 - into) / (25.0 - depth))
    }

    /// Two paths that each send every 12 to 29 ms, at moments of their own. Returns when they are
    /// found to share, and the confidence at the end.
    fn within_spans(is_saturated: bool, seeds: [u64; 2]) -> (Option<u64>, f64) {
        let mut detector = Concordance::default();
        (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
        let (mut leaves, mut found, mut state) = ([0, 4], None, 5u64);
        for at in 0..20_000u64 {
            for id in 0..2 {
                if leaves[id] != at {
                    continue;
                }
                state = draw(state);
                leaves[id] = at + 12 + (state >> 33) % 18;
                let delay = dips(at, seeds[id]);
                let now = Timestamp::from_micros(1000 * at + (1000.0 * delay) as u64);
                let one_way = Some(Duration::from_secs_f64(1.0 + delay / 1e3));
                let sample = DelaySample { now, rtt: Duration::from_millis(21), one_way };
                match is_saturated {
                    true => detector.on_saturated_sample(path(id as u32), &sample),
                    false => detector.on_sample(path(id as u32), &sample),
                }
                if detector.poll(now).is_some_and(|groups| groups.together(path(0), path(1))) {
                    found = found.or(Some(at));
                }
            }
        }
        (found, detector.verdicts()[0].confidence)
    }

    #[test]
    fn a_short_queue_that_moves_within_a_span_is_found_by_the_order_of_what_comes() {
        let (found, confidence) = within_spans(true, [ONE, ONE]);
        assert!(found.is_some_and(|at| at < 10_000) && confidence > 0.9, "{found:?} {confidence}");
        let (found, confidence) = within_spans(true, [ONE, OTHER]);
        assert!(found.is_none() && confidence < 0.1, "{found:?} {confidence}");
        // An application that bursts onto all paths at once makes separate queues alike. Then only
        // spans count, and take longer.
        let (found, _) = within_spans(false, [ONE, ONE]);
        assert!(found.is_none_or(|at| at > 10_000), "{found:?}");
    }

    #[test]
    fn a_route_that_changes_is_unlearnt_and_learnt_within_seconds() {
        let seed = |id, at: f64| if id == 1 && (30_000.0..60_000.0).contains(&at) { OTHER } else { ONE };
        let run = Run::new(2, 90_000, |id, at| 50.0 + queue(at, 60.0, seed(id, at)));
        let at: Vec<u64> = run.changes.iter().map(|(at, _)| *at).collect();
        assert_eq!(at.len(), 4, "{at:?}");
        assert!((30_000..40_000).contains(&at[2]) && (60_000..72_000).contains(&at[3]), "{at:?}");
    }

    #[test]
    fn three_paths_of_which_two_share_are_two_groups() {
        let run = Run::new(3, 60_000, |id, at| 50.0 + queue(at, 60.0, [ONE, OTHER, ONE][id as usize]));
        assert_eq!(run.changes.last().unwrap().1, [vec![path(0), path(2)], vec![path(1)]]);
    }

    #[test]
    fn losses_that_meet_are_enough_where_delays_say_nothing() {
        let mut detector = Concordance::default();
        (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
        let (mut partitions, mut state) = (Vec::new(), 1u64);
        for at in (0..200_000).step_by(20) {
            state = draw(state);
            (0..2).for_each(|id| detector.on_sample(path(id), &sample(at, 50.0)));
            if state >> 56 == 0 {
                let lost = Lost { now: Timestamp::from_millis(at), bytes: fairpath_core::ByteCount::new(1200) };
                (0..2).for_each(|id| detector.on_loss(path(id), &lost));
            }
            partitions.extend(detector.poll(Timestamp::from_millis(at)));
        }
        assert!(partitions.len() == 2 && partitions[1].together(path(0), path(1)), "{partitions:?}");
    }

    #[test]
    fn the_memory_of_a_path_and_of_a_pair_is_what_the_head_says() {
        let (of_path, of_pair) = (size_of::<Path>(), size_of::<crate::pairs::Pair<Evidence>>());
        assert!(of_path <= 3950 && of_pair <= 2000, "{of_path} and {of_pair}");
    }
}
