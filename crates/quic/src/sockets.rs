//! The sockets of one endpoint; they come and go with the interfaces.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use fairpath_quic_core::Interfaces;

use crate::error::Error;
use crate::interfaces::Interface;
use crate::machine::Machine;
use crate::socket::BoundSocket;

/// All of them. They are replaced as a whole and never changed, so that nobody waits while they are read.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    machine: Machine,
    all: Arc<RwLock<Arc<[Arc<BoundSocket>]>>>,
}

impl Sockets {
    pub(crate) fn new(machine: Machine, sockets: Vec<Arc<BoundSocket>>) -> Self {
        Self { machine, all: Arc::new(RwLock::new(sockets.into())) }
    }

    /// One socket per address, all on one port where that is free on all.
    pub(crate) fn bind(machine: Machine, found: &[Interface], port: u16) -> Result<Self, Error> {
        let mut sockets: Vec<Arc<BoundSocket>> = Vec::new();
        let mut failure = None;
        for interface in found {
            let shared = shared_port(&sockets, interface, port);
            let bound = BoundSocket::bind(&machine, interface, shared).or_else(|error| match port {
                _ if port == 0 || interface.twin > 0 => BoundSocket::bind(&machine, interface, 0),
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
            (false, _) => Ok(Self::new(machine, sockets)),
        }
    }

    /// The machine that they are on.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn all(&self) -> Arc<[Arc<BoundSocket>]> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The socket of a local address.
    pub(crate) fn of(&self, local: IpAddr) -> Option<Arc<BoundSocket>> {
        self.all().iter().find(|socket| socket.name == local).cloned()
    }

    /// The addresses that have a socket, by the names of their interfaces.
    pub(crate) fn interfaces(&self) -> Interfaces {
        self.all().iter().map(|socket| (socket.interface.clone(), socket.name)).collect()
    }

    /// Adds a socket for an interface that appeared.
    pub(crate) fn add(&self, interface: &Interface) -> io::Result<()> {
        let port = shared_port(&self.all(), interface, 0);
        let bind = |port| BoundSocket::bind(&self.machine, interface, port);
        let socket = bind(port).or_else(|_| bind(0))?;
        self.replace(|sockets| sockets.iter().cloned().chain([socket]).collect());
        Ok(())
    }

    pub(crate) fn remove(&self, local: IpAddr) {
        self.replace(|sockets| sockets.iter().filter(|socket| socket.name != local).cloned().collect());
    }

    fn replace(&self, with: impl FnOnce(&[Arc<BoundSocket>]) -> Vec<Arc<BoundSocket>>) {
        let mut sockets = self.all.write().unwrap_or_else(PoisonError::into_inner);
        *sockets = with(&sockets).into();
    }
}

/// The port of the sockets that there are, or `port` where there are none. Of interfaces with one address each has its
/// own: what comes for one may come in on another.
fn shared_port(sockets: &[Arc<BoundSocket>], interface: &Interface, port: u16) -> u16 {
    match interface.twin {
        0 => sockets.first().map_or(port, |socket| socket.local.port()),
        _ => 0,
    }
}
