//! The near end: a port for programs, whose connections the far end makes.

mod arrival;
mod associate;
mod conversation;
mod doctor;
mod forward;
mod http;
mod link;
mod page;
mod port;
mod ports;
mod socks5;
mod state;
mod transparent;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use fairpath::{Allowance, PathControl, PathTerms, Scheduler};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::control::{Control, Controlled};
use crate::greeting::Denial;
use crate::snapshot::Snapshot;
pub use doctor::{Examination, ExamineConfig, Finding, Shared, Together, examination_max, examine};
pub use forward::{BadForward, Forward, Protocol, Reverse};
pub use link::LinkState;
use link::{Link, Ways};
pub use port::{BadPassword, Password};
use ports::Ports;
pub use state::{JoinError, NearState, NearStateError, join};
use transparent::Transparent;
pub use transparent::{GatePorts, Gates, Led};

/// The settings of a near end.
#[derive(Debug)]
pub struct NearConfig {
    /// The state directory.
    pub state: PathBuf,
    /// The address of the port for programs.
    pub listen: SocketAddr,
    /// Interfaces or addresses that paths start from; empty: all usable ones.
    pub via: Vec<String>,
    /// The terms of the paths of interfaces or addresses; the far end heeds them, too.
    pub terms: Vec<(String, PathTerms)>,
    /// How much may go over which interfaces or addresses.
    pub allowances: Vec<Allowance>,
    /// Answers programs before the far end has connected: they send at once, and a connection that fails is reset.
    pub fast_open: bool,
    /// The password that programs have to show.
    pub password: Option<Password>,
    /// Ports of this machine whose connections and packets go to one target.
    pub forwards: Vec<Forward>,
    /// Ports of the far end whose connections come to this machine.
    pub reverses: Vec<Reverse>,
    /// Opens ports to which rules of the system may lead programs.
    pub transparent: Option<Led>,
}

/// Something that the user of a near end may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NearNotice {
    /// The far end is connected: the name of this device there.
    Connected(String),
    /// The connection is lost, with the reason in words. It is made again by itself.
    Lost(String),
    /// An attempt to connect failed, with the reason in words. It is made again by itself.
    Failed(String),
    /// The far end does not let this device in.
    Denied(Denial),
    /// The far end has told of further addresses at which it is reached. They are in the state directory.
    Addresses(Vec<SocketAddr>),
    /// Something about a path, in words.
    Path(String),
    /// A forward, with the reason why it does not work, in words.
    Forward(String),
    /// There is no control socket, with the reason in words: all else works.
    Control(String),
}

impl std::fmt::Display for NearNotice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connected(name) => write!(f, "connected to the far end as {name}"),
            Self::Lost(why) => write!(f, "the connection to the far end is lost: {why}; connecting again"),
            Self::Failed(why) => write!(f, "{why}; trying again"),
            Self::Denied(denial) => denial.fmt(f),
            Self::Addresses(new) => {
                let new: Vec<String> = new.iter().map(SocketAddr::to_string).collect();
                write!(f, "the far end is reached at {}, too", new.join(" and "))
            }
            Self::Path(words) | Self::Forward(words) => f.write_str(words),
            Self::Control(why) => write!(f, "no control socket, so `fairpath top` shows nothing: {why}"),
        }
    }
}

/// Why a near end could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NearError {
    /// Its state.
    #[error(transparent)]
    State(#[from] NearStateError),
    /// Its sockets towards the far end.
    #[error(transparent)]
    Endpoint(#[from] fairpath::Error),
    /// The port for programs.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: std::io::Error,
    },
}

/// A near end whose port is open. Programs are served while [`Near::run`] runs.
#[derive(Debug)]
pub struct Near {
    link: Arc<Link>,
    listener: TcpListener,
    settings: Arc<port::Settings>,
    ports: Option<Ports>,
    transparent: Option<Transparent>,
    reverses: Arc<[Reverse]>,
    notices: mpsc::Receiver<NearNotice>,
    _control: Option<Control>,
}

impl Near {
    /// Opens the port, and begins to connect to the far end that this device has joined.
    ///
    /// # Errors
    ///
    /// Where this device has joined none, or the port cannot be had.
    pub async fn bind(config: NearConfig) -> Result<Self, NearError> {
        let NearConfig { state, listen, via, terms, allowances, fast_open, password, forwards, reverses, transparent } =
            config;
        let state = NearState::open(&state)?;
        let listener =
            TcpListener::bind(listen).await.map_err(|source| NearError::Listen { address: listen, source })?;
        let (to, notices) = mpsc::channel(256);
        let ports = Some(Ports::bind(forwards).await?);
        let transparent = transparent.map(Transparent::bind).transpose()?;
        let reverses: Arc<[Reverse]> = reverses.into();
        let control = PathControl::new();
        let ways = Ways { via, terms, allowances, control: control.clone() };
        let link = Link::begin(state.clone(), ways, reverses.clone(), to.clone())?;
        let here = link.clone();
        let controlled = Controlled::new(move || here.snapshot(), control, Scheduler::default());
        let control = Control::open(state.directory(), controlled);
        let control = control.map_err(|error| to.try_send(NearNotice::Control(error.to_string()))).ok();
        if let Ok(address) = listener.local_addr() {
            state.note_listening(address)?;
        }
        let settings = Arc::new(port::Settings { fast_open, password });
        Ok(Self { link, listener, settings, ports, transparent, reverses, notices, _control: control })
    }

    /// The address of the port for programs.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The ports to which rules may lead programs, where they were asked for and [`Near::run`] has not begun.
    pub fn gates(&self) -> Option<Gates> {
        self.transparent.as_ref().map(|transparent| transparent.gates)
    }

    /// The state of the connection to the far end, and when it changes.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.link.state()
    }

    /// This end at this moment, and again whenever it is called.
    pub fn watch(&self) -> impl Fn() -> Snapshot + Send + Sync + 'static {
        let link = self.link.clone();
        move || link.snapshot()
    }

    /// Serves programs, until the future is dropped. `tell` is given the notices.
    pub async fn run(&mut self, mut tell: impl FnMut(NearNotice)) {
        let _led = self.transparent.take().map(|transparent| transparent.serve(&self.link));
        let _forwards = self.ports.take().map(|ports| ports.serve(&self.link, &self.reverses));
        let serving = port::serve(&self.listener, &self.link, &self.settings);
        tokio::pin!(serving);
        loop {
            tokio::select! {
                () = &mut serving => return,
                Some(notice) = self.notices.recv() => tell(notice),
            }
        }
    }

    /// Ends the connection to the far end. Programs' connections are reset.
    pub async fn close(&self) {
        self.link.close().await;
    }
}
