//! Round-trip time estimation [RFC9002 §5].

use core::time::Duration;

use crate::units::{Timestamp, duration};
use crate::windowed_filter::WindowedMin;

/// The round-trip times of a path at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    /// The newest sample.
    pub latest: Duration,
    /// The exponentially smoothed time, gain 1/8.
    pub smoothed: Duration,
    /// The mean deviation from the smoothed time, gain 1/4.
    pub variance: Duration,
    /// The smallest sample ever.
    pub min: Duration,
    /// The smallest sample of the last 10 s.
    pub windowed_min: Duration,
    /// The largest sample ever.
    pub max: Duration,
}

impl Rtt {
    /// The time of a path before its first sample [RFC9002 §6.2.2, kInitialRtt].
    pub const INITIAL: Duration = Duration::from_millis(333);
    /// How far back windowed minima look: 10 s, as BBR's [BBRv3 §2.16.1].
    pub const MIN_WINDOW: Duration = Duration::from_secs(10);

    /// The estimate after the first sample [RFC9002 §5.3].
    pub fn first(sample: Duration) -> Self {
        Self { variance: sample / 2, ..Self::steady(sample) }
    }

    /// The estimate for a path on which every packet took this long.
    pub fn steady(time: Duration) -> Self {
        Self { latest: time, smoothed: time, variance: Duration::ZERO, min: time, windowed_min: time, max: time }
    }

    /// How long packets wait in queues that were shorter in the last 10 s.
    pub fn queueing_delay(&self) -> Duration {
        self.smoothed.saturating_sub(self.windowed_min)
    }

    /// The probe timeout without the peer's acknowledgement delay [RFC9002 §6.2.1].
    pub fn probe_timeout(&self) -> Duration {
        self.smoothed + (self.variance * 4).max(Duration::from_millis(1))
    }
}

/// Estimates the round-trip time of one path.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    rtt: Option<Rtt>,
    /// The smoothed time, its deviation and the smallest and largest sample in nanoseconds: a [`Duration`] is seconds
    /// and nanoseconds, and this is every packet.
    smoothed_ns: u64,
    variance_ns: u64,
    min_ns: u64,
    max_ns: u64,
    windowed_min: WindowedMin<u64>,
}

impl Default for RttEstimator {
    fn default() -> Self {
        let windowed_min = WindowedMin::new(Rtt::MIN_WINDOW);
        Self { rtt: None, smoothed_ns: 0, variance_ns: 0, min_ns: 0, max_ns: 0, windowed_min }
    }
}

impl RttEstimator {
    /// An estimator that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the time between the sending of the largest newly acknowledged packet and its
    /// acknowledgement. `ack_delay` is what the peer says it waited; it is taken off only where
    /// that does not go below the minimum [RFC9002 §5.3].
    #[inline]
    pub fn on_sample(&mut self, now: Timestamp, sample: Duration, ack_delay: Duration) {
        self.on_sample_nanos(now, nanos(sample), nanos(ack_delay));
    }

    /// The same for times in nanoseconds.
    #[inline]
    pub fn on_sample_nanos(&mut self, now: Timestamp, sample_ns: u64, ack_delay_ns: u64) {
        let (sample_ns, ack_delay_ns) = (sample_ns.min(NANOS_MAX), ack_delay_ns.min(NANOS_MAX));
        let windowed_ns = self.windowed_min.update(now, sample_ns);
        let latest = duration(sample_ns);
        let Some(rtt) = &mut self.rtt else {
            (self.smoothed_ns, self.variance_ns, self.min_ns) = (sample_ns, sample_ns / 2, sample_ns);
            self.max_ns = sample_ns;
            self.rtt = Some(Rtt::first(latest));
            return;
        };
        if sample_ns < self.min_ns {
            self.min_ns = sample_ns;
            rtt.min = latest;
        } else if sample_ns > self.max_ns {
            self.max_ns = sample_ns;
            rtt.max = latest;
        }
        rtt.latest = latest;
        rtt.windowed_min = if windowed_ns == self.min_ns { rtt.min } else { duration(windowed_ns) };
        let adjusted_ns = if sample_ns >= self.min_ns + ack_delay_ns { sample_ns - ack_delay_ns } else { sample_ns };
        // rttvar = 3/4 · rttvar + 1/4 · |smoothed_rtt − adjusted_rtt|
        self.variance_ns = (3 * self.variance_ns + self.smoothed_ns.abs_diff(adjusted_ns)) / 4;
        // smoothed_rtt = 7/8 · smoothed_rtt + 1/8 · adjusted_rtt
        self.smoothed_ns = (7 * self.smoothed_ns + adjusted_ns) / 8;
        rtt.variance = duration(self.variance_ns);
        rtt.smoothed = duration(self.smoothed_ns);
    }

    /// The estimate; `None` before the first sample.
    #[inline]
    pub fn get(&self) -> Option<Rtt> {
        self.rtt
    }

    /// The smoothed time in nanoseconds; zero before the first sample.
    #[inline]
    pub fn smoothed_nanos(&self) -> u64 {
        self.smoothed_ns
    }
}

/// A tenth of the largest number of nanoseconds, 58 years: eight of them can be added.
const NANOS_MAX: u64 = u64::MAX / 10;

fn nanos(time: Duration) -> u64 {
    time.as_secs().saturating_mul(1_000_000_000).saturating_add(time.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// An estimator and what it knows after each of these samples: when, how long, the peer's delay.
    fn after(samples: &[(u64, Duration, Duration)]) -> Vec<Rtt> {
        let mut estimator = RttEstimator::new();
        assert_eq!(estimator.get(), None);
        let mut known = |&(at, sample, ack_delay): &(u64, Duration, Duration)| {
            estimator.on_sample(Timestamp::from_millis(at), sample, ack_delay);
            estimator.get().unwrap()
        };
        samples.iter().map(&mut known).collect()
    }

    #[test]
    fn the_first_sample_is_the_estimate_and_half_of_it_the_variance() {
        let rtt = after(&[(0, ms(100), ms(20))])[0];
        assert_eq!(rtt, Rtt { variance: ms(50), ..Rtt::steady(ms(100)) });
    }

    #[test]
    fn the_second_sample_moves_an_eighth_and_a_quarter() {
        let rtt = after(&[(0, ms(100), Duration::ZERO), (100, ms(180), Duration::ZERO)])[1];
        // smoothed = 7/8·100 + 1/8·180 = 110; variance = 3/4·50 + 1/4·|100 − 180| = 57.5
        assert_eq!(rtt.smoothed, ms(110));
        assert_eq!(rtt.variance, Duration::from_micros(57_500));
        assert_eq!(rtt.probe_timeout(), ms(340));
    }

    #[test]
    fn the_ack_delay_never_takes_a_sample_below_the_minimum() {
        let rtts = after(&[(0, ms(100), Duration::ZERO), (1, ms(110), ms(20)), (2, ms(140), ms(20))]);
        // 110 − 20 would be below the minimum of 100: the sample counts whole. 7/8·100 + 1/8·110
        assert_eq!(rtts[1].smoothed, Duration::from_micros(101_250));
        // 140 − 20 is not: 7/8·101.25 + 1/8·120 = 103.59375
        assert_eq!(rtts[2].smoothed, Duration::from_nanos(103_593_750));
    }

    #[test]
    fn the_windowed_minimum_forgets_and_the_extremes_do_not() {
        let later = (1..=25).map(|second| (1_000 * second, ms(50), Duration::ZERO));
        let samples: Vec<_> = [20, 90].map(|first| (0, ms(first), Duration::ZERO)).into_iter().chain(later).collect();
        let rtt = after(&samples)[26];
        assert_eq!((rtt.min, rtt.windowed_min, rtt.max), (ms(20), ms(50), ms(90)));
    }
}
