//! Files over a connection of several paths: tickets, manifests, resumption and verification.
//!
//! A [`Receiver`] prints a [`Ticket`]; a [`Sender`] that holds it sends files and whole directories.
//! The library never prints: [`Progress`] can be polled, and every error says what is wrong and what
//! would be right.
//!
//! ```
//! use fairpath_quic::{ConnectConfig, ListenConfig, Listener, connect};
//! use fairpath_transfer::{Consent, Existing, Limits, ReceiveConfig, Receiver, Secret, Selection, Sender};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (source, directory) = (folder.path().join("letter"), folder.path().join("received"));
//! # std::fs::write(&source, "Dear reader")?;
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let secret = Secret::generate()?;
//! let listener = Listener::bind(ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new()? })?;
//! let receiver = Receiver::new(ReceiveConfig {
//!     directory: directory.clone(),
//!     existing: Existing::default(),
//!     keep: false,
//!     secret: secret.clone(),
//!     limits: Limits::default(),
//!     consent: Consent::always(),
//! });
//! let via = vec!["127.0.0.1".to_owned()];
//! let config = ConnectConfig { via, ..ConnectConfig::new(listener.addresses(), listener.fingerprint()) };
//! let (client, server) = tokio::join!(connect(config), listener.accept());
//! let (client, server) = (client?, server.expect("the listener is open"));
//! let sender = Sender::new(Selection::collect(&[source])?, secret)?;
//! let receiving = async { receiver.serve(receiver.admit(&server).await?).await };
//! let (sent, received) = tokio::join!(sender.send(&client), receiving);
//! sent?;
//! assert_eq!(received?.files, 1);
//! assert_eq!(std::fs::read_to_string(directory.join("letter"))?, "Dear reader");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The protocol
//!
//! The ends speak by messages of the connection, which come in order, each in postcard's
//! encoding and at most [`MAX_MESSAGE`] long. Data are its records, which come in any order.
//!
//! 1. sender: greeting, `FPT`, version, a number of the sender's, and the proof: BLAKE3 keyed with the
//!    secret over 32 bytes that both ends export from the TLS session. The secret itself never travels.
//! 2. receiver: a message of one byte, `A`; or it closes the connection with a code and words. Nothing was written so
//!    far, and nothing of what follows was read.
//!    Then `Terms {hidden, has_all, in_order}`: whether hidden names are taken, whether this sender has sent everything
//!    before, and whether what comes is passed on in order. If it has, `LeftOut [entries]`… and `Arrived(proof)` follow,
//!    and nothing else.
//! 3. sender: `Entries […]`…: names, sizes, times, permissions; streams without a size; directories; links. `Unsent […]`…
//!    names what cannot be sent, `Hidden` what the terms exclude; `EntriesEnd`.
//! 4. receiver: `Asking` if its user has to agree and has not; `Compare [files]`…, `Compare []`: files of that size exist.
//! 5. sender: `Tags […]`…, one for each of them, in that order: keyed hashes of their digests (`proof.rs`).
//! 6. receiver: `Same [files with proofs]`…, `Have {file, ranges}`… (interrupted before), `LeftOut [entries]`… (cannot
//!    be written), `Begin`.
//! 7. sender, as records and in no other way: pieces of large files (entry number, offset, data),
//!    and parcels (`parcel.rs`). Parcels hold whole small files and their tags, runs of zeros, tags
//!    of large files that were read to their end, ends of streams, and files that are left out,
//!    with the reason. The receiver takes them as fast as they are written, and the credit of the
//!    records holds the sender back. So the credit bounds all that the receiver has not taken,
//!    however small the files are.
//! 8. receiver: `Written(bytes)` now and then; `Done [files with proofs]` when their digests were
//!    right, their contents are durable and they stand under their names. `Again(file)` when a
//!    digest was wrong, once; `LeftOut [entries]` for files that cannot be written. `Taken {file,
//!    bytes}` tells how far a stream, or a file passed on in order, has come: the sender keeps
//!    within a window of that.
//! 9. receiver: `Complete`; the sender closes the connection with code 0 and the word "done".
//! 10. `Failed {fault, text}` from either end, at any time, ends the transfer with one clear error.
//!
//! No file's fault ends the transfer of the others. Both ends name what was left out, and the ticket
//! stays good for it.
//!
//! # What is durable when
//!
//! A file gets its name only when its content is on the disk: after a loss of power there is either
//! nothing under the name (or what was there before), or all of it. Up to eight files are synced one by
//! one, more by one sync of their file system, at least once a second. The names themselves are
//! durable when `Complete` is said.
//!
//! # Where unfinished files are
//!
//! In the hidden directory `.fairpath-partial` at the root of the receiver's directory, closed to
//! others: one file of data and one journal of ranges each. It disappears when nothing unfinished is
//! left. Whatever a journal says, the digest is that of the bytes read back from the file that is
//! placed; where another file system is mounted below the directory, of the copy made there.

mod admission;
mod attributes;
mod choice;
mod collect;
mod deliver;
mod destination;
mod entry;
mod error;
mod fault;
mod feed;
mod flow;
#[doc(hidden)]
pub mod fuzzing;
mod greeting;
mod ledger;
mod leftovers;
#[cfg(feature = "simulation")]
mod lies;
mod manifest;
mod name;
mod offer;
mod outlet;
mod parcel;
mod part;
mod partial;
mod placing;
mod plan;
mod progress;
mod proof;
mod protocol;
mod ranges;
mod reader;
mod receive;
mod resumption;
mod send;
mod session;
mod skip;
mod source;
mod ticket;
mod words;
mod workers;
mod writer;

#[cfg(test)]
mod tests;

pub use admission::{ADMISSION_DEADLINE, Admission, AdmissionError, AuthenticationError, Guest, Refusal, authenticate};
pub use attributes::Attribute;
pub use choice::{Choice, Filter, Links, PatternError};
pub use collect::Selection;
pub use deliver::{COMES_BACK, DeliveryEvent, GIVE_UP_AFTER};
pub use destination::check_destination;
pub use entry::{Entry, Kind, PERMISSIONS};
pub use error::{Conflict, ReceiveError, SendError};
pub use fault::Fault;
pub use greeting::{Purpose, SenderId};
pub use leftovers::{LEFT_OVER_AFTER, Leftover, leftovers};
#[cfg(feature = "simulation")]
pub use lies::{Lie, lie};
pub use manifest::{Limits, Manifest, ManifestError, NameFault, check_name};
pub use name::{Name, shown_path};
pub use offer::{Consent, LeftOut, Offer};
pub use plan::Existing;
pub use progress::{Phase, Progress, ProgressSnapshot};
pub use protocol::{INTERRUPTED_CODE, MAX_MESSAGE, ProtocolError, VERSION};
pub use receive::{Admitted, ReceiveConfig, Received, Receiver, SILENCE};
#[doc(hidden)]
pub use resumption::Resumption;
pub use send::{Sender, Sent};
pub use skip::{Reason, Skipped};
pub use ticket::{MAX_ADDRESSES, Secret, Ticket, TicketError};
pub use words::printable;
