//! Transfers over pairs of links, and in parts of what the better link alone carries.
#![allow(dead_code)]

use std::time::Duration;

use fairpath_faults::{Cryptography, Wire, World};
use fairpath_quic_core::EngineConfig;

/// One transfer, as there.
pub(crate) const SIZE: u64 = 20 << 20;

/// Far longer than any without jitter takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/profiles");

/// The names of the pairs, in order.
pub(crate) fn names() -> Vec<String> {
    let files = std::fs::read_dir(PROFILES).expect(PROFILES).map(|file| file.expect(PROFILES).path());
    let mut names: Vec<String> = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    assert_eq!(names.len(), 16, "in {PROFILES}");
    names
}

/// How fast a transfer over these wires is, in Mbit/s, once all of them are in use.
pub(crate) fn goodput(scheduler: &str, wires: &[Wire], seed: u64) -> f64 {
    goodput_of(SIZE, PATIENCE, scheduler, wires, seed)
}

pub(crate) fn goodput_of(size: u64, patience: Duration, scheduler: &str, wires: &[Wire], seed: u64) -> f64 {
    let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
    let mut world = World::protected_by(Cryptography::Null, wires, &engine, seed).opened();
    world.client.send(size);
    // A slower transfer counts with the data that has arrived by then.
    let took = world.time_to_receive(false, size, patience).unwrap_or(patience);
    assert_eq!(world.violation(), None, "{scheduler}, {wires:?}, seed {seed}");
    world.server.received() as f64 * 8e-6 / took.as_secs_f64()
}

/// The bond in parts of its better link alone, in the same run.
pub(crate) fn ratio(scheduler: &str, wires: [Wire; 2], seed: u64) -> f64 {
    let alone = wires.map(|wire| goodput(scheduler, &[wire], seed));
    goodput(scheduler, &wires, seed) / alone[0].max(alone[1])
}
