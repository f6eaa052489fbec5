//! Do no harm: a bond over whatever two paths is no slower than the better of them.

use std::path::Path;

use crate::common::{Net, ms};
use fairpath_core::{Bitrate, Bytes};
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{PathRoute, ScenarioFile, Traffic};
use fairpath_sim::run;
use rayon::prelude::*;

/// What of the better path alone a bond has at least. What is lost between is what was on its way on the slower path
/// at the end, and what finding out costs.
const NO_SLOWER: f64 = 0.97;

/// A path: rate in Mbit/s, round trip in ms, queue in hundredths of the product of the two, share of packets lost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Link(u64, u64, u64, f64);

/// Two paths, what the application sends, and what the receiver may hold.
#[derive(Clone, Copy, Debug)]
struct Cell {
    links: [Link; 2],
    size: Option<u64>,
    buffer: Option<u64>,
    scheduler: &'static str,
    watchdog: bool,
    reinjection: bool,
}

impl Cell {
    /// The goodput over some of the paths, in Mbit/s.
    fn goodput(&self, over: &[usize], seed: u64) -> f64 {
        let mut net = Net::new(if self.size.is_some() { 300 } else { 120 }, seed);
        let routes: Vec<PathRoute> = over.iter().map(|at| route(&mut net, self.links[*at])).collect();
        let flow = net.flow("transfer", "lia", &routes);
        flow.as_live(EngineConfig {
            scheduler: self.scheduler.into(),
            watchdog: self.watchdog,
            ..EngineConfig::live()
        });
        flow.traffic = self.size.map_or(Traffic::Bulk, |size| Traffic::Finite { size: Bytes::new(size) });
        flow.transport.receive_buffer = self.buffer.map(Bytes::new);
        flow.transport.reinjection = self.reinjection;
        let outcome = run(&net.scenario, &mut ()).expect("it runs");
        let flow = &outcome.flows[0];
        let took = flow.completions.first().map_or(net.scenario.duration, |took| *took);
        flow.delivered.as_f64() * 8e-6 / took.as_secs_f64()
    }

    /// The bond in parts of its better path alone.
    fn ratio(&self, seed: u64) -> f64 {
        let alone = [0, 1].map(|path| self.goodput(&[path], seed));
        self.goodput(&[0, 1], seed) / alone[0].max(alone[1])
    }
}

/// A receive buffer that is less than the bandwidth-delay products of both paths together. The first window of the slow
/// path, which leaves before its round trip is known, then keeps the fast one back for once: `ratios_of_the_grid` shows
/// how much.
const SMALL: Option<u64> = Some(500_000);

fn route(net: &mut Net, Link(mbps, rtt, hundredths, loss): Link) -> PathRoute {
    let (rate, one_way) = (Bitrate::from_mbps(mbps), ms(rtt) / 2);
    let queue = QueueConfig::sojourn(ms(rtt) * hundredths as u32 / 100);
    let mut there = LinkConfig::new(rate).delay(one_way).queue(queue);
    if loss > 0.0 {
        there = there.loss(LossConfig::Random { probability: loss });
    }
    let there = net.link(there);
    let back = net.link(LinkConfig::pure_delay(one_way));
    PathRoute { forward: vec![there], backward: vec![back] }
}

/// The cells that are slower than they may be, in words.
fn slower(cells: Vec<Cell>) -> Vec<String> {
    let ratios = cells.into_par_iter().map(|cell| (cell, cell.ratio(1)));
    ratios.filter(|(_, ratio)| *ratio < NO_SLOWER).map(|(cell, ratio)| format!("{ratio:.3} {cell:?}")).collect()
}

/// Rates 1:1 to 1:20, round trips 1:1 to 1:10, queues of 0.5 to 12 bandwidth-delay products, buffers of 0.5 to 16 MB.
fn grid(size: Option<u64>, buffers: &[Option<u64>]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for slow_mbps in [40, 10, 2] {
        for slow_rtt in [40, 120, 400] {
            for queue in [50, 200, 1_200] {
                for &buffer in buffers {
                    let links = [Link(40, 40, queue, 0.0), Link(slow_mbps, slow_rtt, queue, 0.0)];
                    cells.push(Cell { links, size, buffer, scheduler: "arrival", watchdog: true, reinjection: true });
                }
            }
        }
    }
    cells
}

#[test]
fn no_transfer_of_a_grid_of_unequal_paths_is_slower_than_over_the_better_one() {
    let slower = slower(grid(Some(10_000_000), &[Some(4_000_000), None]));
    assert!(slower.is_empty(), "{} cells:\n{}", slower.len(), slower.join("\n"));
}

#[test]
fn no_lasting_flow_over_unequal_paths_is_slower_than_over_the_better_one() {
    let slower = slower(grid(None, &[Some(4_000_000)]).into_iter().step_by(2).collect());
    assert!(slower.is_empty(), "{} cells:\n{}", slower.len(), slower.join("\n"));
}

/// A small receive buffer that the slow path holds: min-RTT scheduling does harm there, and the watchdog ends it.
#[test]
fn what_a_published_scheduler_does_harm_with_is_parked() {
    let links = [Link(40, 40, 200, 0.0), Link(2, 400, 200, 0.0)];
    let cell = |watchdog| {
        let (size, buffer, scheduler) = (None, Some(500_000), "min_rtt");
        Cell { links, size, buffer, scheduler, watchdog, reinjection: false }
    };
    let (without, with) = (cell(false).ratio(1), cell(true).ratio(1));
    assert!(without < 0.9, "it does no harm: {without:.3}");
    assert!(with > without + 0.5 * (1.0 - without), "{with:.3}, and {without:.3} without the watchdog");
}

/// A path whose packets take the place of three of the other's: congestion control shares the link among packets, and
/// nothing but trying tells what that costs.
#[test]
fn a_path_that_takes_the_place_of_three_is_parked() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/second_path_harms.toml");
    let file = ScenarioFile::parse(&std::fs::read_to_string(&file).unwrap(), "second_path_harms").unwrap();
    let goodput = |watchdog, paths| {
        let mut scenario = file.expand(Some(1)).unwrap();
        scenario.flows[0].engine.watchdog = watchdog;
        scenario.flows[0].paths.truncate(paths);
        run(&scenario, &mut ()).expect("it runs").flows[0].goodput.as_mbps_f64()
    };
    let (alone, without, with) = (goodput(true, 1), goodput(false, 2), goodput(true, 2));
    assert!(without < 0.85 * alone, "it does no harm: {without:.2} of {alone:.2} Mbit/s");
    // It is tried again after 4 s, 8, 16 ..., and each time takes some seconds.
    assert!(with > 0.95 * alone, "{with:.2} of {alone:.2} Mbit/s, and {without:.2} without the watchdog");
}

/// For people: what the watchdog and the schedulers have to do with it.
#[test]
#[ignore = "a table"]
fn ratios_of_the_grid() {
    for size in [Some(10_000_000), None] {
        for cell in grid(size, &[SMALL, Some(4_000_000)]) {
            let of = |(scheduler, watchdog)| Cell { scheduler, watchdog, ..cell }.ratio(1);
            let ratios = [("min_rtt", false), ("min_rtt", true), ("arrival", false), ("arrival", true)].map(of);
            println!("{:.3?} {:?} {:?} {:?}", ratios, cell.links, cell.size, cell.buffer);
        }
    }
}
