//! The two channels of a connection: messages, few and in order, and bulk records, many and in any order.
//!
//! Both are records cut into fragments that travel in QUIC DATAGRAMs (`bulk`), not in streams. Stream
//! data in flight on a path that fell silent stays there until the path works again or is closed, and a
//! path that works in one direction must not be closed. Each channel has a credit of its own, so that a
//! receiver whose disk is slow still gets messages.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use fairpath_engine::PathId;

use crate::adapter::Fate;
use crate::bulk;
use crate::bulk::{
    Credit, FragmentHeader, Malformed, Receiver, Record, RecordRange, RecordTooLarge, Sender, Violation,
};

/// The channels of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelId {
    /// Messages: they come in order, and go before bulk.
    Messages,
    /// Bulk records: they come in the order in which they are complete.
    Bulk,
}

impl ChannelId {
    pub(crate) const ALL: [Self; 2] = [Self::Messages, Self::Bulk];

    /// The bit that tells the first byte of its datagrams from that of bulk.
    fn bit(self) -> u8 {
        match self {
            Self::Messages => 0x02,
            Self::Bulk => 0,
        }
    }

    /// The channel that a datagram with this first byte is of; `None`: of neither.
    pub(crate) fn of(kind: u8) -> Option<Self> {
        let is_of = |id: &Self| [bulk::FRAGMENT, bulk::CREDIT].contains(&(kind ^ id.bit()));
        Self::ALL.into_iter().find(is_of)
    }
}

/// The receive window of a channel, in bytes and in records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) bytes: u64,
    pub(crate) records: u64,
}

/// A breach of the protocol by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error(transparent)]
    Violation(#[from] Violation),
}

/// One channel, both ways.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) sender: Sender,
    receiver: Receiver,
    /// Complete records that wait for an earlier one, by their offsets.
    waiting: BTreeMap<u64, Record>,
    id: ChannelId,
    /// The packet that carries the credit told last, until it is acknowledged.
    credit_left: Option<(PathId, u64)>,
}

/// The content of a datagram of a channel.
#[derive(Debug)]
pub(crate) enum Cargo {
    Fragment(RecordRange),
    /// A copy of a range that another packet carries too.
    Copy(RecordRange),
    Credit,
}

impl Channel {
    pub(crate) fn new(id: ChannelId, window: Window) -> Self {
        let (sender, receiver) = (Sender::new(), Receiver::small(window.bytes, window.records));
        Self { id, sender, receiver, waiting: BTreeMap::new(), credit_left: None }
    }

    pub(crate) fn set_window(&mut self, window: Window) {
        self.receiver.set_window(window.bytes, window.records);
    }

    pub(crate) fn queue(&mut self, record: Record) -> Result<(), RecordTooLarge> {
        self.sender.queue(record)
    }

    pub(crate) fn take(&mut self) -> Option<Record> {
        self.receiver.take()
    }

    /// The record at that offset. Others wait, and count against the window: a peer that leaves one out has no more held
    /// than it was allowed. Each record is looked at once, so waiting for one costs nothing per call. A second record of
    /// an offset that waits is dropped, and counts all the same.
    pub(crate) fn take_at(&mut self, offset: u64) -> Option<Record> {
        while let Some(record) = self.receiver.hand_over() {
            self.waiting.entry(record.offset).or_insert(record);
        }
        let record = self.waiting.remove(&offset)?;
        self.receiver.release(&record);
        Some(record)
    }

    /// The bytes of the peer's records that are held.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.receiver.held_bytes()
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.receiver.received_bytes()
    }

    /// How many records are complete and were not taken.
    pub(crate) fn complete_records(&self) -> usize {
        self.receiver.complete_records() + self.waiting.len()
    }

    /// A datagram of the channel came.
    pub(crate) fn on_datagram(&mut self, datagram: &[u8]) -> Result<(), ChannelError> {
        let bulk: &[u8] = match self.id {
            ChannelId::Bulk => datagram,
            ChannelId::Messages => &self.as_bulk(datagram),
        };
        match bulk.first() {
            Some(&bulk::CREDIT) => self.sender.on_credit(Credit::parse(bulk)?),
            _ => {
                let (header, data) = FragmentHeader::parse(bulk)?;
                self.receiver.on_fragment(header, data)?;
            }
        }
        Ok(())
    }

    fn as_bulk(&self, datagram: &[u8]) -> Vec<u8> {
        let mut bulk = datagram.to_vec();
        bulk.iter_mut().take(1).for_each(|kind| *kind ^= self.id.bit());
        bulk
    }

    fn of_channel(&self, datagram: Bytes) -> Bytes {
        match self.id {
            ChannelId::Bulk => datagram,
            ChannelId::Messages => {
                let mut datagram = BytesMut::from(datagram);
                datagram[0] ^= self.id.bit();
                datagram.freeze()
            }
        }
    }

    /// The credit that is to be told, if any.
    pub(crate) fn credit(&mut self) -> Option<(Bytes, Cargo)> {
        let credit = self.receiver.credit_due()?;
        Some((self.of_channel(Bytes::copy_from_slice(&credit.to_datagram())), Cargo::Credit))
    }

    /// Whether a credit is to be told.
    pub(crate) fn is_credit_due(&self) -> bool {
        self.receiver.is_credit_due()
    }

    /// Whether nothing is to be sent on it, nor on its way.
    pub(crate) fn is_listening(&self) -> bool {
        self.sender.is_idle() && !self.is_credit_due()
    }

    /// Whether something waits to be sent.
    pub(crate) fn has_work(&self) -> bool {
        self.sender.has_next()
    }

    /// The next fragment, in a datagram of at most `room` bytes.
    pub(crate) fn next(&mut self, room: usize) -> Option<(Bytes, Cargo)> {
        let fragment = self.sender.next(room)?;
        Some((self.of_channel(fragment.datagram), Cargo::Fragment(fragment.part)))
    }

    /// A copy of what is on its way on a slower path.
    pub(crate) fn reinject(
        &mut self,
        path: PathId,
        room: usize,
        is_slower: impl Fn(PathId) -> bool,
    ) -> Option<(Bytes, Cargo)> {
        let fragment = self.sender.reinject(path, room, is_slower)?;
        Some((self.of_channel(fragment.datagram), Cargo::Fragment(fragment.part)))
    }

    /// A copy of a fragment that another path has carried; `None` if it has arrived.
    pub(crate) fn repeat(&mut self, part: RecordRange) -> Option<(Bytes, Cargo)> {
        let (fragment, answers) = self.sender.repeat(part)?;
        let cargo = if answers { Cargo::Fragment(fragment.part) } else { Cargo::Copy(fragment.part) };
        Some((self.of_channel(fragment.datagram), cargo))
    }

    /// Notes the packet in which this left.
    pub(crate) fn on_sent(&mut self, cargo: Cargo, path: PathId, number: u64) {
        match cargo {
            Cargo::Fragment(fragment) => self.sender.on_sent(fragment, path, number),
            Cargo::Copy(fragment) => self.sender.on_copy_sent(fragment, path, number),
            Cargo::Credit => self.credit_left = Some((path, number)),
        }
    }

    /// It did not leave.
    pub(crate) fn on_unsent(&mut self, cargo: Cargo) {
        match cargo {
            Cargo::Fragment(fragment) => self.sender.give_back(fragment),
            Cargo::Copy(_) => {}
            Cargo::Credit => self.receiver.credit_lost(),
        }
    }

    pub(crate) fn on_fate(&mut self, fate: Fate) {
        let is_gone = match fate {
            Fate::Acked(path, number) => {
                self.sender.on_acked(path, number);
                self.credit_left = self.credit_left.filter(|left| *left != (path, number));
                false
            }
            Fate::Lost(path, number) => {
                self.sender.on_lost(path, number);
                self.credit_left == Some((path, number))
            }
            Fate::Discarded(path) => {
                self.sender.on_path_gone(path);
                self.credit_left.is_some_and(|(on, _)| on == path)
            }
        };
        self.tell_again_if(is_gone);
    }

    /// The path fell ill: what is on its way there goes elsewhere too.
    pub(crate) fn resend(&mut self, path: PathId) {
        self.sender.resend(path);
        self.tell_again_if(self.credit_left.is_some_and(|(on, _)| on == path));
    }

    fn tell_again_if(&mut self, is_gone: bool) {
        if is_gone {
            self.credit_left = None;
            self.receiver.credit_lost();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::Trust;

    /// The bytes that a peer may begin on a channel before anything is taken from it.
    fn credit(trust: Trust, id: ChannelId) -> Option<u64> {
        let (datagram, _) = Channel::new(id, trust.window(id)).credit()?;
        let mut bulk = datagram.to_vec();
        bulk[0] ^= id.bit();
        Some(Credit::parse(&bulk).expect("a credit").bytes)
    }

    #[test]
    fn a_guest_can_begin_little_and_no_bulk() {
        assert_eq!(credit(Trust::Guest, ChannelId::Messages), Some(16_000));
        assert_eq!(credit(Trust::Guest, ChannelId::Bulk), None);
        let mut bulk = Channel::new(ChannelId::Bulk, Trust::Guest.window(ChannelId::Bulk));
        bulk.set_window(Trust::Full.window(ChannelId::Bulk));
        assert!(bulk.credit().is_some() && bulk.credit().is_none(), "told once it is trusted, and once");
    }

    /// Small messages with these numbers, as a peer says them that has all the credit it wants.
    fn said(numbers: impl IntoIterator<Item = u64>) -> Vec<Bytes> {
        let mut channel = Channel::new(ChannelId::Messages, Window { bytes: 0, records: 0 });
        channel.sender.on_credit(Credit { bytes: u64::MAX, records: u64::MAX });
        for offset in numbers {
            channel.queue(Record { object: 0, offset, data: Bytes::from_static(b"x") }).expect("small");
        }
        std::iter::from_fn(|| channel.next(100)).map(|(datagram, _)| datagram).collect()
    }

    #[test]
    fn a_peer_that_leaves_out_a_message_or_repeats_one_has_no_more_held_than_its_credit() {
        for numbers in [(1..1_000).collect::<Vec<u64>>(), vec![0; 1_000]] {
            let mut channel = Channel::new(ChannelId::Messages, Window { bytes: 16_000, records: 16 });
            let (mut next, mut accepted) = (0, 0);
            for datagram in said(numbers) {
                if channel.on_datagram(&datagram).is_err() {
                    break;
                }
                accepted += 1;
                while channel.take_at(next).is_some() {
                    next += 1;
                }
            }
            assert!(accepted <= 17, "{accepted}");
        }
    }

    #[test]
    fn waiting_for_a_message_that_is_left_out_looks_at_each_other_one_once() {
        let mut channel = Channel::new(ChannelId::Messages, Window { bytes: 16_000, records: 1_000 });
        let mut datagrams = said((0..1_000).rev());
        let first = datagrams.pop().expect("the message that all others wait for");
        for datagram in datagrams {
            channel.on_datagram(&datagram).expect("within the credit");
            assert!(channel.take_at(0).is_none());
            assert_eq!(channel.receiver.complete_records(), 0, "what was looked at is not looked at again");
        }
        assert_eq!(channel.complete_records(), 999);
        channel.on_datagram(&first).expect("within the credit");
        for offset in 0..1_000 {
            assert!(channel.take_at(offset).is_some(), "{offset}");
        }
        assert_eq!(channel.held_bytes(), 0);
    }
}
