//! Pairs of links on which public bonds are slower than their better link, over the real stack.

use std::time::Duration;

use fairpath_faults::Side;
use fairpath_faults::Wire;
use fairpath_quic_core::EngineConfig;
use rayon::prelude::*;

use crate::bonds::{goodput, goodput_of, names, ratio};
use crate::bulk::file_ratio;
use crate::pairs::pair;

/// A transfer that is as long as that, whatever the links carry.
const MINUTE: Duration = Duration::from_secs(60);
const ENDLESS: u64 = 100 << 30;

/// Bonds in parts of their better link over the stack in virtual time; FAIRPATH_PROFILES names some of the pairs.
pub(crate) fn schedulers() {
    const SEEDS: u64 = 24;
    let wanted = std::env::var("FAIRPATH_PROFILES").unwrap_or_else(|_| "all".into());
    let is_wanted = |name: &String| wanted == "all" || wanted.split(',').any(|one| one == name);
    for name in names().into_iter().filter(is_wanted) {
        let of = |scheduler: &str| {
            let ratios: Vec<f64> = (0..SEEDS).into_par_iter().map(|seed| ratio(scheduler, pair(&name), seed)).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let slower = ratios.iter().filter(|ratio| **ratio < 1.0).count();
            format!("{:.2} (least {least:.2}, {slower} slower)", ratios.iter().sum::<f64>() / SEEDS as f64)
        };
        let alone = pair(&name).map(|wire| goodput("arrival", &[wire], 0));
        println!("{name:12} {alone:5.1?} Mbit/s alone, min_rtt {}, arrival {}", of("min_rtt"), of("arrival"));
    }
}

/// A file by one stream, sent and asked for, in parts of what the better link alone carries: as a proxy carries it.
pub(crate) fn streams() {
    const SEEDS: u64 = 8;
    let wanted = std::env::var("FAIRPATH_PROFILES").unwrap_or_else(|_| "all".into());
    for name in names().into_iter().filter(|name| wanted == "all" || wanted.split(',').any(|one| one == name)) {
        let of = |from| {
            let ratios: Vec<f64> =
                (1..=SEEDS).into_par_iter().map(|seed| file_ratio(from, pair(&name), seed)).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            format!("{:.2} (least {least:.2})", ratios.iter().sum::<f64>() / SEEDS as f64)
        };
        println!("{name:12} sent {}, asked for {}", of(Side::Client), of(Side::Server));
    }
}

/// The same of what a minute carries, in parts of the sum of both links alone.
pub(crate) fn minute() {
    let rows = names().into_par_iter().map(|name| {
        let minute = |wires: &[Wire]| goodput_of(ENDLESS, MINUTE, &EngineConfig::live().scheduler, wires, 1);
        let (alone, both) = (pair(&name).map(|wire| minute(&[wire])), minute(&pair(&name)));
        let [of_the_sum, of_the_better] = [alone[0] + alone[1], alone[0].max(alone[1])].map(|whole| both / whole);
        format!("{name:12} {alone:5.1?} Mbit/s alone, {both:5.1} both: {of_the_sum:.2} of the sum, {of_the_better:.2} of the better")
    });
    rows.collect::<Vec<_>>().iter().for_each(|row| println!("{row}"));
}
