//! An address translator: what it passes on to the server comes from a socket of its own.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a thread may take to notice that it is no longer wanted.
const NOTICE: Duration = Duration::from_millis(20);

/// The receive buffer of each socket: what a busy machine makes wait is not to be lost here.
const BUFFER: usize = 4 << 20;

/// One client, one server, and a thread for each socket. Ends when it is dropped.
pub(crate) struct Translator {
    shared: Arc<Shared>,
    inside: Option<Pump>,
}

struct Shared {
    server: SocketAddr,
    inside: UdpSocket,
    client: Mutex<Option<SocketAddr>>,
    /// The socket that the server sees, and what reads it; replaced as a whole.
    outside: Mutex<(Arc<UdpSocket>, Option<Pump>)>,
    /// The next datagram to the server leaves from here first.
    stranger: Mutex<Option<UdpSocket>>,
}

impl Translator {
    /// A translator in front of `server`, which is on loopback.
    pub(crate) fn start(server: SocketAddr) -> Self {
        let shared = Arc::new(Shared {
            server,
            inside: socket(),
            client: Mutex::default(),
            outside: Mutex::new((Arc::new(socket()), None)),
            stranger: Mutex::default(),
        });
        shared.read_outside();
        let to_server = shared.clone();
        let reader = shared.inside.try_clone().unwrap();
        let inside = Pump::start(reader, move |datagram, from| {
            *to_server.client.lock().unwrap() = Some(from);
            if let Some(stranger) = to_server.stranger.lock().unwrap().take() {
                let _ = stranger.send_to(datagram, server);
            }
            let outside = to_server.outside.lock().unwrap().0.clone();
            let _ = outside.send_to(datagram, server);
        });
        Self { shared, inside: Some(inside) }
    }

    /// Where the client sends to.
    pub(crate) fn address(&self) -> SocketAddr {
        self.shared.inside.local_addr().unwrap()
    }

    /// The address that the server sees.
    pub(crate) fn outside(&self) -> SocketAddr {
        self.shared.outside.lock().unwrap().0.local_addr().unwrap()
    }

    /// The client gets another port; what comes to the former one is lost. Returns what the server will see.
    pub(crate) fn rebind(&self) -> SocketAddr {
        let former = std::mem::replace(&mut *self.shared.outside.lock().unwrap(), (Arc::new(socket()), None));
        self.shared.read_outside();
        drop(former);
        self.outside()
    }

    /// The next datagram to the server is copied, and the copy arrives first, from another port.
    pub(crate) fn copy_next_from_elsewhere(&self) -> SocketAddr {
        let stranger = socket();
        let address = stranger.local_addr().unwrap();
        *self.shared.stranger.lock().unwrap() = Some(stranger);
        address
    }

    /// Whether a copy is still to be made.
    pub(crate) fn is_copying(&self) -> bool {
        self.shared.stranger.lock().unwrap().is_some()
    }
}

impl Drop for Translator {
    fn drop(&mut self) {
        // Each has a hand on what is shared.
        self.inside = None;
        self.shared.outside.lock().unwrap().1 = None;
    }
}

impl Shared {
    /// Passes on to the client what comes to the socket that the server sees.
    fn read_outside(self: &Arc<Self>) {
        let mut outside = self.outside.lock().unwrap();
        let (to_client, server) = (self.clone(), self.server);
        let reader = outside.0.try_clone().unwrap();
        outside.1 = Some(Pump::start(reader, move |datagram, from| {
            let client = *to_client.client.lock().unwrap();
            if let Some(client) = client.filter(|_| from == server) {
                let _ = to_client.inside.send_to(datagram, client);
            }
        }));
    }
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(NOTICE)).unwrap();
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(BUFFER);
    socket
}

/// A thread that reads a socket until this is dropped.
struct Pump {
    wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pump {
    fn start(socket: UdpSocket, mut pass_on: impl FnMut(&[u8], SocketAddr) + Send + 'static) -> Self {
        let wanted = Arc::new(AtomicBool::new(true));
        let still = wanted.clone();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 1 << 16];
            while still.load(Ordering::Relaxed) {
                // Nothing came in time, or nobody is there yet to whom something was sent.
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    pass_on(&buffer[..length], from);
                }
            }
        });
        Self { wanted, thread: Some(thread) }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
