//! How far a transfer is: written by the transfer, polled by whoever shows it.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use fairpath_core::ByteCount;

/// The phase of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nobody has connected yet, or the peer is not admitted yet.
    Waiting,
    /// The two ends agree on what is to be sent; existing files are compared.
    Preparing,
    /// The receiver's user is asked whether to take what is offered.
    Asking,
    /// Data flows.
    Transferring,
    /// Everything is in place.
    Done,
}

/// A transfer's progress; cheap to read at any time.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    bytes_total: AtomicU64,
    bytes_done: AtomicU64,
    bytes_resumed: AtomicU64,
    /// Read back at this end.
    examined_here: AtomicU64,
    /// The same at the peer's end, as it says.
    examined_there: AtomicU64,
    files_total: AtomicU64,
    files_done: AtomicU64,
    /// How many streams have not ended.
    open: AtomicU64,
    /// Whether a pipe at either end may keep everything waiting.
    is_patient: AtomicBool,
    /// Whether data has flowed before, over a connection that is gone.
    is_resumed: AtomicBool,
}

/// The progress at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressSnapshot {
    /// The phase of the transfer.
    pub phase: Phase,
    /// The sizes of all files; those that are left out do not count.
    pub bytes_total: ByteCount,
    /// The bytes that the receiver has written, including those that it had before.
    pub bytes_done: ByteCount,
    /// The bytes that the receiver had before: parts of an interrupted transfer and identical files.
    pub bytes_resumed: ByteCount,
    /// The bytes of files that both ends have read on their disks, to compare and to verify them. It moves where
    /// nothing else does: a large file that was begun in an earlier run is read before it goes on.
    pub bytes_examined: ByteCount,
    /// How many files there are; those that are left out do not count.
    pub files_total: u64,
    /// How many of them are verified and in place.
    pub files_done: u64,
    /// Whether the total is not known yet: it grows as a stream is read.
    pub is_open: bool,
    /// Whether a pipe at either end may keep everything waiting: where nothing moves, nothing need be wrong.
    pub is_patient: bool,
}

impl Progress {
    /// The progress now.
    pub fn snapshot(&self) -> ProgressSnapshot {
        let bytes = |field: &AtomicU64| ByteCount::new(field.load(Ordering::Relaxed));
        ProgressSnapshot {
            phase: match self.phase.load(Ordering::Relaxed) {
                0 => Phase::Waiting,
                1 => Phase::Preparing,
                2 => Phase::Asking,
                3 => Phase::Transferring,
                _ => Phase::Done,
            },
            bytes_total: bytes(&self.bytes_total),
            bytes_done: bytes(&self.bytes_done),
            bytes_resumed: bytes(&self.bytes_resumed),
            bytes_examined: bytes(&self.examined_here).saturating_add(bytes(&self.examined_there)),
            files_total: self.files_total.load(Ordering::Relaxed),
            files_done: self.files_done.load(Ordering::Relaxed),
            is_open: self.open.load(Ordering::Relaxed) > 0,
            is_patient: self.is_patient.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        let number = match phase {
            Phase::Waiting => 0,
            Phase::Preparing => 1,
            Phase::Asking => 2,
            Phase::Transferring => 3,
            Phase::Done => 4,
        };
        self.phase.store(number, Ordering::Relaxed);
        if phase == Phase::Transferring {
            self.is_resumed.store(true, Ordering::Relaxed);
        }
    }

    /// A transfer begins that has nothing to do with the one before.
    pub(crate) fn begin_anew(&self) {
        self.is_resumed.store(false, Ordering::Relaxed);
    }

    /// The work to be done. How much the receiver had before is told by the first plan of a transfer: later
    /// ones, after a connection was lost, find there what the transfer itself has brought.
    pub(crate) fn set_totals(&self, bytes: u64, files: u64) {
        self.bytes_total.store(bytes, Ordering::Relaxed);
        self.files_total.store(files, Ordering::Relaxed);
        if !self.is_resumed.load(Ordering::Relaxed) {
            self.bytes_resumed.store(0, Ordering::Relaxed);
        }
        self.bytes_done.store(0, Ordering::Relaxed);
        self.files_done.store(0, Ordering::Relaxed);
    }

    /// The number of streams among the files.
    pub(crate) fn set_open(&self, streams: usize) {
        self.open.store(streams as u64, Ordering::Relaxed);
        self.is_patient.store(streams > 0, Ordering::Relaxed);
    }

    /// A pipe at either end may keep everything waiting.
    pub(crate) fn be_patient(&self) {
        self.is_patient.store(true, Ordering::Relaxed);
    }

    /// More of a stream is known, by this much.
    pub(crate) fn grow(&self, bytes: u64) {
        self.bytes_total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The end of a stream is known.
    pub(crate) fn close(&self) {
        let less = |open: u64| Some(open.saturating_sub(1));
        let _ = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// The plan has found this many bytes there.
    pub(crate) fn add_resumed(&self, bytes: u64) {
        if !self.is_resumed.load(Ordering::Relaxed) {
            self.bytes_resumed.fetch_add(bytes, Ordering::Relaxed);
        }
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_done(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// More bytes of a file were read here.
    pub(crate) fn add_examined(&self, bytes: u64) {
        self.examined_here.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The same reader, of which all that is read is counted so.
    pub(crate) fn counting<R: Read>(&self, reader: R) -> impl Read {
        Counting { reader, progress: self }
    }

    /// The bytes that were read here so far.
    pub(crate) fn examined_here(&self) -> u64 {
        self.examined_here.load(Ordering::Relaxed)
    }

    /// The peer has read this many bytes at its end.
    pub(crate) fn set_examined_there(&self, bytes: u64) {
        self.examined_there.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn take_back(&self, bytes: u64) {
        self.bytes_done.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A file of this size does not count any more; `done` bytes of it had counted.
    pub(crate) fn leave_out(&self, size: u64, done: u64) {
        self.bytes_total.fetch_sub(size, Ordering::Relaxed);
        self.bytes_done.fetch_sub(done, Ordering::Relaxed);
        self.files_total.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn set_done(&self, bytes: u64) {
        self.bytes_done.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files_done.fetch_add(1, Ordering::Relaxed);
    }
}

struct Counting<'a, R> {
    reader: R,
    progress: &'a Progress,
}

impl<R: Read> Read for Counting<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.progress.add_examined(length as u64);
        Ok(length)
    }
}
