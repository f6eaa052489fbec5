//! How round-trip times are distributed.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::Timestamp;

/// Mean and standard deviation of the round-trip times of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// The mean.
    pub mean: Duration,
    /// The standard deviation.
    pub deviation: Duration,
}

impl Delays {
    /// Those of an exponential distribution, whose deviation is its mean.
    pub const fn exponential(mean: Duration) -> Self {
        Self { mean, deviation: mean }
    }
}

/// The round-trip times of the last seconds.
#[derive(Clone, Debug)]
pub struct DelayWindow {
    span: Duration,
    samples: VecDeque<(Timestamp, Duration)>,
}

impl DelayWindow {
    /// Samples older than `span` count no longer.
    pub fn new(span: Duration) -> Self {
        Self { span, samples: VecDeque::new() }
    }

    /// Adds a sample. Times do not go backwards.
    pub fn on_sample(&mut self, now: Timestamp, rtt: Duration) {
        self.samples.push_back((now, rtt));
        while self.samples.front().is_some_and(|(at, _)| now.since(*at) > self.span) {
            self.samples.pop_front();
        }
    }

    /// Mean and deviation; `None` where there is no sample.
    pub fn delays(&self) -> Option<Delays> {
        let count = self.samples.len() as f64;
        let seconds = || self.samples.iter().map(|(_, rtt)| rtt.as_secs_f64());
        if self.samples.is_empty() {
            return None;
        }
        let mean = seconds().sum::<f64>() / count;
        let variance = seconds().map(|rtt| (rtt - mean) * (rtt - mean)).sum::<f64>() / count;
        Some(Delays { mean: Duration::from_secs_f64(mean), deviation: Duration::from_secs_f64(libm::sqrt(variance)) })
    }

    /// The share of samples above a deadline; `None` where there is none.
    pub fn above(&self, deadline: Duration) -> Option<f64> {
        let late = self.samples.iter().filter(|(_, rtt)| *rtt > deadline).count();
        (!self.samples.is_empty()).then(|| late as f64 / self.samples.len() as f64)
    }

    /// The time that a share of the samples does not exceed; `None` where there is none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.samples.iter().map(|(_, rtt)| *rtt).collect();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        sorted.get(((share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize).saturating_sub(1).min(last)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_the_moments_and_quantiles_of_what_is_not_too_old() {
        let mut window = DelayWindow::new(Duration::from_secs(5));
        assert_eq!((window.delays(), window.above(Duration::ZERO), window.quantile(0.5)), (None, None, None));
        window.on_sample(Timestamp::ZERO, Duration::from_secs(9));
        for (second, rtt) in [(1, 10), (2, 20), (3, 30), (6, 40)] {
            window.on_sample(Timestamp::from_secs(second), Duration::from_millis(rtt));
        }
        let delays = window.delays().unwrap();
        assert_eq!(delays.mean, Duration::from_millis(25), "the first is too old");
        assert!((delays.deviation.as_secs_f64() - 0.011_180).abs() < 1e-6, "{delays:?}");
        assert_eq!(window.above(Duration::from_millis(20)), Some(0.5));
        let quantile = |share| window.quantile(share).unwrap().as_millis();
        assert_eq!([0.0, 0.25, 0.26, 0.5, 1.0].map(quantile), [10, 10, 20, 20, 40]);
    }
}
