//! What one sample costs, with the poll that follows it, by detector and number of paths: mean
//! over all that a detector does from time to time. The goal: 100 ns.
//!
//! Each path has a sample every 2 ms, as a path of 12 Mbit/s has where every second packet is
//! acknowledged; on faster paths what is done from time to time is spread over more samples.

use core::time::Duration;
use std::hint::black_box;

use criterion::Criterion;
use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::{NAMES, by_name};

/// Delays in microseconds of a queue that grows and drains, for 8.192 s.
fn delays(path: u32) -> Vec<u64> {
    let (mut queue, mut state) = (0, u64::from(path));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        queue = if state >> 54 == 0 { 0 } else { queue + (state >> 57) };
        50_000 + queue
    };
    (0..4096).map(|_| next()).collect()
}

fn samples(criterion: &mut Criterion) {
    for name in NAMES {
        let mut group = criterion.benchmark_group(*name);
        for paths in [2, 4, 8] {
            let mut detector = by_name(name).expect("a name of the catalogue");
            (0..paths).for_each(|id| detector.on_path_opened(PathId::new(id), Timestamp::ZERO));
            // Paths of one parity share a queue.
            let delays = [delays(0), delays(1)];
            let mut round = 0u64;
            group.bench_function(format!("{paths} paths"), |bencher| {
                bencher.iter(|| {
                    let id = (round % u64::from(paths)) as u32;
                    let step = round / u64::from(paths);
                    let rtt = Duration::from_micros(delays[(id % 2) as usize][(step % 4096) as usize]);
                    let now = Timestamp::from_micros(step * 2_000 + u64::from(id) * 10);
                    detector.on_sample(black_box(PathId::new(id)), black_box(&DelaySample { now, rtt, one_way: None }));
                    black_box(detector.poll(now));
                    round += 1;
                });
            });
        }
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    samples(&mut criterion);
    criterion.final_summary();
}
