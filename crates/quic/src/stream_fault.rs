//! Errors of streams.

use std::io;

use fairpath_quic_core::streams::StreamError;
use noq_proto::ConnectionError;

/// Why something cannot be done with a stream. Inside an [`io::Error`] it is found by `get_ref` and `downcast_ref`.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamFault {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// The stream ended.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The connection was lost, and the peer does not know its streams any more.
    #[error("the connection was lost, and the peer does not know its streams any more")]
    Lost,
}

/// Why a connection cannot go on with the streams of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The other connection has no streams to go on with. One of the two ends closed it, or it was lost too long ago
    /// ([`StreamsConfig::kept`](crate::StreamsConfig::kept)). Or none was ever opened on it, or they are on a third one.
    #[error("the other connection has no streams to go on with")]
    Gone,
    /// This end was connected to: what it has goes on by itself, when the peer asks for it.
    #[error("only the end that connects asks for its streams on another connection")]
    Accepted,
    /// Streams may have been opened on this connection already, or it is over.
    #[error("streams of its own are in use on this connection, or it is over")]
    Late,
}

impl From<StreamFault> for io::Error {
    fn from(fault: StreamFault) -> Self {
        let kind = match &fault {
            StreamFault::Connection(_) | StreamFault::Lost => io::ErrorKind::NotConnected,
            StreamFault::Stream(StreamError::Reset(_) | StreamError::Stopped(_)) => io::ErrorKind::ConnectionReset,
            StreamFault::Stream(_) => io::ErrorKind::BrokenPipe,
        };
        Self::new(kind, fault)
    }
}
