//! An unfinished file and its journal, by which an interrupted transfer resumes.
//!
//! The journal says which ranges are on the disk, of which file: name, size and time of change. It
//! is saved after the data were synced; and whatever it says, the digest of the whole file judges.

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Kind};
use crate::error::ReceiveError;
use crate::partial::{PartNames, Partial};
use crate::protocol::{Digest, MAX_RANGES};
use crate::ranges::RangeSet;
use crate::source::Identity;

/// The largest journal that is read back, in bytes.
pub(crate) const MAX_JOURNAL: u64 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// As it is shown, for who looks into the journal: the name of the journal is made of the bytes.
    path: String,
    /// That of a stream is not known.
    size: Option<u64>,
    mtime_ns: i64,
    ranges: Vec<(u64, u64)>,
}

/// A verified file that waits for its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) name: &'a str,
    pub(crate) identity: Identity,
    pub(crate) digest: Digest,
    /// The permissions that it gets with its name.
    pub(crate) mode: u32,
}

/// Notes which ranges of a file are present.
pub(crate) fn save(partial: &Partial, entry: &Entry, ranges: &RangeSet) -> Result<(), ReceiveError> {
    match journal(entry, ranges) {
        Some(text) => partial.replace(&PartNames::of(&entry.path).journal, &text),
        None => Ok(()),
    }
}

/// The journal of a file; a directory has none.
pub(crate) fn journal(entry: &Entry, ranges: &RangeSet) -> Option<Vec<u8>> {
    let size = size_of(entry)?;
    let (path, mtime_ns) = (entry.path.to_string(), entry.mtime_ns);
    let journal = Journal { path, size, mtime_ns, ranges: ranges.to_pairs(MAX_RANGES) };
    Some(serde_json::to_vec(&journal).expect("a journal has no keys but strings"))
}

/// The name in a journal, and how much it notes; `None` where it is none.
pub(crate) fn summary(journal: &[u8]) -> Option<(String, u64)> {
    let journal: Journal = serde_json::from_slice(journal).ok()?;
    let ranges = RangeSet::from_pairs(&journal.ranges, u64::MAX)?;
    Some((journal.path, ranges.total()))
}

/// Whether a journal is of a stream.
pub(crate) fn is_of_stream(partial: &Partial, journal: &str) -> bool {
    let mut text = Vec::new();
    let read = partial.open_existing(journal).and_then(|file| file.take(MAX_JOURNAL).read_to_end(&mut text));
    read.is_ok() && serde_json::from_slice(&text).is_ok_and(|journal: Journal| journal.size.is_none())
}

/// The ranges of a file that an interrupted transfer has left; none where anything does not fit,
/// and then what is left of it is removed.
pub(crate) fn load(partial: &Partial, entry: &Entry) -> Result<RangeSet, ReceiveError> {
    let names = PartNames::of(&entry.path);
    match read(partial, entry, &names) {
        Some(ranges) => Ok(ranges),
        None => {
            partial.discard(&names)?;
            Ok(RangeSet::default())
        }
    }
}

fn read(partial: &Partial, entry: &Entry, names: &PartNames) -> Option<RangeSet> {
    let mut text = Vec::new();
    partial.open_existing(&names.journal).ok()?.take(MAX_JOURNAL).read_to_end(&mut text).ok()?;
    let written = partial.open_existing(&names.data).ok()?.metadata().ok()?.len();
    noted(&text, entry, written)
}

/// The ranges that a journal notes of `entry`, with `written` bytes on the disk. `None` if it is no
/// journal, is that of another file, or notes impossible ranges.
pub(crate) fn noted(journal: &[u8], entry: &Entry, written: u64) -> Option<RangeSet> {
    let size = size_of(entry)?;
    let journal: Journal = serde_json::from_slice(journal).ok()?;
    if journal.path != entry.path.to_string() || journal.size != size || journal.mtime_ns != entry.mtime_ns {
        return None;
    }
    RangeSet::from_pairs(&journal.ranges, written.min(size.unwrap_or(u64::MAX)))
}

/// The size of a file, of which there may be none yet; `None` for what has no journal.
fn size_of(entry: &Entry) -> Option<Option<u64>> {
    match entry.kind {
        Kind::File { size } => Some(Some(size)),
        Kind::Stream => Some(None),
        Kind::Directory | Kind::Link { .. } | Kind::HardLink { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::Destination;

    #[test]
    fn a_journal_counts_only_for_the_same_file_with_its_data() {
        let directory = tempfile::tempdir().unwrap();
        let partial = Partial::open(&Destination::open(directory.path()).unwrap()).unwrap().0;
        let file = |size, mtime_ns| Entry { mtime_ns, ..Entry::file("a/b", size) };
        let ranges = RangeSet::from_pairs(&[(0, 4), (6, 8)], 10).unwrap();
        let names = PartNames::of(&"a/b".into());

        partial.replace(&names.data, b"12345678").unwrap();
        save(&partial, &file(10, 1), &ranges).unwrap();
        assert_eq!(load(&partial, &file(10, 1)).unwrap(), ranges);

        assert_eq!(load(&partial, &file(10, 2)).unwrap(), RangeSet::default());
        assert!(partial.open_existing(&names.data).is_err(), "data of another version are removed");

        // The data are shorter than the journal says.
        partial.replace(&names.data, b"1234567").unwrap();
        save(&partial, &file(10, 1), &ranges).unwrap();
        assert_eq!(load(&partial, &file(10, 1)).unwrap(), RangeSet::default());

        partial.replace(&names.journal, b"{ not json").unwrap();
        assert_eq!(load(&partial, &file(10, 1)).unwrap(), RangeSet::default());
    }
}
