//! Queues: what waits for the wire, what is refused, what is dropped early or marked.
//!
//! Every queue has a limit, and all but one are first in, first out. It may be managed besides, by a discipline
//! that signals congestion before the limit is reached: one discipline, one file. An `enum` and not
//! a trait object, so that a link's hot path has no indirect call. A discipline may decide at both
//! ends: when a packet arrives (RED), and when the wire asks for the next one (CoDel).

mod codel;
mod drop_tail;
mod fifo;
mod fq_codel;
mod red;

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use rand_chacha::rand_core::RngCore as _;

use crate::error::LinkConfigError;
use crate::packet::Packet;
use crate::stats::{Count, LinkStats};
use crate::stream::Streams;
use codel::CoDel;
use drop_tail::DropTail;
use fifo::Fifo;
use fq_codel::FqCoDel;
use red::Red;

pub use codel::CoDelConfig;
pub(crate) use fifo::Waiting;
pub use fq_codel::FqCoDelConfig;
pub use red::{RedConfig, RedSpacing};

/// The queue of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueConfig {
    /// First in, first out; what does not fit is refused.
    DropTail(QueueLimit),
    /// Random early detection: drops or marks some of the arrivals while the average queue is long.
    Red(RedConfig),
    /// Controlled delay: drops or marks some of the departures while the wait stays long.
    CoDel(CoDelConfig),
    /// Controlled delay for every flow by itself, and a turn for each.
    FqCoDel(FqCoDelConfig),
}

impl QueueConfig {
    /// Drop-tail with room for `packets` packets.
    pub const fn packets(packets: usize) -> Self {
        Self::DropTail(QueueLimit::Packets(packets))
    }

    /// Drop-tail with room for `bytes`.
    pub const fn bytes(bytes: ByteCount) -> Self {
        Self::DropTail(QueueLimit::Bytes(bytes))
    }

    /// Drop-tail with room for what the link sends in `time`.
    pub const fn sojourn(time: Duration) -> Self {
        Self::DropTail(QueueLimit::Sojourn(time))
    }

    /// Nothing is ever refused.
    pub const fn unlimited() -> Self {
        Self::DropTail(QueueLimit::Unlimited)
    }

    /// Finds what cannot be meant.
    pub(crate) fn check(&self) -> Result<(), LinkConfigError> {
        match self {
            Self::DropTail(_) => Ok(()),
            Self::Red(config) => config.check(),
            Self::CoDel(config) => config.check(),
            Self::FqCoDel(config) => config.check(),
        }
    }
}

impl From<RedConfig> for QueueConfig {
    fn from(config: RedConfig) -> Self {
        Self::Red(config)
    }
}

impl From<CoDelConfig> for QueueConfig {
    fn from(config: CoDelConfig) -> Self {
        Self::CoDel(config)
    }
}

impl From<FqCoDelConfig> for QueueConfig {
    fn from(config: FqCoDelConfig) -> Self {
        Self::FqCoDel(config)
    }
}

/// An amount that may wait. What is being transmitted does not wait: it is outside the limit, even
/// when it is partly sent and must pause for the next opportunity of a trace \[Mahimahi\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many bytes.
    Bytes(ByteCount),
    /// This many packets.
    Packets(usize),
    /// As much as the link sends in this time, that is rate · time bytes: at a fixed rate nothing waits
    /// longer. With a rate table the rate is that of the moment of arrival, so the room shrinks and
    /// grows with the rate (nothing that waits is thrown out), and during an outage there is none.
    /// With a Mahimahi trace, which has no rate at a moment, it is the mean rate of the trace.
    Sojourn(Duration),
    /// As much as comes.
    Unlimited,
}

/// A packet that comes to the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Timestamp,
    /// With framing.
    pub(crate) on_wire: ByteCount,
    /// The rate of the link at now; `None` where it sends at once.
    pub(crate) rate: Option<Bitrate>,
    /// Since when nothing is transmitted and nothing waits; `None` where something does.
    pub(crate) idle_since: Option<Timestamp>,
}

/// The answer of a queue to an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnqueueAction {
    /// It may come in.
    Pass,
    /// It is to carry the news of congestion: marked if it can be, dropped if not.
    Signal,
    /// It must be dropped, marks or not.
    Drop,
    /// It does not fit.
    Overflow,
}

/// A queue at work.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    fifo: Fifo<P>,
    limit: DropTail,
    manager: Option<Manager<P>>,
}

#[derive(Debug)]
enum Manager<P> {
    Red(Box<Red>),
    CoDel(Box<CoDel>),
    /// It has queues of its own; the one here stays empty.
    FqCoDel(Box<FqCoDel<P>>),
}

impl<P: Packet> Queue<P> {
    /// The queue `config` of the link `name`, which adds `overhead` to each packet.
    pub(crate) fn new(config: &QueueConfig, overhead: ByteCount, name: &str, streams: &Streams) -> Self {
        let (limit, manager) = match config {
            QueueConfig::DropTail(limit) => (*limit, None),
            QueueConfig::Red(config) => {
                (config.limit, Some(Manager::Red(Box::new(Red::new(config, streams.generator(name, "red"))))))
            }
            QueueConfig::CoDel(config) => (config.limit, Some(Manager::CoDel(Box::new(CoDel::new(config))))),
            QueueConfig::FqCoDel(config) => {
                let perturbation = streams.generator(name, "fq_codel").next_u64();
                let queues = FqCoDel::new(config, overhead, perturbation);
                (QueueLimit::Unlimited, Some(Manager::FqCoDel(Box::new(queues))))
            }
        };
        Self { fifo: Fifo::new(overhead), limit: DropTail::new(limit), manager }
    }

    /// The decision about an arrival. One that finds the link idle will not wait, and so fits
    /// whatever the limit. What is dropped to make room for it is added to `counters`.
    #[inline]
    pub(crate) fn judge(&mut self, arrival: &Arrival, counters: &mut LinkStats) -> EnqueueAction {
        let action = match &mut self.manager {
            None => EnqueueAction::Pass,
            Some(Manager::Red(red)) => red.judge(self.fifo.on_wire(), arrival),
            Some(Manager::CoDel(codel)) => {
                codel.on_arrival(arrival);
                EnqueueAction::Pass
            }
            Some(Manager::FqCoDel(queues)) => {
                if arrival.idle_since.is_none() {
                    queues.make_room(arrival, counters);
                }
                EnqueueAction::Pass
            }
        };
        let fits =
            arrival.idle_since.is_some() || self.limit.has_room(self.fifo.on_wire(), arrival.on_wire, arrival.rate);
        if fits || action == EnqueueAction::Drop { action } else { EnqueueAction::Overflow }
    }

    /// Whether a packet of `on_wire` fits behind what waits, where no discipline manages the queue.
    #[inline]
    pub(crate) fn has_room(&mut self, on_wire: ByteCount, rate: Option<Bitrate>) -> bool {
        self.limit.has_room(self.fifo.on_wire(), on_wire, rate)
    }

    /// Takes a packet in.
    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting<P>) {
        match &mut self.manager {
            Some(Manager::FqCoDel(queues)) => queues.push(waiting),
            _ => self.fifo.push(waiting),
        }
    }

    /// Whether a discipline manages it, which then must hear of every arrival.
    #[inline]
    pub(crate) fn is_managed(&self) -> bool {
        self.manager.is_some()
    }

    /// Whether nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().packets == 0
    }

    /// When the packet at the head arrived; with several heads, one of them.
    #[inline]
    pub(crate) fn head_arrival(&self) -> Option<Timestamp> {
        match &self.manager {
            Some(Manager::FqCoDel(queues)) => queues.an_arrival(),
            _ => self.fifo.head().map(|head| head.arrival),
        }
    }

    /// The next packet for the wire, which is free at `now`. What is dropped before it or marked is
    /// added to `counters`.
    #[inline]
    pub(crate) fn pop(&mut self, now: Timestamp, counters: &mut LinkStats) -> Option<Waiting<P>> {
        match &mut self.manager {
            Some(Manager::CoDel(codel)) => codel.dequeue(now, &mut self.fifo, counters),
            Some(Manager::FqCoDel(queues)) => queues.pop(now, counters),
            _ => self.fifo.pop(),
        }
    }

    /// The bytes and packets that wait, without framing.
    #[inline]
    pub(crate) fn waiting(&self) -> Count {
        match &self.manager {
            Some(Manager::FqCoDel(queues)) => queues.waiting(),
            _ => self.fifo.count(),
        }
    }

    /// Throws out everything and says how much that was.
    pub(crate) fn clear(&mut self) -> Count {
        match &mut self.manager {
            Some(Manager::FqCoDel(queues)) => queues.clear(),
            _ => self.fifo.clear(),
        }
    }
}
