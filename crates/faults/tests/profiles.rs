//! Pairs of links on which public bonds are slower than their better link: over the real stack the default never is.
//!
//! The pairs are those of mqvpn's report of 2026-06-18 (§3.3) without jitter, which wires do not have; the laboratory
//! has all sixteen in the simulator (`odd_couple/profiles`).

use std::time::Duration;

use fairpath_core::{Bitrate, Bytes};
use fairpath_faults::{Cryptography, Wire, World};
use fairpath_quic_core::EngineConfig;
use rayon::prelude::*;

/// One transfer, as there.
const SIZE: u64 = 20 << 20;

/// Far longer than any of them takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// A bond is not slower than its better link where it has so much of it: what is lost between is the last packets of
/// a transfer, of which no scheduler knows whether they will be lost.
const NO_SLOWER: f64 = 0.97;

/// netem's default queue, in packets of 1,500 bytes.
const QUEUE: Bytes = Bytes::new(1_000 * 1_500);

/// A wire: rate in Mbit/s, delay one way in ms, share of packets lost.
type Link = (u64, u64, f64);

fn wire((mbps, delay, loss): Link) -> Wire {
    Wire { rate: Bitrate::from_mbps(mbps), delay: Duration::from_millis(delay), queue: QUEUE, loss }
}

const PROFILES: [(&str, [Link; 2]); 9] = [
    ("baseline", [(50, 20, 0.0), (50, 20, 0.0)]),
    ("rtt_40", [(50, 20, 0.0), (50, 40, 0.0)]),
    ("rtt_70", [(50, 20, 0.0), (50, 70, 0.0)]),
    ("rtt_120", [(50, 20, 0.0), (50, 120, 0.0)]),
    ("rtt_320", [(50, 20, 0.0), (50, 320, 0.0)]),
    ("loss_05", [(50, 20, 0.005), (50, 20, 0.005)]),
    ("loss_2", [(50, 20, 0.02), (50, 20, 0.02)]),
    ("bw_4to1", [(50, 20, 0.0), (12, 20, 0.0)]),
    ("bw_10to1", [(100, 20, 0.0), (10, 20, 0.0)]),
];

/// How fast a transfer over these wires is, in Mbit/s, once all of them are in use.
fn goodput(scheduler: &str, wires: &[Wire], seed: u64) -> f64 {
    let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
    let mut world = World::protected_by(Cryptography::Null, wires, &engine, seed).opened();
    world.client.send(SIZE);
    let took = world.time_to_receive(false, SIZE, PATIENCE).expect("it arrives");
    assert_eq!(world.violation(), None, "{scheduler}, {wires:?}, seed {seed}");
    SIZE as f64 * 8e-6 / took.as_secs_f64()
}

/// The bond in parts of its better link alone, in the same run.
fn ratio(scheduler: &str, wires: [Wire; 2], seed: u64) -> f64 {
    let alone = wires.map(|wire| goodput(scheduler, &[wire], seed));
    goodput(scheduler, &wires, seed) / alone[0].max(alone[1])
}

#[test]
fn no_bond_is_slower_than_its_better_link() {
    let scheduler = EngineConfig::live().scheduler;
    let slower: Vec<String> = PROFILES
        .into_par_iter()
        .filter_map(|(name, wires)| {
            let ratio = ratio(&scheduler, wires.map(wire), 1);
            (ratio < NO_SLOWER).then(|| format!("{name}: {ratio:.3}"))
        })
        .collect();
    assert!(slower.is_empty(), "slower than the better link with {scheduler}: {slower:?}");
}

/// What docs/performance.md shows of the stack in virtual time.
#[test]
#[ignore = "a table for people: every scheduler that one would choose, several seeds"]
fn ratios_of_the_schedulers() {
    const SEEDS: u64 = 5;
    for (name, wires) in PROFILES {
        let of = |scheduler: &str| {
            let ratios: Vec<f64> =
                (0..SEEDS).into_par_iter().map(|seed| ratio(scheduler, wires.map(wire), seed)).collect();
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            format!("{:.2} (least {least:.2})", ratios.iter().sum::<f64>() / SEEDS as f64)
        };
        println!("{name:10} min_rtt {}, arrival {}", of("min_rtt"), of("arrival"));
    }
}
