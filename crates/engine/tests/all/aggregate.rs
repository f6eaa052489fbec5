//! Hosts that tell of bytes and not of packets: the same windows come of the same run.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::DeliveryRate;
use fairpath_engine::{
    AckedBytes, Bytes, CongestionSignal, Coupling, Engine, EngineConfig, LostBytes, PathId, Timestamp,
};
use proptest::prelude::*;

const MTU: Bytes = Bytes::new(1200);
const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

fn engine(congestion: &str) -> Engine {
    let config = EngineConfig { congestion: congestion.into(), coupling: Coupling::Always, ..EngineConfig::default() };
    let mut engine = config.build().unwrap();
    for path in PATHS {
        engine.on_path_opened(path, MTU, Timestamp::ZERO);
        engine.set_usable(path, true);
    }
    engine
}

/// A burst on a path and what becomes of it.
#[derive(Clone, Debug)]
struct Round {
    path: usize,
    /// How much of the window is sent, of 8 parts.
    eighths: u64,
    rtt: Duration,
    /// How many packets an acknowledgement covers.
    together: u64,
    /// How many packets of the burst are lost, and whether that turns out to be wrong.
    lost: u64,
    is_spurious: bool,
}

fn round() -> impl Strategy<Value = Round> {
    (0..2_usize, 1..9_u64, 5..300_u64, 1..20_u64, prop_oneof![3 => Just(0), 1 => 1..4_u64], any::<bool>()).prop_map(
        |(path, eighths, rtt_ms, together, lost, is_spurious)| Round {
            path,
            eighths,
            rtt: Duration::from_millis(rtt_ms),
            together,
            lost,
            is_spurious,
        },
    )
}

/// The same connection, told of in two ways.
struct Twins {
    by_packet: Engine,
    by_bytes: Engine,
    now: Timestamp,
    next: u64,
}

impl Twins {
    fn new(congestion: &str) -> Self {
        let (by_packet, by_bytes) = (engine(congestion).unpaced(), engine(congestion).unpaced());
        Self { by_packet, by_bytes, now: Timestamp::from_secs(1), next: 0 }
    }

    fn windows(&self) -> [[Bytes; 2]; 2] {
        [&self.by_packet, &self.by_bytes].map(|engine| PATHS.map(|path| engine.verdict(path, self.now).window))
    }

    /// What is in flight, was delivered and was lost.
    fn amounts(&self) -> [Vec<[Bytes; 3]>; 2] {
        [&self.by_packet, &self.by_bytes]
            .map(|engine| engine.snapshots(self.now).map(|path| [path.in_flight, path.delivered, path.lost]).collect())
    }

    fn run(&mut self, round: &Round) {
        let Self { by_packet, by_bytes, .. } = self;
        let (path, sent_at) = (PATHS[round.path], self.now);
        let window = by_packet.verdict(path, sent_at).window;
        let packets = (window * round.eighths / (MTU * 8)).clamp(1, 200);
        let numbers = self.next..self.next + packets;
        self.next += packets;
        numbers.clone().for_each(|number| by_packet.on_sent(path, number, MTU, sent_at));
        by_bytes.on_bytes_sent(path, MTU * packets, MTU * packets, sent_at);
        let mut now = sent_at + round.rtt;
        let mut left = packets;
        let lost = round.lost.min(packets);
        if lost > 0 {
            left -= lost;
            numbers.clone().take(lost as usize).for_each(|number| by_packet.on_lost(path, number, now));
            by_bytes.on_bytes_lost(path, &LostBytes { bytes: MTU * lost, in_flight: MTU * left, sent_at }, now);
            for engine in [&mut *by_packet, &mut *by_bytes] {
                engine.on_congestion(path, CongestionSignal::Loss, sent_at, false, now);
                if round.is_spurious {
                    engine.on_spurious_congestion(path, now);
                }
            }
        }
        let acked: Vec<u64> = numbers.skip(lost as usize).collect();
        for numbers in acked.chunks(round.together as usize) {
            numbers.iter().for_each(|number| by_packet.on_ack(path, *number, now));
            by_packet.on_ack_end(path, Duration::ZERO, now);
            left -= numbers.len() as u64;
            let acked = AckedBytes {
                bytes: MTU * numbers.len() as u64,
                in_flight: MTU * left,
                sent_at,
                rtt: Some(now.since(sent_at)),
                ack_delay: Duration::ZERO,
                rate: None,
            };
            by_bytes.on_bytes_acked(path, &acked, now);
            now = now + Duration::from_millis(1);
        }
        self.now = now;
    }
}

proptest! {
    /// For every rule of windows, bit by bit: neither how much an acknowledgement covers matters, nor losses, real
    /// ones and others. In one thing the two must differ, so no acknowledgement here spans a reduction.
    #[test]
    fn windows_are_the_same_whether_a_host_tells_of_packets_or_of_bytes(
        rounds in prop::collection::vec(round(), 1..40),
    ) {
        for congestion in EngineConfig::CONGESTION {
            let config = EngineConfig { congestion: (*congestion).into(), ..EngineConfig::default() };
            if config.is_rate_based() {
                continue;
            }
            let mut twins = Twins::new(congestion);
            for (at, round) in rounds.iter().enumerate() {
                twins.run(round);
                let [by_packet, by_bytes] = twins.windows();
                prop_assert_eq!(by_packet, by_bytes, "{} after round {}: {:?}", congestion, at, round);
                let [by_packet, by_bytes] = twins.amounts();
                prop_assert_eq!(by_packet, by_bytes, "{} after round {}: {:?}", congestion, at, round);
            }
        }
    }
}

/// A bottleneck of 10 Mbit/s and 20 ms there and back, on which one acknowledgement in 5 ms tells of all that came.
#[test]
fn a_rate_based_control_finds_the_rate_by_what_a_host_measures() {
    for congestion in ["bbr", "bbr3"] {
        let (mut engine, path) = (engine(congestion), PATHS[0]);
        let mut measured = DeliveryRate::new();
        let mut under_way = VecDeque::new();
        let (mut in_flight, mut free_at) = (Bytes::ZERO, Timestamp::ZERO);
        for micros in (0..4_000_000).step_by(100) {
            let now = Timestamp::from_micros(micros);
            while engine.verdict(path, now).may_send {
                let state = measured.on_sent(now, in_flight);
                in_flight += MTU;
                engine.on_bytes_sent(path, MTU, in_flight, now);
                // 1,200 B at 10 Mbit/s are 960 µs.
                free_at = free_at.max(now) + Duration::from_micros(960);
                under_way.push_back((free_at + Duration::from_millis(20), now, state));
            }
            let mut acked = AckedBytes {
                bytes: Bytes::ZERO,
                in_flight,
                sent_at: now,
                rtt: None,
                ack_delay: Duration::ZERO,
                rate: None,
            };
            while micros % 5_000 == 0 && under_way.front().is_some_and(|(at, ..)| *at <= now) {
                let (_, sent_at, state) = under_way.pop_front().expect("it was there");
                in_flight -= MTU;
                let rate = measured.on_ack(now, MTU, &state);
                let rtt = Some(now.since(sent_at));
                acked = AckedBytes { bytes: acked.bytes + MTU, in_flight, sent_at, rtt, rate, ..acked };
            }
            if acked.bytes > Bytes::ZERO {
                engine.on_bytes_acked(path, &acked, now);
            }
        }
        let now = Timestamp::from_secs(4);
        let rate = engine.verdict(path, now).pacing_rate.expect("it paces").as_mbps_f64();
        // BBR's gain is between 0.75 and 1.25; acknowledgements come in steps of 5 ms.
        assert!((7.0..=14.0).contains(&rate), "{congestion}: {rate} Mbit/s");
        assert_eq!(engine.snapshot(path, now).unwrap().delivered, measured.delivered());
    }
}

#[test]
fn a_path_that_answers_no_bytes_is_suspected_and_what_is_on_it_overdue() {
    let (mut engine, path) = (engine("reno"), PATHS[0]);
    let ms = Timestamp::from_millis;
    engine.on_bytes_sent(path, MTU, MTU, ms(0));
    let answer = |sent_at, in_flight| AckedBytes {
        bytes: MTU,
        in_flight,
        sent_at,
        rtt: Some(Duration::from_millis(20)),
        ack_delay: Duration::ZERO,
        rate: None,
    };
    engine.on_bytes_acked(path, &answer(ms(0), Bytes::ZERO), ms(20));
    engine.on_bytes_sent(path, MTU * 2, MTU * 2, ms(100));
    assert_eq!(engine.verdict(path, ms(260)).overdue, Bytes::ZERO);
    // PTO = 20 + 4 · 10 = 60 ms, and the peer may wait 25 ms: two of them are 170 ms.
    let verdict = engine.verdict(path, ms(280));
    assert_eq!((verdict.may_send, verdict.overdue, verdict.in_flight), (false, MTU * 2, MTU * 2));
    assert!(engine.snapshot(path, ms(280)).unwrap().suspected);
    engine.on_bytes_acked(path, &answer(ms(100), MTU), ms(290));
    assert!(engine.verdict(path, ms(290)).may_send, "it answered");
}
