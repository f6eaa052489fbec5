//! Whether the peer is gone.
//!
//! The stack lets a connection live for three probe timeouts, whatever its idle timeout is [RFC9000 §10.1]. A round
//! trip that had to wait for a host that stood still makes them long: a peer that was started again right after was
//! known to be gone only after 20 s and more. So this end counts by itself for how long nothing has come.

use noq_proto::{ConnectionError, FrameStats};
use web_time::{Duration, Instant};

use super::Connection;
use crate::transport::IDLE_TIMEOUT;

/// After so long without a word the peer is gone: the idle timeout, and a second in which the stack, which begins to
/// count a little later, finds that itself.
const SILENCE_MAX: Duration = IDLE_TIMEOUT.saturating_add(Duration::from_secs(1));

/// Between two looks no more than this counts: what lies further apart is that this host stood still, and then what
/// came meanwhile has not been read yet.
const STEP_MAX: Duration = Duration::from_millis(500);

/// For how long nothing has come.
#[derive(Debug)]
pub(super) struct Silence {
    heard: FrameStats,
    looked_at: Instant,
    lasts: Duration,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self { heard: FrameStats::default(), looked_at: now, lasts: Duration::ZERO }
    }

    /// Takes what was heard of the peer so far. Whether it is gone.
    fn is_too_long(&mut self, heard: FrameStats, now: Instant) -> bool {
        let step = now.saturating_duration_since(self.looked_at).min(STEP_MAX);
        self.looked_at = now;
        self.lasts = if heard == self.heard { self.lasts + step } else { Duration::ZERO };
        self.heard = heard;
        self.lasts >= SILENCE_MAX
    }

    /// Whether the connection ended for it.
    pub(super) fn has_ended(&self) -> bool {
        self.lasts >= SILENCE_MAX
    }
}

impl Connection {
    /// Ends the connection where the peer is gone. Nobody is told: it is as if the stack had found it.
    pub(super) fn end_if_silent(&mut self, now: Instant) {
        if self.silence.is_too_long(self.quic.stats().frame_rx, now) {
            self.quic.close(now, 0u32.into(), bytes::Bytes::new());
            self.note_closed(ConnectionError::TimedOut, now);
            self.is_draining = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_silent_for_nine_seconds_is_gone_and_time_in_which_nobody_listened_does_not_count() {
        let start = web_time::Instant::now();
        let mut silence = Silence::new(start);
        let mut now = start;
        let mut look = |silence: &mut Silence, after_ms: u64, pings: u64| {
            now += Duration::from_millis(after_ms);
            let mut heard = FrameStats::default();
            heard.ping = pings;
            silence.is_too_long(heard, now)
        };
        assert!(!look(&mut silence, 100, 1));
        assert!((0..179).all(|_| !look(&mut silence, 50, 1)), "8.95 s");
        assert!(!look(&mut silence, 49, 2), "a word at last");
        assert!(!look(&mut silence, 60_000, 2), "the host slept");
        assert!((0..169).all(|_| !look(&mut silence, 50, 2)), "8.95 s with what counts of that");
        assert!(look(&mut silence, 50, 2) && silence.has_ended());
    }
}
