//! The cost of asking for the path of the next packet, by scheduler and number of paths.
//!
//! The goals: 60 ns with two paths, 200 ns with eight.

use core::time::Duration;
use std::hint::black_box;

use criterion::Criterion;
use fairpath_engine::{ByteCount, ConnectionView, Coupling, Engine, EngineConfig, PathId, PathUse, Timestamp};

const DATAGRAM: ByteCount = ByteCount::new(1_200);

/// Paths with some of their windows in flight, whose round-trip times all differ.
fn engine(scheduler: &str, paths: u32) -> Engine {
    let config = EngineConfig { scheduler: scheduler.into(), coupling: Coupling::Always, ..EngineConfig::default() };
    let mut engine = config.build().expect("a name of the catalogue");
    for path in (0..paths).map(PathId::new) {
        engine.on_path_opened(path, DATAGRAM, Timestamp::ZERO);
        engine.set_use(path, PathUse::Open);
        let rtt = Duration::from_millis(20 + 7 * u64::from(path.get()));
        for number in 0..4 {
            engine.on_sent(path, number, DATAGRAM, Timestamp::ZERO);
            engine.on_ack(path, number, Timestamp::ZERO + rtt);
            engine.on_ack_end(path, Duration::ZERO, Timestamp::ZERO + rtt);
        }
        for number in 4..8 {
            engine.on_sent(path, number, DATAGRAM, Timestamp::from_millis(100));
        }
    }
    engine
}

/// The event on a path since the last choice. It only invalidates views, and costs nothing itself.
#[derive(Clone, Copy)]
enum Since {
    /// A packet left: the view of its path is stale.
    Sent,
    /// An acknowledgement came: the windows in the views of all paths are stale, too.
    Acked,
}

impl Since {
    fn happens(self, engine: &mut Engine, path: PathId, now: Timestamp) {
        engine.set_use(path, PathUse::Open);
        if matches!(self, Self::Acked) {
            // No reduction can be undone here; the call only invalidates the windows.
            engine.on_spurious_congestion(path, now);
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let view = ConnectionView { unsent: Some(ByteCount::new(50_000)), ..ConnectionView::default() };
    let now = Timestamp::from_millis(110);
    for scheduler in EngineConfig::SCHEDULERS {
        for paths in [2, 8] {
            for (since, name) in [(Since::Sent, "after a packet"), (Since::Acked, "after an acknowledgement")] {
                let mut engine = engine(scheduler, paths);
                let mut path = 0;
                criterion.bench_function(&format!("{scheduler}, {paths} paths, {name}"), |bencher| {
                    bencher.iter(|| {
                        path = (path + 1) % paths;
                        since.happens(&mut engine, PathId::new(path), now);
                        engine.pick(black_box(&view), now)
                    });
                });
            }
        }
    }
    criterion.final_summary();
}
