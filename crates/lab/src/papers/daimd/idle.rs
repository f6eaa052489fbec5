//! Figures 2 and 3: windows on idle paths.

use core::time::Duration;

use super::setup::{ALGORITHMS, Case, Seen, Setting};
use super::windows::{self, PATHS};
use crate::{Cell, Context, Failure, Figure, Report, Series, Table, Verdict};

/// Runs DAIMD and LIA alone on a setting and draws their windows.
pub(super) fn run(context: &Context, name: &str, setting: Setting) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(150, 300));
    let cases = ALGORITHMS.map(|algorithm| Case::idle(setting, algorithm, duration));
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 10)), Case::run)?;
    let table = windows::table(name, &cases, &seen);
    Ok(Report {
        verdicts: verdicts(&table, &seen[0]),
        figures: vec![figure(name, setting, &seen)],
        tables: vec![table],
        ..Report::default()
    })
}

fn figure(name: &str, setting: Setting, seen: &[Vec<Seen>]) -> Figure {
    let mut figure = Figure::new(name, &format!("Windows on idle paths, {}", setting.name));
    for (at, path) in PATHS.iter().enumerate() {
        let lines = ALGORITHMS.iter().zip(seen).filter_map(|(algorithm, runs)| {
            Some(windows::line(&algorithm.to_uppercase(), algorithm, &runs.first()?.paths[at]))
        });
        // The marks belong to DAIMD only.
        let lines =
            lines.map(|line| if line.marks.is_empty() { Series { marks_name: String::new(), ..line } } else { line });
        let wire = setting.paths[at];
        let title = format!("Path {path}: {} Mbit/s, {} ms one way", wire.mbps, wire.one_way_ms);
        figure = figure.lines(&title, windows::time(), windows::window(), lines.collect());
    }
    figure
}

fn verdicts(table: &Table, daimd: &[Seen]) -> Vec<Verdict> {
    let mut lower = Verdict::new("lower", "The highest windows of DAIMD are somewhat lower than those of LIA.");
    let mut smaller = Verdict::new("smaller swings", "DAIMD swings less from peak to peak.");
    let mut faster = Verdict::new("more often", "DAIMD swings more often.");
    for path in PATHS {
        let ratio = |column| table.estimate(&["DAIMD", path], column) / table.estimate(&["LIA", path], column);
        let what = |quantity: &str| format!("path {path}, {quantity}, DAIMD / LIA");
        lower = lower.between(&what("highest window"), ratio("highest window"), 0.8, 1.0);
        smaller = smaller.at_most(&what("swing"), ratio("swing"), 1.0);
        faster = faster.at_least(&what("decreases"), ratio("decreases"), 1.0);
    }
    let lost = Cell::of(daimd.iter().map(Seen::lost));
    let lossless =
        Verdict::new("no loss", "After slow start every decrease of DAIMD is one by delay, and nothing is lost.")
            .at_most("packets lost", lost.estimate(), 0.0);
    vec![lower, smaller, faster, lossless]
}
