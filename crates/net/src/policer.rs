//! A policer: what comes faster than a rate is dropped, and nothing ever waits for it.
//!
//! # Source
//!
//! [RFC2697], the meter with a single rate, whose excess burst is 0: what it colours green passes, what it
//! colours red is dropped.

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use crate::error::LinkConfigError;

/// A policer at the entrance of a link. Beside a queue, the other usual way to sell a part of a link's rate:
/// it drops at once where a queue would delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// The rate at which the bucket is filled (the RFC's CIR).
    pub rate: Bitrate,
    /// The size of the bucket (the RFC's CBS): the largest burst after a pause.
    pub burst: ByteCount,
}

impl Policer {
    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        if self.burst == ByteCount::ZERO { Err(LinkConfigError::NoBurst) } else { Ok(()) }
    }
}

/// Bits times nanoseconds per second: so the bucket is filled in whole numbers, whatever the rate.
const UNITS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// A policer at work.
#[derive(Debug)]
pub(crate) struct Bucket {
    policer: Policer,
    /// The tokens in it (the RFC's Tc).
    tokens: u128,
    filled_at: Timestamp,
}

impl Bucket {
    /// A full one [RFC2697 §3].
    pub(crate) fn new(policer: Policer) -> Self {
        Self { policer, tokens: u128::from(policer.burst.get()) * UNITS_PER_BYTE, filled_at: Timestamp::ZERO }
    }

    /// Whether a packet of this size may pass; it takes its tokens then [RFC2697 §3].
    //
    //     if Tc(t) - B >= 0, the packet is green and Tc is decremented by B
    pub(crate) fn admits(&mut self, now: Timestamp, size: ByteCount) -> bool {
        let full = u128::from(self.policer.burst.get()) * UNITS_PER_BYTE;
        let filled = u128::from(self.policer.rate.as_bps()) * u128::from(now.nanos_since(self.filled_at));
        self.tokens = (self.tokens + filled).min(full);
        self.filled_at = now;
        let needed = u128::from(size.get()) * UNITS_PER_BYTE;
        let admitted = needed <= self.tokens;
        if admitted {
            self.tokens -= needed;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1500);

    /// How many packets pass that come at these times, in microseconds.
    fn passed(bucket: &mut Bucket, times: impl Iterator<Item = u64>) -> usize {
        times.filter(|at| bucket.admits(Timestamp::from_nanos(at * 1000), PACKET)).count()
    }

    fn bucket() -> Bucket {
        // A packet takes 1 ms of its rate.
        Bucket::new(Policer { rate: Bitrate::from_mbps(12), burst: PACKET * 10 })
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = bucket();
        assert_eq!(passed(&mut bucket, [0; 100].into_iter()), 10);
        // Four come in the time of one; 10 s are 10,000 of them.
        assert_eq!(passed(&mut bucket, (0..40_000).map(|n| 250 * (n + 1))), 10_000);
    }

    #[test]
    fn what_comes_more_slowly_passes_whole_and_fills_the_bucket() {
        let mut bucket = bucket();
        assert_eq!(passed(&mut bucket, (0..100).map(|n| 1000 * n)), 100);
        // A second fills no more than it holds.
        assert_eq!(passed(&mut bucket, [1_100_000; 100].into_iter()), 10);
    }

    #[test]
    fn nothing_is_lost_to_rounding() {
        // 7 bit/s are 7/12,000 of a packet in a second: one packet in 1714.2857... s.
        let mut bucket = Bucket::new(Policer { rate: Bitrate::from_bps(7), burst: PACKET });
        assert!(bucket.admits(Timestamp::ZERO, PACKET));
        let refused = (1..=1714).all(|second| !bucket.admits(Timestamp::from_secs(second), PACKET));
        assert!(refused && bucket.admits(Timestamp::from_secs(1715), PACKET));
    }
}
