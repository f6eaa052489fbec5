//! The machine that an endpoint runs on: this one, or in the fault simulator one that is simulated.
//!
//! It may also be this machine with sockets that the program gives. Everything that an endpoint
//! takes from the system stands here: addresses, sockets, randomness, the size of packets. With the
//! feature `simulation` all of it may come from elsewhere. Everything above stays as it is: the
//! driver, the connection, the observers of the interfaces.

use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(feature = "simulation")]
use std::sync::Arc;

use fairpath_quic_core::{EndpointConfig, Router, own_address};
use noq_proto::MtuDiscoveryConfig;

use crate::error::Error;
use crate::given::GivenSockets;
use crate::interfaces::{self, Interface, Lost, number_twins, without_tunnels};

/// Where an endpoint runs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Machine {
    /// On this machine.
    #[default]
    System,
    /// On this machine, without its tunnels, unless they are named or lead alone to the peer. For an end that tunnels may
    /// run over: a path through one of these would run over itself.
    Links,
    /// On this machine, with these sockets and no others.
    Sockets(GivenSockets),
    /// On one that is simulated.
    #[cfg(feature = "simulation")]
    Simulated(Arc<dyn SimulatedMachine>),
}

/// A machine that is simulated. Its clock is that of the runtime which the endpoint runs in.
#[cfg(feature = "simulation")]
pub trait SimulatedMachine: std::fmt::Debug + Send + Sync {
    /// The addresses that paths may start from.
    fn interfaces(&self) -> Vec<Interface>;

    /// A socket of this address; port 0: any.
    fn bind(&self, address: SocketAddr) -> io::Result<Arc<dyn SimulatedSocket>>;

    /// The randomness and cryptography of the next endpoint.
    fn origin(&self) -> Arc<dyn fairpath_quic_core::Origin>;

    /// Fills `bytes` at random.
    fn fill(&self, bytes: &mut [u8]);
}

/// A UDP socket of a simulated machine.
#[cfg(feature = "simulation")]
pub trait SimulatedSocket: std::fmt::Debug + Send + Sync {
    /// Its address.
    fn local_addr(&self) -> SocketAddr;

    /// Sends one datagram.
    fn send(&self, to: SocketAddr, datagram: &[u8]);

    /// Reads one datagram into `buffer`: how long it is, and where it is from.
    fn poll_recv(
        &self,
        cx: &mut std::task::Context<'_>,
        buffer: &mut [u8],
    ) -> std::task::Poll<io::Result<(usize, SocketAddr)>>;
}

impl Machine {
    /// Checks that what was asked for is there.
    pub(crate) fn check_names(&self, via: &[String]) -> Result<(), Error> {
        match self {
            Self::System | Self::Links => Ok(interfaces::check_names(via, &interfaces::interfaces(&[])?)?),
            Self::Sockets(_) => Ok(()),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Ok(()),
        }
    }

    /// The addresses that paths start from; those in `known` keep the names by which paths know them.
    pub(crate) fn usable(&self, via: &[String], known: &[(String, IpAddr)]) -> io::Result<Vec<Interface>> {
        match self {
            Self::System => Ok(number_twins(interfaces::usable(via)?, known)),
            Self::Links => Ok(number_twins(without_tunnels(interfaces::usable(via)?, via), known)),
            Self::Sockets(given) => Ok(number_twins(given.interfaces(), known)),
            #[cfg(feature = "simulation")]
            Self::Simulated(machine) => Ok(machine.interfaces()),
        }
    }

    /// Every address that there is, with its interface.
    pub(crate) fn addresses(&self) -> io::Result<Vec<(String, IpAddr)>> {
        let found = match self {
            Self::System | Self::Links => interfaces::interfaces(&[])?,
            Self::Sockets(given) => given.interfaces(),
            #[cfg(feature = "simulation")]
            Self::Simulated(machine) => machine.interfaces(),
        };
        Ok(found.into_iter().map(|one| (one.name, one.address)).collect())
    }

    /// All addresses that a machine listens on which listens everywhere.
    pub(crate) fn everywhere(&self, known: &[(String, IpAddr)]) -> io::Result<Vec<Interface>> {
        match self {
            Self::System => Ok(number_twins(interfaces::everywhere()?, known)),
            Self::Links => Ok(number_twins(without_tunnels(interfaces::everywhere()?, &[]), known)),
            Self::Sockets(given) => Ok(number_twins(given.interfaces(), known)),
            #[cfg(feature = "simulation")]
            Self::Simulated(machine) => Ok(machine.interfaces()),
        }
    }

    /// The addresses that paths to `remotes` start from; those in `known` keep the names by which paths know them.
    pub(crate) fn towards(
        &self,
        via: &[String],
        remotes: &[SocketAddr],
        known: &[(String, IpAddr)],
    ) -> io::Result<Vec<Interface>> {
        match self {
            Self::System => Ok(number_twins(interfaces::towards(via, remotes)?, known)),
            Self::Links => Ok(number_twins(without_tunnels(interfaces::towards(via, remotes)?, via), known)),
            Self::Sockets(given) => Ok(number_twins(given.interfaces(), known)),
            #[cfg(feature = "simulation")]
            Self::Simulated(machine) => Ok(machine.interfaces()),
        }
    }

    /// Why no path can start at this address any more, in words.
    pub(crate) fn lost(&self, name: &str, address: IpAddr, via: &[String]) -> String {
        match self {
            Self::System | Self::Links | Self::Sockets(_) => Lost::look(name, own_address(address), via).to_string(),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Lost::Gone.to_string(),
        }
    }

    /// A router without connections.
    pub(crate) fn router(&self, config: EndpointConfig) -> Result<Router, rustls::Error> {
        match self {
            Self::System | Self::Links | Self::Sockets(_) => Router::new(config),
            #[cfg(feature = "simulation")]
            Self::Simulated(machine) => Router::simulated(config, machine.origin()),
        }
    }

    /// The search for the size of datagrams on these ways, of at most `limit` bytes of UDP payload.
    pub(crate) fn search(
        &self,
        ways: impl IntoIterator<Item = (IpAddr, SocketAddr)>,
        limit: u16,
    ) -> MtuDiscoveryConfig {
        match self {
            Self::System | Self::Links | Self::Sockets(_) => crate::datagram::search(ways, limit),
            // It does not say what its first hops carry.
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => fairpath_quic_core::search(ways.into_iter().map(|_| None), limit),
        }
    }

    /// Fills `bytes` at random.
    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        match self {
            // Where the system has no randomness, no key was made either.
            Self::System | Self::Links | Self::Sockets(_) => {
                drop(rustls::crypto::ring::default_provider().secure_random.fill(bytes))
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(machine) => machine.fill(bytes),
        }
    }
}
