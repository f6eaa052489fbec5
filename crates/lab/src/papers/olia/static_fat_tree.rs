//! A data centre with long flows: how much of it is used, and how fairly (slide 25).
//!
//! # Claim
//!
//! OLIA finds the many paths of a fat tree as well as LIA does, and with enough subflows nearly fills
//! it, where TCP uses half.
//!
//! # Topology
//!
//! ```text
//!   host h of 128 ── edge ── aggregation ── core ── aggregation ── edge ── another host
//!                 4 ways ───┘           4 ways ┘
//!   each host sends to one other, each receives from one; every link 100 Mbit/s
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | tree | k = 8: 128 hosts, 80 switches (quick: k = 4, 16 hosts) | paper (CoNEXT 2012, from memory) |
//! | links | 100 Mbit/s, 100 µs, queues of 100 packets | assumed: those of htsim |
//! | traffic | one endless flow from each host to another, a permutation | paper (CoNEXT 2012, from memory) |
//! | paths | as many different ones of the shortest as there are subflows, at random | assumed |
//! | subflows | 1, 2, 4, 8; TCP has 1 | paper: up to 8 |
//! | packets | 1500 B, all of it counted | assumed: so htsim counts |
//! | start | within 100 ms of each other | assumed |
//! | duration | 4 s, measured from 1 s on | assumed |
//!
//! # Deviations
//!
//! - The slide's curves are lost. Beside ours stands what htsim, the simulator that the paper used,
//!   gives for the same network and 10 s.
//! - htsim has the loss recovery of NewReno with time-outs of at least 250 ms; here it is RFC 9002's.

use core::time::Duration;

use fairpath_core::ByteCount;
use fairpath_scenario::Scenario;
use fairpath_sim::{Outcome, SimError, jain_index};

use super::algorithms::{Algorithm, COUPLED, LIA, OLIA, TCP, UNCOUPLED};
use super::data_centre::{DataCentre, RATE};
use crate::{
    Axis, Cell, Context, Experiment, Failure, Figure, Net, Report, Series, Source, Table, Verdict, ms, ranked,
};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("olia/static_fat_tree", include_str!("static_fat_tree.rs"), run);

/// An algorithm with so many subflows.
type Point = (Algorithm, u32);

const FULL: [Point; 9] =
    [(TCP, 1), (LIA, 2), (LIA, 4), (LIA, 8), (OLIA, 2), (OLIA, 4), (OLIA, 8), (UNCOUPLED, 8), (COUPLED, 8)];
const QUICK: [Point; 3] = [(TCP, 1), (LIA, 4), (OLIA, 4)];

/// The results of htsim: utilisation, the lowest flow, the 10th percentile, and Jain's index.
fn by_htsim(k: u32, point: Point) -> [Option<f64>; 4] {
    match (k, point) {
        (8, (TCP, 1)) => [0.47, 0.11, 0.18, 0.80].map(Some),
        (8, (LIA, 2)) => [0.64, 0.29, 0.41, 0.92].map(Some),
        (8, (LIA, 4)) => [0.79, 0.41, 0.61, 0.97].map(Some),
        (8, (LIA, 8)) => [0.84, 0.52, 0.69, 0.98].map(Some),
        (8, (UNCOUPLED, 8)) => [0.88, 0.66, 0.79, 0.99].map(Some),
        (8, (COUPLED, 8)) => [0.78, 0.54, 0.66, 0.99].map(Some),
        (4, (TCP, 1)) => [Some(0.68), None, None, None],
        (4, (LIA, 4)) => [Some(0.95), None, None, None],
        _ => [None; 4],
    }
}

/// The goodput of each flow as a share of a link's capacity, in rising order.
type Shares = Vec<f64>;

fn run(context: &Context) -> Result<Report, Failure> {
    let k = context.pick(4, 8);
    let points: Vec<Point> = context.pick(QUICK.to_vec(), FULL.to_vec());
    let (warm_up, duration) = context.pick((ms(300), ms(1000)), (ms(1000), ms(4000)));
    let one = |point: &Point, seed| shares(k, *point, seed, warm_up, duration);
    let runs = context.sweep(&points, &context.seeds(context.pick(4, 3)), one)?;
    let table = table(k, &points, &runs);
    let verdicts = verdicts(&table, context.pick(4, 8));
    let figures = vec![figure(&points, &runs)];
    Ok(Report { tables: vec![table], figures, verdicts, ..Report::default() })
}

fn shares(k: u32, point: Point, seed: u64, warm_up: Duration, duration: Duration) -> Result<Shares, SimError> {
    let outcome: Outcome = fairpath_sim::run(&scenario(k, point, seed, warm_up, duration), &mut ())?;
    let share = |goodput: fairpath_core::Bitrate| goodput.as_mbps_f64() / RATE.as_mbps_f64();
    let mut shares: Shares = outcome.flows.iter().map(|flow| share(flow.goodput)).collect();
    shares.sort_by(f64::total_cmp);
    Ok(shares)
}

fn scenario(k: u32, (algorithm, subflows): Point, seed: u64, warm_up: Duration, duration: Duration) -> Scenario {
    let centre = DataCentre::new(k, 1, seed);
    let mut net = Net::new("static fat tree", seed, warm_up, duration);
    for host in 0..centre.network.hosts().len() {
        let paths = centre.paths(host, subflows);
        let flow = net.flow("long", algorithm.tcp(), &paths);
        flow.transport.header = ByteCount::ZERO;
        flow.start_jitter = ms(100);
    }
    net.scenario.links = centre.network.into_links();
    net.scenario
}

fn mean(shares: &Shares) -> f64 {
    shares.iter().sum::<f64>() / shares.len() as f64
}

fn table(k: u32, points: &[Point], runs: &[Vec<Shares>]) -> Table {
    let columns = [("utilisation", ""), ("lowest flow", ""), ("10th percentile", ""), ("Jain's index", "")];
    let title = "Rates in parts of what a link carries";
    let mut table = Table::new("utilisation", title, &["subflows", "algorithm"], &columns);
    for (point, runs) in points.iter().zip(runs) {
        let measures: [fn(&Shares) -> f64; 4] =
            [mean, |shares| shares[0], |shares| shares[shares.len() / 10], |shares| jain_index(shares.iter().copied())];
        let htsim = by_htsim(k, *point);
        let cells = [0, 1, 2, 3].map(|at| Cell {
            elsewhere: htsim[at].map(|value| (Source::Htsim, value)),
            ..Cell::of(runs.iter().map(measures[at]))
        });
        table.row([&point.1.to_string(), point.0.title], cells);
    }
    table
}

fn figure(points: &[Point], runs: &[Vec<Shares>]) -> Figure {
    let most = points.iter().map(|(_, subflows)| *subflows).max();
    let ranks = points.iter().zip(runs).filter(|((_, subflows), _)| *subflows == 1 || Some(*subflows) == most);
    let ranks = ranks.filter_map(|((algorithm, subflows), runs)| {
        let name = format!("{}, {subflows}", algorithm.title);
        Some(Series::new(&name, algorithm.colour, ranked(runs.first()?.iter().copied())))
    });
    let curve = |algorithm: Algorithm| {
        let own = points.iter().zip(runs).filter(|((one, subflows), _)| *one == algorithm || *subflows == 1);
        let points = own.filter_map(|((_, subflows), runs)| {
            let cell = Cell::of(runs.iter().map(mean));
            Some((f64::from(*subflows), cell.ours?.mean))
        });
        Series::new(algorithm.title, algorithm.colour, points.collect())
    };
    Figure::new("throughput", "Throughput of the flows in a fat tree")
        .lines(
            "Flows from the fastest to the slowest, first seed",
            Axis::new("rank", ""),
            Axis::new("share of a link", ""),
            ranks.collect(),
        )
        .lines(
            "All flows",
            Axis::new("subflows", ""),
            Axis::new("utilisation", ""),
            vec![curve(LIA), curve(OLIA).dashed()],
        )
}

fn verdicts(table: &Table, most: u32) -> Vec<Verdict> {
    let used =
        |algorithm: Algorithm, subflows: u32| table.estimate(&[&subflows.to_string(), algorithm.title], "utilisation");
    let full = most == 8;
    let mut tcp = Verdict::new("tcp_uses_half", "With one path for each flow, about half of the tree is used.");
    tcp = if full { tcp.between("TCP", used(TCP, 1), 0.4, 0.6) } else { tcp.between("TCP", used(TCP, 1), 0.5, 0.8) };
    vec![
        tcp,
        Verdict::new("olia_fills_the_tree", "With enough subflows OLIA uses nearly all of it.").at_least(
            &format!("OLIA, {most} subflows"),
            used(OLIA, most),
            0.8,
        ),
        Verdict::new("olia_uses_as_much_as_lia", "OLIA uses as much as LIA.").within(
            &format!("{most} subflows, OLIA / LIA"),
            used(OLIA, most) / used(LIA, most),
            1.0,
            0.05,
        ),
        Verdict::new("multipath_pays", "Several paths are much better than one.").at_least(
            &format!("OLIA, {most} subflows, / TCP"),
            used(OLIA, most) / used(TCP, 1),
            1.25,
        ),
    ]
}
