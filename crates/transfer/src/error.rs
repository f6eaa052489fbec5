//! Why a transfer failed: one variant per cause, on each side.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairpath_core::ByteCount;
use rustix::io::Errno;

use crate::admission::{AdmissionError, AuthenticationError, Refusal};
use crate::fault::Fault;
use crate::manifest::ManifestError;
use crate::name::{Name, shown_path};
use crate::protocol::ProtocolError;
use crate::skip::Reason;

/// Why a sender failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    NoRandomness(io::Error),
    /// No files were named.
    #[error("nothing to send: name at least one file or directory")]
    Nothing,
    /// A named file does not exist.
    #[error("no such file: {}", .0.display())]
    NoSuchFile(PathBuf),
    /// A file may not be read.
    #[error("permission denied: {} cannot be read", .0.display())]
    PermissionDenied(PathBuf),
    /// Two things that were named would arrive as one.
    #[error(
        "{} and {} would both arrive as {name:?}: send the directories that they are in, or one after the other into \
         different directories, or rename one",
        shown_path(first),
        shown_path(second)
    )]
    SameName {
        /// The name.
        name: Name,
        /// The first of them.
        first: PathBuf,
        /// The second of them.
        second: PathBuf,
    },
    /// A name was given for what is several things, or the name is none.
    #[error(
        "the name {0:?} cannot be given: a name without `/` is given to one thing, and only where nothing else is sent"
    )]
    Renamed(Name),
    /// A named thing is neither file nor directory.
    #[error(
        "{} is neither a file nor a directory, and no pipe: what a program reads from it goes by `PROGRAM | fairpath send -`",
        .0.display()
    )]
    Special(PathBuf),
    /// Reading failed.
    #[error("reading {} failed: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A name or a sum is not acceptable.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The receiver did not let this sender in.
    #[error("the receiver refused: {words}")]
    Refused {
        /// The kind of reason.
        refusal: Refusal,
        /// The receiver's words.
        words: String,
    },
    /// The receiver gave up; its words.
    #[error("the receiver refused: {text}")]
    Receiver {
        /// The kind of failure.
        fault: Fault,
        /// The receiver's words.
        text: String,
    },
    /// The connection ended before the transfer did.
    #[error("the receiver is gone ({0}): run the same command again to resume, if the receiver still waits")]
    PeerGone(String),
    /// The connection ended before a stream did, which cannot be read again.
    #[error("the stream broke off: {0}; what went of it is lost, and the command begins it anew")]
    BrokeOff(String),
    /// The connection was lost, and no other could be made in time.
    #[error("given up: connection lost ({why}), and none could be made again within {}; {}", spell(*after), advice(*left))]
    GivenUp {
        /// How long it was tried.
        after: Duration,
        /// Why the connection ended.
        why: String,
        /// The bytes that the receiver had not said to be written.
        left: ByteCount,
    },
    /// The connection was lost, and no other will be made.
    #[error("connection lost ({why}); {never}")]
    NoOther {
        /// Why the connection ended.
        why: String,
        /// Why there is none in its place.
        never: Box<fairpath_quic::Error>,
    },
    /// The connection is there, but nothing moves.
    #[error("given up: no progress for {}", spell(*patience))]
    Stuck {
        /// How long nothing has moved.
        patience: Duration,
    },
    /// The receiver ended the transfer as one that is complete, and has not shown that it has everything.
    #[error(
        "the receiver says that it is done, and has not proved that it has the files: look there before you rely on it"
    )]
    Unproved,
    /// The receiver has everything of an earlier transfer of this sender, which was of other files.
    #[error(
        "this ticket has been used for an earlier transfer, and the files were others or have changed since: ask for a \
         new one"
    )]
    OtherFiles,
    /// The receiver broke the protocol.
    #[error(transparent)]
    Protocol(ProtocolError),
}

/// The advice where the receiver is not found again.
fn advice(left: ByteCount) -> &'static str {
    match left {
        // The word that all is in place is missing, nothing else.
        ByteCount::ZERO => "everything may be in place: look there before you send it again",
        _ => "run the same command again to resume, with the ticket that the receiver printed last, if it still waits",
    }
}

/// A time for a person, in whole minutes where it is that.
fn spell(time: Duration) -> String {
    match (time.as_secs(), time.subsec_millis()) {
        (seconds, 0) if seconds >= 60 && seconds % 60 == 0 => format!("{} min", seconds / 60),
        (seconds, 0) => format!("{seconds} s"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

impl SendError {
    /// Sorts an I/O error of `path` into its cause.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NoSuchFile(path.to_owned()),
            io::ErrorKind::PermissionDenied => Self::PermissionDenied(path.to_owned()),
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// The fault that the receiver is told; `None` where it caused the error or cannot hear.
    pub(crate) fn fault(&self) -> Option<Fault> {
        match self {
            Self::Refused { .. }
            | Self::Receiver { .. }
            | Self::PeerGone(_)
            | Self::BrokeOff(_)
            | Self::GivenUp { .. }
            | Self::Unproved
            | Self::OtherFiles
            | Self::Stuck { .. } => None,
            Self::Manifest(_) => Some(Fault::Manifest),
            Self::PermissionDenied(_) => Some(Fault::PermissionDenied),
            Self::Protocol(_) => Some(Fault::Protocol),
            _ => Some(Fault::Io),
        }
    }
}

impl From<ProtocolError> for SendError {
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Gone(reason) => Self::PeerGone(reason),
            other => Self::Protocol(other),
        }
    }
}

impl From<AuthenticationError> for SendError {
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Refused { refusal, words } => Self::Refused { refusal, words },
            AuthenticationError::Gone(error) => error.into(),
        }
    }
}

/// A name that is taken at the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The name inside the directory.
    pub path: Name,
    /// The thing that stands there, in words that follow the name.
    pub there: &'static str,
}

/// How many of them an error names.
const CONFLICTS_SHOWN: usize = 20;

fn conflicts_in_words(conflicts: &[Conflict]) -> String {
    let shown: Vec<_> =
        conflicts.iter().take(CONFLICTS_SHOWN).map(|one| format!("{:?} {}", one.path, one.there)).collect();
    let more = match conflicts.len().saturating_sub(CONFLICTS_SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let them = if conflicts.len() == 1 { "it" } else { "them" };
    format!(
        "{}{more}; nothing was written: move {them} away, or let `recv` decide with --existing skip, newer, rename or \
         overwrite",
        shown.join(", ")
    )
}

/// Why a receiver failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// The peer was not admitted.
    #[error(transparent)]
    Admission(#[from] AdmissionError),
    /// A name or a sum of the manifest is refused.
    #[error("the sender's list of files is refused: {0}")]
    Manifest(#[from] ManifestError),
    /// Names are taken: all of them.
    #[error("{}", conflicts_in_words(.0))]
    Conflicts(Vec<Conflict>),
    /// A file came into the place of another one meanwhile.
    #[error("{path:?} already exists with other content")]
    Exists {
        /// The name inside the directory.
        path: Name,
    },
    /// A directory is where a file should be, or the reverse.
    #[error("{path:?} cannot be written: {there} is in its place")]
    InTheWay {
        /// The name inside the directory.
        path: Name,
        /// The thing that is there.
        there: &'static str,
    },
    /// A directory on the way to the file is a symbolic link.
    #[error("{path:?} is a symbolic link: nothing is written through links")]
    Symlink {
        /// The link's name inside the directory.
        path: Name,
    },
    /// The disk cannot hold the files.
    #[error("the disk is too small: {needed} are needed in {}, {free} are free", directory.display())]
    NoSpace {
        /// Where.
        directory: PathBuf,
        /// The size that is still to come.
        needed: ByteCount,
        /// The free space.
        free: ByteCount,
    },
    /// Where the directory should be, or above it, is something else.
    #[error("cannot receive into {}: {} is not a directory", directory.display(), there.display())]
    NoDirectory {
        /// Where files should go.
        directory: PathBuf,
        /// The thing that is no directory.
        there: PathBuf,
    },
    /// There is no room at all.
    #[error("the disk is full: nothing more can be written in {}", .0.display())]
    Full(PathBuf),
    /// Nothing can be written there.
    #[error("the file system of {} is read-only: nothing can be written there", .0.display())]
    ReadOnly(PathBuf),
    /// The file system has too few free inodes for the files.
    #[error("too few files can be made in {}: the number needed is {needed}, and its file system has room for {free} \
             (its inodes are used up)", directory.display())]
    NoInodes {
        /// Where.
        directory: PathBuf,
        /// How many files and directories are still to come.
        needed: u64,
        /// How many the file system offers.
        free: u64,
    },
    /// The user may not take more.
    #[error("the quota of this user is used up in {}; what arrived is kept, and used when the same files are sent \
             again", .0.display())]
    QuotaFull(PathBuf),
    /// The disk became full.
    #[error(
        "the disk is full: {missing} more are needed in {}; what arrived is kept, and used when the same files \
         are sent again",
        directory.display()
    )]
    DiskFull {
        /// Where.
        directory: PathBuf,
        /// The size that was still to come.
        missing: ByteCount,
    },
    /// The directory for unfinished files belongs to somebody else.
    #[error(
        "{} belongs to another user (number {owner}), who could change what arrives: remove it, or receive into \
         another directory",
        path.display()
    )]
    Untrusted {
        /// The directory for unfinished files.
        path: PathBuf,
        /// The owner's number.
        owner: u32,
    },
    /// An unfinished file is not what was written there.
    #[error("{} was replaced by another program while it was received", .0.display())]
    Meddled(PathBuf),
    /// The system refused.
    #[error("permission denied: {} cannot be written", .0.display())]
    PermissionDenied(PathBuf),
    /// Another receiver writes into the directory.
    #[error("another receiver is writing into {}", .0.display())]
    Busy(PathBuf),
    /// Another error of the file system.
    #[error("writing {} failed: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The content did not arrive as it was sent, twice.
    #[error("{path:?} arrived damaged twice (its BLAKE3 digest is wrong): it was discarded")]
    Mismatch {
        /// The name inside the directory.
        path: Name,
    },
    /// More than one file is offered to a pipe, or something that is no file.
    #[error(
        "only one file or stream can be passed on to standard output, and {}; several go as one by \
         `tar c … | fairpath send -`, or into a directory by `fairpath recv --dir`",
        if *.0 == 1 { "the sender offers something else".to_owned() } else { format!("the sender offers {} things", .0) }
    )]
    NotOne(usize),
    /// The pipe takes no more.
    #[error(
        "standard output took {written} and no more ({source}): {}",
        if source.kind() == io::ErrorKind::BrokenPipe { "whoever read it is gone" } else { "the rest is not received" }
    )]
    Pipe {
        /// How much it took.
        written: ByteCount,
        /// The system's reason.
        source: io::Error,
    },
    /// A part was passed on, and the rest does not come.
    #[error("{written} were passed on, and the rest did not come: what was passed on is not whole")]
    BrokeOff {
        /// How much was passed on.
        written: ByteCount,
    },
    /// The sender could not send all of what is passed on.
    #[error("what was passed on of {path:?} is not whole: it {reason}")]
    LeftOff {
        /// Its name.
        path: Name,
        /// Why the rest does not come.
        reason: Reason,
    },
    /// The digest of what was passed on is wrong.
    #[error("{written} of {path:?} were passed on, and are not what was sent: the BLAKE3 digest is wrong")]
    Mangled {
        /// Its name.
        path: Name,
        /// How much was passed on.
        written: ByteCount,
    },
    /// The sender gave up; its words.
    #[error("the sender gave up: {text}")]
    Sender {
        /// The kind of failure.
        fault: Fault,
        /// The sender's words.
        text: String,
    },
    /// The connection ended before the transfer did.
    #[error("the sender is gone ({0}); what arrived is kept, the same ticket resumes the transfer")]
    PeerGone(String),
    /// The same before a stream was whole.
    #[error("the sender is gone ({0}) before its stream had ended; only the same run of `send` can go on with it")]
    StreamGone(String),
    /// The user does not want the files.
    #[error("the files were declined; nothing was written")]
    Declined,
    /// The same ticket came again over a newer connection.
    #[error("a newer connection of the sender took over")]
    Superseded,
    /// The sender broke the protocol.
    #[error(transparent)]
    Protocol(ProtocolError),
}

impl ReceiveError {
    /// Sorts an I/O error of `path` into its cause.
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull => Self::DiskFull { directory: path.to_owned(), missing: ByteCount::ZERO },
            io::ErrorKind::QuotaExceeded => Self::QuotaFull(path.to_owned()),
            io::ErrorKind::PermissionDenied => Self::PermissionDenied(path.to_owned()),
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(path.to_owned()),
            _ => Self::Io { path: path.to_owned(), source },
        }
    }

    /// The fault that the sender is told; `None` where it caused the error or cannot hear.
    pub(crate) fn fault(&self) -> Option<Fault> {
        Some(match self {
            // The admission has answered already.
            Self::Admission(_) | Self::Sender { .. } | Self::PeerGone(_) | Self::StreamGone(_) | Self::Superseded => {
                return None;
            }
            Self::Manifest(_) | Self::NotOne(_) => Fault::Manifest,
            Self::Conflicts(_) | Self::Exists { .. } | Self::InTheWay { .. } | Self::Symlink { .. } => Fault::Exists,
            Self::NoSpace { .. }
            | Self::DiskFull { .. }
            | Self::Full(_)
            | Self::NoInodes { .. }
            | Self::QuotaFull(_) => Fault::DiskFull,
            Self::PermissionDenied(_) | Self::ReadOnly(_) | Self::Untrusted { .. } => Fault::PermissionDenied,
            Self::Mismatch { .. } | Self::Mangled { .. } => Fault::Mismatch,
            Self::Pipe { .. } | Self::BrokeOff { .. } | Self::LeftOff { .. } => Fault::Io,
            Self::Declined => Fault::Declined,
            Self::Protocol(_) => Fault::Protocol,
            Self::Busy(_) | Self::Meddled(_) | Self::NoDirectory { .. } | Self::Io { .. } => Fault::Io,
        })
    }

    /// Where the error is one file's matter: why that is left out.
    pub(crate) fn refusal(&self) -> Option<Reason> {
        match self {
            Self::Exists { .. } | Self::InTheWay { .. } | Self::Symlink { .. } => Some(Reason::InTheWay),
            Self::PermissionDenied(_) | Self::ReadOnly(_) => Some(Reason::Unwritable),
            Self::Mismatch { .. } => Some(Reason::Damaged),
            Self::Io { source, .. } => match Errno::from_io_error(source)? {
                Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => Some(Reason::NameRefused),
                Errno::FBIG => Some(Reason::TooLarge),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the receiver may go on waiting for the same sender, or another: nothing is wrong
    /// on this side, or what is can be put right meanwhile.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Admission(_)
                | Self::PeerGone(_)
                | Self::StreamGone(_)
                | Self::Superseded
                | Self::Sender { .. }
                | Self::Conflicts(_)
                | Self::NotOne(_)
        )
    }
}

impl From<ProtocolError> for ReceiveError {
    fn from(error: ProtocolError) -> Self {
        match error {
            ProtocolError::Gone(reason) => Self::PeerGone(reason),
            other => Self::Protocol(other),
        }
    }
}
