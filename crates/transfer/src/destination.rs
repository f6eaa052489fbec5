//! The receiver's directory: every step inside it is taken component by component from an open
//! directory and never through a symbolic link, so no name and no link leads out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fairpath_core::ByteCount;
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::attributes::{self, Attribute};
use crate::error::ReceiveError;
use crate::manifest::Manifest;
use crate::name::{Name, path_of, split};
use crate::progress::Progress;
use crate::source::{Identity, mtime_ns};

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
pub(crate) const INSIDE: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// The permissions that the owner needs to write in a directory.
const OWNER: u32 = 0o700;

/// The thing found under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    File { size: u64, mtime_ns: i64 },
    Directory,
    Link { target: Name },
    Other,
}

/// The room of a file system for new files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) device: u64,
    pub(crate) free: ByteCount,
    /// How many files more it can hold, where it counts them.
    pub(crate) files: Option<u64>,
}

/// Whether files can go to `directory`, before anybody is invited; touches nothing. It is created only for a
/// sender that has proved itself.
pub fn check_destination(directory: &Path) -> Result<(), ReceiveError> {
    // Above a relative path stands the empty one: it is where we are.
    let here = |one: &Path| if one.as_os_str().is_empty() { Path::new(".").to_owned() } else { one.to_owned() };
    let there = directory.ancestors().map(here).find_map(|one| Some((rustix::fs::stat(&one).ok()?, one)));
    let Some((stat, there)) = there else { return Ok(()) };
    if kind(&stat) != FileType::Directory {
        return Err(ReceiveError::NoDirectory { directory: directory.to_owned(), there });
    }
    let failed = |error: Errno| ReceiveError::io(&there, error.into());
    rustix::fs::access(&there, Access::WRITE_OK | Access::EXEC_OK).map_err(failed)?;
    let free = rustix::fs::statvfs(&there).map_err(failed)?;
    // Some file systems count neither blocks nor files.
    if free.f_blocks > 0 && free.f_bavail == 0 {
        return Err(ReceiveError::Full(there));
    }
    if free.f_files > 0 && free.f_favail == 0 {
        return Err(ReceiveError::NoInodes { directory: there, needed: 1, free: 0 });
    }
    Ok(())
}

/// The permissions that directories get.
#[derive(Clone, Debug, Default)]
pub(crate) struct DirectoryModes {
    /// As the sender has them.
    offered: BTreeMap<Name, u16>,
    /// Whether they are kept as they are there.
    are_kept: bool,
    /// The times and extended attributes that they get.
    archived: BTreeMap<Name, (i64, Vec<Attribute>)>,
    /// The final permissions of directories that are more open to their owner while files are written into them.
    due: BTreeMap<Name, u32>,
}

impl DirectoryModes {
    pub(crate) fn of(manifest: &Manifest, are_kept: bool, is_archive: bool) -> Self {
        let directories = manifest.entries().iter().filter(|entry| entry.is_directory());
        let offered = directories.clone().map(|entry| (entry.path.clone(), entry.mode)).collect();
        let archived = directories.filter(|_| is_archive);
        let archived = archived.map(|entry| (entry.path.clone(), (entry.mtime_ns, entry.attributes.clone())));
        Self { offered, are_kept, archived: archived.collect(), due: BTreeMap::new() }
    }
}

/// An open directory into which files are received.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
    root: Arc<OwnedFd>,
    // The parent used last: neighbours come one after another.
    last: Option<(Name, Arc<OwnedFd>)>,
    /// A directory on each device that was written to, to sync it by.
    devices: BTreeMap<u64, Arc<OwnedFd>>,
    /// Told of what is copied to other devices.
    pub(crate) progress: Arc<Progress>,
    pub(crate) modes: DirectoryModes,
}

impl Destination {
    /// Opens the directory, and creates it where it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, ReceiveError> {
        std::fs::create_dir_all(path).map_err(|error| ReceiveError::io(path, error))?;
        let root = rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty());
        let root = root.map_err(|error| ReceiveError::io(path, error.into()))?;
        let root = Arc::new(root);
        let (devices, progress, modes) = Default::default();
        Ok(Self { path: path.to_owned(), root, last: None, devices, progress, modes })
    }

    /// Tells `progress` what is copied to other devices.
    pub(crate) fn telling(self, progress: Arc<Progress>) -> Self {
        Self { progress, ..self }
    }

    /// The room for a file of this name.
    pub(crate) fn room(&mut self, name: &[u8]) -> Result<Room, ReceiveError> {
        let mut parent = split(name).0;
        let directory = loop {
            match self.directory(parent, false)? {
                Some(directory) => break directory,
                None => parent = split(parent).0,
            }
        };
        let stat = rustix::fs::fstat(&directory).map_err(|error| self.io(parent, error))?;
        let free = rustix::fs::fstatvfs(&directory).map_err(|error| self.io(parent, error))?;
        Ok(Room {
            device: Identity::of(&stat).device(),
            free: ByteCount::new(free.f_bavail.saturating_mul(free.f_frsize)),
            files: (free.f_files > 0).then_some(free.f_favail),
        })
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
    pub(crate) fn full(&self, name: &[u8]) -> PathBuf {
        self.path.join(path_of(name))
    }

    /// The thing under `name`.
    pub(crate) fn find(&mut self, name: &[u8]) -> Result<Found, ReceiveError> {
        let (parent, last) = split(name);
        let Some(parent) = self.directory(parent, false)? else { return Ok(Found::Nothing) };
        match rustix::fs::statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(match kind(&stat) {
                FileType::RegularFile => Found::File { size: stat.st_size as u64, mtime_ns: mtime_ns(&stat) },
                FileType::Directory => Found::Directory,
                FileType::Symlink => match rustix::fs::readlinkat(&parent, last, Vec::new()) {
                    Ok(target) => Found::Link { target: Name::new(target.into_bytes()) },
                    Err(_) => Found::Other,
                },
                _ => Found::Other,
            }),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(error) => Err(self.io(name, error)),
        }
    }

    /// Whether two names are of one file.
    pub(crate) fn is_same(&mut self, one: &[u8], other: &[u8]) -> bool {
        let mut identity = |name| {
            let (parent, last) = split(name);
            let parent = self.directory(parent, false).ok()??;
            rustix::fs::statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW).ok().map(|stat| Identity::of(&stat))
        };
        identity(one).is_some_and(|one| Some(one) == identity(other))
    }

    /// Opens an existing regular file for reading.
    pub(crate) fn read(&mut self, name: &[u8]) -> Result<File, ReceiveError> {
        let (parent, last) = split(name);
        let parent = self.directory(parent, false)?.ok_or_else(|| self.io(name, Errno::NOENT))?;
        // Something that is no file may have come in its place, and must not hold us.
        let opened = rustix::fs::openat(&parent, last, OFlags::RDONLY | OFlags::NONBLOCK | INSIDE, Mode::empty());
        let file = opened.map(File::from).map_err(|error| self.io(name, error))?;
        match rustix::fs::fstat(&file).map(|stat| kind(&stat)) {
            Ok(FileType::RegularFile) => Ok(file),
            _ => Err(ReceiveError::InTheWay { path: name.into(), there: "something that is no file" }),
        }
    }

    /// Creates the directory `name` and those above it, where they do not exist.
    pub(crate) fn create_directory(&mut self, name: &[u8]) -> Result<(), ReceiveError> {
        self.directory(name, true).map(drop)
    }

    /// Makes the entries of the directory `name` survive a loss of power.
    pub(crate) fn sync_directory(&mut self, name: &[u8]) -> Result<(), ReceiveError> {
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
                Err(error) => return Err(self.io(b"", error)),
            }
        }
        Ok(true)
    }

    /// Opens the directory `name`; `None` where it does not exist and is not to be created.
    pub(crate) fn directory(&mut self, name: &[u8], create: bool) -> Result<Option<Arc<OwnedFd>>, ReceiveError> {
        if name.is_empty() {
            return Ok(Some(self.root.clone()));
        }
        if let Some((last, fd)) = &self.last
            && last.as_bytes() == name
        {
            return Ok(Some(fd.clone()));
        }
        let mut current = self.root.clone();
        let mut end = 0;
        for component in name.split(|byte| *byte == b'/') {
            end += component.len() + usize::from(end > 0);
            let so_far = &name[..end];
            let mut opened = rustix::fs::openat(&current, component, DIRECTORY | INSIDE, Mode::empty());
            if create && matches!(opened, Err(Errno::NOENT)) {
                match rustix::fs::mkdirat(&current, component, self.modes.new_directory(so_far)) {
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
            if create {
                self.modes.admit_owner(&current, so_far).map_err(|error| self.io(so_far, error))?;
            }
        }
        if create {
            let stat = rustix::fs::fstat(&current).map_err(|error| self.io(name, error))?;
            self.devices.entry(Identity::of(&stat).device()).or_insert_with(|| current.clone());
        }
        self.last = Some((name.into(), current.clone()));
        Ok(Some(current))
    }

    /// Gives the directories of the manifest the permissions that they are to have in the end, and their times.
    pub(crate) fn settle_directories(&mut self) -> Result<(), ReceiveError> {
        let mut due = std::mem::take(&mut self.modes.due);
        if self.modes.are_kept {
            due.extend(self.modes.offered.iter().map(|(name, mode)| (name.clone(), u32::from(*mode))));
        }
        let archived = std::mem::take(&mut self.modes.archived);
        let names: BTreeSet<_> = due.keys().chain(archived.keys()).collect();
        // Children before parents: a parent may become unreadable.
        for name in names.into_iter().rev() {
            let directory = match self.directory(name.as_bytes(), false) {
                Ok(Some(directory)) => directory,
                // Obstacles were reported.
                Ok(None) => continue,
                Err(error) if error.refusal().is_some() => continue,
                Err(error) => return Err(error),
            };
            let failed = |error: Errno| ReceiveError::io(&self.full(name.as_bytes()), error.into());
            let (mtime_ns, attributes) =
                archived.get(name).map_or((None, &[][..]), |(time, all)| ((*time != 0).then_some(*time), all));
            // Without the permission to write they could not be set.
            attributes::set(&directory, attributes).map_err(failed)?;
            if let Some(mode) = due.get(name) {
                set_mode(&directory, *mode).map_err(failed)?;
            }
            if let Some(time) = mtime_ns.and_then(time_from) {
                set_time(&directory, time).map_err(|error| ReceiveError::io(&self.full(name.as_bytes()), error))?;
            }
        }
        Ok(())
    }

    pub(crate) fn io(&self, name: &[u8], error: Errno) -> ReceiveError {
        ReceiveError::io(&self.full(name), error.into())
    }
}

impl DirectoryModes {
    /// The mode that a directory is made with: its owner may write into it, whatever it is in the end.
    fn new_directory(&self, name: &[u8]) -> Mode {
        let offered = self.offered.get(&Name::new(name)).copied().unwrap_or(0o777);
        Mode::from_raw_mode((u32::from(offered) & 0o777) | OWNER)
    }

    /// Lets the owner write into a directory of the manifest until all is in place.
    fn admit_owner(&mut self, directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        let name = Name::new(name);
        let Some(&offered) = self.offered.get(&name) else { return Ok(()) };
        let now = mode(&rustix::fs::fstat(directory)?);
        if now & OWNER != OWNER {
            // It was there before: it stays as it was, or becomes as it is at the sender.
            set_mode(directory, now | OWNER)?;
            self.due.entry(name).or_insert(now);
        } else if u32::from(offered) & OWNER != OWNER {
            self.due.entry(name).or_insert(now & u32::from(offered));
        }
        Ok(())
    }
}

/// A time of change, if this system can tell it.
pub(crate) fn time_from(mtime_ns: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(mtime_ns.unsigned_abs());
    match mtime_ns < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(distance),
        false => SystemTime::UNIX_EPOCH.checked_add(distance),
    }
}

/// Sets when a directory was last modified.
fn set_time(directory: &OwnedFd, time: SystemTime) -> std::io::Result<()> {
    match File::from(directory.try_clone()?).set_modified(time) {
        // That of somebody else stays as it is.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        set => set,
    }
}

/// Sets permissions, where the file system knows such.
pub(crate) fn set_mode(file: impl AsFd, wanted: u32) -> Result<(), Errno> {
    if mode(&rustix::fs::fstat(&file)?) == wanted {
        return Ok(());
    }
    tolerated(rustix::fs::fchmod(file, Mode::from_raw_mode(wanted)))
}

/// The owner of a file may set its mode, so a refusal is one of the file system, which has none to set.
pub(crate) fn tolerated(set: Result<(), Errno>) -> Result<(), Errno> {
    match set {
        Err(Errno::PERM | Errno::NOTSUP | Errno::INVAL | Errno::NOSYS) => Ok(()),
        set => set,
    }
}

/// The permissions of a file.
// The type differs from system to system.
#[allow(clippy::useless_conversion)]
pub(crate) fn mode(stat: &Stat) -> u32 {
    u32::from(stat.st_mode) & 0o7777
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(crate) fn obstacle(parent: &OwnedFd, component: &[u8], name: &[u8]) -> ReceiveError {
    let stat = rustix::fs::statat(parent, component, AtFlags::SYMLINK_NOFOLLOW);
    match stat.map(|stat| kind(&stat)) {
        Ok(FileType::Symlink) => ReceiveError::Symlink { path: name.into() },
        _ => ReceiveError::InTheWay { path: name.into(), there: "something that is no directory" },
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
    use crate::part::Received;
    use crate::partial::Partial;

    #[test]
    fn a_link_in_the_directory_leads_nowhere() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
        let mut destination = Destination::open(inside.path()).unwrap();
        let error = destination.create_directory(b"link/x").unwrap_err();
        assert!(matches!(error, ReceiveError::Symlink { ref path } if *path == "link"), "{error}");
        assert!(destination.find(b"link/x").is_err());
        assert!(matches!(destination.find(b"link").unwrap(), Found::Link { .. }));
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
        let part = Received { name: "p", identity, digest: *blake3::hash(b"new").as_bytes(), mode: 0o600 };
        let refused = destination.place(&partial, &part, b"a", false);
        assert!(matches!(refused, Err(ReceiveError::Exists { .. })));
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"old");
        destination.place(&partial, &part, b"a", true).unwrap();
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"new");
        drop(partial);
        assert_eq!(destination.find(PARTIAL.as_bytes()).unwrap(), Found::Nothing);
    }
}
