//! Packets of the simulated network.

/// Limit on packets that a run may hold, on links or remembered at hosts: about a gigabyte. A
/// connection may not send more at one instant either.
pub(crate) const PACKETS_MAX: u64 = 1_000_000;

/// A packet. It carries no bytes of data, only what is needed to account for them, and that in few
/// bytes: thousands of them wait in the links of a large network, and caches are small.
///
/// Its body lies flat in words, not in an `enum`. Copies of an `enum` from link to link go in odd
/// pieces, which the processor cannot forward from store to load. Numbers of 64 bits lie in halves,
/// so that no padding is needed: together with a link's own fields a packet fills one cache line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The slot of its connection.
    pub(crate) connection: u32,
    /// Its number among the connections that had this slot. Packets of a finished one are thrown
    /// away.
    pub(crate) generation: u32,
    /// The path of the connection.
    pub(crate) path: u16,
    kind: u8,
    flags: u8,
    small: [u32; 2],
    large: [[u32; 2]; 3],
}

const DATA: u8 = 0;
const LAST_DATA: u8 = 1;
const ACK: u8 = 2;
const DATAGRAM: u8 = 3;
const REPORT: u8 = 4;

const ECN_CAPABLE: u8 = 1;
const MARKED: u8 = 2;
const CORRUPTED: u8 = 4;

impl Packet {
    /// A packet of generation `generation` of the connection in slot `connection`.
    #[inline]
    pub(crate) fn new(connection: u32, generation: u32, path: u16, body: Body) -> Self {
        let (kind, small, large) = match body {
            Body::Data { number, chunk } => {
                (if chunk.last { LAST_DATA } else { DATA }, [chunk.bytes, 0], [number, chunk.number, 0])
            }
            Body::Ack(ack) => (ACK, [ack.delay_ns, ack.marked], [ack.largest, ack.seen, ack.expected]),
            Body::Datagram => (DATAGRAM, [0; 2], [0; 3]),
            Body::Report { number } => (REPORT, [0; 2], [number, 0, 0]),
        };
        Self { connection, generation, path, kind, flags: 0, small, large: large.map(halves) }
    }

    /// The same, and links may mark it.
    #[inline]
    pub(crate) fn ecn_capable(self, capable: bool) -> Self {
        Self { flags: if capable { ECN_CAPABLE } else { 0 }, ..self }
    }

    /// Whether a link marked it.
    #[inline]
    pub(crate) fn is_marked(&self) -> bool {
        self.flags & MARKED != 0
    }

    /// Whether a link harmed it. Its receiver cannot decrypt it then [RFC9001 §5.3], and throws it away.
    #[inline]
    pub(crate) fn is_corrupted(&self) -> bool {
        self.flags & CORRUPTED != 0
    }

    /// Its body.
    #[inline]
    pub(crate) fn body(&self) -> Body {
        let [small, other_small] = self.small;
        let [number, second, third] = self.large.map(whole);
        match self.kind {
            ACK => Body::Ack(AckFrame {
                largest: number,
                seen: second,
                delay_ns: small,
                expected: third,
                marked: other_small,
            }),
            DATAGRAM => Body::Datagram,
            REPORT => Body::Report { number },
            kind => Body::Data { number, chunk: Chunk { number: second, bytes: small, last: kind == LAST_DATA } },
        }
    }
}

#[inline]
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

#[inline]
fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl fairpath_net::Packet for Packet {
    #[inline]
    fn is_ecn_capable(&self) -> bool {
        self.flags & ECN_CAPABLE != 0
    }

    #[inline]
    fn mark(&mut self) {
        self.flags |= MARKED;
    }

    fn corrupt(&mut self, _random: u64) {
        self.flags |= CORRUPTED;
    }
}

/// The body of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body {
    /// Data, to be acknowledged.
    Data {
        /// The number of the packet on its path.
        number: u64,
        /// The piece of data.
        chunk: Chunk,
    },
    /// An acknowledgement.
    Ack(AckFrame),
    /// Data that is neither acknowledged nor sent again.
    Datagram,
    /// A report of a live stream's player.
    Report {
        /// Its number.
        number: u64,
    },
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

impl Chunk {
    /// No data, only the number of a piece that has arrived: what carries it is acknowledged like any other.
    pub(crate) fn probe(number: u64) -> Self {
        Self { number, bytes: 0, last: false }
    }

    /// Whether it is no data: pieces of data have some.
    pub(crate) fn is_probe(&self) -> bool {
        self.bytes == 0
    }
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
    /// The number of the first piece of data that has not arrived.
    pub(crate) expected: u64,
    /// How many packets of the path have come marked.
    pub(crate) marked: u32,
}
