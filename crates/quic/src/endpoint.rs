//! The end of connections that listens.

use std::net::SocketAddr;
use std::sync::Arc;

use fairpath_engine::EngineConfig;
use fairpath_quic_core::{AdmissionKey, Application, DATAGRAM_MAX, EndpointConfig, Fingerprint, Identity};
use tokio::sync::{mpsc, watch};

use crate::accept::{AcceptConfig, AcceptStats, AdmissionControl};
use crate::allowance::{Allowance, Allowances};
use crate::connect::Dialer;
use crate::connection::{Connection, FAREWELL, drained};
use crate::driver::{self, Handle, Shared};
use crate::error::Error;
use crate::interfaces::{self, Interface};
use crate::machine::Machine;
use crate::path_control::PathControl;
use crate::sockets::Sockets;
use crate::watch::{self as watching, Plan};

/// The configuration of a listener.
#[derive(Debug)]
pub struct ListenConfig {
    /// Listen on this address only; an unspecified address (`0.0.0.0`) means every address of this machine, or of
    /// `via`, at this port. `None`: on every usable interface, on any port, or on `port`.
    pub listen: Option<SocketAddr>,
    /// The port where `listen` names none; 0: any.
    pub port: u16,
    /// Addresses that peers are told of before the machine's own: where a NAT passes packets on to it.
    pub advertise: Vec<SocketAddr>,
    /// Interfaces or addresses to use; empty: all usable ones.
    pub via: Vec<String>,
    /// The key the peers will recognise.
    pub identity: Identity,
    /// The protocol, and its name in TLS (ALPN). Both ends must say the same.
    pub application: Application,
    /// The engine's configuration for each connection.
    pub engine: EngineConfig,
    /// How many connections may be open at once, those included whose handshake goes on; more are refused.
    pub connections_max: usize,
    /// The key with which invited peers mark their first packets. If it is given, accepted connections are
    /// guests until [`Connection::welcome`]. Guests may hold little data, there are few of them, and they
    /// leave for newer ones. `None`: everybody is trusted.
    pub admission_key: Option<AdmissionKey>,
    /// The largest datagrams to send and to take, in bytes of UDP payload.
    pub datagram_max: u16,
    /// How much may go over which interfaces; those of which it is spent are not used.
    pub allowances: Vec<Allowance>,
    /// Changes the terms of paths while connections run.
    pub control: PathControl,
    /// Where it runs.
    pub machine: Machine,
}

impl ListenConfig {
    /// Listens everywhere with a new identity, for up to 64 connections, with datagrams as large as the
    /// first hop carries.
    pub fn new() -> Result<Self, Error> {
        Ok(Self {
            listen: None,
            port: 0,
            advertise: Vec::new(),
            via: Vec::new(),
            identity: Identity::generate()?,
            application: Application::Fairpath,
            engine: EngineConfig::live(),
            connections_max: 64,
            admission_key: None,
            datagram_max: DATAGRAM_MAX,
            allowances: Vec::new(),
            control: PathControl::new(),
            machine: Machine::default(),
        })
    }
}

/// Accepts connections on one socket per interface. Where it is dropped, connections that were accepted live on.
#[derive(Debug)]
pub struct Listener {
    shared: Arc<Shared>,
    fingerprint: Fingerprint,
    addresses: watch::Receiver<Vec<SocketAddr>>,
    accepted: tokio::sync::Mutex<mpsc::Receiver<Arc<Handle>>>,
    dialer: Dialer,
}

impl Listener {
    /// Binds the sockets. Must be called within a tokio runtime.
    pub fn bind(config: ListenConfig) -> Result<Self, Error> {
        config.engine.build()?;
        let ListenConfig { listen, advertise, via, identity, engine, connections_max, admission_key, .. } = config;
        let (datagram_max, allowances, machine) = (config.datagram_max, config.allowances, config.machine);
        let application = config.application;
        let (via, port, is_everywhere) = match listen {
            Some(address) if address.ip().is_unspecified() => (via.clone(), address.port(), via.is_empty()),
            Some(address) => (vec![with_zone(address)], address.port(), false),
            None => (via, config.port, false),
        };
        let mut found = match is_everywhere {
            true => machine.everywhere(&[])?,
            false => usable_interfaces(&machine, &via)?,
        };
        let allowances = Allowances::from(allowances);
        let spent = allowances.take_spent(&mut found);
        if !spent.is_empty() && !found.iter().any(|one| one.unusable.is_none()) {
            return Err(Error::UsedUp { interfaces: spent });
        }
        let sockets = Sockets::bind(machine.clone(), allowances, &found, port)?;
        let fingerprint = identity.fingerprint();
        let router = machine.router(EndpointConfig { datagram_max, identity: Some(identity), application })?;
        let (admission, accepted) =
            AdmissionControl::new(AcceptConfig { admission_key, engine, datagram_max, machine }, connections_max);
        let shared = Shared::new(router, sockets, Some(admission), config.control);
        let dialer = Dialer::of(&shared, application, datagram_max);
        driver::spawn(&shared);
        let plan = Plan { via, is_everywhere, advertise };
        let (told, addresses) = watch::channel(plan.told(&shared));
        watching::spawn(&shared, plan, told);
        Ok(Self { addresses, shared, fingerprint, accepted: tokio::sync::Mutex::new(accepted), dialer })
    }

    /// The means to make connections over the same sockets.
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// The addresses that peers are told of.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.borrow().clone()
    }

    /// The same, and when they change. Peers that are connected are told by themselves.
    pub fn watch_addresses(&self) -> watch::Receiver<Vec<SocketAddr>> {
        self.addresses.clone()
    }

    /// The port of its sockets. Those that found it taken have another one.
    pub fn port(&self) -> u16 {
        self.shared.sockets.port()
    }

    /// The fingerprint by which peers recognise this end.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Attempts to connect to this end that failed.
    pub fn accept_stats(&self) -> AcceptStats {
        self.shared.lock().admission.as_ref().map(AdmissionControl::accept_stats).unwrap_or_default()
    }

    /// The next connection whose handshake succeeded; `None` after [`Listener::close`].
    pub async fn accept(&self) -> Option<Connection> {
        self.accepted.lock().await.recv().await.map(Connection::new)
    }

    /// Refuses all further connections, ends the open ones with `code` and `reason`, and waits until
    /// the peers have confirmed it, at most two seconds.
    pub async fn close(&self, code: u32, reason: &str) {
        let links = self.shared.close_all(code, reason);
        let _ = tokio::time::timeout(FAREWELL, async {
            for link in links {
                drained(&link).await;
            }
        })
        .await;
    }
}

/// The address as it is named among interfaces: one of the local link with its own.
fn with_zone(address: SocketAddr) -> String {
    let SocketAddr::V6(v6) = address else { return address.ip().to_string() };
    match interfaces::name(v6.scope_id()) {
        Some(name) => format!("{}%{name}", v6.ip()),
        None => v6.ip().to_string(),
    }
}

fn usable_interfaces(machine: &Machine, via: &[String]) -> Result<Vec<Interface>, Error> {
    machine.check_names(via)?;
    let found = machine.usable(via, &[])?;
    if found.is_empty() {
        return Err(Error::NoUsableInterface);
    }
    Ok(found)
}
