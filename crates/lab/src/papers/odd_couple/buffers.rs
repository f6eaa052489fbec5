//! Throughput against send and receive buffers, over one path and two (slides 4 and 5).
//!
//! # Claim
//!
//! A buffer that is enough for one path is by far not enough for two: loss-based congestion control fills the deep
//! queue of one path, and min-RTT scheduling leaves the other one idle.
//!
//! # Topology
//!
//! ```text
//!            ┌── 30 Mbit/s, 3,000 packets ──┐
//!   sender ──┤                              ├── receiver
//!            └── 30 Mbit/s, 3,000 packets ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates | 30 Mbit/s each | paper |
//! | queues | 3,000 packets | paper |
//! | round-trip time | 100 ms, from the bandwidth-delay product of 366 kByte | paper |
//! | congestion control, scheduling | NewReno, uncoupled; min-RTT | paper |
//! | send buffer | what of it is payload, 0.63 by Linux's accounting | assumed, as in an independent model |
//! | duration | 120 s, in the quick form 60 s, measured from 20 s on | assumed |
//!
//! # Deviations
//!
//! - What the buffers hold is given as payload: the accounting of memory is Linux's own.
//! - Both paths start at once. Nothing but the data of this connection is on them.

use super::couple::{Couple, ONE_PATH};
use super::trace::Trace;
use crate::table::Source;
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/buffers", include_str!("buffers.rs"), run);

/// Payload of the send buffer, in kB, and what two paths carry by the independent model, in Mbit/s.
const BUFFERS: [(u64, f64); 8] = [
    (700, 36.0),
    (1_000, 42.0),
    (1_500, 50.0),
    (2_000, 52.0),
    (3_000, 54.0),
    (4_000, 55.0),
    (6_000, 56.0),
    (8_000, 58.0),
];

/// A sender: the congestion control, the scheduler, over how many paths, and how far their delays spread, in µs.
const SENDERS: [(&str, &str, &str, usize, u64); 6] = [
    ("one path", "reno", "min_rtt", 1, 0),
    ("min_rtt", "reno", "min_rtt", 2, 0),
    ("min_rtt, jitter of 1 ms", "reno", "min_rtt", 2, 1_000),
    ("ecf", "reno", "ecf", 2, 0),
    ("arrival", "reno", "arrival", 2, 0),
    ("BBRv1, min_rtt", "bbr", "min_rtt", 2, 0),
];

fn run(context: &Context) -> Result<Report, Failure> {
    let buffers: Vec<(u64, f64)> = context.pick(vec![BUFFERS[0], BUFFERS[3]], BUFFERS.to_vec());
    let seconds = context.pick(60, 120);
    let case = |kilobytes: u64| {
        SENDERS.map(|(_, congestion, scheduler, paths, jitter_us)| {
            let base: &[u64] = if paths == 1 { &[100] } else { &[100, 100] };
            Couple { congestion, scheduler, base, jitter_us, seconds, ..Couple::plain(kilobytes) }
        })
    };
    let cases: Vec<Couple> = buffers.iter().flat_map(|(kilobytes, _)| case(*kilobytes)).collect();
    let seeds = context.seeds(context.pick(2, 5));
    let seen = context.sweep(&cases, &seeds, Couple::goodput)?;
    let mut table = Table::new(
        "throughput",
        "Two paths of 30 Mbit/s with deep queues, by the payload that the send buffer holds",
        &["send buffer"],
        &SENDERS.map(|(title, ..)| (title, "Mbit/s")),
    );
    for ((kilobytes, model), runs) in buffers.iter().zip(seen.chunks(SENDERS.len())) {
        let mut cells = core::array::from_fn::<_, { SENDERS.len() }, _>(|at| Cell::of(runs[at].iter().copied()));
        cells[1] = cells[1].clone().elsewhere(Source::Model, *model);
        table.row([&format!("{kilobytes} kB")], cells);
    }
    let unequal =
        ["min_rtt", "arrival"].map(|scheduler| Couple { scheduler, base: &[100, 200], seconds, ..Couple::plain(700) });
    let unequal_seen = context.sweep(&unequal, &seeds, Couple::goodput)?;
    let mut starved = Table::new(
        "unequal",
        "Round trips of 100 and 200 ms, a send buffer of 700 kB",
        &["scheduler"],
        &[("both paths", "Mbit/s")],
    );
    for (case, runs) in unequal.iter().zip(&unequal_seen) {
        starved.row([case.scheduler], [Cell::of(runs.iter().copied())]);
    }
    let printed = printed(context, &seeds)?;
    let verdicts = verdicts(&buffers, &table, &starved, &printed);
    Ok(Report { tables: vec![table, starved, printed], verdicts, ..Report::default() })
}

/// With round trips of 100 and 200 ms and 700 kB in flight, in Mbit/s. The first path is full with 100 ms of its rate, and
/// the second carries the rest of the buffer once in 200 ms.
const UNEQUAL_AT_MOST: f64 = ONE_PATH + (700e3 * 8e-6 - 0.1 * ONE_PATH) / 0.2;

const SEND_BUFFER: &str = "one path, a send buffer of 630 kB";
const RECEIVE_BUFFER: &str = "one path, a receive window of 384 kB";
const BOTH: &str = "two paths, a send buffer of 630 kB";
const RENO_QUEUES: &str = "two paths, NewReno, 2 MB";
const BBR_QUEUES: &str = "two paths, BBRv1, 2 MB";

/// The buffers that the slides print, and the queues that NewReno and BBR leave.
fn printed(context: &Context, seeds: &[u64]) -> Result<Table, Failure> {
    let seconds = context.pick(60, 120);
    let one_path: Couple = Couple { base: &[100], seconds, ..Couple::plain(630) };
    let cases = [
        (SEND_BUFFER, one_path),
        // Half of 768 kB, by the same accounting.
        (RECEIVE_BUFFER, Couple { receive_kb: Some(384), send_kb: 8_000, ..one_path }),
        (BOTH, Couple { seconds, ..Couple::plain(630) }),
        (RENO_QUEUES, Couple { jitter_us: 1_000, seconds, ..Couple::plain(2_000) }),
        (BBR_QUEUES, Couple { congestion: "bbr", jitter_us: 1_000, seconds, ..Couple::plain(2_000) }),
    ];
    let seen = context.sweep(&cases.map(|(_, case)| case), seeds, |couple, seed| {
        let (trace, mbps) = Trace::with_goodput(couple, seed)?;
        Ok((mbps, trace.seen(couple).busy_ms))
    })?;
    let columns = [("goodput", "Mbit/s"), (ROUND_TRIP, "ms")];
    let mut table = Table::new("printed", "The buffers that the slides print, and queues", &["case"], &columns);
    for ((name, _), runs) in cases.iter().zip(&seen) {
        table.row([name], [Cell::of(runs.iter().map(|run| run.0)), Cell::of(runs.iter().map(|run| run.1))]);
    }
    Ok(table)
}

const ROUND_TRIP: &str = "round trip of the busier path";

fn verdicts(buffers: &[(u64, f64)], table: &Table, starved: &Table, printed: &Table) -> Vec<Verdict> {
    let name = |kilobytes: u64| format!("{kilobytes} kB");
    let small = name(buffers[0].0);
    let of = |buffer: &str, column: &str| table.estimate(&[buffer], column);
    let mut as_model = Verdict::ours("as the model", "Two paths carry what an independent model says, within 10 %.");
    let mut ours =
        Verdict::ours("arrival", "With `arrival` the smallest of the buffers is enough for 0.95 of both paths.");
    for (kilobytes, model) in buffers {
        let ratio = of(&name(*kilobytes), "min_rtt") / *model;
        as_model = as_model.between(&format!("{kilobytes} kB, in parts of the model's"), ratio, 0.9, 1.1);
    }
    ours = ours.at_least("700 kB, in parts of two paths", of(&small, "arrival") / (2.0 * ONE_PATH), 0.95);
    vec![
        Verdict::new("one path is full", "A send buffer of 1 MB, 630 kB of payload, is enough for one path.").at_least(
            "one path, in parts of what it carries",
            printed.estimate(&[SEND_BUFFER], "goodput") / ONE_PATH,
            0.98,
        ),
        Verdict::new("receive buffer", "A receive buffer of 768 kB, a window of half of it, is enough for one path.")
            .at_least(
                "one path, in parts of what it carries",
                printed.estimate(&[RECEIVE_BUFFER], "goodput") / ONE_PATH,
                0.98,
            ),
        Verdict::new("two are not", "The same buffer is by far not enough for two paths.").at_most(
            "min_rtt, in parts of two paths",
            printed.estimate(&[BOTH], "goodput") / (2.0 * ONE_PATH),
            0.8,
        ),
        as_model.because(
            "the model's paths take turns for ever, and ours only twice: both smoothed times end at that of the whole buffer in \
             one queue, and without noise the first of equals is taken from then on.",
        ),
        Verdict::new(
            "starvation",
            "Where round trips differ, one path gets nothing for good: its stale time is never beaten.",
        )
        .at_most(
            "100 and 200 ms, in parts of one path",
            starved.estimate(&["min_rtt"], "both paths") / ONE_PATH,
            1.05,
        ),
        ours,
        Verdict::ours("arrival starves nobody", "With `arrival` and round trips of 100 and 200 ms both paths are used.")
            .at_least(
                "100 and 200 ms, 700 kB, in parts of one path",
                starved.estimate(&["arrival"], "both paths") / ONE_PATH,
                1.2,
            )
            .at_least("the same, in parts of what the buffer allows", starved.estimate(&["arrival"], "both paths") / UNEQUAL_AT_MOST, 0.8),
        Verdict::new("BBR avoids queues", "BBR avoids filling queues.")
            .at_most(
                "round trip of the busier path, BBRv1 / NewReno",
                printed.estimate(&[BBR_QUEUES], ROUND_TRIP) / printed.estimate(&[RENO_QUEUES], ROUND_TRIP),
                0.5,
            )
            .at_most("with BBRv1, in parts of the round trip without a queue", printed.estimate(&[BBR_QUEUES], ROUND_TRIP) / 100.0, 2.0),
        Verdict::new("BBR", "BBR avoids full queues and so the misleading choice.").at_least(
            "smallest buffer, BBR − NewReno, in Mbit/s",
            of(&small, "BBRv1, min_rtt") - of(&small, "min_rtt"),
            0.0,
        ),
    ]
}
