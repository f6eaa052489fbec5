//! The drive test: two cellular links, each alone and both together (slides 1 to 3, and the comparison at the end).
//!
//! # Claim
//!
//! Two providers of about 30 Mbit/s bring 51 Mbit/s together: paths are used in turns, with round trips that have grown
//! by far, and probes, the window clamp and BBR mitigate it.
//!
//! # Topology
//!
//! ```text
//!            ┌── provider 1, its rate varies, 3,000 packets ──┐
//!   sender ──┤                                                ├── receiver
//!            └── provider 2, its rate varies, 3,000 packets ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates, as modelled | 30 Mbit/s on average | paper |
//! | how they vary | log-normal, σ = 0.5, forgotten in 3 s | assumed |
//! | rates, as recorded | pairs of downlinks of AT&T, T-Mobile and Verizon, as recorded for Mahimahi | assumed |
//! | begin of the recordings | seed n: 13 n s after that of the first, 29 n s after that of the second | assumed |
//! | round-trip time | 50 ms | assumed |
//! | queues | 3,000 packets | paper, of its laboratory |
//! | congestion control, scheduling | NewReno, uncoupled; min-RTT | paper, of its laboratory |
//! | send buffer | 4 MB, of which 2,520 kB are payload by Linux's accounting | paper, but for the accounting |
//! | duration | 120 s, measured from 10 s on | assumed |
//!
//! # Deviations
//!
//! - The slides' own recordings are not published. The model is in every run; what others have recorded is added in the
//!   full form where it is beside this project, in `shared/traces`.
//! - A path counts as silent in a second in which it carries less than a hundredth of its mean.
//! - The quick form has the model for 60 s, the couple as it is and the default.

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, MahimahiTrace, QueueConfig, Rate};
use fairpath_scenario::{PathRoute, Remedies, Scenario};
use fairpath_sim::SimError;
use serde::{Deserialize, Serialize};

use super::couple::{DEEP, NONE};
use super::trace::{Silence, Trace};
use crate::papers::cellular::{self, OPERATORS, PAIRS};
use crate::{Axis, Cell, Context, Effort, Experiment, Failure, Figure, Net, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/drive", include_str!("drive.rs"), run);

const RTT: Duration = Duration::from_millis(50);
/// 0.63 of 4 MB.
const SEND_BUFFER: ByteCount = ByteCount::from_kilobytes(2_520);
const WARM_UP: Duration = Duration::from_secs(10);
/// The providers' rates by the slides, and what both bring, in Mbit/s.
const PRINTED: (f64, f64) = (30.0, 51.0);

/// A sender.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sender {
    title: &'static str,
    /// `None`: the default of live connections.
    congestion: Option<&'static str>,
    remedies: Remedies,
    over: &'static [usize],
}

const fn both(title: &'static str, congestion: Option<&'static str>, remedies: Remedies) -> Sender {
    Sender { title, congestion, remedies, over: &[0, 1] }
}

const PLAIN: &str = "both, as they are";
const OURS: &str = "both, our default";
const CURES: [&str; 3] = ["both, λ = 3/2", "both, probes", "both, BBRv1"];

const SENDERS: [Sender; 7] = [
    Sender { over: &[0], ..both("1 alone", Some("reno"), NONE) },
    Sender { over: &[1], ..both("2 alone", Some("reno"), NONE) },
    both(PLAIN, Some("reno"), NONE),
    both(OURS, None, NONE),
    both(CURES[0], Some("reno"), Remedies { bloat_clamp: Some(1.5), ..NONE }),
    both(CURES[1], Some("reno"), Remedies { probe: true, ..NONE }),
    both(CURES[2], Some("bbr"), NONE),
];
/// The first ones are in the quick form.
const QUICK_SENDERS: usize = 4;

/// Where somebody drives: as modelled, or where both links were recorded.
#[derive(Clone)]
struct Road {
    name: String,
    recorded: Option<[Arc<MahimahiTrace>; 2]>,
}

impl core::fmt::Debug for Road {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Road {
    fn rate(&self, at: usize, seed: u64, duration: Duration) -> Rate {
        match &self.recorded {
            Some(traces) => cellular::beginning(&traces[at], at, seed),
            None => cellular::modelled(Bitrate::from_mbps(PRINTED.0 as u64), &format!("provider {at}"), seed, duration),
        }
    }

    fn scenario(&self, sender: &Sender, seed: u64, duration: Duration) -> Scenario {
        let mut net = Net::new("drive test", seed, WARM_UP, duration);
        let path = |at: &usize| {
            let there = LinkConfig::new(self.rate(*at, seed, duration)).delay(RTT / 2);
            let there = net.link(&format!("provider {at}"), there.queue(QueueConfig::packets(DEEP)));
            let back = net.link(&format!("provider {at} back"), LinkConfig::pure_delay(RTT / 2));
            PathRoute { forward: vec![there], backward: vec![back] }
        };
        let paths: Vec<_> = sender.over.iter().map(path).collect();
        let flow = match sender.congestion {
            None => net.live("transfer", EngineConfig::live(), &paths),
            Some(name) => {
                let engine = EngineConfig {
                    congestion: name.into(),
                    coupling: Coupling::Never,
                    scheduler: "min_rtt".into(),
                    ..EngineConfig::default()
                };
                let flow = net.flow("transfer", engine, &paths);
                flow.remedies = sender.remedies;
                flow
            }
        };
        flow.transport.send_buffer = Some(SEND_BUFFER);
        net.scenario
    }

    fn drive(&self, sender: &Sender, seed: u64, duration: Duration) -> Result<(f64, Trace), SimError> {
        let (trace, mbps) = Trace::of_scenario(self.scenario(sender, seed, duration))?;
        Ok((mbps, trace))
    }
}

/// The result of a drive.
#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    mbps: f64,
    silence: Silence,
}

fn run(context: &Context) -> Result<Report, Failure> {
    let (mut roads, mut missing) = (vec![Road { name: "modelled".to_owned(), recorded: None }], Vec::new());
    if context.effort() == Effort::Full {
        match cellular::recorded(&cellular::folder(), "down") {
            Ok(traces) => roads.extend(PAIRS.map(|pair| Road {
                name: pair.map(|at| OPERATORS[at].0).join(" and "),
                recorded: Some(pair.map(|at| traces[at].clone())),
            })),
            Err(error) => missing.push(format!("{error}: the drive is modelled only.")),
        }
    }
    let senders = &SENDERS[..context.pick(QUICK_SENDERS, SENDERS.len())];
    let duration = Duration::from_secs(context.pick(60, 120));
    let points: Vec<(Road, Sender)> =
        roads.iter().flat_map(|road| senders.iter().map(|sender| (road.clone(), *sender))).collect();
    let seeds = context.seeds(context.pick(3, 8));
    let seen = context.sweep(&points, &seeds, |(road, sender), seed| {
        let (mbps, trace) = road.drive(sender, seed, duration)?;
        Ok(Seen { mbps, silence: trace.silence(WARM_UP.as_secs_f64()) })
    })?;
    let (rates, moments) = tables(&roads, senders, &seen);
    let verdicts = verdicts(&roads, senders, &rates, &moments);
    let plain = SENDERS.iter().find(|sender| sender.title == PLAIN).expect("it is one of them");
    let shown = context.sweep(&roads[..1], &seeds[..1], |road, seed| road.drive(plain, seed, duration))?;
    let figures = vec![figure(&shown[0][0].1)];
    Ok(Report { tables: vec![rates, moments], figures, verdicts, missing, ..Report::default() })
}

fn tables(roads: &[Road], senders: &[Sender], seen: &[Vec<Seen>]) -> (Table, Table) {
    let unit = |sender: &Sender| if sender.over.len() == 1 { "Mbit/s" } else { "of the sum" };
    let columns: Vec<_> = senders.iter().map(|sender| (sender.title, unit(sender))).collect();
    let mut rates = Table::new("rates", "Each provider alone, and both in parts of the sum", &["drive"], &columns);
    let mut moments = Table::new(
        "moments",
        "Both as they are: seconds in which a path is silent, and how the paths take turns",
        &["drive"],
        &[(SILENT, ""), (ROUND_TRIP, "ms"), (TURNS, "in a minute")],
    );
    for (road, runs) in roads.iter().zip(seen.chunks(senders.len())) {
        let cells = senders.iter().zip(runs).map(|(sender, of)| {
            let share = |(at, one): (usize, &Seen)| match sender.over.len() {
                1 => one.mbps,
                _ => one.mbps / (runs[0][at].mbps + runs[1][at].mbps),
            };
            let cell = Cell::of(of.iter().enumerate().map(share));
            match sender.title {
                PLAIN if road.recorded.is_none() => cell.paper(PRINTED.1 / (2.0 * PRINTED.0)),
                _ => cell,
            }
        });
        rates.push(&[&road.name], &cells.collect::<Vec<_>>());
        let plain = senders.iter().position(|sender| sender.title == PLAIN).expect("all forms have it");
        let of = |of: fn(&Silence) -> f64| Cell::of(runs[plain].iter().map(|one| of(&one.silence)));
        moments.row([&road.name], [of(|one| one.share), of(|one| one.round_trip_ms), of(|one| one.turns_in_a_minute)]);
    }
    (rates, moments)
}

const SILENT: &str = "part of the time that a path is silent";
const ROUND_TRIP: &str = "its round trip then";
const TURNS: &str = "turns";

/// A path is used to the full where it has so much of what it carries alone.
const FULL: f64 = 0.95;

fn verdicts(roads: &[Road], senders: &[Sender], rates: &Table, moments: &Table) -> Vec<Verdict> {
    let mut cannot = Verdict::new("cannot exploit both", "Two providers bring less than both alone: 51 of 60 Mbit/s.");
    let mut turns = Verdict::new(
        "in turns",
        "Round trips grow by far while the throughput of a path is nothing, in turns between providers.",
    );
    let mut cures =
        Verdict::new("mitigated", "Probes, the window clamp and BBR mitigate it: with each, both carry no less.");
    let mut ours =
        Verdict::ours("default", "The default has nine tenths of the sum, and more than the couple as it is.");
    for road in roads {
        let of = |sender: &str| rates.estimate(&[&road.name], sender);
        let moment = |what: &str| moments.estimate(&[&road.name], what);
        let at = |what: &str| format!("{}: {what}", road.name);
        cannot = cannot.at_most(&at("both, in parts of the sum"), of(PLAIN), FULL);
        turns = turns
            .at_least(&at("part of the time that a path is silent"), moment(SILENT), 0.05)
            .at_least(
                &at("its round trip then, in parts of that without a queue"),
                moment(ROUND_TRIP) / (RTT.as_secs_f64() * 1e3),
                3.0,
            )
            .at_least(&at("turns in a minute"), moment(TURNS), 1.0);
        for cure in CURES.into_iter().filter(|cure| senders.iter().any(|sender| sender.title == *cure)) {
            cures = cures.at_least(&at(&format!("{cure} − as they are, of the sum")), of(cure) - of(PLAIN), 0.0);
        }
        ours = ours.at_least(&at("our default, in parts of the sum"), of(OURS), 0.9).at_least(
            &at("our default − as they are"),
            of(OURS) - of(PLAIN),
            0.0,
        );
    }
    [cannot, turns, cures, ours].into_iter().filter(|verdict| !verdict.checks.is_empty()).collect()
}

/// The exemplary trace: what each path carries, and its round-trip time.
fn figure(trace: &Trace) -> Figure {
    let line = |path: usize, points| Series::new(["provider 1", "provider 2"][path], ["reno", "lia"][path], points);
    let time = || Axis::new("time", "s");
    let rates = (0..2).map(|path| line(path, trace.rates(path, 1.0))).collect();
    let round_trips = (0..2)
        .map(|path| line(path, trace.0.iter().step_by(20).map(|moment| (moment.at, moment.smoothed[path])).collect()))
        .collect();
    Figure::new("exemplary_trace", "Both providers, NewReno and min-RTT")
        .lines("Throughput", time(), Axis::new("rate", "Mbit/s"), rates)
        .lines("Round-trip times", time(), Axis::new("smoothed round-trip time", "ms"), round_trips)
}
