//! Datagrams that are due now and about to be sent.

use std::io;
use std::net::SocketAddr;

use fairpath_core::Timestamp;

use crate::relay::{ClientId, Datagram, Direction, Relay, count};
use crate::socket::Socket;
use crate::timing::Histogram;

/// Limit on the bytes of one call, whatever the number of datagrams. With the headers of Ethernet
/// (14), IPv6 (40) and UDP (8) it stays below 65,536, from which on Linux segments it before the
/// device (`gso_max_size`).
const TRAIN_BYTES_MAX: usize = 65_536 - 1 - 14 - 40 - 8;

/// How many buffers are kept for the next datagrams.
const SPARE_BUFFERS_MAX: usize = 8_192;

/// A datagram that is due.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) path: usize,
    pub(crate) direction: Direction,
    pub(crate) at: Timestamp,
    pub(crate) datagram: Datagram,
}

impl Due {
    fn destination(&self) -> (usize, Direction, ClientId) {
        (self.path, self.direction, self.datagram.client)
    }
}

/// Collects what is due and sends it: datagrams of one size to one destination go in one call.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    due: Vec<Due>,
    train: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Outbox {
    /// A buffer with a copy of `contents`.
    pub(crate) fn buffer(&mut self, contents: &[u8]) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(contents);
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Adds a datagram that is due.
    pub(crate) fn push(&mut self, due: Due) {
        self.due.push(due);
    }

    /// Sends everything. `clock` says what time it is after each call.
    pub(crate) fn flush(&mut self, relays: &mut [Relay], late: &mut Histogram, clock: impl Fn() -> Timestamp) {
        let mut due = core::mem::take(&mut self.due);
        // Stable: what goes to one destination stays in order.
        due.sort_by_key(Due::destination);
        let mut rest = &due[..];
        while let Some(first) = rest.first() {
            let relay = &mut relays[first.path];
            let length = match relay.exit(first.datagram.client, first.direction) {
                Some((socket, _)) if relay.up => train_length(rest, socket.segments_max()),
                _ => 1,
            };
            let (train, others) = rest.split_at(length);
            self.send(train, relay);
            let now = clock();
            train.iter().for_each(|due| late.record(now.since(due.at)));
            rest = others;
        }
        due.drain(..).for_each(|due| self.recycle(due.datagram.contents));
        self.due = due;
    }

    /// Sends datagrams of one destination, in one call if it can be, and counts them.
    fn send(&mut self, train: &[Due], relay: &mut Relay) {
        let first = &train[0];
        let sent = match relay.exit(first.datagram.client, first.direction) {
            Some((socket, to)) if relay.up => self.send_to(train, socket, to).is_ok(),
            _ => false,
        };
        let up = relay.up;
        let stats = relay.direction_stats(first.direction);
        let counter = match (sent, up) {
            (true, _) => &mut stats.released,
            (false, true) => &mut stats.failed,
            (false, false) => &mut stats.down,
        };
        train.iter().for_each(|due| count(counter, due.datagram.contents.len()));
    }

    fn send_to(&mut self, train: &[Due], socket: &Socket, to: SocketAddr) -> io::Result<()> {
        let first = &train[0].datagram;
        if train.len() == 1 {
            return socket.send(to, first.ecn, &first.contents, None);
        }
        self.train.clear();
        train.iter().for_each(|due| self.train.extend_from_slice(&due.datagram.contents));
        match socket.send(to, first.ecn, &self.train, Some(first.contents.len())) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                // A system that cannot cut trains says so now, and will not be asked again.
                train.iter().try_for_each(|due| socket.send(to, due.datagram.ecn, &due.datagram.contents, None))
            }
            sent => sent,
        }
    }
}

/// How many of `due`, from the first, can go in one call: all of the first one's size, only the
/// last may be shorter.
fn train_length(due: &[Due], segments_max: usize) -> usize {
    let first = &due[0];
    let segment = first.datagram.contents.len();
    if segment == 0 {
        return 1;
    }
    let longest = segments_max.min(TRAIN_BYTES_MAX / segment).max(1);
    let mut length = 1;
    for next in due[1..].iter().take(longest - 1) {
        let size = next.datagram.contents.len();
        let fits = next.destination() == first.destination() && next.datagram.ecn == first.datagram.ecn;
        if !fits || size > segment || size == 0 {
            break;
        }
        length += 1;
        if size < segment {
            break;
        }
    }
    length
}
