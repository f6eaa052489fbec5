//! The receiver's directory: every step inside it is taken component by component from an open
//! directory and never through a symbolic link, so no name and no link leads out of it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fairpath_core::Bytes;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::ReceiveError;
use crate::progress::Progress;
use crate::source::Identity;

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
pub(crate) const INSIDE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

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
    /// A directory on each device that was written to, to sync it by.
    devices: BTreeMap<u64, Arc<OwnedFd>>,
    /// Told of what is copied to other devices.
    pub(crate) progress: Arc<Progress>,
}

impl Destination {
    /// Opens the directory, and creates it where it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, ReceiveError> {
        std::fs::create_dir_all(path).map_err(|error| ReceiveError::io(path, error))?;
        let root = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty());
        let root = root.map_err(|error| ReceiveError::io(path, error.into()))?;
        let root = Arc::new(root);
        Ok(Self { path: path.to_owned(), root, last: None, devices: BTreeMap::new(), progress: Arc::default() })
    }

    /// Tells `progress` what is copied to other devices.
    pub(crate) fn telling(self, progress: Arc<Progress>) -> Self {
        Self { progress, ..self }
    }

    /// The device on which a file of this name comes to lie, and the bytes that it offers.
    pub(crate) fn room(&mut self, name: &str) -> Result<(u64, Bytes), ReceiveError> {
        let mut parent = split(name).0;
        let directory = loop {
            match self.directory(parent, false)? {
                Some(directory) => break directory,
                None => parent = split(parent).0,
            }
        };
        let stat = rustix::fs::fstat(&directory).map_err(|error| self.io(parent, error))?;
        let free = rustix::fs::fstatvfs(&directory).map_err(|error| self.io(parent, error))?;
        Ok((Identity::of(&stat).device(), Bytes::new(free.f_bavail.saturating_mul(free.f_frsize))))
    }

    /// The directory itself.
    pub(crate) fn root(&self) -> Arc<OwnedFd> {
        self.root.clone()
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
        // Something that is no file may have come in its place, and must not hold us.
        let opened = rustix::fs::openat(&parent, last, OFlags::RDONLY | OFlags::NONBLOCK | INSIDE, Mode::empty());
        let file = opened.map(File::from).map_err(|error| self.io(name, error))?;
        match rustix::fs::fstat(&file).map(|stat| kind(&stat)) {
            Ok(FileType::RegularFile) => Ok(file),
            _ => Err(ReceiveError::InTheWay { path: name.to_owned(), there: "something that is no file" }),
        }
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

    /// Makes the entries of all directories survive a loss of power, where that can be had at once.
    pub(crate) fn sync_all_directories(&self) -> Result<bool, ReceiveError> {
        for directory in self.devices.values() {
            match sync_device(directory) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => return Err(self.io("", error)),
            }
        }
        Ok(true)
    }

    /// Opens the directory `name`; `None` where it does not exist and is not to be created.
    pub(crate) fn directory(&mut self, name: &str, create: bool) -> Result<Option<Arc<OwnedFd>>, ReceiveError> {
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
            let mut opened = rustix::fs::openat(&current, component, DIRECTORY | INSIDE, Mode::empty());
            if create && matches!(opened, Err(Errno::NOENT)) {
                match rustix::fs::mkdirat(&current, component, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(self.io(so_far, error)),
                }
                opened = rustix::fs::openat(&current, component, DIRECTORY | INSIDE, Mode::empty());
            }
            current = match opened {
                Ok(fd) => Arc::new(fd),
                Err(Errno::NOENT) if !create => return Ok(None),
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(obstacle(&current, component, so_far)),
                Err(error) => return Err(self.io(so_far, error)),
            };
        }
        if create {
            let stat = rustix::fs::fstat(&current).map_err(|error| self.io(name, error))?;
            self.devices.entry(Identity::of(&stat).device()).or_insert_with(|| current.clone());
        }
        self.last = Some((name.to_owned(), current.clone()));
        Ok(Some(current))
    }

    pub(crate) fn io(&self, name: &str, error: Errno) -> ReceiveError {
        ReceiveError::io(&self.full(name), error.into())
    }
}

pub(crate) fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or(("", name))
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn obstacle(parent: &OwnedFd, component: &str, name: &str) -> ReceiveError {
    let stat = rustix::fs::statat(parent, component, AtFlags::SYMLINK_NOFOLLOW);
    match stat.map(|stat| kind(&stat)) {
        Ok(FileType::Symlink) => ReceiveError::Symlink { path: name.to_owned() },
        _ => ReceiveError::InTheWay { path: name.to_owned(), there: "something that is no directory" },
    }
}

/// Everything that is to be synced on the device of a directory is made durable; false where the
/// system cannot do that.
#[cfg(target_os = "linux")]
pub(crate) fn sync_device(directory: impl AsFd) -> Result<bool, Errno> {
    match rustix::fs::syncfs(directory) {
        Ok(()) => Ok(true),
        Err(Errno::NOSYS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Everything that is to be synced on the device of a directory is made durable; false where the
/// system cannot do that.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_device(_directory: impl AsFd) -> Result<bool, Errno> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::PARTIAL;
    use crate::part::Part;
    use crate::partial::Partial;

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
        let partial = Partial::open(&destination).unwrap().0;
        partial.replace("p", b"new").unwrap();
        let identity = Identity::of(&rustix::fs::fstat(partial.open_existing("p").unwrap()).unwrap());
        let part = Part { name: "p", identity, digest: *blake3::hash(b"new").as_bytes() };
        let refused = destination.place(&partial, &part, "a", false);
        assert!(matches!(refused, Err(ReceiveError::Exists { .. })));
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"old");
        destination.place(&partial, &part, "a", true).unwrap();
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"new");
        drop(partial);
        assert_eq!(destination.find(PARTIAL).unwrap(), Found::Nothing);
    }
}
