//! One end of connections: takes in datagrams, makes connections, and hands out what they send.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;
use web_time::Instant;

use bytes::BytesMut;
use fairpath_engine::EngineConfig;
use noq_proto::{
    ConnectError, ConnectionHandle, DatagramEvent, EcnCodepoint, FourTuple, Incoming, MtuDiscoveryConfig, ServerConfig,
    Transmit,
};

use crate::adapter::ConnectionEngine;
use crate::address::mapped;
use crate::connection::{Connection, Interfaces};
use crate::datagram::take_up_to;
use crate::forged::{self, Early};
use crate::knock::KnockKey;
use crate::one_way::Mark;
use crate::origin::{Origin, System};
use crate::tls::{Application, Identity, Verify};
use crate::transport::{Trust, transport};

/// How many first packets wait for a decision, which is made at once; what goes beyond is dropped.
const INCOMING_MAX: usize = 256;

/// What may wait behind one of them, in bytes: the rest of a client's first flight.
const INCOMING_BYTES: u64 = 8_000;

/// How an endpoint is made.
#[derive(Debug)]
pub struct EndpointConfig {
    /// The largest datagrams to take, in bytes of UDP payload.
    pub datagram_max: u16,
    /// What peers may connect to; `None`: nobody may.
    pub identity: Option<Identity>,
    /// What all its connections speak.
    pub application: Application,
}

/// How a connection is made.
#[derive(Debug)]
pub struct Connecting<'a> {
    /// The address here that the handshake leaves from.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The certificate the peer must show.
    pub verify: Verify,
    /// What the peer knows the invited by.
    pub knock: Option<&'a KnockKey>,
    /// What the connection runs.
    pub engine: &'a EngineConfig,
    /// How large its datagrams may become.
    pub datagrams: MtuDiscoveryConfig,
}

/// Why a connection could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// A congestion control or scheduler of that name does not exist.
    #[error(transparent)]
    UnknownName(#[from] fairpath_engine::UnknownName),
    /// Fairpath's own protocol is spoken, and any certificate would do.
    #[error("Fairpath connects only to a certificate whose fingerprint is known")]
    Unverified,
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The stack refuses the address.
    #[error("cannot connect to the address: {0}")]
    Connect(#[from] ConnectError),
}

/// How a peer is taken in.
#[derive(Debug)]
pub struct Accepting<'a> {
    /// What the connection runs.
    pub engine: &'a EngineConfig,
    /// How large its datagrams may become.
    pub datagrams: MtuDiscoveryConfig,
    /// How much of its data is held.
    pub trust: Trust,
}

/// What a datagram was.
#[derive(Debug)]
pub enum Received {
    /// One of a connection, which has taken it in.
    Connection(ConnectionHandle),
    /// The first of a peer. Nothing happens until it is accepted, asked to try again, refused or ignored.
    New(Box<Incoming>),
    /// It is to be answered with this, whose contents were appended to the buffer.
    Answer(Transmit),
}

/// One end of connections.
#[derive(Debug)]
pub struct Endpoint {
    quic: noq_proto::Endpoint,
    origin: Arc<dyn Origin>,
    server: Option<ServerConfig>,
    application: Application,
    connections: BTreeMap<ConnectionHandle, Connection>,
    interfaces: Interfaces,
    /// Where the search for the next packet begins, so that none of the connections starves.
    turn: Option<ConnectionHandle>,
}

impl Endpoint {
    /// An endpoint without connections. What is random comes from the system.
    pub fn new(config: EndpointConfig) -> Result<Self, rustls::Error> {
        Self::of(config, Arc::new(System))
    }

    /// The same in a simulation: what is random, and the cryptography, come from `origin`.
    #[cfg(feature = "simulation")]
    pub fn simulated(config: EndpointConfig, origin: Arc<dyn Origin>) -> Result<Self, rustls::Error> {
        Self::of(config, origin)
    }

    fn of(config: EndpointConfig, origin: Arc<dyn Origin>) -> Result<Self, rustls::Error> {
        let EndpointConfig { datagram_max, identity, application } = config;
        let mut quic = origin.endpoint();
        take_up_to(datagram_max, &mut quic);
        let server = identity.map(|identity| origin.server(&identity, application).map(bounded)).transpose()?;
        let quic = noq_proto::Endpoint::new(Arc::new(quic), server.clone().map(Arc::new), true);
        let (connections, interfaces) = (BTreeMap::new(), Arc::new([]) as Interfaces);
        Ok(Self { quic, origin, server, application, connections, interfaces, turn: None })
    }

    /// The addresses here, by the names of their interfaces.
    pub fn set_interfaces(&mut self, interfaces: Interfaces) {
        self.connections.values_mut().for_each(|connection| connection.set_interfaces(interfaces.clone()));
        self.interfaces = interfaces;
    }

    /// Begins a handshake.
    pub fn connect(&mut self, connecting: Connecting<'_>, now: Instant) -> Result<ConnectionHandle, BeginError> {
        let (application, verify) = (self.application, connecting.verify);
        if application.is_fairpath() && verify == Verify::AnyCertificate {
            return Err(BeginError::Unverified);
        }
        let engine = connecting.engine.build().map(ConnectionEngine::new)?;
        let name = verify.server_name().to_owned();
        let mut client = self.origin.client(verify, application)?;
        client.transport_config(transport(&engine, connecting.datagrams, Trust::Full, application));
        let random = self.origin.first_id();
        let first_id = connecting.knock.map_or(random, |key| key.put_on(random));
        client.initial_dst_cid_provider(Arc::new(move || first_id));
        let (handle, quic) = self.quic.connect(now, client, mapped(connecting.remote), &name)?;
        let primary = Some(connecting.local);
        let mut connection = Connection::new(quic, engine, Trust::Full, self.interfaces.clone(), primary, now);
        connection.speak(application);
        connection.begin_with(first_id);
        self.connections.insert(handle, connection);
        Ok(handle)
    }

    /// A datagram came at `at`, on the way `way`: the peer's address and the address here. What is to be
    /// answered at once is appended to `answer`.
    pub fn handle_datagram(
        &mut self,
        way: (SocketAddr, IpAddr),
        ecn: Option<EcnCodepoint>,
        datagram: BytesMut,
        at: Instant,
        now: Instant,
        answer: &mut Vec<u8>,
    ) -> Option<Received> {
        let (remote, local) = way;
        let mark = Mark::of(&datagram);
        // What is kept of a datagram keeps the buffer that it came in, with others perhaps. Those who have not proved
        // themselves keep little, so of them it is copied: of handshakes, which have the long header [RFC9000 §17.2],
        // and of everybody while there is a guest.
        let is_long = datagram.first().is_some_and(|first| first & 0x80 != 0);
        let datagram = match is_long || self.connections.values().any(Connection::is_guest) {
            true => BytesMut::from(&datagram[..]),
            false => datagram,
        };
        if is_long && self.is_forged(&datagram) {
            return None;
        }
        let bytes = datagram.len();
        match self.quic.handle(now, FourTuple::new(mapped(remote), Some(local)), ecn, datagram, answer)? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                if let Some(connection) = self.connections.get_mut(&handle) {
                    connection.on_arrival(mark, at);
                    connection.on_source(remote);
                    connection.handle_datagram(event, (mapped(remote), bytes), now);
                    self.exchange(handle);
                }
                Some(Received::Connection(handle))
            }
            DatagramEvent::NewConnection(incoming) => Some(Received::New(Box::new(incoming))),
            DatagramEvent::Response(transmit) => {
                Some(Received::Answer(Transmit { src_ip: transmit.src_ip.or(Some(local)), ..transmit }))
            }
        }
    }

    /// Whether a datagram says what nobody says who should be heard.
    fn is_forged(&self, datagram: &[u8]) -> bool {
        match forged::early(datagram) {
            None => false,
            Some(Early::VersionNegotiation) => true,
            Some(Early::Retry) => !self.connections.values().any(|connection| connection.expects(datagram)),
        }
    }

    /// Takes a peer in. Where that fails, it may be told so with what was appended to `answer`.
    pub fn accept(
        &mut self,
        incoming: Incoming,
        accepting: Accepting<'_>,
        now: Instant,
        answer: &mut Vec<u8>,
    ) -> Result<ConnectionHandle, Option<Transmit>> {
        let (Some(mut server), Ok(engine)) = (self.server.clone(), accepting.engine.build()) else {
            self.quic.ignore(incoming);
            return Err(None);
        };
        let engine = ConnectionEngine::new(engine);
        server.transport_config(transport(&engine, accepting.datagrams, accepting.trust, self.application));
        let primary = incoming.local_ip().map(|local| local.to_canonical());
        match self.quic.accept(incoming, now, answer, Some(Arc::new(server))) {
            Ok((handle, quic)) => {
                let interfaces = self.interfaces.clone();
                let mut connection = Connection::new(quic, engine, accepting.trust, interfaces, primary, now);
                connection.speak(self.application);
                connection.handle_timeout(now);
                self.connections.insert(handle, connection);
                self.exchange(handle);
                Ok(handle)
            }
            Err(error) => {
                tracing::debug!(cause = %error.cause, "not accepted");
                Err(error.response)
            }
        }
    }

    /// Asks a peer to show that it receives at its address. What is to be sent is appended to `answer`.
    pub fn retry(&mut self, incoming: Incoming, answer: &mut Vec<u8>) -> Option<Transmit> {
        match self.quic.retry(incoming, answer) {
            Ok(transmit) => Some(transmit),
            Err(error) => {
                self.quic.ignore(error.into_incoming());
                None
            }
        }
    }

    /// Sends a peer away.
    pub fn refuse(&mut self, incoming: Incoming, answer: &mut Vec<u8>) -> Transmit {
        self.quic.refuse(incoming, answer)
    }

    /// Takes no notice of a peer.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.quic.ignore(incoming);
    }

    /// A connection that is not forgotten yet.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.connections.get_mut(&handle)
    }

    /// All of them.
    pub fn connections(&mut self) -> impl Iterator<Item = (ConnectionHandle, &mut Connection)> {
        self.connections.iter_mut().map(|(handle, connection)| (*handle, connection))
    }

    /// When [`Endpoint::handle_timeout`] is to be called.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.connections.values().filter_map(|connection| connection.next_timeout(now)).min()
    }

    /// Does what is due on all connections, and forgets those that are over and whose events were taken.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |connection: &Connection| connection.next_timeout(now).is_some_and(|at| at <= now);
        let due: Vec<_> =
            self.connections.iter().filter(|(_, connection)| due(connection)).map(|(handle, _)| *handle).collect();
        for handle in due {
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.handle_timeout(now);
            }
            self.exchange(handle);
        }
    }

    /// The next packets of any connection, up to `packets_max`: see [`Connection::poll_transmit`].
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        packets_max: NonZeroUsize,
        buffer: &mut Vec<u8>,
    ) -> Option<(ConnectionHandle, Transmit)> {
        let mut next = self.turn.and_then(|turn| self.connections.range(turn..).next()).map(|(handle, _)| *handle);
        for _ in 0..self.connections.len() {
            let handle = next.or_else(|| self.connections.keys().next().copied())?;
            let transmit =
                self.connections.get_mut(&handle).and_then(|one| one.poll_transmit(now, packets_max, buffer));
            self.exchange(handle);
            if let Some(transmit) = transmit {
                // The others come first once this one has nothing to send.
                self.turn = Some(handle);
                return Some((handle, transmit));
            }
            next =
                self.connections.range((Bound::Excluded(handle), Bound::Unbounded)).next().map(|(handle, _)| *handle);
        }
        None
    }

    /// Passes on what the stack's halves have to say to each other.
    fn exchange(&mut self, handle: ConnectionHandle) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        while let Some(event) = connection.poll_endpoint_event() {
            if event.is_draining() {
                connection.note_draining();
            }
            if let Some(event) = self.quic.handle_event(handle, event) {
                connection.handle_endpoint_event(event);
            }
        }
    }

    /// Hands out the connections of which the stack knows nothing any more, whose handles it gives to others
    /// from now on. So they are to be taken before a connection is begun or accepted.
    pub fn take_drained(&mut self) -> Vec<(ConnectionHandle, Connection)> {
        let drained = self.connections.iter_mut().filter_map(|(handle, one)| one.is_drained().then_some(*handle));
        let drained: Vec<_> = drained.collect();
        drained.into_iter().filter_map(|handle| self.connections.remove_entry(&handle)).collect()
    }

    /// Forgets connections that are over and whose events were taken.
    pub fn forget_drained(&mut self) {
        self.connections.retain(|_, connection| !connection.is_over());
    }
}

/// The settings that bound what is held for first packets that nothing was decided about yet.
fn bounded(mut server: ServerConfig) -> ServerConfig {
    // Tokens for later connections would be accepted without a Retry; nobody comes back with one.
    let mut tokens = noq_proto::ValidationTokenConfig::default();
    tokens.sent(0);
    server
        .validation_token_config(tokens)
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_MAX as u64 * INCOMING_BYTES);
    server
}
