//! Names of streams.

/// The name of a stream, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(super) u64);

impl StreamId {
    /// How many streams the end that opened it had opened before.
    pub fn number(self) -> u64 {
        self.0 >> 1
    }

    /// Whether the server opened it.
    pub fn is_from_server(self) -> bool {
        self.0 & 1 == 1
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let side = if self.is_from_server() { "server" } else { "client" };
        write!(f, "stream {} of the {side}", self.number())
    }
}

/// The purpose of a stream, as the two ends have agreed. The end that opens it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKind(pub u8);

/// The name of all streams between two ends, which outlives a connection. The two ends alone know it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamsToken(pub(crate) [u8; StreamsToken::LEN]);

impl StreamsToken {
    pub(crate) const LEN: usize = 16;
}

/// It is a secret: a peer that knows it and is let in may take the streams over.
impl std::fmt::Debug for StreamsToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamsToken")
    }
}
