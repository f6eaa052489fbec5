//! Figure 4: what the detector makes of a trace.
//!
//! # Claim
//!
//! While the queue builds up the measured delay is not monotonous; smoothed it nearly is, the max
//! filter keeps the rising groups, and merged they have one slope.
//!
//! # Topology
//!
//! ```text
//!   Reno 1  ──┐
//!     ...     ├── L0 ─── L1, bottleneck ─── L2 ───
//!   Reno 30 ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | network | chain 1 of `tr/table1` | assumed: the paper does not say of which simulation its trace is |
//! | detector | TR with α = 0.1, groups of at least two points, merged within 50 ms | paper, but for α and the two |
//! | shown | one round of 5 s, 40 s after the start | assumed |
//!
//! # Deviations
//!
//! - The paper's curves exist as a picture only: they are compared by what its text says of them.

use core::time::Duration;

use fairpath_core::Timestamp;
use fairpath_sbd::BuildUp;

use super::chains::{CHAINS, Sample, Seen, inside};
use crate::{Axis, Cell, Context, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/fig4", include_str!("fig4.rs"), run);

/// From when to when the round lies that is shown, in seconds; it ends with the first sample later.
const SHOWN: (f64, f64) = (40.0, 46.0);

/// The first flow's build-up of that round, and the samples around it.
fn round(seen: &Seen) -> Option<(BuildUp, &[Sample])> {
    let is_shown = |one: &BuildUp| (SHOWN.0..SHOWN.1).contains(&one.begin.as_secs_f64());
    let (_, build_up) = seen.build_ups.iter().find(|(flow, one)| *flow == 0 && is_shown(one))?;
    let at = |time: f64| seen.samples.partition_point(|sample| sample.at < time);
    Some((*build_up, &seen.samples[at(SHOWN.0)..at(SHOWN.1)]))
}

/// How often a curve falls.
fn falls(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> usize {
    samples.windows(2).filter(|pair| value(&pair[1]) < value(&pair[0])).count()
}

/// The samples that the max filter keeps: those in groups of at least two.
fn kept(samples: &[Sample]) -> Vec<(f64, f64)> {
    let next = samples.iter().skip(1).map(|sample| sample.group_points).chain([0]);
    let in_group = samples.iter().zip(next).filter(|(sample, next)| sample.group_points >= 2 || *next == 2);
    in_group.map(|(sample, _)| (sample.at, sample.smoothed_ms)).collect()
}

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(50);
    let seen =
        context.sweep(&CHAINS[..1], &context.seeds(context.pick(3, 5)), |chain, seed| chain.run(duration, seed))?;
    let rounds: Vec<_> = seen.iter().flatten().filter_map(round).collect();
    let columns =
        [("points", ""), ("lasts", "s"), ("slope", "ms/s"), ("falls as measured", ""), ("falls when smoothed", "")];
    let mut table = Table::new("fig4", "The longest build-up of the round", &["flow"], &columns);
    let of = |value: &dyn Fn(&BuildUp, &[Sample]) -> f64| {
        Cell::of(rounds.iter().map(|(build_up, samples)| value(build_up, inside(build_up, samples))))
    };
    let cells = [
        of(&|build_up, _| f64::from(build_up.points)),
        of(&|build_up, _| build_up.end.since(build_up.begin).as_secs_f64()),
        of(&|build_up, _| build_up.slope_ms_per_s),
        of(&|_, samples| falls(samples, |sample| sample.raw_ms) as f64),
        of(&|_, samples| falls(samples, |sample| sample.smoothed_ms) as f64),
    ];
    let [measured, smoothed] = [cells[3].estimate(), cells[4].estimate()];
    table.row(["the first"], cells);
    let verdicts = vec![
        Verdict::new("spikes", "As measured the delay is not monotonous within the build-up.").at_least(
            "falls as measured",
            measured.clone(),
            1.0,
        ),
        Verdict::new("smoothed", "Smoothed it falls less than half as often.").at_most(
            "falls when smoothed / as measured",
            smoothed / measured,
            0.5,
        ),
    ];
    let figures = rounds.first().map(|(build_up, samples)| figure(build_up, samples)).into_iter().collect();
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}

fn figure(build_up: &BuildUp, samples: &[Sample]) -> Figure {
    let axes = || (Axis::new("time", "s"), Axis::new("round-trip time", "ms"));
    let of = |value: &dyn Fn(&Sample) -> f64| samples.iter().map(|sample| (sample.at, value(sample))).collect();
    let raw = || Series::new("as measured", "reno", of(&|sample| sample.raw_ms));
    let smoothed = Series::new("smoothed", "lia", of(&|sample| sample.smoothed_ms));
    let merged = inside(build_up, samples).iter().map(|sample| (sample.at, sample.smoothed_ms));
    let [begin, end] = [build_up.begin, build_up.end].map(Timestamp::as_secs_f64);
    let line = vec![(begin, build_up.begin_delay_ms), (end, build_up.end_delay_ms())];
    let around = |series: Vec<Series>| [vec![raw()], series].concat();
    let panel = |figure: Figure, title: &str, series| {
        let (x, y) = axes();
        figure.lines(title, x, y, around(series))
    };
    let figure = Figure::new("fig4", "A trace on its way through the detector");
    let groups = smoothed.clone().marked("points of groups", kept(samples));
    let figure = panel(figure, "smoothing", vec![smoothed]);
    let figure = panel(figure, "max filter", vec![groups]);
    let group = Series::new("regression line", "daimd", line).marked("points of the longest", merged.collect());
    panel(figure, "groups merged", vec![group])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lonely_points_are_not_kept() {
        // Groups of 2, 1 and 3 points.
        let points = [(10.0, 1), (11.0, 2), (9.0, 1), (8.0, 1), (8.5, 2), (9.0, 3)];
        let samples: Vec<Sample> = (0..)
            .zip(points)
            .map(|(at, (smoothed_ms, group_points))| Sample {
                at: f64::from(at),
                raw_ms: 0.0,
                smoothed_ms,
                group_points,
            })
            .collect();
        let times: Vec<f64> = kept(&samples).iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [0.0, 1.0, 3.0, 4.0, 5.0]);
        assert_eq!(falls(&samples, |sample| sample.smoothed_ms), 2);
    }
}
