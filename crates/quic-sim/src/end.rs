//! One end: an endpoint with its connections, and an application that sends and counts.

mod busy;
mod streams;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fairpath_quic_core::pairs::{Candidates, Pair, WhyNot};
use fairpath_quic_core::{
    Accepting, Application, Connecting, Connection, DATAGRAM_ETHERNET, Endpoint, EndpointConfig, EngineConfig,
    Fingerprint, Identity, Interfaces, PATHS_MAX, PathReport, PathSnapshot, Received, ReceivedDatagram, Trust, Verify,
    search, unmapped,
};
use noq_proto::{ConnectionHandle, Transmit};

use crate::clock::Clock;
use crate::lateness::{Duty, Host, LATE, Lateness};
use crate::pinned::Pinned;
use crate::session::{self, Account, Session};
use busy::Waiting;
use streams::StreamsOf;

/// How many packets are made at once.
const TRAIN: NonZeroUsize = NonZeroUsize::new(10).expect("not zero");

/// A process: where its randomness comes from, what its host's clock shows, and when it begins.
pub struct Process {
    /// Everything that is random.
    pub origin: Pinned,
    /// Its host's.
    pub clock: Clock,
    /// When it begins.
    pub now: Instant,
}

/// One end of connections. Its methods take the simulated time; its endpoint sees the host's clock.
pub struct End {
    endpoint: Endpoint,
    /// Its connections, in the order in which they began. One that connects has one.
    sessions: Vec<Session>,
    engine: EngineConfig,
    pairs: Vec<Pair>,
    /// How its host keeps time.
    pub host: Host,
    /// The clock of its host.
    pub clock: Clock,
    lateness: Lateness,
    /// Its process waits with these while it is off the processor.
    waiting: Waiting,
    /// Bytes of bulk sent on each connection as soon as it is made.
    pub greeting: u64,
    /// Bytes of bulk that the application takes of each connection, in all: a disk may be slower
    /// than the network.
    pub appetite: u64,
    /// The streams of its connections.
    streams: StreamsOf,
    /// The latest time that the endpoint was told.
    latest: Instant,
    next_look: Instant,
    /// Whether something has happened to it that may make it act.
    is_due: bool,
    /// When it acts although nothing happens, by its clock.
    wake_at: Option<Instant>,
    /// The first broken invariant.
    pub violation: Option<String>,
}

/// A datagram as it leaves.
pub struct Leaving {
    /// The address here.
    pub from: Option<IpAddr>,
    /// The peer's.
    pub to: SocketAddr,
    /// The payload.
    pub contents: Vec<u8>,
}

impl End {
    fn new(identity: Option<Identity>, engine: &EngineConfig, interfaces: Interfaces, process: Process) -> Self {
        let Process { origin, clock, now } = process;
        let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: Application::Fairpath };
        let lateness = Lateness::new(origin.seed());
        let mut endpoint = Endpoint::simulated(config, Arc::new(origin)).expect("TLS");
        endpoint.set_interfaces(interfaces);
        Self {
            endpoint,
            sessions: Vec::new(),
            engine: engine.clone(),
            pairs: Vec::new(),
            host: Host::default(),
            latest: clock.at(now),
            next_look: clock.at(now),
            clock,
            lateness,
            waiting: Waiting::default(),
            greeting: 0,
            appetite: u64::MAX,
            streams: StreamsOf::default(),
            is_due: true,
            wake_at: None,
            violation: None,
        }
    }

    /// An end that waits to be connected to.
    pub fn server(
        identity: Identity,
        engine: &EngineConfig,
        interfaces: Vec<(String, IpAddr)>,
        process: Process,
    ) -> Self {
        Self::new(Some(identity), engine, interfaces.into(), process)
    }

    /// An end that connects on the first of the pairs.
    pub fn client(fingerprint: Fingerprint, engine: &EngineConfig, pairs: Vec<Pair>, process: Process) -> Self {
        let interfaces: Interfaces =
            pairs.iter().map(|pair| (pair.local.name.clone(), pair.local.local())).collect::<Vec<_>>().into();
        let mut end = Self::new(None, engine, interfaces, process);
        let connecting = Connecting {
            local: pairs[0].local.address,
            remote: pairs[0].remote,
            verify: Verify::Fingerprint(fingerprint),
            admission_key: None,
            engine,
            datagrams: search([], DATAGRAM_ETHERNET),
        };
        let handle = end.endpoint.connect(connecting, end.latest).expect("an address");
        end.sessions.push(Session::new(handle));
        end.pairs = pairs;
        end
    }

    /// The connection that was made last, or is being made where none was.
    fn session(&self) -> Option<&Session> {
        self.sessions.iter().rev().find(|session| session.is_connected()).or(self.sessions.last())
    }

    /// That one with what the stack has of it.
    fn current(&mut self) -> Option<(&mut Session, &mut Connection)> {
        let at = self.sessions.iter().rposition(Session::is_connected);
        let session = match at {
            Some(at) => self.sessions.get_mut(at),
            None => self.sessions.last_mut(),
        }?;
        let connection = self.endpoint.connection(session.handle?)?;
        Some((session, connection))
    }

    /// The connection, while there is one, to do something with it.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.is_due = true;
        self.current().map(|(_, connection)| connection)
    }

    /// Whether the handshake is complete.
    pub fn is_connected(&self) -> bool {
        self.session().is_some_and(Session::is_connected)
    }

    /// Why the connection ended, where it did.
    pub fn ended(&self) -> Option<&str> {
        self.session()?.ended.as_deref()
    }

    /// Whether all connections before the last have ended.
    pub fn has_left_others(&self) -> bool {
        self.sessions.iter().rev().skip_while(|session| !session.is_connected()).skip(1).all(|one| one.ended.is_some())
    }

    /// The bytes of bulk received.
    pub fn received(&self) -> u64 {
        self.session().map_or(0, |session| session.received)
    }

    /// How many messages came.
    pub fn messages(&self) -> u64 {
        self.session().map_or(0, |session| session.messages)
    }

    /// The data given to the connection to send, once the connection is made.
    pub fn sent(&self) -> Option<Account> {
        self.session()?.sent()
    }

    /// The data received on it.
    pub fn came(&self) -> Option<Account> {
        self.session()?.received()
    }

    /// Sends this many more bytes of bulk.
    pub fn send(&mut self, bytes: u64) {
        if let Some((session, _)) = self.current() {
            session.send(bytes);
        }
        self.is_due = true;
    }

    /// Sends a message.
    pub fn send_message(&mut self) {
        if let Some((session, connection)) = self.current() {
            session.send_message(connection);
        }
        self.is_due = true;
    }

    /// Whether data waits that nothing but the choice of a path can hold back.
    pub fn could_send(&mut self, now: Instant) -> bool {
        let now = self.clock.at(now);
        let Some((session, connection)) = self.current() else { return false };
        session.ended.is_none() && session.is_connected() && session::could_send(connection, now)
    }

    /// The engine's snapshots of the paths.
    pub fn snapshots(&mut self, now: Instant) -> Vec<PathSnapshot> {
        let now = self.clock.at(now);
        self.current().map(|(_, connection)| connection.snapshots(now)).unwrap_or_default()
    }

    /// The paths as reported to the user.
    pub fn paths(&mut self) -> Vec<PathReport> {
        self.current().map(|(_, connection)| connection.paths()).unwrap_or_default()
    }

    /// The first interface whose path was reported in a state that it is not in.
    pub fn told_wrongly(&mut self) -> Option<String> {
        let (session, connection) = self.current()?;
        // A host that is late may not have read all reports yet.
        while session.read_event(connection).is_some() {}
        session.told_wrongly(&connection.paths())
    }

    /// Ends the connection.
    pub fn close(&mut self, now: Instant) {
        let now = self.clock.at(now);
        if let Some(connection) = self.connection() {
            connection.close(0, Bytes::from_static(b"done"), now);
        }
    }

    /// The time that the endpoint sees.
    fn tell(&mut self, now: Instant) -> Instant {
        let now = self.clock.at(now);
        if now < self.latest {
            let back = self.latest - now;
            self.violation.get_or_insert_with(|| format!("time went back by {back:?}"));
        }
        self.latest = now;
        now
    }

    /// A datagram came from `from` to the address `to` here. What it is answered with at once.
    pub fn receive(&mut self, from: SocketAddr, to: IpAddr, contents: Vec<u8>, now: Instant) -> Vec<Leaving> {
        self.is_due = true;
        if self.host.shares_its_processor() {
            self.waiting.came(from, to, contents, self.clock.at(now));
            return Vec::new();
        }
        let now = self.tell(now);
        self.take_in((from, to), contents, now, now)
    }

    /// Hands over a datagram that came at `at`. What it is answered with at once.
    fn take_in(&mut self, way: (SocketAddr, IpAddr), contents: Vec<u8>, at: Instant, now: Instant) -> Vec<Leaving> {
        let mut answer = Vec::new();
        // Nobody else holds the bytes, so they are not copied.
        let contents = BytesMut::from(Bytes::from(contents));
        let datagram = ReceivedDatagram::new(way, contents, at);
        let transmit = match self.endpoint.handle_datagram(datagram, now, &mut answer) {
            Some(Received::New(incoming)) => {
                // Their handles may be given to this one.
                self.forget_drained();
                let datagrams = search([], DATAGRAM_ETHERNET);
                let accepting = Accepting { engine: &self.engine, datagrams, trust: Trust::Full };
                match self.endpoint.accept(*incoming, accepting, now, &mut answer) {
                    Ok(handle) => {
                        self.sessions.push(Session::new(handle));
                        None
                    }
                    Err(transmit) => transmit,
                }
            }
            Some(Received::Answer(transmit)) => Some(transmit),
            Some(Received::Connection(_)) | None => None,
        };
        transmit.into_iter().map(|transmit| leaving(&transmit, answer[..transmit.size].to_vec())).collect()
    }

    /// When [`End::drive`] is to be called without a datagram coming in.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let next = if self.is_due { Some(now) } else { self.wake_at.map(|at| self.clock.when(at)) };
        match self.waiting.until() {
            Some(until) => Some(next.map_or(until, |next| next.max(until))),
            None => next,
        }
    }

    /// Does what is to be done at `now`, if anything; what leaves goes to `send`.
    pub fn drive(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        let is_due = self.next_timeout(now).is_some_and(|at| at <= now);
        // One that is late only with its timers transmits whenever time passes.
        if !is_due && self.host != Host::Late {
            return;
        }
        let now = self.tell(now);
        self.is_due = false;
        match self.host {
            Host::Prompt => self.do_all(now, send),
            Host::Busy | Host::Starved => self.do_busily(now, send),
            Host::Late if now < self.next_look => {
                // It still transmits: the driver runs between an event and what comes of it.
                self.transmit(now, send);
                self.wake_at = Some(self.next_look);
            }
            Host::Late => {
                self.next_look = now + LATE;
                self.do_all(now, send);
                self.wake_at = self.wake_at.map(|at| at.max(self.next_look));
            }
            Host::Uneven => self.do_some(now, send),
        }
        for session in &mut self.sessions {
            self.violation = self.violation.take().or_else(|| session.violation.take());
        }
    }

    fn do_all(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        self.endpoint.handle_timeout(now);
        self.read_events(now);
        self.run_streams(now);
        self.write();
        self.transmit(now, send);
        // The consequences of these may have to leave at once.
        self.is_due = self.read_events(now) | self.run_streams(now) | self.answer_questions(now);
        self.wake_at = self.endpoint.next_timeout(now);
    }

    /// Each duty, but for those that are put off.
    fn do_some(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        let mut put_off = None;
        let mut timers = None;
        for duty in Duty::ALL {
            if self.lateness.puts_off(duty, now) {
                let until = self.lateness.until(duty);
                put_off = put_off.into_iter().chain(until).min();
                timers = timers.or(until.filter(|_| duty == Duty::Timers));
                continue;
            }
            match duty {
                Duty::Timers => self.endpoint.handle_timeout(now),
                Duty::Events => {
                    self.is_due = self.read_events(now) | self.run_streams(now) | self.answer_questions(now);
                }
                Duty::Write => self.write(),
                Duty::Transmit => self.transmit(now, send),
            }
        }
        // Work that is due and was not done waits for its duty.
        let waits = |at: Instant| if at <= now { put_off.unwrap_or(at) } else { at.max(timers.unwrap_or(at)) };
        let due = self.endpoint.next_timeout(now).map(waits);
        self.wake_at = due.into_iter().chain(put_off).min();
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
            self.each(|session, connection| {
                session.check_in_flight(connection, now);
                session.check_strays(connection, now);
                session.check_held(connection.held());
            });
        }
    }

    fn each(&mut self, mut act: impl FnMut(&mut Session, &mut Connection)) {
        let Self { sessions, endpoint, .. } = self;
        for session in sessions {
            if let Some(connection) = session.handle.and_then(|handle| endpoint.connection(handle)) {
                act(session, connection);
            }
        }
    }

    /// Whether there was anything.
    fn read_events(&mut self, now: Instant) -> bool {
        let (mut has_read, greeting, appetite) = (false, self.greeting, self.appetite);
        let mut made = None;
        self.each(|session, connection| {
            while let Some(is_made) = session.read_event(connection) {
                has_read = true;
                if is_made {
                    session.send(greeting);
                    made = session.handle;
                }
            }
            has_read |= session.read(connection, appetite);
        });
        if let Some(made) = made {
            self.open_paths(made, now);
            self.begin_streams_on(made, now);
        }
        self.forget_drained();
        has_read
    }

    /// The stack gives the handles of connections that are over to others.
    fn forget_drained(&mut self) {
        for (handle, _) in self.endpoint.take_drained() {
            let of = |session: &&mut Session| session.handle == Some(handle);
            if let Some(session) = self.sessions.iter_mut().find(of) {
                session.handle = None;
            }
        }
    }

    fn open_paths(&mut self, made: ConnectionHandle, now: Instant) {
        let Some(first) = self.pairs.first().cloned() else { return };
        let mut locals: Vec<_> = self.pairs.iter().map(|pair| pair.local.clone()).collect();
        // Several pairs may begin at one.
        locals.dedup();
        let remotes: Vec<_> = self.pairs.iter().map(|pair| pair.remote).collect();
        let candidates = Candidates::new(&locals, &remotes, PATHS_MAX as usize);
        if let Some(connection) = self.endpoint.connection(made) {
            connection.open_paths(candidates, &first, now);
        }
    }

    /// Whether there were any.
    fn answer_questions(&mut self, now: Instant) -> bool {
        if self.pairs.is_empty() || !self.is_connected() {
            return false;
        }
        let pairs = std::mem::take(&mut self.pairs);
        let mut were_any = false;
        if let Some((_, connection)) = self.current() {
            for pair in connection.questions(now) {
                were_any = true;
                let answer = if pairs.contains(&pair) { Ok(()) } else { Err(WhyNot::NoRoute) };
                connection.on_answer(pair.local.local(), pair.remote, answer);
            }
        }
        self.pairs = pairs;
        were_any
    }

    fn write(&mut self) {
        self.each(Session::write);
    }
}

fn leaving(transmit: &Transmit, contents: Vec<u8>) -> Leaving {
    Leaving { from: transmit.src_ip, to: unmapped(transmit.destination), contents }
}
