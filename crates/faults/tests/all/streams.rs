//! Streams under faults from seeds: each byte once and in order, over connections that are lost and replaced.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fairpath_core::Bitrate;
use fairpath_faults::{Cryptography, Scenario, Wire, World};
use fairpath_quic_core::EngineConfig;
use fairpath_quic_core::streams::{Read, StreamId, StreamKind, StreamsConfig};
use rayon::prelude::*;

/// Every change is tried with these. Without cryptography, which `named.rs` has, they take half of the time.
const SEEDS: std::ops::Range<u64> = 0..300;

#[test]
fn streams_lose_nothing_under_faults_and_go_on_after_them() {
    let failed: Vec<String> = SEEDS
        .into_par_iter()
        .filter_map(|seed| {
            let scenario = Scenario { cryptography: Cryptography::Null, ..Scenario::of_streams(seed) };
            let failure = scenario.run().err()?;
            let again = format!("again: cargo run -q -p fairpath-faults -- --streams --null --seeds {seed}");
            Some(format!("{failure}\n{scenario}{again}"))
        })
        .collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n\n"));
}

/// How often applications look.
const LOOK: Duration = Duration::from_millis(2);

/// Two ends on these wires that may open streams.
fn ends(wires: &[Wire], seed: u64) -> World {
    let mut world = World::new(wires, &EngineConfig::live(), seed).opened();
    for end in [&mut world.client, &mut world.server] {
        end.connection().expect("it is there").begin_streams(StreamsConfig::default());
    }
    world.run_for(Duration::from_millis(300));
    world
}

/// Streams from the client to the server that always have more, and the bytes that came of each.
struct Bulk {
    ids: Vec<StreamId>,
    received: BTreeMap<StreamId, u64>,
    data: Bytes,
}

impl Bulk {
    fn open(world: &mut World, count: usize) -> Self {
        let now = world.now;
        let streams = world.client.connection().expect("it is there").streams(now);
        let ids = (0..count).map(|_| streams.open(StreamKind(0)).expect("allowed")).collect();
        Self { ids, received: BTreeMap::new(), data: vec![0; 64 << 10].into() }
    }

    /// Writes all that there is room for and reads all that came. The streams of which something came.
    fn look(&mut self, world: &mut World) -> Vec<StreamId> {
        let now = world.now;
        let streams = world.client.connection().expect("it is there").streams(now);
        for id in &self.ids {
            while streams.write(*id, self.data.clone()) == Ok(self.data.len()) {}
        }
        let streams = world.server.connection().expect("it is there").streams(now);
        while let Some((id, kind)) = streams.accept() {
            if kind == StreamKind(0) {
                self.received.insert(id, 0);
            }
        }
        let mut came = Vec::new();
        for (id, received) in &mut self.received {
            let before = *received;
            while let Ok(Read::Data(data)) = streams.read(*id, 1 << 20) {
                *received += data.len() as u64;
            }
            came.extend((*received > before).then_some(*id));
        }
        world.run_for(LOOK);
        came
    }

    fn look_for(&mut self, world: &mut World, time: Duration) -> u64 {
        let (end, before) = (world.now + time, self.total());
        while world.now < end {
            self.look(world);
        }
        self.total() - before
    }

    fn total(&self) -> u64 {
        self.received.values().sum()
    }
}

#[test]
fn streams_carry_what_records_carry() {
    let wires = [Wire::new(40, 10), Wire::new(10, 30)];
    let time = Duration::from_secs(4);
    let mut world = ends(&wires, 1);
    world.client.send(u64::MAX);
    world.run_for(Duration::from_secs(2));
    let before = world.server.received();
    world.run_for(time);
    let records = world.server.received() - before;
    for count in [1, 16] {
        let mut world = ends(&wires, 1);
        let mut bulk = Bulk::open(&mut world, count);
        bulk.look_for(&mut world, Duration::from_secs(2));
        let streams = bulk.look_for(&mut world, time);
        assert_eq!(world.violation(), None);
        let share = streams as f64 / records as f64;
        assert!(share > 0.95, "{count} streams carry {share} of what records do");
    }
}

/// Each stream has the same share, whatever their number.
#[test]
fn many_streams_have_the_same_share() {
    let mut world = ends(&[Wire::new(40, 10), Wire::new(40, 10)], 2);
    let mut bulk = Bulk::open(&mut world, 200);
    bulk.look_for(&mut world, Duration::from_secs(5));
    let bytes: Vec<f64> = bulk.received.values().map(|bytes| *bytes as f64).collect();
    let (sum, squares) = (bytes.iter().sum::<f64>(), bytes.iter().map(|one| one * one).sum::<f64>());
    let jain = sum * sum / (bytes.len() as f64 * squares);
    assert!(bytes.len() == 200 && jain > 0.98, "Jain's index of {} streams is {jain}", bytes.len());
}

/// How long the longest standstill of 16 streams is when this path of two goes dark. Afterwards it comes back.
fn longest_standstill(dark: usize) -> Duration {
    let mut world = ends(&[Wire::new(20, 20), Wire::new(20, 20)], 3);
    let mut bulk = Bulk::open(&mut world, 16);
    bulk.look_for(&mut world, Duration::from_secs(3));
    let before = bulk.look_for(&mut world, Duration::from_secs(2));
    world.set_up(dark, false);
    let (dark_at, mut had_at) = (world.now, BTreeMap::new());
    let mut longest = Duration::ZERO;
    while world.now < dark_at + Duration::from_secs(4) {
        let now = world.now;
        bulk.look(&mut world).into_iter().for_each(|id| _ = had_at.insert(id, now));
        for id in &bulk.ids {
            longest = longest.max(now - *had_at.get(id).unwrap_or(&dark_at));
        }
    }
    world.set_up(dark, true);
    bulk.look_for(&mut world, Duration::from_secs(2));
    let after = bulk.look_for(&mut world, Duration::from_secs(2));
    let share = after as f64 / before as f64;
    assert!(share > 0.9, "two seconds after the return of path {dark} streams have {share} of their rate");
    longest
}

/// After one probe timeout the bytes that each stream waits for go to the other path, after two all that is in flight.
#[test]
fn a_path_that_goes_dark_holds_no_stream_for_half_a_second() {
    let longest = longest_standstill(1);
    assert!(longest <= Duration::from_millis(500), "a stream stood still for {longest:?}");
}

/// The stack sends the acknowledgements of all paths on the first. Where that goes dark no path is acknowledged, and the
/// other has no room for copies before the receiver knows: after 600 ms of silence (the engine's health, looked at
/// every 50 ms). Then 140 ms of data go to the other path, over its 40 ms there and back and behind its queue of 100 ms.
#[test]
fn a_path_that_goes_dark_with_all_acknowledgements_holds_no_stream_for_a_second() {
    let longest = longest_standstill(0);
    assert!(longest <= Duration::from_secs(1), "a stream stood still for {longest:?}");
}

/// 64 bytes every 100 ms, echoed, beside a stream that fills links with queues of 300 ms.
#[test]
fn a_sparse_stream_waits_for_the_queues_of_links_and_hardly_for_ours() {
    let (delay, queue) = (Duration::from_millis(10), Duration::from_millis(300));
    let rate = Bitrate::from_mbps(10);
    let wires = [Wire { rate, delay, queue: rate * queue, ..Wire::new(10, 10) }; 2];
    let mut world = ends(&wires, 4);
    let mut bulk = Bulk::open(&mut world, 1);
    bulk.look_for(&mut world, Duration::from_secs(3));
    let now = world.now;
    let sparse = world.client.connection().expect("there").streams(now).open(StreamKind(1)).expect("allowed");
    let (mut sent, mut echoed, mut took) = (Vec::new(), 0, Vec::new());
    while took.len() < 100 {
        bulk.look(&mut world);
        let now = world.now;
        if sent.last().is_none_or(|at| now - *at >= Duration::from_millis(100)) {
            sent.push(now);
            let streams = world.client.connection().expect("there").streams(now);
            assert_eq!(streams.write(sparse, vec![0; 64].into()), Ok(64));
        }
        let server = world.server.connection().expect("there").streams(now);
        if let Ok(Read::Data(data)) = server.read(sparse, 1 << 20) {
            server.write(sparse, data).expect("it is open");
        }
        let client = world.client.connection().expect("there").streams(now);
        while let Ok(Read::Data(data)) = client.read(sparse, 1 << 20) {
            echoed += data.len();
            while took.len() < echoed / 64 {
                took.push(now - sent[took.len()]);
            }
        }
    }
    took.sort_unstable();
    // The way back is free. Each application looks every other millisecond.
    let bound = 2 * delay + queue + 3 * LOOK + Duration::from_millis(30);
    assert!(took[98] <= bound, "99 % took {:?}, half of them {:?}; {bound:?} is allowed", took[98], took[49]);
}
