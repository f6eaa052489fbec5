//! How late datagrams were released: a histogram in constant memory.

use core::time::Duration;
use std::fmt;

/// Each power of two is split into this many parts, so that a quantile is at most 1/16 too high.
const PARTS_PER_OCTAVE: u64 = 16;

/// 2^40 ns are 18 minutes: later than that counts as that.
const OCTAVES: u64 = 40;

/// The lateness of releases: scheduled against actual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingReport {
    /// How many releases were measured.
    pub count: u64,
    /// Half of them were at most this late.
    pub p50: Duration,
    /// 99 % of them were at most this late.
    pub p99: Duration,
    /// The latest of them.
    pub max: Duration,
}

impl fmt::Display for TimingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99, max) = (self.p50.as_micros(), self.p99.as_micros(), self.max.as_micros());
        write!(f, "{} releases, late by p50 {p50} µs, p99 {p99} µs, max {max} µs", self.count)
    }
}

/// Counts durations in classes of equal relative width.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max_ns: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; (PARTS_PER_OCTAVE * (OCTAVES + 1)) as usize], count: 0, max_ns: 0 }
    }

    pub(crate) fn record(&mut self, late: Duration) {
        let late_ns = (late.as_nanos() as u64).min((1 << OCTAVES) - 1);
        self.counts[class_of(late_ns)] += 1;
        self.count += 1;
        self.max_ns = self.max_ns.max(late_ns);
    }

    pub(crate) fn report(&self) -> TimingReport {
        let quantile = |share| Duration::from_nanos(self.quantile_ns(share));
        TimingReport {
            count: self.count,
            p50: quantile(0.50),
            p99: quantile(0.99),
            max: Duration::from_nanos(self.max_ns),
        }
    }

    /// The upper end of the class in which `share` of the values is reached.
    fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (self.count as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return class_end(class as u64).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// Values below 16 have a class each; above, the four bits after the leading one choose the part.
fn class_of(value: u64) -> usize {
    if value < PARTS_PER_OCTAVE {
        return value as usize;
    }
    let shift = value.ilog2() - PARTS_PER_OCTAVE.ilog2();
    (PARTS_PER_OCTAVE * u64::from(shift) + (value >> shift)) as usize
}

/// The largest value of a class.
fn class_end(class: u64) -> u64 {
    if class < 2 * PARTS_PER_OCTAVE {
        return class;
    }
    let shift = class / PARTS_PER_OCTAVE - 1;
    let part = class % PARTS_PER_OCTAVE + PARTS_PER_OCTAVE;
    ((part + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_a_class_that_ends_at_most_a_sixteenth_above_it() {
        for exponent in 0..40 {
            for value in [1_u64 << exponent, (1 << exponent) + (1 << exponent) / 3, (2 << exponent) - 1] {
                let end = class_end(class_of(value) as u64);
                assert!(end >= value && end - value <= value / 16, "{value}: {end}");
            }
        }
    }

    #[test]
    fn quantiles_of_a_uniform_spread_are_where_they_should_be() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.report(), TimingReport::default());
        (1..=1_000).for_each(|micros| histogram.record(Duration::from_micros(micros)));
        let report = histogram.report();
        assert_eq!((report.count, report.max), (1_000, Duration::from_millis(1)));
        assert!((500..=532).contains(&report.p50.as_micros()), "{report}");
        assert!((990..=1_000).contains(&report.p99.as_micros()), "{report}");
    }
}
