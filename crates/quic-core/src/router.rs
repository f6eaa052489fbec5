//! The part of an endpoint that its connections have in common: which of them a datagram is for, and how they begin.
//!
//! It does not have the connections. So a host may drive each for itself, on as many cores as there are. The host asks
//! here whose a datagram is ([`Router::route`]) and hands it over ([`Connection::take_in`]). It passes on what the halves
//! of the stack have to say to each other ([`Connection::take_endpoint_events`], [`Router::hear`], [`Connection::hear`]).
//! [`Endpoint`](crate::Endpoint) does all of that for a host that drives them together.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use web_time::Instant;

use bytes::{Bytes, BytesMut};
use fairpath_engine::EngineConfig;
use noq_proto::{
    ConnectError, ConnectionEvent, ConnectionHandle, DatagramEvent, EndpointEvent, FourTuple, Incoming,
    MtuDiscoveryConfig, ServerConfig, Transmit,
};

use crate::adapter::ConnectionEngine;
use crate::address::mapped;
use crate::admission_key::AdmissionKey;
use crate::arrival::{Arrival, GuestCount, ReceivedDatagram};
use crate::connection::{Connection, Interfaces};
use crate::datagram::take_up_to;
use crate::forged::{self, Early};
use crate::one_way::Mark;
use crate::origin::{Origin, System};
use crate::tls::{Application, Identity, Verify};
use crate::transport::{Trust, transport};

/// How many first packets wait for a decision, which is made at once; what goes beyond is dropped.
const INCOMING_MAX: usize = 256;

/// The room behind one of them, in bytes, for the rest of a client's first flight.
const INCOMING_BYTES: u64 = 8_000;

/// How an endpoint is made.
#[derive(Debug)]
pub struct EndpointConfig {
    /// The largest datagrams to take, in bytes of UDP payload.
    pub datagram_max: u16,
    /// The configuration for peers that connect; `None`: nobody may.
    pub identity: Option<Identity>,
    /// The protocol of all its connections.
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
    /// The key of the mark by which the peer knows those who were invited.
    pub admission_key: Option<&'a AdmissionKey>,
    /// The algorithms of the connection.
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
    /// The algorithms of the connection.
    pub engine: &'a EngineConfig,
    /// How large its datagrams may become.
    pub datagrams: MtuDiscoveryConfig,
    /// How much of its data is held.
    pub trust: Trust,
}

/// A datagram that was routed.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of connections, and an allocation for each would cost more"
)]
pub enum Routed {
    /// One of a connection, which is to take it in: see [`Connection::take_in`].
    Connection(ConnectionHandle, Arrival),
    /// The first of a peer. Nothing happens until it is accepted, asked to try again, refused or ignored.
    New(Box<Incoming>),
    /// It is to be answered with this, whose contents were appended to the buffer.
    Answer(Transmit),
}

/// Says whose datagrams are, and begins connections.
#[derive(Debug)]
pub struct Router {
    quic: noq_proto::Endpoint,
    origin: Arc<dyn Origin>,
    server: Option<ServerConfig>,
    application: Application,
    interfaces: Interfaces,
    /// How many connections there are whose peers have not proved themselves.
    guests: GuestCount,
}

impl Router {
    /// A router without connections. What is random comes from the system.
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
        let (interfaces, guests) = (Arc::new([]) as Interfaces, GuestCount::default());
        Ok(Self { quic, origin, server, application, interfaces, guests })
    }

    /// The addresses here, by the names of their interfaces, for connections that begin from now on.
    pub fn set_interfaces(&mut self, interfaces: Interfaces) {
        self.interfaces = interfaces;
    }

    /// Begins a handshake.
    pub fn connect(
        &mut self,
        connecting: Connecting<'_>,
        now: Instant,
    ) -> Result<(ConnectionHandle, Connection), BeginError> {
        let (application, verify) = (self.application, connecting.verify);
        if application.is_fairpath() && verify == Verify::AnyCertificate {
            return Err(BeginError::Unverified);
        }
        let engine = connecting.engine.build().map(ConnectionEngine::new)?;
        let name = verify.server_name().to_owned();
        let mut client = self.origin.client(verify, application)?;
        client.transport_config(transport(&engine, connecting.datagrams, Trust::Full, application));
        let random = self.origin.first_id();
        let first_id = connecting.admission_key.map_or(random, |key| key.put_on(random));
        client.initial_dst_cid_provider(Arc::new(move || first_id));
        let (handle, quic) = self.quic.connect(now, client, mapped(connecting.remote), &name)?;
        let primary = Some(connecting.local);
        let mut connection = Connection::new(quic, engine, Trust::Full, self.interfaces.clone(), primary, now);
        connection.speak(application);
        connection.begin_with(first_id);
        Ok((handle, connection))
    }

    /// Finds out whose a datagram is. What is to be answered at once is appended to `answer`.
    pub fn route(&mut self, datagram: ReceivedDatagram, now: Instant, answer: &mut Vec<u8>) -> Option<Routed> {
        let ReceivedDatagram { remote, local, ecn, contents: datagram, at } = datagram;
        let mark = Mark::of(&datagram);
        // A part of a datagram that is kept holds the whole buffer, perhaps with other datagrams. Peers that have proved
        // nothing may hold little, so their datagrams are copied: handshakes, which have the long header
        // [RFC9000 §17.2], and all of them while there is a guest.
        let is_long = datagram.first().is_some_and(|first| first & 0x80 != 0);
        let datagram = match is_long || self.guests.is_any() {
            true => BytesMut::from(&datagram[..]),
            false => datagram,
        };
        let early = if is_long { forged::early(&datagram) } else { None };
        if early == Some(Early::VersionNegotiation) {
            return None;
        }
        let retry = early.map(|_| Bytes::copy_from_slice(&datagram));
        let bytes = datagram.len();
        match self.quic.handle(now, FourTuple::new(mapped(remote), Some(local)), ecn, datagram, answer)? {
            DatagramEvent::ConnectionEvent(handle, event) => {
                Some(Routed::Connection(handle, Arrival { event, mark, remote, bytes, at, retry }))
            }
            DatagramEvent::NewConnection(incoming) => Some(Routed::New(Box::new(incoming))),
            DatagramEvent::Response(transmit) => {
                Some(Routed::Answer(Transmit { src_ip: transmit.src_ip.or(Some(local)), ..transmit }))
            }
        }
    }

    /// Takes a peer in. Where that fails, it may be told so with what was appended to `answer`.
    pub fn accept(
        &mut self,
        incoming: Incoming,
        accepting: Accepting<'_>,
        now: Instant,
        answer: &mut Vec<u8>,
    ) -> Result<(ConnectionHandle, Connection), Option<Transmit>> {
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
                if accepting.trust == Trust::Guest {
                    connection.be_counted(self.guests.add());
                }
                connection.handle_timeout(now);
                Ok((handle, connection))
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

    /// Takes an event of the connection of this handle ([`Connection::take_endpoint_events`]). The answer is for
    /// [`Connection::hear`]. After [`EndpointEvent::is_drained`] the handle is another's.
    pub fn hear(&mut self, handle: ConnectionHandle, event: EndpointEvent) -> Option<ConnectionEvent> {
        self.quic.handle_event(handle, event)
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
