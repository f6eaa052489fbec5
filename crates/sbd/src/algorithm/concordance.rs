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
mod tests;
