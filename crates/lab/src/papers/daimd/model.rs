//! What the paper does not say of its hosts, and how much Table II depends on it.
//!
//! # Claim
//!
//! Ours, because the paper says nothing of acknowledgements, spacing, starts and durations: whatever
//! is assumed of them, DAIMD takes less than LIA, and less than Reno beside it.
//!
//! # Topology
//!
//! ```text
//!               ┌─── A, queue of one bandwidth-delay product ───┐
//!   multipath ──┤                                               ├── multipath
//!               └─── B, queue of one bandwidth-delay product ───┘
//!   Reno 1 ───────── A ──────────────────────────────────────────── Reno 1
//!   Reno 2 ───────── B ──────────────────────────────────────────── Reno 2
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | paths and queues | those of Table II | paper |
//! | as in Table II | each packet acknowledged, no spacing, starts within 100 ms, 5 to 300 s | assumed |
//! | delayed acknowledgements | one for two packets, 25 ms at most | assumed |
//! | spaced | packets at 1.25 of window per round-trip time | assumed |
//! | starts far apart | within 10 s | assumed |
//! | short | from the start to 60 s | assumed |
//! | queue from losses | the longest queue is an average of those at losses, as everywhere but in these experiments | assumed |
//! | cuts again and again | a cut may follow a cut at once: the rule as it is printed | paper |
//!
//! # Deviations
//!
//! None: the paper has no such experiment.

use core::time::Duration;

use fairpath_engine::{Daimd, LongestQueue};
use fairpath_scenario::Transport;

use super::setup::{ALGORITHMS, Case, Seen, as_seen, daimd};
use super::table2::PRINTED;
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("daimd/model", include_str!("model.rs"), run);

/// A way in which the hosts may be different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    AsInTable2,
    DelayedAcks,
    Spaced,
    StartsFarApart,
    Short,
    QueueFromLosses,
    Both,
    CutsAgainAndAgain,
}

use Variant::{AsInTable2, Both, CutsAgainAndAgain, DelayedAcks, QueueFromLosses, Short, Spaced, StartsFarApart};

const VARIANTS: [(Variant, &str); 8] = [
    (AsInTable2, "as in Table II"),
    (DelayedAcks, "delayed acknowledgements"),
    (Spaced, "spaced"),
    (StartsFarApart, "starts far apart"),
    (Short, "short"),
    (QueueFromLosses, "queue from losses"),
    (Both, "queue from losses, delayed"),
    (CutsAgainAndAgain, "cuts again and again"),
];

impl Variant {
    fn of(self, case: Case) -> Case {
        let rule =
            |rule: Daimd| if case.multipath.congestion == "daimd" { daimd(rule) } else { case.multipath.clone() };
        match self {
            AsInTable2 => case,
            DelayedAcks => Case { transport: Transport { ack_every: 2, ..case.transport }, ..case },
            Spaced => Case { transport: Transport { pacing: Some(true), ..case.transport }, ..case },
            StartsFarApart => Case { start_jitter: ms(10_000), ..case },
            Short => Case { warm_up: Duration::ZERO, duration: Duration::from_secs(60), ..case },
            QueueFromLosses => Case { multipath: rule(Daimd { queue: LongestQueue::Adaptive, ..as_seen() }), ..case },
            Both => DelayedAcks.of(QueueFromLosses.of(case)),
            CutsAgainAndAgain => Case { multipath: rule(Daimd { rearmed: f64::INFINITY, ..as_seen() }), ..case },
        }
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(60, 300));
    let mut cases = Vec::new();
    for (variant, _) in VARIANTS {
        for printed in &PRINTED {
            cases.extend(ALGORITHMS.map(|name| variant.of(Case::shared(printed.setting, name, duration))));
        }
    }
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 10)), Case::run)?;

    let settings = PRINTED.map(|printed| printed.setting.name);
    let mut columns: Vec<(&str, &str)> = settings.iter().map(|name| (*name, "Mbit/s")).collect();
    columns.push(("largest part of Reno", ""));
    let mut table = Table::new("variants", "Totals of the multipath flow beside Reno", &["hosts", "flow"], &columns);
    for ((_, name), seen) in VARIANTS.iter().zip(seen.chunks(PRINTED.len() * ALGORITHMS.len())) {
        for (at, algorithm) in ALGORITHMS.iter().enumerate() {
            let runs = || seen.iter().skip(at).step_by(ALGORITHMS.len());
            let totals = runs()
                .zip(&PRINTED)
                .map(|(runs, printed)| Cell::of(runs.iter().map(Seen::total)).paper(printed.total(algorithm)));
            let largest = Estimate::largest(runs().map(|runs| Seen::part_of_reno(runs)));
            let cells: Vec<Cell> = totals.chain([Cell::from(largest)]).collect();
            table.push(&[name, &algorithm.to_uppercase()], &cells);
        }
    }
    Ok(Report { verdicts: verdicts(&table), tables: vec![table], ..Report::default() })
}

fn verdicts(table: &Table) -> Vec<Verdict> {
    let ours = |hosts: &str, flow: &str, column: &str| table.estimate(&[hosts, flow], column);
    let mut less =
        Verdict::ours("less than LIA", "Whatever the hosts are like, DAIMD takes at least 5 % less than LIA.");
    let mut behind =
        Verdict::ours("behind Reno", "Whatever the hosts are like, DAIMD takes less than Reno on every path.");
    for (_, hosts) in VARIANTS {
        behind = behind.at_most(&format!("{hosts}, DAIMD / Reno"), ours(hosts, "DAIMD", "largest part of Reno"), 1.0);
        for name in PRINTED.map(|printed| printed.setting.name) {
            let ratio = ours(hosts, "DAIMD", name) / ours(hosts, "LIA", name);
            less = less.at_most(&format!("{hosts}, {name}, DAIMD / LIA"), ratio, 0.95);
        }
    }
    let error = |hosts: &str| {
        let errors = PRINTED.iter().map(|printed| {
            let ratio = ours(hosts, "DAIMD", printed.setting.name) / printed.total("daimd");
            (ratio - 1.0).abs()
        });
        Estimate::mean_of(errors)
    };
    let [(_, first), .., (_, last)] = VARIANTS;
    let rearming = Verdict::ours(
        "re-arming",
        "The rule as it is printed, which may cut again while the queue stays full, is further from Table II.",
    )
    .at_least("mean error of the totals, as printed − with re-arming", error(last) - error(first), 0.0);
    // The average of the queues at losses, by which DAIMD goes everywhere but in these experiments, forgets such a sample.
    let reason = "one round trip with the whole 25 ms of a delayed acknowledgement makes the longest queue seen longer than \
                  any queue can be, so that D0 is never reached and DAIMD is LIA.";
    vec![less.because(reason), behind, rearming]
}
