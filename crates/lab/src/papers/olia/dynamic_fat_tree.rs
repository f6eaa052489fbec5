//! A data centre with short flows beside long ones (slide 26).
//!
//! # Claim
//!
//! In a crowded data centre LIA and OLIA use the core far more than TCP does; short flows take longer
//! then, with OLIA less so than with LIA.
//!
//! # Topology
//!
//! ```text
//!   host h of 512 ── edge ── aggregation ── core ── aggregation ── edge ── another host
//!     16 of each edge switch, which has 4 links upwards; every link 100 Mbit/s
//!   a third of the hosts: an endless flow; the others: short flows, one after the other
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | tree | k = 8 and 4:1: 512 hosts, 80 switches (quick: k = 4, 64 hosts) | paper |
//! | long flows | a third of the hosts, to another host each; TCP, or 8 subflows (quick: 4) | paper (CoNEXT 2012, from memory) |
//! | short flows | two thirds of the hosts; TCP, 70 kB, Poisson, one in 200 ms on average, each on a way of its own | paper (SIGCOMM 2011, from memory) |
//! | links | 100 Mbit/s, 100 µs, queues of 100 packets | assumed: those of htsim |
//! | packets | 1500 B, all of it counted | assumed |
//! | first window of the short flows | 3 packets, TCP's of that time (RFC 3390); 10 as well, today's | assumed |
//! | start of the long flows | within 100 ms of each other | assumed |
//! | duration | 4 s, measured from 1 s on | assumed |
//!
//! # Deviations
//!
//! - The slides have no numbers; those beside ours are from memory of CoNEXT 2012, unchecked.
//! - No connection is set up: a short flow begins with its data, in the paper with a handshake.
//! - The paper's TCP recovers as NewReno does, with time-outs of at least 250 ms; here the sender is
//!   RFC 9002's, which rarely waits so long.

use core::time::Duration;

use fairpath_core::ByteCount;
use fairpath_scenario::{Scenario, Traffic};
use fairpath_sim::Outcome;
use serde::{Deserialize, Serialize};

use super::algorithms::{Algorithm, LIA, OLIA, TCP};
use super::data_centre::DataCentre;
use crate::{Axis, BarSeries, Cell, Context, Experiment, Failure, Figure, Net, Report, Source, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("olia/dynamic_fat_tree", include_str!("dynamic_fat_tree.rs"), run)
        .left_to_full(&["short_flows_pay", "olia_spares_short_flows"]);

const ALGORITHMS: [Algorithm; 3] = [TCP, LIA, OLIA];
/// There are so many times as many hosts as the core can serve at once.
const RATIO: u32 = 4;
const SHORT_FLOW: ByteCount = ByteCount::new(70_000);
/// The mean time between the beginnings of a host's short flows.
const INTERVAL: Duration = Duration::from_millis(200);

/// The first window of TCP when the paper was written, as the table has it.
const OF_THE_TIME: &str = "3";

/// The first window of short flows in packets, and the algorithm of long flows.
type Point = (u32, Algorithm);

/// How large the tree is, and for how long.
#[derive(Clone, Copy, Debug)]
struct Size {
    k: u32,
    subflows: u32,
    /// The first windows of short flows, in packets.
    first_windows: &'static [u32],
    warm_up: Duration,
    duration: Duration,
}

/// Numbers of CoNEXT 2012 from memory: mean and standard deviation of the short flows' times in ms, and
/// the utilisation of the core.
fn remembered(algorithm: Algorithm) -> Option<[f64; 3]> {
    match algorithm {
        TCP => Some([73.0, 57.0, 0.393]),
        LIA => Some([98.0, 57.0, 0.632]),
        OLIA => Some([90.0, 42.0, 0.63]),
        _ => None,
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let size = context.pick(
        Size { k: 4, subflows: 4, first_windows: &[3], warm_up: ms(300), duration: ms(1200) },
        Size { k: 8, subflows: 8, first_windows: &[3, 10], warm_up: ms(1000), duration: ms(4000) },
    );
    let points: Vec<Point> =
        size.first_windows.iter().flat_map(|window| ALGORITHMS.map(|algorithm| (*window, algorithm))).collect();
    let one = |point: &Point, seed| {
        fairpath_sim::run(&scenario(size, *point, seed), &mut ()).map(|outcome| Seen::of(&outcome))
    };
    let runs = context.sweep(&points, &context.seeds(context.pick(2, 3)), one)?;
    let table = table(&points, &runs, context.pick(false, true));
    let verdicts = verdicts(&table);
    let figures = vec![figure(&table)];
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}

fn scenario(size: Size, (first_window, algorithm): Point, seed: u64) -> Scenario {
    let centre = DataCentre::new(size.k, RATIO, seed);
    let mut net = Net::new("dynamic fat tree", seed, size.warm_up, size.duration);
    let hosts = centre.shuffled_hosts();
    let (long, short) = hosts.split_at(hosts.len() / 3);
    let subflows = if algorithm == TCP { 1 } else { size.subflows };
    for host in long {
        let flow = net.flow("long", algorithm.tcp(), &centre.paths(*host, subflows));
        flow.start_jitter = ms(100);
    }
    for host in short {
        // Each transfer takes one of the ways at random: that is a Poisson process on each way.
        let ways = centre.paths(*host, u32::MAX);
        let mean_interval = INTERVAL * ways.len() as u32;
        for way in &ways {
            let flow = net.flow("short", TCP.tcp(), core::slice::from_ref(way));
            flow.engine.parameters.aimd.initial_window_datagrams = first_window;
            flow.traffic = Traffic::ShortFlows { size: SHORT_FLOW, mean_interval };
        }
    }
    for flow in &mut net.scenario.flows {
        flow.transport.header = ByteCount::ZERO;
    }
    net.scenario.links = centre.network.into_links();
    net.scenario
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    /// The times of the short flows, in ms, from the shortest.
    times: Vec<f64>,
    /// How much of the links to and from the core is used.
    core: f64,
    /// The goodput of a long flow, in Mbit/s.
    long: f64,
}

impl Seen {
    fn of(outcome: &Outcome) -> Self {
        let times = outcome.class("short").flat_map(|flow| &flow.completions);
        let mut times: Vec<f64> = times.map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        let core = outcome.links.iter().filter(|link| link.name.contains("-c"));
        let core: Vec<f64> = core.filter_map(|link| link.utilisation).collect();
        Self { times, core: mean(&core), long: outcome.mean_goodput("long").as_mbps_f64() }
    }

    fn deviation(&self) -> f64 {
        let middle = mean(&self.times);
        let squares: Vec<f64> = self.times.iter().map(|time| (time - middle) * (time - middle)).collect();
        mean(&squares).sqrt()
    }

    fn median(&self) -> f64 {
        self.times.get(self.times.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn table(points: &[Point], runs: &[Vec<Seen>], full: bool) -> Table {
    let columns = [
        ("short flows, mean", "ms"),
        ("their standard deviation", "ms"),
        ("their median", "ms"),
        ("core used", ""),
        ("long flow", "Mbit/s"),
    ];
    let title = "Times of short flows, and how much of the core is used";
    let mut table = Table::new("short_flows", title, &["first window", "long flows"], &columns);
    for ((first_window, algorithm), runs) in points.iter().zip(runs) {
        let remembered = remembered(*algorithm).filter(|_| full);
        let of = |ours: &dyn Fn(&Seen) -> f64| Cell::of(runs.iter().map(ours));
        let beside = |at: usize, cell: Cell| match remembered {
            Some(remembered) => cell.elsewhere(Source::Memory, remembered[at]),
            None => cell,
        };
        let cells = [
            beside(0, of(&|seen| mean(&seen.times))),
            beside(1, of(&Seen::deviation)),
            of(&Seen::median),
            beside(2, of(&|seen| seen.core)),
            of(&|seen| seen.long),
        ];
        table.row([&first_window.to_string(), algorithm.title], cells);
    }
    table
}

fn figure(table: &Table) -> Figure {
    let bars = |column: &str| {
        let value = |one: Algorithm| table.cell(&[OF_THE_TIME, one.title], column).cloned().unwrap_or_default();
        ALGORITHMS.map(|one| BarSeries::new(one.title, one.colour, [value(one)])).to_vec()
    };
    Figure::new("short_flows", "Short flows beside long ones")
        .bars("Short flows", Axis::new("mean time", "ms"), &["70 kB"], bars("short flows, mean"))
        .bars("Core", Axis::new("used", ""), &["all links"], bars("core used"))
}

fn verdicts(table: &Table) -> Vec<Verdict> {
    let ours = |one: Algorithm, column| table.estimate(&[OF_THE_TIME, one.title], column);
    let (used, time) = (|algorithm| ours(algorithm, "core used"), |algorithm| ours(algorithm, "short flows, mean"));
    vec![
        Verdict::new("multipath_uses_more", "With several paths the core is used far more than with TCP.")
            .at_least("core used, LIA / TCP", used(LIA) / used(TCP), 1.4)
            .at_least("core used, OLIA / TCP", used(OLIA) / used(TCP), 1.4),
        Verdict::new("olia_uses_as_much_as_lia", "OLIA uses as much of the core as LIA.").within(
            "core used, OLIA / LIA",
            used(OLIA) / used(LIA),
            1.0,
            0.05,
        ),
        Verdict::new("short_flows_pay", "Short flows take longer than beside TCP.").at_least(
            "mean time, OLIA / TCP",
            time(OLIA) / time(TCP),
            1.0,
        ),
        Verdict::new("olia_spares_short_flows", "Short flows take no longer beside OLIA than beside LIA.").at_most(
            "mean time, OLIA / LIA",
            time(OLIA) / time(LIA),
            1.0,
        ),
    ]
}
