//! The content of a DATAGRAM of streams, as its sender knows it.

use super::id::StreamsToken;
use super::send::Piece;
use super::wire::Limits;
use crate::carrier::{self, Why};

/// Something to be said of streams beside their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Resume,
    Refused,
    Limits,
    Reset(u64),
    Stop(u64),
    Credit(u64),
}

/// A DATAGRAM of streams: its content, and why it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamDatagram {
    pub(super) what: What,
    pub(super) why: Why,
}

/// The content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Piece(u64, Piece),
    Limits(Limits),
    Credit { id: u64, limit: u64 },
    Reset(u64),
    Stop(u64),
    Resume(StreamsToken),
    Refused,
}

impl carrier::Tracked for StreamDatagram {
    fn is_tail(self) -> bool {
        // Control is small, and rarely the last thing.
        self.why == Why::Tail || !matches!(self.what, What::Piece(..))
    }
}

impl StreamDatagram {
    /// Whether it is data that was never sent before.
    pub(crate) fn is_new(self) -> bool {
        self.why == Why::New && matches!(self.what, What::Piece(..))
    }
}
