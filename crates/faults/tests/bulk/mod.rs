//! Streams that always have more, between two ends in virtual time.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use fairpath_core::{Bitrate, ByteCount};
use fairpath_faults::{Cryptography, Side, Wire, World};
use fairpath_quic_core::EngineConfig;
use fairpath_quic_core::streams::{Read, StreamId, StreamKind, StreamsConfig};

/// How often applications look.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// Two ends on these wires that may open streams.
pub(crate) fn ends(wires: &[Wire], seed: u64) -> World {
    admitted(World::new(wires, &EngineConfig::live(), seed))
}

pub(crate) fn admitted(world: World) -> World {
    let mut world = world.opened();
    for end in [&mut world.client, &mut world.server] {
        end.connection().expect("it is there").begin_streams(StreamsConfig::default());
    }
    world.run_for(Duration::from_millis(300));
    world
}

/// Streams from one end to the other that always have more, and the bytes that came of each.
pub(crate) struct Bulk {
    from: Side,
    pub(crate) ids: Vec<StreamId>,
    pub(crate) received: BTreeMap<StreamId, u64>,
    data: Bytes,
}

impl Bulk {
    /// Streams from the client to the server.
    pub(crate) fn open(world: &mut World, count: usize) -> Self {
        Self::open_from(Side::Client, world, count)
    }

    pub(crate) fn open_from(from: Side, world: &mut World, count: usize) -> Self {
        let now = world.now;
        let streams = world.end(from).connection().expect("it is there").streams(now);
        let ids = (0..count).map(|_| streams.open(StreamKind(0)).expect("allowed")).collect();
        Self { from, ids, received: BTreeMap::new(), data: vec![0; 64 << 10].into() }
    }

    /// Writes all that there is room for and reads all that came. Returns the streams with new
    /// data.
    pub(crate) fn look(&mut self, world: &mut World) -> Vec<StreamId> {
        let now = world.now;
        let streams = world.end(self.from).connection().expect("it is there").streams(now);
        for id in &self.ids {
            while streams.write(*id, self.data.clone()) == Ok(self.data.len()) {}
        }
        let streams = world.end(self.from.other()).connection().expect("it is there").streams(now);
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

    pub(crate) fn look_for(&mut self, world: &mut World, time: Duration) -> u64 {
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

/// How long a file takes by one stream over these wires; `None` where it is longer than `patience`. The client asks for it
/// or sends it as soon as its paths are open, as a proxy does: then little is known of them, and at the server less.
pub(crate) fn file(from: Side, wires: &[Wire], size: u64, patience: Duration, seed: u64) -> Option<Duration> {
    let mut world = World::protected_by(Cryptography::Null, wires, &EngineConfig::live(), seed);
    let is_connected = |world: &mut World| world.client.is_connected() && world.server.is_connected();
    assert!(world.run_until(Duration::from_secs(5), is_connected), "seed {seed}: no connection in 5 s");
    for end in [&mut world.client, &mut world.server] {
        end.connection().expect("it is there").begin_streams(StreamsConfig::default());
    }
    let is_open = |world: &mut World| {
        let now = world.now;
        world.client.snapshots(now).iter().filter(|path| path.usable).count() == wires.len()
    };
    assert!(world.run_until(Duration::from_secs(5), is_open), "seed {seed}: not all paths opened in 5 s");
    let id = loop {
        let now = world.now;
        match world.client.connection().expect("it is there").streams(now).open(StreamKind(0)) {
            Some(id) => break id,
            None => world.run_for(LOOK),
        }
    };
    let (begun, data) = (world.now, Bytes::from(vec![0; 32 << 10]));
    if from == Side::Server {
        let streams = world.client.connection().expect("it is there").streams(begun);
        streams.write(id, Bytes::from_static(b"GET /file")).expect("it is open");
    }
    let (mut left, mut is_here) = (size, false);
    while world.now < begun + patience {
        let now = world.now;
        // A stream that has not come reads as one that is over.
        is_here |= world.server.connection().expect("it is there").streams(now).accept().is_some();
        let streams = world.end(from).connection().expect("it is there").streams(now);
        while left > 0 && (is_here || from == Side::Client) {
            let next = data.slice(..data.len().min(usize::try_from(left).expect("a file")));
            let taken = streams.write(id, next).expect("it is open") as u64;
            left -= taken;
            match (left, taken) {
                (0, _) => streams.finish(id).expect("it is open"),
                (_, 0) => break,
                _ => {}
            }
        }
        let streams = world.end(from.other()).connection().expect("it is there").streams(now);
        let mut read = if is_here { streams.read(id, 1 << 20) } else { Ok(Read::Pending) };
        while let Ok(Read::Data(_)) = read {
            read = streams.read(id, 1 << 20);
        }
        if read == Ok(Read::End) {
            return Some(now - begun);
        }
        world.run_for(LOOK);
    }
    None
}

/// The rate of a file of 20 MiB by one stream over both wires, in parts of that over the better one.
pub(crate) fn file_ratio(from: Side, wires: [Wire; 2], seed: u64) -> f64 {
    const SIZE: u64 = 20 << 20;
    const PATIENCE: Duration = Duration::from_secs(300);
    let took = |wires: &[Wire]| file(from, wires, SIZE, PATIENCE, seed).unwrap_or(PATIENCE).as_secs_f64();
    let alone = wires.map(|wire| took(&[wire]));
    alone[0].min(alone[1]) / took(&wires)
}

/// Jain's index of the bytes that came of each stream.
pub(crate) fn jain(bulk: &Bulk) -> f64 {
    let bytes: Vec<f64> = bulk.received.values().map(|bytes| *bytes as f64).collect();
    let (sum, squares) = (bytes.iter().sum::<f64>(), bytes.iter().map(|one| one * one).sum::<f64>());
    sum * sum / (bytes.len() as f64 * squares)
}

/// How streams bore that one path of two was dark for four seconds.
pub(crate) struct Outage {
    /// The longest time in which nothing of a stream could be read.
    pub(crate) standstill: Duration,
    /// How long after the return of the path they had nine tenths of their rate again, in a quarter of a second; `None`:
    /// not within five seconds.
    pub(crate) recovery: Option<Duration>,
}

/// Darkens one path of two for `time`. Returns the longest time in which no stream could be read.
fn darken(world: &mut World, bulk: &mut Bulk, dark: usize, time: Duration) -> Duration {
    world.set_up(dark, false);
    let (dark_at, mut had_at) = (world.now, BTreeMap::new());
    let mut standstill = Duration::ZERO;
    while world.now < dark_at + time {
        let now = world.now;
        bulk.look(world).into_iter().for_each(|id| _ = had_at.insert(id, now));
        for id in &bulk.ids {
            standstill = standstill.max(now - *had_at.get(id).unwrap_or(&dark_at));
        }
    }
    standstill
}

/// The longest time in which one of `count` streams could not be read. One path of two goes dark,
/// `after` they have had their rate for three seconds.
pub(crate) fn standstill(count: usize, dark: usize, after: Duration) -> Duration {
    let (mut world, mut bulk) = loaded(&[Wire::new(20, 20); 2], Side::Client, count, Duration::from_secs(3) + after);
    darken(&mut world, &mut bulk, dark, Duration::from_millis(1_200))
}

/// The same of sixteen downloads after two seconds, over a quick link and a slow one with queues of 1,000 packets. These are
/// the links of `make proxy-figures`.
pub(crate) fn standstill_of_downloads(dark: usize, after: Duration) -> Duration {
    let queue = ByteCount::new(1_000 * 1_500);
    let wires = [Wire { queue, ..Wire::new(300, 10) }, Wire { queue, ..Wire::new(80, 30) }];
    let (mut world, mut bulk) = loaded(&wires, Side::Server, 16, Duration::from_secs(2) + after);
    darken(&mut world, &mut bulk, dark, Duration::from_millis(1_200))
}

/// A world whose streams have sent for `time`.
fn loaded(wires: &[Wire], from: Side, count: usize, time: Duration) -> (World, Bulk) {
    let mut world = admitted(World::protected_by(Cryptography::Null, wires, &EngineConfig::live(), 3));
    let mut bulk = Bulk::open_from(from, &mut world, count);
    bulk.look_for(&mut world, time);
    (world, bulk)
}

/// Darkens one path of two under streams, `after` they have had their rate for five seconds.
pub(crate) fn outage(count: usize, dark: usize, seed: u64, after: Duration) -> Outage {
    let mut world = ends(&[Wire::new(20, 20), Wire::new(20, 20)], seed);
    let mut bulk = Bulk::open(&mut world, count);
    bulk.look_for(&mut world, Duration::from_secs(3));
    let time = Duration::from_secs(2);
    let before = bulk.look_for(&mut world, time) as f64 / time.as_secs_f64();
    bulk.look_for(&mut world, after);
    let standstill = darken(&mut world, &mut bulk, dark, Duration::from_secs(4));
    world.set_up(dark, true);
    let returned = world.now;
    let part = Duration::from_millis(250);
    let recovery = std::iter::from_fn(|| {
        let has = bulk.look_for(&mut world, part) as f64 / part.as_secs_f64();
        (world.now <= returned + Duration::from_secs(5)).then_some((has, world.now))
    });
    let recovery = recovery.into_iter().find(|(has, _)| *has >= 0.9 * before).map(|(_, at)| at - returned);
    Outage { standstill, recovery }
}

/// The times of `count` echoes of 64 bytes, one every 100 ms, the shortest first. A stream beside
/// them fills two links of 10 Mbit/s with this delay and queue.
pub(crate) fn sparse(delay: Duration, queue: Duration, count: usize) -> Vec<Duration> {
    let rate = Bitrate::from_mbps(10);
    let wires = [Wire { rate, delay, queue: rate * queue, ..Wire::new(10, 10) }; 2];
    let mut world = ends(&wires, 4);
    let mut bulk = Bulk::open(&mut world, 1);
    bulk.look_for(&mut world, Duration::from_secs(3));
    let now = world.now;
    let sparse = world.client.connection().expect("there").streams(now).open(StreamKind(1)).expect("allowed");
    let (mut sent, mut echoed, mut took) = (Vec::new(), 0, Vec::new());
    while took.len() < count {
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
    took
}
