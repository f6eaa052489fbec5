//! Table 5: the slopes that TR logs in a session, topology 2, E5.
//!
//! # Claim
//!
//! The slopes of both paths are alike again and again: the log has nine lines in 166 s, the first
//! at 9.9 s.
//!
//! # Topology
//!
//! ```text
//!        ┌─ L0 ── n1 ── L1 ─┐                 ┌─ L3 ─── n7 ── L11 ─┐
//!   n0 ──┤                  ├── n3 ── L2 ── n5┤                    ├── n10 ── L18, bottleneck ── n11
//!        └─ L13 ─ n2 ── L7 ─┘                 └─ L10 ── n8 ── L17 ─┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | network | that of `tr/table4`, E5 | paper |
//! | session | LIA-TR, beside the other kinds of session | paper, but for the others |
//! | TR | fed with smoothed round-trip times, α = 0.1 | paper, but for α |
//! | duration | 170 s | assumed: the last line is of 166 s |
//! | packets | 1500 B; every second one is acknowledged | assumed |
//!
//! # Deviations
//!
//! - Those of `tr/table4`.
//! - The quick form ends after 10 s.

use super::mininet::TABLE_4;
use super::model::slope_ms_per_s;
use super::sessions::{Case, Logged, Seen, seconds};
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/table5", include_str!("table5.rs"), run);

/// Time in s, the slopes of both paths in ms/s.
const PRINTED: [(f64, f64, f64); 9] = [
    (9.874, 473.0, 441.0),
    (45.287, 219.0, 190.0),
    (50.523, 397.0, 454.0),
    (70.634, 140.0, 147.0),
    (75.639, 447.0, 410.0),
    (121.007, 348.0, 317.0),
    (136.115, 335.0, 341.0),
    (156.147, 182.0, 190.0),
    (166.215, 286.0, 283.0),
];
/// How long the paper's log is, and how long a yes holds, in seconds.
const PRINTED_END: f64 = 170.0;
const HOLD: f64 = 100.0;
/// Lines of the first seed that are shown at most.
const LINES: usize = 15;

// [TR2018 §4.3 eq. 18]
//     err = |k_1 - k_2| / max(k_1, k_2)
fn error(a: f64, b: f64) -> f64 {
    (a - b).abs() / a.max(b)
}

fn run(context: &Context) -> Result<Report, Failure> {
    let case = TABLE_4[4].case(seconds(context.pick(10, 170)));
    let end = case.duration.as_secs_f64();
    let runs = context
        .sweep(&[case], &context.seeds(context.pick(2, 5)), Case::run)?
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    let log = log(runs.first().map(Seen::log).unwrap_or_default());
    let summary = summary(&runs, end);
    let verdicts = verdicts(&summary);
    Ok(Report { tables: vec![log, summary], verdicts, ..Report::default() })
}

/// The paper's lines beside those of our first seed. Line by line they have nothing to do with each
/// other.
fn log(ours: &[Logged]) -> Table {
    let columns = [("time", "s"), ("slope 1", "ms/s"), ("slope 2", "ms/s"), ("error", "")];
    let mut table =
        Table::new("log", "The log of TR: the paper's lines and ours of the first seed", &["line"], &columns);
    for line in 0..PRINTED.len().max(ours.len().min(LINES)) {
        let cells = ours.get(line).map_or([const { Cell::EMPTY }; 4], |one| {
            let [a, b] = &one.build_ups;
            [one.at, a.slope_ms_per_s, b.slope_ms_per_s, a.error(b)].map(|value| Cell::of([value]))
        });
        let printed = PRINTED.get(line).map(|(at, a, b)| [*at, *a, *b, error(*a, *b)]);
        let paper = |column: usize| printed.map(|values| values[column]);
        let cell = |column: usize| Cell { paper: paper(column), ..cells[column].clone() };
        table.row([&(line + 1).to_string()], [cell(0), cell(1), cell(2), cell(3)]);
    }
    table
}

const FIRST: &str = "first line";
const LINES_IN_100_S: &str = "lines in 100 s";
const GAP: &str = "longest gap";
const SLOPE: &str = "mean slope";
const ERROR: &str = "mean error";

/// Measures of the log, over the seeds. An empty log has its first line at the end.
fn summary(runs: &[Seen], end: f64) -> Table {
    let columns = [(FIRST, "s"), (LINES_IN_100_S, ""), (GAP, "s"), (SLOPE, "ms/s"), (ERROR, "")];
    let mut table = Table::new("summary", "What the log is like", &["session"], &columns);
    let mean = |values: Vec<f64>| values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64;
    let gap = |times: &[f64], end: f64| {
        let whole: Vec<f64> = [0.0].into_iter().chain(times.iter().copied()).chain([end]).collect();
        whole.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
    };
    let of = |value: &dyn Fn(&[Logged]) -> f64| Cell::of(runs.iter().map(|run| value(run.log())));
    // A log without lines has no slopes and no errors.
    let of_lines = |value: &dyn Fn(&[Logged]) -> f64| {
        Cell::of(runs.iter().map(Seen::log).filter(|log| !log.is_empty()).map(value))
    };
    let times = |log: &[Logged]| log.iter().map(|one| one.at).collect::<Vec<_>>();
    let slopes = |log: &[Logged]| log.iter().flat_map(|one| one.build_ups).map(|one| one.slope_ms_per_s).collect();
    let errors = |log: &[Logged]| log.iter().map(|one| one.build_ups[0].error(&one.build_ups[1])).collect();
    let printed_times = PRINTED.map(|(at, ..)| at);
    let printed_slopes = PRINTED.iter().flat_map(|(_, a, b)| [*a, *b]).collect();
    let printed_errors = PRINTED.iter().map(|(_, a, b)| error(*a, *b)).collect();
    let cells = [
        of(&|log| log.first().map_or(end, |one| one.at)).paper(printed_times[0]),
        of(&|log| log.len() as f64 * 100.0 / end).paper(PRINTED.len() as f64 * 100.0 / PRINTED_END),
        of(&|log| gap(&times(log), end)).paper(gap(&printed_times, PRINTED_END)),
        of_lines(&|log| mean(slopes(log))).paper(mean(printed_slopes)).theory(model()),
        of_lines(&|log| mean(errors(log))).paper(mean(printed_errors)),
    ];
    table.row(["LIA-TR"], cells);
    table
}

/// Equation 15 for the 150 flows over L18 of 300 Mbit/s, with a mean delay of 300 ms.
fn model() -> f64 {
    slope_ms_per_s(0.3, 300e6 / 8.0 / 1500.0 / 150.0)
}

fn verdicts(summary: &Table) -> Vec<Verdict> {
    let ours = |column| summary.estimate(&["LIA-TR"], column);
    let paper = |column| summary.cell(&["LIA-TR"], column).and_then(|cell| cell.paper).unwrap_or(f64::NAN);
    vec![
        Verdict::ours("soon", "The first line comes in one of the first four rounds.").at_most(
            "first line in s",
            ours(FIRST),
            20.5,
        ),
        Verdict::ours("often enough", "A yes comes again before it is forgotten.").at_most(
            "longest gap in s",
            ours(GAP),
            HOLD,
        ),
        Verdict::new("as often", "The log has about as many lines as printed.")
            .between("lines in 100 s, ours / printed", ours(LINES_IN_100_S) / paper(LINES_IN_100_S), 0.5, 2.0)
            .because("how many rounds say yes depends on α, which is lost, and the paths do not only share L18: the flows from n7 \
                 to n8 fill L11 as well, whose queue builds up on path 1 alone."),
        Verdict::new("as steep", "The slopes are as steep as printed.")
            .between("mean slope, ours / printed", ours(SLOPE) / paper(SLOPE), 0.5, 2.0)
            .because(
                "the printed slopes are some ten times what the paper's own equation 15 gives for this network: with \
                 them the queue of 40 ms would be full after 0.1 s. So they are not of the steady growth that the \
                 equation is about, but of flows that come back after losses, on an emulator whose links send in \
                 bursts.",
            ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_slopes_pass_the_paper_s_own_test_and_are_steeper_than_its_model() {
        assert!(PRINTED.iter().all(|(_, a, b)| error(*a, *b) <= 0.2));
        // 300 Mbit/s for 150 flows: 166.7 packets in a second each; 1000 / (166.7 · 0.3) = 20 ms/s.
        assert!((model() - 20.0).abs() < 0.01);
        assert!(PRINTED.iter().all(|(_, a, b)| a.min(*b) > 7.0 * model() - 0.1));
    }
}
