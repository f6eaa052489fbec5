//! Congestion control that follows delay, between real ends: their acknowledgements wait for a second packet
//! or for 25 ms, and nobody says for how long.

use std::time::Duration;

use fairpath_engine::EngineConfig;

use super::{Wire, World};

/// A sender that pauses now and then, so that a last packet waits alone for its acknowledgement, and then sends
/// for 20 s over 4 Mbit/s: how often delay made the window smaller in that time, and how many packets were
/// dropped.
fn greedy_after_pauses(congestion: &str, seed: u64) -> (u64, u64) {
    let config = EngineConfig { congestion: congestion.into(), ..EngineConfig::live() };
    let mut world = World::new(&[Wire::new(4, 20)], &config, seed);
    assert!(world.run_until(Duration::from_secs(5), |world| world.client.is_connected()), "seed {seed}");
    for piece in 0..10 {
        world.client.send(150_000 + 1_777 * piece);
        world.run_for(Duration::from_millis(500));
    }
    let cuts = |world: &World| world.client.snapshots(world.now)[0].delay_cuts;
    let before = (cuts(&world), world.dropped(0).0);
    world.client.send(usize::MAX);
    world.run_for(Duration::from_secs(20));
    (cuts(&world) - before.0, world.dropped(0).0 - before.1)
}

#[test]
fn daimd_yields_to_a_queue_between_real_ends() {
    let seed = 1;
    let ((cuts, dropped), (none, more)) = (greedy_after_pauses("daimd", seed), greedy_after_pauses("lia", seed));
    assert_eq!(none, 0, "LIA knows no delay");
    assert!(cuts >= 3, "seed {seed}: {cuts} cuts by delay, {dropped} packets dropped");
    assert!(dropped < more, "seed {seed}: {dropped} packets dropped, {more} with LIA");
}
