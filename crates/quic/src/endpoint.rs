//! The end of connections that listens, and the sockets of either end.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use fairpath_engine::EngineConfig;
use noq::Endpoint;
use tokio::sync::mpsc;

use crate::adapter::ConnectionEngine;
use crate::connection::{Connection, FAREWELL};
use crate::datagram::{DATAGRAM_MAX, endpoint_config, search};
use crate::error::Error;
use crate::interfaces::{self, Interface};
use crate::path_manager::Role;
use crate::socket::{BoundSocket, Sockets, unmapped};
use crate::tls::{Fingerprint, Identity};
use crate::train::Trains;
use crate::transport::transport;

/// How long a peer may take over its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

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
    /// How many connections may be open at once; more are refused.
    pub connections_max: usize,
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
        let server = noq::ServerConfig::with_crypto(Arc::new(config.identity.server_crypto()?));
        let endpoint = Endpoint::new_with_abstract_socket(
            endpoint_config(config.datagram_max),
            Some(server.clone()),
            Box::new(sockets.clone()),
            Arc::new(Trains),
        )?;
        let (sender, accepted) = mpsc::channel(config.connections_max.max(1));
        let fingerprint = config.identity.fingerprint();
        tokio::spawn(accept_all(endpoint.clone(), sockets.clone(), server, config, sender));
        Ok(Self { endpoint, sockets, fingerprint, accepted: tokio::sync::Mutex::new(accepted) })
    }

    /// The addresses that peers may connect to.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.all().iter().map(|socket| socket.local).collect()
    }

    /// What peers must be told to recognise this end.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
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

async fn accept_all(
    endpoint: Endpoint,
    sockets: Sockets,
    server: noq::ServerConfig,
    config: ListenConfig,
    accepted: mpsc::Sender<Connection>,
) {
    while let Some(incoming) = endpoint.accept().await {
        if endpoint.open_connections() > config.connections_max {
            tracing::warn!(peer = %incoming.remote_address(), "refused: too many connections");
            incoming.refuse();
            continue;
        }
        let Ok(engine) = config.engine.build().map(ConnectionEngine::new) else { return };
        let mut server = server.clone();
        let way = incoming.local_ip().map(|local| (local.to_canonical(), unmapped(incoming.remote_address())));
        server.transport_config(transport(&engine, search(way, config.datagram_max)));
        let accepted = accepted.clone();
        let sockets = sockets.clone();
        tokio::spawn(async move {
            let Ok(connecting) = incoming.accept_with(Arc::new(server)) else { return };
            match tokio::time::timeout(HANDSHAKE, connecting).await {
                Ok(Ok(quic)) => {
                    let connection = Connection::new(quic, engine, sockets, Role::Acceptor);
                    let _ = accepted.send(connection).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "handshake failed"),
                Err(_) => tracing::debug!("handshake took too long"),
            }
        });
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
