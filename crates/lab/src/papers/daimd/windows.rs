//! Windows over time: what the paper's figures 2 to 6 have in common.

use super::setup::{Case, PathSeen};
use crate::{Axis, Cell, Series, Table};

/// The figures show this much of a run.
const SHOWN_SECONDS: f64 = 150.0;

/// The names of the paths.
pub(super) const PATHS: [&str; 2] = ["A", "B"];

/// The swings of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Swings {
    /// How often it was made smaller.
    pub(super) count: usize,
    /// The mean window before that, in packets.
    pub(super) peak: f64,
    /// How much smaller it became on average, in packets.
    pub(super) depth: f64,
}

/// The swings of a window from `begin` on: wherever it falls by more than a tenth from one sample to
/// the next, and as far as it goes on falling.
pub(super) fn swings(window: &[(f64, f64)], begin: f64) -> Swings {
    let (mut count, mut peaks, mut depths) = (0, 0.0, 0.0);
    let mut falling_from = None;
    for pair in window.windows(2).filter(|pair| pair[0].0 >= begin) {
        let (before, after) = (pair[0].1, pair[1].1);
        match falling_from {
            None if after < 0.9 * before => falling_from = Some(before),
            Some(peak) if after >= before => {
                (count, peaks, depths) = (count + 1, peaks + peak, depths + (peak - before));
                falling_from = None;
            }
            _ => {}
        }
    }
    let mean = |sum: f64| if count == 0 { 0.0 } else { sum / count as f64 };
    Swings { count, peak: mean(peaks), depth: mean(depths) }
}

/// The line of a path's window, with circles where delay made it smaller.
pub(super) fn line(name: &str, algorithm: &str, path: &PathSeen) -> Series {
    Series::new(name, algorithm, shown(&path.window)).marked("delay cut", shown(&path.cuts))
}

/// The part that a figure shows.
pub(super) fn shown(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    points.iter().copied().filter(|(at, _)| *at <= SHOWN_SECONDS).collect()
}

pub(super) fn time() -> Axis {
    Axis::new("time", "s")
}

pub(super) fn window() -> Axis {
    Axis::new("congestion window", "packets")
}

/// A table of the swings of the windows.
pub(super) fn table(name: &str, cases: &[Case], seen: &[Vec<super::setup::Seen>]) -> Table {
    let columns = [
        ("highest window", "packets"),
        ("swing", "packets"),
        ("decreases", "in 100 s"),
        ("delay cuts", "in 100 s"),
        ("loss episodes", "in 100 s"),
    ];
    let title = "Windows after slow start: the mean of the windows before a decrease, how far they fall, how often; \
                 theory: the path and the queue up to D0 or whole";
    let mut table = Table::new(name, title, &["flow", "path"], &columns);
    for (case, runs) in cases.iter().zip(seen) {
        let begin = case.warm_up.as_secs_f64();
        let in_100_s = |count: f64| count * 100.0 / (case.duration.as_secs_f64() - begin);
        for (at, path) in PATHS.iter().enumerate() {
            let swings: Vec<Swings> = runs.iter().map(|seen| swings(&seen.paths[at].window, begin)).collect();
            let of = |quantity: &dyn Fn(&Swings) -> f64| Cell::of(swings.iter().map(quantity));
            let cuts = runs.iter().map(|seen| {
                let counted = seen.paths[at].cuts.iter().filter(|(at, _)| *at >= begin);
                in_100_s(counted.count() as f64)
            });
            let mut highest = of(&|one| one.peak);
            if !case.cross_traffic {
                highest = highest.theory(case.highest_window(at));
            }
            let cells = [
                highest,
                of(&|one| one.depth),
                of(&|one| in_100_s(one.count as f64)),
                Cell::of(cuts),
                Cell::of(runs.iter().map(|seen| in_100_s(seen.count(at).episodes as f64))),
            ];
            table.row([&case.multipath.congestion.to_uppercase(), path], cells);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swing_is_from_the_last_rise_to_the_next() {
        let window = [10.0, 20.0, 21.0, 14.0, 10.5, 11.0, 12.0, 11.9, 12.0, 6.0, 6.1];
        let window: Vec<_> = window.into_iter().enumerate().map(|(at, packets)| (at as f64, packets)).collect();
        // 21 to 10.5 and 12 to 6; from 12 to 11.9 is no swing.
        assert_eq!(swings(&window, 0.0), Swings { count: 2, peak: 16.5, depth: 8.25 });
        assert_eq!(swings(&window, 6.0), Swings { count: 1, peak: 12.0, depth: 6.0 });
        assert_eq!(swings(&[], 0.0), Swings { count: 0, peak: 0.0, depth: 0.0 });
    }
}
