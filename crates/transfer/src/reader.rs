//! The sender's reader: reads files in order, hashes all of them, and hands on what the receiver does not
//! have. A file that cannot be sent is left out; none ends the others' transfer.

use std::fs::File;
use std::io::Read;

use bytes::Bytes;
use fairpath_quic::{RECORD, Record};
use rustix::fs::Stat;
use tokio::sync::mpsc;

use crate::collect::Selection;
use crate::entry::Entry;
use crate::feed::Window;
use crate::parcel::{Item, Packer, SMALL, ZEROS_MAX};
use crate::progress::Progress;
use crate::proof::Witness;
use crate::protocol::Digest;
use crate::ranges::RangeSet;
use crate::skip::Reason;
use crate::source::{Opener, mtime_ns};

/// A file to read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) file: u32,
    /// The ranges that the receiver has.
    pub(crate) have: RangeSet,
    /// Whether its data are to be sent, or only its digest is wanted.
    pub(crate) with_data: bool,
}

/// The result of reading.
#[derive(Debug)]
pub(crate) enum Piece {
    /// A record to send, and how many bytes of files are in it.
    Record(Record, u64),
    /// The tag that was asked for before the plan; what cannot be read is left out.
    Compared { file: u32, tag: Result<Digest, Reason> },
    /// A file is left out.
    LeftOut { file: u32, reason: Reason },
}

/// Nobody wants the pieces any more.
struct Unwanted;

/// Why a file was not read to its end.
enum Stop {
    Unwanted,
    LeftOut(Reason),
}

impl From<Unwanted> for Stop {
    fn from(_: Unwanted) -> Self {
        Self::Unwanted
    }
}

/// Reads the jobs' files until there are no more jobs, or nobody wants the pieces. Blocks between its awaits: for
/// a thread of its own ([`Workers`](crate::workers::Workers)).
pub(crate) async fn run(
    (selection, window): (&Selection, Option<&Window>),
    progress: &Progress,
    witness: Witness<'_>,
    jobs: mpsc::UnboundedReceiver<Job>,
    pieces: &mpsc::Sender<Piece>,
) {
    let opener = Opener::new(&selection.bases, selection.links);
    let buffer = Vec::with_capacity(SMALL as usize);
    let mut reader =
        Reader { selection, window, progress, witness, opener, pieces, packer: Packer::default(), packed: 0, buffer };
    // It ends early only where nobody listens.
    let _ = reader.work(jobs).await;
}

struct Reader<'a> {
    selection: &'a Selection,
    /// Where the receiver passes on in order what it gets: how far that has come.
    window: Option<&'a Window>,
    progress: &'a Progress,
    /// It is told the digest of every file that was read to its end.
    witness: Witness<'a>,
    opener: Opener<'a>,
    pieces: &'a mpsc::Sender<Piece>,
    packer: Packer,
    /// How many bytes of files are in the parcel.
    packed: u64,
    buffer: Vec<u8>,
}

impl Reader<'_> {
    async fn work(&mut self, mut jobs: mpsc::UnboundedReceiver<Job>) -> Result<(), Unwanted> {
        loop {
            let job = match jobs.try_recv() {
                Ok(job) => job,
                // Whatever is packed must not wait for a job that may never come.
                Err(_) => {
                    self.flush().await?;
                    let Some(job) = jobs.recv().await else { return Ok(()) };
                    job
                }
            };
            let size = self.entry(&job).size();
            let done = match job.with_data {
                _ if self.entry(&job).is_stream() => self.stream(&job).await,
                false => self.compare(&job).await,
                true if size <= SMALL => self.small(&job).await,
                true => self.large(&job).await,
            };
            match done {
                Ok(()) => {}
                Err(Stop::Unwanted) => return Err(Unwanted),
                Err(Stop::LeftOut(reason)) => self.leave_out(&job, reason).await?,
            }
        }
    }

    fn entry(&self, job: &Job) -> &Entry {
        &self.selection.manifest.entries()[job.file as usize]
    }

    async fn send(&self, piece: Piece) -> Result<(), Unwanted> {
        self.pieces.send(piece).await.map_err(|_| Unwanted)
    }

    async fn pack(&mut self, item: &Item<'_>) -> Result<(), Unwanted> {
        self.packed += match item {
            Item::Content { data, .. } => data.len() as u64,
            Item::Zeros { length, .. } => *length,
            Item::Tag { .. } | Item::Ended { .. } | Item::LeftOut { .. } => 0,
        };
        let parcel = self.packer.pack(item);
        self.post(parcel).await
    }

    async fn flush(&mut self) -> Result<(), Unwanted> {
        let parcel = self.packer.take();
        self.post(parcel).await
    }

    async fn post(&mut self, parcel: Option<Record>) -> Result<(), Unwanted> {
        let Some(parcel) = parcel else { return Ok(()) };
        let bytes = std::mem::take(&mut self.packed);
        self.send(Piece::Record(parcel, bytes)).await
    }

    async fn leave_out(&mut self, job: &Job, reason: Reason) -> Result<(), Unwanted> {
        let file = job.file;
        if !job.with_data {
            return self.send(Piece::Compared { file, tag: Err(reason) }).await;
        }
        // The sender must know before the receiver can answer.
        self.send(Piece::LeftOut { file, reason }).await?;
        self.pack(&Item::LeftOut { file, reason }).await
    }

    /// Reads a file only for its digest.
    async fn compare(&mut self, job: &Job) -> Result<(), Stop> {
        let tag = self.read(job).await?;
        Ok(self.send(Piece::Compared { file: job.file, tag: Ok(tag) }).await?)
    }

    /// Reads a file that fits into a parcel.
    async fn small(&mut self, job: &Job) -> Result<(), Stop> {
        let file = self.open(job)?;
        let size = self.entry(job).size();
        let mut data = std::mem::take(&mut self.buffer);
        data.clear();
        let checked = match (&file).take(size).read_to_end(&mut data) {
            // An empty file has nothing that could have changed since it was opened.
            Ok(0) if size == 0 => Ok(()),
            Ok(length) => self.check_unchanged(job, &file, length as u64),
            Err(_) => Err(Stop::LeftOut(Reason::ReadFailed)),
        };
        let packed = match checked {
            Ok(()) => {
                let tag = self.has_read(job, *blake3::hash(&data).as_bytes());
                self.pack(&Item::Content { file: job.file, tag, data: &data }).await.map_err(Stop::from)
            }
            Err(stop) => Err(stop),
        };
        self.buffer = data;
        packed
    }

    /// Reads a file piece by piece.
    async fn large(&mut self, job: &Job) -> Result<(), Stop> {
        // Packed files would otherwise wait until all of this file is sent.
        self.flush().await?;
        let tag = self.read(job).await?;
        self.pack(&Item::Tag { file: job.file, tag }).await?;
        Ok(self.flush().await?)
    }

    /// Sends a stream, from where the receiver has it to its end.
    async fn stream(&mut self, job: &Job) -> Result<(), Stop> {
        self.flush().await?;
        let selection = self.selection;
        let Some(feed) = selection.feed(job.file).filter(|_| job.with_data) else {
            return Err(Stop::LeftOut(Reason::Unrepeatable));
        };
        let mut tap = self.while_wanted(feed.tap()).await?;
        if job.have.prefix() < tap.begin() {
            return Err(Stop::LeftOut(Reason::Unrepeatable));
        }
        for (offset, data) in tap.held() {
            self.hand_on(job, offset, data).await?;
        }
        while let Some((offset, data)) = self.while_wanted(tap.next()).await? {
            self.progress.grow(data.len() as u64);
            self.hand_on(job, offset, data).await?;
        }
        let digest = tap.end().map_err(Stop::LeftOut)?;
        self.progress.close();
        let tag = self.has_read(job, digest);
        self.pack(&Item::Ended { file: job.file, size: feed.length(), tag }).await?;
        Ok(self.flush().await?)
    }

    /// Waits for something while anybody wants the pieces.
    async fn while_wanted<T>(&self, wait: impl Future<Output = T>) -> Result<T, Unwanted> {
        tokio::select! {
            biased;
            () = self.pieces.closed() => Err(Unwanted),
            done = wait => Ok(done),
        }
    }

    /// Waits until the receiver has room for what ends here, if it passes on what it gets.
    async fn wait_for_room(&mut self, end: u64) -> Result<(), Unwanted> {
        let Some(window) = self.window.filter(|window| !window.admits(end)) else { return Ok(()) };
        // Runs of zeros among it would otherwise never be passed on.
        self.flush().await?;
        self.while_wanted(window.wait(end)).await
    }

    /// Hands on what the receiver does not have of what was read at `offset`.
    async fn hand_on(&self, job: &Job, offset: u64, data: Bytes) -> Result<(), Unwanted> {
        for (start, end) in job.have.missing(offset, offset + data.len() as u64) {
            let data = data.slice((start - offset) as usize..(end - offset) as usize);
            self.send(Piece::Record(Record { object: job.file, offset: start, data }, end - start)).await?;
        }
        Ok(())
    }

    /// Tells of a run of zeros what the receiver does not have of it.
    async fn tell_zeros(&mut self, job: &Job, start: u64, end: u64) -> Result<(), Unwanted> {
        if !job.with_data {
            return Ok(());
        }
        for (start, end) in job.have.missing(start, end) {
            self.pack(&Item::Zeros { file: job.file, offset: start, length: end - start }).await?;
        }
        // The receiver reads them while this end reads on: alone they would not fill a parcel for a long time.
        self.flush().await
    }

    /// A file was read to its end; what is said of it.
    fn has_read(&self, job: &Job, digest: Digest) -> Digest {
        self.witness.known.add(job.file, digest);
        self.witness.seal.tag(job.file, &digest)
    }

    /// Reads a file to its end, hashes it and hands on what was read, where that is wanted. Answers its tag.
    async fn read(&mut self, job: &Job) -> Result<Digest, Stop> {
        let mut file = self.open(job)?;
        let size = self.entry(job).size();
        let mut hasher = blake3::Hasher::new();
        let mut offset = 0;
        // The zeros before `offset` that were not told begin here.
        let mut zeros = 0;
        loop {
            if job.with_data {
                self.wait_for_room(offset + RECORD as u64).await?;
            }
            let mut data = Vec::with_capacity(RECORD);
            let read = (&mut file).take(RECORD as u64).read_to_end(&mut data);
            let length = read.map_err(|_| Stop::LeftOut(Reason::ReadFailed))? as u64;
            if length == 0 {
                break;
            }
            if offset + length > size {
                return Err(Stop::LeftOut(Reason::Changed));
            }
            hasher.update(&data);
            if data.iter().any(|byte| *byte != 0) {
                self.tell_zeros(job, zeros, offset).await?;
                zeros = offset + length;
                if job.with_data {
                    self.hand_on(job, offset, Bytes::from(data)).await?;
                }
            } else if offset + length - zeros >= ZEROS_MAX {
                self.tell_zeros(job, zeros, offset + length).await?;
                zeros = offset + length;
            }
            offset += length;
            self.progress.add_examined(length);
        }
        self.tell_zeros(job, zeros, offset).await?;
        self.check_unchanged(job, &file, offset)?;
        Ok(self.has_read(job, *hasher.finalize().as_bytes()))
    }

    /// Opens the file if it is still what the list says.
    fn open(&mut self, job: &Job) -> Result<File, Stop> {
        let source = &self.selection.sources[job.file as usize];
        let name = &self.selection.manifest.entries()[job.file as usize].path;
        let (file, stat) = self.opener.open(source, name).map_err(Stop::LeftOut)?;
        match self.is_unchanged(job, &stat) {
            true => Ok(file),
            false => Err(Stop::LeftOut(Reason::Changed)),
        }
    }

    /// The number of bytes that were read has to be all, and all of what the list says.
    fn check_unchanged(&self, job: &Job, file: &File, length: u64) -> Result<(), Stop> {
        let stat = rustix::fs::fstat(file).map_err(|_| Stop::LeftOut(Reason::ReadFailed))?;
        match self.is_unchanged(job, &stat) && length == self.entry(job).size() {
            true => Ok(()),
            false => Err(Stop::LeftOut(Reason::Changed)),
        }
    }

    /// The mode may change; the content and its time may not.
    // The types of the fields differ from system to system.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    fn is_unchanged(&self, job: &Job, stat: &Stat) -> bool {
        let entry = self.entry(job);
        (entry.size(), entry.mtime_ns) == (stat.st_size as u64, mtime_ns(stat))
    }
}
