//! Scenarios from seeds: those that every change is tried with, and those that failed at some time.

use fairpath_faults::Scenario;
use rayon::prelude::*;

/// The seeds that every change is tested with.
const SEEDS: std::ops::Range<u64> = 0..300;

/// Seeds beyond [`SEEDS`] that found a fault.
const FOUND: [u64; 25] = [
    358, 717, 934, 958, 1_098, 1_106, 1_325, 1_505, 1_748, 1_779, 1_990, 1_999, 2_686, 2_889, 3_237, 3_634, 4_012,
    4_074, 5_103, 5_222, 5_886, 7_276, 8_054, 9_200, 10_634,
];

#[test]
fn nothing_breaks_under_faults_and_everything_works_after() {
    let seeds: Vec<u64> = SEEDS.chain(FOUND).collect();
    let failed: Vec<String> = seeds
        .into_par_iter()
        .filter_map(|seed| {
            let scenario = Scenario::of(seed);
            let failure = scenario.run().err()?;
            Some(format!("{failure}\n{scenario}again: cargo run -q -p fairpath-faults -- --seeds {seed}"))
        })
        .collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n\n"));
}
