//! CoDel, controlled delay. If every packet of the last interval waited longer than the target, the
//! packet at the head is dropped or marked. This repeats at shrinking distances until the wait is
//! short. A burst that is gone within an interval is left alone.
//!
//! # Source
//!
//! [RFC8289]. The state machine is that of §5.
//!
//! # Symbols
//!
//! | RFC | here | unit |
//! |---|---|---|
//! | `TARGET` | `target` | time |
//! | `INTERVAL` | `interval` | time |
//! | `maxpacket_` | `largest` | bytes |
//! | `first_above_time_` | `above_until` | timestamp, none for 0 |
//! | `drop_next_` | `drop_next` | timestamp |
//! | `count_`, `lastcount_` | `count`, `last_count` | signals |
//! | `dropping_` | `dropping` | |
//!
//! # Deviations
//!
//! - Where the RFC drops, a packet that can be marked is marked and sent [RFC3168 §5]; the state
//!   moves on as if it had been dropped. A mark frees no room, so at most one packet is marked each
//!   time the wire asks for one.
//! - The largest packet is the largest that has come, with framing, not a constant.
//! - A packet that finds the link idle does not enter the queue. It counts as one that waited for
//!   no time.

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

use super::fifo::{Fifo, Waiting};
use super::{Arrival, QueueLimit};
use crate::error::LinkConfigError;
use crate::packet::Packet;
use crate::stats::LinkStats;

/// The standing queue that is acceptable [RFC8289 §4].
const TARGET: Duration = Duration::from_millis(5);
/// How long a longer one is put up with: about the longest of usual round-trip times [RFC8289 §4].
const INTERVAL: Duration = Duration::from_millis(100);

/// A queue under CoDel. It controls sources that react. One that does not fills the queue again and
/// again while the drops come closer, so a queue for such sources needs a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// The wait that is acceptable for good.
    pub target: Duration,
    /// How long every packet must have waited longer than that before the first is dropped.
    pub interval: Duration,
    /// The most that may wait.
    pub limit: QueueLimit,
}

impl Default for CoDelConfig {
    /// 5 ms, 100 ms and no limit.
    fn default() -> Self {
        Self { target: TARGET, interval: INTERVAL, limit: QueueLimit::Unlimited }
    }
}

impl CoDelConfig {
    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        if self.interval.is_zero() { Err(LinkConfigError::NoInterval) } else { Ok(()) }
    }
}

/// CoDel at work.
#[derive(Debug)]
pub(super) struct CoDel {
    target: Duration,
    interval: Duration,
    largest: ByteCount,
    above_until: Option<Timestamp>,
    drop_next: Timestamp,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl CoDel {
    pub(super) fn new(config: &CoDelConfig) -> Self {
        Self {
            target: config.target,
            interval: config.interval,
            largest: ByteCount::ZERO,
            above_until: None,
            drop_next: Timestamp::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    pub(super) fn on_arrival(&mut self, arrival: &Arrival) {
        self.on_size(arrival.on_wire);
        if arrival.idle_since.is_some() {
            self.on_empty();
        }
    }

    /// A packet of this size, with framing, has come.
    pub(super) fn on_size(&mut self, on_wire: ByteCount) {
        self.largest = self.largest.max(on_wire);
    }

    /// Nothing waits: the queue is under control [RFC8289 §5].
    pub(super) fn on_empty(&mut self) {
        self.above_until = None;
        self.dropping = false;
    }

    /// The next packet for the wire [RFC8289 §5].
    pub(super) fn dequeue<P: Packet>(
        &mut self,
        now: Timestamp,
        fifo: &mut Fifo<P>,
        counters: &mut LinkStats,
    ) -> Option<Waiting<P>> {
        let (mut head, mut may_signal) = self.take(now, fifo)?;
        if self.dropping {
            self.dropping = may_signal;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if signal(&mut head, counters) == Signalled::Marked {
                    self.drop_next = control_law(self.drop_next, self.interval, self.count);
                    break;
                }
                (head, may_signal) = self.take(now, fifo)?;
                self.dropping = may_signal;
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, self.interval, self.count);
                }
            }
        } else if may_signal {
            if signal(&mut head, counters) == Signalled::Dropped {
                (head, _) = self.take(now, fifo)?;
            }
            self.start_dropping(now);
        }
        Some(head)
    }

    /// Takes the head out, and says whether the queue has been too long for long enough
    /// [RFC8289 §5].
    fn take<P>(&mut self, now: Timestamp, fifo: &mut Fifo<P>) -> Option<(Waiting<P>, bool)> {
        let Some(head) = fifo.pop() else {
            self.above_until = None;
            return None;
        };
        let waited = now.since(head.arrival);
        if waited < self.target || fifo.on_wire().bytes <= self.largest {
            self.above_until = None;
            return Some((head, false));
        }
        let until = *self.above_until.get_or_insert(now + self.interval);
        Some((head, now >= until))
    }

    /// If the queue was under control a short time ago, the rate of signals that it took then is
    /// where to begin now [RFC8289 §5].
    fn start_dropping(&mut self, now: Timestamp) {
        let needed = self.count - self.last_count;
        let recently = now.since(self.drop_next) < self.interval * 16;
        self.count = if needed > 1 && recently { needed } else { 1 };
        self.dropping = true;
        self.drop_next = control_law(now, self.interval, self.count);
        self.last_count = self.count;
    }
}

/// The fate of a packet that had to carry the news.
#[derive(PartialEq, Eq)]
enum Signalled {
    Marked,
    Dropped,
}

fn signal<P: Packet>(head: &mut Waiting<P>, counters: &mut LinkStats) -> Signalled {
    if head.packet.is_ecn_capable() {
        head.packet.mark();
        counters.marked.add(head.size);
        Signalled::Marked
    } else {
        counters.early.add(head.size);
        Signalled::Dropped
    }
}

// [RFC8289 §5]
//
//     t + INTERVAL / sqrt(count)
fn control_law(from: Timestamp, interval: Duration, count: u64) -> Timestamp {
    from + interval.div_f64((count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Count;

    const PACKET: ByteCount = ByteCount::new(1_500);

    /// A queue from which a packet goes every millisecond, and in which every packet waits as long
    /// as it is told to.
    struct Standing {
        codel: CoDel,
        now_ms: u64,
        counters: LinkStats,
    }

    impl Standing {
        fn new() -> Self {
            let mut codel = CoDel::new(&CoDelConfig::default());
            codel.largest = PACKET;
            // Late enough that a packet can have waited.
            Self { codel, now_ms: 1_000, counters: LinkStats::default() }
        }

        /// For `millis`, packets that waited for `wait_ms` with `behind` packets behind them. Gives
        /// the milliseconds at which packets were dropped, counted from the start of this.
        fn run(&mut self, millis: u64, wait_ms: u64, behind: u64) -> Vec<u64> {
            let start = self.now_ms;
            let mut drops = Vec::new();
            while self.now_ms < start + millis {
                let now = Timestamp::from_millis(self.now_ms);
                let mut fifo = Fifo::new(ByteCount::ZERO);
                for packet in 0..=behind {
                    fifo.push(Waiting { arrival: now - Duration::from_millis(wait_ms), size: PACKET, packet });
                }
                let before = self.counters.early.packets;
                let sent = self.codel.dequeue(now, &mut fifo, &mut self.counters).unwrap();
                assert_eq!(sent.packet, self.counters.early.packets - before);
                drops.extend((before..self.counters.early.packets).map(|_| self.now_ms - start));
                self.now_ms += 1;
            }
            drops
        }
    }

    #[test]
    fn the_control_law_divides_the_interval_by_the_root_of_the_count() {
        // 100 ms / sqrt(4) = 50 ms
        let next = control_law(Timestamp::from_secs(1), INTERVAL, 4);
        assert_eq!(next, Timestamp::from_millis(1_050));
    }

    #[test]
    fn drops_begin_after_an_interval_and_come_closer() {
        // From 100 on: 100, + 100 / sqrt(1), + 100 / sqrt(2) = 270.7, + 100 / sqrt(3) = 328.4.
        // Then + 50 = 378.4, + 44.7 = 423.2, + 40.8 = 464.0, each at the next whole millisecond.
        assert_eq!(Standing::new().run(465, 50, 30), [100, 200, 271, 329, 379, 424, 464]);
    }

    #[test]
    fn a_wait_below_the_target_at_any_time_starts_the_interval_again() {
        let mut queue = Standing::new();
        assert_eq!(queue.run(99, 50, 30), []);
        assert_eq!(queue.run(1, 4, 30), []);
        assert_eq!(queue.run(101, 50, 30), [100]);
    }

    #[test]
    fn one_packet_behind_is_no_standing_queue() {
        // A slow link's packets wait long for one another, and dropping would only leave it idle.
        assert_eq!(Standing::new().run(1_000, 50, 1), []);
        assert_eq!(Standing::new().run(101, 50, 2), [100]);
    }

    #[test]
    fn the_drops_resume_where_they_were_if_it_is_not_long_ago() {
        let mut queue = Standing::new();
        let drops = queue.run(1_000, 50, 30);
        // The sum of 1 / sqrt(k) up to k = 27 is 9.02, so the 28th drop would be after 100 + 902 ms.
        assert_eq!(drops.len(), 27);
        queue.run(200, 0, 30);
        // The count is taken up at 27 - 1 = 26: 100 / sqrt(26) = 19.6 ms after the first.
        assert_eq!(queue.run(141, 50, 30), [100, 120, 139]);
        // The count is 28 now, so it would be taken up at 2. But 16 intervals later it is forgotten.
        queue.run(1_700, 0, 30);
        assert_eq!(queue.run(201, 50, 30), [100, 200]);
    }

    #[test]
    fn a_packet_that_finds_the_link_idle_ends_the_dropping() {
        let mut queue = Standing::new();
        assert_eq!(queue.run(201, 50, 30), [100, 200]);
        let now = Timestamp::from_millis(queue.now_ms);
        queue.codel.on_arrival(&Arrival { now, on_wire: PACKET, rate: None, idle_since: Some(now) });
        assert_eq!(queue.run(101, 50, 30), [100]);
        assert_eq!(queue.counters.early, Count { packets: 3, bytes: PACKET * 3 });
    }

    #[test]
    fn an_interval_of_zero_is_refused() {
        let config = CoDelConfig { interval: Duration::ZERO, ..CoDelConfig::default() };
        assert_eq!(config.check(), Err(LinkConfigError::NoInterval));
    }
}
