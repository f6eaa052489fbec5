//! Shared by symmetric and asymmetric: a user's windows, and how steady they are.

use core::time::Duration;

use fairpath_core::Bitrate;

use super::algorithms::{Algorithm, BALIA, COUPLED, LIA, OLIA, UNCOUPLED};
use super::two_bottlenecks::{Case, Others, Seen};
use crate::{Axis, Cell, Context, Estimate, Failure, Figure, Series, Table};

pub(super) const ALGORITHMS: [Algorithm; 5] = [LIA, OLIA, COUPLED, BALIA, UNCOUPLED];

/// The first of them, which claims are about: the quick form has no others.
const JUDGED: usize = 3;

/// Runs every algorithm beside so many TCP flows on each path.
pub(super) fn run(context: &Context, others: [u32; 2]) -> Result<Vec<Vec<Seen>>, Failure> {
    let algorithms = &ALGORITHMS[..context.pick(JUDGED, ALGORITHMS.len())];
    let cases: Vec<Case> =
        algorithms.iter().map(|algorithm| case(*algorithm, Bitrate::from_mbps(10), others)).collect();
    context.sweep(&cases, &context.seeds(context.pick(5, 20)), Case::run)
}

/// One algorithm beside so many TCP flows on each path.
pub(super) fn case(algorithm: Algorithm, capacity: Bitrate, others: [u32; 2]) -> Case {
    let (warm_up, duration) = (Duration::from_secs(20), Duration::from_secs(120));
    Case { algorithm, capacity, others: others.map(|flows| vec![Others::always(flows)]), warm_up, duration }
}

/// Rates and steadiness. The paper shows pictures and no numbers.
pub(super) fn table(runs: &[Vec<Seen>]) -> Table {
    let columns = [
        ("path 1", "Mbit/s"),
        ("path 2", "Mbit/s"),
        ("TCP", "Mbit/s"),
        ("window 1", "packets"),
        ("window 2", "packets"),
        ("window 1 / window 2", ""),
        ("both above 2 packets", ""),
        ("80 % on one path", ""),
        ("flips in 100 s", ""),
    ];
    let title = "Rates, and how steady the windows are over 100 s";
    let mut table = Table::new("windows", title, &["algorithm"], &columns);
    for (algorithm, runs) in ALGORITHMS.iter().zip(runs) {
        table.row([algorithm.title], cells(runs));
    }
    table
}

/// A row of that table.
pub(super) fn cells(runs: &[Seen]) -> [Cell; 9] {
    let of = |ours: fn(&Seen) -> f64| Cell::of(runs.iter().map(ours));
    [
        of(|seen| seen.rate(0)),
        of(|seen| seen.rate(1)),
        of(Seen::others),
        of(|seen| seen.mean_window(0)),
        of(|seen| seen.mean_window(1)),
        of(Seen::ratio),
        of(Seen::both_used),
        of(Seen::one_sided),
        of(Seen::flips),
    ]
}

/// The windows of the first seed, LIA, OLIA and, for contrast, fully coupled.
pub(super) fn figure(title: &str, runs: &[Vec<Seen>]) -> Figure {
    let shown = ALGORITHMS.iter().zip(runs).filter(|(algorithm, _)| [LIA, OLIA, COUPLED].contains(algorithm));
    shown.fold(Figure::new("windows", title), |figure, (algorithm, runs)| {
        let line = |path: usize| {
            let points = runs.first().map(|seen| seen.window(path)).unwrap_or_default();
            Series::new(&format!("path {}", path + 1), algorithm.colour, points)
        };
        let (x, y) = (Axis::new("time", "s"), Axis::new("congestion window", "packets"));
        figure.lines(algorithm.title, x, y, vec![line(0), line(1).dashed()])
    })
}

/// Ours.
pub(super) fn ours(table: &Table, algorithm: Algorithm, column: &str) -> Estimate {
    table.estimate(&[algorithm.title], column)
}
