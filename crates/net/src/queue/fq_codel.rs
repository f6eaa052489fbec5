//! FQ-CoDel, flow queue CoDel: every flow waits in a queue of its own under CoDel, and the link
//! serves these in turn, a quantum of bytes from each. A flow that has not waited of late goes
//! first. A flow's packets neither delay nor drop another's beyond its turn.
//!
//! # Source
//!
//! [RFC8290]. Enqueueing is §4.1, dequeueing §4.2; what each queue drops is [RFC8289].
//!
//! # Symbols
//!
//! | RFC | here | unit |
//! |---|---|---|
//! | `interval`, `target` | `codel` | time |
//! | `packet limit` | `codel.limit` | any |
//! | `quantum` | `quantum` | bytes |
//! | `flows` | `queues` | queues |
//! | byte credits | `credits` | bytes |
//! | new queues, old queues | `new`, `old` | positions |
//!
//! # Deviations
//!
//! - The RFC's hash of the five-tuple is one of what [`Packet::flow`](crate::Packet::flow) says, with a
//!   perturbation that follows from the seed and the name of the link.
//! - A packet that finds the link idle does not enter a queue, and uses no credits: no other packet
//!   waits for the turn that it could take.
//! - Without room, packets are dropped from the head of the longest queue, one by one, until there
//!   is room, before the arrival enters. The RFC lets it enter and then drops half of that queue,
//!   up to 64 packets, which saves a processor the search.

use core::cmp::Reverse;
use std::collections::VecDeque;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use super::codel::CoDel;
use super::drop_tail::DropTail;
use super::fifo::{Fifo, Waiting};
use super::{Arrival, CoDelConfig, QueueLimit};
use crate::error::LinkConfigError;
use crate::packet::Packet;
use crate::stats::{Count, LinkStats};

/// How many queues there are [RFC8290 §5.2.4].
const QUEUES: u16 = 1024;
/// A turn: a full Ethernet frame [RFC8290 §5.2.3].
const QUANTUM: ByteCount = ByteCount::new(1514);
/// How many packets may wait in all queues [RFC8290 §5.2.1].
const LIMIT: QueueLimit = QueueLimit::Packets(10_240);

/// Queues by flow, each under CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel for each queue, and the most that may wait in all of them.
    pub codel: CoDelConfig,
    /// How many queues there are. Flows that come into the same one are not told apart.
    pub queues: u16,
    /// How many bytes a queue may send in its turn.
    pub quantum: ByteCount,
}

impl Default for FqCoDelConfig {
    /// 5 ms, 100 ms, 10,240 packets, 1,024 queues and 1,514 B.
    fn default() -> Self {
        let codel = CoDelConfig { limit: LIMIT, ..CoDelConfig::default() };
        Self { codel, queues: QUEUES, quantum: QUANTUM }
    }
}

impl FqCoDelConfig {
    pub(super) fn check(&self) -> Result<(), LinkConfigError> {
        if self.queues == 0 {
            return Err(LinkConfigError::NoQueues);
        }
        if self.quantum == ByteCount::ZERO {
            return Err(LinkConfigError::NoQuantum);
        }
        self.codel.check()
    }
}

/// A queue of a flow.
#[derive(Debug)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    codel: CoDel,
    /// The bytes that it may still send in this turn; below zero where its last packet was larger.
    credits: i64,
    /// Whether it is among the new or the old ones.
    listed: bool,
}

/// FQ-CoDel at work.
#[derive(Debug)]
pub(super) struct FqCoDel<P> {
    config: FqCoDelConfig,
    queues: Vec<FlowQueue<P>>,
    /// Queues that had been empty, and those that have had a turn since.
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    limit: DropTail,
    waiting: Count,
    overhead: ByteCount,
    perturbation: u64,
}

impl<P: Packet> FqCoDel<P> {
    /// On a link that adds `overhead` to each packet; flows are spread by `perturbation`.
    pub(super) fn new(config: &FqCoDelConfig, overhead: ByteCount, perturbation: u64) -> Self {
        let queue =
            || FlowQueue { fifo: Fifo::new(overhead), codel: CoDel::new(&config.codel), credits: 0, listed: false };
        Self {
            config: *config,
            queues: (0..config.queues).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            limit: DropTail::new(config.codel.limit),
            waiting: Count::default(),
            overhead,
            perturbation,
        }
    }

    /// The bytes and packets that wait.
    pub(super) fn waiting(&self) -> Count {
        self.waiting
    }

    /// When some packet that waits arrived.
    pub(super) fn an_arrival(&self) -> Option<Timestamp> {
        let listed = self.new.iter().chain(&self.old);
        listed.filter_map(|at| self.queues[usize::from(*at)].fifo.head()).map(|head| head.arrival).next()
    }

    /// Drops from the longest queue until there is room for an arrival.
    pub(super) fn make_room(&mut self, arrival: &Arrival, counters: &mut LinkStats) {
        while !self.has_room(arrival.on_wire, arrival.rate) {
            let longest = (0..self.queues.len()).max_by_key(|at| (self.queues[*at].fifo.count().bytes, Reverse(*at)));
            let Some(dropped) = longest.and_then(|at| self.queues[at].fifo.pop()) else { return };
            self.take_off(Count { packets: 1, bytes: dropped.size });
            counters.overflowed.add(dropped.size);
        }
    }

    fn has_room(&mut self, on_wire: ByteCount, rate: Option<Bitrate>) -> bool {
        let Count { packets, bytes } = self.waiting;
        self.limit.has_room(Count { packets, bytes: bytes + self.overhead * packets }, on_wire, rate)
    }

    /// Takes a packet in [RFC8290 §4.1].
    pub(super) fn push(&mut self, waiting: Waiting<P>) {
        let at = self.queue_of(waiting.packet.flow());
        self.waiting.add(waiting.size);
        let queue = &mut self.queues[usize::from(at)];
        queue.codel.on_size(waiting.size.saturating_add(self.overhead));
        queue.fifo.push(waiting);
        if !queue.listed {
            queue.listed = true;
            queue.credits = self.config.quantum.get() as i64;
            self.new.push_back(at);
        }
    }

    /// The queue of a flow.
    // [Steele2014]
    fn queue_of(&self, flow: u64) -> u16 {
        let z = (flow ^ self.perturbation).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(self.config.queues)) as u16
    }

    /// The next packet for the wire, which is free at `now` [RFC8290 §4.2].
    pub(super) fn pop(&mut self, now: Timestamp, counters: &mut LinkStats) -> Option<Waiting<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let at = *if is_new { self.new.front() } else { self.old.front() }?;
            let queue = &mut self.queues[usize::from(at)];
            if queue.credits <= 0 {
                queue.credits += self.config.quantum.get() as i64;
                self.unlist(is_new);
                self.old.push_back(at);
                continue;
            }
            let before = queue.fifo.count();
            let next = queue.codel.dequeue(now, &mut queue.fifo, counters);
            let after = queue.fifo.count();
            match &next {
                Some(next) => queue.credits -= next.size.saturating_add(self.overhead).get() as i64,
                None => {
                    queue.codel.on_empty();
                    // A new one has to go round once as an old one, or flows that come back at once would
                    // always go first.
                    queue.listed = is_new;
                }
            }
            self.take_off(Count { packets: before.packets - after.packets, bytes: before.bytes - after.bytes });
            if next.is_some() {
                return next;
            }
            self.unlist(is_new);
            if is_new {
                self.old.push_back(at);
            }
        }
    }

    fn unlist(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front();
        } else {
            self.old.pop_front();
        }
    }

    fn take_off(&mut self, gone: Count) {
        self.waiting.packets -= gone.packets;
        self.waiting.bytes -= gone.bytes;
    }

    /// Throws out everything and says how much that was.
    pub(super) fn clear(&mut self) -> Count {
        self.queues.iter_mut().for_each(|queue| {
            queue.fifo.clear();
        });
        core::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of a flow.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Of(u64);

    impl Packet for Of {
        fn flow(&self) -> u64 {
            self.0
        }
    }

    const PACKET: ByteCount = ByteCount::new(1500);

    fn queue(config: FqCoDelConfig) -> FqCoDel<Of> {
        FqCoDel::new(&config, ByteCount::ZERO, 1)
    }

    fn push(queue: &mut FqCoDel<Of>, flow: u64, size: ByteCount) {
        let arrival = Arrival { now: Timestamp::ZERO, on_wire: size, rate: None, idle_since: None };
        queue.make_room(&arrival, &mut LinkStats::default());
        queue.push(Waiting { arrival: Timestamp::ZERO, size, packet: Of(flow) });
    }

    fn popped(queue: &mut FqCoDel<Of>, count: usize) -> Vec<u64> {
        let mut counters = LinkStats::default();
        (0..count).filter_map(|_| Some(queue.pop(Timestamp::ZERO, &mut counters)?.packet.0)).collect()
    }

    #[test]
    fn flows_take_turns_whatever_waits_of_each() {
        let mut usual = queue(FqCoDelConfig::default());
        [1, 1, 1, 1, 2, 2].into_iter().for_each(|flow| push(&mut usual, flow, PACKET));
        // The quantum leaves 14 B after a packet: both may send a second one in their first turn.
        assert_eq!(popped(&mut usual, 10), [1, 1, 2, 2, 1, 1]);
        let mut exact = queue(FqCoDelConfig { quantum: PACKET, ..FqCoDelConfig::default() });
        [1, 1, 1, 1, 2, 2].into_iter().for_each(|flow| push(&mut exact, flow, PACKET));
        assert_eq!(popped(&mut exact, 10), [1, 2, 1, 2, 1, 1]);
    }

    #[test]
    fn turns_are_of_bytes_and_not_of_packets() {
        let mut queue = queue(FqCoDelConfig { quantum: PACKET, ..FqCoDelConfig::default() });
        (0..2).for_each(|_| push(&mut queue, 1, PACKET));
        (0..6).for_each(|_| push(&mut queue, 2, ByteCount::new(500)));
        assert_eq!(popped(&mut queue, 8), [1, 2, 2, 2, 1, 2, 2, 2]);
    }

    #[test]
    fn a_flow_that_was_empty_goes_before_those_that_wait() {
        let mut queue = queue(FqCoDelConfig { quantum: PACKET, ..FqCoDelConfig::default() });
        (0..4).for_each(|_| push(&mut queue, 1, PACKET));
        assert_eq!(popped(&mut queue, 2), [1, 1]);
        push(&mut queue, 2, PACKET);
        assert_eq!(popped(&mut queue, 3), [2, 1, 1]);
    }

    #[test]
    fn a_flow_that_comes_back_at_once_waits_for_its_turn() {
        let mut queue = queue(FqCoDelConfig { quantum: PACKET, ..FqCoDelConfig::default() });
        (0..4).for_each(|_| push(&mut queue, 1, PACKET));
        push(&mut queue, 2, PACKET);
        assert_eq!(popped(&mut queue, 3), [1, 2, 1]);
        // It is still in its round: behind the other one, and not in front.
        push(&mut queue, 2, PACKET);
        assert_eq!(popped(&mut queue, 3), [2, 1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_taken_from_the_longest_queue() {
        let codel = CoDelConfig { limit: QueueLimit::Packets(5), ..CoDelConfig::default() };
        let mut queue = queue(FqCoDelConfig { codel, ..FqCoDelConfig::default() });
        (0..4).for_each(|_| push(&mut queue, 1, PACKET));
        (0..3).for_each(|_| push(&mut queue, 2, PACKET));
        assert_eq!(queue.waiting().packets, 5);
        let left = popped(&mut queue, 10);
        // 4 + 1, then 3 + 2, then 2 + 3.
        assert_eq!(left.iter().filter(|flow| **flow == 1).count(), 2, "{left:?}");
    }

    #[test]
    fn each_queue_is_under_codel_and_nothing_is_lost_track_of() {
        let mut queue = queue(FqCoDelConfig::default());
        let mut counters = LinkStats::default();
        (0..300).for_each(|_| push(&mut queue, 1, PACKET));
        let sent = (0..1000).filter_map(|at| {
            let now = Timestamp::from_millis(50 + at);
            if at % 100 == 0 {
                queue.push(Waiting { arrival: now, size: PACKET, packet: Of(2) });
            }
            queue.pop(now, &mut counters)
        });
        let sent = sent.count() as u64;
        assert!(counters.early.packets > 0, "the long queue");
        assert_eq!(sent + counters.early.packets, 310, "all came out, or were dropped");
        assert_eq!(queue.waiting(), Count::default());
    }

    #[test]
    fn what_cannot_be_served_is_refused() {
        let config = FqCoDelConfig::default();
        assert_eq!(config.check(), Ok(()));
        assert_eq!(FqCoDelConfig { queues: 0, ..config }.check(), Err(LinkConfigError::NoQueues));
        assert_eq!(FqCoDelConfig { quantum: ByteCount::ZERO, ..config }.check(), Err(LinkConfigError::NoQuantum));
    }
}
