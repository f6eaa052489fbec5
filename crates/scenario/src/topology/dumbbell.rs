//! Pairs of hosts on both sides of one bottleneck.

use super::{Topology, Wire};

/// `pairs` hosts on each side of one wire that they all share.
///
/// ```text
/// left0 ──┐                          ┌── right0
/// left1 ──┤ left ── bottleneck ── right ├── right1
///   …   ──┘                          └──   …
/// ```
///
/// The hosts are `left0`… and `right0`…, the routers `left` and `right`, the links `bottleneck`
/// (from `left` to `right`), `left0-left`… and `right0-right`…. Forward on an access wire is from
/// the host to its router.
pub fn dumbbell(pairs: u32, bottleneck: &Wire, access: &Wire) -> Topology {
    let mut network = Topology::new();
    network.wire("bottleneck", "left", "right", bottleneck);
    let mut hosts = Vec::new();
    for side in ["left", "right"] {
        for pair in 0..pairs {
            let host = format!("{side}{pair}");
            network.wire_between(&host, side, access);
            hosts.push(host);
        }
    }
    network.set_hosts(hosts);
    network
}
