//! What one end tells the other about a failure.

use serde::{Deserialize, Serialize};

/// What one end tells the other about a failure, beside the words.
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
