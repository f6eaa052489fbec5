//! Drop-tail: first in, first out, and what does not fit is refused.

use std::collections::VecDeque;

use fairpath_core::{Bitrate, Bytes, Timestamp};

use super::{QueueLimit, Waiting};
use crate::stats::Count;

/// A first-in first-out queue with a limit.
#[derive(Debug)]
pub(crate) struct DropTail<P> {
    limit: QueueLimit,
    /// A limit in time as bytes, for the rate it was worked out with.
    sojourn_limit: (Option<Bitrate>, Bytes),
    waiting: VecDeque<Waiting<P>>,
    bytes: Bytes,
}

impl<P> DropTail<P> {
    pub(crate) fn new(limit: QueueLimit) -> Self {
        Self { limit, sojourn_limit: (None, Bytes::MAX), waiting: VecDeque::new(), bytes: Bytes::ZERO }
    }

    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting<P>, rate: Option<Bitrate>) -> Result<(), P> {
        let bytes = self.bytes.saturating_add(waiting.size);
        let fits = match self.limit {
            QueueLimit::Bytes(limit) => bytes <= limit,
            QueueLimit::Packets(limit) => self.waiting.len() < limit,
            QueueLimit::Sojourn(time) => {
                if self.sojourn_limit.0 != rate {
                    self.sojourn_limit = (rate, rate.map_or(Bytes::MAX, |rate| rate * time));
                }
                bytes <= self.sojourn_limit.1
            }
            QueueLimit::Unlimited => true,
        };
        if !fits {
            return Err(waiting.packet);
        }
        self.bytes = bytes;
        self.waiting.push_back(waiting);
        Ok(())
    }

    #[inline]
    pub(crate) fn head_arrival(&self) -> Option<Timestamp> {
        self.waiting.front().map(|head| head.arrival)
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.size;
        Some(head)
    }

    #[inline]
    pub(crate) fn waiting(&self) -> Count {
        Count { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    pub(crate) fn clear(&mut self) -> Count {
        let thrown_out = self.waiting();
        self.waiting.clear();
        self.bytes = Bytes::ZERO;
        thrown_out
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// How many packets of 1500 bytes fit.
    fn room(limit: QueueLimit, rate: Option<Bitrate>) -> usize {
        let mut queue = DropTail::new(limit);
        let packet = |packet| Waiting { arrival: Timestamp::ZERO, size: Bytes::new(1500), packet };
        (0..1_000).take_while(|number| queue.push(packet(*number), rate).is_ok()).count()
    }

    #[test]
    fn limits_hold_in_bytes_packets_and_time() {
        let rate = Some(Bitrate::from_mbps(40));
        assert_eq!(room(QueueLimit::Packets(7), rate), 7);
        assert_eq!(room(QueueLimit::Bytes(Bytes::new(4_500)), rate), 3);
        assert_eq!(room(QueueLimit::Bytes(Bytes::new(4_499)), rate), 2);
        // 40 Mbit/s · 100 ms = 500,000 B = 333.3 packets
        assert_eq!(room(QueueLimit::Sojourn(Duration::from_millis(100)), rate), 333);
        assert_eq!(room(QueueLimit::Unlimited, rate), 1_000);
    }

    #[test]
    fn a_limit_in_time_follows_the_rate() {
        let mut queue = DropTail::new(QueueLimit::Sojourn(Duration::from_millis(12)));
        let packet = || Waiting { arrival: Timestamp::ZERO, size: Bytes::new(1500), packet: () };
        // 1 Mbit/s · 12 ms = 1500 B: one packet. 2 Mbit/s: two. Without rate there is no room.
        assert!(queue.push(packet(), Some(Bitrate::ZERO)).is_err());
        assert!(queue.push(packet(), Some(Bitrate::from_mbps(1))).is_ok());
        assert!(queue.push(packet(), Some(Bitrate::from_mbps(1))).is_err());
        assert!(queue.push(packet(), Some(Bitrate::from_mbps(2))).is_ok());
        assert_eq!(queue.clear(), Count { packets: 2, bytes: Bytes::new(3000) });
    }
}
