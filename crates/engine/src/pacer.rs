//! When a path may send its next packet at a given rate: a bucket of tokens that are worth time
//! [RFC9002 §7.7].

use core::time::Duration;

use fairpath_core::{Bitrate, Bytes, Timestamp};

/// How much sending time may be saved up: packets leave in bursts of this length at most, plus
/// one packet. Timers of hosts are about this exact.
const BURST: Duration = Duration::from_millis(2);

/// Spaces the packets of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// When everything sent so far would have been sent at the rate.
    paid_until: Timestamp,
}

impl Pacer {
    /// Notes that a packet of `bytes` left.
    pub(crate) fn on_sent(&mut self, now: Timestamp, bytes: Bytes, rate: Bitrate) {
        self.paid_until = self.paid_until.max(now - BURST) + bytes / rate;
    }

    /// When the next packet may leave.
    pub(crate) fn free_at(&self) -> Timestamp {
        self.paid_until
    }

    /// How much may leave at `now` before the next packet has to wait, at this rate.
    pub(crate) fn allowance(&self, now: Timestamp, rate: Bitrate) -> Bytes {
        rate * now.since(self.paid_until.max(now - BURST))
    }

    /// Whether a packet may leave at `now`.
    pub(crate) fn may_send(&self, now: Timestamp) -> bool {
        self.paid_until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_a_second_the_rate_is_held_to_one_burst() {
        let rate = Bitrate::from_mbps(10);
        let packet = Bytes::new(1250);
        let mut pacer = Pacer::default();
        let mut sent = Bytes::ZERO;
        for micros in (1_000_000..2_000_000).step_by(50) {
            let now = Timestamp::from_micros(micros);
            while pacer.may_send(now) {
                pacer.on_sent(now, packet, rate);
                sent += packet;
            }
        }
        // 10 Mbit/s · 1 s = 1.25 MB, and at most 2 ms and one packet more.
        let allowed = rate * Duration::from_secs(1);
        assert!(sent >= allowed && sent <= allowed + (rate * BURST) + packet, "{sent:?}");
    }
}
