//! The sockets of one endpoint; they come and go with the interfaces.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use fairpath_quic_core::{Interfaces, own_address};

use crate::allowance::Allowances;
use crate::error::Error;
use crate::interfaces::Interface;
use crate::machine::Machine;
use crate::socket::BoundSocket;

/// All of them. They are replaced as a whole and never changed, so that nobody waits while they are read.
#[derive(Clone, Debug)]
pub(crate) struct Sockets {
    machine: Machine,
    allowances: Allowances,
    all: Arc<RwLock<Arc<[Arc<BoundSocket>]>>>,
    /// The port of the first that there was; 0: there was none.
    port: Arc<AtomicU16>,
    /// The names of addresses that are gone, with their interfaces: paths that begin there go on from another.
    retired: Arc<Mutex<Vec<(IpAddr, String)>>>,
}

/// The most addresses that are remembered after they are gone.
const RETIRED_MAX: usize = 64;

impl Sockets {
    pub(crate) fn new(machine: Machine, allowances: Allowances, sockets: Vec<Arc<BoundSocket>>) -> Self {
        let port = sockets.first().map_or(0, |socket| socket.local.port());
        let (port, all) = (Arc::new(port.into()), Arc::new(RwLock::new(sockets.into())));
        Self { machine, allowances, all, port, retired: Arc::default() }
    }

    /// One socket per address, all on one port where that is free on all.
    pub(crate) fn bind(
        machine: Machine,
        allowances: Allowances,
        found: &[Interface],
        port: u16,
    ) -> Result<Self, Error> {
        let sockets = Self::bound(&machine, &allowances, Vec::new(), found, port)?;
        Ok(Self::new(machine, allowances, sockets))
    }

    /// Adds one socket for each address that has none, on the port of the others where that is free.
    pub(crate) fn extend(&self, found: &[Interface]) -> Result<(), Error> {
        let known = self.all().to_vec();
        let of = |interface: &&Interface| known.iter().all(|socket| socket.name != interface.local());
        let missing: Vec<Interface> = found.iter().filter(of).cloned().collect();
        let all = Self::bound(&self.machine, &self.allowances, known.clone(), &missing, 0)?;
        self.include(&all[known.len()..]);
        let first = all.first().map_or(0, |socket| socket.local.port());
        // Once it is known it stays.
        let _ = self.port.compare_exchange(0, first, Ordering::Relaxed, Ordering::Relaxed);
        Ok(())
    }

    /// The sockets that there are, and one for each of these addresses.
    fn bound(
        machine: &Machine,
        allowances: &Allowances,
        mut sockets: Vec<Arc<BoundSocket>>,
        found: &[Interface],
        port: u16,
    ) -> Result<Vec<Arc<BoundSocket>>, Error> {
        let mut failure = None;
        for interface in found {
            let shared = shared_port(&sockets, interface, port);
            let bind = |port| BoundSocket::bind(machine, interface, allowances.of(interface), port);
            let bound = bind(shared).or_else(|error| match port {
                _ if port == 0 || interface.twin > 0 => bind(0),
                _ => Err(error),
            });
            match bound {
                Ok(socket) => sockets.push(socket),
                // A port asked for is asked for on all that peers are told of.
                Err(source) if port != 0 && interface.unusable.is_none() => {
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
            (false, _) => Ok(sockets),
        }
    }

    /// The port of the first of them.
    pub(crate) fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    /// The machine that they are on.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How much may go over which interfaces.
    pub(crate) fn allowances(&self) -> &Allowances {
        &self.allowances
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
        let port = if interface.twin == 0 { self.port() } else { 0 };
        let bind = |port| BoundSocket::bind(&self.machine, interface, self.allowances.of(interface), port);
        let socket = bind(port).or_else(|_| bind(0))?;
        self.include(&[socket]);
        Ok(())
    }

    /// Takes sockets into use. Where somebody else was first with an address, that one stays.
    fn include(&self, more: &[Arc<BoundSocket>]) {
        self.replace(|sockets| {
            let is_new = |one: &&Arc<BoundSocket>| sockets.iter().all(|known| known.name != one.name);
            sockets.iter().chain(more.iter().filter(is_new)).cloned().collect()
        });
    }

    pub(crate) fn remove(&self, local: IpAddr) {
        self.replace(|sockets| sockets.iter().filter(|socket| socket.name != local).cloned().collect());
    }

    /// Removes a socket whose address is gone. What leaves from there leaves from another, if there is one.
    pub(crate) fn retire(&self, socket: &BoundSocket) {
        self.remove(socket.name);
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|(name, _)| *name != socket.name);
        retired.push((socket.name, socket.interface.clone()));
        if retired.len() > RETIRED_MAX {
            retired.remove(0);
        }
    }

    /// The socket from which leaves what began at an address that is gone: of the same interface, if that has another.
    pub(crate) fn in_place_of(&self, name: IpAddr) -> Option<Arc<BoundSocket>> {
        let retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, interface) = retired.iter().find(|(retired, _)| *retired == name)?;
        let is_ipv4 = own_address(name).is_ipv4();
        let all = self.all();
        let alike = || all.iter().filter(|socket| socket.is_told && socket.local.is_ipv4() == is_ipv4);
        alike().find(|socket| socket.interface == *interface).or_else(|| alike().next()).cloned()
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
