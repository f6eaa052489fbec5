//! One end: an endpoint with one connection, and an application that sends and counts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use fairpath_quic_core::bulk::Record;
use fairpath_quic_core::pairs::{Candidates, Pair, WhyNot};
use fairpath_quic_core::{
    Accepting, Application, ChannelId, Connecting, Connection, DATAGRAM_ETHERNET, Endpoint, EndpointConfig,
    EngineConfig, Event, Fingerprint, Identity, Interfaces, PATHS_MAX, PathNotice, PathReport, PathSnapshot, PathState,
    Received, Trust, Verify, search, unmapped,
};
use noq_proto::{ConnectionHandle, Transmit};

use crate::pinned::Pinned;

/// The data of a record of bulk.
const RECORD: usize = 64 << 10;

/// How often an end does what is due although nothing comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// Whenever something is due.
    #[default]
    Prompt,
    /// Up to 20 ms late, as a process on a busy machine.
    Late,
}

/// By how much a [`Host::Late`] is late.
const LATE: Duration = Duration::from_millis(20);

/// One end of a connection.
pub struct End {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    engine: EngineConfig,
    pairs: Vec<Pair>,
    /// How it keeps time.
    pub host: Host,
    next_look: Instant,
    /// Whether something has happened to it that may make it act.
    is_due: bool,
    /// When it acts although nothing happens.
    wake_at: Option<Instant>,
    /// Why the connection ended.
    pub ended: Option<String>,
    connected: bool,
    unwritten: u64,
    written: u64,
    /// What came of bulk, by record.
    pub received: u64,
    arrived: BTreeSet<u64>,
    messages_sent: u64,
    /// How many messages came.
    pub messages: u64,
    /// What went wrong that may never go wrong.
    pub violation: Option<String>,
    windows: Vec<Watched>,
    /// Whether the path of an interface was said to be open, or to be closed, where either was said.
    told: BTreeMap<String, bool>,
}

/// What a path may have in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Watched {
    largest: fairpath_core::Bytes,
    overdue: fairpath_core::Bytes,
}

/// A datagram as it leaves.
pub struct Leaving {
    /// The address here.
    pub from: Option<IpAddr>,
    /// The peer's.
    pub to: SocketAddr,
    /// What is in it.
    pub contents: Vec<u8>,
}

/// The words of the piece of data at `offset`, which no other piece has in this order.
fn words(offset: u64) -> impl Iterator<Item = [u8; 8]> {
    // Odd and without a pattern: 2⁶⁴ over the golden ratio.
    (offset..).step_by(8).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes())
}

fn piece(offset: u64, length: usize) -> Bytes {
    let mut data = Vec::with_capacity(length + 8);
    words(offset).take(length.div_ceil(8)).for_each(|word| data.extend_from_slice(&word));
    data.truncate(length);
    data.into()
}

/// Of message `number`, in bytes.
fn message_length(number: u64) -> usize {
    100 + (number % 1_000) as usize
}

fn is_piece(offset: u64, data: &[u8]) -> bool {
    let (whole, rest) = data.as_chunks::<8>();
    let mut words = words(offset);
    let is_same = whole.iter().zip(&mut words).fold(true, |same, (found, word)| same & (*found == word));
    is_same && words.next().is_some_and(|word| word.starts_with(rest))
}

impl End {
    fn new(
        identity: Option<Identity>,
        engine: &EngineConfig,
        interfaces: Interfaces,
        origin: Pinned,
        now: Instant,
    ) -> Self {
        let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: Application::Fairpath };
        let mut endpoint = Endpoint::simulated(config, Arc::new(origin)).expect("TLS");
        endpoint.set_interfaces(interfaces);
        Self {
            endpoint,
            handle: None,
            engine: engine.clone(),
            pairs: Vec::new(),
            host: Host::default(),
            next_look: now,
            is_due: true,
            wake_at: None,
            ended: None,
            connected: false,
            unwritten: 0,
            written: 0,
            received: 0,
            arrived: BTreeSet::new(),
            messages_sent: 0,
            messages: 0,
            violation: None,
            windows: Vec::new(),
            told: BTreeMap::new(),
        }
    }

    /// An end that waits to be connected to.
    pub fn server(
        identity: Identity,
        engine: &EngineConfig,
        interfaces: Vec<(String, IpAddr)>,
        origin: Pinned,
        now: Instant,
    ) -> Self {
        Self::new(Some(identity), engine, interfaces.into(), origin, now)
    }

    /// An end that connects on the first of the pairs.
    pub fn client(
        fingerprint: Fingerprint,
        engine: &EngineConfig,
        pairs: Vec<Pair>,
        origin: Pinned,
        now: Instant,
    ) -> Self {
        let interfaces: Interfaces =
            pairs.iter().map(|pair| (pair.local.name.clone(), pair.local.address)).collect::<Vec<_>>().into();
        let mut end = Self::new(None, engine, interfaces, origin, now);
        let connecting = Connecting {
            local: pairs[0].local.address,
            remote: pairs[0].remote,
            verify: Verify::Fingerprint(fingerprint),
            knock: None,
            engine,
            datagrams: search([], DATAGRAM_ETHERNET),
        };
        end.handle = Some(end.endpoint.connect(connecting, now).expect("an address"));
        end.pairs = pairs;
        end
    }

    /// The connection, while there is one, to do something with it.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.is_due = true;
        self.live()
    }

    fn live(&mut self) -> Option<&mut Connection> {
        self.endpoint.connection(self.handle?)
    }

    /// Whether the handshake is complete.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Sends so many bytes of bulk more.
    pub fn send(&mut self, bytes: u64) {
        self.unwritten = self.unwritten.saturating_add(bytes);
        self.is_due = true;
    }

    /// Sends a message.
    pub fn send_message(&mut self) {
        let number = self.messages_sent;
        self.messages_sent += 1;
        if let Some(connection) = self.connection() {
            connection.send_message(piece(number, message_length(number))).expect("small enough");
        }
    }

    /// What the engine knows of its paths.
    pub fn snapshots(&mut self, now: Instant) -> Vec<PathSnapshot> {
        self.live().map(|connection| connection.snapshots(now)).unwrap_or_default()
    }

    /// What a person is told of the paths.
    pub fn paths(&mut self) -> Vec<PathReport> {
        self.live().map(|connection| connection.paths()).unwrap_or_default()
    }

    /// The first interface of which the last that was said, that its path is open or that it is closed, is not so.
    /// Where an interface has had several paths, one to somebody's copy of a packet for instance, they are told
    /// apart by names of their own, which may change: of these nothing is said.
    pub fn told_wrongly(&mut self) -> Option<String> {
        let paths = self.paths();
        let works = |path: &PathReport| matches!(path.state, PathState::Open | PathState::Suspected);
        let is_open = |name: &str| match &*paths.iter().filter(|path| path.interface == name).collect::<Vec<_>>() {
            [only] => Some(works(only)),
            _ => None,
        };
        self.told.iter().find(|(name, told)| is_open(name) == Some(!**told)).map(|(name, told)| {
            let said = if *told { "open" } else { "closed" };
            format!("the path of {name} was said to be {said}, and is not")
        })
    }

    /// Ends the connection.
    pub fn close(&mut self, now: Instant) {
        if let Some(connection) = self.connection() {
            connection.close(0, Bytes::from_static(b"done"), now);
        }
    }

    /// A datagram came from `from` to the address `to` here. What it is answered with at once.
    pub fn receive(&mut self, from: SocketAddr, to: IpAddr, contents: Vec<u8>, now: Instant) -> Vec<Leaving> {
        self.is_due = true;
        let mut answer = Vec::new();
        // Nobody else holds the bytes, so they are not copied.
        let contents = BytesMut::from(Bytes::from(contents));
        let transmit = match self.endpoint.handle_datagram((from, to), None, contents, now, now, &mut answer) {
            Some(Received::New(incoming)) if self.handle.is_none() => {
                let datagrams = search([], DATAGRAM_ETHERNET);
                let accepting = Accepting { engine: &self.engine, datagrams, trust: Trust::Full };
                match self.endpoint.accept(*incoming, accepting, now, &mut answer) {
                    Ok(handle) => {
                        self.handle = Some(handle);
                        None
                    }
                    Err(transmit) => transmit,
                }
            }
            Some(Received::New(incoming)) => {
                self.endpoint.ignore(*incoming);
                None
            }
            Some(Received::Answer(transmit)) => Some(transmit),
            Some(Received::Connection(_)) | None => None,
        };
        transmit.into_iter().map(|transmit| leaving(&transmit, answer[..transmit.size].to_vec())).collect()
    }

    /// When [`End::drive`] is to be called without a datagram coming in.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        if self.is_due { Some(now) } else { self.wake_at }
    }

    /// Does what is to be done at `now`, if anything; what leaves goes to `send`.
    pub fn drive(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        // One that is late only with its timers transmits whenever time passes.
        if self.host == Host::Prompt && self.next_timeout(now).is_none_or(|at| at > now) {
            return;
        }
        self.is_due = false;
        if self.host == Host::Late {
            if now < self.next_look {
                // It still transmits: the driver runs between an event and what comes of it.
                self.transmit(now, send);
                self.wake_at = Some(self.next_look);
                return;
            }
            self.next_look = now + LATE;
        }
        self.endpoint.handle_timeout(now);
        self.read_events(now);
        self.write();
        self.transmit(now, send);
        // What comes of these may have to leave at once.
        self.is_due = self.read_events(now) | self.answer_questions(now);
        let at = self.endpoint.next_timeout(now);
        self.wake_at = match self.host {
            Host::Prompt => at,
            Host::Late => at.map(|at| at.max(self.next_look)),
        };
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        let mut buffer = Vec::new();
        let mut has_sent = false;
        while let Some((_, transmit)) = self.endpoint.poll_transmit(now, TRAIN, &mut buffer) {
            let contents = &buffer[..transmit.size];
            for packet in contents.chunks(transmit.segment_size.unwrap_or(transmit.size)) {
                send(leaving(&transmit, packet.to_vec()));
            }
            has_sent = true;
        }
        // Nothing has left the network meanwhile: what is in flight now is the most that was.
        if has_sent {
            self.check_in_flight(now);
        }
    }

    /// What is in flight on a path never exceeds the largest window it has had by more than a burst. What has
    /// waited for an answer for too long is in the network no more, though a late answer may change what is too
    /// long.
    fn check_in_flight(&mut self, now: Instant) {
        let Some(connection) = self.handle.and_then(|handle| self.endpoint.connection(handle)) else { return };
        for PathSnapshot { path, window, in_flight, .. } in connection.snapshots(now) {
            let overdue = connection.with_engine(now, |engine, at| engine.verdict(path, at).overdue);
            let at = path.get() as usize;
            if self.windows.len() <= at {
                self.windows.resize(at + 1, Watched::default());
            }
            let watched = &mut self.windows[at];
            watched.largest = window.max(watched.largest);
            watched.overdue = overdue.max(watched.overdue);
            if in_flight > watched.largest + watched.overdue + BURST {
                let found = format!("{in_flight:?} in flight on path {path:?} at a window of {window:?}");
                self.violation.get_or_insert(found);
            }
        }
    }

    /// Whether there was anything.
    fn read_events(&mut self, now: Instant) -> bool {
        let mut has_read = false;
        while let Some(event) = self.live().and_then(Connection::poll_event) {
            has_read = true;
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.open_paths(now);
                }
                Event::Closed(reason) => self.ended = Some(reason.to_string()),
                Event::Notice(PathNotice::Opened { interface } | PathNotice::Reopened { interface }) => {
                    self.told.insert(interface, true);
                }
                Event::Notice(PathNotice::Closed { interface, .. }) => {
                    self.told.insert(interface, false);
                }
                _ => {}
            }
        }
        has_read |= self.read();
        self.endpoint.forget_drained();
        has_read
    }

    fn open_paths(&mut self, now: Instant) {
        let Some(first) = self.pairs.first().cloned() else { return };
        let locals: Vec<_> = self.pairs.iter().map(|pair| pair.local.clone()).collect();
        let remotes: Vec<_> = self.pairs.iter().map(|pair| pair.remote).collect();
        let candidates = Candidates::new(&locals, &remotes, PATHS_MAX as usize);
        if let Some(connection) = self.live() {
            connection.open_paths(candidates, &first, now);
        }
    }

    /// Whether there were any.
    fn answer_questions(&mut self, now: Instant) -> bool {
        if self.pairs.is_empty() || !self.connected {
            return false;
        }
        let Self { endpoint, handle, pairs, .. } = self;
        let Some(connection) = handle.and_then(|handle| endpoint.connection(handle)) else { return false };
        let questions = connection.questions(now);
        let were_any = !questions.is_empty();
        for pair in questions {
            let answer = if pairs.contains(&pair) { Ok(()) } else { Err(WhyNot::NoRoute) };
            connection.on_answer(pair.local.address, pair.remote, answer);
        }
        were_any
    }

    /// Whether there was anything.
    fn read(&mut self) -> bool {
        let before = (self.received, self.messages);
        while let Some(record) = self.live().and_then(Connection::take_record) {
            let offset = record.offset;
            if !self.arrived.insert(offset) {
                self.violation.get_or_insert(format!("the record at {offset} came twice"));
            }
            if !is_piece(offset, &record.data) {
                self.violation.get_or_insert(format!("the record at {offset} came damaged"));
            }
            self.received += record.data.len() as u64;
        }
        while let Some(message) = self.live().and_then(Connection::take_message) {
            let number = self.messages;
            if message.len() != message_length(number) || !is_piece(number, &message) {
                self.violation.get_or_insert(format!("message {number} came out of order or damaged"));
            }
            self.messages += 1;
        }
        before != (self.received, self.messages)
    }

    fn write(&mut self) {
        while self.unwritten > 0 && self.connected {
            let (offset, length) = (self.written, self.unwritten.min(RECORD as u64));
            let Some(connection) = self.live() else { return };
            if !connection.has_room(ChannelId::Bulk) {
                return;
            }
            let record = Record { object: 0, offset, data: piece(offset, length as usize) };
            connection.send_record(record).expect("small enough");
            self.written += length;
            self.unwritten -= length;
        }
    }
}

/// Packets leave in bursts of so much at most, beyond a window.
const BURST: fairpath_core::Bytes = fairpath_core::Bytes::new(16 * 1_472);

/// How many packets are made at once.
const TRAIN: NonZeroUsize = NonZeroUsize::new(10).expect("not zero");

fn leaving(transmit: &Transmit, contents: Vec<u8>) -> Leaving {
    Leaving { from: transmit.src_ip, to: unmapped(transmit.destination), contents }
}
