//! What a link must know of a packet besides its size.

/// A packet. A link that wants to signal congestion marks the packets that can carry a mark, and
/// drops the others [RFC3168 §5]: the packet itself is where a receiver finds the mark.
///
/// Both methods have an answer already, that of a packet that cannot be marked.
pub trait Packet {
    /// Whether it can be marked: its sender understands marks, as the codepoints ECT(0) and ECT(1)
    /// say, or it is marked already.
    #[inline]
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Marks it: congestion was experienced, codepoint CE.
    #[inline]
    fn mark(&mut self) {}
}

/// Names and numbers do for packets in tests and examples.
impl Packet for &str {}
impl Packet for u64 {}
