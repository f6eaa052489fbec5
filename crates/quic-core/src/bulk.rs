//! Bulk data as *records* over DATAGRAM frames: a [`Sender`] and a [`Receiver`] without clock and sockets.
//!
//! A [`Record`] is a piece of a numbered object with its offset, so that the receiver can put it in its place
//! whatever the order of arrival. It is cut into *fragments*, each of which travels in one DATAGRAM frame that
//! the host pins to a path. QUIC neither controls the flow of these frames nor sends them again
//! (RFC 9221, section 5), so both is done here:
//!
//! - **Credit.** The receiver tells how many bytes and how many records may have been begun. The buffer of a
//!   record is counted against it as a whole from its first fragment on until the application takes it.
//! - **Resending.** What was lost is cut again, for the datagrams of the path it then goes on. What is in flight
//!   on a path that fell ill is sent again elsewhere, while an acknowledgement that comes late still counts.
//!
//! **Acknowledgements are QUIC's own.** The host is told of each packet, by path and number, whether it was
//! acknowledged or lost, because its congestion controllers are; it passes that on. This is exact, costs no byte on
//! the wire, and a lost tail is found by QUIC's probe timeouts, for which this module would need a clock. A fragment
//! that was acknowledged has reached the peer's connection; so the peer's host must hand every DATAGRAM frame of an
//! acknowledged packet to its [`Receiver`] and drop none.
//!
//! **Memory.** The receiver holds the credit it gave, at most an eighth of that again to track
//! fragments out of order, and a few words for each record of its window. The sender holds records of
//! the application by reference. Unsent ones are bounded by [`UNSENT_MAX`] and one record more,
//! unacknowledged ones by the credit and the congestion windows. Besides, it holds a few words for each
//! fragment in flight, which the congestion windows bound, and 64 kB from which DATAGRAMs are cut.

mod receiver;
mod record;
mod sender;
#[cfg(test)]
mod tests;
mod unfinished;
mod wire;

pub use receiver::{Receiver, Violation, WINDOW_BYTES_MIN};
pub use record::{Credit, MAX_RECORD, Record, RecordRange};
pub use sender::{Fragment, RecordTooLarge, Sender, UNSENT_MAX};
pub use wire::{CREDIT, FRAGMENT, FragmentHeader, Malformed};
