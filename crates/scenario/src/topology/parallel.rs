//! Separate wires between two hosts.

use super::{Topology, Wire};

/// `wires` separate wires between `client` and `server`, called `link0`, `link1`…. Forward is from
/// the client to the server.
pub fn parallel(wires: u32, wire: &Wire) -> Topology {
    let mut network = Topology::new();
    for number in 0..wires {
        network.wire(&format!("link{number}"), "client", "server", wire);
    }
    network.set_hosts(["client".to_owned(), "server".to_owned()]);
    network
}
