//! A queue: first in, first out.

use std::collections::VecDeque;

use fairpath_core::{ByteCount, Timestamp};

use crate::stats::Count;

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<P> {
    pub(crate) arrival: Timestamp,
    pub(crate) size: ByteCount,
    pub(crate) packet: P,
}

/// Packets in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Fifo<P> {
    waiting: VecDeque<Waiting<P>>,
    bytes: ByteCount,
    overhead: ByteCount,
}

impl<P> Fifo<P> {
    /// An empty one, on a link that adds `overhead` to each packet.
    pub(crate) fn new(overhead: ByteCount) -> Self {
        Self { waiting: VecDeque::new(), bytes: ByteCount::ZERO, overhead }
    }

    #[inline]
    pub(crate) fn push(&mut self, waiting: Waiting<P>) {
        self.bytes += waiting.size;
        self.waiting.push_back(waiting);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.size;
        Some(head)
    }

    /// The packet that came first.
    #[inline]
    pub(crate) fn head(&self) -> Option<&Waiting<P>> {
        self.waiting.front()
    }

    /// The bytes and packets that wait.
    #[inline]
    pub(crate) fn count(&self) -> Count {
        Count { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    /// The same with the framing of the link: limits and thresholds count it.
    #[inline]
    pub(crate) fn on_wire(&self) -> Count {
        let count = self.count();
        Count { bytes: count.bytes + self.overhead * count.packets, ..count }
    }

    /// Throws out everything and says how much that was.
    pub(crate) fn clear(&mut self) -> Count {
        let thrown_out = self.count();
        self.waiting.clear();
        self.bytes = ByteCount::ZERO;
        thrown_out
    }
}
