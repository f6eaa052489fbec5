//! Do no harm: a bond over whatever two paths is no slower than the better of them.

use std::path::Path;

use fairpath_scenario::ScenarioFile;
use fairpath_sim::run;
use rayon::prelude::*;

use crate::grid::*;

/// What of the better path alone a bond has at least. What is lost between is what was on its way on the slower path
/// at the end, and what finding out costs.
const NO_SLOWER: f64 = 0.97;

/// The cells that are slower than they may be, in words.
fn slower(cells: Vec<Cell>) -> Vec<String> {
    let ratios = cells.into_par_iter().map(|cell| (cell, cell.ratio(1)));
    ratios.filter(|(_, ratio)| *ratio < NO_SLOWER).map(|(cell, ratio)| format!("{ratio:.3} {cell:?}")).collect()
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
