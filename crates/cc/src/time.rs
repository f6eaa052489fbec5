//! Times as numbers.

use core::time::Duration;

/// `time` in nanoseconds. Unlike seconds it needs no division.
pub(crate) fn nanos(time: Duration) -> f64 {
    time.as_secs() as f64 * 1e9 + f64::from(time.subsec_nanos())
}
