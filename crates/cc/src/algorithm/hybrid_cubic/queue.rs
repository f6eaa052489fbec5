//! How long packets of a path wait.

use fairpath_core::{Rtt, Timestamp};

use crate::levels::Levels;

/// A queue above this, in seconds, is too long, where delays do not vary by themselves.
pub const TARGET: f64 = 0.010;
/// This much stays when the queue was too long: with less, links that serve in bursts would run dry.
pub const LOW: f64 = 0.003;
/// Weights of the noise in the target and in the low mark.
const NOISY_TARGET: f64 = 4.0;
const NOISY_LOW: f64 = 3.0;
/// Averaging length of the noise, in levels.
const LEVELS: f64 = 32.0;
/// Limit on the difference of two levels that counts as noise, in seconds.
const NOISE_MAX: f64 = 0.025;

/// Averaging length of the mean whose minimum is the base, in levels: single low levels may be
/// rare.
const MEAN: f64 = 4.0;

/// The wait on one path, in seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    levels: Levels,
    /// The mean of the last levels, and the least that it ever was.
    mean: Option<f64>,
    base: f64,
    level: f64,
    noise: f64,
    /// The mean round-trip time above the level.
    spread: f64,
    /// The sum and count of the span that goes on.
    sum: f64,
    samples: u32,
    previous: Option<f64>,
}

impl Queue {
    /// Takes a round-trip time; says how long packets wait, where a level is whole.
    pub(super) fn on_sample(&mut self, now: Timestamp, rtt: &Rtt) -> Option<f64> {
        self.sum += rtt.latest.as_secs_f64();
        self.samples += 1;
        let Some(level) = self.levels.on_sample(now, rtt.latest, rtt.smoothed) else {
            if self.mean.is_none() {
                self.base = rtt.min.as_secs_f64();
            }
            return None;
        };
        let level = level.as_secs_f64();
        if let Some(previous) = self.previous.replace(level) {
            let differs = (level - previous).abs().min(NOISE_MAX);
            self.noise += (differs - self.noise) / LEVELS;
        }
        let mean = self.mean.map_or(level, |mean| mean + (level - mean) / MEAN);
        self.base = if self.mean.is_none() { mean } else { self.base.min(mean) };
        self.mean = Some(mean);
        let spread = (self.sum / f64::from(self.samples.max(1)) - level).max(0.0);
        self.spread += (spread - self.spread) / LEVELS;
        (self.sum, self.samples) = (0.0, 0);
        self.level = (level - self.base).max(0.0);
        Some(self.level)
    }

    pub(super) fn level(&self) -> f64 {
        self.level
    }

    pub(super) fn base(&self) -> f64 {
        self.base
    }

    /// How long a packet takes on the mean while none waits.
    pub(super) fn pipe(&self) -> f64 {
        self.base + self.spread
    }

    pub(super) fn target(&self) -> f64 {
        TARGET + NOISY_TARGET * self.noise
    }

    pub(super) fn low(&self) -> f64 {
        LOW + NOISY_LOW * self.noise
    }
}
