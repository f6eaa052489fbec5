//! Things that a transfer leaves out, and why. One file never ends a transfer of many.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::manifest::NameFault;
use crate::name::shown_path;

/// Why one file is left out while the others are transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Reason {
    /// The user wants no links.
    #[error("is a symbolic link")]
    SymbolicLink,
    /// A link whose target is not sent with it, or may not be.
    #[error("is a symbolic link that may lead out of what is sent (`--links follow` sends what it leads to)")]
    LeadsOut,
    /// A link that was to be followed.
    #[error("is a symbolic link that leads nowhere")]
    LeadsNowhere,
    /// A link that was to be followed.
    #[error("is a symbolic link to a directory that it is in")]
    LeadsRound,
    /// It is a pipe, a socket or a device.
    #[error("is a special file")]
    Special,
    /// The name breaks a rule.
    #[error("has a name that cannot travel: {0}")]
    Name(NameFault),
    /// The sender may not read it.
    #[error("may not be read by the sender")]
    Unreadable,
    /// It was there when the list was made, and then no more.
    #[error("vanished before it was sent")]
    Vanished,
    /// Under its name stands another file, or something that is no file.
    #[error("was replaced by something else before it was sent")]
    Replaced,
    /// It was written to.
    #[error("changed while it was sent")]
    Changed,
    /// The sender's system reported an error.
    #[error("could not be read")]
    ReadFailed,
    /// At the receiver, something else came into its place during the transfer.
    #[error("has something else in its place at the receiver")]
    InTheWay,
    /// Something of that name exists at the receiver, which keeps it.
    #[error("exists at the receiver, which keeps its own")]
    Kept,
    /// The same, where newer files are taken.
    #[error("is not newer than what the receiver has")]
    NotNewer,
    /// The receiver may not write there.
    #[error("may not be written by the receiver")]
    Unwritable,
    /// The receiver's file system does not take such a name.
    #[error("has a name that the receiver's file system does not take")]
    NameRefused,
    /// The receiver's file system does not take a file of that size.
    #[error("is too large for the receiver's file system, or for the limit set there (`ulimit -f`)")]
    TooLarge,
    /// The content did not arrive as it was sent, twice.
    #[error("arrived damaged twice")]
    Damaged,
    /// A stream that has to be sent again from a place that the sender no longer holds.
    #[error("is a stream, of which the receiver lacks what cannot be read again")]
    Unrepeatable,
}

impl Reason {
    /// Whether leaving it out is what one of the users asked for: nothing went wrong.
    pub fn is_expected(self) -> bool {
        matches!(self, Self::SymbolicLink | Self::Kept | Self::NotNewer)
    }
}

/// Something that is left out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// At the sender, where it lies; at the receiver, its name inside the directory.
    pub path: PathBuf,
    /// Why.
    pub reason: Reason,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not sent: {} {}", shown_path(&self.path), self.reason)
    }
}
