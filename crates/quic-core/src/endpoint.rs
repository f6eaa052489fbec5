//! One end of connections: takes in datagrams, makes connections, and hands out what they send.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::Bound;
#[cfg(feature = "simulation")]
use std::sync::Arc;
use web_time::Instant;

use noq_proto::{ConnectionHandle, Incoming, Transmit};

use crate::arrival::ReceivedDatagram;
use crate::connection::{Connection, Interfaces};
#[cfg(feature = "simulation")]
use crate::origin::Origin;
use crate::router::{Accepting, BeginError, Connecting, EndpointConfig, Routed, Router};

/// The kind of a received datagram, with its consequence.
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
    router: Router,
    connections: BTreeMap<ConnectionHandle, Connection>,
    /// Where the search for the next packet begins, so that none of the connections starves.
    turn: Option<ConnectionHandle>,
}

impl Endpoint {
    /// An endpoint without connections. What is random comes from the system.
    pub fn new(config: EndpointConfig) -> Result<Self, rustls::Error> {
        Router::new(config).map(Self::of)
    }

    /// The same in a simulation: what is random, and the cryptography, come from `origin`.
    #[cfg(feature = "simulation")]
    pub fn simulated(config: EndpointConfig, origin: Arc<dyn Origin>) -> Result<Self, rustls::Error> {
        Router::simulated(config, origin).map(Self::of)
    }

    fn of(router: Router) -> Self {
        Self { router, connections: BTreeMap::new(), turn: None }
    }

    /// The addresses here, by the names of their interfaces.
    pub fn set_interfaces(&mut self, interfaces: Interfaces) {
        self.connections.values_mut().for_each(|connection| connection.set_interfaces(interfaces.clone()));
        self.router.set_interfaces(interfaces);
    }

    /// Begins a handshake.
    pub fn connect(&mut self, connecting: Connecting<'_>, now: Instant) -> Result<ConnectionHandle, BeginError> {
        let (handle, connection) = self.router.connect(connecting, now)?;
        self.connections.insert(handle, connection);
        Ok(handle)
    }

    /// Takes a datagram in. What is to be answered at once is appended to `answer`.
    pub fn handle_datagram(
        &mut self,
        datagram: ReceivedDatagram,
        now: Instant,
        answer: &mut Vec<u8>,
    ) -> Option<Received> {
        match self.router.route(datagram, now, answer)? {
            Routed::Connection(handle, arrival) => {
                if let Some(connection) = self.connections.get_mut(&handle) {
                    connection.take_in(arrival, now);
                    self.exchange(handle);
                }
                Some(Received::Connection(handle))
            }
            Routed::New(incoming) => Some(Received::New(incoming)),
            Routed::Answer(transmit) => Some(Received::Answer(transmit)),
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
        let (handle, connection) = self.router.accept(incoming, accepting, now, answer)?;
        self.connections.insert(handle, connection);
        self.exchange(handle);
        Ok(handle)
    }

    /// Asks a peer to show that it receives at its address. What is to be sent is appended to `answer`.
    pub fn retry(&mut self, incoming: Incoming, answer: &mut Vec<u8>) -> Option<Transmit> {
        self.router.retry(incoming, answer)
    }

    /// Sends a peer away.
    pub fn refuse(&mut self, incoming: Incoming, answer: &mut Vec<u8>) -> Transmit {
        self.router.refuse(incoming, answer)
    }

    /// Takes no notice of a peer.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.router.ignore(incoming);
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
        loop {
            let said = connection.take_endpoint_events();
            if said.is_empty() {
                return;
            }
            said.into_iter()
                .filter_map(|event| self.router.hear(handle, event))
                .for_each(|event| connection.hear(event));
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
