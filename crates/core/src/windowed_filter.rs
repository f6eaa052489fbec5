//! Windowed minimum and maximum in constant memory: the best, second-best and third-best sample
//! of the window, each newer than the one before [Nichols2012].
//!
//! When the best leaves the window the second takes its place, so the answer is exact for a
//! monotone signal and at most one sub-window late otherwise.

use core::time::Duration;

use crate::units::Timestamp;

#[derive(Clone, Copy, Debug)]
struct Sample<T> {
    at: Timestamp,
    value: T,
}

/// The filter for either direction; `better(a, b)` says whether `a` replaces `b`.
#[derive(Clone, Debug)]
struct Windowed<T> {
    window_ns: u64,
    best: Option<[Sample<T>; 3]>,
}

impl<T: Copy> Windowed<T> {
    fn new(window: Duration) -> Self {
        Self { window_ns: u64::try_from(window.as_nanos()).unwrap_or(u64::MAX), best: None }
    }

    #[inline]
    fn update(&mut self, now: Timestamp, value: T, better_or_equal: impl Fn(T, T) -> bool) -> T {
        let new = Sample { at: now, value };
        let window = self.window_ns;
        let age = |sample: &Sample<T>| now.as_nanos().saturating_sub(sample.at.as_nanos());
        let best = match &mut self.best {
            Some(best) if !better_or_equal(value, best[0].value) && age(&best[2]) <= window => best,
            _ => {
                self.best = Some([new; 3]);
                return value;
            }
        };
        if better_or_equal(value, best[1].value) {
            best[1] = new;
            best[2] = new;
        } else if better_or_equal(value, best[2].value) {
            best[2] = new;
        }
        let age_of_best = age(&best[0]);
        if age_of_best > window {
            // The best has left: move up, and once more if the next has left too.
            *best = [best[1], best[2], new];
            if age(&best[0]) > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].at == best[0].at && age_of_best > window / 4 {
            // A quarter of the window without a second choice: take one from the second quarter.
            best[1] = new;
            best[2] = new;
        } else if best[2].at == best[1].at && age_of_best > window / 2 {
            best[2] = new;
        }
        best[0].value
    }

    fn get(&self) -> Option<T> {
        self.best.map(|best| best[0].value)
    }
}

/// The smallest sample of a sliding window of time.
#[derive(Clone, Debug)]
pub struct WindowedMin<T>(Windowed<T>);

impl<T: Copy + PartialOrd> WindowedMin<T> {
    /// A filter that forgets what is older than `window`.
    pub fn new(window: Duration) -> Self {
        Self(Windowed::new(window))
    }

    /// Takes a sample and gives the minimum of the window.
    pub fn update(&mut self, now: Timestamp, value: T) -> T {
        self.0.update(now, value, |a, b| a <= b)
    }

    /// The minimum as of the last sample.
    pub fn get(&self) -> Option<T> {
        self.0.get()
    }
}

/// The largest sample of a sliding window of time.
#[derive(Clone, Debug)]
pub struct WindowedMax<T>(Windowed<T>);

impl<T: Copy + PartialOrd> WindowedMax<T> {
    /// A filter that forgets what is older than `window`.
    pub fn new(window: Duration) -> Self {
        Self(Windowed::new(window))
    }

    /// Takes a sample and gives the maximum of the window.
    pub fn update(&mut self, now: Timestamp, value: T) -> T {
        self.0.update(now, value, |a, b| a >= b)
    }

    /// The maximum as of the last sample.
    pub fn get(&self) -> Option<T> {
        self.0.get()
    }
}

/// The largest sample of the last rounds: the same filter on a clock that counts round trips.
#[derive(Clone, Debug)]
pub struct RoundMax<T>(Windowed<T>);

impl<T: Copy + PartialOrd> RoundMax<T> {
    /// A filter that forgets what is more than `rounds` rounds old.
    pub fn new(rounds: u64) -> Self {
        Self(Windowed::new(Duration::from_nanos(rounds)))
    }

    /// Forgets, from now on, what is more than `rounds` rounds old.
    pub fn set_window(&mut self, rounds: u64) {
        self.0.window_ns = rounds;
    }

    /// Takes a sample of the round `round` and gives the maximum of the window.
    pub fn update(&mut self, round: u64, value: T) -> T {
        // The filter only compares ages, so a round may pass for a nanosecond.
        self.0.update(Timestamp::from_nanos(round), value, |a, b| a >= b)
    }

    /// The maximum as of the last sample.
    pub fn get(&self) -> Option<T> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Duration = Duration::from_millis(100);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_smaller_sample_is_the_minimum_at_once() {
        let mut min = WindowedMin::new(WINDOW);
        assert_eq!(min.get(), None);
        assert_eq!(min.update(ms(0), 50), 50);
        assert_eq!(min.update(ms(10), 40), 40);
        assert_eq!(min.update(ms(20), 60), 40);
    }

    #[test]
    fn a_minimum_older_than_the_window_is_forgotten() {
        let mut min = WindowedMin::new(WINDOW);
        min.update(ms(0), 10);
        for at in (10..=100).step_by(10) {
            assert_eq!(min.update(ms(at), 20 + at), 10);
        }
        // At 110 ms the sample of 0 ms has left; the best of what the filter kept takes over.
        assert!(min.update(ms(110), 130) > 10);
    }

    #[test]
    fn silence_longer_than_the_window_resets() {
        let mut max = WindowedMax::new(WINDOW);
        max.update(ms(0), 90);
        assert_eq!(max.update(ms(500), 1), 1);
    }

    #[test]
    fn a_maximum_is_kept_for_its_rounds_and_not_longer() {
        let mut max = RoundMax::new(10);
        max.update(0, 9);
        for round in 1..=10 {
            assert_eq!(max.update(round, 5), 9, "round {round}");
        }
        assert_eq!(max.update(11, 5), 5);
        max.set_window(1);
        assert_eq!((max.update(12, 4), max.update(13, 4)), (5, 4));
    }

    proptest! {
        /// The answer was sampled inside the window, and is never better than the true extreme.
        #[test]
        fn the_minimum_is_a_sample_of_the_window_and_never_below_the_true_one(
            samples in proptest::collection::vec((0u64..40, 0u32..1000), 1..200)
        ) {
            let mut min = WindowedMin::new(WINDOW);
            let mut seen: Vec<(Timestamp, u32)> = Vec::new();
            let mut now = Timestamp::ZERO;
            for (step, value) in samples {
                now = now + Duration::from_millis(step);
                seen.push((now, value));
                let answer = min.update(now, value);
                let window: Vec<u32> = seen.iter().filter(|(at, _)| now.since(*at) <= WINDOW).map(|(_, v)| *v).collect();
                let truth = *window.iter().min().unwrap();
                prop_assert!(window.contains(&answer), "{answer} is not in the window");
                prop_assert!(answer >= truth);
                prop_assert!(answer <= value);
            }
        }
    }
}
