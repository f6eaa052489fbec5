//! All the ways with the fewest links between two nodes, without listing them: there can be very many.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::model::LinkIndex;
use crate::topology::{Node, Topology};

/// The ways with the fewest links from one node to another.
pub(super) struct Ways<'n> {
    network: &'n Topology,
    from: Node,
    /// From each node, how many links it is to the end; of those that are not nearer than `from`,
    /// not of all.
    hops: Vec<u32>,
    /// The number of ways onwards from each node on one of the ways, and the least delay.
    onwards: BTreeMap<Node, (u64, i128)>,
}

impl<'n> Ways<'n> {
    pub(super) fn find(network: &'n Topology, from: Node, to: Node) -> Option<Self> {
        let mut hops = vec![u32::MAX; network.nodes().len()];
        hops[to.0 as usize] = 0;
        let mut waiting = VecDeque::from([to]);
        while hops[from.0 as usize] == u32::MAX {
            let node = waiting.pop_front()?;
            for link in &network.reaching[node.0 as usize] {
                let before = network.ends[link.0 as usize].0;
                if hops[before.0 as usize] == u32::MAX {
                    hops[before.0 as usize] = hops[node.0 as usize] + 1;
                    waiting.push_back(before);
                }
            }
        }
        let mut ways = Self { network, from, hops, onwards: BTreeMap::from([(to, (1, 0))]) };
        ways.look_onwards(from);
        Some(ways)
    }

    /// Fills in what comes after the nodes on the ways, the farthest first.
    fn look_onwards(&mut self, from: Node) {
        let mut on_a_way = vec![from];
        let mut known = BTreeSet::from([from]);
        let mut looked_at = 0;
        while let Some(node) = on_a_way.get(looked_at).copied() {
            on_a_way.extend(self.nearer(node).map(|(_, next)| next).filter(|next| known.insert(*next)));
            looked_at += 1;
        }
        for node in on_a_way.into_iter().rev().filter(|node| self.hops[node.0 as usize] > 0) {
            let mut sum = (0_u64, i128::MAX);
            for (link, next) in self.nearer(node) {
                let (count, delay) = self.onwards_of(next);
                sum = (sum.0.saturating_add(count), sum.1.min(delay + self.network.delay_ns(link)));
            }
            self.onwards.insert(node, sum);
        }
    }

    fn onwards_of(&self, node: Node) -> (u64, i128) {
        self.onwards.get(&node).copied().unwrap_or_default()
    }

    /// How many there are; 2^64 - 1 also stands for more.
    pub(super) fn count(&self) -> u64 {
        self.onwards_of(self.from).0
    }

    /// The links that lead from `at` nearer to the end, and where they lead.
    fn nearer(&self, at: Node) -> impl Iterator<Item = (LinkIndex, Node)> + use<'n, '_> {
        let leaving = self.network.leaving[at.0 as usize].iter();
        let ends = leaving.map(|link| (*link, self.network.ends[link.0 as usize].1));
        ends.filter(move |(_, next)| self.hops[next.0 as usize] < self.hops[at.0 as usize])
    }

    /// The one with the least delay; of several, that with the first links.
    pub(super) fn fastest(&self) -> Vec<LinkIndex> {
        self.walk(|at| {
            self.nearer(at).min_by_key(|(link, next)| self.onwards_of(*next).1 + self.network.delay_ns(*link))
        })
    }

    /// That with this number, counted in the order of the links.
    pub(super) fn numbered(&self, mut number: u64) -> Vec<LinkIndex> {
        self.walk(|at| {
            let mut step = None;
            for (link, next) in self.nearer(at) {
                step = Some((link, next));
                let (count, _) = self.onwards_of(next);
                if number < count {
                    break;
                }
                number -= count;
            }
            step
        })
    }

    fn walk(&self, mut step: impl FnMut(Node) -> Option<(LinkIndex, Node)>) -> Vec<LinkIndex> {
        let mut way = Vec::new();
        let mut at = self.from;
        while let Some((link, next)) = step(at) {
            way.push(link);
            at = next;
        }
        way
    }
}
