//! The scales on which the delays of a path are compared: spans up to the length of the round trips.
//!
//! Flows that fill a queue hear of it after a round trip, so the queue moves on that time scale. A
//! path sends its packets, and measures its delays, as unevenly as they returned one round trip
//! ago. So differences of two delays within a round trip are mostly each path's own.

use core::ops::Range;
use core::time::Duration;

use fairpath_core::{DelaySample, Timestamp, WindowedMin};

use super::changes::{Changes, SPAN};
use crate::grid::{Delay, millis};

/// Each has steps twice as long as the one before.
pub(super) const SCALES: usize = 3;

/// How long the least round-trip time is remembered: a route may change.
const BASE_RTT_WINDOW: Duration = Duration::from_secs(60);

/// One of the scales; 0 is that of the shortest steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scale(u32);

impl Scale {
    /// That of the shortest steps.
    pub(super) const SHORTEST: Self = Self(0);

    /// All of them, the shortest first.
    pub(super) fn all() -> [Self; SCALES] {
        core::array::from_fn(|scale| Self(scale as u32))
    }

    /// How many of the shortest steps are one of its steps.
    pub(super) fn steps(self) -> u64 {
        1 << self.0
    }

    /// The shortest steps whose changes these events affect: on this scale changes look back on
    /// `spans` spans.
    pub(super) fn shows_in(self, happened: &Range<u64>, spans: u64) -> Range<u64> {
        let tail = if happened.is_empty() { 0 } else { spans * SPAN * self.steps() };
        happened.start..happened.end + tail
    }

    /// How many of the longer scales suit these round trips: each one whose predecessor's span is
    /// shorter than the round trip.
    pub(super) fn longer_within(round_trip_ms: f64, step: Duration) -> usize {
        let is_short = |scale: &Self| millis(step) * ((SPAN * scale.steps()) as f64) < round_trip_ms;
        Self::all()[..SCALES - 1].iter().take_while(|scale| is_short(scale)).count()
    }
}

/// The changes of one path, on all scales.
#[derive(Clone, Debug)]
pub(super) struct Scales {
    changes: [Changes; SCALES],
    base_rtt: WindowedMin<Duration>,
    base_rtt_ms: f64,
    least_rtt_ms: f64,
}

impl Scales {
    /// None yet.
    pub(super) fn new(step: Duration) -> Self {
        let changes = Scale::all().map(|scale| Changes::new(step * scale.steps() as u32));
        Self {
            changes,
            base_rtt: WindowedMin::new(BASE_RTT_WINDOW),
            base_rtt_ms: f64::INFINITY,
            least_rtt_ms: f64::INFINITY,
        }
    }

    /// The changes on one scale.
    pub(super) fn on(&self, scale: Scale) -> &Changes {
        &self.changes[scale.0 as usize]
    }

    /// The shortest step that holds `now`.
    pub(super) fn step_of(&self, now: Timestamp) -> u64 {
        self.changes[0].step_of(now)
    }

    /// The least round-trip time of the last minute, in ms; infinite where there was no sample.
    pub(super) fn base_rtt_ms(&self) -> f64 {
        self.base_rtt_ms
    }

    /// The least round-trip time ever, in ms; infinite without a sample.
    pub(super) fn least_rtt_ms(&self) -> f64 {
        self.least_rtt_ms
    }

    /// Takes a sample. True: there are new points. Longer scales are built from the shortest steps
    /// and their least delays.
    pub(super) fn add(&mut self, sample: &DelaySample) -> bool {
        self.base_rtt_ms = millis(self.base_rtt.update(sample.now, sample.rtt));
        self.least_rtt_ms = self.least_rtt_ms.min(millis(sample.rtt));
        let [shortest, longer @ ..] = &mut self.changes;
        let Some((began, least)) = shortest.add(sample.now, Delay::of(sample)) else { return false };
        for changes in longer {
            changes.add(began, least);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ms, sample};

    #[test]
    fn long_round_trips_have_long_spans_too() {
        let longer = |round_trip_ms| Scale::longer_within(round_trip_ms, ms(50));
        assert_eq!([0.0, 300.0, 301.0, 600.0, 601.0, 5_000.0].map(longer), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn what_happened_shows_for_spans_of_the_scale() {
        let [shortest, _, longest] = Scale::all().map(|scale| scale.shows_in(&(10..12), 2));
        assert_eq!((shortest, longest), (10..24, 10..60));
        assert!(Scale::SHORTEST.shows_in(&(0..0), 2).is_empty(), "nothing happened");
    }

    #[test]
    fn each_scale_has_changes_of_its_own() {
        let mut scales = Scales::new(ms(50));
        (0..400).for_each(|at| {
            scales.add(&sample(at * 10, 50.0));
        });
        // In 4 s there are 80, 40 and 20 steps. The last is under way, and the first 17 only serve
        // for looking back.
        let ends = Scale::all().map(|scale| scales.on(scale).known());
        assert_eq!(ends.each_ref().map(|known| known.end), [79, 39, 19]);
        assert_eq!(ends[2].start, 17);
    }
}
