//! Pairs of links on which public bonds are slower than their better link: over the real stack the default never is.
//!
//! The pairs are those of `scenarios/profiles/`, which the laboratory has in the simulator (`odd_couple/profiles`).

mod pairs;

use std::time::Duration;

use fairpath_faults::{Cryptography, Wire, World};
use fairpath_quic_core::EngineConfig;
use pairs::pair;
use rayon::prelude::*;

/// One transfer, as there.
const SIZE: u64 = 20 << 20;

/// Far longer than any without jitter takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// A transfer that is as long as that, whatever the links carry.
const MINUTE: Duration = Duration::from_secs(60);
const ENDLESS: u64 = 100 << 30;

/// A bond is not slower than its better link where it has so much of it: what is lost between is the last packets of
/// a transfer, of which no scheduler knows whether they will be lost.
const NO_SLOWER: f64 = 0.97;

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/profiles");

/// What the pairs are called, in order.
fn names() -> Vec<String> {
    let files = std::fs::read_dir(PROFILES).expect(PROFILES).map(|file| file.expect(PROFILES).path());
    let mut names: Vec<String> = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    assert_eq!(names.len(), 16, "in {PROFILES}");
    names
}

/// How fast a transfer over these wires is, in Mbit/s, once all of them are in use.
fn goodput(scheduler: &str, wires: &[Wire], seed: u64) -> f64 {
    goodput_of(SIZE, PATIENCE, scheduler, wires, seed)
}

fn goodput_of(size: u64, patience: Duration, scheduler: &str, wires: &[Wire], seed: u64) -> f64 {
    let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
    let mut world = World::protected_by(Cryptography::Null, wires, &engine, seed).opened();
    world.client.send(size);
    // What takes longer is counted with what has arrived by then.
    let took = world.time_to_receive(false, size, patience).unwrap_or(patience);
    assert_eq!(world.violation(), None, "{scheduler}, {wires:?}, seed {seed}");
    world.server.received() as f64 * 8e-6 / took.as_secs_f64()
}

/// The bond in parts of its better link alone, in the same run.
fn ratio(scheduler: &str, wires: [Wire; 2], seed: u64) -> f64 {
    let alone = wires.map(|wire| goodput(scheduler, &[wire], seed));
    goodput(scheduler, &wires, seed) / alone[0].max(alone[1])
}

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

/// What docs/performance.md shows of the stack in virtual time; FAIRPATH_PROFILES names some of the pairs.
#[test]
#[ignore = "a table for people: every scheduler that one would choose, several seeds"]
fn ratios_of_the_schedulers() {
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

/// The same of what a minute carries, in parts of the sum of both links alone.
#[test]
#[ignore = "a table for people: a minute of all pairs"]
fn what_a_minute_has_of_the_sum() {
    let rows = names().into_par_iter().map(|name| {
        let minute = |wires: &[Wire]| goodput_of(ENDLESS, MINUTE, &EngineConfig::live().scheduler, wires, 1);
        let (alone, both) = (pair(&name).map(|wire| minute(&[wire])), minute(&pair(&name)));
        let [of_the_sum, of_the_better] = [alone[0] + alone[1], alone[0].max(alone[1])].map(|whole| both / whole);
        format!("{name:12} {alone:5.1?} Mbit/s alone, {both:5.1} both: {of_the_sum:.2} of the sum, {of_the_better:.2} of the better")
    });
    rows.collect::<Vec<_>>().iter().for_each(|row| println!("{row}"));
}
