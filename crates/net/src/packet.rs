//! What a link must know of a packet besides its size.

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
