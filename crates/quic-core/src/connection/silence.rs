//! Whether the peer is gone, or out of reach.
//!
//! The stack lets a connection live for three probe timeouts, whatever its idle timeout is [RFC9000 §10.1]. A round
//! trip that had to wait for a host that stood still makes them long: a peer that was started again right after was
//! known to be gone only after 20 s and more. So this end counts by itself for how long nothing has come.
//!
//! And it counts for how long the peer has been heard and nothing that this end said acknowledged, though something is
//! said every second. A stack that has given up asking whether the peer is at its new address says nothing but signs of
//! life there: both ends hear each other, and nothing is ever acknowledged. A new connection helps, this one does not.

use fairpath_engine::Timestamp;
use noq_proto::{ConnectionError, FrameStats};
use web_time::{Duration, Instant};

use super::Connection;
use crate::transport::IDLE_TIMEOUT;

/// Silence after which the peer is gone: the idle timeout, and a second in which the stack, which
/// begins to count a little later, finds that itself.
const SILENCE_MAX: Duration = IDLE_TIMEOUT.saturating_add(Duration::from_secs(1));

/// Between two looks no more than this counts: what lies further apart is that this host stood still, and then what
/// came meanwhile has not been read yet.
const STEP_MAX: Duration = Duration::from_millis(500);

/// A reachable peer sends something every second.
const WORDS_APART_MAX: Duration = Duration::from_millis(1500);

/// For how long nothing has come, or nothing has been acknowledged.
#[derive(Debug)]
pub(super) struct Silence {
    looked_at: Instant,
    heard: FrameStats,
    unheard_for: Duration,
    /// When the newest packet had left that was acknowledged.
    proven: Option<Timestamp>,
    unproven_for: Duration,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            looked_at: now,
            heard: FrameStats::default(),
            unheard_for: Duration::ZERO,
            proven: None,
            unproven_for: Duration::ZERO,
        }
    }

    /// Takes what was heard of the peer so far, and when the newest packet had left of those that it acknowledged.
    /// Whether it is gone.
    fn is_too_long(&mut self, heard: FrameStats, proven: Option<Timestamp>, now: Instant) -> bool {
        let step = now.saturating_duration_since(self.looked_at).min(STEP_MAX);
        self.looked_at = now;
        self.unheard_for = if heard == self.heard { self.unheard_for + step } else { Duration::ZERO };
        self.heard = heard;
        let is_heard = self.unheard_for < WORDS_APART_MAX;
        self.unproven_for = match proven <= self.proven {
            true => self.unproven_for + if is_heard { step } else { Duration::ZERO },
            false => Duration::ZERO,
        };
        self.proven = self.proven.max(proven);
        self.has_ended()
    }

    /// Whether the connection ended for it.
    pub(super) fn has_ended(&self) -> bool {
        self.unheard_for.max(self.unproven_for) >= SILENCE_MAX
    }
}

impl Connection {
    /// Ends the connection where the peer is gone. Nobody is told: it is as if the stack had found it.
    pub(super) fn end_if_silent(&mut self, now: Instant) {
        let proven = self.engine.with(now, |engine, _| engine.proven_at());
        if self.silence.is_too_long(self.quic.stats().frame_rx, proven, now) {
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
            let proven = Timestamp::ZERO + now.duration_since(start);
            silence.is_too_long(heard, Some(proven), now)
        };
        assert!(!look(&mut silence, 100, 1));
        assert!((0..179).all(|_| !look(&mut silence, 50, 1)), "8.95 s");
        assert!(!look(&mut silence, 49, 2), "a word at last");
        assert!(!look(&mut silence, 60_000, 2), "the host slept");
        assert!((0..169).all(|_| !look(&mut silence, 50, 2)), "8.95 s with what counts of that");
        assert!(look(&mut silence, 50, 2) && silence.has_ended());
    }

    #[test]
    fn a_peer_that_talks_and_acknowledges_nothing_for_nine_seconds_is_out_of_reach() {
        let start = web_time::Instant::now();
        let (mut silence, mut now, mut heard) = (Silence::new(start), start, FrameStats::default());
        let mut look = |proven: u64| {
            now += Duration::from_millis(50);
            heard.ping += 1;
            silence.is_too_long(heard, Some(Timestamp::from_millis(proven)), now)
        };
        assert!(!look(20), "something was acknowledged");
        assert!((0..179).all(|_| !look(20)), "8.95 s after it");
        assert!(!look(21), "something newer was acknowledged");
        assert!((0..179).all(|_| !look(5)), "and what is older is no news");
        assert!(look(21));
    }

    #[test]
    fn where_nothing_comes_nothing_can_be_acknowledged() {
        let start = web_time::Instant::now();
        let (mut silence, mut now) = (Silence::new(start), start);
        for round in 0..5 {
            for _ in 0..178 {
                now += Duration::from_millis(50);
                let mut heard = FrameStats::default();
                heard.ping = round;
                assert!(!silence.is_too_long(heard, None, now), "{:?}", now - start);
            }
        }
    }
}
