//! What the receiver still needs: existing files compared, interrupted ones resumed, space checked.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use fairpath_core::Bytes;

use crate::destination::{Destination, Found};
use crate::error::ReceiveError;
use crate::manifest::{Entry, Manifest};
use crate::part;
use crate::partial::{PartNames, Partial};
use crate::progress::Progress;
use crate::proof::Seal;
use crate::protocol::{Digest, ENTRIES_PER_MESSAGE, FromReceiver, MAX_RANGES};
use crate::ranges::RangeSet;
use crate::skip::Reason;

/// What the destination says to a manifest, before the contents of existing files are compared.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Files of this size exist.
    pub(crate) compare: Vec<u32>,
    /// These cannot be written here.
    pub(crate) unfit: Vec<(u32, Reason)>,
}

/// What is to be done with the files of a manifest; by entry number.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// There already, with the same content.
    pub(crate) same: Vec<(u32, Digest)>,
    /// Partly there.
    pub(crate) have: BTreeMap<u32, RangeSet>,
    /// Neither can be written nor need be sent.
    pub(crate) left_out: BTreeMap<u32, Reason>,
}

impl Plan {
    /// The plan in the words of the protocol.
    pub(crate) fn answers(&self, seal: &Seal) -> Vec<FromReceiver> {
        let proved = |&(file, digest): &(u32, Digest)| (file, seal.proof(file, &digest));
        let same = self.same.chunks(ENTRIES_PER_MESSAGE);
        let same = same.map(|files| FromReceiver::Same(files.iter().map(proved).collect()));
        let have = self.have.iter();
        let have = have.map(|(&file, ranges)| FromReceiver::Have { file, ranges: ranges.to_pairs(MAX_RANGES) });
        let left_out: Vec<_> = self.left_out.iter().map(|(&entry, &reason)| (entry, reason)).collect();
        let left_out = left_out.chunks(ENTRIES_PER_MESSAGE).map(|some| FromReceiver::LeftOut(some.to_vec()));
        same.chain(have).chain(left_out).collect()
    }
}

/// Looks at what is there and refuses what may not be overwritten. Answers which files have the
/// size of an existing one, so that their contents must be compared. Writes nothing.
pub(crate) fn survey(destination: &mut Destination, manifest: &Manifest, force: bool) -> Result<Survey, ReceiveError> {
    let mut survey = Survey::default();
    for (number, entry) in manifest.entries().iter().enumerate() {
        let number = number as u32;
        let path = entry.path();
        let found = match destination.find(path) {
            Ok(found) => found,
            Err(error) => match error.refusal() {
                Some(reason @ (Reason::NameRefused | Reason::Unwritable)) => {
                    survey.unfit.push((number, reason));
                    continue;
                }
                _ => return Err(error),
            },
        };
        let in_the_way = |there| ReceiveError::InTheWay { path: path.to_owned(), there };
        match (entry, found) {
            (_, Found::Nothing) | (Entry::Directory { .. }, Found::Directory) => {}
            (Entry::Directory { .. }, _) => return Err(in_the_way("something that is no directory")),
            (Entry::File { .. }, Found::Directory) => return Err(in_the_way("a directory")),
            (Entry::File { size, .. }, Found::File { size: existing }) if *size == existing => {
                survey.compare.push(number);
            }
            (Entry::File { .. }, _) if force => {}
            (Entry::File { .. }, _) => return Err(ReceiveError::Exists { path: path.to_owned() }),
        }
    }
    Ok(survey)
}

/// The digests of existing files; none for one that cannot be read.
pub(crate) fn digest_existing(
    destination: &mut Destination,
    manifest: &Manifest,
    files: &[u32],
    progress: &Progress,
) -> Vec<Option<Digest>> {
    let mut digest = |number: &u32| {
        let file = destination.read(manifest.entries()[*number as usize].path()).ok()?;
        digest_of(progress.counting(file)).ok()
    };
    files.iter().map(&mut digest).collect()
}

/// BLAKE3 of the rest of a file.
pub(crate) fn digest_of(mut file: impl Read) -> io::Result<Digest> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(*hasher.finalize().as_bytes()),
            length => hasher.update(&buffer[..length]),
        };
    }
}

/// A compared file: its entry, the digest of what is here, and the tag of what the sender has.
pub(crate) type Compared = (u32, (Option<Digest>, Result<Digest, Reason>));

/// The plan, once it is known which of the compared files are the same. `unfinished` names what lies
/// in the directory of unfinished files.
pub(crate) fn decide(
    destination: &mut Destination,
    partial: &Partial,
    unfinished: &BTreeSet<String>,
    manifest: &Manifest,
    survey: (Vec<(u32, Reason)>, Vec<Compared>),
    seal: &Seal,
    force: bool,
) -> Result<Plan, ReceiveError> {
    let (unfit, compared) = survey;
    let mut plan = Plan { left_out: unfit.into_iter().collect(), ..Plan::default() };
    for (number, (own, sent)) in compared {
        match sent {
            // The sender leaves it out, and knows it.
            Err(reason) => drop(plan.left_out.insert(number, reason)),
            Ok(tag) => match own.filter(|own| seal.tag(number, own) == tag) {
                Some(digest) => plan.same.push((number, digest)),
                None if force => {}
                None => {
                    return Err(ReceiveError::Exists { path: manifest.entries()[number as usize].path().to_owned() });
                }
            },
        }
    }
    let mut needs = Needs::default();
    for (number, entry) in manifest.entries().iter().enumerate() {
        let number = number as u32;
        if matches!(entry, Entry::Directory { .. }) || plan.left_out.contains_key(&number) {
            continue;
        }
        let is_unfinished = unfinished.contains(&PartNames::of(entry.path()).data);
        if plan.same.binary_search_by_key(&number, |(same, _)| *same).is_ok() {
            if is_unfinished {
                partial.discard(&PartNames::of(entry.path()))?;
            }
            continue;
        }
        let ranges = if is_unfinished { part::load(partial, entry)? } else { RangeSet::default() };
        needs.add(destination, entry, ranges.total())?;
        if ranges.total() > 0 {
            plan.have.insert(number, ranges);
        }
    }
    needs.check(destination)?;
    Ok(plan)
}

/// What is still to be written, for each device.
#[derive(Debug, Default)]
struct Needs {
    devices: BTreeMap<u64, Need>,
    /// The parent looked at last, and its device.
    last: Option<(String, u64)>,
}

#[derive(Debug)]
struct Need {
    /// A file that comes to lie there.
    name: String,
    needed: Bytes,
    largest: Bytes,
    free: Bytes,
}

impl Needs {
    fn add(&mut self, destination: &mut Destination, entry: &Entry, present: u64) -> Result<(), ReceiveError> {
        let (name, size) = (entry.path(), Bytes::new(entry.size()));
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        let device = match &self.last {
            Some((last, device)) if last == parent => *device,
            _ => {
                let (device, free) = destination.room(name)?;
                let none = || Need { name: name.to_owned(), needed: Bytes::ZERO, largest: Bytes::ZERO, free };
                self.devices.entry(device).or_insert_with(none);
                device
            }
        };
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            self.last = Some((parent.to_owned(), device));
        }
        let need = self.devices.get_mut(&device).expect("it was just made");
        need.needed += size.saturating_sub(Bytes::new(present));
        need.largest = need.largest.max(size);
        Ok(())
    }

    fn check(mut self, destination: &mut Destination) -> Result<(), ReceiveError> {
        if self.devices.is_empty() {
            return Ok(());
        }
        let (device, free) = destination.room("")?;
        // What goes to another device is written here first, one file after the other.
        let passing = self.devices.iter().filter(|(other, _)| **other != device).map(|(_, need)| need.largest).max();
        let own = || Need { name: String::new(), needed: Bytes::ZERO, largest: Bytes::ZERO, free };
        self.devices.entry(device).or_insert_with(own).needed += passing.unwrap_or(Bytes::ZERO);
        for (other, need) in self.devices {
            if need.needed > need.free {
                let parent = need.name.rsplit_once('/').map_or("", |(parent, _)| parent);
                let directory = if other == device { destination.path().to_owned() } else { destination.full(parent) };
                return Err(ReceiveError::NoSpace { directory, needed: need.needed, free: need.free });
            }
        }
        Ok(())
    }
}
