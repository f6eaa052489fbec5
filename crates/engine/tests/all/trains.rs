//! Hosts that tell of trains of packets at once, and those that tell of each packet: nothing differs.

use core::time::Duration;

use fairpath_engine::{ByteCount, CongestionSignal, Engine, EngineConfig, PathId, PathUse, Timestamp};
use proptest::prelude::*;

const MTU: ByteCount = ByteCount::new(1200);
const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

fn engine(congestion: &str) -> Engine {
    let mut engine = EngineConfig { congestion: congestion.into(), ..EngineConfig::live() }.build().unwrap();
    for path in PATHS {
        engine.on_path_opened(path, MTU, Timestamp::ZERO);
        engine.set_use(path, PathUse::Open);
    }
    engine
}

/// Packets that leave on a path at once, and what becomes of them.
#[derive(Clone, Debug)]
struct Train {
    path: usize,
    packets: u64,
    /// The size of the last one, in bytes.
    last: u64,
    rtt: Duration,
    lost: u64,
    /// How long nothing happens then.
    pause: Duration,
}

fn train() -> impl Strategy<Value = Train> {
    let pause = prop_oneof![4 => Just(0), 1 => 1..3_000_u64].prop_map(Duration::from_millis);
    (0..2_usize, 1..60_u64, 1..=1200_u64, 2..200_u64, prop_oneof![4 => Just(0), 1 => 1..4_u64], pause).prop_map(
        |(path, packets, last, rtt, lost, pause)| {
            let rtt = Duration::from_millis(rtt);
            Train { path, packets, last, rtt, lost, pause }
        },
    )
}

/// All that a host can see of a connection.
fn seen(engine: &Engine, now: Timestamp) -> String {
    let verdicts = PATHS.map(|path| engine.verdict(path, now));
    format!("{verdicts:?} {:?}", engine.snapshots(now).collect::<Vec<_>>())
}

/// The same connection, told of in two ways.
struct Twins {
    one_by_one: Engine,
    in_trains: Engine,
    now: Timestamp,
    next: [u64; 2],
}

impl Twins {
    fn run(&mut self, train: &Train) {
        let Self { one_by_one, in_trains, now, next } = self;
        let path = PATHS[train.path];
        let numbers = next[train.path]..next[train.path] + train.packets;
        next[train.path] = numbers.end;
        let size = |number| if number + 1 == numbers.end { ByteCount::new(train.last) } else { MTU };
        numbers.clone().for_each(|number| one_by_one.on_sent(path, number, size(number), *now));
        in_trains.on_train_sent(path, numbers.clone().map(|number| (number, size(number))), *now);
        let sent_at = *now;
        *now = sent_at + train.rtt;
        for engine in [one_by_one, in_trains] {
            let lost = train.lost.min(train.packets - 1);
            numbers.clone().skip(lost as usize).for_each(|number| engine.on_ack(path, number, *now));
            engine.on_ack_end(path, Duration::ZERO, *now);
            numbers.clone().take(lost as usize).for_each(|number| engine.on_lost(path, number, *now));
            if lost > 0 {
                engine.on_congestion(path, CongestionSignal::Loss, sent_at, false, *now);
            }
        }
        *now = *now + train.pause;
    }
}

proptest! {
    #[test]
    fn a_train_is_the_same_as_its_packets_one_by_one(trains in prop::collection::vec(train(), 1..60)) {
        for congestion in EngineConfig::CONGESTION {
            let (one_by_one, in_trains) = (engine(congestion), engine(congestion));
            let mut twins = Twins { one_by_one, in_trains, now: Timestamp::from_secs(1), next: [0; 2] };
            for (at, train) in trains.iter().enumerate() {
                twins.run(train);
                let [expected, found] = [&twins.one_by_one, &twins.in_trains].map(|engine| seen(engine, twins.now));
                prop_assert_eq!(expected, found, "{} after train {}: {:?}", congestion, at, train);
            }
        }
    }
}
