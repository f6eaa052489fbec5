//! How much comes after the deadline.

use core::time::Duration;

use fairpath_core::share_above;

use crate::delays::{DelayWindow, Delays};

/// The estimate of the share of late packets.
#[derive(Clone, Debug)]
pub enum Bound {
    /// σ² / (D − m)², what Chebyshev's inequality allows on both sides [Pluntke2011 §3].
    Chebyshev,
    /// σ² / (σ² + (D − m)²), what Cantelli's allows on the side that counts.
    Cantelli,
    /// exp(−D / m): round-trip times are exponential.
    Exponential,
    /// The time above the deadline of the last samples of each path.
    Empirical(Vec<DelayWindow>),
}

impl Bound {
    /// The share of packets of path `path` that are late. All are where the bound says nothing: a mean that is no
    /// earlier than the deadline, or no sample.
    pub fn late(&self, path: usize, delays: &Delays, deadline: Duration) -> f64 {
        let [mean, deviation, deadline_s] = [delays.mean, delays.deviation, deadline].map(|time| time.as_secs_f64());
        let (variance, margin) = (deviation * deviation, deadline_s - mean);
        match self {
            Self::Exponential if mean <= 0.0 => 0.0,
            Self::Exponential => libm::exp(-deadline_s / mean),
            Self::Empirical(windows) => windows.get(path).and_then(|window| window.above(deadline)).unwrap_or(1.0),
            Self::Chebyshev if margin <= 0.0 => 1.0,
            Self::Chebyshev => (variance / (margin * margin)).min(1.0),
            Self::Cantelli => share_above(delays.mean, delays.deviation, deadline),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paths_of_the_example_are_late_as_the_bounds_say() {
        let delays = [20, 100, 300].map(|rtt| Delays::exponential(Duration::from_millis(rtt)));
        let deadline = Duration::from_millis(300);
        for (bound, expected) in [
            (Bound::Chebyshev, [0.0051, 0.25, 1.0]),
            (Bound::Cantelli, [0.0051, 0.20, 1.0]),
            (Bound::Exponential, [0.0, 0.0498, 0.3679]),
        ] {
            for (path, expected) in expected.into_iter().enumerate() {
                let late = bound.late(path, &delays[path], deadline);
                assert!((late - expected).abs() < 5e-5, "{bound:?}, path {path}: {late} for {expected}");
            }
        }
    }

    #[test]
    fn samples_are_counted_and_where_there_are_none_all_is_late() {
        let mut window = DelayWindow::new(Duration::from_secs(5));
        (0..10).for_each(|ms| window.on_sample(fairpath_core::Timestamp::from_millis(ms), Duration::from_millis(ms)));
        let bound = Bound::Empirical(vec![window, DelayWindow::new(Duration::from_secs(5))]);
        let delays = Delays::exponential(Duration::from_millis(1));
        let late = |path| bound.late(path, &delays, Duration::from_millis(7));
        assert_eq!([late(0), late(1), late(2)], [0.2, 1.0, 1.0]);
    }
}
