//! Faults of paths, one at a time.

use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::{Impairments, Reorder};
use fairpath_quic_core::{EngineConfig, NamedTerms, PathState, Terms};
use rayon::prelude::*;

use fairpath_faults::{Cryptography, Host, Impair, Side, Wire, World};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn two_wires_carry_their_sum_with_and_without_cryptography() {
    for cryptography in [Cryptography::Tls, Cryptography::Null] {
        let wires = [Wire::new(20, 10), Wire::new(20, 30)];
        let mut world = World::protected_by(cryptography, &wires, &EngineConfig::live(), 1).opened();
        world.client.send(u64::MAX);
        world.run_for(2 * SECOND);
        let before = world.server.received();
        world.run_for(4 * SECOND);
        let mbps = (world.server.received() - before) as f64 * 8.0 / 4e6;
        assert!(mbps > 0.9 * 40.0, "{cryptography:?}: {mbps} Mbit/s");
        assert_eq!((&world.client.violation, &world.server.violation), (&None, &None));
    }
}

/// An address translator gives the client another port while the server sends: what is in flight stays
/// within the window, and data goes on within a second.
#[test]
fn a_rebinding_leaves_windows_in_force() {
    for rebound in [&[0][..], &[1], &[0, 1]] {
        let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 10)], 2);
        world.server.send(u64::MAX);
        world.run_for(3 * SECOND);
        let before = world.dropped(0).1 + world.dropped(1).1;
        let outside: Vec<_> = rebound.iter().map(|way| world.rebind(*way)).collect();
        world.run_for(SECOND);
        let took = world.time_to_receive(true, 1_000_000, SECOND);
        assert!(took.is_some(), "{rebound:?}: no megabyte in the second after");
        world.run_for(3 * SECOND);
        let dropped = world.dropped(0).1 + world.dropped(1).1 - before;
        assert!(dropped < 500, "{rebound:?}: the queues dropped {dropped} packets");
        assert_eq!(world.server.violation, None);
        let paths = world.server.snapshots(world.now);
        assert_eq!(paths.iter().filter(|path| path.usable).count(), 2, "{rebound:?}: {paths:?}");
        for address in outside {
            let paths = world.server.paths();
            assert!(paths.iter().any(|path| path.remote == address), "{rebound:?}: reported at {paths:?}");
        }
    }
}

/// An end that only receives lets the other one know at once that it may go on: a window each time that the paths are
/// looked at would be 5 Gbit/s.
#[test]
fn a_receiver_tells_its_credit_at_once() {
    let mut world = World::new(&[Wire::new(10_000, 1)], &EngineConfig::live(), 5).opened();
    world.client.send(u64::MAX);
    world.run_for(Duration::from_millis(150));
    let before = world.server.received();
    world.run_for(Duration::from_millis(150));
    let mbps = (world.server.received() - before) as f64 * 8.0 / 150e3;
    assert!(mbps > 7_000.0, "{mbps} Mbit/s");
}

/// The user's cap on a path still applies when an address translator gives the client another port,
/// from the first packet to the new one on.
#[test]
fn a_rebinding_leaves_caps_in_force() {
    let cap = Bitrate::from_mbps(4);
    let said = NamedTerms { of: "if0".into(), terms: Terms { cap: Some(cap), ..Terms::default() } };
    let engine = EngineConfig { terms: vec![said], ..EngineConfig::live() };
    for seed in 0..8 {
        let mut world = World::new(&[Wire::new(1_000, 1)], &engine, seed).opened();
        world.server.send(u64::MAX);
        // At another moment of the rounds in which the paths are looked at.
        world.run_for(SECOND + Duration::from_millis(7 * seed));
        world.rebind(0);
        let before = world.client.received();
        // The server learns of the new port from the client's next packet, up to 100 ms later. Its data
        // goes there from the next look on, 50 ms later. Then a record, counted when complete, takes 131 ms.
        let time = Duration::from_millis(600);
        world.run_for(time);
        let bytes = world.client.received() - before;
        // Two bursts of ten packets, for there are two controllers.
        let most = (cap * time).get() + 20 * 1_500 + 65_536;
        assert!(bytes <= most, "seed {seed}: {bytes} bytes in {time:?}, {most} allowed");
        assert!(bytes > most / 4, "seed {seed}: {bytes} bytes in {time:?}");
    }
}

/// A modem is paid for at the end that has it, and most of what it carries comes from the other end.
#[test]
fn the_peer_heeds_what_is_said_of_a_path_here() {
    let wires = [Wire::new(8, 20), Wire::new(8, 30)];
    let came = |terms: Terms, rebinds: bool| {
        let said = NamedTerms { of: "10.0.1.1".into(), terms };
        let engine = EngineConfig { terms: vec![said], ..EngineConfig::live() };
        let mut world = World::new(&wires, &engine, 1).opened();
        world.run_for(SECOND);
        if rebinds {
            world.rebind(1);
        }
        world.server.send(u64::MAX);
        let dear = |world: &mut World| {
            let paths = world.client.paths();
            let dear = paths.iter().find(|path| path.interface == "if1");
            dear.expect("the second path is there").received.get()
        };
        world.run_for(2 * SECOND);
        let before = dear(&mut world);
        world.run_for(4 * SECOND);
        dear(&mut world) - before
    };
    let four_seconds = Bitrate::from_mbps(8) * (4 * SECOND);
    let plain = came(Terms::default(), false);
    assert!(plain > four_seconds.get() * 8 / 10, "{plain} bytes where nothing was said");
    for rebinds in [false, true] {
        let backup = came(Terms { backup: true, ..Terms::default() }, rebinds);
        assert!(backup < four_seconds.get() / 50, "{backup} bytes on a backup, rebound: {rebinds}");
        let capped = came(Terms { cap: Some(Bitrate::from_mbps(2)), ..Terms::default() }, rebinds);
        let quarter = four_seconds.get() / 4;
        assert!((quarter / 2..quarter * 11 / 10).contains(&capped), "{capped} bytes under a cap, rebound: {rebinds}");
    }
}

/// One packet of the connection, copied and sent from another address.
#[test]
fn a_packet_copied_to_another_address_changes_nothing_for_long() {
    let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 10)], 3);
    world.server.send(u64::MAX);
    world.run_for(3 * SECOND);
    let before = world.dropped(0).1 + world.dropped(1).1;
    world.copy_next_from("192.0.2.66:6666".parse().unwrap());
    assert!(world.time_to_receive(true, 2_000_000, SECOND).is_some());
    world.run_for(4 * SECOND);
    let dropped = world.dropped(0).1 + world.dropped(1).1 - before;
    assert!(dropped < 500, "the queues dropped {dropped} packets");
    assert_eq!(world.violation(), None);
}

/// A client that has little to say gets another port: it says enough for the question whether it is there.
#[test]
fn a_client_at_rest_that_is_rebound_is_heard_again_soon() {
    for seed in 0..10 {
        let mut world = World::connected(&[Wire::new(20, 10)], seed);
        world.run_for(2 * SECOND);
        world.rebind(0);
        // It notices after some 2.5 s that nothing comes, and pads its receipts from then on.
        world.run_for(4 * SECOND);
        world.server.send(1_000_000);
        assert!(world.time_to_receive(true, 1_000_000, 2 * SECOND).is_some(), "seed {seed}");
        assert_eq!(world.violation(), None);
    }
}

/// Between the validation of a path and the policy's hearing of it.
#[test]
fn a_path_that_the_policy_has_not_heard_of_keeps_to_its_window() {
    let mut world = World::new(&[Wire::new(20, 10), Wire::new(20, 10)], &EngineConfig::live(), 4);
    (world.client.host, world.server.host) = (Host::Late, Host::Late);
    assert!(world.run_until(SECOND, |world| world.client.is_connected()));
    world.client.send(u64::MAX);
    world.run_for(4 * SECOND);
    assert_eq!(world.client.violation, None);
    let dropped = world.dropped(0).0 + world.dropped(1).0;
    assert!(dropped < 500, "the queues dropped {dropped} packets");
}

/// Packet numbers begin anew with each of the three spaces of a handshake.
#[test]
fn nothing_of_a_handshake_stays_in_flight() {
    for seed in 0..40 {
        let wire = Wire { loss: 0.2, ..Wire::new(20, 10) };
        let mut world = World::new(&[wire, Wire::new(20, 10)], &EngineConfig::live(), seed);
        if !world.run_until(10 * SECOND, |world| world.client.is_connected() && world.server.is_connected()) {
            continue;
        }
        world.mend(0);
        world.run_for(6 * SECOND);
        for end in [&mut world.client, &mut world.server] {
            for path in end.snapshots(world.now) {
                // One keep-alive may be on its way.
                assert!(path.in_flight <= ByteCount::new(100), "seed {seed}: {path:?}");
                assert!(!path.is_silent(), "seed {seed}: {path:?}");
                let rtt = path.rtt.expect("it was used");
                assert!(rtt.smoothed < SECOND / 5, "seed {seed}: {rtt:?}");
            }
        }
    }
}

/// A path that is opened again starts with the first window: its lost challenges are no congestion.
#[test]
fn a_path_that_comes_back_starts_with_the_first_window() {
    let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 10)], 5);
    world.client.send(u64::MAX);
    world.run_for(2 * SECOND);
    world.set_up(1, false);
    world.run_for(6 * SECOND);
    world.set_up(1, true);
    // A window of 20 Mbit/s and 20 ms within two seconds.
    let open = |world: &mut World| world.client.snapshots(world.now).len() == 2;
    assert!(world.run_until(3 * SECOND, open), "not opened again");
    let window = world.client.snapshots(world.now)[1].window;
    assert!(window >= ByteCount::new(12_000), "{window:?}");
    world.run_for(2 * SECOND);
    let took = world.time_to_receive(false, 4_000_000, SECOND);
    assert!(took.is_some(), "less than 32 of 40 Mbit/s: {:?}", world.client.snapshots(world.now));
}

/// Both wires are cut for a while, shorter than a connection lives in silence. Data goes on soon after the
/// first is back, in either direction.
#[test]
fn data_goes_on_within_two_seconds_of_a_blackout() {
    for (mbps, at_client, outage) in [5, 10, 50].into_iter().flat_map(|mbps| {
        [(true, 2), (false, 2), (true, 4), (false, 4), (true, 6), (false, 6)].map(|(to, time)| (mbps, to, time))
    }) {
        for first_back in [0, 1] {
            let mut world = World::connected(&[Wire::new(mbps, 10), Wire::new(mbps, 10)], 6);
            match at_client {
                true => world.server.send(u64::MAX),
                false => world.client.send(u64::MAX),
            }
            world.run_for(2 * SECOND);
            (0..2).for_each(|way| world.set_up(way, false));
            world.run_for(outage * SECOND);
            world.set_up(first_back, true);
            let took = world.time_to_receive(at_client, 100_000, 30 * SECOND);
            let case = format!("{mbps} Mbit/s, {outage} s, to the client: {at_client}, first back: {first_back}");
            assert!(world.client.ended().is_none(), "{case}: {:?}", world.client.ended());
            assert!(took.is_some_and(|took| took <= 2 * SECOND), "{case}: {took:?}");
        }
    }
}

/// One of two paths goes dark in the middle of 12 MB.
#[test]
fn a_path_that_goes_dark_costs_little_time() {
    for (dark, at_client) in [(0, true), (1, true), (0, false), (1, false)] {
        let mut times = Vec::new();
        for seed in 0..5 {
            // Round trips of 20 and 60 ms.
            let wires = [Wire::new(50, 10), Wire::new(50, 30)];
            let mut world = World::connected(&wires, 200 + seed);
            match at_client {
                true => world.server.send(12_000_000),
                false => world.client.send(12_000_000),
            }
            world.run_for(SECOND / 2);
            world.set_up(dark, false);
            let cut = world.now;
            let received = if at_client { world.client.received() } else { world.server.received() };
            let took = world.time_to_receive(at_client, 12_000_000 - received, 30 * SECOND).expect("all of it");
            times.push(SECOND / 2 + took);
            let left = world.data_left_at(dark, !at_client).expect("it carried data").duration_since(cut);
            eprintln!("path {dark} dark, to the client {at_client}, seed {seed}: new data for {left:?}");
            assert!(left <= Duration::from_millis(300), "path {dark}, seed {seed}: new data for {left:?}");
        }
        times.sort();
        eprintln!("path {dark} dark, to the client {at_client}: {times:?}");
        assert!(times[4] <= Duration::from_millis(2_800), "path {dark}, to the client {at_client}: {times:?}");
    }
}

/// A path that was dark for a while carries as much as before soon after its return.
#[test]
fn a_path_that_returns_carries_its_full_rate_soon() {
    for (dark, outage, at_client) in [(0, 2, false), (1, 5, true), (0, 5, false), (1, 15, false)] {
        // The rate matters here, and secrecy does not: without cryptography it takes half the time.
        let wires = [Wire::new(50, 10), Wire::new(50, 30)];
        let mut world = World::protected_by(Cryptography::Null, &wires, &EngineConfig::live(), 300 + outage).opened();
        match at_client {
            true => world.server.send(u64::MAX),
            false => world.client.send(u64::MAX),
        }
        world.run_for(2 * SECOND);
        world.set_up(dark, false);
        world.run_for(outage as u32 * SECOND);
        world.set_up(dark, true);
        let received = |world: &World| if at_client { world.client.received() } else { world.server.received() };
        let mut rates = Vec::new();
        // Half a second after the two seconds that are allowed.
        for _ in 0..25 {
            let before = received(&world);
            world.run_for(SECOND / 10);
            rates.push((received(&world) - before) as f64 * 80.0 / 1e6);
        }
        let full = rates.windows(5).position(|rates| rates.iter().sum::<f64>() > 5.0 * 85.0);
        let case = format!("path {dark} dark for {outage} s, to the client {at_client}");
        eprintln!("{case}: full after {full:?} tenths of a second: {rates:.0?}");
        assert!(full.is_some(), "{case}: {rates:.0?} Mbit/s");
    }
}

/// Whenever a path returns, it carries data soon. The stack by itself asks at intervals of two seconds.
#[test]
fn a_path_carries_data_again_within_a_second_of_its_return() {
    let mut latest = Duration::ZERO;
    for (tenths, at_client) in (40..80).step_by(3).flat_map(|tenths| [false, true].map(|to| (tenths, to))) {
        let mut world = World::connected(&[Wire::new(3, 10), Wire::new(3, 30)], 700 + tenths);
        match at_client {
            true => world.server.send(u64::MAX),
            false => world.client.send(u64::MAX),
        }
        world.run_for(SECOND);
        world.set_up(1, false);
        world.run_for(Duration::from_millis(100 * tenths));
        world.set_up(1, true);
        let back = world.now;
        let carries = |world: &mut World| world.data_left_at(1, !at_client).is_some_and(|at| at > back);
        let case = format!("dark for {tenths} tenths of a second, to the client {at_client}");
        assert!(world.run_until(SECOND, carries), "{case}: {:?}", world.client.paths());
        latest = latest.max(world.now - back);
        world.run_for(SECOND);
        assert_eq!((world.client.told_wrongly(), world.server.told_wrongly()), (None, None), "{case}");
    }
    eprintln!("data again after {latest:?} at most");
}

/// 5 % of the packets come 10 ms late.
#[test]
fn packets_out_of_order_cost_little() {
    let time = |share: f64, seed: u64| {
        let mut world = World::connected(&[Wire::new(100, 20)], seed);
        let reorder = Some(Reorder { share, by: Duration::from_millis(10) });
        let passing = Impairments { reorder, ..Impairments::default() };
        world.set_impair(0, Impair { passing, ..Impair::default() });
        world.client.send(8_000_000);
        world.time_to_receive(false, 8_000_000, 120 * SECOND).expect("all of it")
    };
    for seed in 400..403 {
        let times = [0.0, 0.01, 0.05].map(|share| time(share, seed));
        eprintln!("8 MB with 0, 1 and 5 % out of order, seed {seed}: {times:?}");
        // The stack takes for lost what is three packets late, and sends again; reductions are taken back. That
        // is twice to two and a half times as long.
        assert!(times[2] < 3 * times[0], "seed {seed}: {times:?}");
    }
}

/// The last bytes do not wait for the slower of two unequal links.
#[test]
fn the_tail_does_not_wait_for_the_slower_path() {
    for seed in 500..503 {
        let alone = {
            let mut world = World::connected(&[Wire::new(100, 10)], seed);
            world.client.send(10_000_000);
            world.time_to_receive(false, 10_000_000, 30 * SECOND).expect("all of it")
        };
        let mut world = World::connected(&[Wire::new(100, 10), Wire::new(10, 40)], seed);
        world.client.send(10_000_000);
        let both = world.time_to_receive(false, 10_000_000, 30 * SECOND).expect("all of it");
        eprintln!("10 MB, 100 Mbit/s alone {alone:?}, with 10 Mbit/s beside it {both:?}, seed {seed}");
        assert!(both <= alone.mul_f64(1.02), "seed {seed}: alone {alone:?}, both {both:?}");
    }
}

/// Data of the end that accepted the connection leaves a dead path too.
#[test]
fn a_dead_path_holds_up_neither_end() {
    for dead in [0, 1] {
        let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 10)], 7);
        world.server.send(30_000_000);
        world.run_for(2 * SECOND);
        world.set_up(dead, false);
        let left = 30_000_000 - world.client.received();
        let took = world.time_to_receive(true, left, 60 * SECOND).expect("all of it");
        // One wire carries what is left in some 10 s.
        let ideal = Duration::from_secs_f64(left as f64 * 8.0 / 19e6);
        assert!(took < ideal + 3 * SECOND, "path {dead} dead: {took:?}, ideally {ideal:?}");
    }
}

/// One direction of one wire is cut: the other wire carries on.
#[test]
fn a_path_that_is_cut_in_one_direction_does_not_stop_data() {
    for (way, there) in [(0, true), (0, false), (1, true), (1, false)] {
        for at_client in [true, false] {
            let mut world = World::connected(&[Wire::new(5, 10), Wire::new(5, 10)], 8);
            match at_client {
                true => world.server.send(u64::MAX),
                false => world.client.send(u64::MAX),
            }
            world.run_for(2 * SECOND);
            match there {
                true => world.set_there(way, false),
                false => world.set_back(way, false),
            }
            let took = world.time_to_receive(at_client, 5_000_000, 30 * SECOND);
            // 9 s at the rate of one wire.
            assert!(took.is_some_and(|took| took < 14 * SECOND), "way {way}, there {there}, {at_client}: {took:?}");
        }
    }
}

/// There by one wire, back by the other, in the middle of a transfer: what is on its way and all that follows
/// arrives.
#[test]
fn opposite_directions_of_two_wires_carry_data() {
    for (there, at_client) in [(0, true), (0, false), (1, true), (1, false)] {
        for seed in 0..4 {
            let mut world = World::connected(&[Wire::new(5, 10), Wire::new(5, 10)], 90 + seed);
            match at_client {
                true => world.server.send(8_000_000),
                false => world.client.send(8_000_000),
            }
            world.run_for(3 * SECOND + Duration::from_millis(37 * seed));
            world.set_there(1 - there, false);
            world.set_back(there, false);
            let received = if at_client { world.client.received() } else { world.server.received() };
            let left = 8_000_000 - received;
            // At the rate of one wire, and what it takes to find out.
            let bound = Duration::from_secs_f64(left as f64 * 8.0 / 4.5e6) + 3 * SECOND;
            let took = world.time_to_receive(at_client, left, 60 * SECOND);
            let case = format!("there by {there}, to the client {at_client}, seed {seed}");
            assert!(took.is_some_and(|took| took < bound), "{case}: {took:?} of {bound:?}");
            assert_eq!((&world.client.violation, &world.server.violation), (&None, &None), "{case}");
        }
    }
}

/// The same for messages, both ways.
#[test]
fn messages_pass_where_each_direction_has_a_wire_of_its_own() {
    // In some of them an acknowledgement of what had left before the cut comes seconds later, by the other wire.
    // The last three lost their working path once, for the other, which was not known to be silent.
    let watched = [(6_120, 1), (7_103, 1), (13_103, 0)];
    pass_messages((90..98).flat_map(|seed| [(seed, 0), (seed, 1)]).chain(watched));
}

#[test]
#[ignore = "as before over more seeds: a minute; `make faults` runs it"]
fn messages_pass_where_each_direction_has_a_wire_of_its_own_in_many_seeds() {
    pass_messages((98..138).flat_map(|seed| [(seed, 0), (seed, 1)]));
}

/// A hundred messages each way, one after the other, where data pass there by one wire and back by the other.
fn pass_messages(cases: impl Iterator<Item = (u64, usize)>) {
    for (seed, there) in cases {
        let mut world = World::connected(&[Wire::new(5, 10), Wire::new(5, 10)], seed);
        world.client.send(u64::MAX);
        world.server.send(u64::MAX);
        world.run_for(2 * SECOND);
        world.set_there(1 - there, false);
        world.set_back(there, false);
        for round in 1..=100 {
            world.client.send_message();
            world.server.send_message();
            let come = |world: &mut World| world.client.messages() == round && world.server.messages() == round;
            assert!(
                world.run_until(2 * SECOND, come),
                "seed {seed}, there by {there}: message {round} takes longer than 2 s"
            );
        }
        assert_eq!((&world.client.violation, &world.server.violation), (&None, &None));
    }
}

/// The same where the server's host stands still for a moment: what it then reads is older than it seems, and
/// neither path may be closed for the other, which has failed as well.
#[test]
fn a_host_that_stands_still_closes_no_path_that_is_needed() {
    for (there, stall) in [(0, 200), (1, 200), (0, 400), (1, 400), (0, 600), (1, 600), (0, 900), (1, 900)] {
        let mut world = World::connected(&[Wire::new(5, 10), Wire::new(5, 10)], 10);
        world.client.send(u64::MAX);
        world.run_for(3 * SECOND);
        world.stall(Side::Server, Duration::from_millis(stall));
        world.run_for(Duration::from_millis(stall / 2));
        world.set_there(1 - there, false);
        world.set_back(there, false);
        world.run_for(4 * SECOND);
        for (name, end) in [("client", &mut world.client), ("server", &mut world.server)] {
            let paths = end.paths();
            let open = paths.iter().filter(|path| [PathState::Open, PathState::Suspected].contains(&path.state));
            assert_eq!(open.count(), 2, "at the {name}, there by {there}, {stall} ms: {paths:?}");
        }
    }
}

/// A translator gives the client other ports, and at once all wires are cut, so that questions whether the new
/// addresses are the client's are lost. The stack asks three times, and then a path works on which no data may
/// leave. That is known even where the other path is always full: data goes on, and on every path.
#[test]
fn addresses_that_change_before_an_outage_carry_data_after_it() {
    let outages = [600, 1_000, 1_400, 3_000, 6_000];
    let cases = [1, 2].into_iter().flat_map(|wires| outages.map(|outage| (wires, outage)));
    for (wires, outage, heard) in cases.flat_map(|(wires, outage)| [40, 80, 120].map(|heard| (wires, outage, heard))) {
        let all: Vec<_> = [Wire::new(7, 67), Wire::new(20, 49)].into_iter().take(wires).collect();
        let mut world = World::connected(&all, 11);
        world.server.send(u64::MAX);
        world.run_for(2 * SECOND);
        (0..wires).for_each(|way| {
            world.rebind(way);
        });
        world.run_for(Duration::from_millis(heard));
        (0..wires).for_each(|way| world.set_up(way, false));
        world.run_for(Duration::from_millis(outage));
        (0..wires).for_each(|way| world.set_up(way, true));
        let case = format!("{wires} wires, {outage} ms, cut after {heard} ms");
        // A path that was ill for a second is replaced, which takes two round trips more.
        let took = world.time_to_receive(true, 100_000, 10 * SECOND);
        assert!(took.is_some_and(|took| took <= 3 * SECOND), "{case}: {took:?}");
        // Both paths may be replaced, one after the other, and begin slowly over 134 ms there and back.
        assert!(server_uses_all_within(wires, 5 * SECOND, &mut world), "{case}: {:?}", world.server.paths());
    }
}

/// Whether the server sends data over each of these interfaces, and not only signs of life.
fn server_uses_all_within(wires: usize, time: Duration, world: &mut World) -> bool {
    let acked = |world: &mut World, way: usize| {
        let paths = world.server.paths();
        let own = paths.iter().filter(|path| path.interface == format!("if{way}"));
        own.map(|path| path.acked.get()).sum::<u64>()
    };
    let before: Vec<_> = (0..wires).map(|way| acked(world, way)).collect();
    world.run_until(time, |world| (0..wires).all(|way| acked(world, way) > before[way] + 30_000))
}

/// The stack acknowledges the packets of all paths on the first path that is no backup, whatever its
/// way back carries. At one acknowledgement for two packets, 100 Mbit/s of data need 2 Mbit/s. A receiver
/// makes paths backups on which its acknowledgements would queue; one way back that carries them is enough.
///
/// 2 Mbit/s are just what the acknowledgements take, and one or two seeds of eight find no way back slow there: that cell goes
/// by the median of five.
#[test]
fn acknowledgements_leave_a_slow_way_back() {
    let mbps = |back: Option<(usize, u64)>, seed: u64| {
        let wires = [10, 30].map(|delay| Wire { queue: ByteCount::new(250_000), ..Wire::new(50, delay) });
        let mut world = World::protected_by(Cryptography::Null, &wires, &EngineConfig::live(), seed).opened();
        if let Some((way, kbps)) = back {
            world.set_rate_back(way, Bitrate::from_kbps(kbps));
        }
        world.client.send(u64::MAX);
        // Until what the first seconds left in queues is gone: 250 kB are 7 s at 300 kbit/s.
        world.run_for(10 * SECOND);
        let before = world.server.received();
        world.run_for(10 * SECOND);
        let rtts: Vec<_> = world.client.snapshots(world.now).iter().filter_map(|path| path.rtt).collect();
        let rtts: Vec<_> = rtts.iter().map(|rtt| (rtt.min.as_millis(), rtt.smoothed.as_millis())).collect();
        let mbps = (world.server.received() - before) as f64 * 8.0 / 10e6;
        println!(
            "seed {seed}, way back {back:?} [kbit/s]: {mbps:.1} Mbit/s; round trips, least and smoothed, {rtts:?} ms"
        );
        mbps
    };
    let whole = mbps(None, 27);
    let cells = [(0, 5_000, 27..=27), (0, 2_000, 23..=27), (0, 1_000, 27..=27), (0, 300, 27..=27), (1, 1_000, 27..=27)];
    cells.into_par_iter().for_each(|(way, kbps, seeds)| {
        let mut with: Vec<f64> = seeds.into_par_iter().map(|seed| mbps(Some((way, kbps)), seed)).collect();
        with.sort_by(f64::total_cmp);
        assert!(with[with.len() / 2] > 0.95 * whole, "{kbps} kbit/s back on {way}: {with:?} of {whole} Mbit/s");
    });
}

/// An address translator that gives the client another port every half second: what the ends know of paths does not
/// grow with it, and data flows.
#[test]
fn addresses_that_change_for_ever_leave_nothing_behind() {
    let mut world = World::connected(&[Wire::new(20, 10), Wire::new(20, 20)], 41);
    world.server.send(u64::MAX);
    world.run_for(SECOND);
    let received = world.client.received();
    for turn in 0..100 {
        world.rebind(turn % 2);
        world.run_for(SECOND / 2);
        let known = [world.client.paths().len(), world.server.paths().len()];
        assert!(known.iter().all(|paths| *paths <= 4), "after {turn} changes {known:?} paths are known");
    }
    let carried = world.client.received() - received;
    assert!(carried > 50 * 1_000_000, "{carried} bytes in 50 s");
    assert_eq!((&world.client.violation, &world.server.violation), (&None, &None));
}

/// Data in flight on a closed path does not wait until the stack has forgotten that path, three
/// probe timeouts after its end. Whichever end closes it, the data is sent again on another.
#[test]
fn what_a_path_held_that_is_closed_is_sent_again_at_once() {
    for closes_itself in [true, false] {
        let mut world = World::new(&[Wire::new(20, 10), Wire::new(20, 300)], &EngineConfig::live(), 6).opened();
        world.run_for(2 * SECOND);
        let (now, paths) = (world.now, world.server.paths());
        let (quick, slow) = (paths[0].clone(), paths[1].clone());
        let server = world.server.connection().expect("a connection");
        assert!(server.set_path_backup(quick.local.expect("known"), quick.remote, true, now));
        world.set_back(1, false);
        world.server.send_message();
        world.run_for(Duration::from_millis(5));
        let [client, server] = [slow.remote, slow.local.map(|ip| (ip, 4433).into()).expect("known")];
        let (end, local, remote) = match closes_itself {
            true => (&mut world.server, server.ip(), client),
            false => (&mut world.client, client.ip(), server),
        };
        let now = world.now;
        assert!(end.connection().expect("a connection").close_path(local, remote, now));
        let arrived = world.run_until(Duration::from_millis(200), |world| world.client.messages() == 1);
        assert!(arrived, "closed by the {}", if closes_itself { "sender" } else { "receiver" });
    }
}
