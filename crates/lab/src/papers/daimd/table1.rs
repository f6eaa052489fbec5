//! Table I: rates on idle paths.
//!
//! # Claim
//!
//! Alone on its paths DAIMD fills both of them, and after slow start it loses nothing.
//!
//! # Topology
//!
//! ```text
//!               ┌─── A, queue of one bandwidth-delay product ───┐
//!   multipath ──┤                                               ├── multipath
//!               └─── B, queue of one bandwidth-delay product ───┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | different capacity | A 10 Mbit/s, B 5 Mbit/s, one-way delay 50 ms | paper |
//! | different delay | 5 Mbit/s, one-way delay A 25 ms, B 50 ms | paper |
//! | queue | round-trip time times rate, drop-tail | paper |
//! | duration | 300 s, of which the first 5 s do not count | assumed |
//! | packets | 1500 B, of which 1448 B are data; each is acknowledged | assumed |
//! | D0, D1 | 0.9 and 0.5 of the longest queue seen | assumed |
//! | T, W0 | one smoothed round-trip time, 10 packets | assumed |
//! | seeds | flows start within 100 ms; nothing else is random | assumed |
//!
//! # Deviations
//!
//! - The paper runs the TCP of Linux in ns-3; here the sender is RFC 9002's.
//! - The paper does not say what its averages are taken over.

use core::time::Duration;

use super::setup::{ALGORITHMS, CAPACITY, Case, DELAY, Seen};
use crate::{Axis, BarSeries, Cell, Context, Experiment, Failure, Figure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("daimd/table1", include_str!("table1.rs"), run);

/// DAIMD on the paths A and B and in total, in Mbit/s, as printed.
const PRINTED: [[f64; 3]; 2] = [[9.4, 4.2, 13.6], [4.5, 4.6, 9.1]];

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(120, 300));
    let settings = [CAPACITY, DELAY];
    let cases = settings.map(|setting| ALGORITHMS.map(|name| Case::idle(setting, name, duration))).concat();
    let seen = context.sweep(&cases, &context.seeds(context.pick(2, 10)), Case::run)?;

    let columns = [("path A", "Mbit/s"), ("path B", "Mbit/s"), ("total", "Mbit/s"), ("lost", "packets")];
    let mut table = Table::new("table1", "Rates on idle paths; theory: the whole wire", &["paths", "flow"], &columns);
    for (case, runs) in cases.iter().zip(&seen) {
        let of = |quantity: &dyn Fn(&Seen) -> f64| Cell::of(runs.iter().map(quantity));
        let rate = |path| of(&|seen| seen.multipath(path)).theory(case.setting.most(path));
        let total = of(&Seen::total).theory(case.setting.most(0) + case.setting.most(1));
        let mut cells = [rate(0), rate(1), total, of(&Seen::lost)];
        if case.multipath.congestion == "daimd" {
            let at = settings.iter().position(|setting| setting.name == case.setting.name).unwrap_or_default();
            cells.iter_mut().zip(PRINTED[at]).for_each(|(cell, printed)| cell.paper = Some(printed));
        }
        table.row([case.setting.name, &case.multipath.congestion.to_uppercase()], cells);
    }
    Ok(Report {
        verdicts: verdicts(&table, &settings.map(|setting| setting.name)),
        figures: vec![figure(&table)],
        tables: vec![table],
        ..Report::default()
    })
}

fn verdicts(table: &Table, settings: &[&str]) -> Vec<Verdict> {
    let mut fills = Verdict::ours("fills", "DAIMD takes at least 95 % of each idle path.");
    let mut lossless = Verdict::new("no loss", "After slow start DAIMD loses nothing on idle paths.");
    let mut printed = Verdict::new("as printed", "Each rate is as printed, within 10 %.");
    for setting in settings {
        let cell = |column| table.cell(&[setting, "DAIMD"], column).cloned().unwrap_or_default();
        for path in ["path A", "path B"] {
            let (rate, what) = (cell(path), format!("{setting}, {path}"));
            fills = fills.at_least(
                &format!("{what}, part of the wire"),
                rate.estimate() / rate.theory.unwrap_or(f64::NAN),
                0.95,
            );
            let ratio = rate.estimate() / rate.paper.unwrap_or(f64::NAN);
            printed = printed.within(&format!("{what}, ours / printed"), ratio, 1.0, 0.1);
        }
        lossless = lossless.at_most(&format!("{setting}, packets lost"), cell("lost").estimate(), 0.0);
    }
    let reason = "the printed rates are 84 to 94 % of the wire, and after a delay cut 0.7 · (1 + 0.9) = 1.33 bandwidth-delay \
                  products are left in flight here, so that the queue never runs empty.";
    vec![fills, lossless, printed.because(reason)]
}

fn figure(table: &Table) -> Figure {
    let groups: Vec<String> = table
        .rows
        .iter()
        .filter(|(heads, _)| heads[1] == "DAIMD")
        .flat_map(|(heads, _)| ["A", "B"].map(|path| format!("{}, {path}", heads[0])))
        .collect();
    let series = |name: &str| {
        let rows = table.rows.iter().filter(|(heads, _)| heads[1] == name);
        let both = rows.flat_map(|(_, cells)| [cells[0].clone(), cells[1].clone()]);
        BarSeries::new(name, &name.to_lowercase(), both)
    };
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    Figure::new("rates", "Rates on idle paths").bars(
        "",
        Axis::new("goodput", "Mbit/s"),
        &groups,
        vec![series("DAIMD"), series("LIA")],
    )
}
