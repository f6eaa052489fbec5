//! Deadlines, spreads of round trips and losses: our stream beside other ways to use two paths.
//!
//! # Claim
//!
//! Over two paths more of a stream comes in time than over the better one of them, and no less than by any other way to
//! use both.
//!
//! # Topology
//!
//! ```text
//!            ┌── 10 Mbit/s, 40 ms ─────────────┐
//!   sender ──┤                                 ├── player
//!            └── 10 Mbit/s, 40, 120 or 300 ms ─┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | deadlines | 50, 100, 200, 300, 500 ms and 1 s | assumed |
//! | round trips | 40 ms, and 40, 120 or 300 ms, each way with up to 10 ms of jitter | assumed |
//! | losses | 1 % each for itself, or 1 % in bursts of four | assumed |
//! | the stream | 1.5 Mbit/s in packets of 1,316 B | assumed |
//! | queues | 200 ms | assumed |
//! | congestion control | coupled CUBIC, coupled where a shared bottleneck is found | assumed: our default |
//! | duration | 30 s, of which the first 5 are left out | assumed |
//!
//! # Deviations
//!
//! - All ways have the same repair, send again what is lost, and are paced and windowed alike. They differ in which path
//!   a packet takes. What is compared is the choice of paths, and not our stream with somebody else's.
//! - The quick form has a deadline of 300 ms over 40 and 120 ms, with losses in bursts.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_net::{GilbertElliott, LinkConfig, LossConfig, QueueConfig};

use super::live::{Case, Policy, Seen};
use crate::{Axis, Cell, Context, Estimate, Experiment, Failure, Figure, Report, Series, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("tfrc_multipath/deadlines", include_str!("deadlines.rs"), run);

const POLICIES: [(Policy, &str); 6] = [
    (Policy::Best, "theory"),
    (Policy::Alone(0), "reno"),
    (Policy::Alone(1), "cubic"),
    (Policy::Equal, "olia"),
    (Policy::Coupled, "lia"),
    (Policy::Redundant, "daimd"),
];

/// On time wherever the best of the others has `OTHERS`.
const ON_TIME: f64 = 0.99;
const OTHERS: f64 = 0.97;

/// One-way delay of all but a hundredth, in ms, wherever a single path has that.
const DELAY: f64 = 150.0;

/// The tolerance when two streams are compared, because they lost different packets.
const NOISE: f64 = 0.005;

const DEADLINES: [u64; 6] = [50, 100, 200, 300, 500, 1_000];

#[derive(Clone, Copy, Debug)]
struct Point {
    deadline: u64,
    rtt: u64,
    in_bursts: bool,
}

impl Point {
    fn heads(&self) -> [String; 3] {
        let losses = if self.in_bursts { "bursts" } else { "independent" };
        [format!("{} ms", self.deadline), format!("40 and {} ms", self.rtt), losses.to_owned()]
    }

    fn case(&self, policy: Policy, duration: Duration) -> Case {
        let loss = match self.in_bursts {
            true => {
                let bursts =
                    GilbertElliott { good_to_bad: 0.0025, bad_to_good: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };
                LossConfig::GilbertElliott(bursts)
            }
            false => LossConfig::Random { probability: 0.01 },
        };
        let path = |rtt: u64| {
            let link = LinkConfig::new(Bitrate::from_mbps(10)).delay(ms(rtt / 2)).jitter(ms(10));
            let link = link.queue(QueueConfig::sojourn(ms(200)));
            [link.clone().loss(loss), link]
        };
        let (rate, deadline) = (Some(Bitrate::from_kbps(1_500)), ms(self.deadline));
        let warm_up = duration / 6;
        Case { paths: vec![path(40), path(self.rtt)], policy, rate, deadline, warm_up, duration }
    }
}

fn points(context: &Context) -> Vec<Point> {
    let deadlines = context.pick(vec![300], DEADLINES.to_vec());
    let spreads = context.pick(vec![120], vec![40, 120, 300]);
    let losses = context.pick(vec![true], vec![false, true]);
    let mut points = Vec::new();
    for in_bursts in losses {
        for rtt in &spreads {
            points.extend(deadlines.iter().map(|deadline| Point { deadline: *deadline, rtt: *rtt, in_bursts }));
        }
    }
    points
}

fn run(context: &Context) -> Result<Report, Failure> {
    let points = points(context);
    let duration = Duration::from_secs(context.pick(15, 30));
    let cases: Vec<Case> =
        points.iter().flat_map(|point| POLICIES.map(|(policy, _)| point.case(policy, duration))).collect();
    let seen = context.sweep(&cases, &context.seeds(4), Case::run)?;
    let columns = POLICIES.map(|(policy, _)| (policy.name(), "%"));
    let heads = ["deadline", "round trips", "losses"];
    let table = |name: &str, title: &str, columns: &[(&str, &str)]| Table::new(name, title, &heads, columns);
    let mut on_time = table("on_time", "The share of packets that are played in time", &columns);
    let mut delays = table(
        "delays",
        "How long packets take from the application to the player: half of them at most, and all but a hundredth",
        &[
            ("ours, half", "ms"),
            ("ours, 99 %", "ms"),
            ("best single, half", "ms"),
            ("best single, 99 %", "ms"),
            ("beside data", "%"),
        ],
    );
    for (point, runs) in points.iter().zip(seen.chunks(POLICIES.len())) {
        let heads = point.heads();
        let heads = [0, 1, 2].map(|at| heads[at].as_str());
        let of = |at: usize, of: &dyn Fn(&Seen) -> f64| Cell::of(runs[at].iter().map(of));
        on_time.row(heads, core::array::from_fn::<_, { POLICIES.len() }, _>(|at| of(at, &|seen| 100.0 * seen.on_time)));
        let single = if of(2, &|seen| seen.on_time).mean() > of(1, &|seen| seen.on_time).mean() { 2 } else { 1 };
        delays.row(
            heads,
            [
                of(0, &|seen| seen.median),
                of(0, &|seen| seen.slowest),
                of(single, &|seen| seen.median),
                of(single, &|seen| seen.slowest),
                of(0, &|seen| 100.0 * seen.beside),
            ],
        );
    }
    let verdicts = verdicts(&points, &seen);
    let figures = figures(&on_time, &points);
    Ok(Report { tables: vec![on_time, delays], figures, verdicts, ..Report::default() })
}

/// The share of late packets over the deadline, for each of the spreads and losses.
fn figures(on_time: &Table, points: &[Point]) -> Vec<Figure> {
    let mut kinds: Vec<(u64, bool)> = points.iter().map(|point| (point.rtt, point.in_bursts)).collect();
    kinds.dedup();
    let figure = Figure::new("deadlines", "The share of packets that are not played in time, over the deadline");
    let panel = |figure: Figure, (rtt, in_bursts): (u64, bool)| {
        let here = || points.iter().filter(move |point| (point.rtt, point.in_bursts) == (rtt, in_bursts));
        let line = |(policy, colour): (Policy, &str)| {
            let value = |point: &Point| {
                let heads = point.heads();
                let heads = [0, 1, 2].map(|at| heads[at].as_str());
                (point.deadline as f64, 100.0 - on_time.cell(&heads, policy.name()).map_or(0.0, Cell::mean))
            };
            Series::new(policy.name(), colour, here().map(value).collect())
        };
        let losses = if in_bursts { "in bursts" } else { "independent" };
        let title = format!("40 and {rtt} ms, losses {losses}");
        let (x, y) = (Axis::new("deadline", "ms"), Axis::new("late or lost", "%"));
        figure.lines(&title, x, y, POLICIES.map(line).to_vec())
    };
    vec![kinds.into_iter().fold(figure, panel)]
}

fn verdicts(points: &[Point], seen: &[Vec<Seen>]) -> Vec<Verdict> {
    let mut single =
        Verdict::ours("no less than the better path", "No less is in time than over the better path alone.");
    let mut best = Verdict::ours("no less than any other way", "No less is in time than by any other way.");
    let mut on_time = Verdict::ours("on time", "At least 99 % are in time wherever the best of the others has 97 %.");
    let mut delay =
        Verdict::ours("soon", "All but a hundredth take 150 ms at most wherever they do over a single path.");
    for (point, runs) in points.iter().zip(seen.chunks(POLICIES.len())) {
        let name = point.heads().join(", ");
        let of = |at: usize, of: &dyn Fn(&Seen) -> f64| {
            Estimate::of(runs[at].iter().map(of)).unwrap_or_else(Estimate::unknown)
        };
        let share = |at: usize| of(at, &|seen| seen.on_time);
        let better = Estimate::largest([share(1), share(2)]);
        let others = Estimate::largest((1..POLICIES.len()).map(share));
        single = single.at_least(&format!("{name}: above the better path"), share(0) - better, -NOISE);
        best = best.at_least(&format!("{name}: above the best other"), share(0) - others.clone(), -NOISE);
        if others.mean >= OTHERS {
            on_time = on_time.at_least(&name, share(0), ON_TIME);
        }
        let slowest = |at: usize| of(at, &|seen| seen.slowest);
        let serves = |at: usize| share(at).mean >= OTHERS && slowest(at).mean <= DELAY;
        if serves(1) || serves(2) {
            delay = delay.at_most(&format!("{name}, in ms"), slowest(0), DELAY);
        }
    }
    let all = [single, best, on_time, delay];
    all.into_iter().filter(|verdict| !verdict.checks.is_empty()).collect()
}
