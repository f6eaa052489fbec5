//! The contents of records: pieces of large files, and parcels of everything that is small.
//!
//! A record whose object is an entry's number is a piece of that file. A record of the object
//! [`PARCEL`] holds items one after another: whole small files with their tags, and what is to be
//! said of large ones. That is runs of zeros, the tag once all data went before, and that a file is
//! left out. So packets are full however small the files are, and the credit of the records bounds
//! everything that the receiver has not looked at.

use bytes::Bytes;
use fairpath_quic::{RECORD, Record};
use serde::{Deserialize, Serialize, Serializer};

use crate::protocol::{Digest, ProtocolError};
use crate::skip::Reason;

/// The object number of a record that is a parcel. Manifests never have that many entries.
pub(crate) const PARCEL: u32 = u32::MAX;

/// Files up to this size travel in parcels, in bytes.
pub(crate) const SMALL: u64 = RECORD as u64;

/// The longest run of zeros that one item stands for, in bytes: the receiver reads it back at once.
pub(crate) const ZEROS_MAX: u64 = 16 << 20;

/// From here on a parcel is sent, in bytes. With one more small file it is still far below the
/// largest record.
const FULL: usize = RECORD;

/// One thing in a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Item<'a> {
    /// A whole file.
    Content {
        /// The entry's number.
        file: u32,
        /// The keyed hash of the content's digest ([`Seal::tag`](crate::proof::Seal::tag)).
        tag: Digest,
        /// All of it.
        #[serde(borrow, serialize_with = "as_bytes")]
        data: &'a [u8],
    },
    /// A part of a large file in which there are only zeros, a hole as a rule.
    Zeros {
        /// The entry's number.
        file: u32,
        /// Where it begins.
        offset: u64,
        /// How long it is, at most [`ZEROS_MAX`].
        length: u64,
    },
    /// All of a large file was read and sent.
    Tag {
        /// The entry's number.
        file: u32,
        /// The same of its content.
        tag: Digest,
    },
    /// All of a stream was sent.
    Ended {
        /// The entry's number.
        file: u32,
        /// How long it is.
        size: u64,
        /// The same of its content.
        tag: Digest,
    },
    /// A file is left out; what was sent of it is worth nothing.
    LeftOut {
        /// The entry's number.
        file: u32,
        /// Why.
        reason: Reason,
    },
}

/// At once, not byte by byte; the encoding is the same.
fn as_bytes<S: Serializer>(data: &&[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(data)
}

/// A parcel that is being packed.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    packed: Vec<u8>,
}

impl Packer {
    /// Adds an item; answers the parcel when it is full.
    pub(crate) fn pack(&mut self, item: &Item<'_>) -> Option<Record> {
        let packed = std::mem::take(&mut self.packed);
        self.packed = postcard::to_extend(item, packed).expect("memory takes what is written to it");
        if self.packed.len() >= FULL { self.take() } else { None }
    }

    /// The parcel as it is, unless it is empty.
    pub(crate) fn take(&mut self) -> Option<Record> {
        let data = Bytes::from(std::mem::take(&mut self.packed));
        (!data.is_empty()).then_some(Record { object: PARCEL, offset: 0, data })
    }
}

/// The items of a parcel, one after another; ends after the first that cannot be understood.
pub(crate) fn items(mut data: &[u8]) -> impl Iterator<Item = Result<Item<'_>, ProtocolError>> {
    std::iter::from_fn(move || {
        if data.is_empty() {
            return None;
        }
        match postcard::take_from_bytes(data) {
            Ok((item, rest)) => {
                data = rest;
                Some(Ok(item))
            }
            Err(_) => {
                data = &[];
                Some(Err(ProtocolError::Malformed))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use fairpath_quic::MAX_RECORD;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn items_come_out_as_they_were_packed() {
        let packed = [
            Item::Content { file: 7, tag: [1; 32], data: b"content" },
            Item::Content { file: 8, tag: [2; 32], data: b"" },
            Item::Zeros { file: 6, offset: 1 << 40, length: ZEROS_MAX },
            Item::Tag { file: u32::MAX - 1, tag: [3; 32] },
            Item::Ended { file: 5, size: 1 << 40, tag: [4; 32] },
            Item::LeftOut { file: 9, reason: Reason::Changed },
        ];
        let mut packer = Packer::default();
        assert!(packed.iter().all(|item| packer.pack(item).is_none()));
        let parcel = packer.take().unwrap();
        assert_eq!(items(&parcel.data).collect::<Result<Vec<_>, _>>(), Ok(packed.to_vec()));
        assert!(packer.take().is_none());
    }

    #[test]
    fn a_full_parcel_fits_into_a_record() {
        let mut packer = Packer::default();
        let almost = vec![1; FULL - 100];
        assert!(packer.pack(&Item::Content { file: 1, tag: [0; 32], data: &almost }).is_none());
        let largest = vec![2; SMALL as usize];
        let parcel = packer.pack(&Item::Content { file: 2, tag: [0; 32], data: &largest }).unwrap();
        assert!(parcel.data.len() <= MAX_RECORD);
    }

    proptest! {
        #[test]
        fn arbitrary_parcels_never_panic_and_end(data in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(items(&data).count() <= data.len());
        }
    }
}
