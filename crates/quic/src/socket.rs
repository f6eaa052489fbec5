//! One UDP socket per local address behind one endpoint, so that a path leaves through its own
//! interface whatever the routing table prefers.
//!
//! A socket is bound to its device where the system allows it, else only to the source address;
//! [`Binding`] says which is in force. noq names the source address of every packet, and that
//! selects the socket.
//!
//! noq has one send call for all paths: where it is told to wait, every path waits. So a full
//! socket never makes it wait. Up to [`BACKLOG`] bytes are kept back here until the socket has room
//! again; beyond that the packet is dropped, as a full queue of the card would, and the congestion
//! control of that path alone hears of it.

mod fault;

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use noq::udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use noq::{AsyncUdpSocket, UdpSender};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::sync::Notify;

use crate::interfaces::{Interface, Kind};
use crate::one_way::{Arrivals, Departures};
use crate::train;
use fault::Faults;

/// How many bytes may wait for a full socket. Two of the largest batches: enough to never lose one
/// to a momentary pause, and less than 60 ms at 20 Mbit/s.
const BACKLOG: usize = 128 << 10;

/// Kernel receive buffer of a socket, in bytes; the system may allow less. The send buffer stays as
/// the system has it: a larger one would only be a longer queue before the first hop.
const KERNEL_BUFFER: usize = 4 << 20;

/// How a socket is tied to its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Packets leave through this interface only (`SO_BINDTODEVICE`).
    Device,
    /// Packets carry this interface's address; the routing table chooses the interface.
    Address,
}

impl std::fmt::Display for Binding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Device => "device",
            Self::Address => "source address",
        })
    }
}

/// A packet, or a batch of packets of one size, kept back.
#[derive(Debug)]
struct Waiting {
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    contents: Vec<u8>,
    segment_size: Option<usize>,
}

#[derive(Debug, Default)]
struct Backlog {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    dropped: u64,
}

/// The socket of one local address.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) interface: String,
    pub(crate) local: SocketAddr,
    pub(crate) binding: Binding,
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
    backlog: Mutex<Backlog>,
    backlog_changed: Notify,
    faults: Faults,
    /// Whether reading fails, in a test.
    #[cfg(test)]
    is_faulty: std::sync::atomic::AtomicBool,
}

impl BoundSocket {
    /// Binds to the interface's address and `port` (0: any).
    pub(crate) fn bind(interface: &Interface, port: u16) -> io::Result<Arc<Self>> {
        let (socket, binding) = unbound(interface)?;
        socket.bind(&SocketAddr::new(interface.address, port).into())?;
        let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
        let io = tokio::net::UdpSocket::from_std(socket.into())?;
        let state = UdpSocketState::new((&io).into())?;
        let bound = Arc::new(Self {
            interface: interface.name.clone(),
            local: io.local_addr()?,
            binding,
            io,
            state,
            backlog: Mutex::default(),
            backlog_changed: Notify::new(),
            faults: Faults::default(),
            #[cfg(test)]
            is_faulty: std::sync::atomic::AtomicBool::new(false),
        });
        tokio::spawn(flush(Arc::downgrade(&bound)));
        Ok(bound)
    }

    /// Has the kernel note when a datagram came. Without it, it has come when it is read.
    fn stamp_arrivals(&self) {
        #[cfg(target_os = "linux")]
        let _ = nix::sys::socket::setsockopt(&self.io, nix::sys::socket::sockopt::ReceiveTimestampns, &true);
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), transmit))
    }

    /// Until the runtime has seen that there is room; before, everything is kept back.
    #[cfg(test)]
    pub(crate) async fn writable(&self) {
        self.io.writable().await.expect("a socket that works");
    }

    /// How many datagrams the kernel takes at once.
    pub(crate) fn train_datagrams(&self) -> usize {
        self.state.max_gso_segments().get()
    }

    /// Sends, keeps back, or drops.
    pub(crate) fn send(&self, transmit: &Transmit<'_>) {
        let mut backlog = self.backlog();
        if backlog.waiting.is_empty() {
            match self.try_send(transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return self.note(&error, transmit),
                Ok(()) => return,
            }
        }
        if backlog.bytes + transmit.contents.len() > BACKLOG {
            backlog.dropped += 1;
            return;
        }
        backlog.bytes += transmit.contents.len();
        backlog.waiting.push_back(Waiting {
            destination: transmit.destination,
            ecn: transmit.ecn,
            contents: transmit.contents.to_vec(),
            segment_size: transmit.segment_size,
        });
        drop(backlog);
        self.backlog_changed.notify_one();
    }

    /// A packet that cannot be sent is a packet lost: the path's own timers find out. Too-large
    /// packets are probes for the path's packet size and expected.
    fn note(&self, error: &io::Error, transmit: &Transmit<'_>) {
        if !noq::udp::is_msg_size_err(error) {
            tracing::debug!(interface = %self.interface, destination = %transmit.destination, %error, "not sent");
        }
    }

    /// Sends what waits, as far as the socket takes it. True when nothing is left.
    fn drain(&self) -> bool {
        let mut backlog = self.backlog();
        while let Some(first) = backlog.waiting.front() {
            let transmit = Transmit {
                destination: first.destination,
                ecn: first.ecn,
                contents: &first.contents,
                segment_size: first.segment_size,
                src_ip: None,
            };
            match self.try_send(&transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => self.note(&error, &transmit),
                Ok(()) => {}
            }
            let sent = backlog.waiting.pop_front().map_or(0, |first| first.contents.len());
            backlog.bytes -= sent;
        }
        true
    }

    /// Why it cannot be read any more, if that is so. It may recover.
    pub(crate) fn fault(&self) -> Option<io::ErrorKind> {
        self.faults.broken()
    }

    fn receive(&self, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> io::Result<usize> {
        #[cfg(test)]
        if self.is_faulty.load(Ordering::Relaxed) {
            return Err(io::Error::from(io::ErrorKind::NetworkDown));
        }
        self.state.recv((&self.io).into(), bufs, meta)
    }

    fn poll_recv(&self, cx: &mut Context<'_>, bufs: &mut [IoSliceMut<'_>], meta: &mut [RecvMeta]) -> Poll<usize> {
        loop {
            std::task::ready!(self.faults.poll_ready(cx));
            match self.io.poll_recv_ready(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Pending,
                Poll::Ready(Ok(())) => {}
            }
            match self.io.try_io(Interest::READABLE, || self.receive(bufs, meta)) {
                Ok(count) => {
                    self.faults.clear();
                    return Poll::Ready(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.faults.clear(),
                // An interface that went away or a peer that refuses: noq would end the endpoint
                // for it, but the other sockets still work. Reading the error may have cleared it.
                Err(error) => {
                    tracing::debug!(interface = %self.interface, %error, "not received");
                    self.faults.note(&error);
                }
            }
        }
    }
}

/// A socket that is tied to the interface, without an address yet.
pub(crate) fn unbound(interface: &Interface) -> io::Result<(Socket, Binding)> {
    let address = SocketAddr::new(interface.address, 0);
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    let binding = bind_to_device(&socket, interface);
    Ok((socket, binding))
}

/// Ties the socket to the device where that is allowed and makes sense: what comes for an address of the
/// loopback interface comes in on another, and the answer leaves by the routing table.
fn bind_to_device(socket: &Socket, interface: &Interface) -> Binding {
    if interface.address.is_loopback() || !Kind::of(&interface.name).has_wire() {
        return Binding::Address;
    }
    #[cfg(target_os = "linux")]
    if socket.bind_device(Some(interface.name.as_bytes())).is_ok() {
        return Binding::Device;
    }
    let _ = socket;
    Binding::Address
}

/// How a path from this address would be tied to its interface.
pub fn binding_of(interface: &Interface) -> io::Result<Binding> {
    let (socket, binding) = unbound(interface)?;
    socket.bind(&SocketAddr::new(interface.address, 0).into())?;
    Ok(binding)
}

/// Empties the backlog of a socket whenever it has room, until the socket is gone.
async fn flush(socket: std::sync::Weak<BoundSocket>) {
    loop {
        let Some(socket) = socket.upgrade() else { return };
        let wait = std::time::Duration::from_secs(1);
        // Looking up from time to time lets a dropped socket end.
        if tokio::time::timeout(wait, socket.backlog_changed.notified()).await.is_err() {
            continue;
        }
        while !socket.drain() {
            if socket.io.writable().await.is_err() {
                break;
            }
        }
    }
}

/// The sockets of one endpoint; they come and go with the interfaces.
#[derive(Clone, Debug)]
pub(crate) struct Sockets(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Replaced and never changed, so that nobody waits here while a socket is being read.
    sockets: RwLock<Arc<[Arc<BoundSocket>]>>,
    /// Which socket is read first.
    turn: AtomicUsize,
    /// Where packets without a source address leave, of connections that are made from now on.
    primary: Mutex<Option<IpAddr>>,
    /// The endpoint, to be woken when a socket was added.
    receiver: Mutex<Option<Waker>>,
    port: u16,
    departures: Departures,
    arrivals: Arrivals,
}

impl Sockets {
    pub(crate) fn new(sockets: Vec<Arc<BoundSocket>>) -> Self {
        let port = sockets.first().map_or(0, |socket| socket.local.port());
        Self(Arc::new(Inner {
            sockets: RwLock::new(sockets.into()),
            turn: AtomicUsize::new(0),
            primary: Mutex::new(None),
            receiver: Mutex::new(None),
            port,
            departures: Departures::default(),
            arrivals: Arrivals::default(),
        }))
    }

    pub(crate) fn all(&self) -> Arc<[Arc<BoundSocket>]> {
        self.0.sockets.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn of(&self, local: IpAddr) -> Option<Arc<BoundSocket>> {
        let sockets = self.0.sockets.read().unwrap_or_else(PoisonError::into_inner);
        sockets.iter().find(|socket| socket.local.ip() == local).cloned()
    }

    fn replace(&self, with: impl FnOnce(&[Arc<BoundSocket>]) -> Vec<Arc<BoundSocket>>) {
        let mut sockets = self.0.sockets.write().unwrap_or_else(PoisonError::into_inner);
        *sockets = with(&sockets).into();
    }

    pub(crate) fn set_primary(&self, local: IpAddr) {
        *self.0.primary.lock().unwrap_or_else(PoisonError::into_inner) = Some(local);
    }

    pub(crate) fn primary(&self) -> Option<Arc<BoundSocket>> {
        let primary = *self.0.primary.lock().unwrap_or_else(PoisonError::into_inner);
        primary.and_then(|local| self.of(local)).or_else(|| self.all().first().cloned())
    }

    /// What left, for one-way delays.
    pub(crate) fn departures(&self) -> &Departures {
        &self.0.departures
    }

    /// What came, for one-way delays.
    pub(crate) fn arrivals(&self) -> &Arrivals {
        &self.0.arrivals
    }

    /// Notes arrivals until then. Not before anybody asks: the kernel's clock costs every datagram.
    pub(crate) fn watch_arrivals(&self, until: Instant) {
        self.all().iter().for_each(|socket| socket.stamp_arrivals());
        self.0.arrivals.watch(until);
    }

    pub(crate) fn add(&self, socket: Arc<BoundSocket>) {
        self.replace(|sockets| sockets.iter().cloned().chain([socket]).collect());
        if let Some(waker) = self.0.receiver.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
    }

    pub(crate) fn remove(&self, local: IpAddr) {
        self.replace(|sockets| sockets.iter().filter(|socket| socket.local.ip() != local).cloned().collect());
    }
}

impl AsyncUdpSocket for Sockets {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let home = *self.0.primary.lock().unwrap_or_else(PoisonError::into_inner);
        Box::pin(Sender { sockets: self.clone(), home })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        *self.0.receiver.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        let sockets = self.all();
        // Each goes first in turn, or a busy one would starve the others.
        let turn = self.0.turn.fetch_add(1, Ordering::Relaxed);
        for at in 0..sockets.len() {
            let socket = &sockets[(turn + at) % sockets.len()];
            if let Poll::Ready(count) = socket.poll_recv(cx, bufs, meta) {
                for (meta, buffer) in meta[..count].iter_mut().zip(&*bufs) {
                    let (local, remote) = (socket.local.ip(), unmapped(meta.addr));
                    self.0.arrivals.note(&buffer[..meta.len], meta.stride, meta.timestamp, local, remote);
                    meta.dst_ip = Some(socket.local.ip());
                    meta.addr = mapped(meta.addr);
                }
                return Poll::Ready(Ok(count));
            }
        }
        Poll::Pending
    }

    /// Always an IPv6 address: so noq takes the endpoint for one that speaks both families.
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), self.0.port))
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.all().iter().map(|socket| socket.state.gro_segments()).max().unwrap_or(NonZeroUsize::MIN)
    }

    fn may_fragment(&self) -> bool {
        self.all().iter().any(|socket| socket.state.may_fragment())
    }
}

/// What sends for one connection.
#[derive(Debug)]
struct Sender {
    sockets: Sockets,
    /// Where its packets without a source address leave.
    home: Option<IpAddr>,
}

impl UdpSender for Sender {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = match transmit.src_ip.or(self.home) {
            Some(local) => self.sockets.of(local),
            None => self.sockets.primary(),
        };
        // A packet of an interface that is gone is lost, as it would be on the wire.
        if let Some(socket) = socket {
            let destination = unmapped(transmit.destination);
            if destination.is_ipv4() == socket.local.is_ipv4() {
                self.sockets.0.departures.note(
                    transmit.contents,
                    transmit.segment_size,
                    socket.local.ip(),
                    destination,
                );
                train::send(&socket, &Transmit { destination, ..*transmit });
            }
        }
        Poll::Ready(Ok(()))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.sockets.all().iter().map(|socket| socket.state.max_gso_segments()).min().unwrap_or(NonZeroUsize::MIN)
    }
}

/// IPv4 addresses as IPv6 ones, which is how an endpoint of both families knows them.
pub(crate) fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into(),
        v6 => v6,
    }
}

/// The address as a person knows it.
pub(crate) fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn loopback() -> Interface {
        Interface { name: "lo".into(), address: "127.0.0.1".parse().unwrap(), prefix_bits: 8, unusable: None }
    }

    /// Reads from the sockets for a while. What came, and how often they were asked.
    async fn read(sockets: &mut Sockets, patience: Duration) -> (usize, u32) {
        let (mut buffer, mut polls, mut count) = ([0; 2048], 0, 0);
        let reading = std::future::poll_fn(|cx| {
            polls += 1;
            let mut meta = [RecvMeta::default()];
            while sockets.poll_recv(cx, &mut [IoSliceMut::new(&mut buffer)], &mut meta).is_ready() {
                count += 1;
            }
            Poll::<()>::Pending
        });
        let _ = tokio::time::timeout(patience, reading).await;
        (count, polls)
    }

    #[tokio::test]
    async fn a_socket_that_fails_does_not_spin_and_the_others_are_read() {
        let (bad, good) = (BoundSocket::bind(&loopback(), 0).unwrap(), BoundSocket::bind(&loopback(), 0).unwrap());
        bad.is_faulty.store(true, Ordering::Relaxed);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&bad, &good] {
            sender.send_to(b"hello", socket.local).unwrap();
        }
        let mut sockets = Sockets::new(vec![bad.clone(), good]);
        let (count, polls) = read(&mut sockets, Duration::from_secs(3)).await;
        assert_eq!(count, 1, "what came on the other");
        assert!(polls < 100, "asked {polls} times");
        assert!(bad.fault().is_some(), "it is known as broken");
        // One that recovers is read on.
        bad.is_faulty.store(false, Ordering::Relaxed);
        let (count, _) = read(&mut sockets, Duration::from_secs(3)).await;
        assert_eq!((count, bad.fault()), (1, None));
    }

    #[test]
    fn mapping_and_back_is_the_same_address() {
        let address: SocketAddr = "192.0.2.7:4433".parse().unwrap();
        assert_eq!(mapped(address).to_string(), "[::ffff:192.0.2.7]:4433");
        assert_eq!(unmapped(mapped(address)), address);
    }
}
