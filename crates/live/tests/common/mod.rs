//! Both ends of a stream in virtual time, over paths that only delay and lose.

#![allow(dead_code, reason = "every test file uses a part of it")]

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use fairpath_core::{ByteCount, Groups, PathId, Timestamp};
use fairpath_engine::{Engine, EngineConfig, PathUse};
use fairpath_live::{Cargo, Config, Delivered, FlowId, Outgoing, PathFacts, PathTerms, Receiver, Sender};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// A path: its delay one way with what is added at random, and the share of packets that it loses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) up: bool,
    /// Its terms.
    pub(crate) terms: PathTerms,
}

impl Link {
    pub(crate) fn new(delay_ms: u64, loss: f64) -> Self {
        Self {
            delay: Duration::from_millis(delay_ms),
            jitter: Duration::ZERO,
            loss,
            up: true,
            terms: PathTerms::default(),
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Arrives(Bytes),
    Reported(Bytes),
    Acked(PathId, u64),
    Lost(PathId, u64),
}

/// A packet that was handed out.
#[derive(Clone, Debug)]
pub(crate) struct Played {
    pub(crate) at: Timestamp,
    pub(crate) flow: FlowId,
    pub(crate) packet: Bytes,
}

pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) sender: Sender,
    /// It says which paths answer.
    engine: Engine,
    pub(crate) receiver: Receiver,
    pub(crate) links: Vec<Link>,
    /// How large a datagram may be.
    pub(crate) room: usize,
    pub(crate) played: Vec<Played>,
    /// The number of datagrams made for each path.
    pub(crate) sent_on: Vec<u64>,
    events: BTreeMap<(Timestamp, u64), Event>,
    order: u64,
    numbers: u64,
    luck: ChaCha8Rng,
    /// Each packet of the application, and when it was queued.
    pub(crate) queued: Vec<(Timestamp, FlowId, Bytes)>,
    pub(crate) lost_cargo: Vec<Cargo>,
}

/// An engine with this many paths.
fn engine(paths: usize) -> Engine {
    let mut engine = EngineConfig::live().build().expect("the default");
    for path in (0..paths).map(|at| PathId::new(at as u32)) {
        engine.on_path_opened(path, ByteCount::new(1_200), Timestamp::from_secs(5));
        engine.set_use(path, PathUse::Open);
    }
    engine
}

impl World {
    pub(crate) fn new(config: Config, links: Vec<Link>, seed: u64) -> Self {
        // Two clocks that have nothing to do with each other: the receiver's shows 1,000 s more.
        Self {
            now: Timestamp::from_secs(5),
            sender: Sender::new(config),
            engine: engine(links.len()),
            receiver: Receiver::new(config),
            sent_on: vec![0; links.len()],
            links,
            room: 1_200,
            played: Vec::new(),
            events: BTreeMap::new(),
            order: 0,
            numbers: 0,
            luck: ChaCha8Rng::seed_from_u64(seed),
            queued: Vec::new(),
            lost_cargo: Vec::new(),
        }
    }

    /// The receiver's clock.
    pub(crate) fn there(&self) -> Timestamp {
        self.now + Duration::from_secs(1_000)
    }

    fn after(&mut self, wait: Duration, event: Event) {
        self.order += 1;
        self.events.insert((self.now + wait, self.order), event);
    }

    fn facts(&self) -> Vec<PathFacts> {
        let fact = |(at, link): (usize, &Link)| PathFacts {
            path: PathId::new(at as u32),
            usable: true,
            liveness: self.engine.snapshot(PathId::new(at as u32), self.now).expect("it is open").liveness,
            rtt: Some(2 * link.delay),
            least_rtt: Some(2 * link.delay),
            window: ByteCount::new(200_000),
            served: None,
            max_datagram: ByteCount::new(1_200),
            terms: link.terms,
        };
        self.links.iter().enumerate().map(fact).collect()
    }

    /// The application sends a packet of `length` bytes.
    pub(crate) fn queue(&mut self, flow: FlowId, length: usize, is_marked: bool) {
        let mut packet = vec![0; length];
        self.luck.fill(&mut packet[..]);
        self.sender.queue(flow, &packet, is_marked, self.room, self.now).expect("room");
        self.queued.push((self.now, flow, packet.into()));
    }

    fn transmit(&mut self) {
        self.sender.set_room(self.room);
        while let Some(Outgoing { path, datagram, cargo }) = self.sender.next(|_| true, self.now) {
            assert!(datagram.len() <= self.room, "{} bytes cannot leave", datagram.len());
            self.numbers += 1;
            let (number, link) = (self.numbers, self.links[path.get() as usize]);
            self.sent_on[path.get() as usize] += 1;
            self.sender.on_sent(cargo, path, number, self.now);
            self.engine.on_sent(path, number, ByteCount::new(datagram.len() as u64), self.now);
            let jitter = link.jitter.mul_f64(self.luck.random());
            if !link.up {
                self.lost_cargo.push(cargo);
            } else if self.luck.random_bool(link.loss) {
                self.lost_cargo.push(cargo);
                self.after(2 * link.delay + link.delay / 4, Event::Lost(path, number));
            } else {
                self.after(link.delay + jitter, Event::Arrives(datagram));
                self.after(2 * link.delay + jitter, Event::Acked(path, number));
            }
        }
    }

    fn play(&mut self) {
        while let Some(Delivered { flow, packet }) = self.receiver.take(self.there()) {
            self.played.push(Played { at: self.now, flow, packet });
        }
        if let Some(report) = self.receiver.report(self.there()) {
            for link in self.links.clone().iter().filter(|link| link.up) {
                self.after(link.delay, Event::Reported(report.clone()));
            }
        }
    }

    fn step(&mut self) {
        if self.sender.next_timeout(self.now).is_some_and(|at| at <= self.now) {
            let (facts, groups) =
                (self.facts(), Groups::singletons((0..self.links.len()).map(|at| PathId::new(at as u32))));
            self.sender.handle_timeout(&facts, &groups, self.now);
        }
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                Event::Arrives(datagram) => {
                    assert_eq!(self.receiver.on_datagram(&datagram, self.there()), Ok(None));
                }
                Event::Reported(report) => {
                    let mut other = Receiver::new(Config::default());
                    let report = other.on_datagram(&report, self.now).expect("a report").expect("a report");
                    self.sender.on_report(&report, self.now);
                }
                Event::Acked(path, number) => {
                    self.engine.on_ack(path, number, self.now);
                    self.engine.on_ack_end(path, Duration::ZERO, self.now);
                    self.sender.on_acked(path, number, self.now);
                }
                Event::Lost(path, number) => {
                    self.engine.on_lost(path, number, self.now);
                    self.sender.on_lost(path, number, self.now);
                }
            }
        }
        self.transmit();
        self.play();
    }

    /// Lets time pass.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.step();
            let due = self.receiver.next_timeout().map(|at| Timestamp::ZERO + (at.since(Timestamp::from_secs(1_000))));
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let next = [self.sender.next_timeout(self.now), due, event].into_iter().flatten().min();
            match next.filter(|at| *at <= end) {
                Some(at) => self.now = at.max(self.now),
                None => break,
            }
        }
        self.now = end;
        self.step();
    }

    /// Queues this many packets, one each `gap`.
    pub(crate) fn stream(&mut self, packets: u64, length: usize, gap: Duration) {
        for _ in 0..packets {
            self.queue(FlowId(0), length, false);
            self.run_for(gap);
        }
    }

    /// Everything that can be said of what was handed out: each packet as it was, none twice, in order, and none after
    /// its deadline, which is by `error` more by the clock of the receiver.
    pub(crate) fn check(&self, deadline: Duration, error: Duration) {
        let mut next: BTreeMap<FlowId, usize> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for Played { at, flow, packet } in &self.played {
            let from = next.entry(*flow).or_default();
            let rest = self.queued.iter().enumerate().skip(*from);
            let found = rest.into_iter().find(|(_, (_, queued_flow, queued))| queued_flow == flow && queued == packet);
            let Some((index, (queued_at, ..))) = found else {
                panic!("a packet of {} bytes was handed out that was not sent, or not in order", packet.len());
            };
            assert!(seen.insert(index), "packet {index} twice");
            assert!(at.since(*queued_at) <= deadline + error, "packet {index} after {:?}", at.since(*queued_at));
            *from = index + 1;
        }
    }

    /// The share of packets that were handed out.
    pub(crate) fn share(&self) -> f64 {
        self.played.len() as f64 / self.queued.len().max(1) as f64
    }
}
