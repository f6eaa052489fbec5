//! The hidden directory of unfinished files.
//!
//! Its files become part of files that are called verified, so it has to be this user's alone. A
//! directory of another user is refused, and one that was open to others is closed and emptied.
//! Among its contents only regular files with a single name and the right owner count.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::destination::{DIRECTORY, Destination, INSIDE, mode, obstacle, tolerated};
use crate::error::ReceiveError;
use crate::manifest::PARTIAL;
use crate::name::Name;
use crate::source::Identity;

/// How long to wait for another holder of the directory, in steps of [`LOCK_STEP`].
const LOCK_STEPS: u32 = 50;
const LOCK_STEP: Duration = Duration::from_millis(100);

/// A file of `RESERVE_BYTES` keeps room for the journals, for when the disk is full.
const RESERVE: &str = "reserve";
const RESERVE_BYTES: usize = 64 << 10;

/// The end of the names of directories that stood where this program keeps files.
const ASIDE: &str = ".aside";

/// How many of one name are kept.
const ASIDES_MAX: u32 = 100;

/// The permissions of others than the owner.
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// The names of one unfinished file and its journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PartNames {
    pub(crate) data: String,
    pub(crate) journal: String,
}

impl PartNames {
    /// The names for the file `path`: a digest, since the path itself may be longer than a name.
    pub(crate) fn of(path: &Name) -> Self {
        let digest = blake3::hash(path.as_bytes()).to_hex();
        let id = &digest[..32];
        Self { data: format!("{id}.part"), journal: format!("{id}.journal") }
    }

    /// Where `name` is that of a part or a journal, the name of the other.
    pub(crate) fn pair_of(name: &str) -> Option<String> {
        match name.rsplit_once('.')? {
            (id, "part") => Some(format!("{id}.journal")),
            (id, "journal") => Some(format!("{id}.part")),
            _ => None,
        }
    }
}

/// The hidden directory of unfinished files, locked against a second receiver.
#[derive(Debug)]
pub(crate) struct Partial {
    fd: OwnedFd,
    root: Arc<OwnedFd>,
    path: PathBuf,
    /// The owner that this file system gives to files made here.
    owner: u32,
    /// The permissions that the user's umask leaves to a new file.
    open: u32,
}

/// Nobody else has any business with what is not whole.
const PRIVATE: u32 = 0o600;

impl Partial {
    /// Opens or creates it, and answers the names of the unfinished files in it that may be resumed;
    /// the rest is removed. Waits a little for another holder, who may be an earlier connection of
    /// the same sender that is just ending.
    pub(crate) fn open(destination: &Destination) -> Result<(Self, BTreeSet<String>), ReceiveError> {
        let path = destination.full(PARTIAL.as_bytes());
        let root = destination.root();
        let failed = |error: Errno| ReceiveError::io(&path, error.into());
        for _ in 0..LOCK_STEPS {
            match rustix::fs::mkdirat(&root, PARTIAL, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            let fd = match rustix::fs::openat(&root, PARTIAL, DIRECTORY | INSIDE, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => continue,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    return Err(obstacle(&root, PARTIAL.as_bytes(), PARTIAL.as_bytes()));
                }
                Err(error) => return Err(failed(error)),
            };
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_still_there(&root, &fd) => return Self::take(fd, root, path),
                // Another holder has removed it in the meantime.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_STEP),
                Err(error) => return Err(failed(error)),
            }
        }
        Err(ReceiveError::Busy(destination.path().to_owned()))
    }

    /// Takes possession of a locked directory, if it is this user's.
    fn take(fd: OwnedFd, root: Arc<OwnedFd>, path: PathBuf) -> Result<(Self, BTreeSet<String>), ReceiveError> {
        let failed = |error: Errno| ReceiveError::io(&path, error.into());
        let before = rustix::fs::fstat(&fd).map_err(failed)?;
        // Where the file system knows no owners, or others than the user's, a file made here tells; and it tells the
        // user's mask.
        let _ = rustix::fs::unlinkat(&fd, "probe", AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | INSIDE;
        let probe = rustix::fs::openat(&fd, "probe", flags, Mode::from_raw_mode(0o666));
        let (owner, open) = match probe.and_then(|file| rustix::fs::fstat(&file)) {
            Ok(stat) => (stat.st_uid, mode(&stat)),
            Err(_) => (rustix::process::geteuid().as_raw(), PRIVATE),
        };
        let _ = rustix::fs::unlinkat(&fd, "probe", AtFlags::empty());
        if before.st_uid != owner {
            return Err(ReceiveError::Untrusted { path, owner: before.st_uid });
        }
        let was_open = mode(&before) & OTHERS != 0;
        if was_open {
            // Where modes cannot be set nothing here is kept from one run to the next.
            let _ = rustix::fs::fchmod(&fd, Mode::from_raw_mode(0o700));
        }
        let partial = Self { fd, root, path, owner, open };
        let keep = mode(&before) & OTHERS_WRITE == 0;
        let unfinished = partial.sweep(keep)?;
        // Without it a full disk costs what arrived since the last journal, nothing else.
        let _ = partial.replace(RESERVE, &[0; RESERVE_BYTES]);
        Ok((partial, unfinished))
    }

    /// Removes what is of no use, and everything unless `keep`. Answers the names of what is left.
    fn sweep(&self, keep: bool) -> Result<BTreeSet<String>, ReceiveError> {
        let listed = Dir::read_from(&self.fd).and_then(Iterator::collect::<Result<Vec<_>, Errno>>);
        let listed = listed.map_err(|error| self.io("", error.into()))?;
        let names: BTreeSet<_> = listed.iter().filter_map(|item| item.file_name().to_str().ok()).collect();
        let mut unfinished = BTreeSet::new();
        for name in names.iter().copied().filter(|name| !matches!(*name, "." | "..")) {
            // A part without a journal cannot be resumed, and a journal without a part was left
            // behind by a file that is in its place.
            let is_pair = PartNames::pair_of(name).is_some_and(|other| names.contains(other.as_str()));
            match keep && is_pair {
                true => drop(unfinished.insert(name.to_owned())),
                false => self.remove(name)?,
            }
        }
        Ok(unfinished)
    }

    /// Creates a file here for reading and writing; what else may have had that name is removed.
    pub(crate) fn create(&self, name: &str) -> Result<File, ReceiveError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let created = match open_at(&self.fd, name, flags) {
            Err(Errno::EXIST) => {
                self.remove(name)?;
                open_at(&self.fd, name, flags)
            }
            created => created,
        };
        created.map(File::from).map_err(|error| self.io(name, error.into()))
    }

    /// These permissions, less those that the user's umask takes away.
    pub(crate) fn masked(&self, mode: u32) -> u32 {
        mode & self.open
    }

    /// Gives a file here permissions.
    pub(crate) fn set_mode(&self, name: &str, wanted: u32) -> Result<(), ReceiveError> {
        let set = rustix::fs::chmodat(&self.fd, name, Mode::from_raw_mode(wanted), AtFlags::empty());
        tolerated(set).map_err(|error| self.io(name, error.into()))
    }

    /// Gives a file here back to its owner alone.
    pub(crate) fn set_private(&self, name: &str) -> Result<(), ReceiveError> {
        self.set_mode(name, PRIVATE)
    }

    /// Opens a file here that exists, for reading and writing.
    pub(crate) fn open_existing(&self, name: &str) -> io::Result<File> {
        let file = open_at(&self.fd, name, OFlags::RDWR | OFlags::NONBLOCK)?;
        let stat = rustix::fs::fstat(&file)?;
        let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        match is_regular && stat.st_nlink == 1 && stat.st_uid == self.owner {
            true => Ok(File::from(file)),
            false => Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file of this user alone")),
        }
    }

    /// Opens the very file that was under this name before.
    pub(crate) fn reopen(&self, name: &str, identity: Identity) -> Result<File, ReceiveError> {
        let file = self.open_existing(name).map_err(|error| self.io(name, error))?;
        match rustix::fs::fstat(&file) {
            Ok(stat) if Identity::of(&stat) == identity => Ok(file),
            _ => Err(self.meddled(name)),
        }
    }

    /// Whether a name here still means that file.
    pub(crate) fn check(&self, name: &str, identity: Identity) -> Result<(), ReceiveError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if Identity::of(&stat) == identity && stat.st_nlink == 1 => Ok(()),
            _ => Err(self.meddled(name)),
        }
    }

    fn meddled(&self, name: &str) -> ReceiveError {
        ReceiveError::Meddled(self.path.join(name))
    }

    /// Writes a whole file here so that either the old or the new content is there.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<(), ReceiveError> {
        use io::Write;
        let new = format!("{name}.new");
        let mut file = self.create(&new)?;
        file.write_all(content).map_err(|error| self.io(&new, error))?;
        rustix::fs::renameat(&self.fd, &new, &self.fd, name).map_err(|error| self.io(name, error.into()))
    }

    /// Removes a file here, if it is there. A directory is not of this program's making: it is set aside whole.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ReceiveError> {
        let is_directory = || {
            let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
            stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
        };
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            // Systems other than Linux call it not permitted.
            Err(Errno::ISDIR | Errno::PERM) if is_directory() => self.set_aside(name),
            Err(error) => Err(self.io(name, error.into())),
        }
    }

    /// Gives a directory here another name, under which it stays.
    fn set_aside(&self, name: &str) -> Result<(), ReceiveError> {
        if name.ends_with(ASIDE) {
            return Ok(());
        }
        let mut failed = Errno::EXIST;
        for number in 1..=ASIDES_MAX {
            match rustix::fs::renameat(&self.fd, name, &self.fd, format!("{name}.{number}{ASIDE}")) {
                Ok(()) => return Ok(()),
                Err(error) => failed = error,
            }
        }
        Err(self.io(name, failed.into()))
    }

    /// Removes an unfinished file and its journal.
    pub(crate) fn discard(&self, names: &PartNames) -> Result<(), ReceiveError> {
        self.remove(&names.journal)?;
        self.remove(&names.data)
    }

    /// Gives up the room that was kept for the journals.
    pub(crate) fn release_reserve(&self) {
        let _ = rustix::fs::unlinkat(&self.fd, RESERVE, AtFlags::empty());
    }

    /// The error of a file here.
    pub(crate) fn io(&self, name: &str, error: io::Error) -> ReceiveError {
        ReceiveError::io(&self.path.join(name), error)
    }
}

impl AsFd for Partial {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open_at(directory: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(directory, name, flags | INSIDE, Mode::from_raw_mode(PRIVATE))
}

fn is_still_there(root: &OwnedFd, fd: &OwnedFd) -> bool {
    match (rustix::fs::fstat(fd), rustix::fs::statat(root, PARTIAL, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(held), Ok(named)) => Identity::of(&held) == Identity::of(&named),
        _ => false,
    }
}

/// Removes the directory, unless something unfinished is in it.
impl Drop for Partial {
    fn drop(&mut self) {
        self.release_reserve();
        let _ = rustix::fs::unlinkat(self.root.as_fd(), PARTIAL, AtFlags::REMOVEDIR);
    }
}
