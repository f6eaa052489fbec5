//! Bounds of what streams take.

use fairpath_engine::ByteCount as Amount;
use fairpath_quic::{Budget, StreamsConfig};

/// Bounds of the memory that the streams of a connection take at this end.
#[derive(Clone, Debug)]
pub struct StreamLimits(pub(crate) StreamsConfig);

impl Default for StreamLimits {
    /// 16,384 streams, 16 MiB unread on each, 64 MiB on those of a connection, 1 GiB on all connections of an endpoint.
    fn default() -> Self {
        Self(StreamsConfig::default())
    }
}

impl StreamLimits {
    /// The most streams that the peer may have open at once.
    pub fn open_max(mut self, count: u32) -> Self {
        self.0.open_max = count;
        self
    }

    /// The most that a stream may have unread and on its way here.
    pub fn stream_max(mut self, bytes: Amount) -> Self {
        self.0.window_max = bytes;
        self
    }

    /// The same of all streams of a connection together.
    pub fn connection_max(mut self, bytes: Amount) -> Self {
        self.0.connection_max = bytes;
        self
    }

    /// The same of all connections of an endpoint together, beyond the 1 MB that each begins with.
    pub fn endpoint_max(mut self, bytes: Amount) -> Self {
        self.0.budget = Budget::new(bytes);
        self
    }
}
