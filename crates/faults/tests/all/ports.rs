//! A server with one address and several ports: a port that is blocked or throttled costs no link.

use std::time::Duration;

use fairpath_core::Bitrate;

use fairpath_faults::{Wire, World};

const SECOND: Duration = Duration::from_secs(1);

/// The ways of two wires with two ports each are numbered by wire, then by port. Each wire and each port has a path: those
/// of the first wire's ports, and that of the second wire's first port.
const OF_SECOND: usize = 2;
const PLANNED: [usize; 3] = [0, 1, OF_SECOND];

/// A world in which the server sends for ever.
fn sending(wires: &[Wire; 2], seed: u64) -> World {
    let mut world = World::with_ports(wires, 2, seed);
    let opened = world.run_until(2 * SECOND, |world| open(world) == PLANNED);
    assert!(opened, "seed {seed}: {:?}", open(&mut world));
    world.server.send(u64::MAX);
    world
}

/// The ways with a path that works.
fn open(world: &mut World) -> Vec<usize> {
    world.opened_ways().iter().enumerate().filter(|(_, open)| **open).map(|(way, _)| way).collect()
}

/// The goodput at the client during this time, in Mbit/s.
fn goodput(world: &mut World, time: Duration) -> f64 {
    let before = world.client.received();
    world.run_for(time);
    (world.client.received() - before) as f64 * 8.0 / time.as_secs_f64() / 1e6
}

#[test]
fn a_port_that_goes_dark_costs_its_link_a_second() {
    let mut world = sending(&[Wire::new(10, 10), Wire::new(10, 30)], 0);
    world.run_for(3 * SECOND);
    world.set_up(OF_SECOND, false);
    world.run_for(Duration::from_millis(1_500));
    let mbps = goodput(&mut world, 2 * SECOND);
    assert!(mbps > 0.85 * 20.0, "{mbps} Mbit/s, {:?}", open(&mut world));
    // The port is back, and one of the two is left.
    world.set_up(OF_SECOND, true);
    world.run_for(14 * SECOND);
    let ways = open(&mut world);
    assert!(ways.len() == 3 && ways.starts_with(&PLANNED[..2]), "{ways:?}");
    let mbps = goodput(&mut world, 2 * SECOND);
    assert!(mbps > 0.85 * 20.0, "{mbps} Mbit/s after it came back");
    assert_eq!(world.violation(), None);
}

#[test]
fn a_port_that_is_throttled_gives_way_to_another_one() {
    let mut world = sending(&[Wire::new(10, 10), Wire::new(10, 30)], 0);
    // The first port, wherever it is reached from.
    for way in [0, 2] {
        world.set_rate_back(way, Bitrate::from_kbps(500));
    }
    world.run_for(8 * SECOND);
    let mbps = goodput(&mut world, 4 * SECOND);
    assert!(mbps > 0.85 * 20.0, "{mbps} Mbit/s, {:?}", open(&mut world));
    assert_eq!(open(&mut world), [0, 1, 3], "the link has one path");
    assert_eq!(world.violation(), None);
}

#[test]
fn links_that_fail_in_turn_leave_as_many_paths_as_there_were() {
    let mut world = sending(&[Wire::new(10, 10), Wire::new(10, 30)], 0);
    for first in [0, OF_SECOND] {
        for is_up in [false, true] {
            (first..first + 2).for_each(|way| world.set_up(way, is_up));
            world.run_for(if is_up { 14 * SECOND } else { 6 * SECOND });
        }
        // Each wire and each port has a path. The outage may have changed the port of the second wire.
        let ways = open(&mut world);
        assert!(ways.len() == 3 && ways.starts_with(&PLANNED[..2]), "{ways:?}");
    }
    assert_eq!(world.violation(), None);
}

#[test]
fn a_link_that_is_slow_by_itself_is_compared_once_and_keeps_its_path() {
    let mut world = sending(&[Wire::new(20, 10), Wire::new(2, 30)], 1);
    let compared = world.run_until(8 * SECOND, |world| open(world).len() == 4);
    assert!(compared, "{:?}", open(&mut world));
    world.run_for(7 * SECOND);
    assert_eq!(open(&mut world), PLANNED);
    let again = world.run_until(12 * SECOND, |world| open(world).len() > 3);
    assert!(!again, "{:?}", open(&mut world));
    let mbps = goodput(&mut world, 3 * SECOND);
    assert!(mbps > 0.9 * 22.0, "{mbps} Mbit/s");
}
