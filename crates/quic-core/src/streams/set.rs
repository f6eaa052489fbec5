//! All streams of a connection at one end, and what its application does with them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use fairpath_engine::Timestamp;
use rangemap::RangeSet;
use web_time::Duration;

use super::config::{StreamsConfig, WINDOW, WINDOW_ALL};
use super::error::StreamError;
use super::id::{StreamId, StreamKind, StreamsToken};
use super::part::{Due, StreamDatagram};
use super::recv::{Read, RecvHalf};
use super::rescue::Rescue;
use super::schedule::Schedule;
use super::send::SendHalf;
use super::stream::{Stream, Sums};
use super::window::Window;
use super::wire::{Limits, NUMBER_MAX};
use crate::carrier::{Buffer, InFlight};

/// The round trip that windows are sized for before one is known.
const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Something that the application may act on. Each is told once until it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer has opened a stream: see [`Streams::accept`].
    Opened,
    /// One may be opened, after none could be.
    MayOpen,
    /// There is something to read, or the end, or a reset, after [`Read::Pending`].
    Readable(StreamId),
    /// There is room, after there was not enough; or the peer wants no more.
    Writable(StreamId),
    /// All that was written has arrived, and the peer knows that it is all.
    Finished(StreamId),
    /// The peer did not know the streams that were to be resumed: all of them are gone, and new ones may be opened.
    Lost,
}

/// Whether the streams may be spoken of on the connection that they are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// A server waits for the first word of the client, which says whether older streams are meant.
    Listening,
    /// A client has asked for older streams, and waits for the first word of the server.
    Asking,
    Open,
}

/// All streams of a connection at one end.
#[derive(Debug)]
pub struct Streams {
    pub(super) is_server: bool,
    pub(super) phase: Phase,
    /// The name under which they are resumed, once a connection gave it.
    pub(super) token: Option<StreamsToken>,
    /// That of the connection which they are on, for streams that begin anew.
    pub(super) fresh_token: Option<StreamsToken>,
    /// The peer asks for those of this name.
    pub(super) asked: Option<StreamsToken>,
    /// Whether the host was told of that: it answers once.
    pub(super) was_asked: bool,
    /// Whether anything was said of them on the connection that they are on.
    pub(super) has_spoken: bool,
    /// Whether the peer has said anything of these streams.
    pub(super) has_heard: bool,
    /// Whether the peer asked for streams that are not known.
    pub(super) has_refused: bool,
    /// The time, as the connection's host said it last.
    pub(super) now: Timestamp,
    pub(super) config: StreamsConfig,
    // The boxes keep the map small where it is searched, and moves of its nodes short.
    pub(super) streams: BTreeMap<u64, Box<Stream>>,
    /// How many this end has opened.
    pub(super) opened: u64,
    /// Whether the application waits for one to open.
    pub(super) wants_to_open: bool,
    /// The peer's streams that are over, by number.
    pub(super) closed: RangeSet<u64>,
    /// How many these are.
    pub(super) closed_count: u64,
    /// Streams of the peer of which the application does not know.
    pub(super) arrived: VecDeque<u64>,
    /// Whether the peer may open streams and send on them.
    pub(super) is_admitted: bool,
    /// The limits that the peer was told last, and whether that may be lost.
    pub(super) told: Limits,
    pub(super) untold: bool,
    /// The limits of this end.
    pub(super) limits: Limits,
    /// How much was sent on all streams, from the beginning.
    pub(super) sent: u64,
    /// How much came on all streams, from the beginning.
    pub(super) received: u64,
    /// The window of all streams together.
    pub(super) window: Window,
    /// Its part of the budget.
    pub(super) borrowed: u64,
    /// Growth of all windows of streams beyond their first sizes, in bytes.
    pub(super) grown: u64,
    pub(super) round_trip: Duration,
    pub(super) due: BTreeSet<Due>,
    pub(super) schedule: Schedule,
    /// Streams that have something to send that costs no credit.
    pub(super) free: BTreeSet<u64>,
    pub(super) sums: Sums,
    pub(super) in_flight: InFlight<StreamDatagram>,
    pub(super) rescue: Rescue,
    pub(super) buffer: Buffer,
    pub(super) resent_bytes: u64,
    pub(super) events: VecDeque<StreamEvent>,
}

impl Streams {
    /// One end of streams. The peer may open none before [`Streams::admit`], and this end none before the peer has
    /// admitted it.
    pub(crate) fn new(is_server: bool, config: StreamsConfig) -> Self {
        let window = Window::new(WINDOW_ALL, config.connection_max.get(), 0);
        Self {
            is_server,
            phase: if is_server { Phase::Listening } else { Phase::Open },
            token: None,
            fresh_token: None,
            asked: None,
            was_asked: false,
            has_spoken: false,
            has_heard: false,
            has_refused: false,
            now: Timestamp::ZERO,
            config,
            streams: BTreeMap::new(),
            opened: 0,
            wants_to_open: false,
            closed: RangeSet::new(),
            closed_count: 0,
            arrived: VecDeque::new(),
            is_admitted: false,
            told: Limits::default(),
            untold: false,
            limits: Limits::default(),
            sent: 0,
            received: 0,
            window,
            borrowed: 0,
            grown: 0,
            round_trip: ROUND_TRIP,
            due: BTreeSet::new(),
            schedule: Schedule::default(),
            free: BTreeSet::new(),
            sums: Sums::default(),
            in_flight: InFlight::default(),
            rescue: Rescue::default(),
            buffer: Buffer::default(),
            resent_bytes: 0,
            events: VecDeque::new(),
        }
    }

    /// From now on the peer may open streams, with these bounds.
    pub(crate) fn admit_with(&mut self, config: StreamsConfig) {
        if !self.is_admitted {
            self.window = Window::new(WINDOW_ALL, config.connection_max.get(), 0);
            self.config = config;
        }
        self.admit();
    }

    /// From now on the peer may open streams.
    pub(super) fn admit(&mut self) {
        if !std::mem::replace(&mut self.is_admitted, true) {
            self.due.insert(Due::Limits);
        }
    }

    /// Sets the round trip that windows are sized for: the slowest of the paths in use.
    pub(crate) fn set_round_trip(&mut self, round_trip: Duration) {
        self.round_trip = round_trip;
    }

    /// The time for all that follows.
    pub(crate) fn set_now(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Opens a stream. `None` where the peer allows no more now; [`StreamEvent::MayOpen`] follows.
    pub fn open(&mut self, kind: StreamKind) -> Option<StreamId> {
        if self.opened >= self.limits.streams {
            self.wants_to_open = true;
            return None;
        }
        let id = self.opened << 1 | u64::from(self.is_server);
        self.opened += 1;
        self.add(id, Some(kind));
        self.touch(id, |stream| stream.send.write(Bytes::copy_from_slice(&[kind.0])));
        Some(StreamId(id))
    }

    /// How many this end has opened.
    pub fn opened_count(&self) -> u64 {
        self.opened
    }

    /// The next stream that the peer has opened, and its kind.
    pub fn accept(&mut self) -> Option<(StreamId, StreamKind)> {
        let id = self.arrived.pop_front()?;
        let kind = self.streams.get(&id).and_then(|stream| stream.kind)?;
        Some((StreamId(id), kind))
    }

    /// Writes as much of `data` as there is room for, and says how much that was. Where it was not all,
    /// [`StreamEvent::Writable`] follows.
    ///
    /// # Errors
    ///
    /// Where the peer wants no more, or this end has finished.
    pub fn write(&mut self, id: StreamId, mut data: Bytes) -> Result<usize, StreamError> {
        self.write_up_to(id, data.len(), |room| data.split_to(room))
    }

    /// [`write`](Self::write) that copies no more than there is room for: a writer with much to say is asked again for
    /// each little that leaves.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn write_slice(&mut self, id: StreamId, data: &[u8]) -> Result<usize, StreamError> {
        self.write_up_to(id, data.len(), |room| Bytes::copy_from_slice(&data[..room]))
    }

    /// Writes as many of the `length` bytes as there is room for, from the first on.
    fn write_up_to(
        &mut self,
        StreamId(id): StreamId,
        length: usize,
        first: impl FnOnce(usize) -> Bytes,
    ) -> Result<usize, StreamError> {
        let much = self.sums.much;
        let closed = Err(StreamError::Closed(StreamId(id)));
        let write = |stream: &mut Stream| {
            if let Some(code) = stream.send.stopped() {
                return Err(StreamError::Stopped(code));
            }
            if !stream.send.is_open() {
                return closed;
            }
            let room = usize::try_from(stream.room(much)).unwrap_or(usize::MAX);
            let written = stream.send.write(first(length.min(room)));
            stream.wants_to_write |= written < length;
            Ok(written)
        };
        self.touch(id, write).unwrap_or(closed)
    }

    /// No more is written: the peer reads the end after all that was.
    ///
    /// # Errors
    ///
    /// Where it was finished or reset before.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let is_done = self.touch(id.0, |stream| stream.send.finish()) == Some(true);
        is_done.then_some(()).ok_or(StreamError::Closed(id))
    }

    /// Gives up sending: what has not arrived is let go, and the peer's reader gets `code`, whatever stands before it.
    /// Where all has arrived already, nothing happens.
    pub fn reset(&mut self, StreamId(id): StreamId, code: u64) {
        if self.touch(id, |stream| stream.send.reset(code.min(NUMBER_MAX))) == Some(true) {
            self.due.insert(Due::Reset(id));
        }
    }

    /// Gives up reading: what came and was not read is let go, and the peer's writer gets `code`.
    pub fn stop(&mut self, StreamId(id): StreamId, code: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let unread = stream.recv.unread();
        if stream.recv.stop(code.min(NUMBER_MAX)) {
            self.due.insert(Due::Stop(id));
            self.on_taken(unread);
        }
        self.touch(id, |_| ());
    }

    /// The next bytes of a stream, up to `most`. Where none have come, [`StreamEvent::Readable`] follows.
    ///
    /// # Errors
    ///
    /// Where the peer gave up; that is said once. What came before it is not read any more.
    pub fn read(&mut self, StreamId(id): StreamId, most: usize) -> Result<Read, StreamError> {
        let (now, round_trip) = (self.now, self.round_trip);
        let room = (self.config.connection_max.get() / 2).saturating_sub(self.grown);
        let read = |stream: &mut Stream| {
            let read = stream.recv.read(most.max(1));
            let mut growth = 0;
            match &read {
                Ok(Read::Data(data)) => {
                    let wanted = stream.recv.window.on_taken(data.len() as u64, now, round_trip);
                    growth = wanted.min(room).min(stream.recv.window.growth_left());
                    stream.recv.window.grow(growth);
                }
                Ok(Read::Pending) => stream.wants_to_read = true,
                _ => {}
            }
            (read, growth, stream.recv.wants_credit() && stream.recv.window.is_due())
        };
        let Some((read, growth, is_credit_due)) = self.touch(id, read) else { return Ok(Read::End) };
        self.grown += growth;
        if is_credit_due {
            self.due.insert(Due::Credit(id));
        }
        if let Ok(Read::Data(data)) = &read {
            self.on_taken(data.len() as u64);
        }
        read.map_err(StreamError::Reset)
    }

    /// Whether more should be written now. Where not, [`StreamEvent::Writable`] follows.
    pub fn has_room(&mut self, StreamId(id): StreamId) -> bool {
        let much = self.sums.much;
        let ask = |stream: &mut Stream| {
            stream.wants_to_write = !stream.has_room(much);
            !stream.wants_to_write
        };
        self.touch(id, ask).unwrap_or(true)
    }

    /// Whether the stream is known: one that both ends are done with is not.
    pub fn contains(&self, StreamId(id): StreamId) -> bool {
        self.streams.contains_key(&id)
    }

    /// How many streams are open.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Whether all that was written has arrived, with every end and reset, and the peer knows all that it may do.
    pub fn is_flushed(&self) -> bool {
        self.is_idle()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// How much came and was not read, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.received - self.window.taken()
    }

    /// The most that may come now and lie unread, in bytes.
    pub fn window_bytes(&self) -> u64 {
        self.window.size()
    }

    /// How much was written and never sent, in bytes.
    pub fn unsent_bytes(&self) -> u64 {
        self.sums.unsent
    }

    /// How much was sent and is not acknowledged, in bytes.
    pub fn unacked_bytes(&self) -> u64 {
        self.sums.unacked
    }

    /// How much more may be sent on all streams together, in bytes.
    pub fn credit_left(&self) -> u64 {
        self.limits.bytes.saturating_sub(self.sent)
    }

    /// The bytes that the peer lets streams with something to send send now.
    pub(crate) fn sendable_bytes(&self) -> u64 {
        self.sums.credit.min(self.credit_left())
    }

    /// How much was sent once more, in bytes.
    pub fn resent_bytes(&self) -> u64 {
        self.resent_bytes
    }

    /// How much came on all streams, each byte once.
    pub fn received_bytes(&self) -> u64 {
        self.received
    }

    // ---- inside

    pub(super) fn add(&mut self, id: u64, kind: Option<StreamKind>) {
        let recv = RecvHalf::new(Window::new(WINDOW, self.config.window_max.get(), WINDOW));
        let send = SendHalf::new(self.limits.window);
        let stream = Stream { send, recv, kind, wants_to_read: true, wants_to_write: false, is_finish_told: false };
        self.streams.insert(id, Box::new(stream));
    }

    /// Does something with a stream, and what follows from it. `None` where there is none of this id.
    pub(super) fn touch<T>(&mut self, id: u64, act: impl FnOnce(&mut Stream) -> T) -> Option<T> {
        let Self { streams, sums, free, schedule, events, .. } = self;
        let stream = streams.get_mut(&id)?;
        sums.subtract(stream);
        let done = act(stream);
        // It counts itself where it waits.
        let much = sums.much + 1;
        let wakes = stream.wants_to_write && (stream.send.stopped().is_some() || stream.has_room(much));
        stream.wants_to_write &= !wakes;
        sums.add(stream);
        let is_known = stream.kind.is_some();
        match stream.send.has_free() {
            true => _ = free.insert(id),
            false => _ = free.remove(&id),
        }
        if stream.send.has_free() || stream.send.has_new() {
            schedule.activate(id);
        }
        if is_known && stream.wants_to_read && stream.recv.is_readable() {
            stream.wants_to_read = false;
            events.push_back(StreamEvent::Readable(StreamId(id)));
        }
        if wakes {
            events.push_back(StreamEvent::Writable(StreamId(id)));
        }
        if !stream.is_finish_told && stream.send.has_arrived_whole() {
            stream.is_finish_told = true;
            events.push_back(StreamEvent::Finished(StreamId(id)));
        }
        if stream.send.is_done() && stream.recv.is_done() {
            self.forget(id);
        }
        Some(done)
    }

    /// Both ends are done with the stream.
    fn forget(&mut self, id: u64) {
        let Some(stream) = self.streams.remove(&id) else { return };
        self.sums.subtract(&stream);
        self.free.remove(&id);
        self.grown -= stream.recv.window.size() - WINDOW;
        if !self.is_own(id) {
            self.closed.insert(id >> 1..(id >> 1) + 1);
            self.closed_count += 1;
            self.note_limits();
        }
    }

    /// Whether this end opens streams of such ids.
    pub(super) fn is_own(&self, id: u64) -> bool {
        (id & 1 == 1) == self.is_server
    }

    /// The application has taken this many bytes, or does not want them.
    pub(super) fn on_taken(&mut self, bytes: u64) {
        let growth = self.window.on_taken(bytes, self.now, self.round_trip);
        self.grow(growth);
        self.note_limits();
    }

    /// Makes the window of all streams larger, as far as the budget goes.
    pub(super) fn grow(&mut self, bytes: u64) {
        let bytes = self.config.budget.take(bytes.min(self.window.growth_left()));
        self.borrowed += bytes;
        self.window.grow(bytes);
    }

    /// The limits of the peer.
    pub(super) fn present_limits(&self) -> Limits {
        let streams = self.closed_count.saturating_add(self.config.open_max.into());
        Limits { streams: streams.min(NUMBER_MAX), bytes: self.window.limit().min(NUMBER_MAX), window: WINDOW }
    }

    /// The peer is told of its limits where they are worth it.
    pub(super) fn note_limits(&mut self) {
        let more = self.present_limits().streams - self.told.streams;
        let are_due = self.untold || self.window.is_due() || more >= u64::from(self.config.open_max.div_ceil(4).max(1));
        if self.is_admitted && are_due {
            self.due.insert(Due::Limits);
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.config.budget.give(self.borrowed);
    }
}
