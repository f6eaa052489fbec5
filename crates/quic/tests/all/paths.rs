//! Paths that go down and come up, in the emulator: data flows as long as any path can carry it.

use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, PathId};
use fairpath_emu::{Emulator, LinkConfig};
use fairpath_quic::bulk::{Sink, Source};
use fairpath_quic::{Connection, EngineConfig, PathReport, PathState};

use crate::common::Pair;

/// Small records arrive whole soon even over 2 Mbit/s.
const RECORD: usize = 4096;

/// Within this time data must flow again after a change. A dead path is known after 0.6 s and closed
/// after 1.2 s; what it held is sent again three of its probe timeouts after the peer has confirmed.
/// Where the confirmation was itself held by a path that died next, that is one such chain after the
/// other. The rest is for busy machines.
const PATIENCE: Duration = Duration::from_secs(20);

fn emulate(paths: usize, server: std::net::SocketAddr) -> Emulator {
    let mut builder = Emulator::builder(1);
    for path in 0..paths {
        let link = LinkConfig::new(Bitrate::from_mbps(2)).delay(Duration::from_millis(10 + 5 * path as u64));
        let there = builder.link(&format!("there {path}"), &link).unwrap();
        let back = builder.link(&format!("back {path}"), &link).unwrap();
        builder.path(&[there], &[back], server).unwrap();
    }
    builder.start().unwrap()
}

async fn connect(paths: usize) -> (Pair, Emulator) {
    let mut emulator = None;
    let pair = Pair::with(EngineConfig::default(), &["127.0.0.1"], |addresses| {
        let started = emulate(paths, addresses[0]);
        let relays = started.relays().to_vec();
        emulator = Some(started);
        relays
    })
    .await;
    assert!(pair.client.paths_open(paths, Duration::from_secs(5)).await, "{:#?}", pair.client.paths());
    (pair, emulator.unwrap())
}

/// Waits until fifty records more have arrived.
async fn flows(pair: &Pair, sink: &Sink, when: &str) {
    let (from, begun) = (sink.received(), Instant::now());
    while sink.received().get() < from.get() + 50 * RECORD as u64 {
        let reason = pair.client.close_reason();
        assert!(reason.is_none(), "{when}: the connection died: {reason:?}");
        assert!(begun.elapsed() < PATIENCE, "{when}: nothing arrived for {PATIENCE:?}: {:?}", states(&pair.client));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn states(connection: &Connection) -> Vec<(String, u32, Option<fairpath_core::PathId>)> {
    let state = |path: PathReport| (path.state.to_string(), path.opened, path.snapshot.map(|snapshot| snapshot.path));
    connection.paths().into_iter().map(state).collect()
}

/// Every order of the numbers below three.
const ORDERS: [[u32; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[tokio::test(flavor = "multi_thread")]
async fn data_flows_whatever_the_order_in_which_paths_go_down_and_come_up() {
    // Twelve connections at a time are enough for two cores.
    for batch in ORDERS.chunks(2) {
        let mut orders = tokio::task::JoinSet::new();
        for (down, up) in batch.iter().flat_map(|down| ORDERS.map(|up| (*down, up))) {
            orders.spawn(one_order(down, up));
        }
        while let Some(done) = orders.join_next().await {
            done.expect("the order holds");
        }
    }
}

async fn one_order(down: [u32; 3], up: [u32; 3]) {
    let (pair, emulator) = connect(3).await;
    let sink = Sink::start(&pair.server);
    let _source = Source::start_with(&pair.client, RECORD);
    let name = |step: &str, id: u32| format!("down {down:?}, up {up:?}, path {id} {step}");
    flows(&pair, &sink, "at first").await;
    for id in down {
        emulator.set_path_up(PathId::new(id), false);
        if id != down[2] {
            flows(&pair, &sink, &name("went down", id)).await;
        }
    }
    // Nothing can flow now; the connection must outlive it.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    for id in up {
        emulator.set_path_up(PathId::new(id), true);
        flows(&pair, &sink, &name("came up", id)).await;
    }
    assert!(
        pair.client.paths_open(3, PATIENCE).await,
        "down {down:?}, up {up:?}: not all paths came back: {:?}",
        states(&pair.client)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_dies_is_told_and_told_again_when_it_is_back() {
    let (pair, emulator) = connect(2).await;
    let mut notices = pair.client.notices();
    let sink = Sink::start(&pair.server);
    let _source = Source::start_with(&pair.client, RECORD);
    flows(&pair, &sink, "at first").await;
    emulator.set_path_up(PathId::new(1), false);
    let closed = next(&mut notices).await;
    assert!(closed.contains("path closed, no") && closed.contains("its data goes over"), "{closed}");
    assert_eq!(pair.client.paths().iter().filter(|path| path.state == PathState::Open).count(), 1);
    emulator.set_path_up(PathId::new(1), true);
    let opened = next(&mut notices).await;
    assert!(opened.contains("open again"), "{opened}");
}

async fn next(notices: &mut tokio::sync::broadcast::Receiver<fairpath_quic::PathNotice>) -> String {
    tokio::time::timeout(PATIENCE, notices.recv()).await.expect("a notice in time").expect("a notice").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_loses_what_it_says_it_takes_does_not_stop_the_other() {
    // One direction only: data goes, acknowledgements never come back.
    let mut emulator = None;
    let mut back = None;
    let pair = Pair::with(EngineConfig::default(), &["127.0.0.1"], |addresses| {
        let mut builder = Emulator::builder(1);
        let link = LinkConfig::new(Bitrate::from_mbps(5)).delay(Duration::from_millis(10));
        for path in 0..2 {
            let there = builder.link(&format!("there {path}"), &link).unwrap();
            let returning = builder.link(&format!("back {path}"), &link).unwrap();
            builder.path(&[there], &[returning], addresses[0]).unwrap();
            back = Some(returning);
        }
        let started = builder.start().unwrap();
        let relays = started.relays().to_vec();
        emulator = Some(started);
        relays
    })
    .await;
    assert!(pair.client.paths_open(2, Duration::from_secs(5)).await);
    let sink = Sink::start(&pair.server);
    let _source = Source::start_with(&pair.client, RECORD);
    flows(&pair, &sink, "at first").await;
    emulator.as_ref().unwrap().set_link_up(back.unwrap(), false);
    for _ in 0..5 {
        flows(&pair, &sink, "one way back is cut").await;
    }
}
