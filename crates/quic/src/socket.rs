//! One UDP socket for each local address, so that a path leaves through its own interface whatever the
//! routing table prefers.
//!
//! A socket is bound to its device where the system allows it, else only to the source address;
//! [`Binding`] says which is in force.
//!
//! A full socket never makes the others wait. Up to [`BACKLOG`] bytes are kept back here until it has room
//! again; beyond that the packet is dropped, as a full queue of the card would, and the congestion
//! control of that path alone hears of it.

mod asking;
mod fault;
mod medium;

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use fairpath_quic_core::Binding;
use noq_udp::{EcnCodepoint, RecvMeta, Transmit};
use socket2::{Domain, Protocol, Socket, Type};

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

/// The socket of one local address.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) interface: String,
    pub(crate) local: SocketAddr,
    pub(crate) binding: Binding,
    medium: Medium,
    backlog: Mutex<Backlog>,
    faults: Faults,
    /// Whether the kernel notes when datagrams come.
    is_stamping: AtomicBool,
}

impl BoundSocket {
    /// Binds to the interface's address and `port` (0: any), on `machine`.
    pub(crate) fn bind(machine: &Machine, interface: &Interface, port: u16) -> io::Result<Arc<Self>> {
        let address = SocketAddr::new(interface.address, port);
        let (medium, binding) = match machine {
            Machine::System => {
                let (socket, binding) = unbound(interface)?;
                socket.bind(&address.into())?;
                let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
                (Medium::Kernel(Kernel::new(socket)?), binding)
            }
            #[cfg(feature = "simulation")]
            Machine::Simulated(machine) => (Medium::Simulated(machine.bind(address)?), Binding::Device),
        };
        let bound = Arc::new(Self {
            interface: interface.name.clone(),
            local: medium.local_addr()?,
            binding,
            medium,
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

    /// Sends, keeps back, or drops.
    pub(crate) fn send(&self, transmit: &Transmit<'_>) {
        let mut backlog = self.backlog();
        if backlog.waiting.is_empty() {
            match self.medium.try_send(transmit) {
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

/// A socket that is tied to the interface, without an address yet.
fn unbound(interface: &Interface) -> io::Result<(Socket, Binding)> {
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
    let (socket, binding) = unbound(interface)?;
    socket.bind(&SocketAddr::new(interface.address, 0).into())?;
    Ok(binding)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sockets::Sockets;

    impl BoundSocket {
        /// From now on reading fails, or does not any more.
        fn set_faulty(&self, is_faulty: bool) {
            match &self.medium {
                Medium::Kernel(kernel) => kernel.is_faulty.store(is_faulty, Ordering::Relaxed),
                #[cfg(feature = "simulation")]
                Medium::Simulated(_) => {}
            }
        }
    }

    fn loopback() -> Interface {
        Interface { name: "lo".into(), address: "127.0.0.1".parse().unwrap(), prefix_bits: 8, unusable: None }
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
        let [bad, good] = [(); 2].map(|()| BoundSocket::bind(&Machine::System, &loopback(), 0).unwrap());
        bad.set_faulty(true);
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&bad, &good] {
            sender.send_to(b"hello", socket.local).unwrap();
        }
        let sockets = Sockets::new(Machine::System, vec![bad.clone(), good]);
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
