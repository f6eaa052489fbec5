//! A fat tree and who sends to whom in it: the networks of the static and of the dynamic experiment.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_net::{LinkConfig, QueueConfig, Streams};
use fairpath_scenario::topology::{FatTree, Topology, Wire, fat_tree};
use fairpath_scenario::{PathRoute, matrix};

/// The rate of every link.
pub(super) const RATE: Bitrate = Bitrate::from_mbps(100);
/// The delay of every link.
const DELAY: Duration = Duration::from_micros(100);
/// The size of a link's queue, in packets.
const QUEUE: usize = 100;

/// A fat tree, and for each host another one that it sends to.
#[derive(Debug)]
pub(super) struct DataCentre {
    pub(super) network: Topology,
    streams: Streams,
    receivers: Vec<usize>,
}

impl DataCentre {
    /// A tree of switches with `k` ports and `ratio` times as many hosts as its core can serve at
    /// once; each host sends to another one, and each receives from one.
    pub(super) fn new(k: u32, ratio: u32, seed: u64) -> Self {
        let tree = FatTree::new(k).and_then(|tree| tree.oversubscribed(ratio)).expect("the sizes are constants");
        let wire = Wire::both(LinkConfig::new(RATE).delay(DELAY).queue(QueueConfig::packets(QUEUE)));
        let network = fat_tree(tree, &wire);
        let streams = Streams::new(seed);
        let receivers = matrix::permutation(network.hosts().len(), &mut streams.generator("matrix", "permutation"));
        Self { network, streams, receivers: receivers.expect("a tree has several hosts") }
    }

    /// The hosts, in random order.
    pub(super) fn shuffled_hosts(&self) -> Vec<usize> {
        matrix::shuffled(self.receivers.len(), &mut self.streams.generator("matrix", "order"))
    }

    /// Up to `count` different ways from a host to its receiver, drawn as by switches that balance by a
    /// hash.
    pub(super) fn paths(&self, host: usize, count: u32) -> Vec<PathRoute> {
        let hosts = self.network.hosts();
        let (from, to) = (&hosts[host], &hosts[self.receivers[host]]);
        let generator = &mut self.streams.generator(from, "paths");
        self.network.equal_cost(from, to, count, generator).expect("every host reaches every other")
    }
}
