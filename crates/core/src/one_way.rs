//! One-way delays of a path, as a receiver reports them.

use core::time::Duration;

use crate::rtt::Rtt;
use crate::units::Timestamp;
use crate::windowed_filter::WindowedMin;

/// The one-way delays of a path at one moment, less a constant that is the same for all paths of a connection: the
/// difference of two clocks, which nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWayDelay {
    /// The newest sample.
    pub latest: Duration,
    /// The smallest sample of the last 10 s.
    pub windowed_min: Duration,
    /// The mean deviation from the smoothed delay, gains as for round-trip times [RFC6298 §2]; zero with the first
    /// sample, of which half would be half of a constant.
    pub spread: Duration,
}

/// Estimates the one-way delay of one path.
#[derive(Clone, Debug)]
pub struct OneWayEstimator {
    known: Option<OneWayDelay>,
    smoothed: Duration,
    windowed_min: WindowedMin<Duration>,
}

impl Default for OneWayEstimator {
    fn default() -> Self {
        Self { known: None, smoothed: Duration::ZERO, windowed_min: WindowedMin::new(Rtt::MIN_WINDOW) }
    }
}

impl OneWayEstimator {
    /// An estimator that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// A datagram took `delay`, less the constant; that is known since `now`, which does not go backwards.
    pub fn on_sample(&mut self, now: Timestamp, delay: Duration) {
        let windowed_min = self.windowed_min.update(now, delay);
        let (smoothed, spread) = match self.known {
            Some(OneWayDelay { spread, .. }) => {
                let deviation = self.smoothed.abs_diff(delay);
                let smoothed = self.smoothed - self.smoothed / 8 + delay / 8;
                (smoothed, spread - spread / 4 + deviation / 4)
            }
            None => (delay, Duration::ZERO),
        };
        self.smoothed = smoothed;
        self.known = Some(OneWayDelay { latest: delay, windowed_min, spread });
    }

    /// The estimate; `None` before the first sample.
    pub fn get(&self) -> Option<OneWayDelay> {
        self.known
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The estimate after these samples: when, how long.
    fn after(samples: &[(u64, u64)]) -> Option<OneWayDelay> {
        let mut estimator = OneWayEstimator::new();
        for &(at, delay) in samples {
            estimator.on_sample(Timestamp::from_millis(at), ms(delay));
        }
        estimator.get()
    }

    #[test]
    fn the_first_sample_is_all_that_is_known_and_has_no_spread() {
        assert_eq!(after(&[]), None);
        let first = OneWayDelay { latest: ms(1_030), windowed_min: ms(1_030), spread: Duration::ZERO };
        assert_eq!(after(&[(0, 1_030)]), Some(first));
    }

    #[test]
    fn the_spread_moves_a_quarter_and_the_delay_it_is_of_an_eighth() {
        // Smoothed 1,000, then 1,010: deviations of 80 and 90.
        let known = after(&[(0, 1_000), (100, 1_080), (200, 920)]).unwrap();
        assert_eq!((known.latest, known.windowed_min), (ms(920), ms(920)));
        assert_eq!(known.spread, ms(15) + Duration::from_micros(22_500));
    }

    #[test]
    fn the_least_is_forgotten_after_ten_seconds() {
        assert_eq!(after(&[(0, 20), (9_000, 50)]).unwrap().windowed_min, ms(20));
        assert_eq!(after(&[(0, 20), (9_000, 50), (11_000, 60)]).unwrap().windowed_min, ms(50));
    }

    proptest! {
        /// A constant that is added to all delays changes nothing but the delays.
        #[test]
        fn the_difference_of_the_clocks_is_in_no_spread(
            samples in prop::collection::vec((0_u64..500, 0_u64..2_000), 1..50),
            ahead in (0_u64..100_000).prop_map(|seconds| seconds * 8),
        ) {
            let mut at = 0;
            let times = samples.iter().map(|(gap, delay)| { at += gap; (at, *delay) }).collect::<Vec<_>>();
            let moved = times.iter().map(|(at, delay)| (*at, delay + ahead)).collect::<Vec<_>>();
            let (known, moved) = (after(&times).unwrap(), after(&moved).unwrap());
            prop_assert_eq!(moved.windowed_min - known.windowed_min, ms(ahead));
            // An eighth of a constant is rounded to nanoseconds.
            prop_assert!(moved.spread.abs_diff(known.spread) < Duration::from_micros(1));
        }

        #[test]
        fn no_delay_overflows(delays in prop::collection::vec(any::<u64>(), 1..20)) {
            let mut estimator = OneWayEstimator::new();
            for delay in delays {
                estimator.on_sample(Timestamp::ZERO, Duration::new(delay, 999_999_999));
            }
        }
    }
}
