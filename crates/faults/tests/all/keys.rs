//! Keys change without a packet being thrown away, however unequal the paths are.

use std::time::Duration;

use fairpath_core::ByteCount;
use fairpath_faults::{Wire, World};
use fairpath_quic_core::EngineConfig;
use rayon::prelude::*;

/// More packets than either end sends before the stack would change keys by itself.
const SIZE: u64 = 3_000_000;
const SEEDS: u64 = 16;

/// How many bytes were lost, there and back, over wires that lose nothing.
fn lost(wires: &[Wire], seed: u64) -> ByteCount {
    let mut world = World::new(wires, &EngineConfig::live(), seed).opened();
    world.client.send(SIZE);
    world.server.send(SIZE);
    let whole = |world: &mut World| world.client.received().min(world.server.received()) >= SIZE;
    assert!(world.run_until(Duration::from_secs(30), whole), "seed {seed}");
    for way in 0..wires.len() {
        assert_eq!(world.dropped(way), (0, 0), "seed {seed}: the queues hold all");
    }
    let paths = [world.client.paths(), world.server.paths()].concat();
    paths.iter().map(|path| path.lost).fold(ByteCount::ZERO, |sum, lost| sum + lost)
}

#[test]
fn keys_change_without_a_packet_being_thrown_away() {
    for [first, second] in [[60, 10], [10, 60]] {
        let wires = [first, second].map(|delay| Wire { queue: ByteCount::new(4_000_000), ..Wire::new(20, delay) });
        let lost: Vec<u64> = (0..SEEDS).into_par_iter().map(|seed| lost(&wires, seed).get()).collect();
        assert!(lost.iter().all(|lost| *lost == 0), "{first} and {second} ms: {lost:?} bytes, seed by seed");
    }
}
