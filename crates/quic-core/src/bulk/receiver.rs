//! The receiving end of bulk data.

use std::collections::{BTreeMap, VecDeque};

use rangemap::RangeSet;

use super::record::{Credit, HEAD, MAX_BODY, Record};
use super::wire::{FragmentHeader, expand};
use crate::carrier::Assembly;

/// The smallest window in which every record arrives, in bytes. In a smaller one some wait until it is enlarged.
///
/// The receiver announces new credit once it is a quarter of the window. While less than that is
/// unannounced, the peer may still use more than three quarters of the window. The largest record must
/// fit into these, so a window of less than 4/3 of that record could stall.
pub const WINDOW_BYTES_MIN: u64 = 2 * MAX_BODY as u64;

/// A breach of the protocol by the peer. The connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A record longer or shorter than any can be.
    #[error("record {record} has a body of {length} bytes, not {HEAD} to {MAX_BODY}")]
    RecordLength {
        /// Its number.
        record: u64,
        /// The length announced.
        length: u32,
    },
    /// A record of two lengths.
    #[error("record {record} has a body of {length} bytes in one fragment and of {before} in an earlier one")]
    LengthChanged {
        /// Its number.
        record: u64,
        /// The length announced first.
        before: u32,
        /// The length announced now.
        length: u32,
    },
    /// A fragment beyond the end of its record, or without data.
    #[error("a fragment of {data} bytes at {offset} in record {record} is empty or beyond its end at {length}")]
    FragmentRange {
        /// The record's number.
        record: u64,
        /// Where the fragment begins.
        offset: u32,
        /// How much data it has.
        data: usize,
        /// How long the record is.
        length: u32,
    },
    /// A record whose number the credit does not cover.
    #[error("record {record} was begun where the credit is for {limit} records")]
    RecordsBeyondCredit {
        /// Its number, from 0.
        record: u64,
        /// How many records may have been begun.
        limit: u64,
    },
    /// A record whose length the credit does not cover.
    #[error("with record {record} at least {begun} bytes were begun where the credit is for {limit}")]
    BytesBeyondCredit {
        /// Its number.
        record: u64,
        /// The sum of the lengths of the records that are known.
        begun: u64,
        /// How many bytes may have been begun.
        limit: u64,
    },
}

/// Puts records together from fragments that come in any order, some of them more than once.
///
/// The bodies of incomplete records and of complete ones not yet taken never exceed the window: the
/// credit is the window plus what was taken.
#[derive(Debug)]
pub struct Receiver {
    window: Credit,
    /// The total that the peer may have begun.
    limit: Credit,
    /// The limit last announced to the peer.
    told: Credit,
    /// Whether what it was told may not have arrived.
    untold: bool,
    /// The sum of the lengths of all records of which something has come.
    begun_bytes: u64,
    taken: Credit,
    /// One more than the highest number that has come.
    expected: u64,
    /// The bodies of which something has come and something is missing.
    incomplete: BTreeMap<u64, Assembly>,
    complete: VecDeque<Record>,
    /// The numbers of all records that are complete. Between two of its ranges stands a number below the limit that is
    /// not complete, and of these there are never more than the window has records.
    completed: RangeSet<u64>,
    received_bytes: u64,
    duplicate_bytes: u64,
}

impl Receiver {
    /// A receiver that holds at most `window_bytes` bytes, raised to [`WINDOW_BYTES_MIN`], and `window_records`
    /// records, raised to 1.
    pub fn new(window_bytes: u64, window_records: u64) -> Self {
        Self::small(window_bytes.max(WINDOW_BYTES_MIN), window_records.max(1))
    }

    /// A receiver that may hold less, or nothing. Records that are too large for it do not arrive until
    /// [`Receiver::set_window`]: of a peer that nothing is known of yet, none are wanted.
    pub fn small(window_bytes: u64, window_records: u64) -> Self {
        let mut receiver = Self {
            window: Credit { bytes: window_bytes, records: window_records },
            limit: Credit::default(),
            told: Credit::default(),
            untold: false,
            begun_bytes: 0,
            taken: Credit::default(),
            expected: 0,
            incomplete: BTreeMap::new(),
            complete: VecDeque::new(),
            completed: RangeSet::new(),
            received_bytes: 0,
            duplicate_bytes: 0,
        };
        receiver.raise_limit();
        receiver
    }

    /// Changes the window. Promised credit stays valid: a smaller window holds back new credit
    /// until the excess was taken.
    pub fn set_window(&mut self, window_bytes: u64, window_records: u64) {
        self.window = Credit { bytes: window_bytes.max(WINDOW_BYTES_MIN), records: window_records.max(1) };
        self.raise_limit();
    }

    /// Takes a fragment in.
    pub fn on_fragment(&mut self, header: FragmentHeader, data: &[u8]) -> Result<(), Violation> {
        let record = expand(header.record, self.expected);
        let FragmentHeader { length, offset, .. } = header;
        if !(HEAD..=MAX_BODY).contains(&length) {
            return Err(Violation::RecordLength { record, length });
        }
        if data.is_empty() || data.len() > length.saturating_sub(offset) as usize {
            return Err(Violation::FragmentRange { record, offset, data: data.len(), length });
        }
        if let Some(assembly) = self.incomplete.get_mut(&record) {
            let before = assembly.length();
            if before != length {
                return Err(Violation::LengthChanged { record, before, length });
            }
            let new = assembly.place(offset, data);
            let is_full = assembly.is_full();
            self.count(data.len(), new);
            if is_full && let Some(assembly) = self.incomplete.remove(&record) {
                self.finish(record, assembly);
            }
            return Ok(());
        }
        if self.completed.contains(&record) {
            self.count(data.len(), 0);
            return Ok(());
        }
        self.admit(record, length)?;
        let mut assembly = Assembly::allocated(length);
        let new = assembly.place(offset, data);
        self.count(data.len(), new);
        if assembly.is_full() {
            self.finish(record, assembly);
        } else {
            self.incomplete.insert(record, assembly);
        }
        Ok(())
    }

    /// Takes the record that was complete first of those not taken. This makes room for new ones.
    pub fn take(&mut self) -> Option<Record> {
        let record = self.hand_over()?;
        self.release(&record);
        Some(record)
    }

    /// Moves the record that was complete first to a caller that keeps it. It counts against the
    /// window until it is [released](Receiver::release).
    pub(crate) fn hand_over(&mut self) -> Option<Record> {
        self.complete.pop_front()
    }

    /// Makes room for new records where this one was.
    pub(crate) fn release(&mut self, record: &Record) {
        self.taken.bytes += u64::from(record.body());
        self.taken.records += 1;
        self.raise_limit();
    }

    /// How many complete records were not taken.
    pub fn complete_records(&self) -> usize {
        self.complete.len()
    }

    /// How many bytes it holds: the bodies of incomplete records as a whole, and of those not taken.
    pub fn held_bytes(&self) -> u64 {
        self.begun_bytes - self.taken.bytes
    }

    /// Whether a credit should be told: at the beginning, where it is a quarter of the window above what was told,
    /// and where what was told was lost.
    pub fn is_credit_due(&self) -> bool {
        self.untold
            || self.limit.bytes - self.told.bytes >= self.window.bytes.div_ceil(4).max(1)
            || self.limit.records - self.told.records >= self.window.records.div_ceil(4).max(1)
    }

    /// The credit, where it should be told.
    pub fn credit_due(&mut self) -> Option<Credit> {
        self.is_credit_due().then(|| self.credit())
    }

    /// The present credit, to be told.
    pub fn credit(&mut self) -> Credit {
        self.untold = false;
        self.told = self.limit;
        self.limit
    }

    /// Notes that a credit may not have arrived.
    pub fn credit_lost(&mut self) {
        self.untold = true;
    }

    /// How many bytes of bodies have come, each counted once.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// How many bytes of bodies have come that were there already.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// Counts a new record against the credit.
    fn admit(&mut self, record: u64, length: u32) -> Result<(), Violation> {
        if record >= self.limit.records {
            return Err(Violation::RecordsBeyondCredit { record, limit: self.limit.records });
        }
        // Records before this one of which nothing has come were begun too, and their lengths are not known. So this is
        // less than what was begun, and it is all of which something is held.
        let begun = self.begun_bytes + u64::from(length);
        if begun > self.limit.bytes {
            return Err(Violation::BytesBeyondCredit { record, begun, limit: self.limit.bytes });
        }
        self.begun_bytes = begun;
        self.expected = self.expected.max(record + 1);
        Ok(())
    }

    /// Moves a record in which nothing is missing to those that may be taken.
    fn finish(&mut self, number: u64, mut assembly: Assembly) {
        self.completed.insert(number..number + 1);
        self.complete.extend(Record::from_body(assembly.take(assembly.length())));
    }

    fn count(&mut self, come: usize, new: u32) {
        self.received_bytes += u64::from(new);
        self.duplicate_bytes += come as u64 - u64::from(new);
    }

    fn raise_limit(&mut self) {
        let Self { window, taken, limit, .. } = self;
        limit.bytes = limit.bytes.max(taken.bytes.saturating_add(window.bytes));
        limit.records = limit.records.max(taken.records.saturating_add(window.records));
    }
}

#[cfg(test)]
mod tests;
