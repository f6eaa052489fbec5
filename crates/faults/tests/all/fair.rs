//! Connections that share links over the real stack in virtual time: two paths beside flows of others.
//!
//! `cargo bench -p fairpath-faults --bench tables -- fair` prints more cells.

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_faults::Crowd;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_quic_core::flows::{Config, FlowId};
use fairpath_quic_core::{Coupling, EngineConfig};
use rayon::prelude::*;

use crate::cells::{Cell, DEMO, SEPARATE, SHARED, flow, mean, ratios};

/// The goals of detection, where they are easily met: a link that is shared is found within 5 s, and two that are not
/// are one for a twentieth of the time at most.
#[test]
fn the_engine_finds_one_link_and_keeps_two_apart() {
    let times = [Duration::from_secs(5), Duration::from_secs(15)];
    let cells = [SHARED, SEPARATE].map(|cell| Cell { mbps: [10, 10], ..cell });
    let runs: Vec<(Cell, u64)> = cells.iter().flat_map(|cell| [1, 2].map(|seed| (*cell, seed))).collect();
    runs.into_par_iter().for_each(|(cell, seed)| {
        let got = cell.run(&EngineConfig::live(), &[0, 1], seed, times);
        let name = cell.name();
        if cell.is_shared {
            let first = got.first.unwrap_or(Duration::MAX);
            assert!(first <= Duration::from_secs(5), "{name}, seed {seed}: found after {first:?}");
        } else {
            assert!(got.together <= 0.05, "{name}, seed {seed}: one for {:.3} of the time", got.together);
        }
    });
}

/// Headers take a twentieth. An acknowledgement that left in a train of packets once made all of the train be sent again,
/// which took another tenth where a connection had one path.
#[test]
fn one_path_alone_carries_each_byte_once() {
    let mut crowd = Crowd::new(1);
    let link = LinkConfig::new(Bitrate::from_mbps(20)).queue(QueueConfig::sojourn(Duration::from_millis(50)));
    let link = crowd.link("link", &link);
    let alone = crowd.join(&EngineConfig::live(), &[(link, Duration::from_millis(20))]);
    crowd.run_for(Duration::from_secs(3));
    let begun = crowd.received(alone);
    crowd.run_for(Duration::from_secs(5));
    let part = (crowd.received(alone) - begun) as f64 * 8.0 / (5.0 * 20e6);
    assert!(part >= 0.94, "{part:.3} of the link's rate");
}

/// The least is that of a fair share: since one path alone carries each byte once, the flow that ours are held against has a tenth more.
#[test]
fn two_paths_have_what_one_flow_has_where_the_demo_shows_them() {
    let seeds: Vec<u64> = (1..=8).collect();
    let (ratios, _) = ratios(&DEMO, &seeds, [Duration::from_secs(5), Duration::from_secs(20)]);
    assert!((0.8..=1.15).contains(&mean(&ratios)), "{:.2} {ratios:.2?}", mean(&ratios));
}

/// A stream keeps its own rates friendly, and nothing keeps those of a transfer but its windows.
#[test]
fn a_transfer_beside_a_stream_on_the_same_connection_stays_coupled() {
    const ROUND_TRIP: Duration = Duration::from_millis(20);
    let share = |seed: u64| {
        let mut crowd = Crowd::new(seed);
        let link = LinkConfig::new(Bitrate::from_mbps(20)).queue(QueueConfig::sojourn(Duration::from_millis(50)));
        let link = crowd.link("link", &link);
        let rival = crowd.join(&flow("cubic"), &[(link, ROUND_TRIP)]);
        crowd.run_for(Duration::from_millis(1_000 + 173 * seed));
        let ours = crowd.join(&EngineConfig::live(), &[(link, ROUND_TRIP), (link, ROUND_TRIP)]);
        crowd.run_for(Duration::from_secs(1));
        let now = crowd.now();
        crowd.connections(ours).into_iter().for_each(|end| end.begin_flows(Config::default(), now));
        let mut before = [0; 2];
        let begun = crowd.elapsed();
        while crowd.elapsed() < begun + Duration::from_secs(20) {
            let now = crowd.now();
            let [client, server] = crowd.connections(ours);
            client.send_packet(FlowId(0), &[0; 1_000], false, now).expect("there is room");
            while server.take_packet(now).is_some() {}
            // 0.8 Mbit/s.
            crowd.run_for(Duration::from_millis(10));
            if crowd.elapsed() <= begun + Duration::from_secs(5) {
                before = [ours, rival].map(|member| crowd.received(member));
            }
        }
        assert_eq!(crowd.violation(), None);
        let [ours, theirs] = [(ours, before[0]), (rival, before[1])].map(|(one, before)| crowd.received(one) - before);
        ours as f64 / theirs as f64
    };
    let shares: Vec<f64> = (1..=4).into_par_iter().map(share).collect();
    // Paths that are not coupled take twice as much as the rival.
    assert!((0.67..=1.4).contains(&mean(&shares)), "{:.2} {shares:.2?}", mean(&shares));
}

/// A flow's share of the link is four packets, and the least windows of four paths are eight.
/// Windows below a datagram with pacing were tried. Over this stack the paths then had 1.55 of the
/// single path's rate, in place of 1.14, although it was less than before in the simulator. The
/// likely reason was not verified: with a single packet in flight nearly every loss waits for a
/// probe timeout, whose packets no window holds back. The paths' shared bottleneck is configured,
/// not detected.
#[test]
fn four_paths_among_many_flows_have_what_one_of_them_alone_has() {
    let cell = Cell { mbps: [5, 5], queue_ms: 50, rivals: 10, ..SHARED };
    let times = [Duration::from_secs(10), Duration::from_secs(60)];
    let engine = EngineConfig { coupling: Coupling::Always, ..EngineConfig::live() };
    let runs = (1..=6u64).collect::<Vec<_>>().into_par_iter().map(|seed| {
        let [ours, one] = [&[0, 1, 2, 3][..], &[0]].map(|over| cell.run(&engine, over, seed, times).mbps);
        (ours, one)
    });
    let (ours, one): (Vec<f64>, Vec<f64>) = runs.unzip();
    let ratio = mean(&ours) / mean(&one);
    println!("{ratio:.2} of {one:.3?}: {ours:.3?}");
    assert!((0.67..=1.35).contains(&ratio), "{ratio:.2} of {one:.3?}: {ours:.3?}");
}

/// A queue that another flow has filled retains the share that a start gains in it. In the
/// simulator, where all paths open at once, two have 1.56 of one flow's share there (`fairpath lab
/// run default/start`). Arrivals are counted in records of 64 kB, of which there are six to eight.
#[test]
fn behind_a_queue_of_a_second_that_another_has_filled_two_paths_begin_as_one_flow() {
    let first = |paths: usize, seed: u64| {
        let mut crowd = Crowd::new(seed);
        let queue = QueueConfig::sojourn(Duration::from_secs(1));
        let link = crowd.link("bottleneck", &LinkConfig::new(Bitrate::from_mbps(20)).queue(queue));
        let path = (link, Duration::from_millis(40));
        crowd.join(&flow("cubic"), &[path]);
        crowd.run_for(Duration::from_secs(10) + Duration::from_millis(173 * seed));
        let ours = crowd.join(&EngineConfig::live(), &vec![path; paths]);
        crowd.run_for(Duration::from_secs(10));
        crowd.received(ours) as f64
    };
    let runs = (1..=8u64).collect::<Vec<_>>().into_par_iter().map(|seed| (first(2, seed), first(1, seed)));
    let (both, one): (Vec<f64>, Vec<f64>) = runs.unzip();
    let ratio = mean(&both) / mean(&one);
    println!("{ratio:.2} of {one:.0?}: {both:.0?}");
    assert!((0.67..=1.5).contains(&ratio), "{ratio:.2} of {one:.0?}: {both:.0?}");
}
