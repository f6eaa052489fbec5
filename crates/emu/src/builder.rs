//! The description of an emulation.

use std::net::SocketAddr;

use fairpath_core::PathId;
use fairpath_net::{LinkConfig, LinkId, Network};

use crate::emulator::Emulator;
use crate::error::EmulatorError;
use crate::relay::{Datagram, Relay};

/// How many clients a relay keeps apart unless it is told otherwise.
const DEFAULT_CLIENTS_MAX: usize = 64;

/// Describes links and paths; [`start`](Self::start) brings them to life.
#[derive(Debug)]
pub struct EmulatorBuilder {
    network: Network<Datagram>,
    link_names: Vec<String>,
    relays: Vec<Relay>,
    clients_max: usize,
}

impl EmulatorBuilder {
    /// Nothing yet. Losses and jitter come from `seed`.
    fn new(seed: u64) -> Self {
        Self {
            network: Network::new(seed),
            link_names: Vec::new(),
            relays: Vec::new(),
            clients_max: DEFAULT_CLIENTS_MAX,
        }
    }

    /// How many clients the relay of a path keeps apart: one socket each. A client more than that
    /// takes the place of the one that has been silent longest. The default is 64; at least 1.
    pub fn clients_max(&mut self, clients_max: usize) -> &mut Self {
        self.clients_max = clients_max.max(1);
        self
    }

    /// Adds a link: one direction of one wire. Its randomness depends on the seed and `name` only.
    ///
    /// # Errors
    ///
    /// Where the name is taken or the description cannot be meant.
    pub fn link(&mut self, name: &str, config: &LinkConfig) -> Result<LinkId, EmulatorError> {
        let id = self.network.add_link(name, config)?;
        self.link_names.push(name.to_owned());
        Ok(id)
    }

    /// Adds a path to the server at `target`: the links that its datagrams cross towards the
    /// server, and those on the way back. Paths are numbered from 0.
    ///
    /// # Errors
    ///
    /// Where a link is not this emulation's, or no socket can be had.
    pub fn path(
        &mut self,
        forward: &[LinkId],
        backward: &[LinkId],
        target: SocketAddr,
    ) -> Result<PathId, EmulatorError> {
        let routes = self.network.add_path(forward, backward)?;
        let path = PathId::new(self.relays.len() as u32);
        self.relays.push(Relay::new(routes, target)?);
        Ok(path)
    }

    /// Starts the emulation: from here on its relays pass on what they get.
    ///
    /// # Errors
    ///
    /// Where the operating system refuses a thread or a pipe.
    pub fn start(mut self) -> Result<Emulator, EmulatorError> {
        for relay in &mut self.relays {
            relay.set_clients_max(self.clients_max);
        }
        Emulator::start(self.network, self.relays, self.link_names)
    }
}

impl Emulator {
    /// Describes a new emulation. Losses and jitter come from `seed`.
    pub fn builder(seed: u64) -> EmulatorBuilder {
        EmulatorBuilder::new(seed)
    }
}
