//! Queues: what waits for the wire, and what is refused.
//!
//! One discipline, one file. An `enum` and not a trait object, so that a link's hot path has no
//! indirect call. A discipline decides at both ends: it may refuse an arrival, and it may drop
//! from its head when the wire asks for the next packet (as CoDel will).

mod drop_tail;

use core::time::Duration;

use fairpath_core::{Bitrate, Bytes, Timestamp};

use crate::stats::Count;
use drop_tail::DropTail;

/// The queue of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueConfig {
    /// First in, first out; what does not fit is refused.
    DropTail(QueueLimit),
}

impl QueueConfig {
    /// Drop-tail with room for `packets` packets.
    pub const fn packets(packets: usize) -> Self {
        Self::DropTail(QueueLimit::Packets(packets))
    }

    /// Drop-tail with room for `bytes`.
    pub const fn bytes(bytes: Bytes) -> Self {
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
}

/// How much may wait. What is being transmitted does not wait: it is outside the limit, even when
/// it is partly sent and must pause for the next opportunity of a trace [Mahimahi].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// This many bytes.
    Bytes(Bytes),
    /// This many packets.
    Packets(usize),
    /// What the link sends in this time, that is rate · time bytes: at a fixed rate nothing waits
    /// longer. With a rate table the rate is that of the moment of arrival, so the room shrinks and
    /// grows with the rate (nothing that waits is thrown out), and during an outage there is none.
    /// With a Mahimahi trace, which has no rate at a moment, it is the mean rate of the trace.
    Sojourn(Duration),
    /// As much as comes.
    Unlimited,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) arrival: Timestamp,
    pub(crate) size: Bytes,
    pub(crate) packet: P,
}

/// A queue at work.
#[derive(Debug)]
pub(crate) enum Queue<P> {
    DropTail(DropTail<P>),
}

impl<P> Queue<P> {
    pub(crate) fn new(config: &QueueConfig) -> Self {
        match *config {
            QueueConfig::DropTail(limit) => Self::DropTail(DropTail::new(limit)),
        }
    }

    /// Takes a packet in, or gives it back. `rate` is what the link sends at now; `None` where it
    /// sends at once.
    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting<P>, rate: Option<Bitrate>) -> Result<(), P> {
        match self {
            Self::DropTail(queue) => queue.push(waiting, rate),
        }
    }

    /// When the packet at the head arrived.
    #[inline]
    pub(crate) fn head_arrival(&self) -> Option<Timestamp> {
        match self {
            Self::DropTail(queue) => queue.head_arrival(),
        }
    }

    /// The next packet for the wire, which is free at `now`. A discipline that drops from the head
    /// instead gives `None` and counts the drop itself.
    #[inline]
    pub(crate) fn pop(&mut self, _now: Timestamp) -> Option<Waiting<P>> {
        match self {
            Self::DropTail(queue) => queue.pop(),
        }
    }

    /// What waits.
    #[inline]
    pub(crate) fn waiting(&self) -> Count {
        match self {
            Self::DropTail(queue) => queue.waiting(),
        }
    }

    /// Throws out everything and says how much that was.
    pub(crate) fn clear(&mut self) -> Count {
        match self {
            Self::DropTail(queue) => queue.clear(),
        }
    }
}
