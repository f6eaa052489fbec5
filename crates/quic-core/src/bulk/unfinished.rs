//! The records whose sending has begun and that are not acknowledged as a whole.

use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rangemap::RangeSet;

use super::record::{HEAD, Record, RecordRange};
use super::wire::FragmentHeader;
use crate::carrier::{Buffer, Coverage, Why};

#[derive(Debug)]
struct Sending {
    record: Record,
    acked: Coverage,
    /// The ranges to retransmit: cut before, not acknowledged, and with no fragment in flight that answers
    /// for them.
    again: RangeSet<u32>,
}

/// The records by number.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    records: BTreeMap<u64, Sending>,
    /// How many bytes their bodies have.
    bytes: u64,
    /// Those of which something is to be sent again.
    again: BTreeSet<u64>,
    /// The buffer from which the next DATAGRAMs are cut.
    buffer: Buffer,
}

impl Unfinished {
    /// Whether everything that was begun is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// How many bytes the bodies of the records have.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The lowest number.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.records.first_key_value().map(|(number, _)| *number)
    }

    /// Adds the record `number`.
    pub(super) fn begin(&mut self, number: u64, record: Record) {
        let acked = Coverage::new(record.body());
        self.bytes += u64::from(record.body());
        self.records.insert(number, Sending { record, acked, again: RangeSet::new() });
    }

    /// Notes that `part` has arrived. It is then not sent again, and the record is let go with its last part.
    pub(super) fn on_acked(&mut self, part: RecordRange) {
        let Some(sending) = self.records.get_mut(&part.record) else { return };
        sending.acked.insert(part.range());
        if !sending.again.is_empty() {
            sending.again.remove(part.range());
            if sending.again.is_empty() {
                self.again.remove(&part.record);
            }
        }
        if sending.acked.is_full()
            && let Some(sending) = self.records.remove(&part.record)
        {
            self.bytes -= u64::from(sending.record.body());
        }
    }

    /// Whether nothing of it is missing.
    pub(super) fn has_arrived(&self, part: RecordRange) -> bool {
        let Some(sending) = self.records.get(&part.record) else { return true };
        let mut is_missing = false;
        sending.acked.missing(part.range(), |_| is_missing = true);
        !is_missing
    }

    /// Notes that nothing answers for `part` any more: what of it has not arrived is to be sent again.
    pub(super) fn send_again(&mut self, part: RecordRange) {
        let Some(sending) = self.records.get_mut(&part.record) else { return };
        let again = &mut sending.again;
        sending.acked.missing(part.range(), |range| again.insert(range));
        if !again.is_empty() {
            self.again.insert(part.record);
        }
    }

    /// Whether something is to be sent again.
    pub(super) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Takes the first part of the oldest record that is to be sent again, of at most `space` bytes.
    pub(super) fn take_again(&mut self, space: u32) -> Option<RecordRange> {
        let &record = self.again.first()?;
        let sending = self.records.get_mut(&record)?;
        let &Range { start, end } = sending.again.first()?;
        let end = end.min(start.saturating_add(space));
        sending.again.remove(start..end);
        if sending.again.is_empty() {
            self.again.remove(&record);
        }
        Some(RecordRange { record, start, end, why: Why::Again })
    }

    /// Takes a part of what is to be sent again; false where not all of it is.
    pub(super) fn take_of_again(&mut self, part: RecordRange) -> bool {
        let Some(sending) = self.records.get_mut(&part.record) else { return false };
        let range = part.range();
        if sending.again.gaps(&range).next().is_some() {
            return false;
        }
        sending.again.remove(range);
        if sending.again.is_empty() {
            self.again.remove(&part.record);
        }
        true
    }

    /// The whole DATAGRAM that carries `part`.
    pub(super) fn datagram(&mut self, part: RecordRange) -> Option<Bytes> {
        let record = &self.records.get(&part.record)?.record;
        let length = FragmentHeader::LEN + (part.end - part.start) as usize;
        let datagram = self.buffer.datagram(length, |to| {
            // The receiver expands the number again.
            FragmentHeader { record: part.record as u32, length: record.body(), offset: part.start }.put(to);
            if part.start < HEAD {
                to.extend_from_slice(&record.head()[part.start as usize..part.end.min(HEAD) as usize]);
            }
            if part.end > HEAD {
                let data = part.start.saturating_sub(HEAD) as usize..(part.end - HEAD) as usize;
                to.extend_from_slice(&record.data[data]);
            }
        });
        Some(datagram)
    }

    /// Checks that for each byte that has been cut and is not acknowledged exactly one answers: a part of
    /// `answerable`, or what is to be sent again. `cut` says up to where record `number` has been cut.
    #[cfg(test)]
    pub(super) fn assert_each_byte_is_answered_for_once(
        &self,
        answerable: &[RecordRange],
        cut: impl Fn(u64) -> Option<u32>,
    ) {
        let mut answered: BTreeMap<u64, Coverage> =
            self.records.iter().map(|(number, sending)| (*number, Coverage::new(sending.acked.length()))).collect();
        let mut add = |number: u64, range: Range<u32>| {
            let (Some(sending), Some(answered)) = (self.records.get(&number), answered.get_mut(&number)) else {
                return;
            };
            sending.acked.missing(range, |range| {
                let length = range.end - range.start;
                assert_eq!(answered.insert(range.clone()), length, "record {number}, {range:?} answered for twice");
            });
        };
        for part in answerable {
            add(part.record, part.range());
        }
        for (number, sending) in &self.records {
            assert_eq!(self.again.contains(number), !sending.again.is_empty());
            sending.again.iter().for_each(|range| add(*number, range.clone()));
        }
        for (number, answered) in answered {
            let acked = &self.records[&number].acked;
            acked.missing(0..cut(number).unwrap_or(acked.length()), |range| {
                answered.missing(range, |range| panic!("record {number}, {range:?} answered for by none"));
            });
        }
    }
}
