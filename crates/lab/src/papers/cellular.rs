//! Cellular links: as they were recorded, where recordings are beside this project, and as a model has them.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairpath_core::{Bitrate, Timestamp};
use fairpath_net::{MahimahiTrace, Rate, RateTable, RateTableEnd, Streams};
use rand_chacha::rand_core::RngCore;

/// The operators that are recorded, and what their files are called.
pub(super) const OPERATORS: [(&str, &str); 3] =
    [("AT&T", "ATT-LTE-driving-2016"), ("T-Mobile", "TMobile-LTE-short"), ("Verizon", "Verizon-LTE-short")];
/// Each with each.
pub(super) const PAIRS: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

/// How much later each seed begins on the first link and on the second, in seconds: recordings take 120 to 140, and are
/// compared at other moments each time.
const LATER: [u64; 2] = [13, 29];

/// The model's rate changes so often, and forgets what it was in so long.
const STEP: Duration = Duration::from_millis(200);
const MEMORY: Duration = Duration::from_secs(3);
/// The standard deviation of the logarithm of the model's rate, and what of the mean it is at least and at most.
const SPREAD: f64 = 0.5;
const BOUNDS: (f64, f64) = (0.05, 3.0);

/// Where the recordings are, beside this project.
pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces")
}

/// A recording that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The recording {0} of a cellular link cannot be read")]
pub(super) struct Missing(String);

/// The recordings of all operators, `down` or `up`.
pub(super) fn recorded(folder: &Path, direction: &str) -> Result<Vec<Arc<MahimahiTrace>>, Missing> {
    let read = |(_, file): &(&str, &str)| {
        let name = format!("{file}.{direction}");
        let text = std::fs::read_to_string(folder.join(&name)).map_err(|_| Missing(name.clone()))?;
        MahimahiTrace::parse(&text).map(Arc::new).map_err(|_| Missing(name))
    };
    OPERATORS.iter().map(read).collect()
}

/// A recording as the link number `at` of a run has it: with each seed it begins at another moment.
pub(super) fn beginning(trace: &MahimahiTrace, at: usize, seed: u64) -> Rate {
    trace.starting(Duration::from_secs(LATER[at] * (seed % 1_000))).into()
}

/// A rate that varies as while driving: its logarithm is normal and forgets exponentially.
pub(super) fn modelled(mean: Bitrate, name: &str, seed: u64, duration: Duration) -> Rate {
    let mut generator = Streams::new(seed).generator(name, "rate");
    // Sums of 12 uniform numbers less 6 have the mean 0 and the variance 1.
    let mut normal = || (0..12).map(|_| f64::from(generator.next_u32()) / f64::from(u32::MAX)).sum::<f64>() - 6.0;
    let kept = libm::exp(-STEP.as_secs_f64() / MEMORY.as_secs_f64());
    let fresh = libm::sqrt(1.0 - kept * kept);
    let mut state = normal();
    let steps = duration.as_nanos().div_ceil(STEP.as_nanos()).max(1) as u32;
    let entries = (0..steps).map(|step| {
        state = kept * state + fresh * normal();
        // The mean of e^(σx) is e^(σ²/2).
        let part = libm::exp(SPREAD * state - SPREAD * SPREAD / 2.0).clamp(BOUNDS.0, BOUNDS.1);
        (Timestamp::ZERO + STEP * step, mean.scaled(part))
    });
    RateTable::new(entries.collect(), RateTableEnd::Hold).expect("times rise from zero").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_its_mean_and_other_numbers_for_another_seed() {
        let mean = |seed| {
            let Rate::Table(table) = modelled(Bitrate::from_mbps(30), "a", seed, Duration::from_secs(2_000)) else {
                panic!("no table")
            };
            let all: Vec<f64> = table.entries().iter().map(|(_, rate)| rate.as_mbps_f64()).collect();
            all.iter().sum::<f64>() / all.len() as f64
        };
        // 2,000 s are some 330 times the memory both ways: the mean is known to about 0.55 · 30 / √330 = 0.9.
        assert!((mean(1) - 30.0).abs() < 3.0, "{}", mean(1));
        assert_ne!(mean(1).to_bits(), mean(2).to_bits());
        assert_eq!(mean(1).to_bits(), mean(1).to_bits());
    }

    #[test]
    fn a_recording_that_is_not_there_is_named() {
        let missing = recorded(Path::new("/nowhere"), "down").unwrap_err();
        assert!(missing.to_string().contains("ATT-LTE-driving-2016.down"), "{missing}");
    }
}
