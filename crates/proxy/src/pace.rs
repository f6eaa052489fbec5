//! A rate cap that many connections share: a bucket of bytes, filled steadily.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fairpath::{Amount, Bitrate};
use tokio::time::Instant;

/// How much may be taken at once: this long at the full rate.
const BURST: Duration = Duration::from_millis(100);

/// A cap on the sum of what its holders carry in one direction.
#[derive(Debug)]
pub(crate) struct Pace(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    rate: Option<Bitrate>,
    /// When the bytes that were taken so far have left at this rate.
    due: Instant,
}

impl Pace {
    pub(crate) fn new(rate: Option<Bitrate>) -> Self {
        Self(Mutex::new(Bucket { rate, due: Instant::now() }))
    }

    /// Another cap from now on.
    pub(crate) fn set(&self, rate: Option<Bitrate>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rate = rate;
    }

    /// Waits until `bytes` may pass.
    pub(crate) async fn take(&self, bytes: usize) {
        if let Some(until) = self.reserve(bytes, Instant::now()) {
            tokio::time::sleep_until(until).await;
        }
    }

    fn reserve(&self, bytes: usize, now: Instant) -> Option<Instant> {
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = bucket.rate.filter(|rate| *rate > Bitrate::ZERO)?;
        let begin = bucket.due.max(now.checked_sub(BURST).unwrap_or(now));
        bucket.due = begin + Amount::new(bytes as u64) / rate;
        (bucket.due > now).then_some(bucket.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_whoever_takes_and_a_short_burst_passes_at_once() {
        // 8 Mbit/s are 1 MB/s: of 1 MB, 0.1 MB pass at once.
        let begun = Instant::now();
        let pace = Pace::new(Some(Bitrate::from_mbps(8)));
        let now = begun + Duration::from_secs(10);
        assert_eq!(pace.reserve(100_000, now), None);
        let last = (0..9).filter_map(|_| pace.reserve(100_000, now)).last();
        assert_eq!(last, Some(now + Duration::from_millis(900)));
        pace.set(None);
        assert_eq!(pace.reserve(100_000_000, now), None);
    }
}
