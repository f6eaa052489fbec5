//! The time by tokio's clock, which its timers use. That is the system's monotonic clock, unless a
//! simulation has paused it: then all of this crate runs in virtual time.

use std::time::Instant;

/// Now.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
