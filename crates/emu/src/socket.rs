//! A UDP socket that reads and writes in batches and keeps the ECN bits.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use noq_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::SockRef;

/// The kernel may grant less.
const KERNEL_BUFFER_BYTES: usize = 4 << 20;

/// How many buffers one read fills. Each may hold a whole train of datagrams that the kernel has
/// put together.
pub(crate) const BUFFERS: usize = 8;

/// The largest train.
const BUFFER_BYTES: usize = 1 << 16;

/// A non-blocking UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    /// A socket on a free port from which `peer` can be reached: on the loopback interface where
    /// the peer is.
    pub(crate) fn towards(peer: SocketAddr) -> io::Result<Self> {
        let own = match (peer.ip(), peer.ip().is_loopback()) {
            (IpAddr::V4(_), true) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            (IpAddr::V4(_), false) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            (IpAddr::V6(_), true) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            (IpAddr::V6(_), false) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Self::bind(own)
    }

    /// A socket on the loopback interface for clients of the same address family as `target`.
    pub(crate) fn for_clients(target: SocketAddr) -> io::Result<Self> {
        Self::bind(if target.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() })
    }

    fn bind(own: IpAddr) -> io::Result<Self> {
        let io = UdpSocket::bind((own, 0))?;
        let options = SockRef::from(&io);
        // Best effort: with smaller buffers bursts are lost earlier, before they reach a link.
        let _ = options.set_recv_buffer_size(KERNEL_BUFFER_BYTES);
        let _ = options.set_send_buffer_size(KERNEL_BUFFER_BYTES);
        // Best effort as well: without it a datagram has come when it is read.
        #[cfg(target_os = "linux")]
        let _ = nix::sys::socket::setsockopt(&io, nix::sys::socket::sockopt::ReceiveTimestampns, &true);
        let state = UdpSocketState::new((&io).into())?;
        Ok(Self { io, state })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// How many datagrams one [`send`](Self::send) may carry.
    pub(crate) fn segments_max(&self) -> usize {
        self.state.max_gso_segments().get()
    }

    /// Sends `contents`, cut into datagrams of `segment` bytes where that is given.
    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
        segment: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit { destination, ecn, contents, segment_size: segment, src_ip: None };
        self.state.try_send((&self.io).into(), &transmit)
    }

    /// Reads once into `buffers` and says how many of them were filled.
    fn receive(&self, buffers: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> usize {
        // An error here is of one datagram, or will show again with the next.
        self.state.recv((&self.io).into(), buffers, meta).unwrap_or(0)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// A datagram as it was received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) from: SocketAddr,
    /// When it came, where the system says so: since the beginning of 1970.
    pub(crate) came: Option<Duration>,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) contents: &'a [u8],
}

/// Buffers for reading, used for every socket in turn.
#[derive(Debug)]
pub(crate) struct ReadBuffers {
    memory: Vec<u8>,
    meta: [RecvMeta; BUFFERS],
}

impl ReadBuffers {
    pub(crate) fn new() -> Self {
        Self { memory: vec![0; BUFFERS * BUFFER_BYTES], meta: [RecvMeta::default(); BUFFERS] }
    }

    /// Reads once from `socket` and says how many buffers that filled, for
    /// [`received`](Self::received). All of them means that there may be more.
    pub(crate) fn fill(&mut self, socket: &Socket) -> usize {
        let mut chunks = self.memory.chunks_exact_mut(BUFFER_BYTES);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            core::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        socket.receive(&mut buffers, &mut self.meta)
    }

    /// The datagrams in the first `filled` buffers, trains taken apart.
    pub(crate) fn received(&self, filled: usize) -> impl Iterator<Item = Received<'_>> {
        let buffers = self.memory.chunks_exact(BUFFER_BYTES).zip(&self.meta).take(filled);
        buffers.flat_map(|(buffer, meta)| {
            let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
            // A datagram without content is one too.
            let empty = (meta.len == 0).then_some(&[][..]);
            let (from, came, ecn) = (meta.addr, meta.timestamp, meta.ecn);
            datagrams.chain(empty).map(move |contents| Received { from, came, ecn, contents })
        })
    }
}
