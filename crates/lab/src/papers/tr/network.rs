//! The network of the paper's figure 5, or as much of it as an experiment uses.
//!
//! Its nodes and links are restored from the paper's tables and text:
//!
//! ```text
//!        ┌─ L0 ── n1 ── L1 ─┐                 ┌─ L3 ─── n7 ── L11 ─┐
//!   n0 ──┤                  ├── n3 ── L2 ── n5┤                    ├── n10 ── L18 ── n11
//!        └─ L13 ─ n2 ── L7 ─┘                 └─ L10 ── n8 ── L17 ─┘
//! ```

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{LinkIndex, PathRoute};

use crate::{Net, ms};

/// All flows start within so long.
const START_JITTER: Duration = Duration::from_secs(1);

/// A link of the figure.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    pub(super) name: &'static str,
    pub(super) mbps: u64,
    pub(super) one_way_ms: u64,
    pub(super) queue: QueueConfig,
}

/// A network under construction.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) net: Net,
}

impl Network {
    /// These links, summed up over the whole duration: how soon a shared bottleneck is found is a
    /// part of what is measured.
    pub(super) fn new(title: &str, seed: u64, duration: Duration, wires: &[Wire]) -> Self {
        let mut net = Net::new(title, seed, Duration::ZERO, duration);
        for wire in wires {
            let config = LinkConfig::new(Bitrate::from_mbps(wire.mbps)).delay(ms(wire.one_way_ms));
            net.link(wire.name, config.queue(wire.queue.clone()));
        }
        Self { net }
    }

    /// A path over these links. Its way back is a delay only: nothing but acknowledgements goes
    /// there.
    pub(super) fn route(&mut self, over: &[&str]) -> PathRoute {
        let forward: Vec<LinkIndex> = over.iter().map(|name| self.find(name).expect("a link of the network")).collect();
        let delay = forward.iter().map(|link| self.net.scenario.links[link.0 as usize].config.delay).sum();
        let back = format!("{} back", over.join(" "));
        let back = match self.find(&back) {
            Some(link) => link,
            None => self.net.link(&back, LinkConfig::pure_delay(delay)),
        };
        PathRoute { forward, backward: vec![back] }
    }

    /// Adds a greedy flow. Every second packet is acknowledged, as the hosts of ns-3, Linux and QUIC
    /// do.
    pub(super) fn flow(&mut self, class: &str, engine: EngineConfig, paths: &[PathRoute]) {
        let flow = self.net.flow(class, engine, paths);
        flow.start_jitter = START_JITTER;
        flow.transport.ack_every = 2;
    }

    fn find(&self, name: &str) -> Option<LinkIndex> {
        let at = self.net.scenario.links.iter().position(|link| link.name == name)?;
        Some(LinkIndex(at as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_takes_as_long_as_the_way_there() {
        let wire = |name, one_way_ms| Wire { name, mbps: 10, one_way_ms, queue: QueueConfig::packets(10) };
        let mut network = Network::new("", 1, ms(1000), &[wire("L0", 10), wire("L1", 25)]);
        let route = network.route(&["L0", "L1"]);
        assert_eq!(route.forward, [LinkIndex(0), LinkIndex(1)]);
        let back = &network.net.scenario.links[route.backward[0].0 as usize];
        assert_eq!(back.config.delay, ms(35));
        assert_eq!(network.route(&["L0", "L1"]), route, "it is there once");
    }
}
