//! Faults, as one end tells them to the other.

use serde::{Deserialize, Serialize};

/// A failure as one end tells it to the other, beside the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// A name or a sum of the manifest was refused.
    Manifest,
    /// A file exists and may not be overwritten.
    Exists,
    /// The disk is full.
    DiskFull,
    /// The receiver may not write there.
    PermissionDenied,
    /// The content did not arrive as it was sent.
    Mismatch,
    /// Another error of a file system.
    Io,
    /// The other end broke the protocol.
    Protocol,
    /// The receiver's user does not want the files.
    Declined,
    /// The user or a newer connection ended it.
    Cancelled,
}
