//! The two ends of a path: the socket for the clients, and one socket per client for the server.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::{Count, Packet, PathRoutes};
use noq_udp::EcnCodepoint;

use crate::error::EmulatorError;
use crate::socket::Socket;
use crate::stats::{DirectionStats, PathStats};

/// IP and UDP headers: what a datagram is longer on a link.
const HEADERS_IPV4: ByteCount = ByteCount::new(20 + 8);
const HEADERS_IPV6: ByteCount = ByteCount::new(40 + 8);

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// To the server.
    Forward,
    /// To the client.
    Backward,
}

/// A client of a relay: its place, and which of the clients that have had this place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClientId {
    place: u32,
    tenancy: u32,
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) contents: Vec<u8>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) client: ClientId,
}

impl Packet for Datagram {
    fn is_ecn_capable(&self) -> bool {
        self.ecn.is_some()
    }

    fn flow(&self) -> u64 {
        u64::from(self.client.place)
    }

    fn mark(&mut self) {
        self.ecn = Some(EcnCodepoint::Ce);
    }

    fn corrupt(&mut self, random: u64) {
        self.contents.corrupt(random);
    }
}

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    tenancy: u32,
    last_seen: Timestamp,
    upstream: Socket,
}

/// One path's sockets, clients and counters.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) routes: PathRoutes,
    pub(crate) up: bool,
    pub(crate) forward: DirectionStats,
    pub(crate) backward: DirectionStats,
    target: SocketAddr,
    address: SocketAddr,
    headers: ByteCount,
    downstream: Socket,
    clients: Vec<Client>,
    places: BTreeMap<SocketAddr, u32>,
    clients_max: usize,
}

impl Relay {
    pub(crate) fn new(routes: PathRoutes, target: SocketAddr) -> Result<Self, EmulatorError> {
        let downstream = Socket::for_clients(target).map_err(EmulatorError::os("bind a relay"))?;
        let address = downstream.address().map_err(EmulatorError::os("find a relay's address"))?;
        Ok(Self {
            routes,
            up: true,
            forward: DirectionStats::default(),
            backward: DirectionStats::default(),
            target,
            address,
            headers: if target.is_ipv4() { HEADERS_IPV4 } else { HEADERS_IPV6 },
            downstream,
            clients: Vec::new(),
            places: BTreeMap::new(),
            clients_max: 1,
        })
    }

    pub(crate) fn set_clients_max(&mut self, clients_max: usize) {
        self.clients_max = clients_max;
    }

    /// Where clients send to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The size on a link of a datagram with `payload` bytes.
    pub(crate) fn size_on_link(&self, payload: usize) -> ByteCount {
        self.headers + ByteCount::new(payload as u64)
    }

    /// The sockets it reads: the one for the clients first, then one per client.
    pub(crate) fn sockets(&self) -> impl ExactSizeIterator<Item = &Socket> {
        (0..self.clients.len() + 1).map(|number| self.socket(number))
    }

    /// Socket number `number` of [`sockets`](Self::sockets).
    pub(crate) fn socket(&self, number: usize) -> &Socket {
        if number == 0 { &self.downstream } else { &self.clients[number - 1].upstream }
    }

    /// The client that a datagram from `from`, read from socket `number`, belongs to. A new client
    /// gets a place; a stranger on the server's side is nobody's.
    pub(crate) fn client_of(&mut self, number: usize, from: SocketAddr, now: Timestamp) -> Option<ClientId> {
        let place = match (number.checked_sub(1), self.places.get(&from)) {
            (Some(place), _) if from == self.target => place,
            (Some(_), _) => return None,
            (None, Some(place)) => *place as usize,
            (None, None) => self.admit(from)?,
        };
        let client = &mut self.clients[place];
        client.last_seen = now;
        Some(ClientId { place: place as u32, tenancy: client.tenancy })
    }

    /// Gives the client at `address` a place, that of the one silent longest if all are taken.
    fn admit(&mut self, address: SocketAddr) -> Option<usize> {
        let upstream = Socket::towards(self.target).ok()?;
        let place = if self.clients.len() < self.clients_max {
            let client = Client { address, tenancy: 0, last_seen: Timestamp::ZERO, upstream };
            self.clients.push(client);
            self.clients.len() - 1
        } else {
            let (place, silent) = self.clients.iter_mut().enumerate().min_by_key(|(_, client)| client.last_seen)?;
            self.places.remove(&silent.address);
            silent.address = address;
            silent.tenancy += 1;
            silent.upstream = upstream;
            place
        };
        self.places.insert(address, place as u32);
        Some(place)
    }

    /// The socket and the address with which to pass a datagram on. `None` where the client has
    /// lost its place meanwhile.
    pub(crate) fn exit(&self, client: ClientId, direction: Direction) -> Option<(&Socket, SocketAddr)> {
        let found = self.clients.get(client.place as usize).filter(|found| found.tenancy == client.tenancy)?;
        Some(match direction {
            Direction::Forward => (&found.upstream, self.target),
            Direction::Backward => (&self.downstream, found.address),
        })
    }

    pub(crate) fn direction_stats(&mut self, direction: Direction) -> &mut DirectionStats {
        match direction {
            Direction::Forward => &mut self.forward,
            Direction::Backward => &mut self.backward,
        }
    }

    pub(crate) fn stats(&self) -> PathStats {
        PathStats { up: self.up, clients: self.clients.len(), forward: self.forward, backward: self.backward }
    }
}

/// Counts one datagram of `payload` bytes.
pub(crate) fn count(count: &mut Count, payload: usize) {
    count.packets += 1;
    count.bytes += ByteCount::new(payload as u64);
}
