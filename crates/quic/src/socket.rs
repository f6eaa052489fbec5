//! One UDP socket for each local address, so that a path leaves through its own interface whatever the
//! routing table prefers.
//!
//! A socket is bound to its device where the system allows it, else only to the source address;
//! [`Binding`] says which is in force.
//!
//! A full socket never makes the others wait. Up to [`BACKLOG`] bytes are kept back here until it has
//! room again. Beyond that the packet is dropped, as by a full queue of the network card, and only the
//! congestion control of that path learns of it.

mod asking;
mod fault;
mod medium;

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use fairpath_quic_core::{Binding, unmapped};
use noq_udp::{EcnCodepoint, RecvMeta, Transmit};
use socket2::{Domain, Protocol, Socket, Type};

use crate::allowance::Allowance;
use crate::interfaces::{self, Interface};
use crate::machine::Machine;
pub(crate) use asking::Asking;
use fault::Faults;
use medium::{Kernel, Medium};

/// How many bytes may wait for a full socket. Two of the largest batches: enough to never lose one
/// to a momentary pause, and less than 60 ms at 20 Mbit/s.
const BACKLOG: usize = 128 << 10;

/// Kernel receive buffer of a socket, in bytes; the system may allow less. The send buffer stays as
/// the system has it: a larger one would only be a longer queue before the first hop.
const KERNEL_BUFFER: usize = 4 << 20;

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

/// The fate of a packet, or of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Left,
    /// It waits for room: see [`BoundSocket::poll_flush`].
    Kept,
    Dropped,
}

/// The socket of one local address.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) interface: String,
    pub(crate) local: SocketAddr,
    /// The name by which paths know the address.
    pub(crate) name: IpAddr,
    pub(crate) binding: Binding,
    /// Whether peers are told of it.
    pub(crate) is_told: bool,
    medium: Medium,
    /// How much may go over it; `None`: without bound.
    allowance: Option<Allowance>,
    backlog: Mutex<Backlog>,
    faults: Faults,
    /// Whether the kernel notes when datagrams come.
    is_stamping: AtomicBool,
}

impl BoundSocket {
    /// Binds to the interface's address and `port` (0: any), on `machine`.
    pub(crate) fn bind(
        machine: &Machine,
        interface: &Interface,
        allowance: Option<Allowance>,
        port: u16,
    ) -> io::Result<Arc<Self>> {
        let address = bindable(interface, port);
        let (medium, binding) = match machine {
            Machine::System | Machine::Links => {
                let Tied { own, elsewhere, binding } = tied(interface, address)?;
                let kernel = |socket: Socket| {
                    let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
                    Kernel::new(socket)
                };
                (Medium::Kernel { own: kernel(own)?, elsewhere: elsewhere.map(kernel).transpose()? }, binding)
            }
            Machine::Sockets(given) => {
                let own = Kernel::new(given.socket(interface.address)?.into())?;
                (Medium::Kernel { own, elsewhere: None }, Binding::Address)
            }
            #[cfg(feature = "simulation")]
            Machine::Simulated(machine) => (Medium::Simulated(machine.bind(address)?), Binding::Device),
        };
        let bound = Arc::new(Self {
            interface: interface.name.clone(),
            local: unmapped(medium.local_addr()?),
            name: interface.local(),
            binding,
            is_told: interface.unusable.is_none(),
            medium,
            allowance,
            backlog: Mutex::default(),
            faults: Faults::default(),
            is_stamping: AtomicBool::new(false),
        });
        Ok(bound)
    }

    /// Has the kernel note from now on when a datagram came. Without it, it has come when it is read.
    pub(crate) fn stamp_arrivals(&self) {
        if self.is_stamping.swap(true, Ordering::Relaxed) {
            return;
        }
        self.medium.stamp_arrivals();
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many datagrams the kernel takes at once.
    pub(crate) fn train_datagrams(&self) -> usize {
        self.medium.train_datagrams()
    }

    /// Whether what may go over it is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.allowance.as_ref().is_some_and(Allowance::is_spent)
    }

    /// Sends, keeps back, or drops. Several tasks may do so at a time.
    pub(crate) fn send(&self, transmit: &Transmit<'_>) -> Sent {
        if let Some(allowance) = &self.allowance {
            if !allowance.lets_out() {
                return Sent::Dropped;
            }
            let (length, each) = (transmit.contents.len(), transmit.segment_size);
            allowance.count(each.map_or(1, |each| length.div_ceil(each.max(1))), length, self.local.is_ipv4());
        }
        // The kernel is called without the lock, or one connection would wait for another.
        let is_free = self.backlog().waiting.is_empty();
        if is_free {
            match self.medium.try_send(transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.note(&error, transmit);
                    return Sent::Dropped;
                }
                Ok(()) => return Sent::Left,
            }
        }
        let mut backlog = self.backlog();
        if backlog.bytes + transmit.contents.len() > BACKLOG {
            backlog.dropped += 1;
            return Sent::Dropped;
        }
        backlog.bytes += transmit.contents.len();
        backlog.waiting.push_back(Waiting {
            destination: transmit.destination,
            ecn: transmit.ecn,
            contents: transmit.contents.to_vec(),
            segment_size: transmit.segment_size,
        });
        Sent::Kept
    }

    /// A packet that cannot be sent is a packet lost: the path's own timers find out. Too-large
    /// packets are probes for the path's packet size and expected.
    fn note(&self, error: &io::Error, transmit: &Transmit<'_>) {
        if !noq_udp::is_msg_size_err(error) {
            tracing::debug!(interface = %self.interface, destination = %transmit.destination, %error, "not sent");
        }
    }

    /// Sends what waits whenever there is room; ready when nothing is left.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.flush() {
            // An error of the socket is found by reading it.
            if ready!(self.medium.poll_send_ready(cx)).is_err() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Sends what waits, as far as the socket takes it. True when nothing is left.
    fn flush(&self) -> bool {
        let mut backlog = self.backlog();
        while let Some(first) = backlog.waiting.front() {
            let transmit = Transmit {
                destination: first.destination,
                ecn: first.ecn,
                contents: &first.contents,
                segment_size: first.segment_size,
                src_ip: None,
            };
            match self.medium.try_send(&transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) => self.note(&error, &transmit),
                Ok(()) => {}
            }
            let sent = backlog.waiting.pop_front().map_or(0, |first| first.contents.len());
            backlog.bytes -= sent;
        }
        true
    }

    /// Counts what came.
    fn count(&self, meta: &[RecvMeta]) {
        let Some(allowance) = &self.allowance else { return };
        meta.iter().for_each(|one| {
            allowance.count(one.len.div_ceil(one.stride.max(1)), one.len, self.local.is_ipv4());
        });
    }

    /// Why it cannot be read any more, if that is so. It may recover.
    pub(crate) fn fault(&self) -> Option<io::ErrorKind> {
        self.faults.broken()
    }

    /// Reads datagrams, or trains of them, into `bufs`; says how many.
    pub(crate) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<usize> {
        loop {
            ready!(self.faults.poll_ready(cx));
            match ready!(self.medium.poll_recv(cx, bufs, meta)) {
                Ok(count) => {
                    self.faults.clear();
                    self.count(&meta[..count]);
                    return Poll::Ready(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.faults.clear(),
                // An interface that went away, or a peer that refuses: the other sockets still work. Reading the error may have cleared it.
                Err(error) => {
                    tracing::debug!(interface = %self.interface, %error, "not received");
                    self.faults.note(&error);
                }
            }
        }
    }
}

/// The address to bind to. One of the local link says nothing without its interface.
fn bindable(interface: &Interface, port: u16) -> SocketAddr {
    match interface.address {
        IpAddr::V6(v6) if interface.is_link_local() => {
            SocketAddrV6::new(v6, port, 0, interfaces::index(&interface.name).unwrap_or(0)).into()
        }
        address => SocketAddr::new(address, port),
    }
}

/// Sockets of one address and port.
struct Tied {
    /// Everything that is sent leaves through it, by the interface.
    own: Socket,
    /// Takes what comes for the address on other interfaces: where several are in one network, hosts may answer for
    /// the addresses of all of them on each, as Linux does.
    elsewhere: Option<Socket>,
    binding: Binding,
}

/// Sockets that are tied to the interface and bound to the address.
fn tied(interface: &Interface, address: SocketAddr) -> io::Result<Tied> {
    let own = unbound(address)?;
    let binding = bind_to_device(&own, interface);
    // Link-local addresses have a meaning at their interface only.
    if binding == Binding::Device && !interface.is_link_local() {
        let elsewhere = bind_beside(&own, address)?;
        return Ok(Tied { own, elsewhere: Some(elsewhere), binding });
    }
    own.bind(&address.into())?;
    Ok(Tied { own, elsewhere: None, binding })
}

/// Binds `own`, which is tied to an interface, to the address, and makes a socket for what comes on others.
#[cfg(target_os = "linux")]
fn bind_beside(own: &Socket, address: SocketAddr) -> io::Result<Socket> {
    let elsewhere = unbound(address)?;
    elsewhere.bind(&address.into())?;
    let address = elsewhere.local_addr()?;
    // The other has the port too only while both allow it: nobody else is to have it.
    elsewhere.set_reuse_port(true)?;
    own.set_reuse_port(true)?;
    own.bind(&address)?;
    own.set_reuse_port(false)?;
    elsewhere.set_reuse_port(false)?;
    Ok(elsewhere)
}

#[cfg(not(target_os = "linux"))]
fn bind_beside(_: &Socket, _: SocketAddr) -> io::Result<Socket> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A socket of the family of the address.
fn unbound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// Ties the socket to the device where that is allowed and makes sense: what comes for an address of the
/// loopback interface comes in on another, and the answer leaves by the routing table.
fn bind_to_device(socket: &Socket, interface: &Interface) -> Binding {
    if interface.address.is_loopback() || !interfaces::kind(&interface.name).has_wire() {
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
    Ok(tied(interface, bindable(interface, 0))?.binding)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::allowance::Allowances;
    use crate::sockets::Sockets;

    impl BoundSocket {
        /// From now on reading fails, or does not any more.
        fn set_faulty(&self, is_faulty: bool) {
            match &self.medium {
                Medium::Kernel { own, .. } => own.is_faulty.store(is_faulty, Ordering::Relaxed),
                #[cfg(feature = "simulation")]
                Medium::Simulated(_) => {}
            }
        }
    }

    fn loopback() -> Interface {
        Interface { name: "lo".into(), address: "127.0.0.1".parse().unwrap(), twin: 0, prefix_bits: 8, unusable: None }
    }

    /// Reads from the sockets for a while. What came, and how often they were asked.
    async fn read(sockets: &Sockets, patience: Duration) -> (usize, u32) {
        let (mut buffer, mut polls, mut count) = ([0; 2048], 0, 0);
        let reading = std::future::poll_fn(|cx| {
            polls += 1;
            let mut meta = [RecvMeta::default()];
            for socket in &*sockets.all() {
                while socket.poll_recv(cx, &mut [IoSliceMut::new(&mut buffer)], &mut meta).is_ready() {
                    count += 1;
                }
            }
            Poll::<()>::Pending
        });
        let _ = tokio::time::timeout(patience, reading).await;
        (count, polls)
    }

    #[tokio::test]
    async fn a_socket_that_fails_does_not_spin_and_the_others_are_read() {
        let [bad, good] = [(); 2].map(|()| BoundSocket::bind(&Machine::System, &loopback(), None, 0).unwrap());
        bad.set_faulty(true);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&bad, &good] {
            sender.send_to(b"hello", socket.local).unwrap();
        }
        let sockets = Sockets::new(Machine::System, Allowances::default(), vec![bad.clone(), good]);
        let (count, polls) = read(&sockets, Duration::from_secs(3)).await;
        assert_eq!(count, 1, "what came on the other");
        assert!(polls < 100, "asked {polls} times");
        assert!(bad.fault().is_some(), "it is known as broken");
        // One that recovers is read on.
        bad.set_faulty(false);
        let (count, _) = read(&sockets, Duration::from_secs(3)).await;
        assert_eq!((count, bad.fault()), (1, None));
    }
}
