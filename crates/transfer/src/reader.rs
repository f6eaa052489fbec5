//! The sender's reading thread: reads files in order, hashes all of them, and hands on what the
//! receiver does not have.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use fairpath_quic::lanes::{RECORD, Record};
use tokio::sync::mpsc;

use crate::collect::{Selection, file_entry};
use crate::error::SendError;
use crate::manifest::Entry;
use crate::protocol::Digest;
use crate::ranges::RangeSet;

/// A file to read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) file: u32,
    /// What the receiver has.
    pub(crate) have: RangeSet,
    /// Whether its data are to be sent, or only its digest is wanted.
    pub(crate) with_data: bool,
}

/// What was read.
#[derive(Debug)]
pub(crate) enum Piece {
    Record(Record),
    Digest { file: u32, digest: Digest },
}

/// Reads the jobs' files until there are no more jobs, or nobody wants the pieces.
pub(crate) fn run(
    selection: &Selection,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    pieces: &mpsc::Sender<Piece>,
) -> Result<(), SendError> {
    while let Some(job) = jobs.blocking_recv() {
        let source = &selection.sources[job.file as usize];
        let entry = &selection.manifest.entries()[job.file as usize];
        let Some(digest) = read(source, entry, &job, pieces)? else { return Ok(()) };
        if pieces.blocking_send(Piece::Digest { file: job.file, digest }).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads one file; `None` where nobody wants the pieces any more.
fn read(source: &Path, entry: &Entry, job: &Job, pieces: &mpsc::Sender<Piece>) -> Result<Option<Digest>, SendError> {
    let failed = |error| SendError::io(source, error);
    let mut file = File::open(source).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    loop {
        let mut data = Vec::with_capacity(RECORD);
        let length = (&mut file).take(RECORD as u64).read_to_end(&mut data).map_err(failed)? as u64;
        if length == 0 {
            break;
        }
        if offset + length > entry.size() {
            return Err(SendError::Changed(source.to_owned()));
        }
        hasher.update(&data);
        let data = Bytes::from(data);
        let missing = if job.with_data { job.have.missing(offset, offset + length) } else { vec![] };
        for (start, end) in missing {
            let piece = data.slice((start - offset) as usize..(end - offset) as usize);
            let record = Record { object: job.file, offset: start, data: piece };
            if pieces.blocking_send(Piece::Record(record)).is_err() {
                return Ok(None);
            }
        }
        offset += length;
    }
    // The mode may change; the content and its time may not.
    let now = file_entry(entry.path().to_owned(), &file.metadata().map_err(failed)?);
    let is_same = match (entry, &now) {
        (Entry::File { size, mtime_ns, .. }, Entry::File { size: size_now, mtime_ns: mtime_now, .. }) => {
            size == size_now && mtime_ns == mtime_now && offset == *size
        }
        _ => false,
    };
    match is_same {
        true => Ok(Some(*hasher.finalize().as_bytes())),
        false => Err(SendError::Changed(source.to_owned())),
    }
}
