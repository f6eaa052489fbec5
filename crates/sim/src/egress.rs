//! The way of what hosts send: into the network, or to the part that has the first link.

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::{Network, RouteId};

use crate::packet::Packet;

/// Takes the packets of hosts. What becomes of one its sender does not learn.
pub(crate) trait Egress {
    fn send(&mut self, now: Timestamp, route: RouteId, packet: Packet, size: ByteCount);
}

impl Egress for Network<Packet> {
    #[inline]
    fn send(&mut self, now: Timestamp, route: RouteId, packet: Packet, size: ByteCount) {
        let _ = Network::send(self, now, route, packet, size);
    }
}
