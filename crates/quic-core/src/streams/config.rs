//! Bounds of memory for the streams of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fairpath_engine::ByteCount;
use web_time::Duration;

/// The window of a stream when it begins, in bytes.
pub(super) const WINDOW: u64 = 64 << 10;

/// The window of all streams of a connection together when it begins, in bytes.
pub(super) const WINDOW_ALL: u64 = 1 << 20;

/// How long streams are kept if nothing else is said.
const KEPT: Duration = Duration::from_secs(60);

/// Bounds of what the streams of a connection cost this end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamsConfig {
    /// How many streams the peer may have open at once.
    pub open_max: u32,
    /// The most that a stream may have on its way to this end and unread. A window begins with 64 kB, and grows.
    pub window_max: ByteCount,
    /// The same of all streams of a connection together. It begins with 1 MB, and grows.
    pub connection_max: ByteCount,
    /// The memory that windows of connections grow by, over all connections that share it.
    pub budget: Budget,
    /// How long streams are kept whose connection is lost, for another to go on with them.
    pub kept: Duration,
}

impl Default for StreamsConfig {
    fn default() -> Self {
        Self {
            open_max: 16_384,
            window_max: ByteCount::new(16 << 20),
            connection_max: ByteCount::new(64 << 20),
            budget: Budget::new(ByteCount::new(1 << 30)),
            kept: KEPT,
        }
    }
}

/// An amount of memory that connections of a process share.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicU64>);

impl Budget {
    /// A budget of this many bytes.
    pub fn new(bytes: ByteCount) -> Self {
        Self(Arc::new(AtomicU64::new(bytes.get())))
    }

    /// The amount that is left.
    pub fn left(&self) -> ByteCount {
        ByteCount::new(self.0.load(Ordering::Relaxed))
    }

    /// Takes up to this many bytes, and returns how many.
    pub(super) fn take(&self, bytes: u64) -> u64 {
        let mut taken = 0;
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            taken = left.min(bytes);
            Some(left - taken)
        });
        taken
    }

    /// Gives it back.
    pub(super) fn give(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let budget = Budget::new(ByteCount::new(100));
        let other = budget.clone();
        assert_eq!((budget.take(70), other.take(70), budget.take(1)), (70, 30, 0));
        other.give(50);
        assert_eq!(budget.left(), ByteCount::new(50));
    }
}
