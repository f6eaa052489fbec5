//! Movements of the delays of two paths within a span: where a queue is as short as a round trip, it moves there and nowhere
//! else.
//!
//! A queue of 20 ms beside TCP is nearly always full. Over spans of 300 ms it moves by less than two
//! paths differ that meet it at different moments. The least delay of a step is that of the path that happened to come
//! just after a pause. So delays are compared at the same moments. Both are cut into slots by the time at which the packets
//! *left*. How far a slot lies from the mean of a span before and after it is compared. Delays that grow evenly say nothing,
//! as on the other scales.
//!
//! That takes one-way delays, with times of departure that are as exact as a slot. Round trips must be equal but for a
//! slot: what leaves at the same time must come to the queue at the same time.

use core::time::Duration;

use fairpath_core::DelaySample;

use super::changes::SPAN;
use super::evidence::{Sums, after_change, log_ratio};
use super::{ConcordanceConfig, Path};
use crate::grid::millis;

/// How many slots a step has.
const SLOTS: u32 = 4;

/// A slot is compared with the mean of so many before it, and after it: a span each.
const AROUND: u64 = SPAN * SLOTS as u64;

/// The least number of these that must have a delay.
const KNOWN_MIN: usize = 8;

/// How many slots are kept: those around one, and what one path may be behind another in reports.
const KEPT: usize = 128;

/// How many slots that both paths have make a piece of evidence.
const PIECE: u32 = 8;

/// The concordance of two paths with one queue: each sees it at moments of its own within a slot, and what it has in
/// flight itself. Two queues whose host stands still for some ms now and then have 0.3.
const ONE_QUEUE: f64 = 0.7;

/// How many independent comparisons a slot is worth at most.
const FREEDOM: f64 = 0.5;

/// Deviations below it, in ms, may be noise: of the times that hosts note.
const NOISE_MS: f64 = 1.0;

/// Over how many slots the likeness of neighbours is a mean.
const MEMORY: f64 = 200.0;

/// More than any one-way delay, whose zero is unknown, in ns: a packet that came early in the engine's time left before it.
const BEFORE_NS: u64 = 1 << 40;

/// The delays of one path by the time of departure.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    slot_ns: u64,
    /// The mean of each slot in ms; NaN where nothing left.
    points: [f32; KEPT],
    /// The slot under way; those before it are known.
    at: u64,
    sum: f64,
    count: u32,
}

impl Slots {
    /// None yet.
    pub(super) fn new(step: Duration) -> Self {
        let slot_ns = u64::try_from((step / SLOTS).as_nanos()).unwrap_or(u64::MAX).max(1);
        Self { slot_ns, points: [f32::NAN; KEPT], at: 0, sum: 0.0, count: 0 }
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
            *self = Self { slot_ns: self.slot_ns, points: [f32::NAN; KEPT], at: slot, sum: 0.0, count: 0 };
        } else if slot < self.at {
            return;
        }
        self.sum += millis(delay);
        self.count += 1;
    }

    /// Ends the slot under way: the next is this one.
    fn finish(&mut self, next: u64) {
        for slot in self.at.max(next.saturating_sub(KEPT as u64))..next {
            self.points[(slot % KEPT as u64) as usize] = f32::NAN;
        }
        if self.count > 0 && next - self.at < KEPT as u64 {
            self.points[(self.at % KEPT as u64) as usize] = (self.sum / f64::from(self.count)) as f32;
        }
        (self.at, self.sum, self.count) = (next, 0.0, 0);
    }

    fn get(&self, slot: u64) -> Option<f64> {
        let point = self.points[(slot % KEPT as u64) as usize];
        (!point.is_nan()).then_some(f64::from(point))
    }

    /// The slots around which all is known.
    fn known(&self) -> core::ops::Range<u64> {
        (self.at + 1).saturating_sub(KEPT as u64) + AROUND..self.at.saturating_sub(AROUND)
    }

    /// How far the delay of a slot is from the mean around it, in ms.
    //
    //     d(t) = x(t) - mean of x(t - n) ... x(t + n)
    fn deviation(&self, slot: u64) -> Option<f64> {
        let own = self.get(slot)?;
        let around = (slot - AROUND..=slot + AROUND).filter_map(|slot| self.get(slot));
        let (sum, count) = around.fold((0.0, 0), |(sum, count), delay| (sum + delay, count + 1));
        (count >= KNOWN_MIN).then(|| own - sum / count as f64)
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
            self.sums.add(of_low, of_high);
            self.liken([of_low, of_high]);
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

    /// Makes a piece of evidence of the slots looked at.
    fn judge(&mut self, step: u64, config: &ConcordanceConfig) {
        let slots = f64::from(self.count);
        let reliability = self.sums.power() / (self.sums.power() + NOISE_MS * NOISE_MS * slots);
        let piece = reliability * log_ratio(self.sums.concordance(), ONE_QUEUE, slots * self.freedom());
        let changed = config.changed(step.saturating_sub(self.judged));
        let [all, tested] = self.said.unwrap_or_default().map(|said| after_change(said, changed));
        let part = f64::from(self.dipped.min(self.count)) / slots;
        self.said = Some([all + piece, tested + part * piece]);
        (self.sums, self.count, self.dipped, self.judged) = (Sums::default(), 0, 0, step);
    }

    /// The log-odds of one queue, of all that was measured and of what was while a dip showed; `None` where nothing was, or
    /// what leaves at once does not come to a queue at once.
    pub(super) fn log_odds(&self, behind_ms: f64, config: &ConcordanceConfig) -> Option<[f64; 2]> {
        self.said.filter(|_| behind_ms.abs() < millis(config.step / SLOTS))
    }
}
