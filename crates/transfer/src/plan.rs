//! The receiver's plan: existing files compared, interrupted ones resumed, space checked.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use fairpath_core::ByteCount;

use crate::destination::{Destination, Found, Room};
use crate::entry::{Entry, Kind};
use crate::error::{Conflict, ReceiveError};
use crate::manifest::Manifest;
use crate::name::{Name, split};
use crate::part;
use crate::partial::{PartNames, Partial};
use crate::progress::Progress;
use crate::proof::Seal;
use crate::protocol::{Digest, ENTRIES_PER_MESSAGE, FromReceiver, MAX_RANGES};
use crate::ranges::RangeSet;
use crate::skip::Reason;

/// How a file that exists at the receiver with other content is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Nothing is received at all; all such names are told.
    #[default]
    Refuse,
    /// It stays, and the new one is left out.
    Skip,
    /// It is replaced by one that was changed later; others are left out.
    Newer,
    /// It stays, and the new one gets another name.
    Rename,
    /// It is replaced.
    Overwrite,
}

impl Existing {
    /// Whether what has been let through takes the place of what is there.
    pub(crate) fn replaces(self) -> bool {
        matches!(self, Self::Newer | Self::Overwrite)
    }
}

/// A manifest compared with the destination, before the contents of existing files are compared.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Files of this size exist, which were changed at that time.
    pub(crate) compare: Vec<(u32, i64)>,
    /// These cannot be written here, or are not to be.
    pub(crate) unfit: Vec<(u32, Reason)>,
    /// Names that are taken.
    pub(crate) conflicts: Vec<Conflict>,
}

/// An obstacle, in words that follow its name.
const OTHER_CONTENT: &str = "already exists with other content";

impl Survey {
    /// Decides about an entry for which something else is there, of that time of change if it is a file.
    fn meet(&mut self, existing: Existing, (number, entry): (u32, &Entry), there: &'static str, mtime_ns: Option<i64>) {
        match (existing, mtime_ns) {
            (Existing::Rename | Existing::Overwrite, _) => {}
            (Existing::Newer, Some(there)) if entry.mtime_ns > there => {}
            (Existing::Newer, Some(_)) => self.unfit.push((number, Reason::NotNewer)),
            (Existing::Skip | Existing::Newer, _) => self.unfit.push((number, Reason::Kept)),
            (Existing::Refuse, _) => self.conflicts.push(Conflict { path: entry.path.clone(), there }),
        }
    }

    /// Decides about an entry that cannot be written for what is there, whatever is wanted.
    fn block(&mut self, existing: Existing, (number, entry): (u32, &Entry), there: &'static str) {
        match existing {
            Existing::Skip | Existing::Newer => self.unfit.push((number, Reason::Kept)),
            _ => self.conflicts.push(Conflict { path: entry.path.clone(), there }),
        }
    }
}

/// The plan for the files of a manifest; by entry number.
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

/// Looks at what is there. Answers which files have the size of an existing one, so that their contents must be
/// compared, and what may not be overwritten. Writes nothing.
pub(crate) fn survey(
    destination: &mut Destination,
    manifest: &Manifest,
    existing: Existing,
) -> Result<Survey, ReceiveError> {
    let mut survey = Survey::default();
    for (number, entry) in manifest.entries().iter().enumerate() {
        let one = (number as u32, entry);
        let found = match destination.find(entry.path.as_bytes()) {
            Ok(found) => found,
            Err(error) => match error.refusal() {
                Some(reason @ (Reason::NameRefused | Reason::Unwritable)) => {
                    survey.unfit.push((one.0, reason));
                    continue;
                }
                // Above it stands something that is no directory. That is told once, where it is an entry too.
                Some(_) => {
                    survey.block(existing, one, "stands below something that is no directory");
                    continue;
                }
                None => return Err(error),
            },
        };
        match (&entry.kind, found) {
            (_, Found::Nothing) | (Kind::Directory, Found::Directory) => {}
            (Kind::Directory, _) => survey.block(existing, one, "is no directory here"),
            (Kind::Link { target }, Found::Link { target: there }) if *target == there => {}
            (_, Found::Directory) if existing == Existing::Rename => {}
            (_, Found::Directory) => survey.block(existing, one, "is a directory here"),
            (Kind::File { size, .. }, Found::File { size: there, mtime_ns }) if *size == there => {
                survey.compare.push((one.0, mtime_ns));
            }
            (Kind::File { .. }, Found::File { mtime_ns, .. }) => {
                survey.meet(existing, one, OTHER_CONTENT, Some(mtime_ns));
            }
            // Its content cannot be compared before it has come.
            (Kind::Stream, Found::File { mtime_ns, .. }) => {
                survey.meet(existing, one, "already exists", Some(mtime_ns));
            }
            (Kind::HardLink { to }, Found::File { mtime_ns, .. }) => {
                if !destination.is_same(entry.path.as_bytes(), to.as_bytes()) {
                    survey.meet(existing, one, "is not the same hard link here", Some(mtime_ns));
                }
            }
            (Kind::File { .. } | Kind::Stream | Kind::HardLink { .. }, _) => {
                survey.meet(existing, one, "is no file here", None)
            }
            (Kind::Link { .. }, _) => survey.meet(existing, one, "is not the same link here", None),
        }
    }
    Ok(survey)
}

/// The digests of existing files; none for one that cannot be read.
pub(crate) fn digest_existing(
    destination: &mut Destination,
    manifest: &Manifest,
    files: &[(u32, i64)],
    progress: &Progress,
) -> Vec<Option<Digest>> {
    let mut digest = |(number, _): &(u32, i64)| {
        let file = destination.read(manifest.entries()[*number as usize].path.as_bytes()).ok()?;
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

/// A compared file: its entry and when the one here was changed, the digest of what is here, and the tag of what the
/// sender has.
pub(crate) type Compared = ((u32, i64), (Option<Digest>, Result<Digest, Reason>));

/// The plan, once it is known which of the compared files are the same. `unfinished` names what lies
/// in the directory of unfinished files.
pub(crate) fn decide(
    destination: &mut Destination,
    (partial, unfinished): (&Partial, &BTreeSet<String>),
    manifest: &Manifest,
    (mut survey, compared): (Survey, Vec<Compared>),
    seal: &Seal,
    existing: Existing,
) -> Result<Plan, ReceiveError> {
    let mut plan = Plan::default();
    for ((number, mtime_ns), (own, sent)) in compared {
        match sent {
            // The sender leaves it out, and knows it.
            Err(reason) => drop(plan.left_out.insert(number, reason)),
            Ok(tag) => match own.filter(|own| seal.tag(number, own) == tag) {
                Some(digest) => plan.same.push((number, digest)),
                None => {
                    let one = (number, &manifest.entries()[number as usize]);
                    survey.meet(existing, one, OTHER_CONTENT, Some(mtime_ns));
                }
            },
        }
    }
    if !survey.conflicts.is_empty() {
        survey.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        return Err(ReceiveError::Conflicts(survey.conflicts));
    }
    plan.left_out.extend(survey.unfit);
    let mut needs = Needs::default();
    for (number, entry) in manifest.entries().iter().enumerate() {
        let number = number as u32;
        if plan.left_out.contains_key(&number) {
            continue;
        }
        if !entry.is_file() {
            needs.add_name(destination, entry)?;
            continue;
        }
        let names = PartNames::of(&entry.path);
        let is_unfinished = unfinished.contains(&names.data);
        if plan.same.binary_search_by_key(&number, |(same, _)| *same).is_ok() {
            if is_unfinished {
                partial.discard(&names)?;
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
    discard_other_streams((partial, unfinished), manifest)?;
    Ok(plan)
}

/// Removes what is left of streams that nobody sends any more.
fn discard_other_streams(
    (partial, unfinished): (&Partial, &BTreeSet<String>),
    manifest: &Manifest,
) -> Result<(), ReceiveError> {
    let streams = manifest.entries().iter().filter(|entry| entry.is_stream());
    let sent: BTreeSet<_> = streams.map(|entry| PartNames::of(&entry.path).journal).collect();
    for journal in unfinished.iter().filter(|name| name.ends_with(".journal") && !sent.contains(*name)) {
        if part::is_of_stream(partial, journal)
            && let Some(data) = PartNames::pair_of(journal)
        {
            partial.discard(&PartNames { data, journal: journal.clone() })?;
        }
    }
    Ok(())
}

/// The room that is needed, for each device.
#[derive(Debug, Default)]
struct Needs {
    devices: BTreeMap<u64, Need>,
    /// The parent looked at last, and its device.
    last: Option<(Name, u64)>,
}

#[derive(Debug)]
struct Need {
    /// The directory of a file that comes to lie there.
    parent: Name,
    needed: ByteCount,
    largest: ByteCount,
    /// How many files and directories.
    files: u64,
    room: Room,
}

impl Needs {
    /// Adds a file with `present` bytes on the disk.
    fn add(&mut self, destination: &mut Destination, entry: &Entry, present: u64) -> Result<(), ReceiveError> {
        let size = ByteCount::new(entry.size());
        let need = self.of(destination, entry)?;
        need.needed += size.saturating_sub(ByteCount::new(present));
        need.largest = need.largest.max(size);
        need.files += u64::from(present == 0);
        Ok(())
    }

    /// A directory or a link, if it is not there.
    fn add_name(&mut self, destination: &mut Destination, entry: &Entry) -> Result<(), ReceiveError> {
        if matches!(destination.find(entry.path.as_bytes()), Ok(Found::Nothing)) {
            self.of(destination, entry)?.files += 1;
        }
        Ok(())
    }

    /// The needs of the device on which an entry comes to lie.
    fn of(&mut self, destination: &mut Destination, entry: &Entry) -> Result<&mut Need, ReceiveError> {
        let parent = split(entry.path.as_bytes()).0;
        let device = match &self.last {
            Some((last, device)) if last.as_bytes() == parent => *device,
            _ => {
                let room = destination.room(entry.path.as_bytes())?;
                self.devices.entry(room.device).or_insert_with(|| Need::none(parent, room));
                self.last = Some((parent.into(), room.device));
                room.device
            }
        };
        Ok(self.devices.get_mut(&device).expect("it was just made"))
    }

    fn check(mut self, destination: &mut Destination) -> Result<(), ReceiveError> {
        if self.devices.is_empty() {
            return Ok(());
        }
        let room = destination.room(b"")?;
        let device = room.device;
        // A file for another device is written here first, one file after the other.
        let passing = self.devices.iter().filter(|(other, _)| **other != device).map(|(_, need)| need.largest).max();
        let own = self.devices.entry(device).or_insert_with(|| Need::none(b"", room));
        own.needed += passing.unwrap_or(ByteCount::ZERO);
        for (other, need) in self.devices {
            let Need { parent, needed, files, room, .. } = need;
            let is_own = other == device;
            let directory = if is_own { destination.path().to_owned() } else { destination.full(parent.as_bytes()) };
            if needed > room.free {
                return Err(ReceiveError::NoSpace { directory, needed, free: room.free });
            }
            if let Some(free) = room.files.filter(|free| files > *free) {
                return Err(ReceiveError::NoInodes { directory, needed: files, free });
            }
        }
        Ok(())
    }
}

impl Need {
    fn none(parent: &[u8], room: Room) -> Self {
        Self { parent: parent.into(), needed: ByteCount::ZERO, largest: ByteCount::ZERO, files: 0, room }
    }
}
