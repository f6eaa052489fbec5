//! Hybrid CUBIC alone on a link, in the deterministic model: the queue grows by the same in each round trip, and what is
//! too much is cut in one.
//!
//! # Source
//!
//! Ours: what `fairpath_cc::equation::hybrid_cubic` does where delays do not vary by themselves.
//!
//! # Symbols
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | n | packets of a pipe without a queue | 1 |
//! | step | growth of the wait in a round trip | s |
//! | target, low | `TARGET`, `LOW` | s |
//!
//! # Deviations
//!
//! - The bursts of a sender are left out, which make a packet wait for those that left with it.

use core::time::Duration;

use fairpath_cc::equation::hybrid_cubic::{LOW, STEP, TARGET};
use fairpath_core::{Bitrate, ByteCount};

/// The mean wait of a path that keeps its queue short.
//
//     step = max( STEP * √n, 1 ) * packet / rate
//     wait = ( low + target + 2 * step ) / 2
//
// The target is passed by up to a step, and what was sent before the cut goes on for a round trip.
pub fn short_queue_wait(rate: Bitrate, rtt: Duration, packet: ByteCount) -> Duration {
    let rtt = rtt.as_secs_f64();
    let packet = 8.0 * packet.as_f64() / (rate.as_bps() as f64).max(1.0);
    let step = (STEP * libm::sqrt(rtt / packet)).max(1.0) * packet;
    Duration::from_secs_f64((LOW + TARGET) / 2.0 + step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_pipe_passes_the_target_by_more_and_a_faster_link_by_less() {
        let wait =
            |mbps, rtt| short_queue_wait(Bitrate::from_mbps(mbps), Duration::from_millis(rtt), ByteCount::new(1_500));
        // n = 0.05 s * 20 Mbit/s / 12,000 bit = 83.3; step = 0.25 * 9.13 * 0.6 ms = 1.37 ms; 6.5 + 1.37 = 7.87
        assert_eq!(wait(20, 50).as_micros(), 7_869);
        assert!(wait(20, 500) > wait(20, 50) && wait(200, 50) < wait(20, 50));
        // With few packets the step is one: 6.5 + 6 = 12.5
        assert_eq!(wait(2, 10).as_micros(), 12_500);
    }
}
