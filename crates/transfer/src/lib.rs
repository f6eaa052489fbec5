//! Files over lanes: tickets, manifests, resumption and verification.
//!
//! A [`Receiver`] prints a [`Ticket`]; a [`Sender`] that holds it sends files and whole directories.
//! The library never prints: [`Progress`] can be polled, and every error says what is wrong and what
//! would be right.
//!
//! # The protocol
//!
//! One bidirectional stream carries messages, [`LANES`](fairpath_quic::lanes::LANES) unidirectional
//! ones carry data. A message is a length (4 bytes, at most [`MAX_FRAME`]) and its postcard encoding.
//!
//! 1. sender: greeting, `FPT`, version, a number of the sender's, and the proof: BLAKE3 keyed with the
//!    secret over 32 bytes that both ends export from the TLS session. The secret itself never travels.
//! 2. receiver: one byte, `A`; or it closes the connection with a code and words. Nothing was written so
//!    far, and nothing of what follows was read.
//! 3. sender: `Entries […]`…, `EntriesEnd`: names, sizes, times, executable bits; empty directories.
//! 4. receiver: `Compare [files]`…, `Compare []`: files of that size exist.
//! 5. sender: `Digest {file, BLAKE3}` for each of them.
//! 6. receiver: `Skip [files]`… (the same), `Have {file, ranges}`… (interrupted before), `Begin`.
//! 7. sender, on the lanes: records (entry number, offset, data) of all that is missing; on the
//!    control stream `Digest {file, BLAKE3}` once a file was read to its end.
//! 8. receiver: `Written(bytes)` now and then; `Done(file)` when its digest was right and it stands
//!    under its name; `Again(file)` when it was wrong, once.
//! 9. receiver: `Complete`; the sender closes the connection.
//! 10. `Failed {fault, text}` from either end, at any time, ends the transfer with one clear error.
//!
//! # Where unfinished files are
//!
//! In the hidden directory `.fairpath-partial` at the root of the receiver's directory: one file of
//! data and one journal of ranges each. It disappears when nothing unfinished is left.

mod admission;
mod collect;
mod destination;
mod error;
mod greeting;
mod manifest;
mod part;
mod plan;
mod progress;
mod protocol;
mod ranges;
mod reader;
mod receive;
mod send;
mod ticket;
mod writer;

#[cfg(test)]
mod tests;

pub use admission::{ADMISSION_DEADLINE, AdmissionError, Door, Guest, KnockError, Refusal, knock};
pub use collect::{Selection, Skipped};
pub use error::{Fault, ReceiveError, SendError};
pub use greeting::{Purpose, SenderId};
pub use manifest::{Entry, Limits, Manifest, ManifestError, NameFault, check_name};
pub use progress::{Phase, Progress, ProgressSnapshot};
pub use protocol::{MAX_FRAME, ProtocolError, VERSION};
pub use receive::{Admitted, ReceiveConfig, Received, Receiver, SILENCE};
pub use send::{Sender, Sent};
pub use ticket::{MAX_ADDRESSES, Secret, Ticket, TicketError};
