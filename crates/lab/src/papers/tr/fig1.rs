//! Figure 1: the round-trip time of one Reno flow.
//!
//! # Claim
//!
//! While the queue builds up, the round-trip time grows as r = sqrt(d² + 2(n/C)t), equation 13.
//!
//! # Topology
//!
//! ```text
//!   Reno ─── 1 Mbit/s, drop-tail ──► Reno
//!     ▲─────────── a delay ────────────┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | link | 1 Mbit/s, one-way delay 50 ms | paper |
//! | flow | one, Reno | paper |
//! | queue | 100 packets | assumed: that of ns-3 where nothing is said |
//! | packets | 1500 B; every second one is acknowledged | assumed |
//! | duration | 300 s; what begins in the first 20 s is slow start's and does not count | assumed |
//! | d | 112 ms: the delay both ways and the transmission of a packet | paper, but for the 12 ms |
//!
//! # Deviations
//!
//! - The paper's curve exists as a picture only: the curve is compared with the equation.
//! - The window halves and the queue does not become empty, so a build-up does not begin at d. The
//!   equation has no memory: time is counted from where the curve through the first sample has d.

use core::time::Duration;

use fairpath_core::{Bitrate, PathId, Timestamp};
use fairpath_net::QueueConfig;
use fairpath_sim::{FlowIndex, Recorder, SimError};
use serde::{Deserialize, Serialize};

use super::model::{delay, delay_tangent};
use super::network::{Network, Wire};
use crate::{Axis, Cell, Context, Experiment, Failure, Figure, Report, Series, Table, Verdict, engine};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/fig1", include_str!("fig1.rs"), run);

/// C/n in packets in a second.
const SHARE: f64 = 1e6 / 8.0 / 1500.0;
/// d in seconds.
const BASE: f64 = 0.1 + 1.0 / SHARE;
/// The end of slow start, in seconds. Build-ups that begin before do not count.
const SLOW_START: f64 = 20.0;
/// The largest error of equation 13: the window is whole packets, of which there are about 50 where
/// a build-up begins, and a sample is as old as itself.
const TOLERANCE: f64 = 0.03;

/// Samples of the round-trip time in seconds, and when episodes of congestion began.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Trace {
    samples: Vec<(f64, f64)>,
    episodes: Vec<f64>,
}

impl Recorder for Trace {
    fn on_rtt(&mut self, now: Timestamp, _: FlowIndex, _: PathId, rtt: Duration) {
        self.samples.push((now.as_secs_f64(), rtt.as_secs_f64()));
    }

    fn on_congestion(&mut self, now: Timestamp, _: FlowIndex, _: PathId) {
        self.episodes.push(now.as_secs_f64());
    }
}

impl Trace {
    /// From the lowest sample to the highest after it, between two episodes after slow start.
    fn build_ups(&self) -> Vec<&[(f64, f64)]> {
        let between = self.episodes.windows(2).filter(|pair| pair[0] >= SLOW_START).map(|pair| {
            let at = |time: f64| self.samples.partition_point(|(now, _)| *now < time);
            &self.samples[at(pair[0])..at(pair[1])]
        });
        let by_delay = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
        let rise = |samples: &'_ [(f64, f64)]| {
            let (low, _) = samples.iter().enumerate().min_by(by_delay)?;
            let (high, _) = samples.iter().enumerate().skip(low).max_by(by_delay)?;
            Some((low, high))
        };
        between.filter_map(|samples| rise(samples).map(|(low, high)| &samples[low..=high])).collect()
    }
}

/// How far the equations are from a build-up.
#[derive(Clone, Copy, Debug)]
struct Errors {
    seconds: f64,
    /// The largest relative error of equation 13.
    curve: f64,
    /// The relative error of equation 14 at the end.
    tangent: f64,
}

/// The time on the curve at which it has this delay.
fn on_curve(delay: f64) -> f64 {
    (delay * delay - BASE * BASE) * SHARE / 2.0
}

/// The sample times on the curve, and the samples in seconds.
fn aligned(build_up: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let (begin, first) = build_up[0];
    build_up.iter().map(move |(now, rtt)| (on_curve(first) + now - begin, *rtt))
}

fn errors(build_up: &[(f64, f64)]) -> Errors {
    let (begin, first) = build_up[0];
    let (end, last) = build_up[build_up.len() - 1];
    let curve = aligned(build_up).map(|(time, rtt)| (delay(BASE, SHARE, time) / rtt - 1.0).abs()).fold(0.0, f64::max);
    let tangent = delay_tangent(first, SHARE, end - begin) / last - 1.0;
    Errors { seconds: end - begin, curve, tangent }
}

fn trace(duration: Duration, seed: u64) -> Result<Trace, SimError> {
    let wire = Wire { name: "link", mbps: 1, one_way_ms: 50, queue: QueueConfig::packets(100) };
    debug_assert_eq!(SHARE, Bitrate::from_mbps(wire.mbps).as_bps() as f64 / 8.0 / 1500.0);
    let mut network = Network::new("figure 1", seed, duration, &[wire]);
    let route = network.route(&["link"]);
    network.flow("reno", engine("reno"), &[route]);
    let mut trace = Trace::default();
    fairpath_sim::run(&network.net.scenario, &mut trace)?;
    Ok(trace)
}

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(200, 300));
    let runs = context.sweep(&[()], &context.seeds(3), |(), seed| trace(duration, seed))?;
    let traces: Vec<&Trace> = runs.iter().flatten().collect();
    let columns = [("duration", "s"), ("worst error of eq. 13", "%"), ("error of eq. 14 at the end", "%")];
    let mut table =
        Table::new("fig1", "The build-ups of the queue beside the equations, first seed", &["build-up"], &columns);
    let found: Vec<Errors> = traces.iter().take(1).flat_map(|trace| trace.build_ups()).map(errors).collect();
    for (number, errors) in found.iter().enumerate() {
        let percent = |part: f64| Cell::of([100.0 * part]);
        table.row(
            [&(number + 1).to_string()],
            [Cell::of([errors.seconds]), percent(errors.curve), percent(errors.tangent)],
        );
    }
    let of_runs = |of: &dyn Fn(&[Errors]) -> f64| {
        let runs = traces.iter().map(|trace| trace.build_ups().into_iter().map(errors).collect::<Vec<_>>());
        Cell::of(runs.map(|run| of(&run))).estimate()
    };
    let worst = of_runs(&|run| run.iter().map(|errors| errors.curve).fold(f64::NAN, f64::max));
    let least = of_runs(&|run| run.iter().map(|errors| errors.tangent).fold(f64::NAN, f64::min));
    let verdicts = vec![
        Verdict::new("root growth", "The round-trip time grows as equation 13 says.").at_most(
            "worst error of equation 13",
            worst,
            TOLERANCE,
        ),
        Verdict::new(
            "not straight",
            "Over a build-up much longer than the delay the growth is visibly less than its tangent, equation 14.",
        )
        .at_least("error of equation 14 at the end, least of all build-ups", least, 0.1),
    ];
    let figures = traces.first().map(|trace| figure(trace)).into_iter().collect();
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}

fn figure(trace: &Trace) -> Figure {
    let millis = |(at, seconds): &(f64, f64)| (*at, seconds * 1e3);
    let measured = Series::new("one Reno flow", "reno", trace.samples.iter().map(millis).collect());
    let time = || Axis::new("time", "s");
    let figure = Figure::new("fig1", "The round-trip time of one Reno flow on 1 Mbit/s").lines(
        "all of it",
        time(),
        Axis::new("round-trip time", "ms"),
        vec![measured],
    );
    let Some(build_up) = trace.build_ups().last().copied() else { return figure };
    let (begin, first) = build_up[0];
    let points = build_up.iter().map(millis).collect();
    let curve = aligned(build_up).zip(build_up).map(|((time, _), (at, _))| (*at, 1e3 * delay(BASE, SHARE, time)));
    let tangent = build_up.iter().map(|(at, _)| (*at, 1e3 * delay_tangent(first, SHARE, at - begin)));
    let series = vec![
        Series::new("measured", "reno", points),
        Series::new("equation 13", "lia", curve.collect()),
        Series::new("equation 14", "theory", tangent.collect()).dashed(),
    ];
    figure.lines("the last build-up", time(), Axis::new("round-trip time", "ms"), series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_up_is_the_rise_between_two_episodes() {
        let samples = [0.2, 0.3, 0.15, 0.18, 0.25, 0.24, 0.1].into_iter().enumerate();
        let samples = samples.map(|(at, rtt)| (SLOW_START + at as f64, rtt)).collect();
        let trace = Trace { samples, episodes: [1.0, 5.5].map(|at| SLOW_START + at).to_vec() };
        assert_eq!(trace.build_ups(), [&trace.samples[2..=4]]);
    }

    #[test]
    fn a_curve_of_equation_13_has_no_error() {
        let curve: Vec<_> = (0..100).map(|at| (f64::from(at), delay(BASE, SHARE, 20.0 + f64::from(at)))).collect();
        assert!(errors(&curve).curve < 1e-9);
        assert!(errors(&curve).tangent > 0.1);
    }
}
