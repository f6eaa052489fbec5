//! A packet, as links see it: its size and little else.

use core::net::SocketAddr;

use fairpath_core::ByteCount;

/// A packet. A link that wants to signal congestion marks the packets that can carry a mark, and
/// drops the others [RFC3168 §5]: the packet itself is where a receiver finds the mark.
///
/// Every method has an answer already: that of a packet that cannot be marked and has no contents.
/// A link that duplicates packets sends a clone, and only such a link ever makes one.
pub trait Packet: Clone {
    /// Whether it can be marked: its sender understands marks, as the codepoints ECT(0) and ECT(1)
    /// say, or it is marked already.
    #[inline]
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Marks it: congestion was experienced, codepoint CE.
    #[inline]
    fn mark(&mut self) {}

    /// The flow it belongs to, as its addresses and ports say, for queues that tell flows apart.
    /// A [`Network`](crate::Network) knows that packets of one route belong together.
    #[inline]
    fn flow(&self) -> u64 {
        0
    }

    /// Harms its contents, as noise does that no checksum of the link has found. `random` says where: a
    /// number that is uniform over all its values.
    fn corrupt(&mut self, _random: u64) {}
}

/// Names do for packets in examples.
impl Packet for &str {}

/// Numbers do for packets in tests: one bit of a corrupted one is wrong.
impl Packet for u64 {
    fn corrupt(&mut self, random: u64) {
        *self ^= 1 << (random % 64);
    }
}

/// Contents: one bit of what is corrupted is wrong, as where a checksum has failed to notice. What is empty has none.
impl Packet for Vec<u8> {
    fn corrupt(&mut self, random: u64) {
        let bits = self.len() as u64 * 8;
        if let Some(bit) = random.checked_rem(bits) {
            self[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

/// A UDP datagram between two addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Where it comes from.
    pub from: SocketAddr,
    /// Where it goes.
    pub to: SocketAddr,
    /// Its payload.
    pub contents: Vec<u8>,
}

impl Datagram {
    /// The size of the headers of UDP and IP together.
    fn headers(&self) -> u64 {
        match self.to {
            SocketAddr::V4(_) => 8 + 20,
            SocketAddr::V6(_) => 8 + 40,
        }
    }

    /// The size on a link.
    pub fn size(&self) -> ByteCount {
        ByteCount::new(self.contents.len() as u64 + self.headers())
    }
}

impl Packet for Datagram {
    fn corrupt(&mut self, random: u64) {
        self.contents.corrupt(random);
    }
}
