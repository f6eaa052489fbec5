//! The sender's files, opened from what the user named: component by component from there, never
//! through a link and never waiting for anybody, and only where the file is still the one that was
//! collected. So nothing that is put into a directory later can make another file travel.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::choice::Links;
use crate::feed::Feed;
use crate::name::{Name, path_of, split};
use crate::skip::Reason;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// A pipe that stands where a file was must not hold the sender, and a terminal must not become its own.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A file or directory that the user named.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    /// As the user gave it. Links on the way are the user's own choice.
    pub(crate) path: PathBuf,
    /// The first component of the names of all that is in it.
    pub(crate) name: Name,
    /// Where it is a stream.
    pub(crate) feed: Option<Arc<Feed>>,
}

impl Base {
    /// The part of an entry's name behind the base; empty for the base itself.
    pub(crate) fn below<'a>(&self, name: &'a [u8]) -> &'a [u8] {
        name.get(self.name.len() + 1..).unwrap_or_default()
    }

    /// Where the entry of this name lies, for messages.
    pub(crate) fn full(&self, name: &[u8]) -> PathBuf {
        match self.below(name) {
            b"" => self.path.clone(),
            below => self.path.join(path_of(below)),
        }
    }
}

/// A file system object, whatever its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    // The types differ from system to system.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }

    /// The device on which it lies.
    pub(crate) fn device(self) -> u64 {
        self.device
    }
}

/// When a file was last modified, in nanoseconds since 1970.
// The types differ from system to system.
#[allow(clippy::unnecessary_cast)]
pub(crate) fn mtime_ns(stat: &Stat) -> i64 {
    (stat.st_mtime as i64).saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64)
}

/// Where an entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// The thing that the user named to which it belongs, by number.
    pub(crate) base: u32,
    pub(crate) identity: Identity,
}

/// Opens what lies below the bases; remembers the directory used last, since neighbours come one
/// after another.
#[derive(Debug)]
pub(crate) struct Opener<'a> {
    bases: &'a [Base],
    /// For the flags of an opening below a base: links are followed only where the user said so.
    below: OFlags,
    last: Option<(u32, Vec<u8>, Arc<OwnedFd>)>,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(bases: &'a [Base], links: Links) -> Self {
        let below = if links == Links::Follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        Self { bases, below, last: None }
    }

    /// Opens the file that was collected under this name, and answers what is known of it then.
    pub(crate) fn open(&mut self, source: &Source, name: &Name) -> Result<(File, Stat), Reason> {
        let base = &self.bases[source.base as usize];
        let below = base.below(name.as_bytes());
        if below.is_empty() {
            return open_at(CWD, &base.path, OFlags::empty(), source.identity);
        }
        let (parent, last) = split(below);
        let parent = self.directory(source.base, parent).map_err(reason)?;
        open_at(&parent, path_of(last), self.below, source.identity)
    }

    /// Opens a directory below a base.
    pub(crate) fn directory(&mut self, base: u32, below: &[u8]) -> Result<Arc<OwnedFd>, Errno> {
        if let Some((number, name, fd)) = &self.last
            && *number == base
            && name == below
        {
            return Ok(fd.clone());
        }
        let path = &self.bases[base as usize].path;
        let mut current = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?;
        for component in below.split(|byte| *byte == b'/').filter(|component| !component.is_empty()) {
            current = rustix::fs::openat(&current, component, DIRECTORY | self.below, Mode::empty())?;
        }
        let fd = Arc::new(current);
        self.last = Some((base, below.to_vec(), fd.clone()));
        Ok(fd)
    }
}

/// Opens a regular file if it is the one meant. It is looked at before it is opened, since opening a
/// device may do something; and after, since only then it is certain.
fn open_at(parent: impl AsFd, name: &Path, follow: OFlags, expected: Identity) -> Result<(File, Stat), Reason> {
    let is_meant =
        |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && Identity::of(stat) == expected;
    let look = if follow.contains(OFlags::NOFOLLOW) { AtFlags::SYMLINK_NOFOLLOW } else { AtFlags::empty() };
    let before = rustix::fs::statat(&parent, name, look).map_err(reason)?;
    if !is_meant(&before) {
        return Err(Reason::Replaced);
    }
    let fd = rustix::fs::openat(&parent, name, READ | follow, Mode::empty()).map_err(reason)?;
    match rustix::fs::fstat(&fd) {
        Ok(stat) if is_meant(&stat) => Ok((File::from(fd), stat)),
        Ok(_) => Err(Reason::Replaced),
        Err(error) => Err(reason(error)),
    }
}

/// Why a file is left out when the system gives this error.
pub(crate) fn reason(error: Errno) -> Reason {
    match error {
        Errno::NOENT => Reason::Vanished,
        Errno::NOTDIR | Errno::LOOP | Errno::NXIO => Reason::Replaced,
        Errno::ACCESS | Errno::PERM => Reason::Unreadable,
        _ => Reason::ReadFailed,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;
    use crate::collect::Selection;

    /// A directory with `d/x`, collected, and what opening `d/x` then gives.
    fn after(change: impl FnOnce(&Path)) -> Result<File, Reason> {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("x"), "meant").unwrap();
        fs::write(directory.path().join("secret"), "not meant").unwrap();
        let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
        change(&root);
        let number = selection.manifest.entries().iter().position(|entry| entry.path == "d/x").unwrap();
        Opener::new(&selection.bases, Links::Keep).open(&selection.sources[number], &"d/x".into()).map(|(file, _)| file)
    }

    #[test]
    fn only_the_very_file_that_was_collected_is_opened() {
        assert!(after(|_| {}).is_ok());
        let gone = after(|root| fs::remove_file(root.join("x")).unwrap());
        assert_eq!(gone.unwrap_err(), Reason::Vanished);
        let another = after(|root| {
            fs::write(root.join("y"), "meant").unwrap();
            fs::rename(root.join("y"), root.join("x")).unwrap();
        });
        assert_eq!(another.unwrap_err(), Reason::Replaced);
    }

    #[test]
    fn a_link_that_takes_the_place_of_a_file_or_its_directory_is_not_followed() {
        let link = after(|root| {
            fs::remove_file(root.join("x")).unwrap();
            std::os::unix::fs::symlink("../secret", root.join("x")).unwrap();
        });
        assert_eq!(link.unwrap_err(), Reason::Replaced);
        let directory = after(|root| {
            let elsewhere = root.with_file_name("elsewhere");
            fs::create_dir(&elsewhere).unwrap();
            fs::write(elsewhere.join("x"), "not meant").unwrap();
            fs::rename(root, root.with_file_name("was")).unwrap();
            std::os::unix::fs::symlink(&elsewhere, root).unwrap();
        });
        assert_eq!(directory.unwrap_err(), Reason::Replaced);
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_holds_nobody() {
        let pipe = after(|root| {
            fs::remove_file(root.join("x")).unwrap();
            assert!(Command::new("mkfifo").arg(root.join("x")).status().unwrap().success());
        });
        assert_eq!(pipe.unwrap_err(), Reason::Replaced);
    }
}
