//! The words of bulk data: a record, a part of one, and the credit for them.

use core::ops::Range;

use bytes::Bytes;

use crate::carrier::{self, Why};

/// The largest data of one record, in bytes.
pub const MAX_RECORD: usize = 1 << 20;

/// The header of a record's body: the object (4 bytes) and the offset (8 bytes). It travels once for
/// each record, not in each fragment.
pub(super) const HEAD: u32 = 12;

/// The longest body of a record, in bytes.
pub(super) const MAX_BODY: u32 = HEAD + MAX_RECORD as u32;

/// A piece of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The number of the object, as the two ends have agreed.
    pub object: u32,
    /// Where in the object the data begins, in bytes.
    pub offset: u64,
    /// The data, up to [`MAX_RECORD`] bytes.
    pub data: Bytes,
}

impl Record {
    /// How long the body is: head and data, in bytes.
    pub(super) fn body(&self) -> u32 {
        HEAD + self.data.len() as u32
    }

    /// The first [`HEAD`] bytes of the body.
    pub(super) fn head(&self) -> [u8; HEAD as usize] {
        let mut head = [0; HEAD as usize];
        head[..4].copy_from_slice(&self.object.to_be_bytes());
        head[4..].copy_from_slice(&self.offset.to_be_bytes());
        head
    }

    /// The record whose body this is; `None` where it is shorter than a head.
    pub(super) fn from_body(body: Bytes) -> Option<Self> {
        let (&[o0, o1, o2, o3, ref offset @ ..], _) = body.split_first_chunk::<{ HEAD as usize }>()?;
        let (object, offset) = (u32::from_be_bytes([o0, o1, o2, o3]), u64::from_be_bytes(*offset));
        Some(Self { object, offset, data: body.slice(HEAD as usize..) })
    }
}

/// Up to where records may have been begun, counted from the beginning of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    /// The sum of the lengths of their bodies, in bytes.
    pub bytes: u64,
    /// How many they are.
    pub records: u64,
}

/// The byte range of a record that a fragment carries.
///
/// The host says where it went by [`Sender::on_sent`](super::Sender::on_sent), or that it went nowhere by [`Sender::give_back`](super::Sender::give_back).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    pub(super) record: u64,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Why it was cut.
    pub(super) why: Why,
}

impl RecordRange {
    /// Whether it was never sent before.
    pub(crate) fn is_new(self) -> bool {
        self.why == Why::New
    }

    /// The bytes of the body.
    pub(super) fn range(self) -> Range<u32> {
        self.start..self.end
    }
}

impl carrier::Tracked for RecordRange {
    fn is_tail(self) -> bool {
        self.why == Why::Tail
    }
}
