//! Links between interfaces of this machine: a frame that comes in at one port leaves at the other when its links have
//! carried it. So every program crosses them, whatever it speaks, where an interface of its namespace leads to a port.
//!
//! Frames keep their addresses, so that hosts at both ends see one cable. As for datagrams, a frame counts on the links
//! with its IP packet.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::{LinkConfig, LinkId, LinkStats, Network, PathRoutes, RouteId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::MTU;
use crate::checksum::complete;
use crate::error::EmulatorError;
use crate::event_loop::{WAKE_GAP, prepare_thread};

/// Ethernet: two addresses, and the kind of packet.
const HEADER: usize = 14;

/// `ETH_P_ALL`, in the order of the network.
const ALL_KINDS: i32 = 0x0003_u16.to_be() as i32;

/// Room for what a host sends at once.
const KERNEL_BUFFER_BYTES: usize = 8 << 20;

/// How often one port is read before the others.
const READS_MAX: usize = 64;

/// How soon the thread sees that it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// One interface, whose frames are read and written.
#[derive(Debug)]
pub struct Port(Socket);

impl Port {
    /// Opens an interface of the namespace of this thread. It takes the right to open sockets for packets.
    ///
    /// # Errors
    ///
    /// Where there is no such interface, or this process may not.
    pub fn open(interface: &str) -> io::Result<Self> {
        let found = nix::ifaddrs::getifaddrs()?
            .filter(|one| one.interface_name == interface)
            .find_map(|one| one.address?.as_link_addr().copied());
        let address =
            found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no interface {interface}")))?;
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(ALL_KINDS)))?;
        nix::sys::socket::bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &address)?;
        // Best effort: with smaller buffers bursts are lost before they reach a link.
        let _ = nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::RcvBufForce, &KERNEL_BUFFER_BYTES);
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }
}

/// Describes links, and the ports between which they lie.
#[derive(Debug)]
pub struct BridgeBuilder {
    network: Network<Vec<u8>>,
    ports: Vec<Port>,
    routes: Vec<PathRoutes>,
}

impl BridgeBuilder {
    /// Adds a link: one direction of one wire. Its randomness depends on the seed and `name` only.
    ///
    /// # Errors
    ///
    /// Where the name is taken or the description cannot be meant.
    pub fn link(&mut self, name: &str, config: &LinkConfig) -> Result<LinkId, EmulatorError> {
        Ok(self.network.add_link(name, config)?)
    }

    /// Puts links between two ports: those from the first to the second, and those back.
    ///
    /// # Errors
    ///
    /// Where a link is not this bridge's.
    pub fn connect(&mut self, ports: [Port; 2], forward: &[LinkId], back: &[LinkId]) -> Result<(), EmulatorError> {
        self.routes.push(self.network.add_path(forward, back)?);
        self.ports.extend(ports);
        Ok(())
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// Where the operating system refuses a thread.
    pub fn start(self) -> Result<Bridge, EmulatorError> {
        let Self { network, ports, routes } = self;
        let shared = Arc::new(Shared {
            started: Instant::now(),
            links: Mutex::new(Links { network, served: Timestamp::ZERO }),
            is_over: AtomicBool::new(false),
            too_large: AtomicU64::new(0),
        });
        let entrances: Vec<RouteId> = routes.iter().flat_map(|path| [path.forward, path.backward]).collect();
        // Frames leave at the other port of their pair.
        let exits = entrances.iter().enumerate().map(|(port, route)| (*route, port ^ 1)).collect();
        let worker = Worker { shared: Arc::clone(&shared), ports, entrances, exits };
        let thread = thread::Builder::new()
            .name("fairpath-bridge".to_owned())
            .spawn(move || worker.run())
            .map_err(EmulatorError::os("start a thread"))?;
        Ok(Bridge { shared, thread: Some(thread) })
    }
}

/// A running bridge. It ends when this is dropped.
#[derive(Debug)]
pub struct Bridge {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    started: Instant,
    links: Mutex<Links>,
    is_over: AtomicBool,
    too_large: AtomicU64,
}

#[derive(Debug)]
struct Links {
    network: Network<Vec<u8>>,
    /// The latest time that the links know of.
    served: Timestamp,
}

impl Shared {
    /// The links, served up to now.
    fn links(&self) -> MutexGuard<'_, Links> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.served = links.served.max(Timestamp::ZERO + self.started.elapsed());
        links
    }
}

impl Bridge {
    /// Describes a new one. Losses and jitter come from `seed`.
    pub fn builder(seed: u64) -> BridgeBuilder {
        BridgeBuilder { network: Network::new(seed), ports: Vec::new(), routes: Vec::new() }
    }

    /// Switches a link on or off. While it is off it drops what comes, and what waits in its queue is dropped.
    pub fn set_link_up(&self, link: LinkId, up: bool) {
        let Links { network, served } = &mut *self.shared.links();
        network.set_link_up(link, up, *served);
    }

    /// The counters of a link.
    pub fn stats(&self, link: LinkId) -> LinkStats {
        self.shared.links().network.stats(link)
    }

    /// How many frames were dropped since no link carries them. Hosts send some where a device is to cut them apart, which
    /// `ip link set DEVICE gso_max_segs 1` has them do themselves.
    pub fn too_large(&self) -> u64 {
        self.shared.too_large.load(Ordering::Relaxed)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If it panicked, that was reported when it happened.
            let _ = thread.join();
        }
    }
}

/// Everything that the thread owns.
struct Worker {
    shared: Arc<Shared>,
    /// In pairs.
    ports: Vec<Port>,
    /// The route that begins at each port.
    entrances: Vec<RouteId>,
    /// The port at which each route ends.
    exits: BTreeMap<RouteId, usize>,
}

impl Worker {
    fn run(self) {
        prepare_thread();
        let mut buffer = vec![0; 1 << 17];
        let mut due = Vec::new();
        let mut last_wake = Instant::now();
        while !self.shared.is_over.load(Ordering::Relaxed) {
            let next = {
                let Links { network, served } = &mut *self.shared.links();
                while let Some(delivery) = network.poll(*served) {
                    due.push((self.exits[&delivery.route], delivery.packet));
                }
                network.next_event().map(|at| at.since(*served))
            };
            for (port, frame) in due.drain(..) {
                // Where an interface is down, or full, a frame is lost as on a cable.
                let _ = (&self.ports[port].0).write(&frame);
            }
            thread::sleep(WAKE_GAP.saturating_sub(last_wake.elapsed()));
            for port in self.readable(next.unwrap_or(LOOK).min(LOOK)) {
                self.read(port, &mut buffer);
            }
            last_wake = Instant::now();
        }
    }

    /// Waits for frames, and says at which ports there are some.
    fn readable(&self, wait: Duration) -> Vec<usize> {
        let mut waiting: Vec<PollFd<'_>> =
            self.ports.iter().map(|port| PollFd::from_borrowed_fd(port.0.as_fd(), PollFlags::IN)).collect();
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        // Only an interruption by a signal can fail here, and then there is nothing ready.
        let _ = poll(&mut waiting, Some(&wait));
        (0..waiting.len()).filter(|port| waiting[*port].revents().contains(PollFlags::IN)).collect()
    }

    /// Offers to the links what has come at a port.
    fn read(&self, port: usize, buffer: &mut [u8]) {
        for _ in 0..READS_MAX {
            let Ok(length @ HEADER..) = (&self.ports[port].0).read(buffer) else { return };
            let size = ByteCount::new((length - HEADER) as u64);
            if size > MTU {
                self.shared.too_large.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let mut frame = buffer[..length].to_vec();
            complete(&mut frame[HEADER..]);
            let Links { network, served } = &mut *self.shared.links();
            let _ = network.send(*served, self.entrances[port], frame, size);
        }
    }
}
