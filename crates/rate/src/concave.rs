//! Rates that are fair among the paths themselves, within the friendly ones.

use crate::packet_rate::PacketRate;
use crate::region::Region;

/// A run of places in the order of the paths whose rates are in one proportion to their weights.
#[derive(Clone, Copy, Debug)]
struct Run {
    paths: usize,
    weights: f64,
    budget: f64,
}

impl Run {
    fn level(&self) -> f64 {
        self.budget / self.weights
    }
}

/// The friendly rates of the greatest Σ wᵅ · U(x) for U(x) = x^(1−α) / (1−α), and log x with α = 1: α-fair with the
/// weights wᵅ. It is the same for all α: rates are in proportion to `weights` wherever no constraint forbids it.
///
/// The constraints are nested, so the multipliers add up along the order of the paths, and rate / weight may only fall
/// along it. Where it would rise, neighbours share what they have (pool adjacent violators). A path without weight gets
/// nothing. O(n) after sorting.
pub fn fair_shares(region: &Region, weights: &[f64]) -> Vec<PacketRate> {
    let tcp = |place: usize| region.order().get(place).map_or(0.0, |path| region.tcp()[*path].per_second());
    let mut runs: Vec<Run> = Vec::new();
    for (place, path) in region.order().iter().enumerate() {
        let mut run = Run { paths: 1, weights: weights[*path].max(0.0), budget: tcp(place) - tcp(place + 1) };
        // A path without weight leaves its part to those before it, and what comes after may not be above them.
        while let Some(before) = runs.last()
            && (run.weights == 0.0 || before.weights == 0.0 || run.level() > before.level())
        {
            run = Run {
                paths: before.paths + run.paths,
                weights: before.weights + run.weights,
                budget: before.budget + run.budget,
            };
            runs.pop();
        }
        runs.push(run);
    }
    let mut rates = vec![PacketRate::ZERO; region.paths()];
    let mut places = region.order().iter();
    for run in runs {
        for path in places.by_ref().take(run.paths) {
            let level = if run.weights > 0.0 { run.level() } else { 0.0 };
            rates[*path] = PacketRate::new(weights[*path].max(0.0) * level);
        }
    }
    rates
}
