//! The sending end of bulk data.

use std::collections::VecDeque;

use bytes::Bytes;
use fairpath_engine::PathId;

use super::record::{Credit, MAX_BODY, MAX_RECORD, Record, RecordRange};
use super::unfinished::Unfinished;
use super::wire::FragmentHeader;
use crate::carrier::{InFlight, Why};

/// How many unsent bytes an application may queue: 0.8 ms at 10 Gbit/s, a time in which a host runs
/// many times. It is no more than one record of the largest size.
pub const UNSENT_MAX: usize = 1 << 20;

/// How far the newest record may be from the oldest that is not acknowledged: the receiver knows a number by its low
/// 32 bits, and expands it to the nearest to what it expects.
const SPAN_MAX: u64 = 1 << 31;

/// A record with more data than [`MAX_RECORD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of {0} bytes is larger than the {MAX_RECORD} allowed")]
pub struct RecordTooLarge(pub usize);

/// A fragment to be sent in one DATAGRAM frame.
#[derive(Clone, Debug)]
#[must_use = "what is neither sent nor given back never arrives"]
pub struct Fragment {
    /// The whole DATAGRAM.
    pub datagram: Bytes,
    /// The record, and the range of it.
    pub part: RecordRange,
}

/// The record that is being cut.
#[derive(Clone, Copy, Debug)]
struct Cutting {
    record: u64,
    at: u32,
    length: u32,
}

/// Cuts records into fragments, notes where each went, and sends again what did not arrive.
///
/// For each byte that was cut and is not acknowledged exactly one answers: a fragment in flight, or the list of what
/// is to be sent again. A fragment of which a copy was ordered has handed its bytes on; so its loss orders no second
/// copy, and whatever the order of losses, dead paths and late acknowledgements, no byte is forgotten.
#[derive(Debug, Default)]
pub struct Sender {
    queued: VecDeque<Record>,
    unsent: usize,
    limit: Credit,
    begun: Credit,
    cutting: Option<Cutting>,
    unfinished: Unfinished,
    in_flight: InFlight<RecordRange>,
    resent_bytes: u64,
}

impl Sender {
    /// A sender that may begin nothing until the peer's first credit comes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a record at the end of what is to be sent, whether there is room or not.
    pub fn queue(&mut self, record: Record) -> Result<(), RecordTooLarge> {
        if record.data.len() > MAX_RECORD {
            return Err(RecordTooLarge(record.data.len()));
        }
        self.unsent += record.body() as usize;
        self.queued.push_back(record);
        Ok(())
    }

    /// Whether the application should queue another record.
    pub fn has_room(&self) -> bool {
        self.unsent < UNSENT_MAX
    }

    /// How many bytes of bodies were not sent even once.
    pub fn unsent(&self) -> usize {
        self.unsent
    }

    /// How many bytes of bodies were begun and are not acknowledged as whole records.
    pub fn unfinished(&self) -> u64 {
        self.unfinished.bytes()
    }

    /// How many bytes of bodies may be begun beside those that were.
    pub fn credit_left(&self) -> u64 {
        self.limit.bytes.saturating_sub(self.begun.bytes)
    }

    /// Whether records wait for credit alone.
    pub fn is_blocked(&self) -> bool {
        !self.queued.is_empty() && !self.has_next()
    }

    /// Whether everything that was queued is acknowledged.
    pub fn is_idle(&self) -> bool {
        self.queued.is_empty() && self.unfinished.is_empty()
    }

    /// How many bytes of bodies were cut again, because they were lost, resent or reinjected.
    pub fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// Whether [`Sender::next`] has something to send.
    pub fn has_next(&self) -> bool {
        self.unfinished.has_again() || self.cutting.is_some() || self.may_begin()
    }

    /// The next fragment for a datagram of at most `room` bytes. Retransmissions go first, oldest record
    /// first, then new data as far as the credit allows. `None` if there is nothing to send, or no room for
    /// data.
    ///
    /// The last fragment of a record is often short. Another call may fill the rest of the packet, which
    /// may carry several.
    pub fn next(&mut self, room: usize) -> Option<Fragment> {
        let space = space(room)?;
        if let Some(part) = self.unfinished.take_again(space) {
            return self.resent(part);
        }
        self.begin();
        let cutting = self.cutting.as_mut()?;
        let Cutting { record, at: start, length } = *cutting;
        let end = length.min(start.saturating_add(space));
        cutting.at = end;
        if end == length {
            self.cutting = None;
        }
        self.unsent -= (end - start) as usize;
        self.fragment(RecordRange { record, start, end, why: Why::New })
    }

    /// For the tail: a copy, to go on `path`, of a fragment in flight on another path that `slower`
    /// accepts. It gives one only if [`Sender::next`] has nothing to send. Each fragment is copied
    /// once at most and a copy never, unless it is lost. The one that was sent last comes first,
    /// because it would arrive last.
    pub fn reinject(&mut self, path: PathId, room: usize, slower: impl Fn(PathId) -> bool) -> Option<Fragment> {
        let space = space(room)?;
        if self.has_next() {
            return None;
        }
        loop {
            let newest = self.in_flight.hand_on_newest(path, &slower)?;
            self.unfinished.send_again(newest);
            // There is none where another copy has arrived. Where it is more than this path takes in a datagram, the
            // rest is what is to be sent next.
            if let Some(part) = self.unfinished.take_again(space) {
                return self.resent(RecordRange { why: Why::Tail, ..part });
            }
        }
    }

    /// Whether the acknowledgements cover all of `part`.
    pub fn has_arrived(&self, part: RecordRange) -> bool {
        self.unfinished.has_arrived(part)
    }

    /// `part` once more, which another path has carried, and whether it answers for its bytes: it does where they
    /// were to be sent again anyway. `None` where its record has arrived.
    pub fn repeat(&mut self, part: RecordRange) -> Option<(Fragment, bool)> {
        let answers = self.unfinished.take_of_again(part);
        let part = if answers { RecordRange { why: Why::Again, ..part } } else { part };
        Some((self.fragment(part)?, answers))
    }

    /// Notes that `part` left on `path` in packet `number`, which may carry several. After [`Sender::on_path_gone`]
    /// nothing is sent on that path; what was to go there is given back.
    pub fn on_sent(&mut self, part: RecordRange, path: PathId, number: u64) {
        self.in_flight.on_sent(part, path, number);
    }

    /// Notes that a copy of `part` left. It answers for nothing: where it is lost nothing is sent again, and where
    /// it arrives the other need not.
    pub fn on_copy_sent(&mut self, part: RecordRange, path: PathId, number: u64) {
        self.in_flight.on_copy_sent(part, path, number);
    }

    /// Notes that `part` was not sent after all. It is sent again.
    pub fn give_back(&mut self, part: RecordRange) {
        self.unfinished.send_again(part);
    }

    /// Notes that packet `number` of `path` was acknowledged. Unknown ones are ignored.
    pub fn on_acked(&mut self, path: PathId, number: u64) {
        self.in_flight.settle(path, number, |part, _| self.unfinished.on_acked(part));
    }

    /// Notes that packet `number` of `path` was lost. Unknown ones are ignored. What it carried is sent again,
    /// unless it arrived in another copy, or one is under way.
    pub fn on_lost(&mut self, path: PathId, number: u64) {
        self.in_flight.settle(path, number, |part, answerable| {
            if answerable {
                self.unfinished.send_again(part);
            }
        });
    }

    /// Sends again what is in flight on `path`, which fell ill. Acknowledgements that come late still count. What was
    /// copied already is not copied again.
    pub fn resend(&mut self, path: PathId) {
        self.in_flight.hand_on(path, |part| self.unfinished.send_again(part));
    }

    /// Sends again what is in flight on `path`, of which nothing will be heard any more.
    pub fn on_path_gone(&mut self, path: PathId) {
        self.resend(path);
        self.in_flight.forget(path);
    }

    /// The paths on which something waits for its fate.
    #[cfg(feature = "simulation")]
    pub(crate) fn answerable_paths(&self) -> impl Iterator<Item = PathId> {
        self.in_flight.answerable_paths()
    }

    /// Takes the peer's credit, which only rises: an older one may arrive after a newer one.
    pub fn on_credit(&mut self, limit: Credit) {
        self.limit.bytes = self.limit.bytes.max(limit.bytes);
        self.limit.records = self.limit.records.max(limit.records);
    }

    fn may_begin(&self) -> bool {
        let Some(record) = self.queued.front() else { return false };
        let number = self.begun.records;
        number < self.limit.records
            && self.begun.bytes + u64::from(record.body()) <= self.limit.bytes
            && self.unfinished.oldest().is_none_or(|oldest| number - oldest < SPAN_MAX)
    }

    /// Begins the next record where none is being cut and the credit allows it.
    fn begin(&mut self) {
        if self.cutting.is_some() || !self.may_begin() {
            return;
        }
        let Some(record) = self.queued.pop_front() else { return };
        let (number, length) = (self.begun.records, record.body());
        self.begun.records += 1;
        self.begun.bytes += u64::from(length);
        self.unfinished.begin(number, record);
        self.cutting = Some(Cutting { record: number, at: 0, length });
    }

    fn resent(&mut self, part: RecordRange) -> Option<Fragment> {
        self.resent_bytes += u64::from(part.end - part.start);
        self.fragment(part)
    }

    fn fragment(&mut self, part: RecordRange) -> Option<Fragment> {
        let datagram = self.unfinished.datagram(part)?;
        Some(Fragment { datagram, part })
    }

    /// Whether no packet is in flight on any path.
    #[cfg(test)]
    pub(super) fn is_nothing_in_flight(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Checks the rule that this type states.
    #[cfg(test)]
    pub(super) fn assert_each_byte_is_answered_for_once(&self) {
        let answerable: Vec<_> = self.in_flight.answerable().collect();
        self.unfinished.assert_each_byte_is_answered_for_once(&answerable, |number| {
            self.cutting.filter(|cutting| cutting.record == number).map(|cutting| cutting.at)
        });
    }
}

/// How much of a body goes into a datagram of `room` bytes; `None` where nothing does.
fn space(room: usize) -> Option<u32> {
    let space = room.checked_sub(FragmentHeader::LEN).filter(|space| *space > 0)?;
    Some(space.min(MAX_BODY as usize) as u32)
}

#[cfg(test)]
mod tests;
