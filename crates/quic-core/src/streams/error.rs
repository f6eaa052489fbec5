//! Errors of streams: of the application, and of the peer.

use super::id::StreamId;
use super::wire::Malformed;

/// Why something cannot be done with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer gave up sending. Its code.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The peer wants no more. Its code.
    #[error("the peer stopped reading the stream with code {0}")]
    Stopped(u64),
    /// It was finished or reset at this end, or is over.
    #[error("{0} was finished or reset before")]
    Closed(StreamId),
}

/// A breach of the rules by the peer. The connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StreamsError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("a frame of {} came, of which {allowed} may be opened", StreamId(*id))]
    TooMany { id: u64, allowed: u64 },
    #[error("a frame of {} came, which was never opened here", StreamId(*id))]
    NotOpened { id: u64 },
    #[error("{} was sent up to byte {end} where its credit is for {limit}", StreamId(*id))]
    BeyondCredit { id: u64, end: u64, limit: u64 },
    #[error("{received} bytes came on all streams where the credit is for {limit}")]
    AllBeyondCredit { received: u64, limit: u64 },
    #[error("{} ends at byte {known}, or has more, and was then said to reach {end}", StreamId(*id))]
    End { id: u64, known: u64, end: u64 },
    #[error("a client resumes streams, and a server refuses to: the peer did what is not its part")]
    Part,
}
