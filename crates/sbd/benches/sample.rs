//! The cost of a sample with the poll that follows it, by detector and number of paths, and the
//! cost of a decision.
//!
//! The cost of a sample is a mean over all that a detector does from time to time; the goal is 100
//! ns. The cost of a decision is that of the poll at which a detector has to decide, with two
//! paths.
//!
//! Each path has a sample every 2 ms, like a path of 12 Mbit/s with an acknowledgement for every
//! second packet. On faster paths periodic work is spread over more samples.

use core::time::Duration;
use std::hint::black_box;

use criterion::{BatchSize, Criterion};
use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::{Detector, NAMES, by_name};

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

/// The detectors that decide from time to time: how often, in ms, as they are published.
const DECIDE_EVERY_MS: [(&str, u64); 2] = [("trendline", 5_000), ("ssc_rfc8382", 350)];

/// Two paths with 25 s of samples, until just before the next decision, and the time of that.
fn before_a_decision(name: &str, every_ms: u64, delays: &[Vec<u64>; 2]) -> (Box<dyn Detector>, Timestamp) {
    let mut detector = by_name(name).expect("a name of the catalogue");
    (0..2).for_each(|id| detector.on_path_opened(PathId::new(id), Timestamp::ZERO));
    let decision_ms = 25_000 / every_ms * every_ms;
    for at_ms in (2..decision_ms).step_by(2) {
        let now = Timestamp::from_millis(at_ms);
        for (id, delays) in (0..).zip(delays) {
            let rtt = Duration::from_micros(delays[(at_ms / 2) as usize % delays.len()]);
            detector.on_sample(PathId::new(id), &DelaySample { now, rtt, one_way: None });
        }
        black_box(detector.poll(now));
    }
    (detector, Timestamp::from_millis(decision_ms))
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decision");
    let delays = [delays(0), delays(1)];
    for (name, every_ms) in DECIDE_EVERY_MS {
        group.bench_function(name, |bencher| {
            let prepared = || before_a_decision(name, every_ms, &delays);
            bencher.iter_batched_ref(prepared, |(detector, now)| black_box(detector.poll(*now)), BatchSize::SmallInput);
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    samples(&mut criterion);
    decisions(&mut criterion);
    criterion.final_summary();
}
