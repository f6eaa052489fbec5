//! Bonds over unequal paths: what the watchdog and the schedulers have to do with it.

use crate::grid::*;

/// For people: what the watchdog and the schedulers have to do with it.
pub(crate) fn table() {
    for size in [Some(10_000_000), None] {
        for cell in grid(size, &[SMALL, Some(4_000_000)]) {
            let of = |(scheduler, watchdog)| Cell { scheduler, watchdog, ..cell }.ratio(1);
            let ratios = [("min_rtt", false), ("min_rtt", true), ("arrival", false), ("arrival", true)].map(of);
            println!("{:.3?} {:?} {:?} {:?}", ratios, cell.links, cell.size, cell.buffer);
        }
    }
}
