//! Connections without cryptography behave as those with it.

use fairpath_faults::{Cryptography, Scenario, Wire, World};
use fairpath_quic_core::EngineConfig;

fn world(seed: u64) -> World {
    let wires = [Wire::new(20, 10), Wire::new(20, 30)];
    World::protected_by(Cryptography::Null, &wires, &EngineConfig::live(), seed).opened()
}

#[test]
fn both_ends_know_the_same_of_a_connection_and_others_do_not() {
    let exported = |world: &mut World, label: &[u8]| {
        [&mut world.client, &mut world.server].map(|end| {
            let mut material = [0; 32];
            let connection = end.connection().expect("it lives");
            connection.export_keying_material(&mut material, label, b"context").expect("32 bytes");
            material
        })
    };
    let (mut one, mut other) = (world(1), world(2));
    let [client, server] = exported(&mut one, b"label");
    assert_eq!(client, server);
    assert_ne!(client, exported(&mut one, b"another")[0]);
    assert_ne!(client, exported(&mut other, b"label")[0]);
}

#[test]
fn a_seed_gives_the_same_trace_without_cryptography() {
    for seed in 0..5 {
        let scenario = Scenario { cryptography: Cryptography::Null, ..Scenario::of(seed) };
        let run = || scenario.run().map(|outcome| outcome.trace);
        assert_eq!(run(), run(), "seed {seed}");
    }
}
