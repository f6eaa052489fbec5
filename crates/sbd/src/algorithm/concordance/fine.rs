//! Movements of the delays of two paths within a span: where a queue is as short as a round trip, it moves there and nowhere
//! else.
//!
//! A queue of 20 ms beside TCP is nearly always full. Over spans of 300 ms it moves by less than two
//! paths differ that meet it at different moments. The least delay of a step is that of the path that happened to come
//! just after a pause. So delays are compared at the same moments. Both are cut into slots by the time at which the packets
//! *left*. How far a slot lies from the mean of a span before and after it is compared. Delays that grow evenly say nothing,
//! as on the other scales.
//!
//! A slot is known as exactly as the packets agree that left within it. Their spread is the noise: it tells how alike the
//! slots of one queue can be at most, and how alike those of two may be by the pauses of their host. A queue as short as a
//! pause then gives little evidence and no wrong one, and a longer queue as much as before.
//!
//! That takes one-way delays, with times of departure that are as exact as a slot. Round trips must be equal but for half a
//! slot: what leaves at the same time must come to the queue at the same time.

use core::time::Duration;

use fairpath_core::DelaySample;

use super::changes::SPAN;
use super::evidence::{Sums, after_change, log_ratio};
use super::{ConcordanceConfig, Path};
use crate::grid::millis;

/// How many slots a step has. A busy host is off its processor for half of one.
const SLOTS: u32 = 2;

/// A slot is compared with the mean of so many before it, and after it: a span each.
const AROUND: u64 = SPAN * SLOTS as u64;

/// The least number of these that must have a delay.
const KNOWN_MIN: usize = 8;

/// How many slots are kept: those around one, and what one path may be behind another in reports.
const KEPT: usize = 60;

/// How many slots that both paths have make a piece of evidence: a span.
const PIECE: u32 = AROUND as u32;

/// The concordance of two queues whose host stands still for some ms now and then, without noise.
const TWO_QUEUES: f64 = 0.3;

/// How many independent comparisons a slot is worth at most.
const FREEDOM: f64 = 0.7;

/// Deviations below it, in ms, are noise however well packets agree: of the times that hosts note.
const NOISE_MS: f64 = 1.0;

/// Over how many slots the likeness of neighbours is a mean, and the usual spread.
const MEMORY: f64 = 200.0;

/// More than any one-way delay, whose zero is unknown, in ns: a packet that came early in the engine's time left before it.
const BEFORE_NS: u64 = 1 << 40;

/// The delays of one path by the time of departure.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slot_ns: u64,
    points: [Point; KEPT],
    /// The slot under way; those before it are known.
    at: u64,
    sum: f64,
    squares: f64,
    count: u32,
    /// The usual variance within a slot, in ms².
    usual: f64,
}

/// A slot.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// The mean of its delays in ms; NaN where nothing left.
    mean: f32,
    /// Their variance in ms²; NaN where one packet left.
    variance: f32,
}

const EMPTY: Point = Point { mean: f32::NAN, variance: f32::NAN };

/// How far a slot lies from those around it.
struct Deviation {
    ms: f64,
    /// The variance of its error, in ms².
    noise: f64,
}

impl Slots {
    /// None yet.
    pub(super) fn new(step: Duration) -> Self {
        let slot_ns = u64::try_from((step / SLOTS).as_nanos()).unwrap_or(u64::MAX).max(1);
        Self { slot_ns, points: [EMPTY; KEPT], at: 0, sum: 0.0, squares: 0.0, count: 0, usual: 0.0 }
    }

    /// Takes a sample. Round-trip times are left out: with them comes the way back, which paths have in common.
    pub(super) fn add(&mut self, sample: &DelaySample) {
        let Some(delay) = sample.one_way else { return };
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let left_ns = sample.now.as_nanos().saturating_add(BEFORE_NS).saturating_sub(delay_ns);
        let slot = left_ns / self.slot_ns;
        if slot > self.at {
            self.finish(slot);
        } else if slot + (KEPT as u64) < self.at {
            // Delays have another zero now.
            self.points = [EMPTY; KEPT];
            (self.at, self.sum, self.squares, self.count) = (slot, 0.0, 0.0, 0);
        } else if slot < self.at {
            return;
        }
        let ms = millis(delay);
        self.sum += ms;
        self.squares += ms * ms;
        self.count += 1;
    }

    /// Ends the slot under way: the next is this one.
    fn finish(&mut self, next: u64) {
        for slot in self.at.max(next.saturating_sub(KEPT as u64))..next {
            self.points[(slot % KEPT as u64) as usize] = EMPTY;
        }
        if self.count > 0 && next - self.at < KEPT as u64 {
            self.points[(self.at % KEPT as u64) as usize] = self.point();
        }
        (self.at, self.sum, self.squares, self.count) = (next, 0.0, 0.0, 0);
    }

    /// The slot under way as it is at its end.
    fn point(&mut self) -> Point {
        let count = f64::from(self.count);
        let mean = self.sum / count;
        if self.count < 2 {
            return Point { mean: mean as f32, ..EMPTY };
        }
        let variance = ((self.squares - mean * self.sum) / (count - 1.0)).max(0.0);
        self.usual += (variance - self.usual) / MEMORY;
        Point { mean: mean as f32, variance: variance as f32 }
    }

    fn get(&self, slot: u64) -> Option<f64> {
        let point = self.points[(slot % KEPT as u64) as usize];
        (!point.mean.is_nan()).then_some(f64::from(point.mean))
    }

    /// The variance of what packets say of a slot; the usual one where only one left.
    fn noise(&self, slot: u64) -> f64 {
        let variance = self.points[(slot % KEPT as u64) as usize].variance;
        NOISE_MS * NOISE_MS + if variance.is_nan() { self.usual } else { f64::from(variance) }
    }

    /// The slots around which all is known.
    fn known(&self) -> core::ops::Range<u64> {
        (self.at + 1).saturating_sub(KEPT as u64) + AROUND..self.at.saturating_sub(AROUND)
    }

    /// How far the delay of a slot is from the mean around it.
    //
    //     d(t) = x(t) - mean of x(t - n) ... x(t + n)
    fn deviation(&self, slot: u64) -> Option<Deviation> {
        let own = self.get(slot)?;
        let around = (slot - AROUND..=slot + AROUND).filter_map(|slot| self.get(slot));
        let (sum, count) = around.fold((0.0, 0), |(sum, count), delay| (sum + delay, count + 1));
        (count >= KNOWN_MIN).then(|| Deviation { ms: own - sum / count as f64, noise: self.noise(slot) })
    }

    /// The shortest step in which what left in a slot came.
    fn step_of(&self, slot: u64) -> u64 {
        let delay_ns = self.get(slot).unwrap_or(0.0) * 1e6;
        (slot * self.slot_ns).saturating_add(delay_ns as u64).saturating_sub(BEFORE_NS)
            / (self.slot_ns * u64::from(SLOTS))
    }
}

/// The evidence of the deviations of two paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fine {
    /// The next slot to look at.
    next: u64,
    /// The slots looked at since the last piece of evidence, and how many of them a dip showed in.
    sums: Sums,
    noise: f64,
    count: u32,
    dipped: u32,
    /// The deviations of the slot before, the mean of their products with those of the next, and of their squares.
    last: Option<[f64; 2]>,
    products: [f64; 2],
    squares: [f64; 2],
    /// The log-odds of one queue; `None` before the first piece of evidence. And of what was measured while a dip showed.
    said: Option<[f64; 2]>,
    /// The step of the last piece of evidence.
    judged: u64,
}

impl Fine {
    /// Looks at all slots around which both paths are known, but for those that came in steps left out; true: there is new
    /// evidence.
    pub(super) fn advance(
        &mut self,
        low: &Path,
        high: &Path,
        left_out: &core::ops::Range<u64>,
        config: &ConcordanceConfig,
    ) -> bool {
        let (lower, higher) = (&low.fine, &high.fine);
        let (a, b) = (lower.known(), higher.known());
        let begin = a.start.max(b.start);
        if self.next < begin || self.next > a.end.max(b.end) {
            (self.next, self.last) = (begin, None);
        }
        let settled = low.scales.step_of(low.opened.max(high.opened) + config.settle);
        let mut fresh = false;
        while self.next < a.end.min(b.end) {
            let (slot, step) = (self.next, lower.step_of(self.next));
            self.next += 1;
            let deviations = lower.deviation(slot).zip(higher.deviation(slot));
            let Some((of_low, of_high)) = deviations.filter(|_| step >= settled && !left_out.contains(&step)) else {
                continue;
            };
            self.sums.add(of_low.ms, of_high.ms);
            self.noise += 0.5 * (of_low.noise + of_high.noise);
            self.liken([of_low.ms, of_high.ms]);
            self.count += 1;
            self.dipped += u32::from(low.is_dipped(step, super::Scale::SHORTEST))
                + u32::from(high.is_dipped(step, super::Scale::SHORTEST));
            if self.count == PIECE {
                self.judge(step, config);
                fresh = true;
            }
        }
        fresh
    }

    /// Takes the deviations of a slot into the likeness of neighbours.
    fn liken(&mut self, deviations: [f64; 2]) {
        if let Some(last) = self.last {
            for at in 0..2 {
                self.products[at] += (last[at] * deviations[at] - self.products[at]) / MEMORY;
                self.squares[at] += (deviations[at] * deviations[at] - self.squares[at]) / MEMORY;
            }
        }
        self.last = Some(deviations);
    }

    /// How many independent comparisons a slot is worth.
    //
    // [Bartlett1935] of two series in which each value is r times the one before and chance:
    //     n_eff / n = (1 - r_a r_b) / (1 + r_a r_b)
    fn freedom(&self) -> f64 {
        let like = |at: usize| if self.squares[at] > 0.0 { self.products[at] / self.squares[at] } else { 0.0 };
        let both = (like(0) * like(1)).clamp(0.0, 1.0);
        FREEDOM.min((1.0 - both) / (1.0 + both))
    }

    /// Makes a piece of evidence of the slots looked at. Noise makes both hypotheses as much less alike as it is of all
    /// power; where there is nothing else, they are the same.
    fn judge(&mut self, step: u64, config: &ConcordanceConfig) {
        let slots = f64::from(self.count);
        let queue = if self.sums.power() > self.noise { 1.0 - self.noise / self.sums.power() } else { 0.0 };
        let says = |rho: f64| log_ratio(self.sums.concordance(), queue * rho, slots * self.freedom());
        let piece = says(config.one_queue) - says(TWO_QUEUES);
        let changed = config.changed(step.saturating_sub(self.judged));
        let [all, tested] = self.said.unwrap_or_default().map(|said| after_change(said, changed));
        let part = f64::from(self.dipped.min(self.count)) / slots;
        self.said = Some([all + piece, tested + part * piece]);
        (self.sums, self.noise, self.count, self.dipped, self.judged) = (Sums::default(), 0.0, 0, 0, step);
    }

    /// The log-odds of one queue, of all that was measured and of what was while a dip showed; `None` where nothing was, or
    /// what leaves at once does not come to a queue at once.
    pub(super) fn log_odds(&self, behind_ms: f64, config: &ConcordanceConfig) -> Option<[f64; 2]> {
        self.said.filter(|_| behind_ms.abs() < millis(config.step / (2 * SLOTS)))
    }
}
