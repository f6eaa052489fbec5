//! The scales on which the delays of a path are compared: spans as long as the round trips.
//!
//! Those who fill a queue hear of it after a round trip, and so it moves in round trips and not in less; and what a
//! path has in flight is sent, and measured, as unevenly as it came back one round trip ago. What differs between
//! two delays within a round trip is mostly the one or the other's own.

use core::time::Duration;

use fairpath_core::{DelaySample, Timestamp};

use super::changes::{Changes, SPAN};
use crate::grid::millis;

/// Each has steps twice as long as the one before.
const SCALES: usize = 3;

/// Over how many samples, one in a step, the usual round-trip time is a mean: 20 s.
const USUAL: f64 = 400.0;

/// One of the scales; 0 is that of the shortest steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scale(u32);

impl Scale {
    /// How many of the shortest steps are one of its steps.
    pub(super) fn steps(self) -> u64 {
        1 << self.0
    }

    /// The first whose spans are no shorter than these round trips, or the longest there is. It is left for a shorter
    /// one where that one's are longer by a quarter.
    pub(super) fn for_round_trips(self, round_trip_ms: f64, step: Duration) -> Self {
        let fits = |scale: &u32| {
            let span_ms = millis(step) * (SPAN << *scale) as f64;
            round_trip_ms <= if *scale < self.0 { 0.8 * span_ms } else { span_ms }
        };
        Self((0..SCALES as u32 - 1).find(fits).unwrap_or(SCALES as u32 - 1))
    }
}

/// The changes of one path, on all scales.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    changes: [Changes; SCALES],
    usual_rtt_ms: f64,
    /// Over how many samples that is the mean, and the step of the last one.
    samples: f64,
    newest: Option<u64>,
}

impl Scales {
    /// None yet.
    pub(super) fn new(step: Duration) -> Self {
        let changes = core::array::from_fn(|scale| Changes::new(step * (1 << scale)));
        Self { changes, usual_rtt_ms: 0.0, samples: 0.0, newest: None }
    }

    /// The changes on one scale.
    pub(super) fn on(&self, scale: Scale) -> &Changes {
        &self.changes[scale.0 as usize]
    }

    /// The shortest step that holds `now`.
    pub(super) fn step_of(&self, now: Timestamp) -> u64 {
        self.changes[0].step_of(now)
    }

    /// The mean round-trip time, queues included, in ms; 0 where there was no sample.
    pub(super) fn usual_rtt_ms(&self) -> f64 {
        self.usual_rtt_ms
    }

    /// Takes a sample; true: there are new changes on one of the scales.
    pub(super) fn add(&mut self, sample: &DelaySample) -> bool {
        let step = self.step_of(sample.now);
        if self.newest.replace(step) != Some(step) {
            self.samples = (self.samples + 1.0).min(USUAL);
            self.usual_rtt_ms += (millis(sample.rtt) - self.usual_rtt_ms) / self.samples;
        }
        let mut is_new = false;
        for changes in &mut self.changes {
            is_new |= changes.add(sample);
        }
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ms, sample};

    #[test]
    fn spans_are_as_long_as_round_trips() {
        let from = |scale: u32, round_trip_ms| Scale(scale).for_round_trips(round_trip_ms, ms(50)).0;
        assert_eq!([0.0, 300.0, 301.0, 600.0, 601.0, 5_000.0].map(|rtt| from(0, rtt)), [0, 0, 1, 1, 2, 2]);
        // Back where it is shorter by a fifth, so that it does not go to and fro.
        assert_eq!([300.0, 241.0, 240.0].map(|rtt| from(1, rtt)), [1, 1, 0]);
        assert_eq!([500.0, 480.0, 240.0].map(|rtt| from(2, rtt)), [2, 1, 0]);
        assert_eq!([0, 1, 2].map(|scale| Scale(scale).steps()), [1, 2, 4]);
    }

    #[test]
    fn the_usual_round_trip_is_the_mean() {
        let mut scales = Scales::new(ms(50));
        assert_eq!(scales.usual_rtt_ms(), 0.0);
        scales.add(&sample(0, 80.0));
        assert_eq!(scales.usual_rtt_ms(), 80.0);
        (1..4_000).for_each(|at| {
            scales.add(&sample(at * 10, if at < 1_000 { 80.0 } else { 120.0 }));
        });
        // 30 s are one and a half times its memory: 120 - 40 e^-1.5 = 111.
        assert!((109.0..113.0).contains(&scales.usual_rtt_ms()), "{}", scales.usual_rtt_ms());
    }

    #[test]
    fn each_scale_has_changes_of_its_own() {
        let mut scales = Scales::new(ms(50));
        (0..400).for_each(|at| {
            scales.add(&sample(at * 10, 50.0));
        });
        // Of 4 s: 80, 40 and 20 steps, of which the last is under way and the first 17 are looked back on.
        let ends = [0, 1, 2].map(|scale| scales.on(Scale(scale)).known());
        assert_eq!(ends.each_ref().map(|known| known.end), [79, 39, 19]);
        assert_eq!(ends[2].start, 17);
    }
}
