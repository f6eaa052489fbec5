//! How much of the machine is idle while something is measured: both ends, curl, the servers and the links share it.

use std::fs;
use std::time::Instant;

/// Linux counts the time of processors in hundredths of a second, whatever its own clock.
const TICKS: f64 = 100.0;

/// Counts from when it began.
pub(super) struct Idle {
    begun: Instant,
    before: f64,
}

impl Idle {
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now(), before: seconds() }
    }

    /// The processors' time that was used by all that runs here, in nanoseconds.
    pub(super) fn used_nanoseconds(&self) -> f64 {
        let there = cores() * self.begun.elapsed().as_secs_f64();
        (there - (seconds() - self.before)) * 1e9
    }

    /// How many cores did nothing, in the mean.
    pub(super) fn cores(&self) -> f64 {
        (seconds() - self.before) / self.begun.elapsed().as_secs_f64()
    }
}

/// How many there are.
pub(super) fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64)
}

/// The idle time of all cores so far, in seconds.
fn seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").expect("Linux tells");
    // The fourth number is idle time, the fifth that of waiting for disks.
    let ticks = stat.split_whitespace().skip(4).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}
