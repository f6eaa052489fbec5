//! The fat tree of data centres [AlFares2008], also with more hosts than its core can serve at once.

use super::{Topology, Wire};

/// A fat tree of switches with `k` ports each.
///
/// There are k pods; a pod has k/2 edge and k/2 aggregation switches, each connected with each. The
/// i-th aggregation switch of a pod is connected with the k/2 core switches from number i·k/2 on.
/// Each edge switch has k/2 hosts, or `oversubscription` times as many: then its hosts can send so
/// many times more than its uplinks carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FatTree {
    k: u32,
    oversubscription: u32,
}

impl FatTree {
    /// No larger tree is built: it has 8,192 hosts and 49,152 links.
    pub const K_MAX: u32 = 32;
    /// No tree with more hosts is built.
    pub const HOSTS_MAX: u32 = 20_000;

    /// A tree of switches with `k` ports; `None` where `k` is odd, below 2, or too large.
    pub fn new(k: u32) -> Option<Self> {
        (k.is_multiple_of(2) && (2..=Self::K_MAX).contains(&k)).then_some(Self { k, oversubscription: 1 })
    }

    /// The same with `ratio` times as many hosts; `None` where that is none or too many.
    pub fn oversubscribed(self, ratio: u32) -> Option<Self> {
        let hosts = u64::from(ratio) * u64::from(Self { oversubscription: 1, ..self }.hosts());
        let fits = (1..=u64::from(Self::HOSTS_MAX)).contains(&hosts);
        fits.then_some(Self { oversubscription: ratio, ..self })
    }

    /// How many hosts it has: k³/4 times the ratio.
    pub fn hosts(self) -> u32 {
        self.k * self.k * self.k / 4 * self.oversubscription
    }

    /// How many hosts one edge switch has.
    fn hosts_per_edge(self) -> u32 {
        self.k / 2 * self.oversubscription
    }
}

/// The network of a fat tree, with the same wire everywhere.
///
/// Hosts are `h0`…, in order of pods and edge switches. Edge switches are `e{pod}.{i}`, aggregation
/// switches `a{pod}.{i}`, core switches `c{i}`. Links are called after their ends, `h0-e0.0`;
/// forward is up, towards the core.
pub fn fat_tree(tree: FatTree, wire: &Wire) -> Topology {
    let mut network = Topology::new();
    let half = tree.k / 2;
    for pod in 0..tree.k {
        for edge in 0..half {
            let switch = format!("e{pod}.{edge}");
            let first = (pod * half + edge) * tree.hosts_per_edge();
            for host in first..first + tree.hosts_per_edge() {
                network.wire_between(&format!("h{host}"), &switch, wire);
            }
            for aggregation in 0..half {
                network.wire_between(&switch, &format!("a{pod}.{aggregation}"), wire);
            }
        }
        for aggregation in 0..half {
            for core in aggregation * half..(aggregation + 1) * half {
                network.wire_between(&format!("a{pod}.{aggregation}"), &format!("c{core}"), wire);
            }
        }
    }
    network.set_hosts((0..tree.hosts()).map(|host| format!("h{host}")));
    network
}

#[cfg(test)]
mod tests {
    use fairpath_core::Bitrate;
    use fairpath_net::LinkConfig;

    use super::*;

    fn build(k: u32, ratio: u32) -> Topology {
        let wire = Wire::both(LinkConfig::new(Bitrate::from_mbps(100)));
        fat_tree(FatTree::new(k).unwrap().oversubscribed(ratio).unwrap(), &wire)
    }

    #[test]
    fn eight_ports_make_128_hosts_and_80_switches() {
        let network = build(8, 1);
        assert_eq!(network.hosts().len(), 128);
        // 8 · (4 + 4) + 16
        assert_eq!(network.nodes().len() - 128, 80);
        // 128 hosts, 8 · 4 · 4 between edge and aggregation, as many to the core; both directions.
        assert_eq!(network.links().len(), 3 * 128 * 2);
    }

    #[test]
    fn every_switch_uses_all_its_ports() {
        let network = build(4, 1);
        for (node, leaving) in network.nodes().iter().zip(&network.leaving) {
            let ports = if node.starts_with('h') { 1 } else { 4 };
            assert_eq!(leaving.len(), ports, "{node}");
        }
    }

    #[test]
    fn four_times_as_many_hosts_make_512() {
        let network = build(8, 4);
        assert_eq!(network.hosts().len(), 512);
        let edge = network.node("e0.0").unwrap();
        // 16 hosts and 4 uplinks
        assert_eq!(network.leaving[edge.0 as usize].len(), 20);
        assert_eq!(network.nodes().len() - 512, 80, "the switches are as many");
    }

    #[test]
    fn hosts_of_different_pods_have_a_path_over_every_core_switch() {
        let network = build(8, 1);
        assert_eq!(network.equal_cost_count("h0", "h127").unwrap(), 16);
        assert_eq!(network.equal_cost_count("h0", "h4").unwrap(), 4, "in one pod");
        assert_eq!(network.equal_cost_count("h0", "h1").unwrap(), 1, "at one switch");
        assert_eq!(network.shortest("h0", "h127").unwrap().forward.len(), 6);
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        assert!([0, 1, 3, 34].into_iter().all(|k| FatTree::new(k).is_none()));
        assert!(FatTree::new(8).unwrap().oversubscribed(0).is_none());
        assert!(FatTree::new(32).unwrap().oversubscribed(3).is_none());
        assert!(FatTree::new(8).unwrap().oversubscribed(u32::MAX).is_none());
    }
}
