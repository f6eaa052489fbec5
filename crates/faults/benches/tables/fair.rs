//! Cells of the default over the real stack: four minutes of processor time.

use std::time::Duration;

use crate::cells::{CELLS, mean, ratios};

pub(crate) fn table() {
    let times = [Duration::from_secs(20), Duration::from_secs(60)];
    let seeds: Vec<u64> = (1..=4).collect();
    for cell in CELLS {
        let (ratios, gots) = ratios(&cell, &seeds, times);
        let together = mean(&gots.iter().map(|got| got.together).collect::<Vec<_>>());
        let firsts: Vec<Option<f64>> = gots.iter().map(|got| got.first.map(|first| first.as_secs_f64())).collect();
        println!("{}: {:.2} {ratios:.2?}, together {together:.3}, first {firsts:.1?}", cell.name(), mean(&ratios));
    }
}
