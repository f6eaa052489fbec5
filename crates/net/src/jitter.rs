//! Delays that differ from packet to packet.

use core::f64::consts::TAU;
use core::time::Duration;

use rand_chacha::ChaCha8Rng;

use crate::stream::{Owner, uniform, unit};

/// Limit on the draws for a delay that is not negative. A draw from a normal distribution of a mean
/// that is not negative is negative at most half of the time, so 64 in a row never happen.
const DRAWS_MAX: usize = 64;

/// How the delays of packets differ from a link's `delay`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// How they are distributed.
    pub distribution: JitterDistribution,
    /// How wide the distribution is; zero: every packet takes the `delay`.
    pub scale: Duration,
    /// Whether a packet with a short delay may overtake one with a long delay. Where it may not, one
    /// that would arrive before its predecessor arrives together with it. So a scale far above the gap
    /// between packets then bunches them, and delays them more than the distribution says.
    pub overtake: bool,
}

/// How the delays of packets are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform from `delay` to `delay` + `scale`.
    #[default]
    Uniform,
    /// Normal: the mean is `delay`, the standard deviation is `scale`. It is truncated at zero: what is
    /// negative is drawn again, so that the mean is above `delay` where that is not far above `scale`.
    Normal,
    /// `delay`, and an exponential time with the mean `scale`.
    Exponential,
}

impl Jitter {
    /// Delays of this distribution and scale, in order.
    pub const fn new(distribution: JitterDistribution, scale: Duration) -> Self {
        Self { distribution, scale, overtake: false }
    }

    /// The same, and packets may overtake each other.
    pub const fn overtaking(self) -> Self {
        Self { overtake: true, ..self }
    }
}

/// Uniform, up to this delay, in order.
impl From<Duration> for Jitter {
    fn from(scale: Duration) -> Self {
        Self::new(JitterDistribution::Uniform, scale)
    }
}

/// A jitter at work.
#[derive(Debug)]
pub(crate) struct Delays {
    distribution: JitterDistribution,
    scale_ns: u64,
    generator: ChaCha8Rng,
}

impl Delays {
    /// The delays of the link `owner`; `None` where they are all the same.
    pub(crate) fn new(jitter: &Jitter, owner: &Owner) -> Option<Self> {
        let scale_ns = u64::try_from(jitter.scale.as_nanos()).unwrap_or(u64::MAX);
        let generator = || owner.generator("jitter");
        (scale_ns > 0).then(|| Self { distribution: jitter.distribution, scale_ns, generator: generator() })
    }

    /// Whether they may be shorter than the delay of the link.
    pub(crate) fn may_be_early(&self) -> bool {
        self.distribution == JitterDistribution::Normal
    }

    /// How long the next packet takes on a link of the delay `delay_ns`.
    pub(crate) fn next_ns(&mut self, delay_ns: u64) -> u64 {
        let Self { distribution, scale_ns, generator } = self;
        let scale = *scale_ns as f64;
        match distribution {
            JitterDistribution::Uniform => delay_ns.saturating_add(uniform(generator, *scale_ns)),
            JitterDistribution::Normal => {
                let mut draws = (0..DRAWS_MAX).map(|_| delay_ns as f64 + scale * normal(generator));
                draws.find(|delay| *delay >= 0.0).unwrap_or(0.0) as u64
            }
            JitterDistribution::Exponential => delay_ns.saturating_add((scale * exponential(generator)) as u64),
        }
    }
}

/// A number of the exponential distribution with the mean 1, by inversion of its distribution
/// function.
//
//     x = - ln(1 - u),  u in [0, 1)
fn exponential(generator: &mut ChaCha8Rng) -> f64 {
    -libm::log(1.0 - unit(generator))
}

/// A number of the normal distribution with the mean 0 and the standard deviation 1
/// [BoxMuller1958 eq. 1]. The second one that the same two draws would give is left, so that each
/// packet draws for itself.
//
//     x = sqrt(-2 ln u1) · cos(2π u2)
fn normal(generator: &mut ChaCha8Rng) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(generator));
    radius * libm::cos(TAU * unit(generator))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Streams;

    fn owner() -> Owner {
        Owner::new(&Streams::new(1), "link")
    }

    const DRAWS: u32 = 100_000;

    /// The mean and the standard deviation of what is drawn, in milliseconds.
    fn moments(distribution: JitterDistribution, delay_ms: u64, scale_ms: u64) -> (f64, f64) {
        let jitter = Jitter::new(distribution, Duration::from_millis(scale_ms));
        let mut delays = Delays::new(&jitter, &owner()).unwrap();
        let drawn: Vec<f64> = (0..DRAWS).map(|_| delays.next_ns(delay_ms * 1_000_000) as f64 / 1e6).collect();
        assert!(drawn.iter().all(|delay| *delay >= 0.0));
        let mean = drawn.iter().sum::<f64>() / f64::from(DRAWS);
        let variance = drawn.iter().map(|delay| (delay - mean) * (delay - mean)).sum::<f64>() / f64::from(DRAWS);
        (mean, variance.sqrt())
    }

    /// The mean of 100,000 draws lies within 4 standard errors of the true one but for one seed in
    /// 16,000; a standard error is σ/√100,000 = 0.0032 σ. So does their deviation: its standard
    /// error is at most √2 times that for these distributions (kurtosis of up to 9).
    fn assert_moments(measured: (f64, f64), mean: f64, deviation: f64) {
        let standard_error = deviation / f64::from(DRAWS).sqrt();
        assert!((measured.0 - mean).abs() < 4.0 * standard_error, "mean {} and not {mean}", measured.0);
        let error = (measured.1 - deviation).abs();
        assert!(error < 4.0 * 1.5 * standard_error, "deviation {} and not {deviation}", measured.1);
    }

    #[test]
    fn delays_have_the_mean_and_the_deviation_of_their_distribution() {
        // Uniform over 10 ms: the mean is 5 ms, the deviation 10/√12.
        assert_moments(moments(JitterDistribution::Uniform, 20, 10), 25.0, 10.0 / 12.0_f64.sqrt());
        // Ten deviations above zero nothing is cut off.
        assert_moments(moments(JitterDistribution::Normal, 50, 5), 50.0, 5.0);
        assert_moments(moments(JitterDistribution::Exponential, 20, 10), 30.0, 10.0);
    }

    #[test]
    fn a_normal_delay_is_truncated_and_not_folded_at_zero() {
        // With α = -μ/σ = -1: φ(α) = 0.24197, Z = 1 - Φ(α) = 0.84134; the mean is μ + σ φ(α)/Z, the
        // variance σ² (1 + α φ(α)/Z - (φ(α)/Z)²).
        let ratio = 0.241_970_72 / 0.841_344_75;
        let (mean, variance) = (10.0 + 10.0 * ratio, 100.0 * (1.0 - ratio - ratio * ratio));
        assert_moments(moments(JitterDistribution::Normal, 10, 10), mean, variance.sqrt());
        // Half a normal distribution: the mean is σ √(2/π), the variance σ² (1 - 2/π).
        let half = core::f64::consts::FRAC_2_PI;
        let deviation = 10.0 * (1.0 - half).sqrt();
        assert_moments(moments(JitterDistribution::Normal, 0, 10), 10.0 * half.sqrt(), deviation);
    }

    #[test]
    fn no_scale_is_no_jitter_and_the_largest_one_does_not_overflow() {
        assert!(Delays::new(&Jitter::default(), &owner()).is_none());
        for distribution in [JitterDistribution::Uniform, JitterDistribution::Normal, JitterDistribution::Exponential] {
            let mut delays = Delays::new(&Jitter::new(distribution, Duration::MAX), &owner()).unwrap();
            assert!((0..100).all(|_| delays.next_ns(u64::MAX - 1) > 0));
        }
    }
}
