//! The machine that a process of the product runs on: addresses, sockets and randomness that are simulated.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use fairpath_quic::interfaces::Interface;
use fairpath_quic::{SimulatedMachine, SimulatedSocket};
use fairpath_quic_core::Origin;
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::time::Instant;

use fairpath_quic_sim::{Cryptography, Pinned};

/// The size of a socket's buffer in bytes, as the product requests it from the kernel. Datagrams
/// beyond it are lost.
const SOCKET_MAX: usize = 4 << 20;

/// Sockets that may have any port get one from here on.
const FIRST_PORT: u16 = 10_000;

/// More datagrams than a machine sends in a step. One that does would send for ever, and no time
/// would pass.
const FLOOD: usize = 100_000;

/// A datagram that has left a machine.
#[derive(Debug)]
pub(super) struct Left {
    /// When, by the clock of the machine.
    pub(super) at: Instant,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) contents: Vec<u8>,
}

/// A machine, as long as one process runs on it.
pub(super) struct Machine {
    interfaces: Vec<Interface>,
    cryptography: Cryptography,
    state: Mutex<State>,
}

struct State {
    sockets: BTreeMap<SocketAddr, Weak<Socket>>,
    next_port: u16,
    left: Vec<Left>,
    luck: ChaCha8Rng,
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

impl Machine {
    /// A machine with these addresses. Everything that is random on it comes from the seed.
    pub(super) fn new(interfaces: Vec<Interface>, cryptography: Cryptography, seed: u64) -> Arc<Self> {
        let luck = ChaCha8Rng::seed_from_u64(seed);
        let state = State { sockets: BTreeMap::new(), next_port: FIRST_PORT, left: Vec::new(), luck };
        Arc::new(Self { interfaces, cryptography, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has left since this was asked last.
    pub(super) fn take_left(&self) -> Vec<Left> {
        std::mem::take(&mut self.state().left)
    }

    /// Whether more was about to leave at once than ever may.
    pub(super) fn floods(left: &[Left]) -> bool {
        left.len() >= FLOOD
    }

    /// A datagram comes. Where nobody has such a socket it is lost.
    pub(super) fn arrive(&self, from: SocketAddr, to: SocketAddr, contents: Vec<u8>) {
        let socket = self.state().sockets.get(&to).and_then(Weak::upgrade);
        if let Some(socket) = socket {
            socket.arrive(from, contents);
        }
    }
}

/// How a process sees its machine.
#[derive(Clone, Debug)]
pub(super) struct Seen(pub(super) Arc<Machine>);

impl SimulatedMachine for Seen {
    fn interfaces(&self) -> Vec<Interface> {
        self.0.interfaces.clone()
    }

    fn bind(&self, address: SocketAddr) -> io::Result<Arc<dyn SimulatedSocket>> {
        let mut state = self.0.state();
        state.sockets.retain(|_, socket| socket.strong_count() > 0);
        let mut local = address;
        while local.port() == 0 || (address.port() == 0 && state.sockets.contains_key(&local)) {
            local.set_port(state.next_port);
            state.next_port = state.next_port.checked_add(1).unwrap_or(FIRST_PORT);
        }
        if state.sockets.contains_key(&local) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let socket = Arc::new(Socket { local, machine: self.0.clone(), inbox: Mutex::default() });
        state.sockets.insert(local, Arc::downgrade(&socket));
        Ok(socket)
    }

    fn origin(&self) -> Arc<dyn Origin> {
        Arc::new(Pinned::new(self.0.cryptography, self.0.state().luck.next_u64()))
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.0.state().luck.fill_bytes(bytes);
    }
}

struct Socket {
    local: SocketAddr,
    machine: Arc<Machine>,
    inbox: Mutex<Inbox>,
}

#[derive(Default)]
struct Inbox {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    bytes: usize,
    reader: Option<Waker>,
}

impl std::fmt::Debug for Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socket").field("local", &self.local).finish_non_exhaustive()
    }
}

impl Socket {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self, from: SocketAddr, contents: Vec<u8>) {
        let mut inbox = self.inbox();
        if inbox.bytes + contents.len() > SOCKET_MAX {
            return;
        }
        inbox.bytes += contents.len();
        inbox.waiting.push_back((from, contents));
        if let Some(reader) = inbox.reader.take() {
            reader.wake();
        }
    }
}

impl SimulatedSocket for Socket {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn send(&self, to: SocketAddr, datagram: &[u8]) {
        let left = Left { at: Instant::now(), from: self.local, to, contents: datagram.to_vec() };
        let mut state = self.machine.state();
        state.left.push(left);
        assert!(state.left.len() < FLOOD, "it sends for ever, and no time passes");
    }

    fn poll_recv(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<(usize, SocketAddr)>> {
        let mut inbox = self.inbox();
        let Some((from, contents)) = inbox.waiting.pop_front() else {
            inbox.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        inbox.bytes -= contents.len();
        // The rest of a datagram that does not fit is cut off, as in the kernel.
        let length = contents.len().min(buffer.len());
        buffer[..length].copy_from_slice(&contents[..length]);
        Poll::Ready(Ok((length, from)))
    }
}

/// An interface with this address.
pub(super) fn interface(name: String, address: IpAddr) -> Interface {
    Interface { name, address, twin: 0, prefix_bits: 24, unusable: None }
}
