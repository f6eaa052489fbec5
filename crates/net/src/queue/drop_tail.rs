//! Drop-tail: what does not fit is refused.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};

use super::QueueLimit;
use crate::stats::Count;

/// The limit of a queue.
#[derive(Debug)]
pub(crate) struct DropTail {
    limit: QueueLimit,
    /// A limit in time as bytes, for the rate it was worked out with.
    sojourn_limit: (Option<Bitrate>, ByteCount),
}

impl DropTail {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self { limit, sojourn_limit: (None, ByteCount::MAX) }
    }

    /// Whether a packet of `size` fits behind what is `waiting`, both with framing.
    #[inline]
    pub(crate) fn has_room(&mut self, waiting: Count, size: ByteCount, rate: Option<Bitrate>) -> bool {
        let bytes = waiting.bytes.saturating_add(size);
        match self.limit {
            QueueLimit::Bytes(limit) => bytes <= limit,
            QueueLimit::Packets(limit) => waiting.packets < limit as u64,
            QueueLimit::Sojourn(time) => {
                if self.sojourn_limit.0 != rate {
                    self.sojourn_limit = (rate, sent_in(time, rate));
                }
                bytes <= self.sojourn_limit.1
            }
            QueueLimit::Unlimited => true,
        }
    }
}

/// The bytes that a link of `rate` sends in `time`; without a limit if the link has none.
pub(crate) fn sent_in(time: Duration, rate: Option<Bitrate>) -> ByteCount {
    rate.map_or(ByteCount::MAX, |rate| rate * time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1_500);

    fn packets(packets: u64) -> Count {
        Count { packets, bytes: PACKET * packets }
    }

    /// How many packets of 1500 bytes fit.
    fn room(limit: QueueLimit, rate: Option<Bitrate>) -> u64 {
        let mut queue = DropTail::new(limit);
        (0..1_000).take_while(|waiting| queue.has_room(packets(*waiting), PACKET, rate)).count() as u64
    }

    #[test]
    fn limits_hold_in_bytes_packets_and_time() {
        let rate = Some(Bitrate::from_mbps(40));
        assert_eq!(room(QueueLimit::Packets(7), rate), 7);
        assert_eq!(room(QueueLimit::Bytes(ByteCount::new(4_500)), rate), 3);
        assert_eq!(room(QueueLimit::Bytes(ByteCount::new(4_499)), rate), 2);
        // 40 Mbit/s · 100 ms = 500,000 B = 333.3 packets
        assert_eq!(room(QueueLimit::Sojourn(Duration::from_millis(100)), rate), 333);
        assert_eq!(room(QueueLimit::Unlimited, rate), 1_000);
    }

    #[test]
    fn a_limit_in_time_follows_the_rate() {
        let mut queue = DropTail::new(QueueLimit::Sojourn(Duration::from_millis(12)));
        let mut fits = |waiting, mbps| queue.has_room(packets(waiting), PACKET, Some(Bitrate::from_mbps(mbps)));
        // 1 Mbit/s · 12 ms = 1500 B: one packet. 2 Mbit/s: two. Without rate there is no room.
        assert!(!fits(0, 0));
        assert!(fits(0, 1));
        assert!(!fits(1, 1));
        assert!(fits(1, 2));
        // A link that sends at once has room for everything.
        assert!(queue.has_room(packets(1_000_000), PACKET, None));
    }
}
