//! What breaks paths, one fault at a time.

use std::time::Duration;

use fairpath_engine::{Bytes, EngineConfig};

use super::{Paced, Wire, World};

const SECOND: Duration = Duration::from_secs(1);

/// Packets leave in bursts of so much at most, beyond a window.
const BURST: Bytes = Bytes::new(16 * 1_472);

#[test]
fn two_wires_carry_their_sum() {
    let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 10)], 1);
    world.client.send(usize::MAX);
    world.run_for(2 * SECOND);
    let before = world.server.received;
    world.run_for(4 * SECOND);
    let mbps = (world.server.received - before) as f64 * 8.0 / 4e6;
    assert!(mbps > 0.9 * 40.0, "{mbps} Mbit/s");
    assert!(world.client.excess <= BURST, "{:?}", world.client.excess);
}
