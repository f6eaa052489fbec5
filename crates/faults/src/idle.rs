//! Whether an end that has something to send, and a path on which it may, sends it.

use std::time::{Duration, Instant};

/// How long an end may have data and a path with room, and send none. A path that is kept for when no other works waits
/// for as long as it takes until another is known to be silent, and that is longer than any other wait.
const IDLE_MAX: Duration = Duration::from_secs(2);

/// How often an end is looked at.
const PERIOD: Duration = Duration::from_millis(50);

/// Observations of one end.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    looked_at: Option<Instant>,
    /// Since when it has been found with data and room at every look.
    since: Option<Instant>,
}

impl Idle {
    /// Whether it is time for a look.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.looked_at.is_none_or(|at| now >= at + PERIOD)
    }

    /// Whether the end could send data now, and when data last left it. For how long it has stood still, where that is
    /// too long.
    pub(crate) fn look(&mut self, could_send: bool, sent_at: Option<Instant>, now: Instant) -> Option<Duration> {
        self.looked_at = Some(now);
        if !could_send {
            self.since = None;
            return None;
        }
        let since = sent_at.max(Some(*self.since.get_or_insert(now)))?;
        Some(now.duration_since(since)).filter(|idle| *idle > IDLE_MAX)
    }
}
