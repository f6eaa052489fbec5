//! Every scheduler over the real stack: none stands still, whatever a path does.

use std::time::Duration;

use fairpath_quic_core::EngineConfig;

use fairpath_faults::{Wire, World};

const SECOND: Duration = Duration::from_secs(1);

/// The longest time without sending of a host that has data and a path that works. The stack
/// acknowledges the packets of all paths on the first. If that path is cut, the other one hears
/// nothing either, until two probe timeouts have passed and the acknowledgements take another way.
/// The probe timeout of the slower wire with a full queue, and a variance as after the first sample
/// [RFC9002 §5.3], is 220 + 4 · 110 + 25 ms.
const QUIET_MAX: Duration = Duration::from_millis(2 * 685);

fn world(scheduler: &str, wires: &[Wire], seed: u64) -> World {
    let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
    World::new(wires, &engine, seed).opened()
}

/// Data both ways over unequal wires, one of which is cut for two seconds: everything arrives, and no end has data
/// and a path, and sends nothing for long.
#[test]
fn no_scheduler_stands_still_while_a_path_works() {
    for scheduler in EngineConfig::SCHEDULERS {
        for cut in [0, 1] {
            let mut world = world(scheduler, &[Wire::new(20, 10), Wire::new(8, 60)], 31);
            let name = format!("{scheduler}, wire {cut} cut");
            for end in [&mut world.client, &mut world.server] {
                end.send(20_000_000);
                end.send_message();
            }
            // By then the packets have their size: small ones are not told from signs of life.
            world.run_for(3 * SECOND);
            world.set_up(cut, false);
            let had = [world.client.received(), world.server.received()];
            let mut quiet = [Duration::ZERO; 2];
            for _ in 0..200 {
                world.run_for(SECOND / 100);
                for (side, from_client) in [(0, true), (1, false)] {
                    let left = [0, 1].into_iter().filter_map(|way| world.data_left_at(way, from_client)).max();
                    quiet[side] = quiet[side].max(world.now - left.expect("data has left"));
                }
            }
            assert!(quiet.iter().all(|quiet| *quiet < QUIET_MAX), "{name}: nothing was sent for {quiet:?}");
            for (now, had) in [world.client.received(), world.server.received()].into_iter().zip(had) {
                assert!(now > had + 300_000, "{name}: {} bytes while one path worked", now - had);
            }
            world.set_up(cut, true);
            let whole = |world: &mut World| {
                let ends = [&world.client, &world.server];
                ends.iter().all(|end| end.received() == 20_000_000 && end.messages() == 1)
            };
            assert!(
                world.run_until(20 * SECOND, whole),
                "{name}: {} and {}",
                world.client.received(),
                world.server.received()
            );
            assert_eq!((&world.client.violation, &world.server.violation), (&None, &None), "{name}");
        }
    }
}

/// Data sent on both paths does not wait until one of them is found dead.
#[test]
fn copies_arrive_at_once_where_a_path_is_cut() {
    let arrives_after = |scheduler: &str, cut: usize| {
        let mut world = world(scheduler, &[Wire::new(20, 10), Wire::new(20, 15)], 32);
        world.run_for(SECOND);
        world.set_up(cut, false);
        world.client.send_message();
        let begun = world.now;
        assert!(world.run_until(5 * SECOND, |world| world.server.messages() == 1), "{scheduler}");
        world.now - begun
    };
    let one_way = Duration::from_millis(15) + Duration::from_millis(5);
    let took = [0, 1].map(|cut| arrives_after("redundant", cut));
    assert!(took.iter().all(|took| *took <= one_way), "{took:?}");
    let took = [0, 1].map(|cut| arrives_after("min_rtt", cut));
    assert!(took.iter().any(|took| *took > 2 * one_way), "one of the paths carried it alone: {took:?}");
}

/// Copies cost what they are: two equal wires carry what one does.
#[test]
fn copies_leave_the_goodput_of_one_path() {
    let mut world = world("redundant", &[Wire::new(20, 10), Wire::new(20, 10)], 33);
    world.client.send(u64::MAX);
    world.run_for(2 * SECOND);
    let before = world.server.received();
    world.run_for(4 * SECOND);
    let mbps = (world.server.received() - before) as f64 * 8.0 / 4e6;
    assert!((15.0..26.0).contains(&mbps), "{mbps} Mbit/s");
    let now = world.now;
    let delivered: Vec<_> = world.client.snapshots(now).iter().map(|path| path.delivered.get()).collect();
    let [least, most] = [delivered.iter().min(), delivered.iter().max()].map(|bytes| *bytes.expect("paths") as f64);
    assert!(least > 0.8 * most, "both carry everything: {delivered:?}");
}
