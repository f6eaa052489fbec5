//! Endpoints.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use fairpath_engine::{Bitrate, EngineConfig, NamedTerms};
use fairpath_quic as quic;
use quic::{
    AdmissionKey, Allowance, Application, ConnectConfig, DialConfig, Dialer, GivenSockets, ListenConfig, Listener,
    Machine, PathControl,
};

use crate::acceptor::Acceptor;
use crate::algorithm::{Congestion, Coupling, Detector, Scheduler};
use crate::connection::Connection;
use crate::error::{Error, failed};
use crate::fingerprint::Fingerprint;
use crate::limits::StreamLimits;
use crate::path::PathTerms;
use crate::session::{Redial, Session};
use crate::trust::{Identity, Trust};

/// One end of connections, which dials and accepts over the same sockets. Clones are the same endpoint. Connections live
/// on where the last is dropped; nobody new is accepted then.
///
/// ```
/// use fairpath::{Endpoint, Identity};
///
/// # #[tokio::main] async fn main() -> Result<(), fairpath::Error> {
/// let server = Endpoint::builder().identity(Identity::generate()?).via(["127.0.0.1"]).bind()?;
/// let client = Endpoint::builder().via(["127.0.0.1", "127.0.0.2"]).bind()?;
/// let trust = server.fingerprint().expect("it has an identity");
/// let (ours, theirs) = tokio::join!(client.connect(server.addresses(), trust), server.accept());
/// assert!(ours.is_ok() && theirs.is_some());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint(Arc<Bound>);

#[derive(Debug)]
struct Bound {
    side: Side,
    settings: Settings,
}

#[derive(Debug)]
enum Side {
    /// Accepts, too.
    Listening(Acceptor),
    /// Only dials: sockets are bound where a connection needs one.
    Dialing(Dialer),
}

/// The settings of each connection.
#[derive(Clone, Debug)]
struct Settings {
    via: Vec<String>,
    engine: EngineConfig,
    paths_max: usize,
    datagram_max: u16,
    streams: StreamLimits,
    application: Application,
    guard: Option<AdmissionKey>,
}

impl Endpoint {
    /// Begins to describe an endpoint.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Connects to the first of the peer's addresses that answers, and goes on to open a path from each interface.
    /// Attempts from several interfaces and to several addresses overlap, and each is given up after 4 s.
    ///
    /// # Errors
    ///
    /// [`Error`] says whom to blame: nothing answered, somebody else did, or there is no interface to start from.
    ///
    /// # Cancellation safety
    ///
    /// No connection stays open where this is given up before it is ready.
    pub async fn connect(
        &self,
        addresses: impl IntoIterator<Item = SocketAddr>,
        trust: impl Into<Trust>,
    ) -> Result<Connection, Error> {
        let Settings { via, engine, paths_max, datagram_max, streams, application, guard } = self.0.settings.clone();
        let remotes = addresses.into_iter().collect();
        let config = ConnectConfig {
            verify: trust.into().0,
            application,
            via,
            engine,
            paths_max,
            datagram_max,
            admission_key: guard,
            ..ConnectConfig::new(remotes, quic::Fingerprint([0; 32]))
        };
        let dialer = match &self.0.side {
            Side::Listening(acceptor) => acceptor.listener().dialer(),
            Side::Dialing(dialer) => dialer,
        };
        let first = dialer.connect(config.clone()).await.map_err(failed)?;
        let kept = streams.0.kept;
        first.begin_streams(streams.0);
        Ok(Connection::of(Session::begin(first, kept, false, Some(Redial { dialer: dialer.clone(), config }))))
    }

    /// The next connection of a peer. One that goes on with an [interrupted](Connection#when-all-paths-are-gone) one is none
    /// of them. `None` after [`Endpoint::close`], and at once where the endpoint has no [identity](Builder::identity).
    ///
    /// # Cancellation safety
    ///
    /// No connection is lost where this is given up before it is ready.
    pub async fn accept(&self) -> Option<Connection> {
        let Side::Listening(acceptor) = &self.0.side else { return None };
        acceptor.accept().await
    }

    /// The addresses that peers may connect to, as they are now: they change with the interfaces, and peers that are
    /// connected hear of it. None where the endpoint has no identity.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match &self.0.side {
            Side::Listening(acceptor) => acceptor.listener().addresses(),
            Side::Dialing(_) => Vec::new(),
        }
    }

    /// The fingerprint by which peers recognise this end. `None` where it has no identity.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        match &self.0.side {
            Side::Listening(acceptor) => Some(Fingerprint(acceptor.listener().fingerprint())),
            Side::Dialing(_) => None,
        }
    }

    /// Accepts no more, ends all connections with `code` and `reason`, and waits until the peers have confirmed it, at
    /// most two seconds. Where the endpoint has no identity its connections go on: close each.
    ///
    /// # Cancellation safety
    ///
    /// All is closed when this is first polled. Given up before it is ready, peers may hear of it later.
    pub async fn close(&self, code: u32, reason: &str) {
        if let Side::Listening(acceptor) = &self.0.side {
            acceptor.close(code, reason).await;
        }
    }
}

/// Describes an endpoint. Each setting has a default that suits connections over real networks.
#[derive(Debug)]
#[must_use = "nothing happens before `bind`"]
pub struct Builder {
    identity: Option<Identity>,
    listen: Option<SocketAddr>,
    port: u16,
    advertise: Vec<SocketAddr>,
    sockets: Vec<UdpSocket>,
    connections_max: usize,
    allowances: Vec<Allowance>,
    control: PathControl,
    uses_tunnels: bool,
    settings: Settings,
}

impl Default for Builder {
    fn default() -> Self {
        let settings = Settings {
            via: Vec::new(),
            engine: EngineConfig::live(),
            paths_max: quic::PATHS_MAX as usize,
            datagram_max: quic::DATAGRAM_MAX,
            streams: StreamLimits::default(),
            application: Application::Fairpath,
            guard: None,
        };
        let (advertise, sockets, allowances) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            identity: None,
            listen: None,
            port: 0,
            advertise,
            sockets,
            connections_max: 64,
            allowances,
            control: PathControl::new(),
            uses_tunnels: true,
            settings,
        }
    }
}

impl Builder {
    /// Accepts connections as this one. Without it the endpoint only dials.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Listens on this address only; an unspecified one (`0.0.0.0:4433`) means every address of the machine at that
    /// port. By default on every usable interface at any port.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Listens at this port of every usable interface.
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Addresses that [`Endpoint::addresses`] and peers are told before the machine's own: of a NAT that passes packets
    /// on to it.
    pub fn advertise(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.advertise.extend(addresses);
        self
    }

    /// Interfaces or addresses that paths start from, by name: `wwan0`, `192.0.2.7`, and any of `127.0.0.0/8`. By
    /// default all usable ones, which [`interfaces`](crate::interfaces()) lists.
    pub fn via(mut self, interfaces: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.via.extend(interfaces.into_iter().map(Into::into));
        self
    }

    /// No path starts from a tunnel of this machine (WireGuard, `tun`), nor do peers hear of its address, unless it is named
    /// with `via` or nothing else is there. For programs over whose connections tunnels may run: a path through one of
    /// these would run over itself.
    pub fn without_tunnels(mut self) -> Self {
        self.uses_tunnels = false;
        self
    }

    /// Changes the terms of paths while connections run.
    ///
    /// ```
    /// use fairpath::{Bitrate, Endpoint, PathControl};
    ///
    /// # #[tokio::main] async fn main() -> Result<(), fairpath::Error> {
    /// let control = PathControl::new();
    /// let endpoint = Endpoint::builder().control(control.clone()).bind()?;
    /// // At any time, whatever the endpoint is connected to:
    /// control.cap("wwan0", Some(Bitrate::from_mbps(5)));
    /// control.park("wlan0", true);
    /// # drop(endpoint); Ok(()) }
    /// ```
    pub fn control(mut self, control: PathControl) -> Self {
        self.control = control;
        self
    }

    /// Sockets that paths start from, and no others: bound by the program, each to an address of its own, in a namespace
    /// or with marks as it likes. They are made non-blocking. `listen`, `port` and `via` do not count then.
    pub fn sockets(mut self, sockets: impl IntoIterator<Item = UdpSocket>) -> Self {
        self.sockets.extend(sockets);
        self
    }

    /// The name of the program's protocol in TLS (ALPN), by default that of Fairpath. Both ends must have the same, or
    /// they do not connect.
    pub fn alpn(mut self, name: &'static [u8]) -> Self {
        self.settings.application = Application::Named(name);
        self
    }

    /// Peers are guests until [`Connection::welcome`]: they may say one short message, open no streams, and leave for newer
    /// ones where there are many. An end that dials with the same key goes before those that have none. The key proves
    /// nothing: let peers prove themselves by a message.
    pub fn guard(mut self, key: [u8; 32]) -> Self {
        self.settings.guard = Some(AdmissionKey::from_bytes(key));
        self
    }

    /// How fast each path sends.
    pub fn congestion(mut self, congestion: Congestion) -> Self {
        self.settings.engine.congestion = congestion.name().into();
        self
    }

    /// The choice of the path, among those with room, for the next packet.
    pub fn scheduler(mut self, scheduler: Scheduler) -> Self {
        self.settings.engine.scheduler = scheduler.name().into();
        self
    }

    /// When paths are coupled.
    pub fn coupling(mut self, coupling: Coupling) -> Self {
        self.settings.engine.coupling = match coupling {
            Coupling::Always => quic::Coupling::Always,
            Coupling::Never => quic::Coupling::Never,
            Coupling::Auto => quic::Coupling::Auto,
        };
        self
    }

    /// The finder of shared bottlenecks, with [`Coupling::Auto`].
    pub fn detector(mut self, detector: Detector) -> Self {
        self.settings.engine.detector = detector.name().into();
        self
    }

    /// The most that all paths of a connection together send, UDP payload in bits per second.
    pub fn limit(mut self, rate: Bitrate) -> Self {
        self.settings.engine.limit = Some(rate);
        self
    }

    /// Terms for the paths that begin at `of`, an interface or an address. The peer is told of them, and heeds cost, cap
    /// and backup for what it sends here.
    pub fn path(mut self, of: impl Into<String>, terms: PathTerms) -> Self {
        self.settings.engine.terms.push(NamedTerms { of: of.into(), terms: terms.0 });
        self
    }

    /// Bounds what may go over one interface or address, both ways, over all connections. Its paths are closed once that
    /// is spent.
    pub fn allowance(mut self, allowance: Allowance) -> Self {
        self.allowances.push(allowance);
        self
    }

    /// The most paths of a connection, 8 by default. More than 8 count as 8.
    pub fn paths_max(mut self, count: usize) -> Self {
        self.settings.paths_max = count;
        self
    }

    /// The largest datagrams to send and to take, in bytes of UDP payload, 1,200 at least.
    pub fn datagram_max(mut self, bytes: u16) -> Self {
        self.settings.datagram_max = bytes;
        self
    }

    /// The most connections that peers may have open at once, 64 by default. More are refused.
    pub fn connections_max(mut self, count: usize) -> Self {
        self.connections_max = count;
        self
    }

    /// Bounds of the memory that streams take.
    pub fn streams(mut self, limits: StreamLimits) -> Self {
        let kept = self.settings.streams.0.kept;
        self.settings.streams = limits;
        self.settings.streams.0.kept = kept;
        self
    }

    /// How long a connection [outlives the loss of all paths](Connection#when-all-paths-are-gone), 60 s by default. Meanwhile
    /// this end keeps its streams and, where it dialed, connects again. With zero a lost connection has ended. The shorter
    /// time of the two ends counts.
    pub fn resume_within(mut self, time: Duration) -> Self {
        self.settings.streams.0.kept = time;
        self
    }

    /// Binds the sockets. An endpoint without an identity binds them when it connects.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Where an interface or socket asked for does not do, or an address cannot be listened on.
    pub fn bind(self) -> Result<Endpoint, Error> {
        let Self { identity, listen, port, advertise, sockets, connections_max, allowances, control, .. } = self;
        let (uses_tunnels, settings) = (self.uses_tunnels, self.settings);
        let machine = match sockets.is_empty() {
            true if uses_tunnels => Machine::System,
            true => Machine::Links,
            false => Machine::Sockets(GivenSockets::new(sockets).map_err(|error| Error::Socket(error.to_string()))?),
        };
        let datagram_max = settings.datagram_max;
        let side = match identity {
            None => {
                let application = settings.application;
                let config = DialConfig { application, datagram_max, allowances, control, machine };
                Side::Dialing(Dialer::new(config).map_err(failed)?)
            }
            Some(Identity(identity)) => {
                let Settings { via, engine, application, guard, .. } = settings.clone();
                let is_guarded = guard.is_some();
                let given = matches!(machine, Machine::Sockets(_));
                let (listen, port) = if given { (None, 0) } else { (listen, port) };
                let config = ListenConfig {
                    listen,
                    port,
                    advertise,
                    via,
                    identity,
                    application,
                    engine,
                    connections_max,
                    admission_key: guard,
                    datagram_max,
                    allowances,
                    control,
                    machine,
                };
                let listener = Listener::bind(config).map_err(failed)?;
                Side::Listening(Acceptor::begin(listener, settings.streams.0.clone(), is_guarded, connections_max))
            }
        };
        Ok(Endpoint(Arc::new(Bound { side, settings })))
    }
}
