//! Round-trip times contain the way back of another path; one-way delays do not.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, PathId};
use fairpath_emu::{Emulator, LinkConfig, QueueConfig, QueueLimit};
use fairpath_quic::EngineConfig;
use fairpath_quic::bulk::{Sink, Source};
use tokio::net::UdpSocket;

use crate::common::Pair;

/// The spread of a path's delays, from the 10th to the 90th percentile.
fn spread(mut delays: Vec<Duration>) -> Duration {
    delays.sort_unstable();
    let at = |part: usize| delays.get(delays.len() * part / 10).copied().unwrap_or_default();
    at(9).saturating_sub(at(1))
}

/// Fills the way back of a relay for half of every second, until it is dropped. 1200 bytes every 2 ms are
/// 4.8 Mbit/s.
struct Burst(tokio::task::JoinHandle<()>);

impl Burst {
    /// From `server`, which the relay leads to.
    async fn start(relay: SocketAddr, server: UdpSocket) -> Self {
        let client = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
        client.send_to(b"hello", relay).await.expect("loopback");
        let (_, back) = server.recv_from(&mut [0; 16]).await.expect("what was sent");
        Self(tokio::spawn(async move {
            let _open = client;
            let begun = Instant::now();
            let mut tick = tokio::time::interval(Duration::from_millis(2));
            loop {
                tick.tick().await;
                if begun.elapsed().subsec_millis() < 500 {
                    server.send_to(&[0; 1200], back).await.expect("loopback");
                }
            }
        }))
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Two paths to the peer with queues of their own, of 40 and of 10 ms, and one way back, of 3 Mbit/s behind a queue of
/// 120 ms, which others fill every second. Were there another, acknowledgements would leave this one.
#[tokio::test(flavor = "multi_thread")]
async fn a_queue_on_the_way_back_is_in_the_round_trip_times_of_all_paths_and_in_no_one_way_delay() {
    let others = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
    let mut emulator = None;
    let engine = EngineConfig { coupling: "auto".parse().unwrap(), ..EngineConfig::live() };
    let pair = Pair::with(engine, &["127.0.0.1"], |addresses| {
        let mut builder = Emulator::builder(3);
        let link = |mbps, queue_ms| {
            let queue = QueueConfig::DropTail(QueueLimit::Sojourn(Duration::from_millis(queue_ms)));
            LinkConfig::new(Bitrate::from_mbps(mbps)).delay(Duration::from_millis(10)).queue(queue)
        };
        let back = builder.link("back", &link(3, 120)).unwrap();
        for (path, queue_ms) in [(0, 40), (1, 10)] {
            let there = builder.link(&format!("there {path}"), &link(4, queue_ms)).unwrap();
            builder.path(&[there], &[back], addresses[0]).unwrap();
        }
        let free = builder.link("free", &link(50, 10)).unwrap();
        builder.path(&[free], &[back], others.local_addr().unwrap()).unwrap();
        let started = builder.start().unwrap();
        let relays = started.relays()[..2].to_vec();
        emulator = Some(started);
        relays
    })
    .await;
    let relay = emulator.as_ref().expect("started").relays()[2];
    assert!(pair.client.paths_open(2, Duration::from_secs(5)).await);
    let _load = (Source::start(&pair.client), Sink::start(&pair.server));
    let _burst = Burst::start(relay, others).await;
    tokio::time::sleep(Duration::from_secs(4)).await;

    let (mut round_trips, mut one_ways) = (Vec::new(), Vec::new());
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        let (_, paths) = pair.client.snapshots();
        let second = paths.iter().find(|path| path.path == PathId::new(1)).expect("the second path is open");
        round_trips.extend(second.rtt.map(|rtt| rtt.latest));
        one_ways.extend(second.one_way);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let samples = one_ways.len();
    let (round_trip, one_way) = (spread(round_trips), spread(one_ways));
    println!(
        "of a path with a queue of 10 ms, round trips spread over {round_trip:?}, one-way delays over {one_way:?}"
    );
    assert!(samples > 100, "delays are reported");
    assert!(round_trip > Duration::from_millis(60), "others have filled no queue: {round_trip:?}");
    assert!(round_trip > 3 * one_way, "{round_trip:?} against {one_way:?}");
}
