//! The properties that the controllers of the BBR family keep whatever they are told of delivery rates. The
//! contract of all controllers knows no rates.

use core::time::Duration;

use fairpath_cc::{CATALOGUE, Controller, by_name};
use fairpath_core::{
    Ack, Bitrate, ByteCount, Congestion, CongestionSignal, Groups, LossSample, LostPacket, PathId, RateSample, Sent,
    Timestamp,
};
use proptest::prelude::*;

fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().filter(|entry| entry.is_rate_based).map(|entry| entry.name)
}
const DATAGRAM: ByteCount = ByteCount::new(1_200);

/// Two datagrams.
const WINDOW_MIN: ByteCount = ByteCount::new(2_400);

#[derive(Clone, Debug)]
enum Op {
    Wait {
        millis: u64,
    },
    Send {
        path: u32,
        idle: bool,
    },
    Ack {
        path: u32,
        packets: u64,
        rtt_ms: u64,
        interval_ms: u64,
        behind: u64,
        in_flight: u64,
        app_limited: bool,
        lost: u64,
    },
    Lose {
        path: u32,
        skipped: u64,
        tx_in_flight: u64,
        lost: u64,
    },
    Congest {
        path: u32,
        ecn: bool,
        in_flight: u64,
        lost: u64,
        persistent: bool,
    },
    Group {
        together: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let path = 0u32..2;
    let packets = 0u64..2_000;
    let ack = (
        path.clone(),
        1u64..20,
        0u64..300,
        0u64..300,
        packets.clone(),
        packets.clone(),
        prop::bool::weighted(0.2),
        0u64..50,
    );
    prop_oneof![
        20 => ack.prop_map(|(path, packets, rtt_ms, interval_ms, behind, in_flight, app_limited, lost)| {
            Op::Ack { path, packets, rtt_ms, interval_ms, behind, in_flight, app_limited, lost }
        }),
        5 => prop_oneof![9 => 0u64..200, 1 => 0u64..20_000].prop_map(|millis| Op::Wait { millis }),
        3 => (path.clone(), 0u64..3, packets.clone(), packets.clone())
            .prop_map(|(path, skipped, tx_in_flight, lost)| Op::Lose { path, skipped, tx_in_flight, lost }),
        3 => (path.clone(), any::<bool>(), packets.clone(), packets, prop::bool::weighted(0.2))
            .prop_map(|(path, ecn, in_flight, lost, persistent)| Op::Congest { path, ecn, in_flight, lost, persistent }),
        2 => (path, any::<bool>()).prop_map(|(path, idle)| Op::Send { path, idle }),
        1 => any::<bool>().prop_map(|together| Op::Group { together }),
    ]
}

struct Subject {
    controller: Box<dyn Controller>,
    now: Timestamp,
    delivered: [ByteCount; 2],
    numbers: [u64; 2],
}

impl Subject {
    fn new(name: &str) -> Self {
        let mut controller = by_name(name).unwrap();
        let now = Timestamp::from_secs(1);
        (0..2).for_each(|path| controller.on_path_opened(PathId::new(path), DATAGRAM, now));
        Self { controller, now, delivered: [ByteCount::ZERO; 2], numbers: [0; 2] }
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        match *op {
            Op::Wait { millis } => self.now = now + Duration::from_millis(millis),
            Op::Send { path, idle } => {
                let in_flight = if idle { DATAGRAM } else { DATAGRAM * 5 };
                self.controller.on_sent(PathId::new(path), &Sent { now, bytes: DATAGRAM, in_flight });
            }
            Op::Ack { path, packets, rtt_ms, interval_ms, behind, in_flight, app_limited, lost } => {
                let id = PathId::new(path);
                let delivered = &mut self.delivered[path as usize];
                for left in (0..packets).rev() {
                    *delivered += DATAGRAM;
                    let prior_delivered = delivered.saturating_sub(DATAGRAM * (behind + 1));
                    let sample = |rate| RateSample {
                        rate,
                        delivered: *delivered - prior_delivered,
                        interval: Duration::from_millis(interval_ms),
                        prior_delivered,
                        app_limited,
                        tx_in_flight: DATAGRAM * in_flight,
                        lost: DATAGRAM * lost,
                    };
                    let rate = (*delivered - prior_delivered).per(Duration::from_millis(interval_ms));
                    let ack = Ack {
                        now,
                        sent_at: now - Duration::from_millis(rtt_ms),
                        bytes: DATAGRAM,
                        in_flight: DATAGRAM * (in_flight + left + 1),
                        window_limited: lost % 2 == 0,
                        rtt: None,
                        rate: rate.map(sample),
                    };
                    self.controller.on_ack(id, &ack);
                }
                self.controller.on_ack_end(id, now);
            }
            Op::Lose { path, skipped, tx_in_flight, lost } => {
                let number = &mut self.numbers[path as usize];
                *number += 1 + skipped;
                let (tx_in_flight, lost) = (DATAGRAM * tx_in_flight, DATAGRAM * lost);
                let sample = LossSample { app_limited: skipped == 2, tx_in_flight, lost };
                let packet = LostPacket { now, sent_at: now, number: *number, bytes: DATAGRAM, sample };
                self.controller.on_lost(PathId::new(path), &packet);
            }
            Op::Congest { path, ecn, in_flight, lost, persistent } => {
                let signal = if ecn { CongestionSignal::Ecn } else { CongestionSignal::Loss };
                let (in_flight, lost) = (DATAGRAM * in_flight, DATAGRAM * lost);
                let event = Congestion { now, sent_at: now, signal, lost, in_flight, persistent };
                self.controller.on_congestion(PathId::new(path), &event);
            }
            Op::Group { together } => {
                let paths = [0, 1].map(PathId::new);
                self.controller.on_groups(&if together { Groups::one(paths) } else { Groups::singletons(paths) });
            }
        }
    }

    fn windows(&self) -> [ByteCount; 2] {
        [0, 1].map(|path| self.controller.window(PathId::new(path)))
    }

    fn pacing_rates(&self) -> [Option<Bitrate>; 2] {
        [0, 1].map(|path| self.controller.pacing_rate(PathId::new(path)))
    }
}

proptest! {
    #[test]
    fn windows_have_bounds_and_no_rate_is_zero(ops in prop::collection::vec(op(), 1..200)) {
        for name in names() {
            let mut subject = Subject::new(name);
            for op in &ops {
                let (windows, rates) = (subject.windows(), subject.pacing_rates());
                subject.apply(op);
                for window in subject.windows() {
                    prop_assert!((WINDOW_MIN..ByteCount::new(1 << 40)).contains(&window), "{name}: {window}");
                }
                for (old, new) in rates.into_iter().zip(subject.pacing_rates()) {
                    // Once there is a rate there always is one, and a path is never stopped by it.
                    prop_assert!(old.is_none() || new.is_some());
                    prop_assert!(new != Some(Bitrate::ZERO), "{name}");
                }
                if let Op::Congest { .. } | Op::Lose { .. } | Op::Group { .. } = op {
                    prop_assert!(subject.windows().into_iter().zip(windows).all(|(new, old)| new <= old), "{name}");
                }
            }
        }
    }

    #[test]
    fn the_same_operations_give_the_same_bits(ops in prop::collection::vec(op(), 1..200)) {
        for name in names() {
            let run = || {
                let mut subject = Subject::new(name);
                ops.iter().for_each(|op| subject.apply(op));
                format!("{:?}", subject.controller)
            };
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn a_path_in_a_group_of_its_own_does_not_see_the_other(ops in prop::collection::vec(op(), 1..200)) {
        let apart = |op: &Op| !matches!(op, Op::Group { .. });
        let alone = |op: &Op| match op {
            Op::Send { path, .. } | Op::Ack { path, .. } | Op::Lose { path, .. } | Op::Congest { path, .. } => *path == 0,
            Op::Wait { .. } => true,
            Op::Group { .. } => false,
        };
        let run = |name, keep: &dyn Fn(&Op) -> bool| {
            let mut subject = Subject::new(name);
            subject.apply(&Op::Group { together: false });
            ops.iter().filter(|op| keep(op)).for_each(|op| subject.apply(op));
            (subject.windows()[0], subject.pacing_rates()[0])
        };
        let bbr = run("bbr", &apart);
        prop_assert_eq!(run("bbr", &alone), bbr);
        prop_assert_eq!(run("coupled_bbr", &apart), bbr);
        let bbr3 = run("bbr3", &apart);
        prop_assert_eq!(run("bbr3", &alone), bbr3);
        prop_assert_eq!(run("coupled_bbr3", &apart), bbr3);
    }
}
