//! A mean over seeds, and how far it can be trusted.

use serde::{Deserialize, Serialize};

/// A mean and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The mean is this far from the truth at most, in 95 of 100 cases, where the samples are
    /// normally distributed; `None` for a single sample.
    pub half_width: Option<f64>,
    /// How many samples there are.
    pub samples: usize,
}

impl Estimate {
    /// Of these samples; `None` where there are none, or one is not a number.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let samples: Vec<f64> = samples.into_iter().collect();
        let n = samples.len();
        let mean = samples.iter().sum::<f64>() / n as f64;
        let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
        let half_width = (n > 1).then(|| t_95(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt());
        mean.is_finite().then_some(Self { mean, half_width, samples: n })
    }
}

/// The 97.5 % point of Student's t with this many degrees of freedom.
///
/// Tabulated up to 20; from there the expansion about the normal point z,
/// t = z + (z³ + z)/4ν + (5z⁵ + 16z³ + 3z)/96ν² (Abramowitz and Stegun, 26.7.5), is right to 0.001.
fn t_95(freedom: usize) -> f64 {
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

    #[test]
    fn four_samples_have_three_degrees_of_freedom() {
        // Mean 2.5, variance (2.25 + 0.25 + 0.25 + 2.25)/3 = 1.6667; 3.182 · sqrt(1.6667/4) = 2.054
        let estimate = Estimate::of([1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!((estimate.mean, estimate.samples), (2.5, 4));
        assert!((estimate.half_width.unwrap() - 2.054).abs() < 1e-3);
    }

    #[test]
    fn one_sample_has_a_mean_without_an_interval_and_none_has_nothing() {
        assert_eq!(Estimate::of([3.0]), Some(Estimate { mean: 3.0, half_width: None, samples: 1 }));
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([1.0, f64::NAN]), None);
    }

    #[test]
    fn the_expansion_meets_the_tables() {
        for (freedom, tabulated) in [(21, 2.080), (25, 2.060), (29, 2.045), (99, 1.984)] {
            assert!((t_95(freedom) - tabulated).abs() < 1e-3, "{freedom}: {}", t_95(freedom));
        }
    }
}
