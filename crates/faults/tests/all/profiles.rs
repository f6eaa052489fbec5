//! Pairs of links on which public bonds are slower than their better link: over the real stack the default never is.
//!
//! The pairs are those of `scenarios/profiles/`, which the laboratory has in the simulator (`odd_couple/profiles`).

use fairpath_faults::Side;
use fairpath_quic_core::EngineConfig;
use rayon::prelude::*;

use crate::bonds::{names, ratio};
use crate::bulk::file_ratio;
use crate::pairs::pair;

/// A bond with at least this part of its better link counts as no slower. The rest is the last
/// packets of a transfer: no scheduler can know whether they will be lost.
const NO_SLOWER: f64 = 0.97;

#[test]
fn no_bond_is_slower_than_its_better_link() {
    let scheduler = EngineConfig::live().scheduler;
    let slower: Vec<String> = names()
        .into_par_iter()
        .filter_map(|name| {
            let ratio = ratio(&scheduler, pair(&name), 1);
            (ratio < NO_SLOWER).then(|| format!("{name}: {ratio:.3}"))
        })
        .collect();
    assert!(slower.is_empty(), "slower than the better link with {scheduler}: {slower:?}");
}

/// As a proxy carries it: in order, and nobody says before the end how much there is. Medians: over links that lose at random
/// one transfer is chance, and takes a third or three times of what the next one does.
#[test]
fn no_file_by_one_stream_is_slower_than_over_its_better_link() {
    let cases: Vec<_> = names().into_iter().flat_map(|name| Side::ALL.map(|from| (name.clone(), from))).collect();
    let slower: Vec<String> = cases
        .into_par_iter()
        .filter_map(|(name, from)| {
            let mut ratios = [1, 2, 3].map(|seed| file_ratio(from, pair(&name), seed));
            ratios.sort_by(f64::total_cmp);
            let ratio = ratios[1];
            println!("{name}, from the {from:?}: {ratio:.3}");
            (ratio < NO_SLOWER).then(|| format!("{name}, from the {from:?}: {ratio:.3}"))
        })
        .collect();
    assert!(slower.is_empty(), "slower than over the better link: {slower:?}");
}
