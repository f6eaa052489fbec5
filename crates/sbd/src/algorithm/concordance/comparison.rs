//! Two paths compared on one scale.

use core::ops::{Range, RangeInclusive};
use core::time::Duration;

use super::changes::SPAN;
use super::evidence::{Sums, after_change, any_of, log_ratio};
use super::scales::Scale;
use super::{ConcordanceConfig, Path, SILENCE_SPANS};
use crate::grid::millis;

/// How many steps one path may be behind the other.
pub(super) const LAG_MAX: i64 = 8;

/// The number of lags.
const LAGS: usize = 2 * LAG_MAX as usize + 1;

/// Over how many pieces of evidence the usual size of the changes is a mean.
const USUAL: f64 = 80.0;

/// The comparison of the changes of two paths on one scale. All steps here are the scale's, unless
/// named otherwise.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    scale: Scale,
    /// The next step to look at.
    next: u64,
    /// The sums since the last piece of evidence, by lag: from the path with the lower id behind to
    /// that with the higher one behind.
    sums: [Sums; LAGS],
    steps: u64,
    /// The log-odds of one queue, by lag.
    log_odds: [f64; LAGS],
    /// The part of the log-odds measured while a dip of either path showed, and how many steps
    /// since the last piece of evidence that was.
    tested: [f64; LAGS],
    dipped: u64,
    /// The mean power of the changes, and the pieces of evidence in it.
    usual: f64,
    pieces: f64,
    /// The step after the last piece of evidence.
    judged: u64,
}

impl Comparison {
    /// Without evidence.
    pub(super) fn new(scale: Scale) -> Self {
        Self {
            scale,
            next: 0,
            sums: [Sums::default(); LAGS],
            steps: 0,
            log_odds: [0.0; LAGS],
            tested: [0.0; LAGS],
            dipped: 0,
            usual: 0.0,
            pieces: 0.0,
            judged: 0,
        }
    }

    /// Looks at all steps that both paths have by now, except during silences. `silent` is in
    /// shortest steps. Returns the steps looked at, and whether there is new evidence.
    pub(super) fn advance(
        &mut self,
        low: &Path,
        high: &Path,
        silent: &Range<u64>,
        config: &ConcordanceConfig,
    ) -> (Range<u64>, bool) {
        let left_out = self.scale.shows_in(silent, SILENCE_SPANS);
        let (lower, higher) = (low.scales.on(self.scale), high.scales.on(self.scale));
        let (a, b) = (lower.known(), higher.known());
        let settled = lower.step_of(low.opened.max(high.opened) + config.settle);
        self.next = self.next.max(a.start.max(b.start).max(settled) + LAG_MAX as u64);
        let (first, mut fresh) = (self.next, false);
        while self.next < a.end.min(b.end) {
            self.look(low, high, &left_out);
            if self.steps == SPAN {
                self.judge(low, high, config);
                fresh = true;
            }
        }
        (first..self.next, fresh)
    }

    /// Looks at the next step.
    fn look(&mut self, low: &Path, high: &Path, left_out: &Range<u64>) {
        let step = self.next;
        if !left_out.contains(&(step * self.scale.steps())) {
            let (lower, higher) = (low.scales.on(self.scale), high.scales.on(self.scale));
            let (a, b) = (lower.get(step), higher.get(step));
            for (lag, sums) in (-LAG_MAX..).zip(&mut self.sums) {
                let before = step - lag.unsigned_abs();
                if lag < 0 { sums.add(a, higher.get(before)) } else { sums.add(lower.get(before), b) }
            }
            self.dipped += u64::from(low.is_dipped(step, self.scale) || high.is_dipped(step, self.scale));
        }
        self.next += 1;
        self.steps += 1;
    }

    /// Makes a piece of evidence from the steps looked at.
    fn judge(&mut self, low: &Path, high: &Path, config: &ConcordanceConfig) {
        let steps = self.steps as f64;
        let level_power = self.sums[LAG_MAX as usize].power() / steps;
        self.pieces = (self.pieces + 1.0).min(USUAL);
        self.usual += (level_power - self.usual) / self.pieces;
        let noise = (config.noise_ms * config.noise_ms + config.quiet * self.usual) * steps;
        let changed = config.changed((self.next - self.judged) * self.scale.steps());
        let (lower, higher) = (low.scales.on(self.scale), high.scales.on(self.scale));
        let freedom = (steps / lower.steps_per_comparison(higher)).min(config.freedom);
        let part = self.dipped as f64 / steps;
        for ((log_odds, tested), sums) in self.log_odds.iter_mut().zip(&mut self.tested).zip(&self.sums) {
            let reliability = sums.power() / (sums.power() + noise);
            let said = reliability * log_ratio(sums.concordance(), config.one_queue, freedom);
            *log_odds = after_change(*log_odds, changed) + said;
            *tested = after_change(*tested, changed) + part * said;
        }
        self.dipped = 0;
        self.sums = [Sums::default(); LAGS];
        self.steps = 0;
        self.judged = self.next;
    }

    /// The log-odds of one queue, if the round trip of the second path is longer by `behind_ms`:
    /// from all measurements, and from those while a dip showed.
    pub(super) fn log_odds(&self, behind_ms: f64, step: Duration) -> [f64; 2] {
        let lags = possible_lags(behind_ms / (millis(step) * self.scale.steps() as f64));
        [any_of(&self.log_odds[lags.clone()]), any_of(&self.tested[lags])]
    }
}

/// The possible lags of two paths with one queue, if the round trip of the second is longer by
/// `behind` steps. They range from zero, if the paths differ before the queue, to all of `behind`,
/// if they differ behind it.
fn possible_lags(behind: f64) -> RangeInclusive<usize> {
    let index = |lag: f64| (lag.clamp(-LAG_MAX as f64, LAG_MAX as f64) as i64 + LAG_MAX) as usize;
    index(libm::floor(behind.min(0.0)))..=index(libm::ceil(behind.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lags_are_those_between_no_difference_and_all_of_it() {
        assert_eq!(possible_lags(0.0), 8..=8);
        assert_eq!(possible_lags(1.2), 8..=10);
        assert_eq!(possible_lags(-1.2), 6..=8);
        assert_eq!(possible_lags(100.0), 8..=16);
        assert_eq!(possible_lags(f64::NAN), 8..=8, "no sample of either");
    }
}
