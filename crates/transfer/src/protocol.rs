//! The messages of the two ends: one message of the connection each, in postcard's encoding. The
//! first message of each end is of the greeting (`greeting.rs`).

use bytes::Bytes;
use fairpath_quic::{Connection, ConnectionError, RecordTooLarge, violation};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::fault::Fault;
use crate::name::Name;
use crate::offer::LeftOut;
use crate::skip::Reason;
use crate::words::printable;

/// The version of the protocol.
pub const VERSION: u8 = 5;

/// The largest message, in bytes.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The most ranges of one file that a plan names; what is left out is sent again.
pub(crate) const MAX_RANGES: usize = 4096;

/// How many entries one message lists, at most two dozen bytes each: well within a message.
pub(crate) const ENTRIES_PER_MESSAGE: usize = 40_000;

/// With this code and word either end closes a connection when everything is in place, and only then.
pub(crate) const DONE_CODE: u32 = 0;

/// The word beside [`DONE_CODE`]: a connection that is merely dropped has the same code, and no word.
pub(crate) const DONE_WORD: &str = "done";

/// With this code a sender closes a connection that its user has ended: no other one follows.
pub const INTERRUPTED_CODE: u32 = 2;

/// Whether the peer's user has ended the connection.
pub(crate) fn is_interrupted(connection: &Connection) -> bool {
    match connection.close_reason() {
        Some(ConnectionError::ApplicationClosed(close)) => close.error_code == INTERRUPTED_CODE.into(),
        _ => false,
    }
}

/// Whether the peer has closed the connection because everything is in place.
pub(crate) fn is_done(connection: &Connection) -> bool {
    match connection.close_reason() {
        Some(ConnectionError::ApplicationClosed(close)) => {
            close.error_code == DONE_CODE.into() && *close.reason == *DONE_WORD.as_bytes()
        }
        _ => false,
    }
}

/// A digest of a file's content: BLAKE3.
pub(crate) type Digest = [u8; 32];

/// The receiver's proof of a file: 128 bits cannot be guessed, and many thousands fit into a message.
pub(crate) type Proof = [u8; 16];

/// The messages of the sender after the greeting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromSender {
    /// A part of the manifest.
    Entries(Vec<Entry>),
    /// The manifest is complete.
    EntriesEnd,
    /// The tags of the files that were asked for, in that order, a part of them; nothing for a file that is
    /// left out, with the reason.
    Tags(Vec<Result<Digest, Reason>>),
    /// Before the end of the manifest: what is not in it since the receiver takes no hidden names.
    Hidden(LeftOut),
    /// Before the end of the manifest: what is not in it since it cannot be sent, with the reasons.
    Unsent(Vec<(Name, Reason)>),
    /// The sender gives up.
    Failed {
        /// The kind of failure.
        fault: Fault,
        /// The text for a person to read.
        text: String,
    },
}

/// The messages of the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FromReceiver {
    /// The first message: what the manifest may contain.
    Terms {
        /// Whether hidden names are taken.
        hidden: bool,
        /// Whether this sender has sent everything before: what was left out and the proof follow.
        has_all: bool,
        /// Whether data are passed on in order: the sender keeps near to what was.
        in_order: bool,
    },
    /// Files of the same size exist: the receiver wants the tags of these.
    Compare(Vec<u32>),
    /// These files are there already, and this proves it.
    Same(Vec<(u32, Proof)>),
    /// Parts of this file are there already: start and end (excluded), in bytes.
    Have {
        /// The entry's number.
        file: u32,
        /// The ranges.
        ranges: Vec<(u64, u64)>,
    },
    /// The plan is complete: send what is missing.
    Begin,
    /// How many bytes of data are written, those that were there before included.
    Written(u64),
    /// These files are verified, durable and in place, and this proves it.
    Done(Vec<(u32, Proof)>),
    /// A file arrived damaged: send all of it again.
    Again(u32),
    /// These entries cannot be written; the others can.
    LeftOut(Vec<(u32, Reason)>),
    /// Everything is in place.
    Complete,
    /// The same, of an earlier connection, with the proof of all files together.
    Arrived(Proof),
    /// The receiver gives up.
    Failed {
        /// The kind of failure.
        fault: Fault,
        /// The text for a person to read.
        text: String,
    },
    /// This file was passed on so far, or this stream taken: from the beginning on, without a gap.
    Taken {
        /// The entry's number.
        file: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// How many bytes of its own files the receiver has read, to compare and to verify them. It is said
    /// while that goes on, so that a sender does not give up on a slow disk.
    Examined(u64),
    /// Its user is asked whether to take what is offered: the plan follows once that is answered.
    Asking,
}

/// Why the conversation broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The connection ended.
    #[error("the peer is gone: {0}")]
    Gone(String),
    /// A message is larger than allowed; only what this end says can be.
    #[error("a message has {0} bytes, more than the {MAX_MESSAGE} allowed")]
    MessageTooLarge(usize),
    /// A message cannot be read.
    #[error("the peer sent a message that cannot be understood")]
    Malformed,
    /// A message came at the wrong time or names something that does not exist.
    #[error("the peer broke the protocol: {0}")]
    Unexpected(&'static str),
    /// It broke the rules below the messages.
    #[error("the peer broke the protocol: {0}")]
    Violation(String),
}

impl From<ConnectionError> for ProtocolError {
    fn from(error: ConnectionError) -> Self {
        if let Some(what) = violation(&error) {
            return Self::Violation(printable(what));
        }
        Self::Gone(match error {
            ConnectionError::TimedOut => "it no longer answers".to_owned(),
            ConnectionError::ApplicationClosed(close) if !close.reason.is_empty() => {
                printable(&String::from_utf8_lossy(&close.reason))
            }
            ConnectionError::ApplicationClosed(_) => "it closed the connection".to_owned(),
            ConnectionError::LocallyClosed => "the connection was closed on this side".to_owned(),
            other => other.to_string(),
        })
    }
}

impl From<fairpath_quic::SendError> for ProtocolError {
    fn from(error: fairpath_quic::SendError) -> Self {
        match error {
            fairpath_quic::SendError::Connection(error) => error.into(),
            fairpath_quic::SendError::RecordTooLarge(RecordTooLarge(bytes)) => Self::MessageTooLarge(bytes),
        }
    }
}

/// One message from its encoding; nothing may be left over.
pub(crate) fn decode<T: DeserializeOwned>(message: &[u8]) -> Result<T, ProtocolError> {
    match postcard::take_from_bytes(message) {
        Ok((message, [])) => Ok(message),
        _ => Err(ProtocolError::Malformed),
    }
}

/// The conversation of one connection, seen from one end.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    pub(crate) connection: Connection,
}

impl Control {
    pub(crate) fn new(connection: &Connection) -> Self {
        Self { connection: connection.clone() }
    }

    /// Says something; waits while the peer has too much to hear.
    pub(crate) async fn write<T: Serialize>(&self, message: &T) -> Result<(), ProtocolError> {
        let message = postcard::to_stdvec(message).map_err(|_| ProtocolError::Malformed)?;
        if message.len() > MAX_MESSAGE {
            return Err(ProtocolError::MessageTooLarge(message.len()));
        }
        Ok(self.connection.send_message(Bytes::from(message)).await?)
    }

    /// Hears the next thing that the peer says. Nothing is lost where this is cancelled.
    pub(crate) async fn read<T: DeserializeOwned>(&self) -> Result<T, ProtocolError> {
        decode(&self.connection.recv_message().await?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_survive_the_wire() {
        let entry = Entry { mode: 0o755, mtime_ns: -5, ..Entry::file(&b"a b/\xff"[..], 1 << 40) };
        let message = FromSender::Entries(vec![entry, Entry::directory("d"), Entry::link("d/l", "x")]);
        assert_eq!(decode::<FromSender>(&postcard::to_stdvec(&message).unwrap()), Ok(message));
        let plan = FromReceiver::Have { file: 3, ranges: vec![(0, 10), (20, u64::MAX)] };
        assert_eq!(decode::<FromReceiver>(&postcard::to_stdvec(&plan).unwrap()), Ok(plan));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode::<FromSender>(&bytes);
            let _ = decode::<FromReceiver>(&bytes);
        }

        #[test]
        fn a_list_that_claims_to_be_huge_allocates_nothing_and_fails(count in 1_000_000u64..u64::MAX) {
            let mut bytes = postcard::to_stdvec(&FromReceiver::Same(vec![])).unwrap();
            bytes.pop();
            bytes.extend(postcard::to_stdvec(&count).unwrap());
            prop_assert_eq!(decode::<FromReceiver>(&bytes), Err(ProtocolError::Malformed));
        }
    }
}
