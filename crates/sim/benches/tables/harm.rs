//! Bonds over unequal paths, by scheduler.

use crate::grid::*;

/// For people: min_rtt and arrival in parts of the better path.
pub(crate) fn table() {
    for size in [Some(10_000_000), None] {
        for cell in grid(size, &[SMALL, Some(4_000_000)]) {
            let ratios = ["min_rtt", "arrival"].map(|scheduler| Cell { scheduler, ..cell }.ratio(1));
            println!("{:.3?} {:?} {:?} {:?}", ratios, cell.links, cell.size, cell.buffer);
        }
    }
}
