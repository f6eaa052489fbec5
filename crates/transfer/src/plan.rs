//! What the receiver still needs: existing files compared, interrupted ones resumed, space checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};

use fairpath_core::Bytes;

use crate::destination::{Destination, Found, Partial};
use crate::error::ReceiveError;
use crate::manifest::{Entry, Manifest};
use crate::part;
use crate::protocol::Digest;
use crate::ranges::RangeSet;

/// What is to be done with the files of a manifest; by entry number.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// There already, with the same content.
    pub(crate) skip: Vec<u32>,
    /// Partly there.
    pub(crate) have: BTreeMap<u32, RangeSet>,
}

/// Looks at what is there and refuses what may not be overwritten. Answers which files have the
/// size of an existing one, so that their contents must be compared. Writes nothing.
pub(crate) fn survey(
    destination: &mut Destination,
    manifest: &Manifest,
    force: bool,
) -> Result<Vec<u32>, ReceiveError> {
    let mut compare = Vec::new();
    for (number, entry) in manifest.entries().iter().enumerate() {
        let path = entry.path();
        let in_the_way = |there| ReceiveError::InTheWay { path: path.to_owned(), there };
        match (entry, destination.find(path)?) {
            (_, Found::Nothing) | (Entry::Directory { .. }, Found::Directory) => {}
            (Entry::Directory { .. }, _) => return Err(in_the_way("something that is no directory")),
            (Entry::File { .. }, Found::Directory) => return Err(in_the_way("a directory")),
            (Entry::File { size, .. }, Found::File { size: existing }) if *size == existing => {
                compare.push(number as u32);
            }
            (Entry::File { .. }, _) if force => {}
            (Entry::File { .. }, _) => return Err(ReceiveError::Exists { path: path.to_owned() }),
        }
    }
    Ok(compare)
}

/// The digests of existing files.
pub(crate) fn digest_existing(
    destination: &mut Destination,
    manifest: &Manifest,
    files: &[u32],
) -> Result<Vec<Digest>, ReceiveError> {
    let mut digests = Vec::with_capacity(files.len());
    for &number in files {
        let path = manifest.entries()[number as usize].path();
        let file = destination.read(path)?;
        digests.push(digest_of(file).map_err(|error| ReceiveError::io(&destination.full(path), error))?);
    }
    Ok(digests)
}

/// BLAKE3 of the rest of a file.
pub(crate) fn digest_of(mut file: File) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(*hasher.finalize().as_bytes()),
            length => hasher.update(&buffer[..length]),
        };
    }
}

/// The plan, once it is known which of the compared files are the same.
pub(crate) fn decide(
    destination: &Destination,
    partial: &Partial,
    manifest: &Manifest,
    compared: &[(u32, bool)],
    force: bool,
) -> Result<Plan, ReceiveError> {
    let mut plan = Plan::default();
    for &(number, is_same) in compared {
        match (is_same, force) {
            (true, _) => plan.skip.push(number),
            (false, true) => {}
            (false, false) => {
                return Err(ReceiveError::Exists { path: manifest.entries()[number as usize].path().to_owned() });
            }
        }
    }
    let mut needed = Bytes::ZERO;
    for (number, entry) in manifest.entries().iter().enumerate() {
        let number = number as u32;
        if matches!(entry, Entry::Directory { .. }) || plan.skip.binary_search(&number).is_ok() {
            continue;
        }
        let ranges = part::load(partial, entry)?;
        needed += Bytes::new(entry.size() - ranges.total());
        if ranges.total() > 0 {
            plan.have.insert(number, ranges);
        }
    }
    let free = destination.free()?;
    if needed > free {
        return Err(ReceiveError::NoSpace { directory: destination.path().to_owned(), needed, free });
    }
    Ok(plan)
}
