//! The cost of one acknowledgement in congestion avoidance, by algorithm and number of paths, all in
//! one group. The goals: 50 ns with two paths, 150 ns with eight. The default of live connections, which also asks which
//! losses are congestion, has a row of its own.

use core::time::Duration;
use std::hint::black_box;

use criterion::Criterion;
use fairpath_cc::{AimdConfig, Controller, Losses, NAMES, Parameters, by_name_with};
use fairpath_core::{
    Ack, Bitrate, ByteCount, Congestion, CongestionSignal, Groups, PathId, RateSample, Rtt, Timestamp,
};

const DATAGRAM: ByteCount = ByteCount::new(1_200);

fn acknowledgement(now: Timestamp, rtt: Duration) -> Ack {
    let rtts = Rtt::first(rtt);
    // A datagram each microsecond on all paths together.
    let delivered = DATAGRAM * (now.as_nanos() / 1_000);
    let rate = RateSample {
        rate: Bitrate::from_mbps(48),
        delivered: DATAGRAM * 100,
        interval: rtt,
        prior_delivered: delivered,
        app_limited: false,
        tx_in_flight: DATAGRAM * 100,
        lost: ByteCount::ZERO,
    };
    Ack {
        now,
        sent_at: now - rtt,
        bytes: DATAGRAM,
        in_flight: DATAGRAM * 100,
        window_limited: true,
        rtt: Some(rtts),
        rate: Some(rate),
    }
}

/// Paths in congestion avoidance with windows and round-trip times that all differ.
fn in_avoidance(name: &str, losses: Losses, paths: u32) -> Box<dyn Controller> {
    let parameters = Parameters { aimd: AimdConfig { losses, ..AimdConfig::default() }, ..Parameters::default() };
    let mut controller = by_name_with(name, &parameters).expect("a name of the catalogue");
    let ids = || (0..paths).map(PathId::new);
    for path in ids() {
        controller.on_path_opened(path, DATAGRAM, Timestamp::ZERO);
        let rtt = Duration::from_millis(20 + 7 * u64::from(path.get()));
        for at in 0..90 + 10 * u64::from(path.get()) {
            let now = Timestamp::from_millis(1_000 + at);
            controller.on_ack(path, &acknowledgement(now, rtt));
            controller.on_ack_end(path, now);
        }
        let now = Timestamp::from_secs(2);
        let signal = CongestionSignal::Loss;
        let lost = Congestion { now, sent_at: now, signal, lost: DATAGRAM, in_flight: DATAGRAM, persistent: false };
        controller.on_congestion(path, &lost);
        let now = Timestamp::from_secs(3);
        controller.on_ack(path, &acknowledgement(now, rtt));
        controller.on_ack_end(path, now);
    }
    controller.on_groups(&Groups::one(ids()));
    controller
}

fn acknowledgements(criterion: &mut Criterion) {
    let rows = NAMES.iter().map(|name| (*name, *name, Losses::Congestion));
    for (row, name, losses) in rows.chain([("default", "coupled_cubic", Losses::ByQueue)]) {
        let mut group = criterion.benchmark_group(row);
        for paths in [1, 2, 4, 8, 16] {
            let mut controller = in_avoidance(name, losses, paths);
            let mut round = 0u64;
            group.bench_function(format!("{paths} paths"), |bencher| {
                bencher.iter(|| {
                    // Each acknowledgement changes the smoothed time, as real ones do.
                    round += 1;
                    let path = PathId::new((round % u64::from(paths)) as u32);
                    let rtt = Duration::from_nanos(20_000_000 + round % 1000);
                    let ack = acknowledgement(Timestamp::from_nanos(4_000_000_000 + round * 1000), rtt);
                    controller.on_ack(black_box(path), black_box(&ack));
                    controller.on_ack_end(black_box(path), ack.now);
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
    acknowledgements(&mut criterion);
    criterion.final_summary();
}
