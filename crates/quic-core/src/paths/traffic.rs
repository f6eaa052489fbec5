//! Whether data is flowing.

use std::time::{Duration, Instant};

/// Data is flowing where the connection moves this many datagrams in a second.
const BUSY_DATAGRAMS: u64 = 40;

/// And it is still meant to flow for this long after: a dead path may have stopped it.
const BUSY_FOR: Duration = Duration::from_secs(10);

/// How much the connection moves.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// When the datagrams were counted last, and how many there had been.
    counted: Option<(Instant, u64)>,
    busy_until: Option<Instant>,
}

impl Traffic {
    /// `datagrams` went over the open paths so far.
    pub(super) fn update(&mut self, datagrams: u64, now: Instant) {
        let (at, before) = *self.counted.get_or_insert((now, datagrams));
        if now.saturating_duration_since(at) >= Duration::from_secs(1) {
            self.counted = Some((now, datagrams));
        }
        if datagrams.saturating_sub(before) >= BUSY_DATAGRAMS {
            self.busy_until = Some(now + BUSY_FOR);
        }
    }

    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.is_some_and(|until| now < until)
    }
}
