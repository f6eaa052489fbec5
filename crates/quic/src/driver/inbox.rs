//! Datagrams from the sockets, read in trains and outside any lock.

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use fairpath_quic_core::unmapped;
use noq_udp::{EcnCodepoint, RecvMeta};

use crate::clock;
use crate::socket::BoundSocket;

/// How many buffers are read into at once.
const BUFFERS: usize = 8;

/// How large each is: what the kernel joins to one train at most.
const BUFFER: usize = 1 << 16;

/// Limit on the bytes read before they are handled; until then nothing else can use the
/// connections.
const TURN: usize = 512 << 10;

/// And how many trains: the smallest datagrams cost as much as larger ones.
const TURN_TRAINS: usize = 128;

/// The kernel's time stamps of datagrams are believed up to this age: the clock may have been set meanwhile.
const AGE_MAX: Duration = Duration::from_secs(1);

/// Datagrams of one size that came together on one way; the last may be smaller.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) remote: SocketAddr,
    pub(super) local: IpAddr,
    pub(super) ecn: Option<noq_proto::EcnCodepoint>,
    /// The size of each datagram, in bytes.
    pub(super) datagram: usize,
    pub(super) contents: BytesMut,
    pub(super) at: Instant,
    /// Nobody may come in that way any more: what may go over the interface is used up.
    pub(super) is_spent: bool,
}

/// Reads sockets.
#[derive(Debug)]
pub(super) struct Inbox {
    buffers: Vec<Box<[u8]>>,
    arrived: Vec<Arrived>,
    bytes: usize,
    /// The socket that is read first.
    turn: usize,
}

impl Inbox {
    pub(super) fn new() -> Self {
        let buffers = (0..BUFFERS).map(|_| vec![0; BUFFER].into_boxed_slice()).collect();
        Self { buffers, arrived: Vec::new(), bytes: 0, turn: 0 }
    }

    /// Reads what has come, as much as may be handled in one turn. Where nothing is left to be read, the task is
    /// woken when something comes.
    pub(super) fn poll_fill(&mut self, sockets: &[Arc<BoundSocket>], cx: &mut Context<'_>) {
        // Each goes first in turn, or a busy one would starve the others.
        self.turn = self.turn.wrapping_add(1);
        for at in 0..sockets.len() {
            let socket = &sockets[(self.turn + at) % sockets.len()];
            while !self.is_full() && self.poll_read(socket, cx).is_ready() {}
        }
    }

    /// Whether there may be more than was read.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= TURN || self.arrived.len() >= TURN_TRAINS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Takes the datagrams that were read.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Arrived> {
        self.bytes = 0;
        self.arrived.drain(..)
    }

    fn poll_read(&mut self, socket: &BoundSocket, cx: &mut Context<'_>) -> Poll<()> {
        let Self { buffers, arrived, bytes, .. } = self;
        let mut meta = [RecvMeta::default(); BUFFERS];
        let mut slices = buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(slices.next().map_or(&mut [], |buffer| &mut buffer[..])));
        let count = std::task::ready!(socket.poll_recv(cx, &mut slices, &mut meta));
        let now = clock::now();
        let wall = meta[..count].iter().any(|meta| meta.timestamp.is_some()).then(SystemTime::now);
        let wall = wall.map(|wall| wall.duration_since(UNIX_EPOCH).unwrap_or_default());
        for (meta, buffer) in meta[..count].iter().zip(&slices) {
            let age = wall.zip(meta.timestamp).map_or(Duration::ZERO, |(wall, came)| wall.saturating_sub(came));
            *bytes += meta.len;
            arrived.push(Arrived {
                remote: unmapped(meta.addr),
                local: socket.name,
                ecn: meta.ecn.map(ecn),
                datagram: meta.stride.max(1),
                contents: BytesMut::from(&buffer[..meta.len]),
                at: now.checked_sub(age.min(AGE_MAX)).unwrap_or(now),
                is_spent: socket.is_spent(),
            });
        }
        Poll::Ready(())
    }
}

/// The same mark, as the stack calls it.
fn ecn(mark: EcnCodepoint) -> noq_proto::EcnCodepoint {
    match mark {
        EcnCodepoint::Ect0 => noq_proto::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => noq_proto::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => noq_proto::EcnCodepoint::Ce,
    }
}
