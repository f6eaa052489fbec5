//! Trains: what leaves in one turn, joined so that it takes few calls to the kernel.
//!
//! The kernel takes a train of datagrams of one size from one address to another as a whole, and gives it as
//! a whole to a receiver on this machine. The order within each way is kept; what goes other ways may be
//! interleaved with it.
//!
//! A transmit of the stack is a train already. It joins the last train on its way if that has room for
//! all of it. If not, it begins a train of its own and is not copied.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use fairpath_quic_core::{Connection as Core, TRAIN_MAX, unmapped};
use noq_proto::{EcnCodepoint, Transmit};

use crate::clock;
use crate::socket::Sent;
use crate::sockets::Sockets;

/// How many bytes leave in one turn: as long as they are made, nobody else can have the connections. A shorter turn
/// wakes the receiver more often, which costs more than it brings (`cargo bench -p fairpath-quic`).
const TURN: usize = 512 << 10;

/// How many trains keep their memory from one turn to the next: more than a turn has, where they are long.
const KEPT: usize = 16;

/// After how many turns without anything to send it is given back: there is an outbox for each connection.
const IDLE: usize = 16;

/// A call that took longer was interrupted, before or after its datagrams left: a train takes a tenth of it.
const CALL_MAX: Duration = Duration::from_micros(500);

/// Datagrams that leave together.
#[derive(Debug, Default)]
struct Train {
    /// Between which addresses, and how they are marked; `None` while nothing is in it.
    way: Option<Way>,
    /// The size of each, but for the last, which may be smaller; in bytes.
    datagram: usize,
    contents: Vec<u8>,
    /// When it left, as far as is known.
    left: Option<Instant>,
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
    /// Whether `length` bytes of datagrams of `datagram` bytes each, but for the last, may follow what is in it.
    fn takes(&self, way: Way, datagram: usize, length: usize, datagrams_max: usize) -> bool {
        let (held, size) = (self.contents.len(), self.datagram.max(1));
        // A single one may be a search for how large they may be, which the kernel refuses with all that is behind.
        let is_alike = datagram == size || (length <= datagram && length < size && held > size);
        let has_room = held / size + length.div_ceil(datagram.max(1)) <= datagrams_max && held + length <= TRAIN_MAX;
        self.way == Some(way) && is_alike && has_room && held.is_multiple_of(size)
    }
}

impl Train {
    /// Sends it. What became of it, and when it left, as far as is known.
    fn leave(&self, way: Way, sockets: &Sockets) -> (Sent, Option<Instant>) {
        let socket = match way.local {
            Some(local) => sockets.of(local).or_else(|| sockets.in_place_of(local)),
            None => sockets.all().iter().find(|socket| socket.local.is_ipv4() == way.remote.is_ipv4()).cloned(),
        };
        let Some(socket) = socket.filter(|socket| socket.local.is_ipv4() == way.remote.is_ipv4()) else {
            return (Sent::Dropped, None);
        };
        let before = clock::now();
        let sent = socket.send(&noq_udp::Transmit {
            destination: way.remote,
            ecn: way.ecn.map(ecn),
            contents: &self.contents,
            segment_size: (self.contents.len() > self.datagram).then_some(self.datagram),
            // The socket is bound to its address: naming the source again would only cost.
            src_ip: None,
        });
        let after = clock::now();
        (sent, (sent == Sent::Left && after - before <= CALL_MAX).then_some(before))
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

/// The datagrams that leave in this turn.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The first `used` of them have something in them; the others are there to be filled.
    trains: Vec<Train>,
    used: usize,
    bytes: usize,
    /// Where the next datagrams are written first.
    made: Vec<u8>,
    /// How many datagrams the kernel takes at once.
    datagrams_max: usize,
    /// How many turns nothing left in.
    idle: usize,
}

impl Outbox {
    pub(super) fn new() -> Self {
        Self { trains: Vec::new(), used: 0, bytes: 0, made: Vec::new(), datagrams_max: 1, idle: 0 }
    }

    /// Begins a turn in which trains may have this many datagrams.
    pub(super) fn begin(&mut self, datagrams_max: usize) {
        self.datagrams_max = datagrams_max;
    }

    /// Whether enough is there for one turn.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= TURN
    }

    /// Where the next datagrams are to be written, in place of what is there, for [`Outbox::add`].
    pub(super) fn space(&mut self) -> &mut Vec<u8> {
        &mut self.made
    }

    /// How many datagrams may be made at once.
    pub(super) fn datagrams_max(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.datagrams_max).unwrap_or(NonZeroUsize::MIN)
    }

    /// Takes what was written last: it leaves as `transmit` says.
    pub(super) fn add(&mut self, transmit: &Transmit) {
        let remote = unmapped(transmit.destination);
        let way = Way { local: transmit.src_ip.map(|local| local.to_canonical()), remote, ecn: transmit.ecn };
        self.made.truncate(transmit.size);
        let (length, datagram) = (self.made.len(), transmit.segment_size.unwrap_or(transmit.size));
        self.bytes += length;
        let is_alike = |train: &&mut Train| train.way.is_some_and(|other| other.is_between(way));
        // An earlier one than the last would change the order.
        let last = self.trains[..self.used].iter_mut().rev().find(is_alike);
        match last.filter(|train| train.takes(way, datagram, length, self.datagrams_max)) {
            Some(train) => train.contents.extend_from_slice(&self.made),
            None => {
                if self.used == self.trains.len() {
                    self.trains.push(Train::default());
                }
                let train = &mut self.trains[self.used];
                self.used += 1;
                (train.way, train.datagram) = (Some(way), datagram);
                std::mem::swap(&mut train.contents, &mut self.made);
            }
        }
    }

    /// Takes a datagram that was made elsewhere.
    pub(super) fn push(&mut self, transmit: &Transmit, datagram: &[u8]) {
        self.made.clear();
        self.made.extend_from_slice(datagram);
        self.add(transmit);
    }

    /// Sends everything. Datagrams of an address that is gone are lost, as they would be on the wire. Whether some were
    /// kept back, because a socket is full.
    pub(super) fn leave(&mut self, sockets: &Sockets) -> bool {
        let mut is_kept = false;
        for train in &mut self.trains[..self.used] {
            let Some(way) = train.way.take() else { continue };
            let (sent, left) = train.leave(way, sockets);
            train.left = left;
            is_kept |= sent == Sent::Kept;
        }
        is_kept
    }

    /// Tells their connection when datagrams left, and forgets them.
    pub(super) fn forget(&mut self, connection: &mut Core) {
        for train in &self.trains[..self.used] {
            connection.note_left(train.contents.chunks(train.datagram.max(1)), train.left);
        }
        self.clear();
    }

    /// Forgets what left.
    pub(super) fn clear(&mut self) {
        self.idle = if self.used > 0 { 0 } else { self.idle.saturating_add(1) };
        self.trains[..self.used].iter_mut().for_each(|train| train.contents.clear());
        self.trains.truncate(KEPT);
        if self.idle == IDLE {
            (self.trains, self.made) = (Vec::new(), Vec::new());
        }
        (self.used, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
