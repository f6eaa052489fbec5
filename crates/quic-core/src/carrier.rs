//! The base of all reliable data: messages, records and streams.
//!
//! Each of them is cut into fragments that travel in QUIC's DATAGRAM frames, pinned to a path. QUIC sends none of these
//! again (RFC 9221, section 5); its acknowledgements say packet by packet what became of them. So what went out in which
//! packet is noted here ([`InFlight`]), and what was lost, or lies on a path that fell ill, is ordered again by the
//! sender whose it is. A fragment that was acknowledged has reached the peer's connection, which hands every DATAGRAM
//! frame to its receiver and drops none.

mod assembly;
mod buffer;
mod coverage;
mod in_flight;

pub(crate) use assembly::Assembly;
pub(crate) use buffer::Buffer;
pub(crate) use coverage::Coverage;
pub(crate) use in_flight::{InFlight, Tracked, Why};
