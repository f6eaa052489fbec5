//! The receiver's writer: puts records in their places, follows with the digest, keeps the
//! journals, and has files that are whole and right moved to their names.

mod complete;
mod durable;
mod run;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use fairpath_core::ByteCount;
use fairpath_quic::Record;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::destination::Destination;
use crate::error::ReceiveError;
use crate::feed::CONFIRM_EVERY;
use crate::manifest::Manifest;
use crate::name::Name;
use crate::offer::SHOWN;
use crate::parcel::{self, Item, PARCEL, ZEROS_MAX};
use crate::partial::{PartNames, Partial};
use crate::placing::{Batch, Placing, Verified, settle};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::proof::{Seal, digest_of_all};
use crate::protocol::{Digest, Proof, ProtocolError};
use crate::ranges::RangeSet;
use crate::skip::{Reason, Skipped};
use crate::source::Identity;
use run::Run;

/// How many unfinished files are kept open; the others are opened again when needed.
const MAX_OPEN: usize = 128;

/// How many files may be begun and not ended, beside those with a journal. A sender reads one file after the
/// other, and what is on its way is some 40 MB in records of 64 kB: 600 files that do not travel in parcels.
const MAX_ACTIVE: usize = 4096;

/// How many separate ranges of all begun files may be held beyond those of the journals. What is on
/// its way is some 600 records.
const MAX_FRAGMENTS: usize = 20_000;

/// A file with less new data than this is not worth a journal before the end.
const JOURNAL_BYTES: u64 = 1 << 20;

/// How often journals are saved and verified files placed, at least.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The outcome of a writer that has everything in place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finished {
    /// One digest over all that is in place.
    pub(crate) all: Digest,
    /// The first files that are in place, as they are named here, with their sizes.
    pub(crate) arrived: Vec<(String, ByteCount)>,
    /// The entries that are not in place, by number.
    pub(crate) left_out: Vec<(u32, Skipped)>,
}

/// A command to the writer.
#[derive(Debug)]
pub(crate) enum Command {
    Record(Record),
    /// Look at the clock.
    Wake,
}

/// An event of the writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first bytes of a stream, up to this count, were taken.
    Taken(u32, u64),
    Done(Vec<(u32, Proof)>),
    Again(u32),
    LeftOut(Vec<(u32, Reason)>),
    Complete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Wanted,
    /// Whole and right, not yet under its name.
    Verified,
    Finished,
    LeftOut,
    NoFile,
}

/// A file that has begun to arrive.
#[derive(Debug, Default)]
struct Active {
    file: Option<File>,
    /// The identity of the file on the disk, once it was opened.
    identity: Option<Identity>,
    ranges: RangeSet,
    hasher: Option<Box<blake3::Hasher>>,
    hashed: u64,
    tag: Option<Digest>,
    /// The size of a stream, once its end was told.
    end: Option<u64>,
    /// How much of a stream the sender knows to be here.
    confirmed: u64,
    unsaved: u64,
    has_journal: bool,
}

/// The state of the writer.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) destination: Destination,
    pub(crate) partial: Partial,
    pub(crate) manifest: Arc<Manifest>,
    how: Placing,
    progress: Arc<Progress>,
    seal: Seal,
    status: Vec<Status>,
    /// The digests of the files that are in their places.
    in_place: BTreeMap<u32, Digest>,
    active: BTreeMap<u32, Active>,
    retried: BTreeSet<u32>,
    skipped: BTreeMap<u32, Reason>,
    /// The sizes of streams that are whole.
    ended: BTreeMap<u32, u64>,
    /// Names that were taken, and those that were free.
    renamed: BTreeMap<u32, Name>,
    /// Files that are not yet in their places, those in the batch included.
    wanted: usize,
    batch: Batch,
    open: usize,
    active_max: usize,
    /// How many ranges the begun files have, and how many they may have.
    fragments: usize,
    fragments_max: usize,
    saved: Instant,
    buffer: Vec<u8>,
}

impl Writer {
    /// A writer of all that the plan leaves to be written.
    pub(crate) fn new(
        destination: Destination,
        partial: Partial,
        manifest: Arc<Manifest>,
        how: Placing,
        progress: Arc<Progress>,
        seal: Seal,
        plan: Plan,
    ) -> Self {
        let status =
            manifest.entries().iter().map(|entry| if entry.is_file() { Status::Wanted } else { Status::NoFile });
        let status: Vec<_> = status.collect();
        let wanted = status.iter().filter(|&&status| status == Status::Wanted).count();
        let mut writer = Self {
            destination,
            partial,
            manifest,
            how,
            progress,
            seal,
            status,
            in_place: BTreeMap::new(),
            wanted,
            active: BTreeMap::new(),
            active_max: MAX_ACTIVE,
            retried: BTreeSet::new(),
            skipped: BTreeMap::new(),
            ended: BTreeMap::new(),
            renamed: BTreeMap::new(),
            batch: Batch::default(),
            open: 0,
            fragments: 0,
            fragments_max: MAX_FRAGMENTS,
            saved: Instant::now(),
            buffer: vec![0; 256 << 10],
        };
        writer.apply(plan);
        writer
    }

    /// Takes over what the plan found.
    fn apply(&mut self, plan: Plan) {
        for (number, digest) in plan.same {
            self.in_place.insert(number, digest);
            self.status[number as usize] = Status::Finished;
            self.wanted -= 1;
            self.progress.add_resumed(self.size(number));
            self.progress.add_file();
        }
        for (number, reason) in plan.left_out {
            self.note_left_out(number, reason, 0);
        }
        for (number, ranges) in plan.have {
            self.grow(number, ranges.total());
            self.progress.add_resumed(ranges.total());
            self.fragments += ranges.len();
            self.active.insert(number, Active { ranges, has_journal: true, ..Active::default() });
        }
        self.fragments_max += self.fragments;
        self.active_max += self.active.len();
    }

    fn size(&self, number: u32) -> u64 {
        self.manifest.entries()[number as usize].size()
    }

    fn names(&self, number: u32) -> PartNames {
        PartNames::of(&self.manifest.entries()[number as usize].path)
    }

    /// Works until everything is in place, something fails, or nobody sends commands any more; in
    /// the last two cases the journals are saved. Answers what was left out. Blocks between its awaits: for a
    /// thread of its own ([`Workers`](crate::workers::Workers)).
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<Finished, ReceiveError> {
        // Where the session has ended, nobody needs to know of events.
        if let Err(error) = self.work(&mut commands, &events).await {
            self.partial.release_reserve();
            // The first error is the cause; what cannot be saved adds nothing.
            let _ = self.place(&events);
            let _ = self.save(1);
            return Err(self.explained(error));
        }
        let _ = events.send(Event::Complete);
        Ok(self.finished())
    }

    /// The outcome.
    fn finished(&self) -> Finished {
        let entries = self.manifest.entries();
        let in_place = self.in_place.iter().map(|(&number, &digest)| (number, &entries[number as usize], digest));
        let arrived = in_place.clone().take(SHOWN).map(|(number, entry, _)| {
            let name = self.renamed.get(&number).unwrap_or(&entry.path);
            (name.to_string(), ByteCount::new(self.ended.get(&number).copied().unwrap_or(entry.size())))
        });
        let skipped = |(&number, &reason): (&u32, &Reason)| {
            (number, Skipped { path: entries[number as usize].path.as_path().to_owned(), reason })
        };
        Finished {
            arrived: arrived.collect(),
            all: digest_of_all(in_place.map(|(_, entry, digest)| (entry, digest))),
            left_out: self.skipped.iter().map(skipped).collect(),
        }
    }

    async fn work(
        &mut self,
        commands: &mut mpsc::Receiver<Command>,
        events: &mpsc::UnboundedSender<Event>,
    ) -> Result<(), ReceiveError> {
        loop {
            if self.batch.is_full() || self.batch.len() == self.wanted {
                self.place(events)?;
            }
            if self.wanted == 0 {
                return self.complete(events);
            }
            match commands.recv().await {
                Some(Command::Record(record)) => self.take(&record, events)?,
                Some(Command::Wake) => {}
                None => {
                    self.place(events)?;
                    self.save(1)?;
                    return Ok(());
                }
            }
            if self.saved.elapsed() >= SAVE_INTERVAL {
                self.place(events)?;
                self.save(JOURNAL_BYTES)?;
                self.confirm_streams(events);
                self.saved = Instant::now();
            }
        }
    }

    /// Only the writer knows how much a full disk lacks.
    fn explained(&self, error: ReceiveError) -> ReceiveError {
        match error {
            ReceiveError::DiskFull { directory, .. } if self.has_no_inodes() => {
                let needed = (self.wanted + self.skipped.len()) as u64;
                ReceiveError::NoInodes { directory, needed, free: 0 }
            }
            ReceiveError::DiskFull { .. } => {
                let progress = self.progress.snapshot();
                let missing = progress.bytes_total.saturating_sub(progress.bytes_done).max(ByteCount::new(1));
                ReceiveError::DiskFull { directory: self.destination.path().to_owned(), missing }
            }
            error => error,
        }
    }

    fn has_no_inodes(&self) -> bool {
        rustix::fs::fstatvfs(&self.partial).is_ok_and(|there| there.f_files > 0 && there.f_favail == 0)
    }

    fn take(&mut self, record: &Record, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        if record.object != PARCEL {
            return match self.is_wanted(record.object)? {
                true => self.arrived(record.object, record.offset, Run::Data(&record.data), events),
                false => Ok(()),
            };
        }
        for item in parcel::items(&record.data) {
            match item? {
                Item::Content { file, tag, data } => {
                    if self.is_wanted(file)? {
                        if data.len() as u64 != self.size(file) {
                            return Err(ProtocolError::Unexpected("a whole file is not as long as it was said").into());
                        }
                        self.begin(file)?.tag = Some(tag);
                        self.arrived(file, 0, Run::Data(data), events)?;
                    }
                }
                Item::Zeros { file, offset, length } => {
                    if length > ZEROS_MAX {
                        return Err(ProtocolError::Unexpected("a run of zeros is too long").into());
                    }
                    if self.is_wanted(file)? {
                        self.arrived(file, offset, Run::Zeros(length), events)?;
                    }
                }
                Item::Tag { file, tag } => {
                    if self.is_wanted(file)? {
                        self.begin(file)?.tag = Some(tag);
                        self.finish_if_complete(file, events)?;
                    }
                }
                Item::Ended { file, size, tag } => {
                    if self.is_wanted(file)? {
                        self.end(file, size, tag)?;
                        self.finish_if_complete(file, events)?;
                    }
                }
                Item::LeftOut { file, reason } => {
                    if self.is_wanted(file)? {
                        self.leave_out(file, reason)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the sender may speak of a file, and there is something to be done: what it says of one
    /// that this end has left out was on its way.
    fn is_wanted(&self, file: u32) -> Result<bool, ReceiveError> {
        match self.status.get(file as usize) {
            Some(Status::Wanted) => Ok(true),
            Some(Status::LeftOut) => Ok(false),
            _ => Err(ProtocolError::Unexpected("data of a file that is not wanted").into()),
        }
    }

    fn begin(&mut self, file: u32) -> Result<&mut Active, ReceiveError> {
        if self.active.len() >= self.active_max && !self.active.contains_key(&file) {
            return Err(ProtocolError::Unexpected("too many files are begun and not ended").into());
        }
        Ok(self.active.entry(file).or_default())
    }

    /// Puts a piece in its place.
    fn arrived(
        &mut self,
        file: u32,
        offset: u64,
        run: Run<'_>,
        events: &mpsc::UnboundedSender<Event>,
    ) -> Result<(), ReceiveError> {
        match self.write(file, offset, run) {
            Err(error) if error.refusal() == Some(Reason::TooLarge) => {
                self.leave_out(file, Reason::TooLarge)?;
                let _ = events.send(Event::LeftOut(vec![(file, Reason::TooLarge)]));
                return Ok(());
            }
            written => written?,
        }
        self.confirm(file, CONFIRM_EVERY, events);
        self.finish_if_complete(file, events)
    }

    fn write(&mut self, number: u32, offset: u64, run: Run<'_>) -> Result<(), ReceiveError> {
        let limit = self.limit(number);
        let end = offset.checked_add(run.length()).filter(|&end| end <= limit);
        let Some(end) = end else {
            return Err(ProtocolError::Unexpected("data behind the end of a file").into());
        };
        let names = self.open(number)?;
        let active = self.active.get_mut(&number).expect("opened");
        let file = active.file.as_ref().expect("opened");
        let put = match run {
            // Nothing is written twice, however often it is told.
            Run::Zeros(_) => {
                let mut gaps = active.ranges.missing(offset, end).into_iter();
                gaps.try_for_each(|(start, end)| Run::Zeros(end - start).put(file, start))
            }
            Run::Data(_) => run.put(file, offset),
        };
        put.map_err(|error| self.partial.io(&names.data, error))?;
        let before = active.ranges.len();
        let new = active.ranges.insert(offset, end);
        active.unsaved += new;
        self.fragments = self.fragments + active.ranges.len() - before;
        if self.fragments > self.fragments_max {
            return Err(ProtocolError::Unexpected("the data come in too many separate pieces").into());
        }
        self.grow(number, new);
        self.progress.add_done(new);
        self.follow(number)
    }

    /// Hashes what has become contiguous, as it is read back from the file that will be placed.
    fn follow(&mut self, number: u32) -> Result<(), ReceiveError> {
        let Some(active) = self.active.get_mut(&number) else { return Ok(()) };
        let Some(file) = &active.file else { return Ok(()) };
        let prefix = active.ranges.prefix();
        while active.hashed < prefix {
            let length = (prefix - active.hashed).min(self.buffer.len() as u64) as usize;
            let piece = &mut self.buffer[..length];
            file.read_exact_at(piece, active.hashed).map_err(|error| {
                self.partial.io(&PartNames::of(&self.manifest.entries()[number as usize].path).data, error)
            })?;
            active.hasher.get_or_insert_default().update(piece);
            active.hashed += length as u64;
            self.progress.add_examined(length as u64);
        }
        Ok(())
    }

    /// Makes sure that the file's data are open, and that it is the file that it was.
    fn open(&mut self, number: u32) -> Result<PartNames, ReceiveError> {
        let names = self.names(number);
        self.begin(number)?;
        if self.active[&number].file.is_some() {
            return Ok(names);
        }
        if self.open >= MAX_OPEN {
            for active in self.active.values_mut() {
                active.file = None;
            }
            self.open = 0;
        }
        let active = self.active.get_mut(&number).expect("it was begun");
        let file = match active.identity {
            Some(identity) => self.partial.reopen(&names.data, identity)?,
            None if active.has_journal => {
                self.partial.open_existing(&names.data).map_err(|error| self.partial.io(&names.data, error))?
            }
            None => self.partial.create(&names.data)?,
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| self.partial.io(&names.data, error.into()))?;
        active.identity = Some(Identity::of(&stat));
        active.file = Some(file);
        self.open += 1;
        Ok(names)
    }

    fn finish_if_complete(&mut self, number: u32, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        let size = self.size(number);
        let known = |active: &Active| active.tag.map(|_| active.end.unwrap_or(size));
        let size =
            self.active.get(&number).and_then(|active| known(active).filter(|&size| active.ranges.is_complete(size)));
        let Some(size) = size else { return Ok(()) };
        let names = self.open(number)?;
        self.follow(number)?;
        let active = self.forget(number).expect("it is complete");
        let (file, identity) = (active.file.expect("opened"), active.identity.expect("opened"));
        let digest = *active.hasher.unwrap_or_default().finalize().as_bytes();
        if active.tag != Some(self.seal.tag(number, &digest)) {
            return self.damaged(number, (&names, size), events);
        }
        if active.end.is_some() {
            self.ended.insert(number, size);
            self.progress.close();
        }
        settle(&file, &self.manifest.entries()[number as usize], size, active.has_journal)
            .map_err(|error| self.partial.io(&names.data, error))?;
        self.status[number as usize] = Status::Verified;
        self.batch.push(Verified { number, digest, identity, size, has_journal: active.has_journal }, file);
        Ok(())
    }

    /// The content is not what was sent: all of it again, but only once. A stream cannot be sent again.
    fn damaged(
        &mut self,
        number: u32,
        (names, size): (&PartNames, u64),
        events: &mpsc::UnboundedSender<Event>,
    ) -> Result<(), ReceiveError> {
        self.partial.discard(names)?;
        let event = if !self.manifest.entries()[number as usize].is_stream() && self.retried.insert(number) {
            self.progress.take_back(size);
            Event::Again(number)
        } else {
            self.note_left_out(number, Reason::Damaged, size);
            Event::LeftOut(vec![(number, Reason::Damaged)])
        };
        let _ = events.send(event);
        Ok(())
    }

    /// Gives a begun file up, whatever of it has arrived.
    fn leave_out(&mut self, number: u32, reason: Reason) -> Result<(), ReceiveError> {
        let done = match self.forget(number) {
            Some(active) => {
                self.partial.discard(&self.names(number))?;
                active.ranges.total()
            }
            None => 0,
        };
        self.note_left_out(number, reason, done);
        Ok(())
    }

    /// Notes an entry that does not come into its place; `done` bytes of it had counted.
    fn note_left_out(&mut self, number: u32, reason: Reason, done: u64) {
        self.skipped.insert(number, reason);
        if self.status[number as usize] != Status::NoFile {
            self.status[number as usize] = Status::LeftOut;
            self.wanted -= 1;
            let is_stream = self.manifest.entries()[number as usize].is_stream();
            if is_stream && !self.ended.contains_key(&number) {
                self.progress.close();
            }
            self.progress.leave_out(if is_stream { done } else { self.size(number) }, done);
        }
    }

    fn forget(&mut self, number: u32) -> Option<Active> {
        let active = self.active.remove(&number)?;
        self.open -= usize::from(active.file.is_some());
        self.fragments -= active.ranges.len();
        Some(active)
    }
}
