//! An application that takes its data more slowly than the network could bring it: a disk, or a player.

use std::time::Duration;

use fairpath_faults::{Cryptography, Wire, World};
use fairpath_quic_core::EngineConfig;

/// Between two moments at which the application takes something.
const TICK: Duration = Duration::from_millis(5);

/// The time before counting begins, and the time of counting.
const TIME: Duration = Duration::from_secs(20);

/// The bytes that arrived on all paths for each byte that the application took, while it took
/// `mbps`.
fn arrived_for_each_byte(wires: &[Wire], mbps: u64, seed: u64) -> f64 {
    let mut world = World::protected_by(Cryptography::Null, wires, &EngineConfig::live(), seed).opened();
    world.server.appetite = 0;
    world.client.send(u64::MAX);
    let mut after = || {
        for _ in 0..TIME.as_millis() / TICK.as_millis() {
            world.server.appetite += mbps * 125 * TICK.as_millis() as u64;
            world.run_for(TICK);
        }
        let now = world.now;
        let delivered: u64 = world.client.snapshots(now).iter().map(|path| path.delivered.get()).sum();
        assert_eq!(world.violation(), None, "seed {seed}");
        (delivered, world.server.received())
    };
    let (before, after) = (after(), after());
    let taken = (after.1 - before.1) as f64;
    let due = mbps as f64 * 125_000.0 * TIME.as_secs_f64();
    assert!((taken / due - 1.0).abs() < 0.01, "{taken} of {due} bytes were taken, seed {seed}");
    (after.0 - before.0) as f64 / taken
}

/// A sender that the receiver's credit holds back copies what is on its way on slower paths. It must not send everything
/// twice for that, on paths that cost something: what is on its way then is little.
#[test]
fn a_receiver_that_takes_slowly_is_not_sent_everything_twice() {
    let (alike, unequal) = ([Wire::new(20, 10), Wire::new(20, 30)], [Wire::new(50, 10), Wire::new(10, 30)]);
    for (wires, mbps) in [(alike, 10), (alike, 30), (alike, 36), (unequal, 30), (unequal, 55)] {
        let ratio = arrived_for_each_byte(&wires, mbps, 1);
        println!("{mbps} of {:?}: {ratio:.3}", wires.map(|wire| wire.rate));
        // Headers and other packets are 0.04 of it.
        assert!((1.0..1.15).contains(&ratio), "{ratio}, {mbps} Mbit/s of {wires:?}");
    }
}
