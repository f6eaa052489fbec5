//! Datagrams that the router hands to a connection, and how many connections are those of guests.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use web_time::Instant;

use bytes::{Bytes, BytesMut};
use noq_proto::{ConnectionEvent, EcnCodepoint};

use crate::one_way::Mark;

/// A datagram as it came to a socket.
#[derive(Debug)]
pub struct ReceivedDatagram {
    /// The peer's address.
    pub remote: SocketAddr,
    /// The address here that it was sent to.
    pub local: IpAddr,
    /// How the network marked it.
    pub ecn: Option<EcnCodepoint>,
    /// Its contents.
    pub contents: BytesMut,
    /// When it came, which may be before it was read.
    pub at: Instant,
}

impl ReceivedDatagram {
    /// One without a mark on this way, from the peer's address to the one here.
    pub fn new((remote, local): (SocketAddr, IpAddr), contents: BytesMut, at: Instant) -> Self {
        Self { remote, local, ecn: None, contents, at }
    }
}

/// A datagram of a connection.
#[derive(Debug)]
pub struct Arrival {
    pub(crate) event: ConnectionEvent,
    pub(crate) mark: Option<Mark>,
    pub(crate) remote: SocketAddr,
    pub(crate) bytes: usize,
    pub(crate) at: Instant,
    /// All of it, where it asks the client to begin anew: anybody may have made it up.
    pub(crate) retry: Option<Bytes>,
}

impl Arrival {
    /// How long the datagram is, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// How many connections of an endpoint have peers that have not proved themselves.
#[derive(Debug, Default)]
pub(crate) struct GuestCount(Arc<AtomicUsize>);

impl GuestCount {
    /// There is one more, as long as the result is kept.
    pub(crate) fn add(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.0.clone())
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// One guest.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_count_as_long_as_they_are_kept() {
        let count = GuestCount::default();
        let [first, second] = [count.add(), count.add()];
        drop(first);
        assert!(count.is_any());
        drop(second);
        assert!(!count.is_any());
    }
}
