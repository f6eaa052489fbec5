//! From a verified file to its place: made durable, many at a time, then moved to its name.
//!
//! To sync every small file by itself costs a commit of the file system's journal and a flush of the
//! disk each. So verified files are gathered, and one `syncfs` makes all of them durable before the
//! first gets its name: whatever stands under its final name has its content on the disk.

use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::attributes;
use crate::destination::{Destination, INSIDE, set_mode, sync_device, time_from};
use crate::entry::Entry;
use crate::error::ReceiveError;
use crate::name::{Name, split};
use crate::part::Received;
use crate::partial::{PartNames, Partial};
use crate::plan::{Existing, digest_of};
use crate::protocol::Digest;
use crate::source::Identity;

/// A whole file whose content is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verified {
    pub(crate) number: u32,
    pub(crate) digest: Digest,
    pub(crate) identity: Identity,
    pub(crate) size: u64,
    pub(crate) has_journal: bool,
}

impl Verified {
    /// Moves the file of this entry to its name, or to another one that is free where that is wanted; answers that.
    pub(crate) fn place(
        &self,
        destination: &mut Destination,
        partial: &Partial,
        entry: &Entry,
        how: Placing,
    ) -> Result<Option<Name>, ReceiveError> {
        let names = PartNames::of(&entry.path);
        partial.check(&names.data, self.identity)?;
        let offered = u32::from(entry.mode);
        let mode = if how.keeps_modes { offered } else { partial.masked(offered) };
        let part = Received { name: &names.data, identity: self.identity, digest: self.digest, mode };
        let force = how.existing.replaces();
        let other = match destination.place(partial, &part, entry.path.as_bytes(), force) {
            Err(ReceiveError::Exists { .. }) if how.existing == Existing::Rename => {
                Some(free_name(&entry.path, |name| destination.place(partial, &part, name.as_bytes(), false))?)
            }
            placed => placed.map(|()| None)?,
        };
        if self.has_journal {
            partial.remove(&names.journal)?;
        }
        Ok(other)
    }
}

/// How files get their places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placing {
    pub(crate) existing: Existing,
    /// Whether permissions are those of the sender.
    pub(crate) keeps_modes: bool,
}

/// Tries names beside one that is taken, in turn, until one is free.
pub(crate) fn free_name(
    taken: &Name,
    mut attempt: impl FnMut(&Name) -> Result<(), ReceiveError>,
) -> Result<Name, ReceiveError> {
    let mut number = 1;
    loop {
        let name = beside(taken, number);
        match attempt(&name) {
            Ok(()) => return Ok(name),
            Err(ReceiveError::Exists { .. }) if number < NUMBERS => number += 1,
            Err(error) => return Err(error),
        }
    }
}

/// How many names beside one that is taken are tried.
const NUMBERS: u32 = 10_000;

/// `photo (2).jpg` for `photo.jpg`.
fn beside(name: &Name, number: u32) -> Name {
    let bytes = name.as_bytes();
    let last = bytes.len() - split(bytes).1.len();
    let dot = bytes.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > last).unwrap_or(bytes.len());
    Name::new([&bytes[..dot], format!(" ({number})").as_bytes(), &bytes[dot..]].concat())
}

impl Destination {
    /// Moves a finished file to its name. Without `force` nothing that is there is replaced.
    pub(crate) fn place(
        &mut self,
        partial: &Partial,
        part: &Received<'_>,
        name: &[u8],
        force: bool,
    ) -> Result<(), ReceiveError> {
        let (parent, last) = split(name);
        let parent = self.directory(parent, true)?.ok_or_else(|| self.io(name, Errno::NOENT))?;
        partial.set_mode(part.name, part.mode)?;
        match rename(partial, part.name.as_bytes(), &parent, last, force) {
            Ok(()) => Ok(()),
            // Another file system is mounted on the way.
            Err(Errno::XDEV) => {
                partial.set_private(part.name)?;
                self.copy(partial, part, (&parent, last), name, force)
            }
            Err(error) => Err(self.misplaced(name, error)),
        }
    }

    /// Brings a finished file to another device: a copy there under a hidden name, which gets its
    /// final name when it is durable and has the same digest.
    fn copy(
        &self,
        partial: &Partial,
        part: &Received<'_>,
        (parent, last): (&OwnedFd, &[u8]),
        name: &[u8],
        force: bool,
    ) -> Result<(), ReceiveError> {
        let hidden = format!(".fairpath-{}", part.name);
        let failed = |error: Errno| self.io(name, error);
        let original = partial.reopen(part.name, part.identity)?;
        // An earlier attempt may have left one.
        match rustix::fs::unlinkat(parent, &hidden, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | INSIDE;
        let fd = rustix::fs::openat(parent, &hidden, flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
        let fill = || {
            let mut copy = File::from(fd);
            io::copy(&mut self.progress.counting(&original), &mut copy)?;
            let metadata = original.metadata()?;
            copy.set_modified(metadata.modified()?)?;
            set_mode(&copy, part.mode)?;
            copy.sync_all()?;
            copy.rewind()?;
            digest_of(self.progress.counting(copy))
        };
        let placed = match fill().map_err(|error| ReceiveError::io(&self.full(name), error)) {
            Ok(digest) if digest == part.digest => {
                rename(parent, hidden.as_bytes(), parent, last, force).map_err(|error| self.misplaced(name, error))
            }
            Ok(_) => Err(ReceiveError::Mismatch { path: name.into() }),
            Err(error) => Err(error),
        };
        match placed {
            Ok(()) => partial.remove(part.name),
            Err(error) => {
                // The error is the cause; a copy that stays behind is removed by the next attempt.
                let _ = rustix::fs::unlinkat(parent, &hidden, AtFlags::empty());
                Err(error)
            }
        }
    }

    /// Gives a file that is in place another name, unless it has it. Where the file system knows no hard links, or is
    /// another one, the name gets a copy.
    pub(crate) fn hard_link(&mut self, file: &Name, name: &Name, force: bool) -> Result<(), ReceiveError> {
        if self.is_same(file.as_bytes(), name.as_bytes()) {
            return Ok(());
        }
        let failed = |this: &Self, error: Errno| this.misplaced(name.as_bytes(), error);
        let (above, first) = split(file.as_bytes());
        let above = self.directory(above, false)?.ok_or_else(|| failed(self, Errno::NOENT))?;
        let (parent, last) = split(name.as_bytes());
        let parent = self.directory(parent, true)?.ok_or_else(|| failed(self, Errno::NOENT))?;
        let hidden = format!(".fairpath-{}", PartNames::of(name).data);
        // An earlier attempt may have left one.
        let _ = rustix::fs::unlinkat(&parent, &hidden, AtFlags::empty());
        match rustix::fs::linkat(&above, first, &parent, &hidden, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::XDEV | Errno::PERM | Errno::MLINK | Errno::NOTSUP | Errno::NOSYS) => {
                let original = self.read(file.as_bytes())?;
                copy_to(&original, &parent, &hidden)
                    .map_err(|error| ReceiveError::io(&self.full(name.as_bytes()), error))?;
            }
            Err(error) => return Err(failed(self, error)),
        }
        rename(&parent, hidden.as_bytes(), &parent, last, force).map_err(|error| {
            // The error is the cause.
            let _ = rustix::fs::unlinkat(&parent, &hidden, AtFlags::empty());
            failed(self, error)
        })
    }

    /// Makes a symbolic link, unless the same one is there. What it leads to is nobody's business here.
    pub(crate) fn link(&mut self, name: &Name, target: &Name, force: bool) -> Result<(), ReceiveError> {
        let (parent, last) = split(name.as_bytes());
        let failed = |this: &Self, error: Errno| this.misplaced(name.as_bytes(), error);
        let parent = self.directory(parent, true)?.ok_or_else(|| failed(self, Errno::NOENT))?;
        match rustix::fs::symlinkat(target.as_bytes(), &parent, last) {
            Err(Errno::EXIST) => {}
            made => return made.map_err(|error| failed(self, error)),
        }
        let there = rustix::fs::readlinkat(&parent, last, Vec::new());
        if there.is_ok_and(|there| there.as_bytes() == target.as_bytes()) {
            return Ok(());
        }
        if !force {
            return Err(failed(self, Errno::EXIST));
        }
        let hidden = format!(".fairpath-{}", PartNames::of(name).data);
        let _ = rustix::fs::unlinkat(&parent, &hidden, AtFlags::empty());
        rustix::fs::symlinkat(target.as_bytes(), &parent, &hidden).map_err(|error| failed(self, error))?;
        rename(&parent, hidden.as_bytes(), &parent, last, true).map_err(|error| {
            // The error is the cause.
            let _ = rustix::fs::unlinkat(&parent, &hidden, AtFlags::empty());
            failed(self, error)
        })
    }

    fn misplaced(&self, name: &[u8], error: Errno) -> ReceiveError {
        match error {
            Errno::EXIST => ReceiveError::Exists { path: name.into() },
            Errno::ISDIR => ReceiveError::InTheWay { path: name.into(), there: "a directory" },
            error => self.io(name, error),
        }
    }
}

/// Copies a file with its permissions and its time.
fn copy_to(mut original: &File, parent: &OwnedFd, name: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | INSIDE;
    let mut copy = File::from(rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600))?);
    io::copy(&mut original, &mut copy)?;
    let metadata = original.metadata()?;
    copy.set_modified(metadata.modified()?)?;
    copy.set_permissions(metadata.permissions())?;
    copy.sync_all()
}

fn rename(from: impl AsFd, old: &[u8], to: &OwnedFd, new: &[u8], force: bool) -> Result<(), Errno> {
    if force {
        return rustix::fs::renameat(from, old, to, new);
    }
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(&from, old, to, new, rustix::fs::RenameFlags::NOREPLACE) {
        // Some file systems do not know the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        result => return result,
    }
    match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from, old, to, new),
        Err(error) => Err(error),
    }
}

/// Verified files that wait to be made durable together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    verified: Vec<Verified>,
    /// The first of them, still open.
    files: Vec<File>,
    bytes: u64,
}

impl Batch {
    /// Limit on the files that are synced one by one: a sync of the whole device may also have to
    /// write the data of other programs.
    pub(crate) const ONE_BY_ONE: usize = 8;

    /// Files in a batch that is placed without waiting for more.
    const FILES_MAX: usize = 4096;

    /// Bytes in a batch that is placed without waiting for more.
    const BYTES_MAX: u64 = 64 << 20;

    pub(crate) fn len(&self) -> usize {
        self.verified.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.verified.len() >= Self::FILES_MAX || self.bytes >= Self::BYTES_MAX
    }

    pub(crate) fn push(&mut self, verified: Verified, file: File) {
        self.bytes += verified.size;
        self.verified.push(verified);
        if self.files.len() < Self::ONE_BY_ONE {
            self.files.push(file);
        }
    }

    /// Makes the content of all files durable.
    pub(crate) fn make_durable(
        self,
        partial: &Partial,
        name_of: impl Fn(u32) -> String,
    ) -> Result<Vec<Verified>, ReceiveError> {
        let failed = |one: &Verified, error| partial.io(&name_of(one.number), error);
        let is_done = self.verified.len() > Self::ONE_BY_ONE
            && sync_device(partial).map_err(|error| partial.io("", error.into()))?;
        if !is_done {
            let mut files = self.files.into_iter();
            for one in &self.verified {
                let file = match files.next() {
                    Some(file) => file,
                    None => partial.reopen(&name_of(one.number), one.identity)?,
                };
                file.sync_all().map_err(|error| failed(one, error))?;
            }
        }
        Ok(self.verified)
    }
}

/// Gives a whole file its length and its time. One that `was_there` before may be longer than it is to be. A stream
/// was never modified at the sender.
pub(crate) fn settle(file: &File, entry: &Entry, size: u64, was_there: bool) -> io::Result<()> {
    if was_there {
        file.set_len(size)?;
    }
    attributes::set(file, &entry.attributes)?;
    if entry.is_stream() {
        return Ok(());
    }
    match time_from(entry.mtime_ns) {
        Some(time) => file.set_modified(time),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_beside_one_that_is_taken_keeps_its_ending() {
        for (name, other) in [
            ("d.x/photo.jpg", "d.x/photo (2).jpg"),
            ("d.x/photo", "d.x/photo (2)"),
            (".profile", ".profile (2)"),
            ("a.tar.gz", "a.tar (2).gz"),
        ] {
            assert_eq!(beside(&name.into(), 2), other);
        }
    }
}
