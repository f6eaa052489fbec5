//! The rate limit of all paths of a connection together.

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use crate::pacer::{BURST_DATAGRAMS, Pacer};

/// A full datagram of Ethernet. The burst is as many datagrams as on a path [RFC9002 §7.7].
const DATAGRAM: ByteCount = ByteCount::new(1_500);

/// A bucket of tokens for all paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    rate: Bitrate,
    pacer: Pacer,
    /// Whether the limit held the host back at its last request. A busy machine may pass the
    /// remaining time between the request and setting a timer, and still has to set the timer.
    is_holding: bool,
}

impl Limit {
    pub(crate) fn new(rate: Bitrate) -> Self {
        Self { rate, pacer: Pacer::with_burst(DATAGRAM * BURST_DATAGRAMS), is_holding: false }
    }

    pub(crate) fn rate(&self) -> Bitrate {
        self.rate
    }

    /// A packet left on one of the paths.
    pub(crate) fn on_sent(&mut self, now: Timestamp, bytes: ByteCount) {
        self.pacer.on_sent(now, bytes, self.rate);
    }

    /// Whether a packet has to wait. The host asks this when it wants to send one.
    pub(crate) fn holds(&mut self, now: Timestamp) -> bool {
        self.is_holding = !self.pacer.may_send(now);
        self.is_holding
    }

    /// When to ask again; `None` if the host does not wait for the limit.
    pub(crate) fn asked_again_at(&self, now: Timestamp) -> Option<Timestamp> {
        (self.is_holding || !self.pacer.may_send(now)).then(|| self.pacer.free_at())
    }

    /// Records whether the host has data to send, and waits only for the limit.
    pub(crate) fn set_waited_for(&mut self, is_waited_for: bool) {
        self.pacer.set_waited_for(is_waited_for);
    }

    /// The bytes that may leave before the next packet has to wait.
    pub(crate) fn allowance(&self, now: Timestamp) -> ByteCount {
        self.pacer.allowance(now, self.rate)
    }

    /// Whether a packet may leave.
    pub(crate) fn may_send(&self, now: Timestamp) -> bool {
        self.pacer.may_send(now)
    }
}
