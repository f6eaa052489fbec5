//! DATAGRAM frames of a peer of live flows: pieces, repair and reports, in any order.
//!
//! The input is a byte that says how packets are handed out, and steps. A step is a length and a datagram of that length. A length
//! of 0 has the application take what is there, and one of 255 lets time pass.

use std::time::Duration;

use fairpath_core::{ByteCount, Groups, PathId, Timestamp};
use fairpath_live::{Config, FlowId, Liveness, PACKET_MAX, PathFacts, PathTerms, Playout, Receiver, Sender};

use super::{Seed, Target};
use crate::memory;

pub(crate) static TARGET: Target = Target {
    name: "stream",
    about: "live flows: pieces of packets, Reed-Solomon repair, reports",
    check,
    seeds,
    words: &[],
    also: &[],
};

const TAKE: u8 = 0;
const WAIT: u8 = 255;

/// The tables of the code, and what is remembered of numbers that were left out.
const TABLES: usize = 48 << 20;

/// A piece of 20 bytes takes an entry in a map, and may be handed out in one packet with others.
const MEMORY: usize = 512;

fn check(input: &[u8]) {
    let Some((first, steps)) = input.split_first() else { return };
    let playout = if first & 1 == 0 { Playout::InOrder } else { Playout::Steady };
    let config = Config { flows: 2, playout, ..Config::default() };
    memory::within(input, TABLES, MEMORY, || hear(config, steps));
}

fn path(number: u32) -> PathFacts {
    PathFacts {
        path: PathId::new(number),
        usable: true,
        liveness: Liveness::Alive,
        rtt: Some(Duration::from_millis(20)),
        least_rtt: Some(Duration::from_millis(20)),
        window: ByteCount::new(100_000),
        served: None,
        max_datagram: ByteCount::new(1_200),
        terms: PathTerms::default(),
    }
}

fn hear(config: Config, mut steps: &[u8]) {
    let (mut receiver, mut sender) = (Receiver::new(config), Sender::new(config));
    let (paths, groups) = ([path(0), path(1)], Groups::singletons([PathId::new(0), PathId::new(1)]));
    let (mut now, mut delivered) = (Timestamp::from_secs(100), 0);
    sender.handle_timeout(&paths, &groups, now);
    while let Some((length, rest)) = steps.split_first() {
        steps = rest;
        match *length {
            TAKE => {
                while let Some(packet) = receiver.take(now) {
                    assert!(packet.flow.0 < config.flows && packet.packet.len() <= PACKET_MAX);
                    delivered += 1;
                }
            }
            WAIT => {
                now = now + Duration::from_millis(25);
                receiver.report(now);
                sender.handle_timeout(&paths, &groups, now);
            }
            length => {
                let (datagram, rest) = steps.split_at(steps.len().min(length.into()));
                steps = rest;
                if let Ok(Some(report)) = receiver.on_datagram(&datagram.to_vec().into(), now) {
                    sender.on_report(&report, now);
                }
            }
        }
        let counts = receiver.counts();
        assert_eq!(counts.delivered, delivered);
        assert!(delivered <= counts.received + counts.recovered, "{counts:?}");
        assert!(receiver.counts().on_time().is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
    assert!(sender.status().paths.iter().all(|path| path.loss.is_finite()));
}

/// The datagrams of this many small packets, with repair after them.
fn datagrams(packets: u8) -> Vec<Vec<u8>> {
    let mut sender = Sender::new(Config { deadline: Duration::from_millis(200), ..Config::default() });
    let (path, groups) = ([path(0)], Groups::singletons([PathId::new(0)]));
    let mut now = Timestamp::from_secs(1);
    sender.handle_timeout(&path, &groups, now);
    for packet in 0..packets {
        sender.queue(FlowId(0), &[packet; 30], false, 150, now).expect("there is room");
    }
    let mut left = Vec::new();
    for _ in 0..200 {
        left.extend(core::iter::from_fn(|| sender.next(|_| true, now)).map(|outgoing| outgoing.datagram.to_vec()));
        now = now + Duration::from_millis(1);
        sender.handle_timeout(&path, &groups, now);
    }
    left
}

fn steps(first: u8, datagrams: &[Vec<u8>]) -> Vec<u8> {
    let said = datagrams.iter().flat_map(|datagram| [&[datagram.len() as u8][..], datagram].concat());
    [first].into_iter().chain(said).chain([TAKE, WAIT, WAIT, TAKE]).collect()
}

fn seeds() -> Vec<Seed> {
    let whole = datagrams(8);
    let lossy: Vec<_> = whole.iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, one)| one.clone()).collect();
    let reversed: Vec<_> = whole.iter().rev().chain(&whole).cloned().collect();
    let mut receiver = Receiver::new(Config::default());
    let now = Timestamp::from_secs(9);
    for datagram in &whole {
        receiver.on_datagram(&datagram.clone().into(), now).expect("it is ours");
    }
    let report = receiver.report(now + Duration::from_millis(25)).expect("something came");
    vec![
        Seed::new("whole", steps(0, &whole)),
        Seed::new("lossy", steps(0, &lossy)),
        Seed::new("reversed_and_again", steps(1, &reversed)),
        Seed::new("report", steps(0, &[report.to_vec(), report.to_vec()])),
    ]
}
