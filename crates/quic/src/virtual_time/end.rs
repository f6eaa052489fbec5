//! One end: an endpoint, its connection, the engine, the policy, and an application that sends or
//! counts bytes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use fairpath_engine::{Bytes, EngineConfig, PathId as EnginePath, PathSnapshot};
use noq_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, FourTuple, PathError, PathEvent,
    PathId, PathStats, PathStatus, ServerConfig, StreamEvent, StreamId, Transmit,
};

use crate::adapter::{ConnectionEngine, PathHandle};
use crate::datagram::{DATAGRAM_ETHERNET, endpoint_config, search};
use crate::pairs::{Candidates, Pair, WhyNot};
use crate::path_manager::policy::{Paths, Policy};
use crate::tls::{Fingerprint, Identity, SERVER_NAME, client_crypto};
use crate::transport::{PATHS_MAX, Trust, transport};

/// How often the policy looks, as in real time.
const TICK: Duration = Duration::from_millis(50);

/// Streams that bulk data goes over.
const STREAMS: usize = 4;

/// How much is written at once.
const PIECE: usize = 16 << 10;

/// When the policy hears of the events of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Paced {
    /// At once.
    #[default]
    AtOnce,
    /// Only when it looks by itself: its task had no turn before.
    Late,
}

pub(super) struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    pub(super) engine: ConnectionEngine,
    /// What an end that connects is to open; the first is the one of the handshake.
    pairs: Vec<Pair>,
    server_config: Option<ServerConfig>,
    pub(super) policy: Option<Policy>,
    pub(super) hears: Paced,
    unheard: VecDeque<PathEvent>,
    look_at: Instant,
    /// The interfaces here.
    interfaces: Vec<(String, IpAddr)>,
    connected: bool,
    /// Why the connection ended.
    pub(super) ended: Option<String>,
    /// What is still to be written, and where.
    unwritten: usize,
    streams: Vec<StreamId>,
    written: BTreeMap<StreamId, usize>,
    read: BTreeMap<StreamId, usize>,
    /// The application bytes that came.
    pub(super) received: u64,
    /// The most that was in flight on a path beyond its window, when packets left on it.
    pub(super) excess: Bytes,
    /// The largest window of each path, and the most that was overdue on it.
    windows: BTreeMap<EnginePath, (Bytes, Bytes)>,
    /// The longest that the stack may take to forget a path that was closed.
    pub(super) drains: Duration,
}

/// A datagram as it leaves.
pub(super) struct Leaving {
    pub(super) from: Option<IpAddr>,
    pub(super) to: SocketAddr,
    pub(super) contents: Vec<u8>,
}

/// What the byte at `offset` of a stream is.
fn byte_at(offset: usize) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9) >> 24) as u8
}

fn seeded(seed: u64) -> Arc<noq_proto::EndpointConfig> {
    let mut config = endpoint_config(DATAGRAM_ETHERNET);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    config.rng_seed(Some(bytes));
    Arc::new(config)
}

impl End {
    fn new(endpoint: Endpoint, engine: &EngineConfig, interfaces: Vec<(String, IpAddr)>, now: Instant) -> Self {
        Self {
            endpoint,
            connection: None,
            engine: ConnectionEngine::new(engine.build().expect("names that exist")),
            pairs: Vec::new(),
            server_config: None,
            policy: None,
            hears: Paced::default(),
            unheard: VecDeque::new(),
            look_at: now,
            interfaces,
            connected: false,
            ended: None,
            unwritten: 0,
            streams: Vec::new(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            received: 0,
            excess: Bytes::ZERO,
            windows: BTreeMap::new(),
            drains: Duration::ZERO,
        }
    }

    /// An end that waits to be connected to.
    pub(super) fn server(
        identity: &Identity,
        engine: &EngineConfig,
        interfaces: Vec<(String, IpAddr)>,
        seed: u64,
        now: Instant,
    ) -> Self {
        let endpoint = Endpoint::new(seeded(seed), None, true);
        let mut end = Self::new(endpoint, engine, interfaces, now);
        let mut config = ServerConfig::with_crypto(Arc::new(identity.server_crypto().expect("a key")));
        config.transport_config(transport(&end.engine, search([], DATAGRAM_ETHERNET), Trust::Full));
        end.endpoint.set_server_config(Some(Arc::new(config.clone())));
        end.server_config = Some(config);
        end
    }

    /// An end that connects on the first of the pairs.
    pub(super) fn client(
        fingerprint: Fingerprint,
        engine: &EngineConfig,
        pairs: Vec<Pair>,
        seed: u64,
        now: Instant,
    ) -> Self {
        let interfaces = pairs.iter().map(|pair| (pair.local.name.clone(), pair.local.address)).collect();
        let mut end = Self::new(Endpoint::new(seeded(seed), None, true), engine, interfaces, now);
        let mut config = ClientConfig::new(Arc::new(client_crypto(fingerprint).expect("TLS")));
        config.transport_config(transport(&end.engine, search([], DATAGRAM_ETHERNET), Trust::Full));
        let remote = crate::socket::mapped(pairs[0].remote);
        end.connection = Some(end.endpoint.connect(now, config, remote, SERVER_NAME).expect("an address"));
        end.pairs = pairs;
        end
    }

    /// The connection.
    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection.as_mut().expect("connected").1
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Writes so many bytes more, over several streams.
    pub(super) fn send(&mut self, bytes: usize) {
        if self.streams.is_empty() {
            let connection = self.connection();
            let streams = (0..STREAMS).map(|_| connection.streams().open(Dir::Uni).expect("credit")).collect();
            self.streams = streams;
        }
        self.unwritten = self.unwritten.saturating_add(bytes);
    }

    /// What the engine knows of its paths.
    pub(super) fn snapshots(&self, now: Instant) -> Vec<PathSnapshot> {
        self.engine.with(now, |engine, at| engine.snapshots(at).collect())
    }

    /// A datagram came from `from` to the address `to` here.
    pub(super) fn receive(&mut self, from: SocketAddr, to: IpAddr, contents: &[u8], now: Instant) -> Vec<Leaving> {
        let mut answer = Vec::new();
        let way = FourTuple::new(crate::socket::mapped(from), Some(to));
        match self.endpoint.handle(now, way, None, BytesMut::from(contents), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((known, connection)) = &mut self.connection
                    && *known == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                let config = self.server_config.clone().map(Arc::new);
                self.connection = self.endpoint.accept(incoming, now, &mut answer, config).ok();
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.endpoint.ignore(incoming),
            Some(DatagramEvent::Response(transmit)) => return split(&transmit, &answer),
            None => {}
        }
        Vec::new()
    }

    /// When something is to be done without a datagram coming in.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let timeout = self.connection.as_ref().and_then(|(_, connection)| connection.poll_timeout());
        let look = self.policy.is_some().then_some(self.look_at);
        timeout.into_iter().chain(look).min()
    }

    /// Does what is to be done at `now`; what leaves goes to `send`.
    pub(super) fn drive(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        if self.connection.is_none() {
            return;
        }
        if self.connection().poll_timeout().is_some_and(|at| at <= now) {
            self.connection().handle_timeout(now);
        }
        self.read_events(now);
        self.write();
        if self.policy.is_some() && self.look_at <= now {
            self.look_at = now + TICK;
            self.look(now);
        }
        self.transmit(now, send);
        // Events may come of what was sent too.
        self.read_events(now);
        self.exchange_endpoint_events();
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        let mut buffer = Vec::new();
        let one = std::num::NonZeroUsize::new(10).expect("ten");
        while let Some(transmit) = self.connection().poll_transmit(now, one, &mut buffer) {
            split(&transmit, &buffer).into_iter().for_each(&mut *send);
            buffer.clear();
            self.check_in_flight(now);
        }
    }

    /// Notes by how much what is in flight on a path exceeds the largest window it has had. What has waited
    /// for an answer for too long is in the network no more, though a late answer may change what is too long.
    fn check_in_flight(&mut self, now: Instant) {
        for PathSnapshot { path, window, in_flight, .. } in self.snapshots(now) {
            let overdue = self.engine.with(now, |engine, at| engine.overdue(path, at));
            let (largest, gone) = self.windows.entry(path).or_default();
            *largest = window.max(*largest);
            *gone = overdue.max(*gone);
            self.excess = self.excess.max(in_flight.saturating_sub(*gone + *largest));
        }
    }

    fn exchange_endpoint_events(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }

    fn read_events(&mut self, now: Instant) {
        while let Some(event) = self.connection().poll() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.start_policy(now);
                }
                Event::ConnectionLost { reason } => self.ended = Some(reason.to_string()),
                Event::Path(event) if self.hears == Paced::AtOnce => self.hear(&event, now),
                Event::Path(event) => self.unheard.push_back(event),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    while let Some(id) = self.connection().streams().accept(Dir::Uni) {
                        self.read.insert(id, 0);
                        self.read(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(id),
                _ => {}
            }
        }
    }

    fn start_policy(&mut self, now: Instant) {
        let Some((_, connection)) = &mut self.connection else { return };
        let mut paths = Live { connection, interfaces: &self.interfaces, now };
        self.policy = Some(match self.pairs.first() {
            Some(first) => {
                let locals: Vec<_> = self.pairs.iter().map(|pair| pair.local.clone()).collect();
                let remotes: Vec<_> = self.pairs.iter().map(|pair| pair.remote).collect();
                let candidates = Candidates::new(&locals, &remotes, PATHS_MAX as usize);
                Policy::opener(self.engine.clone(), candidates, first, &mut paths, now)
            }
            None => Policy::acceptor(self.engine.clone(), &mut paths, now),
        });
    }

    fn hear(&mut self, event: &PathEvent, now: Instant) {
        if let PathEvent::Abandoned { id, .. } = event
            && let Some(stats) = self.connection().path_stats(*id)
        {
            // Three probe timeouts of a round-trip time and four times its variance each, which is half of it
            // after the first sample [RFC9002 §5.3, §6.2.1].
            self.drains = self.drains.max(9 * stats.rtt);
        }
        let (Some((_, connection)), Some(policy)) = (&mut self.connection, &mut self.policy) else { return };
        policy.on_event(&mut Live { connection, interfaces: &self.interfaces, now }, event, now);
    }

    fn look(&mut self, now: Instant) {
        while let Some(event) = self.unheard.pop_front() {
            self.hear(&event, now);
        }
        let (Some((_, connection)), Some(policy)) = (&mut self.connection, &mut self.policy) else { return };
        policy.look(&mut Live { connection, interfaces: &self.interfaces, now }, now);
        for pair in policy.questions(now) {
            let answer = if self.pairs.contains(&pair) { Ok(()) } else { Err(WhyNot::NoRoute) };
            policy.on_answer(pair.local.address, pair.remote, answer);
        }
    }

    fn read(&mut self, id: StreamId) {
        let (_, connection) = self.connection.as_mut().expect("a stream has a connection");
        let Some(offset) = self.read.get_mut(&id) else { return };
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            for byte in &chunk.bytes {
                assert_eq!(*byte, byte_at(*offset), "stream {id} at {offset}");
                *offset += 1;
            }
            self.received += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize();
    }

    fn write(&mut self) {
        for id in self.streams.clone() {
            while self.unwritten > 0 {
                let offset = self.written.get(&id).copied().unwrap_or(0);
                let piece: Vec<u8> = (offset..offset + PIECE.min(self.unwritten)).map(byte_at).collect();
                let Ok(count) = self.connection().send_stream(id).write(&piece) else { break };
                self.written.insert(id, offset + count);
                self.unwritten -= count;
            }
        }
    }
}

/// The datagrams of a batch.
fn split(transmit: &Transmit, contents: &[u8]) -> Vec<Leaving> {
    let contents = &contents[..transmit.size];
    let datagrams = contents.chunks(transmit.segment_size.unwrap_or(transmit.size).max(1));
    let to = crate::socket::unmapped(transmit.destination);
    datagrams.map(|one| Leaving { from: transmit.src_ip, to, contents: one.to_vec() }).collect()
}

/// The paths of a connection of the stack.
struct Live<'a> {
    connection: &'a mut Connection,
    interfaces: &'a [(String, IpAddr)],
    now: Instant,
}

impl Paths for Live<'_> {
    fn stats(&mut self, id: PathId) -> Option<PathStats> {
        self.connection.path_stats(id)
    }

    fn network_path(&mut self, id: PathId) -> Option<FourTuple> {
        self.connection.network_path(id).ok()
    }

    fn engine_path(&mut self, id: PathId) -> Option<EnginePath> {
        self.connection.congestion_state(id).and_then(|controller| PathHandle::of(controller.clone_box()))
    }

    fn ping(&mut self, id: PathId) {
        let _ = self.connection.ping_path(id);
    }

    fn set_backup(&mut self, id: PathId, backup: bool) {
        let status = if backup { PathStatus::Backup } else { PathStatus::Available };
        let _ = self.connection.set_path_status(id, status);
    }

    fn close(&mut self, id: PathId) -> bool {
        self.connection.close_path(self.now, id, 0u32.into()).is_ok()
    }

    fn open(&mut self, network_path: FourTuple, backup: bool) -> Result<PathId, PathError> {
        let status = if backup { PathStatus::Backup } else { PathStatus::Available };
        self.connection.open_path(network_path, status, self.now)
    }

    fn interface(&self, local: Option<IpAddr>) -> Option<(String, IpAddr)> {
        let known = self.interfaces.iter().find(|(_, address)| local.is_none_or(|local| local == *address));
        known.cloned()
    }
}
