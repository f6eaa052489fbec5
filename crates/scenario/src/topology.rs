//! Networks as graphs: nodes, and the links between them. One ready-made shape, one file.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::Bitrate;
//! use fairpath_net::LinkConfig;
//! use fairpath_scenario::topology::{Wire, dumbbell};
//!
//! let bottleneck = LinkConfig::new(Bitrate::from_mbps(40)).delay(Duration::from_millis(20));
//! let access = LinkConfig::new(Bitrate::from_mbps(1_000));
//! let network = dumbbell(30, &Wire::both(bottleneck), &Wire::both(access));
//! let path = network.shortest("left3", "right3")?;
//! assert_eq!(path.forward.len(), 3);
//! assert_eq!(network.link("bottleneck"), Some(path.forward[1]));
//! # Ok::<(), fairpath_scenario::RouteError>(())
//! ```

mod chain;
mod dumbbell;
mod fat_tree;
mod parallel;

use core::time::Duration;
use std::collections::BTreeMap;

use fairpath_net::LinkConfig;

use crate::model::{LinkIndex, PathRoute, ScenarioLink};

pub use chain::chain;
pub use dumbbell::dumbbell;
pub use fat_tree::{FatTree, fat_tree};
pub use parallel::parallel;

/// The settings of both directions between two nodes.
#[derive(Clone, Debug)]
pub struct Wire {
    /// From the first node to the second.
    pub forward: LinkConfig,
    /// And back.
    pub back: LinkConfig,
}

impl Wire {
    /// The same in both directions.
    pub fn both(config: LinkConfig) -> Self {
        Self { back: config.clone(), forward: config }
    }
}

/// A name that cannot be given to a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Another link has it.
    #[error("there is another link of the name {name:?}; give each a name of its own")]
    DuplicateLink {
        /// The name.
        name: String,
    },
    /// The link would end where it begins.
    #[error("a link cannot go from {node:?} to itself")]
    Loop {
        /// The node.
        node: String,
    },
}

/// A node, by its position in the order in which nodes were first named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node(pub(crate) u32);

/// Links, and the nodes that they connect. Each link is one direction; a wire is two of them.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    links: Vec<ScenarioLink>,
    /// The ends of each link, and the other direction of its wire.
    pub(crate) ends: Vec<(Node, Node)>,
    opposite: Vec<Option<LinkIndex>>,
    names: BTreeMap<String, LinkIndex>,
    nodes: Vec<String>,
    node_names: BTreeMap<String, Node>,
    /// The links that leave each node, and those that reach it.
    pub(crate) leaving: Vec<Vec<LinkIndex>>,
    pub(crate) reaching: Vec<Vec<LinkIndex>>,
    hosts: Vec<String>,
}

impl Topology {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds both directions between `from` and `to`; the one back is called `name.back`. Nodes
    /// begin to exist when they are named.
    ///
    /// # Errors
    ///
    /// Where one of the names is taken, or both ends are one.
    pub fn add_wire(&mut self, name: &str, from: &str, to: &str, wire: &Wire) -> Result<LinkIndex, TopologyError> {
        let back = back_name(name);
        for name in [name, &back] {
            if self.names.contains_key(name) {
                return Err(TopologyError::DuplicateLink { name: name.to_owned() });
            }
        }
        let forward = self.add_link(name, from, to, wire.forward.clone())?;
        let back = self.add_link(&back, to, from, wire.back.clone())?;
        self.opposite[forward.0 as usize] = Some(back);
        self.opposite[back.0 as usize] = Some(forward);
        Ok(forward)
    }

    /// Adds one direction, from `from` to `to`.
    ///
    /// # Errors
    ///
    /// Where the name is taken, or both ends are one.
    pub fn add_link(
        &mut self,
        name: &str,
        from: &str,
        to: &str,
        config: LinkConfig,
    ) -> Result<LinkIndex, TopologyError> {
        if self.names.contains_key(name) {
            return Err(TopologyError::DuplicateLink { name: name.to_owned() });
        }
        if from == to {
            return Err(TopologyError::Loop { node: from.to_owned() });
        }
        let index = LinkIndex(self.links.len() as u32);
        let ends = (self.add_node(from), self.add_node(to));
        self.names.insert(name.to_owned(), index);
        self.links.push(ScenarioLink { name: name.to_owned(), from: from.to_owned(), to: to.to_owned(), config });
        self.ends.push(ends);
        self.opposite.push(None);
        self.leaving[ends.0.0 as usize].push(index);
        self.reaching[ends.1.0 as usize].push(index);
        Ok(index)
    }

    fn add_node(&mut self, name: &str) -> Node {
        if let Some(node) = self.node_names.get(name) {
            return *node;
        }
        let node = Node(self.nodes.len() as u32);
        self.nodes.push(name.to_owned());
        self.node_names.insert(name.to_owned(), node);
        self.leaving.push(Vec::new());
        self.reaching.push(Vec::new());
        node
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> &[ScenarioLink] {
        &self.links
    }

    /// The links, for a [`Scenario`](crate::Scenario).
    pub fn into_links(self) -> Vec<ScenarioLink> {
        self.links
    }

    /// The nodes, in the order in which they were first named.
    pub fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The nodes at which traffic begins and ends, where the shape has such.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The link of this name.
    pub fn link(&self, name: &str) -> Option<LinkIndex> {
        self.names.get(name).copied()
    }

    /// The other direction of the wire that `link` belongs to; `None` where it has none.
    pub fn opposite(&self, link: LinkIndex) -> Option<LinkIndex> {
        *self.opposite.get(link.0 as usize)?
    }

    /// The delays of a path, there and back: its round-trip time while all queues are empty and
    /// transmission takes no time.
    pub fn base_rtt(&self, path: &PathRoute) -> Duration {
        let links = path.forward.iter().chain(&path.backward);
        links.fold(Duration::ZERO, |sum, link| sum.saturating_add(self.delay(*link)))
    }

    pub(crate) fn delay(&self, link: LinkIndex) -> Duration {
        self.links[link.0 as usize].config.delay
    }

    pub(crate) fn config_mut(&mut self, link: LinkIndex) -> &mut LinkConfig {
        &mut self.links[link.0 as usize].config
    }

    pub(crate) fn node(&self, name: &str) -> Option<Node> {
        self.node_names.get(name).copied()
    }

    pub(crate) fn node_name(&self, node: Node) -> &str {
        &self.nodes[node.0 as usize]
    }

    /// Adds a wire under a name that a shape has made and that nothing else has.
    fn wire(&mut self, name: &str, from: &str, to: &str, wire: &Wire) {
        let added = self.add_wire(name, from, to, wire);
        debug_assert!(added.is_ok(), "{added:?}");
    }

    /// Adds a wire called after its ends.
    fn wire_between(&mut self, from: &str, to: &str, wire: &Wire) {
        self.wire(&default_name(from, to), from, to, wire);
    }

    fn set_hosts(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.hosts = hosts.into_iter().collect();
    }
}

/// The name of a link that is given none.
pub(crate) fn default_name(from: &str, to: &str) -> String {
    format!("{from}-{to}")
}

/// The name of the other direction of a wire.
pub(crate) fn back_name(name: &str) -> String {
    format!("{name}.back")
}

#[cfg(test)]
mod tests {
    use fairpath_core::Bitrate;

    use super::*;

    fn wire() -> Wire {
        Wire::both(LinkConfig::new(Bitrate::from_mbps(1)))
    }

    #[test]
    fn a_wire_is_two_links_that_know_each_other() {
        let mut network = Topology::new();
        let forward = network.add_wire("uplink", "phone", "server", &wire()).unwrap();
        let back = network.link("uplink.back").unwrap();
        assert_eq!((network.opposite(forward), network.opposite(back)), (Some(back), Some(forward)));
        assert_eq!(network.links()[back.0 as usize].from, "server");
        assert_eq!(network.nodes(), ["phone", "server"]);
    }

    #[test]
    fn a_name_is_given_once_and_no_link_ends_where_it_begins() {
        let mut network = Topology::new();
        network.add_wire("x", "a", "b", &wire()).unwrap();
        let taken = |name: &str| Err(TopologyError::DuplicateLink { name: name.to_owned() });
        assert_eq!(network.add_wire("x", "b", "c", &wire()), taken("x"));
        assert_eq!(network.add_link("x.back", "b", "c", wire().back), taken("x.back"));
        network.add_link("y.back", "a", "b", wire().back).unwrap();
        assert_eq!(network.add_wire("y", "a", "b", &wire()), taken("y.back"));
        assert_eq!(network.add_wire("z", "a", "a", &wire()), Err(TopologyError::Loop { node: "a".to_owned() }));
        assert_eq!(network.links().len(), 3, "what was refused left nothing behind");
    }
}
