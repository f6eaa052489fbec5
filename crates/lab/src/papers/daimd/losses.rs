//! Losses: how many are spared.
//!
//! # Claim
//!
//! DAIMD loses nothing on idle paths after slow start, and far less than LIA beside Reno, because it
//! cuts its window before the queue overflows on most occasions.
//!
//! # Topology
//!
//! ```text
//!               ┌─── A, queue of one bandwidth-delay product ───┐
//!   multipath ──┤                                               ├── multipath
//!               └─── B, queue of one bandwidth-delay product ───┘
//!   Reno 1 ───────── A ──────────────────────────────────────────── Reno 1   (shared paths only)
//!   Reno 2 ───────── B ──────────────────────────────────────────── Reno 2   (shared paths only)
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | different capacity | A 10 Mbit/s, B 5 Mbit/s, one-way delay 50 ms | paper |
//! | different delay | 5 Mbit/s, one-way delay A 25 ms, B 50 ms | paper |
//! | equal paths | 5 Mbit/s, one-way delay 50 ms | assumed: the paper does not say |
//! | queue | round-trip time times rate, drop-tail | paper |
//! | start | within 100 ms of each other | assumed: the paper says at the same time |
//! | duration | 300 s, of which the first 5 s do not count | assumed |
//! | D0, D1 | 0.9 and 0.5 of the longest queue seen | assumed |
//! | T, W0 | one smoothed round-trip time, 10 packets | assumed |
//!
//! # Deviations
//!
//! - The paper gives no numbers of losses: it counts none on idle paths, and "an important loss
//!   reduction" elsewhere.

use core::time::Duration;

use super::setup::{ALGORITHMS, CAPACITY, Case, DELAY, EQUAL, Seen};
use crate::{Axis, BarSeries, Cell, Context, Estimate, Experiment, Failure, Figure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("daimd/losses", include_str!("losses.rs"), run);

const TRAFFIC: [&str; 2] = ["idle", "beside Reno"];

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(100, 300));
    let idle = [CAPACITY, DELAY].map(|setting| ALGORITHMS.map(|name| Case::idle(setting, name, duration)));
    let shared = [CAPACITY, DELAY, EQUAL].map(|setting| ALGORITHMS.map(|name| Case::shared(setting, name, duration)));
    let cases = [idle.concat(), shared.concat()].concat();
    let seen = context.sweep(&cases, &context.seeds(context.pick(6, 20)), Case::run)?;

    let columns = [
        ("lost", "packets in 100 s"),
        ("lost of those sent", "‰"),
        ("loss episodes", "in 100 s"),
        ("delay cuts", "in 100 s"),
    ];
    let mut table = Table::new("losses", "Losses of the multipath flow", &["traffic", "paths", "flow"], &columns);
    for (case, runs) in cases.iter().zip(&seen) {
        let of = |quantity: &dyn Fn(&Seen) -> f64| Cell::of(runs.iter().map(quantity));
        let in_100_s = 100.0 / (case.duration - case.warm_up).as_secs_f64();
        let cells = [
            of(&|seen| seen.lost() * in_100_s),
            of(&|seen| seen.lost() / seen.sent() * 1000.0),
            of(&|seen| seen.loss_episodes() * in_100_s),
            of(&|seen| seen.delay_cuts() * in_100_s),
        ];
        let traffic = TRAFFIC[usize::from(case.cross_traffic)];
        table.row([traffic, case.setting.name, &case.multipath.congestion.to_uppercase()], cells);
    }
    let figure = figure(&table);
    Ok(Report { verdicts: verdicts(&table), figures: vec![figure], tables: vec![table], ..Report::default() })
}

fn ours(table: &Table, traffic: &str, paths: &str, flow: &str, column: &str) -> Estimate {
    table.estimate(&[traffic, paths, flow], column)
}

fn verdicts(table: &Table) -> Vec<Verdict> {
    let [idle, shared] = TRAFFIC;
    let mut none = Verdict::new("none on idle paths", "After slow start DAIMD loses nothing on idle paths.");
    for setting in [CAPACITY, DELAY] {
        none = none.at_most(&format!("{}, lost", setting.name), ours(table, idle, setting.name, "DAIMD", "lost"), 0.0);
    }
    let mut fewer = Verdict::new("fewer", "Beside Reno DAIMD loses fewer packets than LIA.");
    let mut rarer = Verdict::new("rarer", "Beside Reno DAIMD loses a smaller part of what it sends than LIA does.");
    let mut prevented = Verdict::new("mostly by delay", "Beside Reno more decreases are by delay than by loss.");
    for setting in [CAPACITY, DELAY, EQUAL] {
        let name = setting.name;
        let of = |flow, column| ours(table, shared, name, flow, column);
        fewer = fewer.at_most(&format!("{name}, lost, DAIMD / LIA"), of("DAIMD", "lost") / of("LIA", "lost"), 1.0);
        let (daimd, lia) = (of("DAIMD", "lost of those sent"), of("LIA", "lost of those sent"));
        rarer = rarer.at_most(&format!("{name}, lost of those sent, DAIMD / LIA"), daimd / lia, 1.0);
        let (cuts, losses) = (of("DAIMD", "delay cuts"), of("DAIMD", "loss episodes"));
        prevented = prevented.at_least(&format!("{name}, part by delay"), cuts.clone() / (cuts + losses), 0.5);
    }
    let reason = "when DAIMD cuts its window early, Reno fills the queue instead, which overflows all the same: DAIMD loses \
                  less because it sends less.";
    vec![none, fewer, rarer.because(reason), prevented]
}

fn figure(table: &Table) -> Figure {
    let settings = [CAPACITY, DELAY, EQUAL].map(|setting| setting.name);
    let series = |column: &str| {
        let of = |flow: &str| {
            let cell = |name| table.cell(&[TRAFFIC[1], name, flow], column).cloned().unwrap_or_default();
            BarSeries::new(flow, &flow.to_lowercase(), settings.map(cell))
        };
        vec![of("DAIMD"), of("LIA")]
    };
    Figure::new("losses", "Losses beside Reno")
        .bars("In 100 s", Axis::new("packets lost", "in 100 s"), &settings, series("lost"))
        .bars("Of what was sent", Axis::new("packets lost", "‰"), &settings, series("lost of those sent"))
}
