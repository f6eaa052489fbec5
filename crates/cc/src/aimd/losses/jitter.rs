//! Losses that jitter hides: those of a path whose delays vary by more than its queue.
//!
//! Where each packet takes some milliseconds more or less, as over radio links, the least of a few samples is well
//! above the least of all, and every loss seems to have met a queue. A mean of many says more, and two things of it:
//! how high it is, in parts of the jitter; and whether losses come when it is high. Of a queue that overflows they do,
//! however low it is, and what is lost at random comes at any time.
//!
//! # Source
//!
//! Ours.
//!
//! # Symbols
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | d | the time from the sending of a packet to its acknowledgement | ns |
//! | m, J, n | `Jitter::mean`, `Jitter::interarrival` [RFC3550 §6.4.1], [`SAMPLES`] | ns, ns, 1 |
//! | M, V, N | `Jitter::usual`, `Jitter::spread`, [`USUAL_SAMPLES`] | ns, ns, 1 |
//! | z | `Jitter::height_of_losses` | 1 |
//!
//! # Why these parameters
//!
//! `docs/design/losses-without-a-queue.md` has the alternatives that were tried. If the timing of
//! losses is ignored, others keep half of their share of a link with 5 ms of jitter and 12 ms of
//! queue. If the height is ignored, they keep half of it with 20 ms and 50 ms. With 8 losses in
//! place of 48, random losses seem high so often by chance that a link with jitter and 2 % of
//! losses carries 0.6 of its goodput.

use core::time::Duration;

use fairpath_core::{Ack, WindowedMin};

use super::MEMORY;
use crate::time::nanos;

/// Averaging length of the mean delay and of its variation, in samples.
const SAMPLES: f64 = 32.0;
/// How far jitter alone lifts the mean above its minimum, in jitters. A mean of 32 samples varies
/// by a sixth of what one does, and its minimum over half a minute lies two or three of these below
/// it.
const EXPLAINED: f64 = 1.5;
/// Averaging length of the usual mean, in samples.
const USUAL_SAMPLES: f64 = 512.0;
/// Averaging length of the height at losses. Chance moves that of random losses by an eighth up or
/// down.
const LOSSES: f64 = 48.0;
/// Height, in mean deviations from the usual mean, from which losses come when the mean is high.
const HIGH: f64 = 0.25;
/// Limit on the height that one loss counts for.
const HIGH_AT_MOST: f64 = 3.0;

/// The delays of a path, and how high they are when packets are lost.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    samples: f64,
    newest: f64,
    mean: f64,
    /// The mean difference of successive delays. A queue adds little to it, because its length
    /// changes slowly.
    interarrival: f64,
    lowest: WindowedMin<f64>,
    lowest_mean: f64,
    usual: f64,
    spread: f64,
    height_of_losses: f64,
}

impl Default for Jitter {
    fn default() -> Self {
        Self {
            samples: 0.0,
            newest: 0.0,
            mean: 0.0,
            interarrival: 0.0,
            lowest: WindowedMin::new(MEMORY),
            lowest_mean: 0.0,
            usual: 0.0,
            spread: 0.0,
            height_of_losses: 0.0,
        }
    }
}

impl Jitter {
    /// A packet was acknowledged.
    //
    // With d' the delay before:
    //     m <- m + (d - m) / n,  J <- J + (|d - d'| - J) / n
    //
    //     M <- M + (m - M) / N,  V <- V + (|m - M| - V) / N
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        let delay = nanos(ack.now.since(ack.sent_at));
        if self.samples == 0.0 {
            (self.newest, self.mean, self.usual) = (delay, delay, delay);
        }
        self.samples += 1.0;
        let gain = gain(self.samples, SAMPLES);
        let difference = (delay - self.newest).abs();
        self.newest = delay;
        self.mean += gain * (delay - self.mean);
        self.interarrival += gain * (difference - self.interarrival);
        if self.is_known() {
            let gain = self::gain(self.samples - SAMPLES + 1.0, USUAL_SAMPLES);
            self.usual += gain * (self.mean - self.usual);
            self.spread += gain * ((self.mean - self.usual).abs() - self.spread);
            self.lowest_mean = self.lowest.update(ack.now, self.mean);
        }
    }

    /// Packets were found lost.
    //
    //     z <- z + ((m - M) / V - z) / 48
    pub(super) fn on_loss(&mut self) {
        if self.spread > 0.0 {
            let height = ((self.mean - self.usual) / self.spread).clamp(-HIGH_AT_MOST, HIGH_AT_MOST);
            self.height_of_losses += (height - self.height_of_losses) / LOSSES;
        }
    }

    /// Whether packets that are lost now may have found no queue, or less than `queue`, though the least delays of this
    /// moment say otherwise. `None`: of too few packets it is known how long they took.
    //
    //     z < 0.25 and m - min m < queue + 1.5 J
    pub(super) fn explains(&self, queue: Duration) -> Option<bool> {
        let highest = self.lowest_mean + nanos(queue) + EXPLAINED * self.interarrival;
        self.is_known().then_some(self.height_of_losses < HIGH && self.mean < highest)
    }

    /// Whether delays vary by more than this from one packet to the next.
    pub(super) fn is_above(&self, height: Duration) -> bool {
        self.interarrival > nanos(height)
    }

    fn is_known(&self) -> bool {
        self.samples >= SAMPLES
    }
}

/// One over the number of samples, and over `most` where there are more: without a division for each acknowledgement.
fn gain(samples: f64, most: f64) -> f64 {
    if samples < most { 1.0 / samples } else { 1.0 / most }
}

#[cfg(test)]
mod tests {
    use fairpath_core::ByteCount;

    use super::*;
    use crate::testing::*;

    /// A path whose packets come back a millisecond apart.
    struct Path {
        jitter: Jitter,
        now_ms: u64,
    }

    impl Path {
        fn new() -> Self {
            Self { jitter: Jitter::default(), now_ms: 1_000 }
        }

        /// Packets that waited `wait_ms`, give or take `jitter_ms`, in a cycle that no test's
        /// period matches.
        fn waits(mut self, packets: u64, wait_ms: u64, jitter_ms: u64) -> Self {
            for packet in 0..packets {
                self.now_ms += 1;
                let delay_ms = 100 + wait_ms + (packet * 7 % 11) * 2 * jitter_ms / 10 - jitter_ms;
                self.jitter.on_ack(&ack(self.now_ms, ByteCount::new(1200), delay_ms));
            }
            self
        }

        fn loses(mut self) -> Self {
            self.jitter.on_loss();
            self
        }

        fn explains(&self) -> bool {
            self.jitter.explains(ms(5)).unwrap()
        }
    }

    #[test]
    fn a_queue_no_higher_than_jitter_may_be_none() {
        // The delays differ by 0 and by some 20 ms: less than 5 ms, and less than about 35.
        for (jitter_ms, wait_ms, explained) in
            [(0, 4, true), (0, 6, false), (20, 0, true), (20, 6, true), (20, 20, true), (20, 60, false)]
        {
            let path = Path::new().waits(1_000, 0, jitter_ms).waits(320, wait_ms, jitter_ms);
            assert_eq!(path.explains(), explained, "{jitter_ms} ms, a queue of {wait_ms} ms");
        }
    }

    #[test]
    fn losses_that_come_when_packets_wait_are_congestion_however_little_they_wait() {
        // A queue that fills to 10 ms and drains, of a path with 20 ms of jitter.
        let run = |lost_at_ms: u64| {
            (0..40).fold(Path::new().waits(1_000, 0, 20), |path, _| {
                [0, 5, 10].into_iter().fold(path, |path, wait_ms| {
                    let path = path.waits(100, wait_ms, 20);
                    if wait_ms == lost_at_ms { path.loses() } else { path }
                })
            })
        };
        assert!(!run(10).explains());
        assert!(run(0).explains() && run(5).explains());
    }

    #[test]
    fn few_delays_explain_nothing() {
        let explains = |packets| Path::new().waits(packets, 0, 0).jitter.explains(ms(5));
        assert_eq!([31, 32].map(explains), [None, Some(true)]);
    }

    #[test]
    fn a_route_that_grew_longer_is_learnt() {
        let path = Path::new().waits(1_000, 0, 0).waits(1_000, 80, 0);
        assert!(!path.explains());
        assert!(path.waits(31_000, 80, 0).explains(), "after half a minute");
    }
}
