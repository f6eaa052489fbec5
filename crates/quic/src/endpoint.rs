//! The end of connections that listens, and the sockets of either end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use fairpath_engine::EngineConfig;
use noq::Endpoint;
use tokio::sync::mpsc;

use crate::accept::{Acceptor, House, Knocks, bounded, waiting_max};
use crate::connection::{Connection, FAREWELL};
use crate::datagram::{DATAGRAM_MAX, endpoint_config};
use crate::error::Error;
use crate::interfaces::{self, Interface};
use crate::knock::KnockKey;
use crate::socket::{BoundSocket, Sockets};
use crate::tls::{Fingerprint, Identity};
use crate::train::Trains;

/// What a listener needs.
#[derive(Debug)]
pub struct ListenConfig {
    /// Listen on this address only; an unspecified address (`0.0.0.0`) sets the port only. `None`:
    /// on every usable interface, on any port.
    pub listen: Option<SocketAddr>,
    /// Interfaces or addresses to use; empty: all usable ones.
    pub via: Vec<String>,
    /// The key the peers will recognise.
    pub identity: Identity,
    /// What each connection runs.
    pub engine: EngineConfig,
    /// How many connections may be open at once, those included whose handshake goes on; more are refused.
    pub connections_max: usize,
    /// What invited peers mark their first packets with. Where it is given, accepted connections are
    /// guests until [`Connection::welcome`]: they may hold little, there are few of them, and they leave
    /// for newer ones. `None`: everybody is trusted.
    pub knock: Option<KnockKey>,
    /// The largest datagrams to send and to take, in bytes of UDP payload.
    pub datagram_max: u16,
}

impl ListenConfig {
    /// Listens everywhere with a new identity, for up to 64 connections, with datagrams as large as the
    /// first hop carries.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            listen: None,
            via: Vec::new(),
            identity: Identity::generate()?,
            engine: EngineConfig::live(),
            connections_max: 64,
            knock: None,
            datagram_max: DATAGRAM_MAX,
        })
    }
}

/// Accepts connections on one socket per interface.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    sockets: Sockets,
    fingerprint: Fingerprint,
    accepted: tokio::sync::Mutex<mpsc::Receiver<Connection>>,
    house: Arc<House>,
}

impl Listener {
    /// Binds the sockets. Must be called within a tokio runtime.
    pub fn bind(config: ListenConfig) -> Result<Self, Error> {
        config.engine.build()?;
        let (via, port) = match config.listen {
            Some(address) if address.ip().is_unspecified() => (config.via.clone(), address.port()),
            Some(address) => (vec![address.ip().to_string()], address.port()),
            None => (config.via.clone(), 0),
        };
        let found = usable_interfaces(&via)?;
        let sockets = bind_all(&found, port)?;
        let server = bounded(noq::ServerConfig::with_crypto(Arc::new(config.identity.server_crypto()?)));
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_config(config.datagram_max),
            Some(server.clone()),
            Box::new(sockets.clone()),
            Arc::new(Trains),
        )?;
        let (sender, accepted) = mpsc::channel(waiting_max(config.connections_max));
        let fingerprint = config.identity.fingerprint();
        let house = House::new(config.connections_max);
        let (at, from) = (endpoint.clone(), sockets.clone());
        let acceptor = Acceptor { endpoint: at, sockets: from, server, config, house: house.clone(), accepted: sender };
        tokio::spawn(acceptor.run());
        Ok(Self { endpoint, sockets, fingerprint, accepted: tokio::sync::Mutex::new(accepted), house })
    }

    /// The addresses that peers may connect to.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.all().iter().map(|socket| socket.local).collect()
    }

    /// What peers must be told to recognise this end.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// How often this end was asked in vain.
    pub fn knocks(&self) -> Knocks {
        self.house.knocks()
    }

    /// The next connection whose handshake succeeded; `None` after [`Listener::close`].
    pub async fn accept(&self) -> Option<Connection> {
        self.accepted.lock().await.recv().await
    }

    /// Refuses all further connections, ends the open ones with `code` and `reason`, and waits until
    /// the peers have confirmed it, at most two seconds.
    pub async fn close(&self, code: u32, reason: &str) {
        self.endpoint.close(code.into(), reason.as_bytes());
        let _ = tokio::time::timeout(FAREWELL, self.endpoint.wait_all_draining()).await;
    }
}

fn usable_interfaces(via: &[String]) -> Result<Vec<Interface>, Error> {
    interfaces::check_names(via, &interfaces::interfaces(&[])?)?;
    let found = interfaces::usable(via)?;
    if found.is_empty() {
        return Err(Error::NoUsableInterface);
    }
    Ok(found)
}

/// One socket per address, all on one port where that is free on all.
pub(crate) fn bind_all(found: &[Interface], port: u16) -> Result<Sockets, Error> {
    let mut sockets: Vec<Arc<BoundSocket>> = Vec::new();
    let mut failure = None;
    for interface in found {
        let shared = sockets.first().map_or(port, |socket| socket.local.port());
        let bound = BoundSocket::bind(interface, shared).or_else(|error| match port {
            0 => BoundSocket::bind(interface, 0),
            _ => Err(error),
        });
        match bound {
            Ok(socket) => sockets.push(socket),
            // A port asked for is asked for on all of them.
            Err(source) if port != 0 => {
                return Err(Error::Bind { address: SocketAddr::new(interface.address, port), source });
            }
            Err(source) => {
                tracing::warn!(interface = %interface.name, address = %interface.address, error = %source, "not bound");
                failure = Some(Error::Bind { address: SocketAddr::new(interface.address, port), source });
            }
        }
    }
    match (sockets.is_empty(), failure) {
        (true, Some(error)) => Err(error),
        (true, None) => Err(Error::NoUsableInterface),
        (false, _) => Ok(Sockets::new(sockets)),
    }
}

/// The socket for an interface that appeared while the endpoint runs.
pub(crate) fn bind_late(interface: &Interface, sockets: &Sockets) -> std::io::Result<()> {
    let port = sockets.all().first().map_or(0, |socket| socket.local.port());
    let socket = BoundSocket::bind(interface, port).or_else(|_| BoundSocket::bind(interface, 0))?;
    sockets.add(socket);
    Ok(())
}

/// Whether `address` has a socket.
pub(crate) fn is_bound(address: IpAddr, sockets: &Sockets) -> bool {
    sockets.of(address).is_some()
}
