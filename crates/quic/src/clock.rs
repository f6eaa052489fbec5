//! What time it is: tokio's, by which the timers go. It is the system's monotonic clock, unless who simulates an
//! end has paused it; then all of this crate runs in virtual time.

use std::time::Instant;

/// Now.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
