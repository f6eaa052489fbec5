//! Means of the tests.

use core::time::Duration;

use fairpath_core::{DelaySample, PathId, Timestamp};

pub(crate) fn path(id: u32) -> PathId {
    PathId::new(id)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A round-trip time of `rtt_ms`, measured at `now_ms`.
pub(crate) fn sample(now_ms: u64, rtt_ms: f64) -> DelaySample {
    DelaySample { now: Timestamp::from_millis(now_ms), rtt: Duration::from_secs_f64(rtt_ms / 1e3), one_way: None }
}
