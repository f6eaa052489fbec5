//! The reliable data of a connection: messages, records and streams.

use bytes::Bytes;
use fairpath_engine::PathId;

use crate::adapter::Fate;
use crate::bulk;
use crate::channel::{Cargo, Channel, ChannelId};
use crate::streams::{self, Streams, StreamsConfig};
use crate::transport::Trust;

/// Everything that arrives for certain.
#[derive(Debug)]
pub(crate) struct Lanes {
    messages: Channel,
    bulk: Channel,
    pub(super) streams: Streams,
    /// Whether the streams were taken away, to go on elsewhere.
    are_streams_gone: bool,
    /// By how many bytes streams are ahead of records since both have had something to send.
    ahead: i64,
}

/// How far the application and the peer are ahead of what was sent, of records and streams together, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// Never sent. `None`: an application that has filled the room there is has more.
    pub(super) unsent: Option<u64>,
    /// Sent and not acknowledged.
    pub(super) used: u64,
    /// Allowed by the peer beside that.
    pub(super) credit: u64,
}

/// The content of a DATAGRAM of one of them.
#[derive(Debug)]
pub(super) enum Load {
    Channel(ChannelId, Cargo),
    Streams(streams::StreamDatagram),
    /// Another packet carries it too, and answers for it.
    StreamsCopy(streams::StreamDatagram),
}

/// Data that another path has carried.
#[derive(Clone, Copy, Debug)]
pub(super) enum Debt {
    Channel(ChannelId, bulk::RecordRange),
    Streams(streams::StreamDatagram),
}

impl Load {
    /// The debt of all other paths, where each is to carry all data: none for data that they owe already.
    pub(super) fn debt(&self) -> Option<Debt> {
        match self {
            Self::Channel(id, Cargo::Fragment(part)) if part.is_new() => Some(Debt::Channel(*id, *part)),
            Self::Streams(part) if part.is_new() => Some(Debt::Streams(*part)),
            _ => None,
        }
    }
}

impl Lanes {
    pub(super) fn new(trust: Trust, is_server: bool) -> Self {
        let channel = |id| Channel::new(id, trust.window(id));
        Self {
            messages: channel(ChannelId::Messages),
            bulk: channel(ChannelId::Bulk),
            streams: Streams::new(is_server, StreamsConfig::default()),
            are_streams_gone: false,
            ahead: 0,
        }
    }

    pub(super) fn channel(&self, id: ChannelId) -> &Channel {
        match id {
            ChannelId::Messages => &self.messages,
            ChannelId::Bulk => &self.bulk,
        }
    }

    pub(super) fn channel_mut(&mut self, id: ChannelId) -> &mut Channel {
        match id {
            ChannelId::Messages => &mut self.messages,
            ChannelId::Bulk => &mut self.bulk,
        }
    }

    fn channels(&self) -> [&Channel; 2] {
        [&self.messages, &self.bulk]
    }

    fn channels_mut(&mut self) -> [&mut Channel; 2] {
        [&mut self.messages, &mut self.bulk]
    }

    /// Takes the streams away. The connection has none from then on.
    pub(super) fn take_streams(&mut self, is_server: bool) -> Option<Streams> {
        if std::mem::replace(&mut self.are_streams_gone, true) {
            return None;
        }
        self.streams.on_connection_gone();
        Some(std::mem::replace(&mut self.streams, Streams::new(is_server, StreamsConfig::default())))
    }

    pub(super) fn are_streams_gone(&self) -> bool {
        self.are_streams_gone
    }

    /// Whether all that was to be sent has arrived.
    pub(super) fn are_idle(&self) -> bool {
        self.channels().iter().all(|channel| channel.sender.is_idle()) && self.streams.is_idle()
    }

    /// Whether nothing is to be sent, nor on its way.
    pub(super) fn are_listening(&self) -> bool {
        self.channels().iter().all(|channel| channel.is_listening()) && self.streams.is_idle()
    }

    /// Whether data waits to be sent and may be.
    pub(super) fn have_data(&self) -> bool {
        self.channels().iter().any(|channel| channel.has_work()) || self.streams.has_next()
    }

    /// How far the application and the peer are ahead.
    pub(super) fn ahead(&self) -> Ahead {
        let (bulk, streams) = (&self.bulk.sender, &self.streams);
        let is_full = !bulk.has_room() || streams.is_full();
        Ahead {
            unsent: (!is_full).then(|| bulk.unsent() as u64 + streams.unsent_bytes()),
            used: bulk.unfinished() + streams.unacked_bytes(),
            credit: match streams.is_idle() {
                true => bulk.credit_left(),
                false if bulk.is_idle() => streams.sendable_bytes(),
                false => bulk.credit_left().saturating_add(streams.sendable_bytes()),
            },
        }
    }

    /// Whether all that waits waits for the peer's credit alone.
    pub(super) fn are_blocked(&self) -> bool {
        let (bulk, streams) = (self.bulk.sender.is_blocked(), self.streams.is_blocked());
        bulk && !self.streams.has_data() || streams && !self.bulk.has_work()
    }

    /// A credit of records or messages, or control of streams.
    pub(super) fn next_control(&mut self) -> Option<(Bytes, Load)> {
        for id in ChannelId::ALL {
            if let Some((datagram, cargo)) = self.channel_mut(id).credit() {
                return Some((datagram, Load::Channel(id, cargo)));
            }
        }
        self.streams.next_due().map(|(datagram, part)| (datagram, Load::Streams(part)))
    }

    pub(super) fn next_message(&mut self, room: usize) -> Option<(Bytes, Load)> {
        let (datagram, cargo) = self.messages.next(room)?;
        Some((datagram, Load::Channel(ChannelId::Messages, cargo)))
    }

    /// Records or streams. Streams that send little go first; else both have the same share.
    pub(super) fn next_bulk(&mut self, room: usize) -> Option<(Bytes, Load)> {
        if !self.bulk.has_work() {
            self.ahead = 0;
            return self.next_of_streams(room);
        }
        if !self.streams.has_data() {
            self.ahead = 0;
            return self.next_record(room);
        }
        let are_streams_first = self.ahead <= 0 || self.streams.has_small();
        let next = match are_streams_first {
            true => self.next_of_streams(room).or_else(|| self.next_record(room)),
            false => self.next_record(room).or_else(|| self.next_of_streams(room)),
        }?;
        let bytes = next.0.len() as i64;
        self.ahead += if matches!(next.1, Load::Streams(_)) { bytes } else { -bytes };
        Some(next)
    }

    fn next_record(&mut self, room: usize) -> Option<(Bytes, Load)> {
        let (datagram, cargo) = self.bulk.next(room)?;
        Some((datagram, Load::Channel(ChannelId::Bulk, cargo)))
    }

    fn next_of_streams(&mut self, room: usize) -> Option<(Bytes, Load)> {
        self.streams.next_data(room).map(|(datagram, part)| (datagram, Load::Streams(part)))
    }

    /// A copy of data that is on its way on a slower path, where nothing else can be sent.
    pub(super) fn reinject(
        &mut self,
        path: PathId,
        room: usize,
        is_slower: impl Fn(PathId) -> bool,
    ) -> Option<(Bytes, Load)> {
        if let Some((datagram, part)) = self.streams.reinject(path, room, &is_slower) {
            return Some((datagram, Load::Streams(part)));
        }
        let (datagram, cargo) = self.bulk.reinject(path, room, is_slower)?;
        Some((datagram, Load::Channel(ChannelId::Bulk, cargo)))
    }

    /// A copy for `path` of what a stream waits for.
    pub(super) fn next_rescue(&mut self, path: PathId) -> Option<(Bytes, Load)> {
        let (datagram, part, answers) = self.streams.next_rescue(path)?;
        Some((datagram, if answers { Load::Streams(part) } else { Load::StreamsCopy(part) }))
    }

    /// Whether the peer has it.
    pub(super) fn has_arrived(&self, debt: Debt) -> bool {
        match debt {
            Debt::Channel(id, part) => self.channel(id).sender.has_arrived(part),
            Debt::Streams(part) => self.streams.has_arrived(part),
        }
    }

    /// Data that another path has carried, once more; `None` where it has arrived.
    pub(super) fn repeat(&mut self, debt: Debt) -> Option<(Bytes, Load)> {
        match debt {
            Debt::Channel(id, part) => {
                let (datagram, cargo) = self.channel_mut(id).repeat(part)?;
                Some((datagram, Load::Channel(id, cargo)))
            }
            Debt::Streams(part) => {
                let (datagram, part, answers) = self.streams.repeat(part)?;
                Some((datagram, if answers { Load::Streams(part) } else { Load::StreamsCopy(part) }))
            }
        }
    }

    /// It left in packet `number` of `path`.
    pub(super) fn on_sent(&mut self, load: Load, path: PathId, number: u64) {
        match load {
            Load::Channel(id, cargo) => self.channel_mut(id).on_sent(cargo, path, number),
            Load::Streams(_) | Load::StreamsCopy(_) if self.are_streams_gone => {}
            Load::Streams(part) => self.streams.on_sent(part, path, number),
            Load::StreamsCopy(part) => self.streams.on_copy_sent(part, path, number),
        }
    }

    /// It did not leave.
    pub(super) fn on_unsent(&mut self, load: Load) {
        match load {
            Load::Channel(id, cargo) => self.channel_mut(id).on_unsent(cargo),
            Load::Streams(part) if !self.are_streams_gone => self.streams.send_again(part),
            Load::Streams(_) | Load::StreamsCopy(_) => {}
        }
    }

    pub(super) fn on_fate(&mut self, fate: Fate) {
        self.channels_mut().into_iter().for_each(|channel| channel.on_fate(fate));
        match fate {
            Fate::Acked(path, number) => self.streams.on_acked(path, number),
            Fate::Lost(path, number) => self.streams.on_lost(path, number),
            Fate::Discarded(path) => self.streams.on_path_gone(path),
        }
    }

    /// The paths on which something waits for its fate.
    #[cfg(feature = "simulation")]
    pub(super) fn answerable_paths(&self) -> impl Iterator<Item = PathId> {
        let of_channels = self.channels().into_iter().flat_map(|channel| channel.sender.answerable_paths());
        of_channels.chain(self.streams.answerable_paths())
    }

    /// The path fell ill: all that is on its way there goes elsewhere too.
    pub(super) fn resend(&mut self, path: PathId) {
        self.channels_mut().into_iter().for_each(|channel| channel.resend(path));
        self.streams.resend(path);
    }
}
