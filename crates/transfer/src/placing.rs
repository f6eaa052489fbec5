//! From a verified file to its place: made durable, many at a time, then moved to its name.
//!
//! To sync every small file by itself costs a commit of the file system's journal and a flush of the
//! disk each. So verified files are gathered, and one `syncfs` makes all of them durable before the
//! first gets its name: whatever stands under its final name has its content on the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use crate::destination::{Destination, sync_device};
use crate::error::ReceiveError;
use crate::manifest::Entry;
use crate::part::{Part, PartNames};
use crate::partial::Partial;
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
    /// Moves it to its name, if it still is the file that was verified.
    pub(crate) fn place(
        &self,
        destination: &mut Destination,
        partial: &Partial,
        path: &str,
        force: bool,
    ) -> Result<(), ReceiveError> {
        let names = PartNames::of(path);
        partial.check(&names.data, self.identity)?;
        let part = Part { name: &names.data, identity: self.identity, digest: self.digest };
        destination.place(partial, &part, path, force)?;
        if self.has_journal { partial.remove(&names.journal) } else { Ok(()) }
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
    /// Up to so many files are synced one by one: a sync of the whole device may also have to write
    /// what other programs have left there.
    pub(crate) const ONE_BY_ONE: usize = 8;

    /// A batch of so many files is placed without waiting for more.
    const FILES_MAX: usize = 4096;

    /// A batch of so many bytes is placed without waiting for more.
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

/// Gives a whole file its length, mode and time. One that `was_there` before may be longer than it is to be.
pub(crate) fn settle(file: &File, entry: &Entry, was_there: bool) -> io::Result<()> {
    let Entry::File { size, mtime_ns, executable, .. } = entry else { return Ok(()) };
    if was_there {
        file.set_len(*size)?;
    }
    if *executable {
        let mode = file.metadata()?.permissions().mode() & 0o666;
        // Who may read may execute, as `chmod +x` does.
        file.set_permissions(PermissionsExt::from_mode(mode | (mode & 0o444) >> 2))?;
    }
    match time_from(*mtime_ns) {
        Some(time) => file.set_modified(time),
        None => Ok(()),
    }
}

fn time_from(mtime_ns: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(mtime_ns.unsigned_abs());
    match mtime_ns < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(distance),
        false => SystemTime::UNIX_EPOCH.checked_add(distance),
    }
}
