//! Do no harm: a bond over whatever two paths is no slower than the better of them.

use rayon::prelude::*;

use crate::grid::*;

/// The least share of the better path's goodput that a bond must reach. The rest is data in flight
/// on the slower path at the end, and the cost of finding out.
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
