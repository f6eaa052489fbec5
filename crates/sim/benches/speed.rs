//! How fast the simulator is: `cargo bench -p fairpath-sim`. Words after `--` select the runs whose
//! name contains one of them; a number is the number of rounds of each.
//!
//! The dumbbell and the fat tree are those on which other simulators were measured.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use core::time::Duration;
use std::time::Instant;

use fairpath_core::Bitrate;
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{Flow, LinkIndex, PathRoute, Scenario, ScenarioFile, ScenarioLink, Traffic, Transport};
use fairpath_sim::{Outcome, Parallel, Simulation, jain_index};

/// 30 bulk flows over one bottleneck of 40 Mbit/s and 20 ms with a queue of 100 ms.
fn dumbbell(access: bool, mbps: u64, flows: u32, seconds: u64) -> Scenario {
    let mut links = Vec::new();
    let mut link = |name: String, config: LinkConfig| {
        links.push(ScenarioLink { name, from: String::new(), to: String::new(), config });
        LinkIndex(links.len() as u32 - 1)
    };
    let rate = Bitrate::from_mbps(mbps);
    let delay = Duration::from_millis(20);
    let there = link(
        "there".into(),
        LinkConfig::new(rate).delay(delay).queue(QueueConfig::sojourn(Duration::from_millis(100))),
    );
    let back =
        link("back".into(), LinkConfig::new(rate).delay(delay).queue(QueueConfig::sojourn(Duration::from_millis(100))));
    let flow = |at: u32| {
        let gigabit = || LinkConfig::new(Bitrate::from_mbps(1000)).queue(QueueConfig::packets(1000));
        let mut side = |name: String| if access { vec![link(name, gigabit())] } else { vec![] };
        let forward = [side(format!("up {at}")), vec![there], side(format!("down {at}"))].concat();
        let backward = [side(format!("back up {at}")), vec![back], side(format!("back down {at}"))].concat();
        Flow {
            name: format!("flow {at}"),
            class: "bulk".into(),
            paths: vec![PathRoute { forward, backward }],
            engine: EngineConfig { congestion: "reno".into(), ..EngineConfig::default() },
            transport: Transport { header: fairpath_core::ByteCount::ZERO, ..Transport::default() },
            remedies: fairpath_scenario::Remedies::default(),
            traffic: Traffic::Bulk,
            start: Duration::ZERO,
            start_jitter: Duration::from_millis(100),
            stop: None,
            terms: Vec::new(),
        }
    };
    let flows = (0..flows).map(flow).collect();
    Scenario {
        title: "dumbbell".into(),
        seed: 1,
        duration: Duration::from_secs(seconds),
        warm_up: Duration::ZERO,
        sample_every: Duration::ZERO,
        links,
        flows,
        changes: Vec::new(),
    }
}

/// 128 hosts, each with a flow of 8 subflows to another, 100 Mbit/s links of 100 µs.
fn fat_tree(subflows: u32) -> Scenario {
    let text = format!(
        r#"
        duration = "10s"
        sample_every = "0s"
        [topology.fat_tree]
        k = 8
        link = {{ rate = "100Mbit/s", delay = "100us", queue = "100 packets" }}
        [[flow]]
        name = "permutation"
        matrix = "permutation"
        subflows = {subflows}
        congestion = "lia"
        transport = {{ header = "0B" }}
        "#
    );
    ScenarioFile::parse(&text, "fat tree").and_then(|file| file.expand(Some(1))).expect("a scenario")
}

/// The cost of a delivered packet elsewhere, on a machine of the same kind and one thread.
/// Measured on [htsim] and on ns-3's own optimised build.
/// build with optimisation, both by one thread.
const PEERS: &str =
    "for comparison, ns per packet: dumbbell htsim 222, ns-3 28,000; fat tree k = 8, 8 subflows htsim 6,000";

/// The least wall-clock time of the runs, what came out of them, and how many events one had.
struct Measured {
    seconds: f64,
    outcome: Outcome,
    events: u64,
}

/// Runs a scenario once, on one core or on `threads`.
fn once(scenario: &Scenario, threads: Option<usize>) -> Measured {
    let fits = "a scenario that fits";
    let start;
    let (outcome, events) = if let Some(threads) = threads {
        let mut run = Parallel::new(scenario, threads).expect("links with delay");
        start = Instant::now();
        run.run(&mut ()).expect(fits);
        (run.outcome(), run.events())
    } else {
        let mut run = Simulation::new(scenario).expect("a scenario");
        start = Instant::now();
        run.run(&mut ()).expect(fits);
        (run.outcome(), run.events())
    };
    Measured { seconds: start.elapsed().as_secs_f64(), outcome, events }
}

fn packets(outcome: &Outcome) -> u64 {
    outcome.flows.iter().flat_map(|flow| &flow.paths).map(|path| path.count.delivered.get() / 1500).sum()
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let rounds: u32 = words.iter().find_map(|word| word.parse().ok()).unwrap_or(5);
    let names: Vec<&String> = words.iter().filter(|word| word.parse::<u32>().is_err()).collect();
    let wanted = |name: &str| names.is_empty() || names.iter().any(|word| name.contains(word.as_str()));
    let measure = |name: &str, scenario: &Scenario, bottlenecks: &[&str]| {
        if !wanted(name) {
            return;
        }
        let mut best = f64::MAX;
        let mut line = String::new();
        for _ in 0..rounds {
            let Measured { seconds, outcome, events } = once(scenario, None);
            let packets = packets(&outcome);
            let goodput: f64 = outcome.flows.iter().map(|flow| flow.goodput.as_mbps_f64()).sum();
            let jain = jain_index(outcome.flows.iter().map(|flow| flow.goodput.as_mbps_f64()));
            best = best.min(seconds);
            let drops: u64 = bottlenecks.iter().filter_map(|name| outcome.link(name)).map(|link| link.dropped).sum();
            line = format!(
                "{packets:9} packets  {:6.0} ns each  {:5.2} M/s  {goodput:7.1} Mbit/s  Jain {jain:.2}  drops {drops}  events {:.1}",
                best * 1e9 / packets as f64,
                packets as f64 / best / 1e6,
                events as f64 / packets as f64,
            );
        }
        println!("{name:34} {line}");
    };
    measure("dumbbell, bottleneck only", &dumbbell(false, 40, 30, 100), &["there"]);
    measure("dumbbell, access links", &dumbbell(true, 40, 30, 100), &["there"]);
    measure("dumbbell at 1 Gbit/s", &dumbbell(true, 1000, 30, 10), &["there"]);
    measure("250 flows over 400 Mbit/s", &dumbbell(true, 400, 250, 10), &["there"]);
    measure("fat tree k = 8, 1 subflow", &fat_tree(1), &[]);
    measure("fat tree k = 8, 8 subflows, LIA", &fat_tree(8), &[]);
    let name = "fat tree k = 8 over several cores";
    if wanted(name) {
        several_cores(name, rounds);
    }
    println!("{PEERS}");
}

/// The fat tree on one core and over several, in turn; the median of the ratios of each round.
fn several_cores(name: &str, rounds: u32) {
    let scenario = Scenario { duration: Duration::from_secs(2), ..fat_tree(8) };
    let ways = [None, Some(1), Some(2), Some(4)];
    let mut times = ways.map(|_| Vec::new());
    for _ in 0..rounds {
        for (way, times) in ways.iter().zip(&mut times) {
            let Measured { seconds, outcome, .. } = once(&scenario, *way);
            times.push(seconds * 1e9 / packets(&outcome) as f64);
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (way, each) in ways.iter().zip(&times) {
        let way = way.map_or("one core".to_owned(), |threads| format!("windows, {threads} threads"));
        let ratios: Vec<f64> = times[0].iter().zip(each).map(|(one, several)| one / several).collect();
        println!(
            "{name:34} {way:20} {:6.0} ns for a packet  {:.2} times one core",
            median(each.clone()),
            median(ratios)
        );
    }
}
