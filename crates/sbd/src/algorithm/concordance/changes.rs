//! The changes in the growth of a path's delay, which are compared.

use core::time::Duration;

use fairpath_core::Timestamp;

use crate::grid::{Delay, Grid};

/// How many steps a mean spans.
pub(super) const SPAN: u64 = 6;

/// The number of changes kept: the largest distance of one path behind another, and the largest
/// lag.
const KEPT: usize = 32;

/// The longest run of steps without a sample that is bridged.
const GAP_MAX: u64 = 10;

/// The steps over which a rhythm is looked for. A change depends on all data of the last 18 steps,
/// and queues under RED repeat after about as many.
const BACK: usize = 24;

/// The steps over which the rhythm of a delay is a mean: 20 s of the shortest. That is many beats,
/// and adapts soon to other traffic.
const RHYTHM_STEPS: f64 = 400.0;

/// The newest changes of one path.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    grid: Grid<32>,
    changes: [f64; KEPT],
    /// The contiguous known changes: from the first of these steps, up to before the second.
    first: u64,
    end: u64,
    /// The mean products of a change and the one that many steps before it, in ms².
    products: [f64; BACK],
    /// The steps over which they are means.
    steps: f64,
}

impl Changes {
    /// None yet.
    pub(super) fn new(step: Duration) -> Self {
        Self {
            grid: Grid::new(step, GAP_MAX),
            changes: [0.0; KEPT],
            first: 0,
            end: 0,
            products: [0.0; BACK],
            steps: 0.0,
        }
    }

    /// The step that holds `now`.
    pub(super) fn step_of(&self, now: Timestamp) -> u64 {
        self.grid.step_of(now)
    }

    /// The contiguous steps with known changes.
    pub(super) fn known(&self) -> core::ops::Range<u64> {
        self.first.max(self.end.saturating_sub(KEPT as u64))..self.end
    }

    /// The change of a known step.
    pub(super) fn get(&self, step: u64) -> f64 {
        self.changes[(step % KEPT as u64) as usize]
    }

    /// Takes a delay that was measured at this time. Returns the point that is newly known, and
    /// when its step began.
    pub(super) fn add(&mut self, now: Timestamp, delay: Delay) -> Option<(Timestamp, Delay)> {
        let point = self.grid.add_delay(now, delay)?;
        let points = self.grid.known();
        let possible = points.start + 3 * SPAN - 1;
        if possible > self.end {
            // After a break, or at the beginning.
            (self.first, self.end) = (possible, possible);
        }
        for step in self.end..points.end {
            self.changes[(step % KEPT as u64) as usize] = self.change(step);
            self.end = step + 1;
            self.correlate(step);
        }
        Some(point)
    }

    /// Takes a change into the correlation of the changes with those before them.
    fn correlate(&mut self, step: u64) {
        self.steps = (self.steps + 1.0).min(RHYTHM_STEPS);
        let known = (step + 1 - self.known().start) as usize;
        for back in 0..known.min(BACK) {
            let product = self.get(step) * self.get(step - back as u64);
            self.products[back] += (product - self.products[back]) / self.steps;
        }
    }

    /// How many steps of this series and another are worth one comparison of independent values; at least 1.
    //
    // [Bartlett1935] for two independent series, r(k) the correlation of each with itself k steps
    // before
    //     n / n_eff = 1 + 2 sum_k r_a(k) r_b(k)
    pub(super) fn steps_per_comparison(&self, other: &Self) -> f64 {
        let power = self.products[0] * other.products[0];
        if power <= 0.0 {
            return 1.0;
        }
        let products = self.products.iter().zip(&other.products).skip(1);
        (1.0 + 2.0 * products.map(|(a, b)| a * b).sum::<f64>() / power).max(1.0)
    }

    /// How much more the delay grew in the last span than in the one before, in ms.
    //
    //     w(t) = m(t) - 2 m(t - S) + m(t - 2S),  m(t) the mean over the S steps up to t
    //
    // A delay that grows evenly has no change, however fast it grows. All queues do that most of
    // the time, so it does not identify a queue.
    fn change(&self, step: u64) -> f64 {
        let mean = |up_to: u64| {
            let points = (up_to + 1 - SPAN..=up_to).filter_map(|step| self.grid.get(step));
            points.sum::<f64>() / SPAN as f64
        };
        mean(step) - 2.0 * mean(step - SPAN) + mean(step - 2 * SPAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ms, sample};

    fn changes(delay: impl Fn(u64) -> f64, steps: u64) -> Changes {
        let mut changes = Changes::new(ms(100));
        (0..=steps).for_each(|step| {
            let sample = sample(step * 100, delay(step));
            changes.add(sample.now, Delay::of(&sample));
        });
        changes
    }

    #[test]
    fn the_first_change_needs_three_spans() {
        assert_eq!(changes(|_| 50.0, 17).known(), 17..17, "18 points are steps 0 to 17, of which 17 is under way");
        assert_eq!(changes(|_| 50.0, 18).known(), 17..18);
    }

    #[test]
    fn a_delay_that_grows_evenly_does_not_change() {
        let changes = changes(|step| 50.0 + 3.0 * step as f64, 40);
        assert!(changes.known().all(|step| changes.get(step).abs() < 1e-9));
    }

    #[test]
    fn a_queue_that_drains_is_a_change() {
        // The delay is 80 ms up to step 29, and 20 ms from step 30. At step 35 the last span is all
        // low: 20 - 2 · 80 + 80 = -60. At step 41 the middle one is, too: 20 - 2 · 20 + 80 = 60.
        let changes = changes(|step| if step < 30 { 80.0 } else { 20.0 }, 50);
        assert_eq!([29, 35, 41, 47].map(|step| changes.get(step).round()), [0.0, -60.0, 60.0, 0.0]);
    }

    /// Independent delays from 0 to 1.
    // [Steele2014]
    fn noise(step: u64) -> f64 {
        let z = (step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f64 / (1u64 << 24) as f64
    }

    #[test]
    fn a_rhythm_leaves_fewer_independent_comparisons() {
        // For noise the weights 1, -2, 1 over six steps each make the correlations 1, -2/3 and 1/6
        // at 0, 6 and 12 steps, and straight lines between; 1 + 2 sum(r^2) = 4.86.
        let white = changes(|step| 50.0 + 20.0 * noise(step), 4000);
        let of_white = white.steps_per_comparison(&white);
        assert!((4.0..6.0).contains(&of_white), "{of_white}");
        let beat = |steps: f64| {
            changes(move |step| 50.0 + 20.0 * libm::sin(core::f64::consts::TAU * step as f64 / steps), 4000)
        };
        let (one, same, other) = (beat(16.0), beat(16.0), beat(9.0));
        assert!(one.steps_per_comparison(&same) > 2.0 * of_white, "{}", one.steps_per_comparison(&same));
        assert!(one.steps_per_comparison(&other) < of_white, "what has other rhythms does not meet for long");
        assert_eq!(changes(|_| 50.0, 40).steps_per_comparison(&white), 1.0, "nothing is known");
    }

    #[test]
    fn a_break_begins_anew() {
        let mut changes = changes(|_| 50.0, 30);
        (60..=80).for_each(|step| {
            let sample = sample(step * 100, 50.0);
            changes.add(sample.now, Delay::of(&sample));
        });
        // Points from step 60 on, changes 17 steps later.
        assert_eq!(changes.known(), 77..80);
    }
}
