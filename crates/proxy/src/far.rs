//! The far end: takes devices in and connects what their programs ask for.

mod dial;
mod packets;
mod relays;
mod reverse;
mod session;
mod shared;
mod state;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairpath::{Endpoint, PathControl, Scheduler, StreamLimits};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use crate::authorized::{BadLine, DeviceName};
use crate::control::{Control, Controlled};
use crate::snapshot::Snapshot;
use relays::Relays;
use shared::Shared;
pub use state::{Devices, FarState, Known, StateError, Usage};

/// The name of the protocol in TLS.
pub(crate) const ALPN: &[u8] = b"fairpath-proxy/1";

/// The most devices' connections at once.
const CONNECTIONS_MAX: usize = 1024;

/// How often the list of devices is looked at: a revoked device is gone within a second.
const LOOK: Duration = Duration::from_millis(250);

/// How often what was carried is written down, and the addresses are looked at.
const NOTE: Duration = Duration::from_secs(5);

/// Further ports pass what comes on to the first one.
const NOT_JOINED: &str = "ports after the first do not answer: the loopback interface of this machine is down; \
    `ip link set lo up` puts it right";

/// The settings of a far end.
#[derive(Clone, Debug)]
pub struct FarConfig {
    /// The state directory.
    pub state: PathBuf,
    /// The address to listen on; an unspecified one means every address at that port.
    pub listen: SocketAddr,
    /// Further addresses to listen on, at other ports. Each is a path of its own to a device, which uses those that work.
    pub also_listen: Vec<SocketAddr>,
    /// Addresses that devices are told before the machine's own: of a NAT that passes packets on to it.
    pub advertise: Vec<SocketAddr>,
    /// Interfaces or addresses to use; empty: all.
    pub via: Vec<String>,
}

/// Something that the keeper of a far end may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FarNotice {
    /// A device joined with its invitation.
    Joined(DeviceName),
    /// A device is connected.
    Entered(DeviceName),
    /// A device is not connected any more, with the reason in words.
    Left(DeviceName, String),
    /// Peers were not let in: how many, and why the last was not.
    Denied(u64, String),
    /// Lines of the file of devices are not understood.
    BadLines(Vec<BadLine>),
    /// The state could not be read or written, in words.
    Broken(String),
}

impl std::fmt::Display for FarNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Joined(name) => write!(f, "{name}: joined"),
            Self::Entered(name) => write!(f, "{name}: connected"),
            Self::Left(name, reason) => write!(f, "{name}: gone: {reason}"),
            Self::Denied(1, why) => write!(f, "a peer was not let in: {why}"),
            Self::Denied(count, why) => write!(f, "{count} peers were not let in, the last one because: {why}"),
            Self::BadLines(lines) => {
                let lines: Vec<String> = lines.iter().take(5).map(ToString::to_string).collect();
                write!(f, "authorized: {}; devices of such lines may not connect", lines.join("; "))
            }
            Self::Broken(why) => f.write_str(why),
        }
    }
}

/// Why a far end could not begin.
#[derive(Debug, thiserror::Error)]
pub enum FarError {
    /// Its state.
    #[error(transparent)]
    State(#[from] StateError),
    /// Its sockets.
    #[error(transparent)]
    Endpoint(#[from] fairpath::Error),
    /// A further address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}

/// A far end that listens. Devices are taken in while [`Far::run`] runs.
#[derive(Debug)]
pub struct Far {
    endpoint: Endpoint,
    relays: Relays,
    shared: Arc<Shared>,
    notices: mpsc::Receiver<FarNotice>,
    _control: Option<Control>,
}

impl Far {
    /// Binds the sockets. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// Where the state cannot be read, or the address cannot be listened on.
    pub fn bind(config: FarConfig) -> Result<Self, FarError> {
        let state = FarState::open(&config.state)?;
        let (guard, paths) = (state.guard()?, PathControl::new());
        let endpoint = Endpoint::builder()
            .identity(state.identity()?)
            .alpn(ALPN)
            .guard(guard)
            .listen(config.listen)
            .advertise(config.advertise.iter().copied())
            .via(config.via)
            .without_tunnels()
            .connections_max(CONNECTIONS_MAX)
            .control(paths.clone())
            .bind()?;
        let relays = Relays::open(config.also_listen, &endpoint.addresses());
        let relays = relays.map_err(|(address, source)| FarError::Listen { address, source })?;
        state.note_serving(&all(&endpoint, &relays))?;
        // As many streams at once as the port of a device takes connections.
        let limits = StreamLimits::default();
        let (to, notices) = mpsc::channel(256);
        let shared = Shared::new(state, guard, limits, (config.advertise, relays.behind()), to)?;
        let here = shared.clone();
        let words = |error| FarNotice::Broken(format!("no control socket, so `fairpath top` shows nothing: {error}"));
        let control = Control::open(
            shared.state.directory(),
            Controlled::new(move || here.snapshot(), paths, Scheduler::default()),
        );
        let control = control.map_err(|error| shared.tell(words(error))).ok();
        Ok(Self { endpoint, relays, shared, notices, _control: control })
    }

    /// The addresses where devices find it.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        all(&self.endpoint, &self.relays)
    }

    /// This end at this moment, and again whenever it is called.
    pub fn watch(&self) -> impl Fn() -> Snapshot + Send + Sync + 'static {
        let shared = self.shared.clone();
        move || shared.snapshot()
    }

    /// Takes devices in, until the future is dropped. `tell` is given the notices.
    pub async fn run(&mut self, mut tell: impl FnMut(FarNotice)) {
        let (mut look, mut note) = (interval(LOOK), interval(NOTE));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        note.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if !self.relays.are_joined().await {
            tell(FarNotice::Broken(NOT_JOINED.to_owned()));
        }
        loop {
            tokio::select! {
                accepted = self.endpoint.accept() => match accepted {
                    Some(connection) => {
                        let addresses = self.addresses();
                        tokio::spawn(session::serve(self.shared.clone(), connection, addresses));
                    }
                    None => return,
                },
                Some(notice) = self.notices.recv() => tell(notice),
                _ = look.tick() => self.shared.look(),
                _ = note.tick() => {
                    self.relays.look(&self.endpoint.addresses());
                    self.shared.note(&self.addresses());
                }
            }
        }
    }

    /// Ends all connections, and writes down what was carried.
    pub async fn close(&self) {
        self.endpoint.close(0, "the far end has ended").await;
        self.shared.note(&[]);
    }
}

/// The addresses of all ports: the first one's, then those of the others.
fn all(endpoint: &Endpoint, relays: &Relays) -> Vec<SocketAddr> {
    endpoint.addresses().into_iter().chain(relays.addresses()).collect()
}
