//! Wires in a row.

use super::{Topology, Wire};

/// `hops` wires in a row: `n0`, `n1`… up to `n{hops}`, and between them `n0-n1`, `n1-n2`…. With
/// flows over one hop each beside one over all, it is the parking lot. Every node is a host.
pub fn chain(hops: u32, wire: &Wire) -> Topology {
    let mut network = Topology::new();
    let node = |number: u32| format!("n{number}");
    for hop in 0..hops {
        network.wire_between(&node(hop), &node(hop + 1), wire);
    }
    network.set_hosts((0..=hops).map(node));
    network
}
