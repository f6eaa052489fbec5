//! DCW, delay correlation with wavelet denoising: two paths share a bottleneck if their delays are
//! correlated once the noise is taken out. The delays of the last seconds go through a wavelet
//! transform whose small coefficients are dropped, and are correlated.
//!
//! # Source
//!
//! [Kim2008] A Wavelet-Based Approach to Detect Shared Congestion; the threshold is that of
//! [Donoho1994].
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | the delay sequence | the points of [`Grid`] | ms |
//! | the soft threshold | `threshold`, in universal thresholds | 1 |
//! | XCOR | `correlation` | 1 |
//! | 0.5 | `correlation_min` | 1 |
//!
//! # Deviations
//!
//! - The paper's text was not at hand. The method and the 0.5 are as others describe it; the
//!   wavelet (Haar), the number of scales and the window are assumptions.
//! - It decides online: each second, over the last 12.8 s, without sending anything. The paper
//!   sends probes and decides once.
//! - Of each 100 ms the least delay counts. A path that is silent for more than half a second has
//!   no answer until it has spoken for the length of the window again; the last answer stands.
//! - The confidence of a pair is the correlation, where it is positive.
//! - A path takes less than 3 kB, a pair less than 50 bytes.

mod correlation;
mod haar;

use core::time::Duration;

use fairpath_core::{DelaySample, Groups, PathId, PathMap, Timestamp};

use crate::detector::{Detector, PairVerdict};
use crate::grid::Grid;
use crate::pairs::Pairs;

/// The points of a window: a power of two.
const WINDOW: usize = 128;

/// The points kept: a window, and those that arrive before all paths have theirs.
const KEPT: usize = WINDOW + 32;

/// The longest run of steps without a sample that is bridged.
const GAP_MAX: u64 = 5;

/// The parameters of [`Wavelet`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaveletConfig {
    /// The distance of two points; a window has 128.
    pub step: Duration,
    /// How often the paths are compared.
    pub interval: Duration,
    /// How many scales of details are denoised.
    pub levels: u32,
    /// The threshold of the details, in universal thresholds.
    pub threshold: f64,
    /// How many points one path may be behind the other.
    pub lag_max: usize,
    /// The least correlation of paths that share a bottleneck.
    pub correlation_min: f64,
}

impl Default for WaveletConfig {
    fn default() -> Self {
        Self {
            step: Duration::from_millis(100),
            interval: Duration::from_secs(1),
            levels: 4,
            threshold: 1.0,
            lag_max: 0,
            correlation_min: 0.5,
        }
    }
}

/// The detector by wavelet-denoised correlation.
#[derive(Clone, Debug, Default)]
pub struct Wavelet {
    config: WaveletConfig,
    paths: PathMap<Path>,
    /// The last correlation of each pair.
    pairs: Pairs<f64>,
    compared: Timestamp,
}

#[derive(Clone, Debug)]
struct Path {
    grid: Grid<KEPT>,
    /// The window without noise.
    clean: [f64; WINDOW],
    /// Whether it is of the last comparison.
    complete: bool,
}

impl Wavelet {
    /// A detector with these parameters.
    pub fn new(config: WaveletConfig) -> Self {
        Self { config, ..Self::default() }
    }

    fn compare(&mut self, now: Timestamp) {
        let config = self.config;
        for (_, path) in self.paths.iter_mut() {
            // Later samples may still have to be bridged to on another path.
            let end = path.grid.step_of(now).saturating_sub(GAP_MAX + 1);
            path.complete = path.window(end);
            if path.complete {
                haar::denoise(&mut path.clean, config.levels, config.threshold);
            }
        }
        for pair in self.pairs.iter_mut() {
            let clean = |path| self.paths.get(path).filter(|path| path.complete).map(|path| &path.clean);
            if let (Some(low), Some(high)) = (clean(pair.low), clean(pair.high)) {
                pair.state = correlation::largest(low, high, config.lag_max);
            }
        }
        self.pairs.link(now, |_, _, pair| pair.state > config.correlation_min);
        self.compared = now;
    }
}

impl Path {
    /// Takes the window before the step `end`; false: not all of it is known.
    fn window(&mut self, end: u64) -> bool {
        let Some(begin) = end.checked_sub(WINDOW as u64) else { return false };
        for (step, point) in (begin..end).zip(&mut self.clean) {
            match self.grid.get(step) {
                Some(delay) => *point = delay,
                None => return false,
            }
        }
        true
    }
}

impl Detector for Wavelet {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        if self.pairs.open(path, now, || 0.0) {
            let grid = Grid::new(self.config.step, GAP_MAX);
            self.paths.insert(path, Path { grid, clean: [0.0; WINDOW], complete: false });
        }
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.paths.remove(path);
        self.pairs.close(path, now);
    }

    fn on_sample(&mut self, path: PathId, sample: &DelaySample) {
        if let Some(path) = self.paths.get_mut(path) {
            path.grid.add(sample);
        }
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        if now.since(self.compared) >= self.config.interval {
            self.compare(now);
        }
        self.pairs.take_news()
    }

    fn verdicts(&self) -> Vec<PairVerdict> {
        self.pairs.iter().map(|pair| pair.verdict(pair.state.clamp(0.0, 1.0))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, sample};

    /// When both paths were first in one group.
    fn first_yes(delays: impl Fn(u32, u64) -> f64) -> Option<u64> {
        let mut detector = Wavelet::default();
        (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
        (0..40_000).step_by(20).find(|at| {
            (0..2).for_each(|id| detector.on_sample(path(id), &sample(*at, delays(id, *at))));
            detector.poll(Timestamp::from_millis(*at)).is_some_and(|groups| groups.together(path(0), path(1)))
        })
    }

    #[test]
    fn delays_that_go_together_are_found_when_the_window_is_full() {
        // 128 steps and the 6 that may still change are 13.4 s; the next comparison is at 14 s.
        let saw = |id, at: u64| 50.0 + 10.0 * f64::from(id) + (at % 3000) as f64 / 100.0;
        assert_eq!(first_yes(saw), Some(14_000));
    }

    #[test]
    fn delays_with_other_periods_are_not() {
        let saw = |id, at: u64| 50.0 + (at % [3000, 1900][id as usize]) as f64 / 100.0;
        assert_eq!(first_yes(saw), None);
    }

    #[test]
    fn the_memory_of_a_path_and_of_a_pair_is_what_the_head_says() {
        assert!(size_of::<Path>() < 3000 && size_of::<crate::pairs::Pair<f64>>() < 50);
    }
}
