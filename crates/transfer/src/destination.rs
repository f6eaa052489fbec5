//! The receiver's directory: every step inside it is taken component by component from an open
//! directory and never through a symbolic link, so no name and no link leads out of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairpath_core::Bytes;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::ReceiveError;
use crate::manifest::PARTIAL;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const INSIDE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// How long to wait for another holder of the directory, in steps of [`LOCK_STEP`].
const LOCK_STEPS: u32 = 50;
const LOCK_STEP: std::time::Duration = std::time::Duration::from_millis(100);

/// What is found under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    File { size: u64 },
    Directory,
    Other,
}

/// An open directory into which files are received.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    root: Arc<OwnedFd>,
    // The parent used last: neighbours come one after another.
    last: Option<(String, Arc<OwnedFd>)>,
}

impl Destination {
    /// Opens the directory, and creates it where it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, ReceiveError> {
        std::fs::create_dir_all(path).map_err(|error| ReceiveError::io(path, error))?;
        let root = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty());
        let root = root.map_err(|error| ReceiveError::io(path, error.into()))?;
        Ok(Self { path: path.to_owned(), root: Arc::new(root), last: None })
    }

    /// The bytes that the file system offers.
    pub(crate) fn free(&self) -> Result<Bytes, ReceiveError> {
        let stat = rustix::fs::fstatvfs(&self.root).map_err(|error| self.io("", error))?;
        Ok(Bytes::new(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    /// The directory's own path, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a name inside, for messages.
    pub(crate) fn full(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What is there under `name`.
    pub(crate) fn find(&mut self, name: &str) -> Result<Found, ReceiveError> {
        let (parent, last) = split(name);
        let Some(parent) = self.directory(parent, false)? else { return Ok(Found::Nothing) };
        match rustix::fs::statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(match kind(&stat) {
                FileType::RegularFile => Found::File { size: stat.st_size as u64 },
                FileType::Directory => Found::Directory,
                _ => Found::Other,
            }),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(error) => Err(self.io(name, error)),
        }
    }

    /// Opens an existing regular file for reading.
    pub(crate) fn read(&mut self, name: &str) -> Result<File, ReceiveError> {
        let (parent, last) = split(name);
        let parent = self.directory(parent, false)?.ok_or_else(|| self.io(name, Errno::NOENT))?;
        let opened = rustix::fs::openat(&parent, last, OFlags::RDONLY | INSIDE, Mode::empty());
        opened.map(File::from).map_err(|error| self.io(name, error))
    }

    /// Creates the directory `name` and those above it, where they do not exist.
    pub(crate) fn create_directory(&mut self, name: &str) -> Result<(), ReceiveError> {
        self.directory(name, true).map(drop)
    }

    /// Makes the entries of the directory `name` survive a loss of power.
    pub(crate) fn sync_directory(&mut self, name: &str) -> Result<(), ReceiveError> {
        let Some(directory) = self.directory(name, false)? else { return Ok(()) };
        match rustix::fs::fsync(&directory) {
            // Some file systems cannot sync a directory.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(self.io(name, error)),
        }
    }

    /// Moves a finished file to its name. Without `force` nothing that is there is replaced.
    pub(crate) fn place(&mut self, partial: &Partial, part: &str, name: &str, force: bool) -> Result<(), ReceiveError> {
        let (parent, last) = split(name);
        let parent = self.directory(parent, true)?.ok_or_else(|| self.io(name, Errno::NOENT))?;
        let moved = match force {
            true => rustix::fs::renameat(&partial.fd, part, &parent, last),
            false => rename_new(&partial.fd, part, &parent, last),
        };
        match moved {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(ReceiveError::Exists { path: name.to_owned() }),
            Err(Errno::ISDIR) => Err(ReceiveError::InTheWay { path: name.to_owned(), there: "a directory" }),
            Err(error) => Err(self.io(name, error)),
        }
    }

    /// Opens the directory `name`; `None` where it does not exist and is not to be created.
    fn directory(&mut self, name: &str, create: bool) -> Result<Option<Arc<OwnedFd>>, ReceiveError> {
        if name.is_empty() {
            return Ok(Some(self.root.clone()));
        }
        if let Some((last, fd)) = &self.last
            && last == name
        {
            return Ok(Some(fd.clone()));
        }
        let mut current = self.root.clone();
        let mut end = 0;
        for component in name.split('/') {
            end += component.len() + usize::from(end > 0);
            let so_far = &name[..end];
            if create {
                match rustix::fs::mkdirat(&current, component, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(self.io(so_far, error)),
                }
            }
            current = match rustix::fs::openat(&current, component, DIRECTORY | INSIDE, Mode::empty()) {
                Ok(fd) => Arc::new(fd),
                Err(Errno::NOENT) if !create => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(obstacle(&current, component, so_far)),
                Err(error) => return Err(self.io(so_far, error)),
            };
        }
        self.last = Some((name.to_owned(), current.clone()));
        Ok(Some(current))
    }

    fn io(&self, name: &str, error: Errno) -> ReceiveError {
        ReceiveError::io(&self.full(name), error.into())
    }
}

fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn obstacle(parent: &OwnedFd, component: &str, name: &str) -> ReceiveError {
    let stat = rustix::fs::statat(parent, component, AtFlags::SYMLINK_NOFOLLOW);
    match stat.map(|stat| kind(&stat)) {
        Ok(FileType::Symlink) => ReceiveError::Symlink { path: name.to_owned() },
        _ => ReceiveError::InTheWay { path: name.to_owned(), there: "something that is no directory" },
    }
}

/// Renames to a name at which nothing may be.
fn rename_new(from: &OwnedFd, part: &str, parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(from, part, parent, name, rustix::fs::RenameFlags::NOREPLACE) {
        // Some file systems do not know the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        result => return result,
    }
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from, part, parent, name),
        Err(error) => Err(error),
    }
}

/// The hidden directory of unfinished files, locked against a second receiver.
#[derive(Debug)]
pub(crate) struct Partial {
    fd: OwnedFd,
    root: Arc<OwnedFd>,
    path: PathBuf,
}

impl Partial {
    /// Opens or creates it. Waits a little for another holder, who may be an earlier connection of
    /// the same sender that is just ending.
    pub(crate) fn open(destination: &Destination) -> Result<Self, ReceiveError> {
        let path = destination.full(PARTIAL);
        let failed = |error: Errno| ReceiveError::io(&path, error.into());
        for _ in 0..LOCK_STEPS {
            match rustix::fs::mkdirat(&destination.root, PARTIAL, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            let fd = match rustix::fs::openat(&destination.root, PARTIAL, DIRECTORY | INSIDE, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => continue,
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(obstacle(&destination.root, PARTIAL, PARTIAL)),
                Err(error) => return Err(failed(error)),
            };
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_still_there(&destination.root, &fd) => {
                    return Ok(Self { fd, root: destination.root.clone(), path });
                }
                // Another holder has removed it in the meantime.
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_STEP),
                Err(error) => return Err(failed(error)),
            }
        }
        Err(ReceiveError::Busy(destination.path.clone()))
    }

    /// Opens a file here for reading and writing; creates it where it does not exist.
    pub(crate) fn open_or_create(&self, name: &str) -> Result<File, ReceiveError> {
        self.open_with(name, OFlags::RDWR | OFlags::CREATE)
    }

    /// Opens a file here that exists.
    pub(crate) fn open_existing(&self, name: &str) -> io::Result<File> {
        Ok(File::from(rustix::fs::openat(&self.fd, name, OFlags::RDWR | INSIDE, Mode::empty())?))
    }

    /// Writes a whole file here so that either the old or the new content is there.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<(), ReceiveError> {
        use io::Write;
        let new = format!("{name}.new");
        let mut file = self.open_with(&new, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        file.write_all(content).map_err(|error| self.io(&new, error))?;
        rustix::fs::renameat(&self.fd, &new, &self.fd, name).map_err(|error| self.io(name, error.into()))
    }

    /// Removes a file here, if it is there.
    pub(crate) fn remove(&self, name: &str) -> Result<(), ReceiveError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.io(name, error.into())),
        }
    }

    /// The error of a file here.
    pub(crate) fn io(&self, name: &str, error: io::Error) -> ReceiveError {
        ReceiveError::io(&self.path.join(name), error)
    }

    fn open_with(&self, name: &str, flags: OFlags) -> Result<File, ReceiveError> {
        let opened = rustix::fs::openat(&self.fd, name, flags | INSIDE, Mode::from_raw_mode(0o666));
        opened.map(File::from).map_err(|error| self.io(name, error.into()))
    }
}

fn is_still_there(root: &OwnedFd, fd: &OwnedFd) -> bool {
    match (rustix::fs::fstat(fd), rustix::fs::statat(root, PARTIAL, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(held), Ok(named)) => held.st_ino == named.st_ino && held.st_dev == named.st_dev,
        _ => false,
    }
}

/// Removes the directory, unless something unfinished is in it.
impl Drop for Partial {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(self.root.as_fd(), PARTIAL, AtFlags::REMOVEDIR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_directory_leads_nowhere() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
        let mut destination = Destination::open(inside.path()).unwrap();
        let error = destination.create_directory("link/x").unwrap_err();
        assert!(matches!(error, ReceiveError::Symlink { ref path } if path == "link"), "{error}");
        assert!(destination.find("link/x").is_err());
        assert_eq!(destination.find("link").unwrap(), Found::Other);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_new_file_never_replaces_another_unless_forced() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "old").unwrap();
        let mut destination = Destination::open(directory.path()).unwrap();
        let partial = Partial::open(&destination).unwrap();
        partial.replace("p", b"new").unwrap();
        let refused = destination.place(&partial, "p", "a", false);
        assert!(matches!(refused, Err(ReceiveError::Exists { .. })));
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"old");
        destination.place(&partial, "p", "a", true).unwrap();
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"new");
        drop(partial);
        assert_eq!(destination.find(PARTIAL).unwrap(), Found::Nothing);
    }
}
