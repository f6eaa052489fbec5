//! The base of all reliable data: messages, records and streams.
//!
//! Each of them is cut into fragments that travel in QUIC's DATAGRAM frames, pinned to a path. QUIC
//! does not retransmit these (RFC 9221, section 5); its acknowledgements report the fate of each
//! packet. So the fragments of each packet are noted here ([`InFlight`]). Those that were lost, or
//! lie on a path that fell ill, are ordered again by their sender. A fragment that was acknowledged
//! has reached the peer's connection, which hands every DATAGRAM frame to its receiver and drops
//! none.

mod assembly;
mod buffer;
mod coverage;
mod in_flight;

pub(crate) use assembly::Assembly;
pub(crate) use buffer::Buffer;
pub(crate) use coverage::Coverage;
pub(crate) use in_flight::{InFlight, Tracked, Why};
