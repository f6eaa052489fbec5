//! Large queues enforce the interference (slides 6 and 7).
//!
//! # Claim
//!
//! Large queues enforce the interference of loss-based congestion control and min-RTT scheduling: with short ones both
//! paths are used, and with deep ones a path starves.
//!
//! # Topology
//!
//! ```text
//!            ┌── 30 Mbit/s, 60 to 3,000 packets ──┐
//!   sender ──┤                                    ├── receiver
//!            └── 30 Mbit/s, 60 to 3,000 packets ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates, round-trip time | 30 Mbit/s each, 100 ms | paper |
//! | queues | 60, 125, 250, 500, 1,000 and 3,000 packets | paper (the last of them), and assumed |
//! | send buffer | 2 MB of payload | assumed |
//! | congestion control, scheduling | NewReno, uncoupled; min-RTT | paper |
//! | duration | 120 s, in the quick form 60 s, measured from 20 s on | assumed |
//!
//! # Deviations
//!
//! - The slides say so and print no numbers: these are ours.

use super::couple::{Couple, DEEP, ONE_PATH};
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/queues", include_str!("queues.rs"), run);

const QUEUES: [usize; 6] = [60, 125, 250, 500, 1_000, DEEP];

fn run(context: &Context) -> Result<Report, Failure> {
    let queues = context.pick(vec![QUEUES[0], QUEUES[2], QUEUES[5]], QUEUES.to_vec());
    let seconds = context.pick(60, 120);
    let cases: Vec<Couple> =
        queues.iter().map(|queue| Couple { queue: *queue, seconds, ..Couple::plain(2_000) }).collect();
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 5)), Couple::goodput)?;
    let mut table = Table::new(
        "throughput",
        "Two paths of 30 Mbit/s and a send buffer of 2 MB, by the queue of each",
        &["queue"],
        &[("both paths", "Mbit/s")],
    );
    let name = |queue: usize| format!("{queue} packets");
    for (queue, runs) in queues.iter().zip(&seen) {
        table.row([&name(*queue)], [Cell::of(runs.iter().copied())]);
    }
    let of = |queue: usize| table.estimate(&[&name(queue)], "both paths");
    let both = 2.0 * ONE_PATH;
    let verdict = Verdict::new("deep queues", "Large queues enforce the interference.")
        .at_least("250 packets, one bandwidth-delay product, in parts of both paths", of(250) / both, 0.95)
        .at_most("3,000 packets, in parts of both paths", of(DEEP) / both, 0.6)
        .at_most("3,000 packets, in parts of 250", of(DEEP) / of(250), 0.6);
    Ok(Report { tables: vec![table], verdicts: vec![verdict], ..Report::default() })
}
