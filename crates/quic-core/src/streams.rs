//! Streams: reliable, ordered bytes both ways, thousands on a connection, without clock and sockets.
//!
//! They travel in DATAGRAM frames as records do (`bulk`), and stand on the same book-keeping (`carrier`). Bytes are in
//! order within a stream, and nothing waits between streams.
//!
//! - **Credit** for each stream and for all of them together. Windows say how both grow. The credit
//!   of the connection is a bound of memory. A slow reader stalls its own stream only, as long as all that lies unread is
//!   less than that bound.
//! - **Order.** Which stream sends next is decided when a path has room, not before: streams that send little go first,
//!   then a deficit round robin (`schedule`).
//! - **Control** (credit, resets, stops) says what holds now, so it may be said twice. It is said again until a packet
//!   that carried it is acknowledged.
//! - **Ids** are never used twice. A stream that both ends are done with is forgotten; of the peer's a set of ranges
//!   says which those are, whose gaps are the open ones.
//!
//! **Overlapping data that differs**: what came first stands.

mod config;
mod error;
mod id;
mod intake;
mod output;
mod part;
mod recv;
mod rescue;
mod resume;
mod schedule;
mod send;
mod set;
mod stream;
#[cfg(test)]
mod tests;
mod window;
mod wire;

pub use config::{Budget, StreamsConfig};
pub use error::StreamError;
pub use id::{StreamId, StreamKind, StreamsToken};
pub use recv::Read;
pub use resume::Suspended;
pub use set::{StreamEvent, Streams};

pub(crate) use part::StreamDatagram;
pub(crate) use wire::is_streams;
