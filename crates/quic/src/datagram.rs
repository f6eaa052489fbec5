//! How large datagrams may be, as far as the first hops tell.

use std::net::{IpAddr, SocketAddr};

use noq_proto::MtuDiscoveryConfig;

/// The search on paths that begin at these addresses and go to those, for at most `limit` bytes of UDP payload.
pub(crate) fn search(ways: impl IntoIterator<Item = (IpAddr, SocketAddr)>, limit: u16) -> MtuDiscoveryConfig {
    fairpath_quic_core::search(ways.into_iter().map(|(local, remote)| mtu_towards(local, remote)), limit)
}

/// The largest packet that leaves for `remote` in one piece, in bytes with its IP header; `None` where the
/// system does not say.
fn mtu_towards(local: IpAddr, remote: SocketAddr) -> Option<u16> {
    #[cfg(target_os = "linux")]
    {
        let socket = std::net::UdpSocket::bind((local, 0)).ok()?;
        // Sends nothing: it only looks up the route.
        socket.connect(remote).ok()?;
        let mtu = match remote {
            SocketAddr::V4(_) => rustix::net::sockopt::ip_mtu(&socket),
            SocketAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&socket),
        };
        // Loopback says 65,536: more than a packet can have.
        mtu.ok().map(|mtu| mtu.try_into().unwrap_or(u16::MAX))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (local, remote);
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn loopback_says_that_it_carries_the_largest_packets_and_an_address_of_others_says_nothing() {
        let way = |local: &str, remote: &str| mtu_towards(local.parse().unwrap(), remote.parse().unwrap());
        assert_eq!(way("127.0.0.1", "127.0.0.1:9"), Some(u16::MAX));
        assert_eq!(way("192.0.2.1", "192.0.2.2:9"), None);
    }
}
