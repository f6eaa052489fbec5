//! What crosses the network.

/// A packet. It carries no bytes of data, only what is needed to account for them, and that in few
/// bytes: thousands of them wait in the links of a large network, and caches are small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The slot of its connection.
    pub(crate) connection: u32,
    /// Which of the connections that had this slot: what a finished one left in the network is
    /// thrown away.
    pub(crate) generation: u32,
    /// The path of the connection.
    pub(crate) path: u16,
    /// Whether it can be marked.
    pub(crate) ecn_capable: bool,
    /// Whether a link marked it.
    pub(crate) marked: bool,
    /// What it carries.
    pub(crate) body: Body,
}

impl fairpath_net::Packet for Packet {
    #[inline]
    fn is_ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    #[inline]
    fn mark(&mut self) {
        self.marked = true;
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// Data, to be acknowledged.
    Data {
        /// The number of the packet on its path.
        number: u64,
        /// The piece of data.
        chunk: Chunk,
    },
    /// What has arrived.
    Ack(AckFrame),
    /// Data that nobody asks about.
    Datagram,
}

/// A piece of data. Pieces are numbered through the connection, whichever path they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Its position among the pieces.
    pub(crate) number: u64,
    /// How many bytes it is.
    pub(crate) bytes: u32,
    /// Whether it is the last.
    pub(crate) last: bool,
}

/// An acknowledgement of one path. It names the 64 newest packets, so that nothing is forgotten
/// until 64 packets' acknowledgements in a row are lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckFrame {
    /// The largest packet number that has arrived.
    pub(crate) largest: u64,
    /// Bit i: the packet `largest` − i has arrived.
    pub(crate) seen: u64,
    /// How long the largest one waited for this, in nanoseconds: four seconds at most, so that a
    /// packet stays small.
    pub(crate) delay_ns: u32,
    /// Pieces from this on must not be sent yet.
    pub(crate) limit: u64,
    /// How many packets of the path have come marked.
    pub(crate) marked: u32,
}
