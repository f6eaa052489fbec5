//! The receiver's writing thread: puts records in their places, follows with the digest, keeps the
//! journals, and moves a file to its name once its digest is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fairpath_quic::lanes::Record;
use tokio::sync::mpsc;

use crate::destination::{Destination, Partial};
use crate::error::ReceiveError;
use crate::manifest::{Entry, Manifest};
use crate::part::{self, PartNames};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::protocol::{Digest, ProtocolError};
use crate::ranges::RangeSet;

/// How many unfinished files are kept open; the others are opened again when needed.
const MAX_OPEN: usize = 128;

/// A file with less new data than this is not worth a journal before the end.
const JOURNAL_BYTES: u64 = 1 << 20;

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Command {
    Record(Record),
    Digest {
        file: u32,
        digest: Digest,
    },
    /// Save the journals: a second has passed.
    Save,
}

/// What the thread tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Done(u32),
    Again(u32),
    Complete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Wanted,
    Finished,
    NoFile,
}

#[derive(Debug, Default)]
struct Active {
    file: Option<File>,
    ranges: RangeSet,
    hasher: Box<blake3::Hasher>,
    hashed: u64,
    digest: Option<Digest>,
    unsaved: u64,
}

/// The state of the thread.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) destination: Destination,
    pub(crate) partial: Partial,
    pub(crate) manifest: Arc<Manifest>,
    pub(crate) force: bool,
    pub(crate) progress: Arc<Progress>,
    status: Vec<Status>,
    active: BTreeMap<u32, Active>,
    retried: BTreeSet<u32>,
    wanted: usize,
    open: usize,
    buffer: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(
        destination: Destination,
        partial: Partial,
        manifest: Arc<Manifest>,
        force: bool,
        progress: Arc<Progress>,
    ) -> Self {
        let status = manifest.entries().iter().map(|entry| match entry {
            Entry::File { .. } => Status::Wanted,
            Entry::Directory { .. } => Status::NoFile,
        });
        let status: Vec<_> = status.collect();
        let wanted = status.iter().filter(|&&status| status == Status::Wanted).count();
        let (active, retried) = (BTreeMap::new(), BTreeSet::new());
        let buffer = vec![0; 256 << 10];
        Self { destination, partial, manifest, force, progress, status, active, retried, wanted, open: 0, buffer }
    }

    /// Takes over what the plan found.
    pub(crate) fn apply(&mut self, plan: Plan) {
        for number in plan.skip {
            self.status[number as usize] = Status::Finished;
            self.wanted -= 1;
            self.progress.add_resumed(self.manifest.entries()[number as usize].size());
            self.progress.add_file();
        }
        for (number, ranges) in plan.have {
            self.progress.add_resumed(ranges.total());
            self.active.insert(number, Active { ranges, ..Active::default() });
        }
    }

    /// Works until everything is in place, something fails, or nobody sends commands any more; in
    /// the last two cases the journals are saved.
    pub(crate) fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<(), ReceiveError> {
        while self.wanted > 0 {
            let Some(command) = commands.blocking_recv() else { return self.save(1) };
            if let Err(error) = self.obey(command, &events) {
                // The first error is the cause; a journal that cannot be saved adds nothing.
                let _ = self.save(1);
                return Err(error);
            }
        }
        self.complete()?;
        // Where the session has ended, nobody needs to know.
        let _ = events.send(Event::Complete);
        Ok(())
    }

    fn obey(&mut self, command: Command, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        let file = match command {
            Command::Save => return self.save(JOURNAL_BYTES),
            Command::Record(record) => {
                let file = record.object;
                self.check_wanted(file)?;
                self.write(record)?;
                file
            }
            Command::Digest { file, digest } => {
                self.check_wanted(file)?;
                self.active.entry(file).or_default().digest = Some(digest);
                file
            }
        };
        if let Some(event) = self.finish_if_complete(file)? {
            let _ = events.send(event);
        }
        Ok(())
    }

    fn check_wanted(&self, file: u32) -> Result<(), ReceiveError> {
        match self.status.get(file as usize) {
            Some(Status::Wanted) => Ok(()),
            _ => Err(ProtocolError::Unexpected("data of a file that is not wanted").into()),
        }
    }

    fn write(&mut self, record: Record) -> Result<(), ReceiveError> {
        let size = self.manifest.entries()[record.object as usize].size();
        let end = record.offset.checked_add(record.data.len() as u64).filter(|&end| end <= size);
        let Some(end) = end else {
            return Err(ProtocolError::Unexpected("data behind the end of a file").into());
        };
        let names = self.open(record.object)?;
        let active = self.active.get_mut(&record.object).expect("opened");
        let file = active.file.as_ref().expect("opened");
        file.write_all_at(&record.data, record.offset).map_err(|error| self.partial.io(&names.data, error))?;
        let new = active.ranges.insert(record.offset, end);
        active.unsaved += new;
        self.progress.add_done(new);
        self.follow(record.object)
    }

    /// Hashes what has become contiguous.
    fn follow(&mut self, number: u32) -> Result<(), ReceiveError> {
        let Some(active) = self.active.get_mut(&number) else { return Ok(()) };
        let Some(file) = &active.file else { return Ok(()) };
        let prefix = active.ranges.prefix();
        while active.hashed < prefix {
            let length = (prefix - active.hashed).min(self.buffer.len() as u64) as usize;
            let piece = &mut self.buffer[..length];
            file.read_exact_at(piece, active.hashed).map_err(|error| {
                self.partial.io(&PartNames::of(self.manifest.entries()[number as usize].path()).data, error)
            })?;
            active.hasher.update(piece);
            active.hashed += length as u64;
        }
        Ok(())
    }

    /// Makes sure that the file's data are open.
    fn open(&mut self, number: u32) -> Result<PartNames, ReceiveError> {
        let names = PartNames::of(self.manifest.entries()[number as usize].path());
        let is_open = self.active.get(&number).is_some_and(|active| active.file.is_some());
        if is_open {
            return Ok(names);
        }
        if self.open >= MAX_OPEN {
            for active in self.active.values_mut() {
                active.file = None;
            }
            self.open = 0;
        }
        let file = self.partial.open_or_create(&names.data)?;
        self.active.entry(number).or_default().file = Some(file);
        self.open += 1;
        Ok(names)
    }

    fn finish_if_complete(&mut self, number: u32) -> Result<Option<Event>, ReceiveError> {
        let size = self.manifest.entries()[number as usize].size();
        let is_complete =
            self.active.get(&number).is_some_and(|active| active.digest.is_some() && active.ranges.is_complete(size));
        if !is_complete {
            return Ok(None);
        }
        let names = self.open(number)?;
        self.follow(number)?;
        let active = self.active.remove(&number).expect("it is complete");
        self.open -= 1;
        let file = active.file.expect("opened");
        if active.digest != Some(*active.hasher.finalize().as_bytes()) {
            return self.discard(number, &names, size).map(Some);
        }
        self.place(number, &names, &file)?;
        self.status[number as usize] = Status::Finished;
        self.wanted -= 1;
        self.progress.add_file();
        Ok(Some(Event::Done(number)))
    }

    /// The content is not what was sent: all of it again, but only once.
    fn discard(&mut self, number: u32, names: &PartNames, size: u64) -> Result<Event, ReceiveError> {
        names.discard(&self.partial)?;
        if !self.retried.insert(number) {
            let path = self.manifest.entries()[number as usize].path().to_owned();
            return Err(ReceiveError::Mismatch { path });
        }
        self.progress.take_back(size);
        Ok(Event::Again(number))
    }

    fn place(&mut self, number: u32, names: &PartNames, file: &File) -> Result<(), ReceiveError> {
        let manifest = self.manifest.clone();
        let Entry::File { path, size, mtime_ns, executable } = &manifest.entries()[number as usize] else {
            return Ok(());
        };
        let settle = || {
            // A longer file of an earlier attempt may have been there.
            file.set_len(*size)?;
            let mode = file.metadata()?.permissions().mode() & 0o666;
            // Who may read may execute, as `chmod +x` does.
            let mode = if *executable { mode | (mode & 0o444) >> 2 } else { mode };
            file.set_permissions(PermissionsExt::from_mode(mode))?;
            if let Some(time) = time_from(*mtime_ns) {
                file.set_modified(time)?;
            }
            file.sync_all()
        };
        settle().map_err(|error| self.partial.io(&names.data, error))?;
        self.destination.place(&self.partial, &names.data, path, self.force)?;
        self.partial.remove(&names.journal)
    }

    /// Saves the journals of the files with at least `threshold` new bytes.
    fn save(&mut self, threshold: u64) -> Result<(), ReceiveError> {
        for (&number, active) in &mut self.active {
            if active.unsaved < threshold {
                continue;
            }
            let entry = &self.manifest.entries()[number as usize];
            let names = PartNames::of(entry.path());
            let synced = match &active.file {
                Some(file) => file.sync_data(),
                None => self.partial.open_existing(&names.data).and_then(|file| file.sync_data()),
            };
            synced.map_err(|error| self.partial.io(&names.data, error))?;
            part::save(&self.partial, entry, &active.ranges)?;
            active.unsaved = 0;
        }
        Ok(())
    }

    /// Every file is in place: the empty directories, and the way out.
    fn complete(mut self) -> Result<(), ReceiveError> {
        let manifest = self.manifest.clone();
        let mut parents = BTreeSet::from([""]);
        for entry in manifest.entries() {
            let path = entry.path();
            if let Entry::Directory { path } = entry {
                self.destination.create_directory(path)?;
            }
            parents.extend(path.match_indices('/').map(|(at, _)| &path[..at]));
        }
        for parent in parents {
            self.destination.sync_directory(parent)?;
        }
        Ok(())
    }
}

fn time_from(mtime_ns: i64) -> Option<SystemTime> {
    let distance = Duration::from_nanos(mtime_ns.unsigned_abs());
    match mtime_ns < 0 {
        true => SystemTime::UNIX_EPOCH.checked_sub(distance),
        false => SystemTime::UNIX_EPOCH.checked_add(distance),
    }
}
