//! Figures 4 to 6: windows beside a Reno flow on each path.

use core::time::Duration;

use super::setup::{ALGORITHMS, Case, Seen, Setting};
use super::windows::{self, PATHS};
use crate::{Cell, Context, Failure, Figure, Report, Series, Table, Verdict};

/// Runs DAIMD and LIA beside Reno on a setting and draws their windows and Reno's.
pub(super) fn run(context: &Context, name: &str, setting: Setting) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(150, 300));
    let cases = ALGORITHMS.map(|algorithm| Case::shared(setting, algorithm, duration));
    let seen = context.sweep(&cases, &context.seeds(context.pick(4, 10)), Case::run)?;
    let windows = windows::table(name, &cases, &seen);
    let ahead = ahead_of_reno(&cases, &seen);
    let verdicts = verdicts(&windows, &ahead);
    Ok(Report {
        verdicts,
        figures: vec![figure(name, setting, &seen)],
        tables: vec![windows, ahead],
        ..Report::default()
    })
}

/// The parts of the time in which the window of the multipath flow is larger than that of the Reno
/// flow on the same path, which has the same round-trip time.
fn ahead_of_reno(cases: &[Case], seen: &[Vec<Seen>]) -> Table {
    let title = "Part of the time in which the window is larger than that of Reno on the same path";
    let mut table = Table::new("ahead", title, &["flow"], &[("path A", ""), ("path B", "")]);
    for (case, runs) in cases.iter().zip(seen) {
        let begin = case.warm_up.as_secs_f64();
        let part = |seen: &Seen, path: usize| {
            let both = seen.paths[path].window.iter().zip(&seen.reno[path]).filter(|((at, _), _)| *at >= begin);
            let (ahead, all) =
                both.fold((0, 0), |(ahead, all), (ours, reno)| (ahead + u32::from(ours.1 > reno.1), all + 1));
            f64::from(ahead) / f64::from(all)
        };
        let cell = |path| Cell::of(runs.iter().map(|seen| part(seen, path)));
        table.row([&case.multipath.congestion.to_uppercase()], [cell(0), cell(1)]);
    }
    table
}

fn figure(name: &str, setting: Setting, seen: &[Vec<Seen>]) -> Figure {
    let mut figure = Figure::new(name, &format!("Windows beside a Reno flow on each path, {}", setting.name));
    for (algorithm, runs) in ALGORITHMS.iter().zip(seen) {
        for (at, path) in PATHS.iter().enumerate() {
            let Some(first) = runs.first() else { continue };
            let reno = Series::new("Reno", "reno", windows::shown(&first.reno[at]));
            let mut ours = windows::line(&algorithm.to_uppercase(), algorithm, &first.paths[at]);
            if ours.marks.is_empty() {
                ours.marks_name = String::new();
            }
            let wire = setting.paths[at];
            let title =
                format!("{}, path {path}: {} Mbit/s, {} ms", algorithm.to_uppercase(), wire.mbps, wire.one_way_ms);
            figure = figure.lines(&title, windows::time(), windows::window(), vec![reno, ours]);
        }
    }
    figure
}

fn verdicts(windows: &Table, ahead: &Table) -> Vec<Verdict> {
    let mut instants = Verdict::new(
        "seldom ahead",
        "The multipath flow is ahead of Reno on its path for instants only: in less than a tenth of the time.",
    );
    for flow in ["DAIMD", "LIA"] {
        for path in ["path A", "path B"] {
            instants =
                instants.at_most(&format!("{flow}, {path}, part of the time"), ahead.estimate(&[flow], path), 0.1);
        }
    }
    let mut prevents =
        Verdict::new("mostly by delay", "DAIMD prevents loss on most occasions: more delay cuts than loss episodes.");
    for path in PATHS {
        let count = |column| windows.estimate(&["DAIMD", path], column);
        let (cuts, losses) = (count("delay cuts"), count("loss episodes"));
        prevents =
            prevents.at_least(&format!("path {path}, part of the decreases"), cuts.clone() / (cuts + losses), 0.5);
    }
    // LIA, whose windows are larger than those of DAIMD, is overtaken and overtakes in many of its cycles.
    let reason = "where Reno loses a packet and the multipath flow does not, Reno is behind until it has grown as much \
                  again, a good part of its cycle.";
    vec![instants.because(reason), prevents]
}
