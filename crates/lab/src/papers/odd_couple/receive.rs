//! A small receive window: who holds its oldest data is penalised (slide 8).
//!
//! # Claim
//!
//! If the receive window limits the transmission, the window of the path that is not selected is halved, which is safe,
//! and the paths are used in turns.
//!
//! # Topology
//!
//! ```text
//!            ┌── 30 Mbit/s, 3,000 packets ──┐
//!   sender ──┤                              ├── receiver with a small window
//!            └── 30 Mbit/s, 3,000 packets ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates, queues | 30 Mbit/s and 3,000 packets each | paper |
//! | round-trip time | 100 ms | paper |
//! | congestion control, scheduling | NewReno, uncoupled; min-RTT | paper |
//! | send buffer | 8 MB of payload | assumed, as in an independent model |
//! | receive window | half of the receive buffer by Linux's accounting | assumed, as there |
//! | jitter | 1 ms beside the model, which has paths that take turns; none where turns are judged, as two equal paths lock without the penalty | assumed |
//! | duration | 120 s, measured from 20 s on | assumed |
//!
//! # Deviations
//!
//! - The curves are pictures only; beside ours stands an independent model of the same network.
//! - What holds back the window is sent again as Linux does it, where its path is four times as slow or holds little.

use fairpath_scenario::Remedies;

use super::couple::{Couple, GROWTH, NONE};
use super::trace::Trace;
use crate::table::Source;
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/receive", include_str!("receive.rs"), run);

/// The receive window in kB, and what the independent model has without the penalty and with it, in Mbit/s.
const WINDOWS: [(u64, [f64; 2]); 7] = [
    (700, [36.0, 46.0]),
    (1_000, [42.0, 54.0]),
    (1_500, [50.0, 55.0]),
    (2_000, [52.0, 56.0]),
    (3_000, [54.0, 57.0]),
    (4_000, [55.0, 57.0]),
    (6_000, [56.0, 58.0]),
];

/// The payload rate of both paths, in Mbit/s: 1,448 of 1,500 bytes. A window that allows 0.95 of it is
/// no limit.
const BOTH_MBPS: f64 = 60.0 * 1_448.0 / 1_500.0;
const UNLIMITED: f64 = 0.95;

const COLUMNS: [(&str, &str); 8] = [
    ("plain", "Mbit/s"),
    ("penalised", "Mbit/s"),
    ("plain, turns", ""),
    ("penalised, turns", ""),
    ("plain, no jitter", "Mbit/s"),
    ("penalised, no jitter", "Mbit/s"),
    ("plain, no jitter, turns", ""),
    ("penalised, no jitter, turns", ""),
];

/// The jitter in µs, and whether who holds the oldest data is penalised.
const CASES: [(u64, bool); 4] = [(1_000, false), (1_000, true), (0, false), (0, true)];

/// More than chance gives, in Mbit/s.
const HELPS: f64 = 1.0;

fn run(context: &Context) -> Result<Report, Failure> {
    let windows = context.pick(vec![WINDOWS[0]], WINDOWS.to_vec());
    let couple = |receive_kb: u64, (jitter_us, penalty): (u64, bool)| Couple {
        receive_kb: Some(receive_kb),
        remedies: Remedies { penalty, ..NONE },
        jitter_us,
        ..Couple::plain(8_000)
    };
    let cases: Vec<Couple> = windows.iter().flat_map(|(kb, _)| CASES.map(|case| couple(*kb, case))).collect();
    let seen = context.sweep(&cases, &context.seeds(context.pick(2, 5)), |couple, seed| {
        let (trace, mbps) = Trace::with_goodput(couple, seed)?;
        Ok((mbps, trace.seen(couple).turns))
    })?;
    let mut table = Table::new(
        "throughput",
        "Two paths of 30 Mbit/s with deep queues and min-RTT, by the receive window",
        &["receive window"],
        &COLUMNS,
    );
    for ((kb, model), runs) in windows.iter().zip(seen.chunks(CASES.len())) {
        let rate = |at: usize| Cell::of(runs[at].iter().map(|run| run.0));
        let turns = |at: usize| Cell::of(runs[at].iter().map(|run| run.1));
        let beside = |at: usize| rate(at).elsewhere(Source::Model, model[at]);
        let cells = [beside(0), beside(1), turns(0), turns(1), rate(2), rate(3), turns(2), turns(3)];
        table.row([&name(*kb)], cells);
    }
    let claim =
        "With the penalty the paths are used in turns, and carry more. (Without jitter, where they lock otherwise.)";
    let mut helps = Verdict::new("in turns", claim);
    let mut model = Verdict::ours("as the model", "Both are as in an independent model, within 10 %.");
    for (kb, expected) in &windows {
        let of = |column: &str| table.estimate(&[&name(*kb)], column);
        if of("plain, no jitter").mean < UNLIMITED * BOTH_MBPS {
            let gain = of("penalised, no jitter") - of("plain, no jitter");
            let more = of("penalised, no jitter, turns") - of("plain, no jitter, turns");
            helps = helps.at_least(&format!("{kb} kB: turns in two minutes, penalised − plain"), more, 10.0).at_least(
                &format!("{kb} kB: penalised − plain, in Mbit/s"),
                gain,
                HELPS,
            );
        }
        for (column, expected) in ["plain", "penalised"].into_iter().zip(expected) {
            let ratio = of(column) / *expected;
            model = model.between(&format!("{kb} kB: {column}, in parts of the model's"), ratio, 0.9, 1.1);
        }
    }
    Ok(Report {
        tables: vec![table],
        figures: Vec::new(),
        verdicts: vec![helps, model.because(GROWTH)],
        ..Report::default()
    })
}

fn name(kb: u64) -> String {
    format!("{kb} kB")
}
