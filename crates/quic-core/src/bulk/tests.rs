//! A sender and a receiver over a model of a connection that loses, reorders and duplicates, whose paths fall ill, die
//! and come, whose loss detection errs, and whose application takes its time.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use fairpath_engine::PathId;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::carrier::Why;

/// The most packets in flight on one path.
const CWND: usize = 64;

/// A packet of which the sender has heard nothing.
struct Packet {
    path: PathId,
    number: u64,
    datagrams: Vec<Bytes>,
    delivered: bool,
}

struct World {
    rng: ChaCha8Rng,
    sender: Sender,
    receiver: Receiver,
    window: Credit,
    /// The live paths with their next packet numbers.
    paths: Vec<(PathId, u64)>,
    paths_opened: u32,
    network: Vec<Packet>,
    /// Datagrams of packets that the sender has given up, which may still arrive.
    strays: Vec<Bytes>,
    credits: Vec<[u8; Credit::LEN]>,
    to_queue: VecDeque<Record>,
    expected: BTreeMap<(u32, u64), Bytes>,
    body_bytes: u64,
    room: usize,
    held_max: u64,
    reinjected: u64,
    /// How many packets are lost at a time.
    losses: u32,
    /// How often of 100 times the application takes a record that it could take.
    takes: u32,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Small records meet the window of records, large ones that of bytes.
        let largest = [40, 5_000, 300_000, MAX_RECORD][seed as usize % 4];
        let count = (8_000_000 / largest).clamp(12, 400);
        let to_queue: VecDeque<_> = (0..count as u32)
            .map(|number| {
                let mut data = vec![0; rng.random_range(0..=largest)];
                rng.fill_bytes(&mut data);
                Record { object: number % 3, offset: u64::from(number) << 30, data: data.into() }
            })
            .collect();
        let expected = to_queue.iter().map(|record| ((record.object, record.offset), record.data.clone())).collect();
        let body_bytes = to_queue.iter().map(|record| u64::from(record.body())).sum();
        let window = Credit {
            bytes: rng.random_range(WINDOW_BYTES_MIN..2 * WINDOW_BYTES_MIN),
            records: rng.random_range(1..30),
        };
        let receiver = Receiver::new(window.bytes, window.records);
        let room = rng.random_range(300..1500);
        let (losses, takes) = (rng.random_range(0..6), [2, 20, 100][rng.random_range(0..3)]);
        let mut world = Self {
            rng,
            sender: Sender::new(),
            receiver,
            window,
            paths: Vec::new(),
            paths_opened: 0,
            network: Vec::new(),
            strays: Vec::new(),
            credits: Vec::new(),
            to_queue,
            expected,
            body_bytes,
            room,
            held_max: 0,
            reinjected: 0,
            losses,
            takes,
        };
        world.open_path();
        world
    }

    fn open_path(&mut self) {
        self.paths.push((PathId::new(self.paths_opened), self.rng.random_range(0..1000)));
        self.paths_opened += 1;
    }

    fn chance(&mut self, of_100: u32) -> bool {
        self.rng.random_ratio(of_100, 100)
    }

    /// One of `count` things, where there are any.
    fn any(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.rng.random_range(0..count))
    }

    fn queue(&mut self) {
        while self.sender.has_room()
            && let Some(record) = self.to_queue.pop_front()
        {
            self.sender.queue(record).unwrap();
        }
    }

    /// Sends a packet on the path at `index`; says whether there was something to send and room for it.
    fn send(&mut self, index: usize) -> bool {
        let (path, number) = self.paths[index];
        if self.network.iter().filter(|packet| packet.path == path).count() >= CWND {
            return false;
        }
        let mut datagrams = Vec::new();
        for _ in 0..if self.chance(10) { 2 } else { 1 } {
            let ranks = self.paths_opened;
            // An order of the paths that is none of their ids.
            let slower = move |other: PathId| (other.get() * 7) % ranks > (path.get() * 7) % ranks;
            let fragment = self.sender.next(self.room).or_else(|| self.sender.reinject(path, self.room, slower));
            let Some(Fragment { datagram, part }) = fragment else { break };
            assert!(datagram.len() <= self.room);
            self.reinjected += u64::from(part.why == Why::Tail);
            if self.chance(3) {
                self.sender.give_back(part);
                continue;
            }
            self.sender.on_sent(part, path, number);
            datagrams.push(datagram);
        }
        // Packets without bulk data skip numbers.
        self.paths[index].1 += if self.chance(10) { 5 } else { 1 };
        let sent = !datagrams.is_empty();
        if sent {
            self.network.push(Packet { path, number, datagrams, delivered: false });
        }
        sent
    }

    fn arrive(&mut self, datagram: &Bytes) {
        let (header, data) = FragmentHeader::parse(datagram).unwrap();
        self.receiver.on_fragment(header, data).unwrap();
        self.held_max = self.held_max.max(self.receiver.held_bytes());
        assert!(self.held_max <= self.window.bytes);
    }

    fn deliver(&mut self, at: usize) {
        self.network[at].delivered = true;
        for datagram in self.network[at].datagrams.clone() {
            self.arrive(&datagram);
        }
    }

    /// Takes a packet for lost, whether it arrived or not.
    fn lose(&mut self, at: usize) {
        let packet = self.network.swap_remove(at);
        self.sender.on_lost(packet.path, packet.number);
        if packet.delivered && self.chance(50) {
            self.sender.on_acked(packet.path, packet.number);
        }
        self.leave_astray(packet);
    }

    fn leave_astray(&mut self, packet: Packet) {
        if self.chance(30) {
            self.strays.extend(packet.datagrams);
        }
    }

    fn kill_path(&mut self, index: usize) {
        let (path, _) = self.paths.swap_remove(index);
        self.sender.on_path_gone(path);
        let (gone, kept): (Vec<_>, Vec<_>) = self.network.drain(..).partition(|packet| packet.path == path);
        self.network = kept;
        gone.into_iter().for_each(|packet| self.leave_astray(packet));
    }

    fn take(&mut self) -> bool {
        let Some(record) = self.receiver.take() else { return false };
        let expected = self.expected.remove(&(record.object, record.offset));
        assert!(expected.is_some_and(|data| data == record.data), "{} at {}", record.object, record.offset);
        true
    }

    fn tell_credit(&mut self) {
        if let Some(credit) = self.receiver.credit_due() {
            self.credits.push(credit.to_datagram());
        }
    }

    fn hear_credit(&mut self, at: usize) {
        let credit = self.credits.swap_remove(at);
        self.sender.on_credit(Credit::parse(&credit).unwrap());
    }

    /// One thing happens, drawn at random.
    fn step(&mut self) {
        let paths = self.paths.len();
        let burst = self.rng.random_range(1..8);
        match self.rng.random_range(0..100) {
            0..35 => (0..burst).for_each(|_| {
                if let Some(index) = self.any(paths) {
                    self.send(index);
                }
            }),
            35..60 => (0..burst).for_each(|_| {
                let duplicates = self.chance(20);
                if let Some(at) = self.any(self.network.len()).filter(|at| duplicates || !self.network[*at].delivered) {
                    self.deliver(at);
                }
            }),
            60..82 => (0..burst).for_each(|_| {
                if let Some(at) = self.any(self.network.len()).filter(|at| self.network[*at].delivered) {
                    let packet = self.network.swap_remove(at);
                    self.sender.on_acked(packet.path, packet.number);
                }
            }),
            82..84 => (0..self.losses).for_each(|_| {
                if let Some(at) = self.any(self.network.len()) {
                    self.lose(at);
                }
            }),
            84 => {
                if let Some(at) = self.any(self.strays.len()) {
                    let stray = self.strays.swap_remove(at);
                    self.arrive(&stray);
                }
            }
            85..88 if self.chance(self.takes) => {
                self.take();
            }
            88..90 => self.tell_credit(),
            90..93 => {
                if let Some(at) = self.any(self.credits.len()) {
                    self.hear_credit(at);
                }
            }
            93 => {
                if let Some(at) = self.any(self.credits.len()) {
                    self.credits.swap_remove(at);
                    self.receiver.credit_lost();
                }
            }
            94..97 => self.queue(),
            97 => match self.any(paths) {
                Some(index) if self.chance(10) => self.sender.resend(self.paths[index].0),
                Some(index) if self.chance(5) => self.kill_path(index),
                _ if paths < 4 && self.chance(10) => self.open_path(),
                _ => {}
            },
            98 => self.room = if self.chance(2) { FragmentHeader::LEN + 1 } else { self.rng.random_range(100..1500) },
            _ => {}
        }
    }

    /// Everything arrives at once and is heard of; says whether all is done.
    fn calm_round(&mut self) -> bool {
        self.queue();
        while !self.network.is_empty() {
            self.deliver(0);
            let packet = self.network.remove(0);
            self.sender.on_acked(packet.path, packet.number);
        }
        while self.take() {}
        self.tell_credit();
        while !self.credits.is_empty() {
            self.hear_credit(0);
        }
        for index in 0..self.paths.len() {
            while self.send(index) {}
        }
        self.expected.is_empty() && self.sender.is_idle() && self.network.is_empty()
    }
}

#[test]
fn every_record_arrives_once_and_unchanged_whatever_happens_to_packets_and_paths() {
    let mut seen = Seen::default();
    for seed in 0..80 {
        println!("seed {seed}");
        let mut world = World::new(seed);
        for step in 0..20_000 {
            if world.expected.is_empty() {
                break;
            }
            world.step();
            if step % 200 == 0 {
                world.sender.assert_each_byte_is_answered_for_once();
            }
        }
        seen.merge(&world);

        world.room = 1200;
        if world.paths.is_empty() {
            world.open_path();
        }
        // A round brings a window of packets, or all that the credit allows, which is a quarter of a window at least.
        let packets = world.body_bytes / 1000 + world.to_queue.len() as u64 + world.network.len() as u64;
        let rounds = 10 + 4 * packets / CWND as u64 + 4 * 400 / world.window.records;
        let done = (0..rounds).any(|_| world.calm_round());
        assert!(done, "{} records of seed {seed} are missing after {rounds} rounds", world.expected.len());
        assert!(world.sender.is_nothing_in_flight());
        assert_eq!(world.receiver.received_bytes(), world.body_bytes);
        assert_eq!((world.receiver.held_bytes(), world.sender.unsent()), (0, 0));
    }
    println!("{seen:?}");
    assert!(seen.finished > 10 && seen.unfinished > 10, "faults last to the end of some transfers and not of all");
    assert!(seen.fullest > 0.95, "the window was never full");
    assert!(seen.reinjected > 0 && seen.resent_bytes > 0 && seen.duplicate_bytes > 0);
}

/// Coverage over all seeds, which exposes a model that is too gentle with the two ends.
#[derive(Debug, Default)]
struct Seen {
    finished: usize,
    unfinished: usize,
    /// The largest share of a window that was held.
    fullest: f64,
    reinjected: u64,
    resent_bytes: u64,
    duplicate_bytes: u64,
}

impl Seen {
    fn merge(&mut self, world: &World) {
        let finished = world.expected.is_empty();
        self.finished += usize::from(finished);
        self.unfinished += usize::from(!finished);
        self.fullest = self.fullest.max(world.held_max as f64 / world.window.bytes as f64);
        self.reinjected += world.reinjected;
        self.resent_bytes += world.sender.resent_bytes();
        self.duplicate_bytes += world.receiver.duplicate_bytes();
    }
}

#[test]
fn no_lengths_of_records_bring_the_smallest_window_to_a_stand() {
    for seed in 0..50 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut sender, mut receiver) = (Sender::new(), Receiver::new(0, rng.random_range(1..9)));
        let lengths: Vec<_> = (0..30).map(|_| [0, 100, MAX_RECORD / 3, MAX_RECORD][rng.random_range(0..4)]).collect();
        for &length in &lengths {
            sender.queue(Record { object: 0, offset: 0, data: vec![0; length].into() }).unwrap();
        }
        let mut taken = Vec::new();
        while taken.len() < lengths.len() {
            // Credit is told only where it is due, and none is lost.
            if let Some(credit) = receiver.credit_due() {
                sender.on_credit(credit);
            }
            assert!(sender.has_next(), "stands still after {} records", taken.len());
            while let Some(Fragment { datagram, part }) = sender.next(60_000) {
                let (header, data) = FragmentHeader::parse(&datagram).unwrap();
                receiver.on_fragment(header, data).unwrap();
                sender.on_sent(part, PathId::new(0), 0);
            }
            taken.extend(core::iter::from_fn(|| receiver.take()).map(|record| record.data.len()));
        }
        assert_eq!(taken, lengths);
    }
}
