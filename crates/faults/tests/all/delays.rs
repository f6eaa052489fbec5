//! One-way delays between clocks that step.

use std::time::Duration;

use fairpath_faults::{Cryptography, Side, Wire, World};
use fairpath_quic_core::EngineConfig;

const SECOND: Duration = Duration::from_secs(1);

/// The least and the largest one-way delay that the client measures in `time`, path by path.
fn delays(world: &mut World, time: Duration) -> Vec<(Duration, Duration)> {
    let mut found = vec![(Duration::MAX, Duration::ZERO); 2];
    for _ in 0..time.as_millis() / 20 {
        world.run_for(Duration::from_millis(20));
        let snapshots = world.client.snapshots(world.now);
        for ((least, most), delay) in found.iter_mut().zip(snapshots.iter().filter_map(|path| path.one_way)) {
            (*least, *most) = ((*least).min(delay), (*most).max(delay));
        }
    }
    found
}

/// Two wires that share nothing, and whose queues fill and drain. What a clock does happens to the delays of all
/// paths at once, as what a common bottleneck does.
#[test]
fn delays_of_one_direction_outlive_every_step_of_a_clock() {
    type Act = fn(&mut World);
    let acts: [(&str, Act); 5] = [
        ("nothing happens", |_| {}),
        ("the sender's clock jumps", |world| world.jump(Side::Client, 3 * SECOND)),
        ("the receiver's clock jumps", |world| world.jump(Side::Server, 3 * SECOND)),
        ("the sender sleeps", |world| world.sleep(Side::Client, 3 * SECOND)),
        ("the receiver sleeps", |world| world.sleep(Side::Server, 3 * SECOND)),
    ];
    for (case, act) in acts {
        let wires = [Wire::new(20, 10), Wire::new(15, 25)];
        let mut world = World::protected_by(Cryptography::Null, &wires, &EngineConfig::live(), 1_400).opened();
        world.client.send(u64::MAX);
        world.run_for(12 * SECOND);
        let before = delays(&mut world, 8 * SECOND);
        act(&mut world);
        world.run_for(6 * SECOND);
        let after = delays(&mut world, 8 * SECOND);
        eprintln!("{case}: {before:?}, then {after:?}");
        for ((least, most), (before_least, _)) in after.into_iter().zip(before) {
            // A queue of 100 ms that is filled and drained.
            assert!(most - least > Duration::from_millis(15), "{case}: from {least:?} to {most:?}");
            assert!(most < 2 * SECOND, "{case}: up to {most:?}");
            // The value carried over is the delay of one packet, in a queue of 100 ms at most.
            assert!(least.abs_diff(before_least) < Duration::from_millis(200), "{case}: {before_least:?}, {least:?}");
        }
    }
}
