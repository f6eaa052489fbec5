//! Faults of hosts: clocks that are off, processes that restart, machines that sleep.

use std::time::Duration;

use fairpath_faults::{Clock, Cryptography, End, Host, Pinned, Process, Side, Skew, Wire, World};
use fairpath_quic_core::{EngineConfig, IDLE_TIMEOUT, Identity};

const SECOND: Duration = Duration::from_secs(1);

/// The bytes that both ends send on each connection.
const BYTES: u64 = 1_000_000;

/// Two wires, and a client that makes another connection when it loses one.
fn sending(seed: u64) -> World {
    let mut world = World::connected(&[Wire::new(10, 10), Wire::new(10, 30)], seed);
    world.redials = true;
    for side in Side::ALL {
        world.end(side).greeting = BYTES;
        world.end(side).send(BYTES);
    }
    world
}

/// Everything that was given to a connection arrives on it, and nothing else does.
fn check_that_all_arrives(world: &mut World, case: &str) {
    let all = |world: &mut World| {
        let World { client, server, .. } = world;
        client.sent().is_some() && client.sent() == server.came() && server.sent() == client.came()
    };
    assert!(world.run_until(4 * SECOND, all), "{case}: {:?} of {:?}", world.server.came(), world.client.sent());
    assert_eq!(world.violation(), None, "{case}");
}

#[test]
fn a_server_that_starts_again_is_known_to_be_gone_and_takes_another_connection() {
    for ms in [0, 15, 200, 3_000] {
        let mut world = sending(1_000 + ms);
        world.run_for(Duration::from_millis(ms));
        let before = world.client.sent().expect("it is connected");
        world.restart(Side::Server, true);
        let gone = |world: &mut World| !world.endings.is_empty();
        assert!(world.run_until(IDLE_TIMEOUT + 2 * SECOND, gone), "after {ms} ms: it does not end");
        assert!(["timed out", "reset by peer"].contains(&world.endings[0].as_str()), "{:?}", world.endings);
        let case = format!("after {ms} ms");
        let made = |world: &mut World| world.client.is_connected() && world.server.is_connected();
        assert!(world.run_until(SECOND, made), "{case}: no other connection is made");
        assert_ne!(world.client.sent().expect("it is connected").secret, before.secret);
        check_that_all_arrives(&mut world, &case);
    }
}

#[test]
fn a_client_that_starts_again_connects_at_once_and_the_server_forgets_the_one_before() {
    for (ms, keeps_ports) in [0, 15, 200, 3_000].into_iter().flat_map(|ms| [(ms, false), (ms, true)]) {
        let mut world = sending(1_100 + ms);
        world.run_for(Duration::from_millis(ms));
        let before = world.server.sent().expect("it is connected").secret;
        world.restart(Side::Client, keeps_ports);
        let case = format!("after {ms} ms, on the same ports: {keeps_ports}");
        let made = |world: &mut World| world.server.sent().is_some_and(|sent| sent.secret != before);
        assert!(world.run_until(SECOND, made), "{case}: no other connection is made");
        check_that_all_arrives(&mut world, &case);
        let forgets = |world: &mut World| world.server.has_left_others();
        assert!(world.run_until(IDLE_TIMEOUT + 2 * SECOND, forgets), "{case}: the server keeps the old one");
        assert!(world.endings.is_empty() && world.client.ended().is_none(), "{case}: {:?}", world.endings);
    }
}

#[test]
fn clocks_that_are_off_and_drift_change_nothing() {
    for (ahead, ppm) in [(0, 100), (3_600, -100), (1, 100)] {
        let clocks = [Skew { ahead: Duration::from_secs(ahead), ppm }, Skew { ahead: Duration::ZERO, ppm: -ppm }];
        let (wires, engine) = ([Wire::new(20, 10), Wire::new(20, 30)], EngineConfig::live());
        let mut world = World::with_clocks(clocks, Cryptography::Null, &wires, &engine, 1_200).opened();
        world.client.send(u64::MAX);
        world.run_for(5 * SECOND);
        let before = world.server.received();
        world.run_for(10 * SECOND);
        let mbps = (world.server.received() - before) as f64 * 8.0 / 10e6;
        assert!(mbps > 0.9 * 40.0, "{ahead} s ahead, {ppm} ppm: {mbps} Mbit/s");
        assert_eq!(world.violation(), None);
    }
}

#[test]
fn a_connection_outlives_hosts_that_sleep_and_clocks_that_jump() {
    let sides = Side::ALL.into_iter().flat_map(|side| [(side, false), (side, true)]);
    for ((side, sleeps), ms) in sides.flat_map(|one| [300, 1_000, 2_500, 4_000].map(|ms| (one, ms))) {
        for at_client in [false, true] {
            let mut world = World::connected(&[Wire::new(10, 10), Wire::new(10, 30)], 1_300 + ms);
            let sender = if at_client { Side::Server } else { Side::Client };
            world.end(sender).send(u64::MAX);
            world.run_for(2 * SECOND);
            let time = Duration::from_millis(ms);
            match sleeps {
                true => {
                    world.sleep(side, time);
                    world.run_for(time);
                }
                false => world.jump(side, time),
            }
            let case =
                format!("{side:?} {} for {ms} ms, to the client {at_client}", if sleeps { "sleeps" } else { "jumps" });
            // Half of what both wires carry in that time.
            let took = world.time_to_receive(at_client, 2_500_000, 2 * SECOND);
            assert!(took.is_some(), "{case}: {:?}", world.end(sender).paths());
            let ends = [world.client.ended(), world.server.ended()];
            assert_eq!(ends, [None, None], "{case}");
            assert_eq!(world.violation(), None, "{case}");
            let now = world.now;
            let usable = world.end(sender).snapshots(now).iter().filter(|path| path.usable).count();
            // One that stands for another may be there as well.
            assert!(usable >= 2, "{case}: {usable}");
        }
    }
}

#[test]
fn a_clock_that_jumps_by_an_hour_ends_the_connection_and_the_ends_rest() {
    for side in Side::ALL {
        let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 30)], 1_600);
        world.client.send(u64::MAX);
        world.run_for(SECOND);
        world.jump(side, 3_600 * SECOND);
        world.run_for(20 * SECOND);
        for ended in [world.client.ended(), world.server.ended()] {
            // The second to end may be told by the first, which knows nothing of the connection any more.
            assert!(matches!(ended, Some("timed out" | "reset by peer")), "{side:?}: {ended:?}");
        }
        let rests = |end: &End| end.next_timeout(world.now).is_none_or(|at| at > world.now + SECOND);
        assert!(rests(&world.client) && rests(&world.server), "{side:?}");
    }
}

#[test]
fn hosts_that_put_off_each_duty_by_itself_carry_what_wires_carry() {
    let mut world = World::new(&[Wire::new(20, 10), Wire::new(20, 30)], &EngineConfig::live(), 1_500);
    (world.client.host, world.server.host) = (Host::Uneven, Host::Uneven);
    let mut world = world.opened();
    world.client.send(u64::MAX);
    world.run_for(3 * SECOND);
    let before = world.server.received();
    world.run_for(5 * SECOND);
    let mbps = (world.server.received() - before) as f64 * 8.0 / 5e6;
    assert!(mbps > 0.8 * 40.0, "{mbps} Mbit/s");
    assert_eq!(world.violation(), None);
}

/// That no end is told an earlier time is looked for at every step.
#[test]
fn an_end_that_is_told_an_earlier_time_says_so() {
    let world = World::connected(&[Wire::new(20, 10)], 1_700);
    let (clock, now) = (Clock::new(world.now, Skew::default()), world.now);
    let process = Process { origin: Pinned::new(Cryptography::Null, 1), clock, now };
    let mut end = End::server(Identity::generate().expect("a key"), &EngineConfig::live(), Vec::new(), process);
    let (from, to) = ("192.0.2.1:1".parse().expect("an address"), "192.0.2.2".parse().expect("an address"));
    for (seconds, is_fault) in [(1, false), (3, false), (2, true)] {
        end.receive(from, to, vec![0; 10], now + seconds * SECOND);
        assert_eq!(end.violation.is_some(), is_fault, "{seconds} s: {:?}", end.violation);
    }
}
