//! Trains: what leaves in one turn, joined so that it takes few calls to the kernel.
//!
//! The kernel takes a train of datagrams of one size from one address to another as a whole, and gives it as
//! a whole to a receiver on this machine. The order within each way is kept; what goes other ways may be
//! interleaved with it.

use std::net::{IpAddr, SocketAddr};

use fairpath_quic_core::unmapped;
use noq_proto::{EcnCodepoint, Transmit};

use crate::sockets::Sockets;

/// The kernel takes no more bytes than this at once.
const TRAIN_MAX: usize = 65_507;

/// How many bytes leave in one turn: as long as they are made, nobody else can have the connections.
const TURN: usize = 256 << 10;

/// How many trains keep their memory from one turn to the next: more than a turn has, where they are long.
const KEPT: usize = 16;

/// Datagrams that leave together.
#[derive(Debug, Default)]
struct Train {
    /// Between which addresses, and how they are marked; `None` while nothing is in it.
    way: Option<Way>,
    /// The size of each, but for the last, which may be smaller; in bytes.
    datagram: usize,
    contents: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    local: Option<IpAddr>,
    remote: SocketAddr,
    ecn: Option<EcnCodepoint>,
}

impl Way {
    fn is_between(self, other: Self) -> bool {
        (self.local, self.remote) == (other.local, other.remote)
    }
}

impl Train {
    /// Whether a datagram of `length` bytes may follow the `held` bytes that are in it.
    fn takes(&self, held: usize, way: Way, length: usize, datagrams_max: usize) -> bool {
        let size = self.datagram.max(1);
        // A single one may be a search for how large they may be, which the kernel refuses with all that is behind.
        let is_alike = length == size || (length < size && held > size);
        let has_room = held / size < datagrams_max && held + length <= TRAIN_MAX;
        self.way == Some(way) && is_alike && has_room && held.is_multiple_of(size)
    }
}

impl Train {
    fn leave(&self, way: Way, sockets: &Sockets) {
        let socket = match way.local {
            Some(local) => sockets.of(local),
            None => sockets.all().iter().find(|socket| socket.local.is_ipv4() == way.remote.is_ipv4()).cloned(),
        };
        let Some(socket) = socket.filter(|socket| socket.local.is_ipv4() == way.remote.is_ipv4()) else { return };
        socket.send(&noq_udp::Transmit {
            destination: way.remote,
            ecn: way.ecn.map(ecn),
            contents: &self.contents,
            segment_size: (self.contents.len() > self.datagram).then_some(self.datagram),
            // The socket is bound to its address: naming the source again would only cost.
            src_ip: None,
        });
    }
}

/// The same mark, as the sockets call it.
fn ecn(mark: EcnCodepoint) -> noq_udp::EcnCodepoint {
    match mark {
        EcnCodepoint::Ect0 => noq_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => noq_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => noq_udp::EcnCodepoint::Ce,
    }
}

/// What leaves in this turn.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The first `used` of them have something in them; the others are there to be filled.
    trains: Vec<Train>,
    used: usize,
    bytes: usize,
    /// Where the next datagram is written first.
    current: usize,
    begin: usize,
    /// How many datagrams the kernel takes at once.
    datagrams_max: usize,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { trains: vec![Train::default()], used: 0, bytes: 0, current: 0, begin: 0, datagrams_max: 1 }
    }

    /// Begins a turn in which trains may have so many datagrams.
    pub(super) fn begin(&mut self, datagrams_max: usize) {
        self.datagrams_max = datagrams_max;
    }

    /// Whether enough is there for one turn.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= TURN
    }

    /// Where the next datagram is to be appended, for [`Outbox::add`].
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        // The next will most likely go where the last went.
        self.begin = self.trains[self.current].contents.len();
        &mut self.trains[self.current].contents
    }

    /// Takes what was appended last: it leaves as `transmit` says.
    pub(super) fn add(&mut self, transmit: &Transmit) {
        let remote = unmapped(transmit.destination);
        let way = Way { local: transmit.src_ip.map(|local| local.to_canonical()), remote, ecn: transmit.ecn };
        let written = &mut self.trains[self.current].contents;
        written.truncate(self.begin + transmit.size);
        let length = written.len() - self.begin;
        self.bytes += length;
        let train = self.train_for(way, length);
        if let Ok([from, to]) = self.trains.get_disjoint_mut([self.current, train]) {
            to.contents.extend_from_slice(&from.contents[self.begin..]);
            from.contents.truncate(self.begin);
            self.current = train;
        }
    }

    /// Nothing was appended after all.
    pub(super) fn abandon(&mut self) {
        self.trains[self.current].contents.truncate(self.begin);
    }

    /// Takes a datagram that was made elsewhere.
    pub(super) fn push(&mut self, transmit: &Transmit, datagram: &[u8]) {
        self.space().extend_from_slice(datagram);
        self.add(transmit);
    }

    /// The train that a datagram joins, which may be a new one.
    fn train_for(&mut self, way: Way, length: usize) -> usize {
        let is_alike = |train: &Train| train.way.is_some_and(|other| other.is_between(way));
        // An earlier one than the last would change the order.
        if let Some(at) = self.trains[..self.used].iter().rposition(is_alike) {
            let held = if at == self.current { self.begin } else { self.trains[at].contents.len() };
            if self.trains[at].takes(held, way, length, self.datagrams_max) {
                return at;
            }
        }
        let at = self.used;
        self.used += 1;
        if at == self.trains.len() {
            self.trains.push(Train::default());
        }
        (self.trains[at].way, self.trains[at].datagram) = (Some(way), length);
        at
    }

    /// Sends everything. Datagrams of an address that is gone are lost, as they would be on the wire.
    pub(super) fn leave(&mut self, sockets: &Sockets) {
        for train in &mut self.trains[..self.used] {
            if let Some(way) = train.way.take() {
                train.leave(way, sockets);
            }
            train.contents.clear();
        }
        self.trains.truncate(KEPT);
        (self.used, self.bytes, self.current, self.begin) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests;
