//! Figure 6: the delays of four flows over two paths that share a bottleneck.
//!
//! # Claim
//!
//! The delays of connections over the same path are quite similar, those over different paths show
//! some difference, and the slopes while the queue fills are quite similar also there.
//!
//! # Topology
//!
//! ```text
//!   30 flows, n1 ── L1 ──┐             ┌── L3 ─── n7
//!                        n3 ── L2 ── n5
//!   30 flows, n2 ── L7 ──┘             └── L10 ── n8
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links | L1 500 Mbit/s, 10 ms; L2 120, 20; L3 500, 10; L7 500, 30; L10 500, 10 | paper (E5 of Table 2) |
//! | queues | 100 ms, drop-tail; L2 in two cases RED from 100 to 120 ms, at most 150 ms | paper |
//! | RED | drops up to 2 % at the upper threshold, then all; weight 0.002 | assumed: ns-3's values |
//! | flows | 30 each, CUBIC or Reno | paper |
//! | start | within 1 s of each other | assumed |
//! | duration | 100 s, of which the first 10 s do not count for the table | paper (what is drawn) |
//! | delays | the newest sample, every 100 ms | assumed |
//! | slopes | TR with α = 0.1, in rounds of 5 s | paper, but for α |
//!
//! # Deviations
//!
//! - The paper's curves exist as a picture only: they are compared by what its text says of them.

use core::time::Duration;

use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::{BuildUp, Detector, Trendline, TrendlineConfig};
use fairpath_sim::{FlowIndex, Recorder, SimError};
use serde::{Deserialize, Serialize};

use super::chains::quantile;
use super::dumbbell::{Case, ROWS};
use crate::{Axis, Cell, Context, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/fig6", include_str!("fig6.rs"), run);

/// How often delays are looked at, and what of it does not count, in seconds.
const EVERY: f64 = 0.1;
const WARM_UP: f64 = 10.0;
/// The largest error for which TR calls two slopes alike.
const ALIKE: f64 = 0.2;

/// The delays of the first two flows of each side, and how far apart the slopes of their build-ups are.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    /// Seconds, and the four delays in ms.
    delays: Vec<(f64, [f64; 4])>,
    /// Errors of equation 18 between the longest build-ups of two flows where these overlap: on one
    /// path, and on two.
    errors: [Vec<f64>; 2],
}

/// Looks at their delays and build-ups.
#[derive(Debug)]
struct Watch {
    flows_each: u32,
    detector: Trendline,
    latest_ms: [f64; 4],
    seen: Seen,
    compared: [Option<BuildUp>; 4],
}

impl Watch {
    fn new(flows_each: u32) -> Self {
        let mut detector = Trendline::new(TrendlineConfig::default());
        (0..4).for_each(|flow| detector.on_path_opened(PathId::new(flow), Timestamp::ZERO));
        let (latest_ms, compared) = ([f64::NAN; 4], [None; 4]);
        Self { flows_each, detector, latest_ms, seen: Seen::default(), compared }
    }

    /// 0 and 1 from n1, 2 and 3 from n2.
    fn watched(&self, flow: FlowIndex) -> Option<u32> {
        let (side, number) = (flow.0 / self.flows_each, flow.0 % self.flows_each);
        (number < 2).then_some(2 * side + number)
    }

    /// Compares the build-ups of a round that has just ended.
    fn compare(&mut self) {
        let newest = [0, 1, 2, 3].map(|flow| self.detector.build_up(PathId::new(flow)));
        if newest == self.compared {
            return;
        }
        self.compared = newest;
        for (a, b) in [(0, 1), (2, 3), (0, 2), (1, 3)] {
            let (Some(one), Some(other)) = (newest[a], newest[b]) else { continue };
            let overlap = one.begin.max(other.begin) < one.end.min(other.end);
            if overlap && one.slope_ms_per_s > 0.0 && other.slope_ms_per_s > 0.0 {
                self.seen.errors[usize::from(b - a == 2)].push(one.error(&other));
            }
        }
    }
}

impl Recorder for Watch {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, _: PathId, rtt: Duration) {
        let Some(watched) = self.watched(flow) else { return };
        self.latest_ms[watched as usize] = rtt.as_secs_f64() * 1e3;
        self.detector.on_sample(PathId::new(watched), &DelaySample { now, rtt, one_way: None });
        self.detector.poll(now);
        let now = now.as_secs_f64();
        if self.seen.delays.last().is_none_or(|(last, _)| now >= last + EVERY) {
            self.seen.delays.push((now, self.latest_ms));
            if now >= WARM_UP {
                self.compare();
            }
        }
    }
}

/// How far the delays of two flows are apart on average after the warm-up, in ms.
fn difference_ms(delays: &[(f64, [f64; 4])], a: usize, b: usize) -> f64 {
    let settled = delays.iter().filter(|(at, _)| *at >= WARM_UP);
    let (sum, count) =
        settled.fold((0.0, 0.0), |(sum, count), (_, delays)| (sum + (delays[a] - delays[b]).abs(), count + 1.0));
    sum / count
}

/// The correlation of the delays of two flows after the warm-up.
fn correlation(delays: &[(f64, [f64; 4])], a: usize, b: usize) -> f64 {
    let settled = || delays.iter().filter(|(at, _)| *at >= WARM_UP).map(|(_, delays)| (delays[a], delays[b]));
    let count = settled().count() as f64;
    let (sum_a, sum_b) = settled().fold((0.0, 0.0), |(sum_a, sum_b), (a, b)| (sum_a + a, sum_b + b));
    let (mean_a, mean_b) = (sum_a / count, sum_b / count);
    let moments = settled().map(|(a, b)| (a - mean_a, b - mean_b));
    let (aa, bb, ab) = moments.fold((0.0, 0.0, 0.0), |(aa, bb, ab), (a, b)| (aa + a * a, bb + b * b, ab + a * b));
    ab / (aa * bb).sqrt()
}

fn run(context: &Context) -> Result<Report, Failure> {
    let cases = Case::all(ROWS[4], Duration::from_secs(context.pick(30, 100)));
    let watch = |case: &Case, seed| -> Result<Seen, SimError> {
        let mut watch = Watch::new(case.flows_each());
        case.run(seed, &mut watch)?;
        Ok(watch.seen)
    };
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 5)), watch)?;
    let columns = [
        ("difference, same path", "ms"),
        ("difference, two paths", "ms"),
        ("correlation, two paths", ""),
        ("error of slopes, same path", ""),
        ("error of slopes, two paths", ""),
    ];
    let title = "Delays every 100 ms: how far apart they are on average, and how they are correlated; the median error of \
                 slopes (eq. 18) of build-ups that overlap";
    let mut table = Table::new("fig6", title, &["queue, flows"], &columns);
    for (case, runs) in cases.iter().zip(&seen) {
        let apart = |a, b| Cell::of(runs.iter().map(|run| difference_ms(&run.delays, a, b)));
        let correlated = Cell::of(runs.iter().map(|run| correlation(&run.delays, 0, 2)));
        let error = |paths: usize| {
            Cell::of(runs.iter().map(|run| {
                let mut errors = run.errors[paths].clone();
                errors.sort_by(f64::total_cmp);
                quantile(&errors, 0.5)
            }))
        };
        table.row([&case.combination()], [apart(0, 1), apart(0, 2), correlated, error(0), error(1)]);
    }
    let figures = vec![figure(&cases, &seen)];
    Ok(Report { verdicts: verdicts(&table, &cases), tables: vec![table], figures, ..Report::default() })
}

fn verdicts(table: &Table, cases: &[Case]) -> Vec<Verdict> {
    let mut path = Verdict::new("path", "The delays of one path are at most half as far apart as those of two.");
    let mut slopes = Verdict::new("slopes", "While the queue fills, the slopes on two paths are alike.");
    for case in cases {
        let name = case.combination();
        let ours = |column| table.estimate(&[&name], column);
        let ratio = ours("difference, same path") / ours("difference, two paths");
        path = path.at_most(&format!("{name}: difference, same path / two paths"), ratio, 0.5);
        slopes = slopes.at_most(&format!("{name}: median error of slopes"), ours("error of slopes, two paths"), ALIKE);
    }
    let reason = "the longest build-ups of two flows in a round are often not the same one, or begin and end at other \
                  samples: a median error above 0.2 means that most rounds say no, which is why TR says yes only now \
                  and then.";
    vec![path, slopes.because(reason)]
}

fn figure(cases: &[Case], seen: &[Vec<Seen>]) -> Figure {
    let names =
        [("flow 0, n1-n7", "lia"), ("flow 1, n1-n7", "wvegas"), ("flow 2, n2-n8", "daimd"), ("flow 3, n2-n8", "olia")];
    let title = "Round-trip times of four flows over two paths with one bottleneck";
    cases.iter().zip(seen).fold(Figure::new("fig6", title), |figure, (case, runs)| {
        let line = |flow: usize| {
            let delays = runs.first().map(|run| run.delays.as_slice()).unwrap_or_default();
            let points = delays.iter().map(|(at, delays)| (*at, delays[flow])).filter(|(_, delay)| delay.is_finite());
            Series::new(names[flow].0, names[flow].1, points.collect())
        };
        let series = [0, 1, 2, 3].map(line).to_vec();
        figure.lines(&case.combination(), Axis::new("time", "s"), Axis::new("round-trip time", "ms"), series)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_together_is_correlated_and_what_grows_against_it_is_not() {
        let line = |n: i32| (WARM_UP + f64::from(n), [1.0, 2.0, -1.0, 0.0].map(|slope| slope * f64::from(n)));
        let delays: Vec<_> = (0..50).map(line).collect();
        assert!((correlation(&delays, 0, 1) - 1.0).abs() < 1e-9);
        assert!((correlation(&delays, 0, 2) + 1.0).abs() < 1e-9);
        // |n - 2 n| for n from 0 to 49.
        assert!((difference_ms(&delays, 0, 1) - 24.5).abs() < 1e-9);
    }
}
