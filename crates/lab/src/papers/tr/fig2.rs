//! Figure 2: the round-trip times of uploads by a real TCP.
//!
//! # Claim
//!
//! While the queue builds up, the round-trip time of an upload grows in a straight line.
//!
//! # Topology
//!
//! ```text
//!   sender, TCP of a kernel ─── a link with a queue ──► receiver
//!     ▲──────────────────── a delay ────────────────────┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | simulated uploads | Reno or CUBIC over 20 Mbit/s, a round trip of 40 ms, a queue of 100 ms, beside nobody or one like it | assumed |
//! | recorded uploads | subflows of Linux 6.18, Reno or CUBIC, uncoupled, over links of 10 to 40 Mbit/s, 65 to 75 s | assumed |
//! | duration of simulated ones | 65 s | assumed |
//! | left out | the first 5 s, which are slow start's | assumed |
//! | a build-up | a rise of the smoothed round trip by half of its whole range at least, until it falls by a quarter of it | assumed |
//! | smoothed | over 100 ms | assumed |
//! | straight | the coefficient of determination of the regression line, weighted by time | assumed |
//!
//! # Deviations
//!
//! - The paper uploads a file to a service on the Internet of 2018, from Windows. Its curves are a picture only.
//! - The recorded uploads are of a kernel's TCP over links in network namespaces. They are used where they are beside
//!   this project, in `shared/rtt-traces/kernel`; simulated ones are in every run.

use core::time::Duration;
use std::path::PathBuf;

use fairpath_core::{PathId, Timestamp};
use fairpath_net::QueueConfig;
use fairpath_sim::{FlowIndex, Recorder, SimError};

use super::grid::traces::{self, Missing};
use super::network::{Network, Wire};
use crate::{Axis, Cell, Context, Experiment, Failure, Figure, Report, Series, Table, Verdict, engine};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/fig2", include_str!("fig2.rs"), run);

const DURATION: Duration = Duration::from_secs(65);
/// Rises that begin before are slow start's, in seconds.
const SLOW_START: f64 = 5.0;
/// Samples are means over so long, in seconds.
const SMOOTHED: f64 = 0.1;
/// A build-up rises by so much of the whole range, and ends when that much is lost again.
const RISES: f64 = 0.5;
const ENDS: f64 = 0.25;
/// The least coefficient of determination of a straight line.
const STRAIGHT: f64 = 0.9;

/// The recordings, and the congestion control that their list names.
const RECORDED: [(&str, &str); 8] = [
    ("separate-00", "Reno"),
    ("separate-01", "CUBIC"),
    ("separate-02", "Reno"),
    ("separate-03", "CUBIC"),
    ("shared-00", "Reno"),
    ("shared-01", "CUBIC"),
    ("shared-02", "Reno"),
    ("shared-03", "CUBIC"),
];

/// Round trips over time, in seconds and ms.
type Curve = Vec<(f64, f64)>;

#[derive(Debug, Default)]
struct RoundTrips(Curve);

impl Recorder for RoundTrips {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, _: PathId, rtt: Duration) {
        if flow.0 == 0 {
            self.0.push((now.as_secs_f64(), rtt.as_secs_f64() * 1e3));
        }
    }
}

/// A simulated upload.
#[derive(Clone, Copy, Debug)]
struct Upload {
    title: &'static str,
    congestion: &'static str,
    /// Others like it.
    others: u32,
}

const UPLOADS: [Upload; 4] = [
    Upload { title: "Reno", congestion: "reno", others: 0 },
    Upload { title: "Reno, beside another", congestion: "reno", others: 1 },
    Upload { title: "CUBIC", congestion: "cubic", others: 0 },
    Upload { title: "CUBIC, beside another", congestion: "cubic", others: 1 },
];

impl Upload {
    fn run(&self, seed: u64) -> Result<Curve, SimError> {
        let queue = QueueConfig::sojourn(Duration::from_millis(100));
        let wire = Wire { name: "link", mbps: 20, one_way_ms: 20, queue };
        let mut network = Network::new("an upload", seed, DURATION, &[wire]);
        for _ in 0..=self.others {
            let route = network.route(&["link"]);
            network.flow("upload", engine(self.congestion), &[route]);
        }
        let mut seen = RoundTrips::default();
        fairpath_sim::run(&network.net.scenario, &mut seen)?;
        Ok(seen.0)
    }
}

/// The means of a curve over [`SMOOTHED`], from the end of slow start on.
fn smoothed(curve: &[(f64, f64)]) -> Curve {
    let mut means: Curve = Vec::new();
    let (mut slot, mut sum, mut count) = (0_u64, 0.0, 0.0);
    for (at, rtt) in curve.iter().filter(|(at, _)| *at >= SLOW_START) {
        let now = (at / SMOOTHED) as u64;
        if now != slot && count > 0.0 {
            means.push(((slot as f64 + 0.5) * SMOOTHED, sum / count));
            (sum, count) = (0.0, 0.0);
        }
        (slot, sum, count) = (now, sum + rtt, count + 1.0);
    }
    means
}

/// The rises of a smoothed curve, each from its lowest point to its highest.
fn build_ups(curve: &[(f64, f64)]) -> Vec<&[(f64, f64)]> {
    let (least, most) =
        curve.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), (_, rtt)| (least.min(*rtt), most.max(*rtt)));
    let range = most - least;
    let (mut found, mut low, mut high) = (Vec::new(), 0, 0);
    for (at, (_, rtt)) in curve.iter().enumerate() {
        if *rtt > curve[high].1 {
            high = at;
        }
        let fell = curve[high].1 - rtt >= ENDS * range;
        if fell && curve[high].1 - curve[low].1 >= RISES * range {
            found.push(&curve[low..=high]);
        }
        if fell || *rtt < curve[low].1 {
            (low, high) = (at, at);
        }
    }
    found
}

/// How much of the variance a straight line explains, and its slope.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|point| of(point.0 - x, point.1 - y)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
    (xy * xy / (xx * yy), xy / xx)
}

/// The build-ups of a curve.
#[derive(Clone, Copy, Debug)]
struct Seen {
    build_ups: f64,
    seconds: f64,
    straight: f64,
}

fn seen(curve: &[(f64, f64)]) -> Seen {
    let curve = smoothed(curve);
    let found = build_ups(&curve);
    let lasts = |points: &&[(f64, f64)]| points[points.len() - 1].0 - points[0].0;
    let all: f64 = found.iter().map(lasts).sum();
    Seen {
        build_ups: found.len() as f64,
        seconds: all / found.len().max(1) as f64,
        straight: found.iter().map(|points| lasts(points) * line(points).0).sum::<f64>() / all,
    }
}

/// The recorded curves with the congestion control of each.
fn recorded() -> Result<Vec<(&'static str, Curve)>, Missing> {
    let folder: PathBuf = traces::folder().join("kernel");
    if !folder.is_dir() {
        return Err(Missing::Folder);
    }
    let files = RECORDED.iter().flat_map(|(name, tcp)| ["a", "b"].map(|side| (*tcp, format!("{name}-{side}.csv.gz"))));
    files
        .map(|(tcp, name)| {
            let samples = traces::read_one(&folder, &name)?;
            let point =
                |sample: &fairpath_core::DelaySample| (sample.now.as_secs_f64(), sample.rtt.as_secs_f64() * 1e3);
            Ok((tcp, samples.iter().map(point).collect()))
        })
        .collect()
}

fn run(context: &Context) -> Result<Report, Failure> {
    let uploads = context.sweep(&UPLOADS, &context.seeds(context.pick(3, 5)), Upload::run)?;
    let columns = [(FOUND, "in a minute"), ("each lasts", "s"), (STRAIGHTNESS, "")];
    let mut table = Table::new("build_ups", "How straight build-ups of round trips are", &["upload", "by"], &columns);
    let cells = |all: &[Seen]| {
        [
            Cell::of(all.iter().map(|seen| seen.build_ups)),
            Cell::of(all.iter().map(|seen| seen.seconds)),
            Cell::of(all.iter().filter(|seen| seen.build_ups > 0.0).map(|seen| seen.straight)),
        ]
    };
    let mut straight =
        Verdict::new("straight", "While the queue builds up, the round-trip time grows in a straight line.");
    for (upload, runs) in UPLOADS.iter().zip(&uploads) {
        let all: Vec<Seen> = runs.iter().map(|curve| seen(curve)).collect();
        table.row([upload.title, "the simulator"], cells(&all));
        let what = format!("{}, simulated: {STRAIGHTNESS}", upload.title);
        straight = straight.at_least(&what, table.estimate(&[upload.title, "the simulator"], STRAIGHTNESS), STRAIGHT);
    }
    let (mut figures, mut missing) = (vec![figure("simulated", UPLOADS[0].title, &uploads[0][0])], Vec::new());
    match recorded() {
        Ok(curves) => {
            for tcp in ["Reno", "CUBIC"] {
                let of: Vec<&Curve> = curves.iter().filter(|(by, _)| *by == tcp).map(|(_, curve)| curve).collect();
                let all: Vec<Seen> = of.iter().map(|curve| seen(curve)).collect();
                table.row([tcp, "Linux 6.18"], cells(&all));
                let what = format!("{tcp}, by Linux 6.18: {STRAIGHTNESS}");
                straight = straight.at_least(&what, table.estimate(&[tcp, "Linux 6.18"], STRAIGHTNESS), STRAIGHT);
                figures.extend(
                    of.first().map(|curve| figure(&format!("linux_{tcp}"), &format!("{tcp}, Linux 6.18"), curve)),
                );
            }
        }
        Err(error) => missing.push(format!("{error}: uploads are simulated only.")),
    }
    let verdicts = vec![straight.because(
        "CUBIC's window grows by the cube of time: it is flat where it was when packets were lost, and its round trips with it.",
    )];
    Ok(Report { tables: vec![table], figures, verdicts, missing, ..Report::default() })
}

const FOUND: &str = "build-ups";
const STRAIGHTNESS: &str = "part of the variance that a line explains";

fn figure(name: &str, title: &str, curve: &[(f64, f64)]) -> Figure {
    let smooth = smoothed(curve);
    let lines = build_ups(&smooth);
    let marks = lines.iter().flat_map(|points| [points[0], points[points.len() - 1]]).collect();
    let series = Series::new("round-trip time, smoothed", "reno", smooth.clone()).marked("ends of build-ups", marks);
    let axes = (Axis::new("time", "s"), Axis::new("round-trip time", "ms"));
    Figure::new(name, title).lines("Build-ups", axes.0, axes.1, vec![series])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_rise_is_explained_and_a_saw_has_its_teeth() {
        // Teeth of 5 s: from 50 to 100 ms, and back at once.
        let curve: Curve =
            (0..4_000).map(|at| f64::from(at) / 100.0).map(|at| (at, 50.0 + 10.0 * (at % 5.0))).collect();
        let smooth = smoothed(&curve);
        let found = build_ups(&smooth);
        assert_eq!(found.len(), 6, "the last one has not ended");
        assert!(found.iter().all(|points| line(points).0 > 0.999 && (line(points).1 - 10.0).abs() < 0.1));
    }

    #[test]
    fn a_parabola_is_not_straight() {
        let points: Curve = (0..100).map(f64::from).map(|at| (at, (at - 50.0) * (at - 50.0))).collect();
        assert!(line(&points).0 < 0.01);
    }
}
