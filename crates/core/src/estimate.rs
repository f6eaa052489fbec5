//! A mean over seeds, how far it can be trusted, and what is computed from several.

use core::ops::{Add, Div, Mul, Sub};

/// A mean and its 95 % interval.
///
/// Sums, differences and ratios of estimates are estimates. Where both have one sample for each of the
/// same seeds, the samples are paired: what a seed does to both cancels or adds up as it should.
/// Otherwise they are taken as independent.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The mean is this far from the truth at most, in 95 of 100 cases, where the samples are
    /// normally distributed; `None` where it is not known, as for a single sample.
    pub half_width: Option<f64>,
    /// How many samples there are; none of what is known exactly.
    pub samples: usize,
    /// How far each sample is from the mean, in the order of the seeds.
    #[cfg_attr(feature = "serde", serde(skip))]
    deviations: Vec<f64>,
}

impl Estimate {
    /// The estimate from these samples, one for each seed in order; `None` where there are none, or one is
    /// not a number.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let samples: Vec<f64> = samples.into_iter().collect();
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        mean.is_finite().then(|| Self::from_deviations(mean, samples.iter().map(|sample| sample - mean).collect()))
    }

    /// A mean with an interval that was found in another way, over so many samples.
    pub fn with_interval(mean: f64, half_width: Option<f64>, samples: usize) -> Self {
        Self { mean, half_width, samples, deviations: Vec::new() }
    }

    /// An unknown value: no inequality holds of it.
    pub fn unknown() -> Self {
        Self::with_interval(f64::NAN, None, 0)
    }

    /// The largest of these, by its mean; unknown where there are none.
    pub fn largest(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().max_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_else(Self::unknown)
    }

    /// The smallest.
    pub fn smallest(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap_or_else(Self::unknown)
    }

    /// The mean of these; unknown where there are none.
    pub fn mean_of(all: impl IntoIterator<Item = Self>) -> Self {
        let all: Vec<Self> = all.into_iter().collect();
        let count = all.len() as f64;
        all.into_iter().reduce(|sum, one| sum + one).map_or_else(Self::unknown, |sum| sum / count)
    }

    /// Its magnitude, whatever its sign.
    pub fn abs(self) -> Self {
        let sign = self.mean.signum();
        self * sign
    }

    fn from_deviations(mean: f64, deviations: Vec<f64>) -> Self {
        let n = deviations.len();
        let squares: f64 = deviations.iter().map(|one| one * one).sum();
        let half_width = (n > 1).then(|| t_95(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt());
        Self { mean, half_width, samples: n, deviations }
    }

    fn is_exact(&self) -> bool {
        self.samples == 0 && self.half_width == Some(0.0)
    }

    /// A function of two estimates whose value is `mean`, by its derivatives: right to first order.
    //
    //     f(a_i, b_i) ~ f(a, b) + f_a (a_i - a) + f_b (b_i - b)
    fn combined(mean: f64, (by_a, a): (f64, &Self), (by_b, b): (f64, &Self)) -> Self {
        if !(mean.is_finite() && by_a.is_finite() && by_b.is_finite()) {
            return Self { mean, ..Self::unknown() };
        }
        if a.is_exact() {
            return b.scaled(mean, by_b);
        }
        if b.is_exact() {
            return a.scaled(mean, by_a);
        }
        if a.deviations.len() == b.deviations.len() && a.deviations.len() == a.samples.min(b.samples) {
            let pairs = a.deviations.iter().zip(&b.deviations);
            return Self::from_deviations(mean, pairs.map(|(a, b)| by_a * a + by_b * b).collect());
        }
        let half_width = a.half_width.zip(b.half_width).map(|(a, b)| (by_a * a).hypot(by_b * b));
        Self::with_interval(mean, half_width, a.samples.min(b.samples))
    }

    fn scaled(&self, mean: f64, by: f64) -> Self {
        let deviations = self.deviations.iter().map(|one| by * one).collect();
        let half_width = self.half_width.map(|half| (by * half).abs());
        Self { mean, half_width, samples: self.samples, deviations }
    }
}

/// An exact value: a closed form, or a number that is printed.
impl From<f64> for Estimate {
    fn from(value: f64) -> Self {
        let half_width = value.is_finite().then_some(0.0);
        Self::with_interval(value, half_width, 0)
    }
}

impl<B: Into<Estimate>> Add<B> for Estimate {
    type Output = Self;

    fn add(self, other: B) -> Self {
        let other = other.into();
        Self::combined(self.mean + other.mean, (1.0, &self), (1.0, &other))
    }
}

impl<B: Into<Estimate>> Sub<B> for Estimate {
    type Output = Self;

    fn sub(self, other: B) -> Self {
        let other = other.into();
        Self::combined(self.mean - other.mean, (1.0, &self), (-1.0, &other))
    }
}

impl Mul<f64> for Estimate {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        self.scaled(self.mean * by, by)
    }
}

/// The ratio of the means, not the mean of the ratios: one seed in which the denominator is small does not
/// decide it.
impl<B: Into<Estimate>> Div<B> for Estimate {
    type Output = Self;

    fn div(self, other: B) -> Self {
        let other = other.into();
        let ratio = self.mean / other.mean;
        Self::combined(ratio, (1.0 / other.mean, &self), (-ratio / other.mean, &other))
    }
}

/// The 97.5 % point of Student's t with this many degrees of freedom.
///
/// Tabulated up to 20; from there the expansion about the normal point z,
/// t = z + (z³ + z)/4ν + (5z⁵ + 16z³ + 3z)/96ν² (Abramowitz and Stegun, 26.7.5), is right to 0.001.
pub fn t_95(freedom: usize) -> f64 {
    const SMALL: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    const Z: f64 = 1.959_964;
    match freedom {
        0 => f64::INFINITY,
        1..=20 => SMALL[freedom - 1],
        _ => {
            let v = freedom as f64;
            let (z3, z5) = (Z * Z * Z, Z * Z * Z * Z * Z);
            Z + (z3 + Z) / (4.0 * v) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * v * v)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<const N: usize>(samples: [f64; N]) -> Estimate {
        Estimate::of(samples).unwrap()
    }

    #[test]
    fn four_samples_have_three_degrees_of_freedom() {
        // Mean 2.5, variance (2.25 + 0.25 + 0.25 + 2.25)/3 = 1.6667; 3.182 · sqrt(1.6667/4) = 2.054
        let estimate = of([1.0, 2.0, 3.0, 4.0]);
        assert_eq!((estimate.mean, estimate.samples), (2.5, 4));
        assert!((estimate.half_width.unwrap() - 2.054).abs() < 1e-3);
    }

    #[test]
    fn one_sample_has_a_mean_without_an_interval_and_none_has_nothing() {
        let one = of([3.0]);
        assert_eq!((one.mean, one.half_width, one.samples), (3.0, None, 1));
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([1.0, f64::NAN]), None);
    }

    #[test]
    fn what_a_seed_does_to_both_cancels_in_the_difference() {
        let (a, b) = (of([1.0, 2.0, 6.0]), of([0.5, 1.5, 5.5]));
        let difference = a.clone() - b;
        assert!((difference.mean - 0.5).abs() < 1e-12 && difference.half_width.unwrap() < 1e-12);
        // With other seeds: sqrt(2) times the interval of one.
        let apart = a.clone() - Estimate::with_interval(0.5, a.half_width, 3);
        assert!((apart.half_width.unwrap() - a.half_width.unwrap() * 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_is_that_of_the_means() {
        // (1 + 0) / (1 + 3) = 0.25, and not the mean of 1 and 0. The pairs deviate from it by
        // ((1 - 0.25 · 1) / 2, (0 - 0.25 · 3) / 2) = ±0.375; 12.706 · 0.5303 / sqrt(2) = 4.765
        let ratio = of([1.0, 0.0]) / of([1.0, 3.0]);
        assert!((ratio.mean - 0.25).abs() < 1e-12);
        assert!((ratio.half_width.unwrap() - 12.706 * 0.375).abs() < 1e-9);
    }

    #[test]
    fn exact_numbers_shift_and_scale() {
        let estimate = of([1.0, 3.0]);
        let half = estimate.half_width.unwrap();
        let scaled = (estimate - 1.0) / 4.0 * 2.0;
        assert_eq!((scaled.mean, scaled.half_width, scaled.samples), (0.5, Some(half / 2.0), 2));
        let exact = Estimate::from(3.0) / Estimate::from(2.0);
        assert_eq!((exact.mean, exact.half_width), (1.5, Some(0.0)));
    }

    #[test]
    fn what_is_not_known_stays_unknown() {
        for one in [of([1.0, 2.0]) / 0.0, Estimate::unknown() + 1.0, of([1.0, 2.0]) - f64::NAN, of([1.0]) - of([2.0])] {
            assert_eq!(one.half_width, None, "{one:?}");
        }
    }

    #[test]
    fn the_expansion_meets_the_tables() {
        for (freedom, tabulated) in [(21, 2.080), (25, 2.060), (29, 2.045), (99, 1.984)] {
            assert!((t_95(freedom) - tabulated).abs() < 1e-3, "{freedom}: {}", t_95(freedom));
        }
    }
}
