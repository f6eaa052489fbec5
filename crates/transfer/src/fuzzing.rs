//! Ways for the fuzz targets into what is private here: how the bytes of others are read and written.
//! No part of the interface.

use crate::entry::Entry;
use crate::fault::Fault;
use crate::greeting::Purpose;
use crate::manifest::NameFault;
use crate::offer::LeftOut;
use crate::parcel::{self, Item, Packer};
use crate::part;
use crate::protocol::{self, FromReceiver, FromSender, ProtocolError};
use crate::ranges::RangeSet;
use crate::skip::Reason;
use crate::ticket;

/// A ticket with this content, whatever it is: length and checksum are right.
pub fn ticket_word(content: &[u8]) -> String {
    ticket::word([&[0, 0], content].concat())
}

/// Whether a greeting may begin so, and the same beginning written again but for the version.
pub fn greeting_head(head: [u8; 4]) -> Option<[u8; 4]> {
    Purpose::parse(head).map(|(purpose, _)| purpose.head())
}

/// Reads a message of a sender and writes it again.
pub fn from_sender(frame: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    protocol::decode::<FromSender>(frame).map(|message| encoded(&message))
}

/// Reads a message of a receiver and writes it again.
pub fn from_receiver(frame: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    protocol::decode::<FromReceiver>(frame).map(|message| encoded(&message))
}

/// The entries in a message of a sender, if it is one of entries.
pub fn entries(frame: &[u8]) -> Option<Vec<Entry>> {
    match protocol::decode(frame) {
        Ok(FromSender::Entries(entries)) => Some(entries),
        _ => None,
    }
}

/// The message of a sender with these entries.
pub fn entries_frame(entries: Vec<Entry>) -> Vec<u8> {
    encoded(&FromSender::Entries(entries))
}

/// Reads all items of a parcel and packs them again.
pub fn parcel(data: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let items: Vec<Item<'_>> = parcel::items(data).collect::<Result<_, _>>()?;
    let mut packer = Packer::default();
    let mut packed = Vec::new();
    for item in &items {
        packed.extend(packer.pack(item).into_iter().flat_map(|record| record.data));
    }
    packed.extend(packer.take().into_iter().flat_map(|record| record.data));
    Ok(packed)
}

/// The ranges that a journal notes of a file with `written` bytes on the disk.
pub fn noted(journal: &[u8], entry: &Entry, written: u64) -> Option<Vec<(u64, u64)>> {
    part::noted(journal, entry, written).map(|ranges| ranges.to_pairs(usize::MAX))
}

/// The journal of a file of which these ranges are there; `None` where they cannot be.
pub fn journal(entry: &Entry, ranges: &[(u64, u64)]) -> Option<Vec<u8>> {
    part::journal(entry, &RangeSet::from_pairs(ranges, entry.size())?)
}

/// A message of each kind that a sender says, with its name.
pub fn sender_messages() -> Vec<(&'static str, Vec<u8>)> {
    let file = Entry { mode: 0o755, mtime_ns: -5, ..Entry::file("a b/ü", 1 << 40) };
    let odd = Entry::link(&b"d/\xff"[..], "e/x");
    let left_out = LeftOut { count: 3, names: vec![".git".into(), ".ssh".into()] };
    let messages = [
        ("entries", FromSender::Entries(vec![file, Entry::directory("d"), odd])),
        ("entries_end", FromSender::EntriesEnd),
        ("tags", FromSender::Tags(vec![Ok([7; 32]), Err(Reason::Name(NameFault::LongComponent(255)))])),
        ("hidden", FromSender::Hidden(left_out)),
        ("unsent", FromSender::Unsent(vec![("d/l".into(), Reason::LeadsOut)])),
        ("failed", FromSender::Failed { fault: Fault::Io, text: "no".into() }),
    ];
    messages.into_iter().map(|(name, message)| (name, encoded(&message))).collect()
}

/// A message of each kind that a receiver says, with its name.
pub fn receiver_messages() -> Vec<(&'static str, Vec<u8>)> {
    let messages = [
        ("terms", FromReceiver::Terms { hidden: true, has_all: false, in_order: true }),
        ("compare", FromReceiver::Compare(vec![0, 300])),
        ("same", FromReceiver::Same(vec![(1, [4; 16]), (70_000, [5; 16])])),
        ("have", FromReceiver::Have { file: 3, ranges: vec![(0, 10), (20, u64::MAX)] }),
        ("begin", FromReceiver::Begin),
        ("written", FromReceiver::Written(1 << 33)),
        ("done", FromReceiver::Done(vec![(0, [4; 16]), (1, [5; 16])])),
        ("again", FromReceiver::Again(9)),
        ("left_out", FromReceiver::LeftOut(vec![(4, Reason::TooLarge), (5, Reason::Unwritable)])),
        ("complete", FromReceiver::Complete),
        ("arrived", FromReceiver::Arrived([6; 16])),
        ("receiver_failed", FromReceiver::Failed { fault: Fault::Io, text: "no".into() }),
        ("taken", FromReceiver::Taken { file: 3, bytes: 1 << 33 }),
        ("examined", FromReceiver::Examined(1 << 33)),
        ("asking", FromReceiver::Asking),
    ];
    messages.into_iter().map(|(name, message)| (name, encoded(&message))).collect()
}

/// A parcel with an item of each kind.
pub fn some_parcel() -> Vec<u8> {
    let mut packer = Packer::default();
    for item in [
        Item::Content { file: 7, tag: [1; 32], data: b"content" },
        Item::Content { file: 8, tag: [2; 32], data: b"" },
        Item::Zeros { file: 6, offset: 1 << 40, length: 1 << 20 },
        Item::Tag { file: u32::MAX - 1, tag: [3; 32] },
        Item::Ended { file: 5, size: 1 << 40, tag: [4; 32] },
        Item::LeftOut { file: 9, reason: Reason::Changed },
    ] {
        packer.pack(&item);
    }
    packer.take().map(|record| record.data.to_vec()).unwrap_or_default()
}

fn encoded(message: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_stdvec(message).expect("memory takes what is written to it")
}
