//! How large a datagram may be.
//!
//! QUIC searches for the largest datagram that arrives [RFC9000 §14.3]. How far up the search goes is
//! said here: as far as the first hop can carry. So a jumbo frame, or loopback, is used as a whole, and
//! where all is Ethernet nothing is tried that cannot arrive. Each datagram costs the processor about
//! the same, small or large, and at gigabits per second that is what limits a sender.

use std::net::{IpAddr, SocketAddr};

use noq::{EndpointConfig, MtuDiscoveryConfig};

/// The largest datagram that is searched for, in bytes of UDP payload: one that fits into a jumbo frame
/// of 9,000 bytes.
pub const DATAGRAM_MAX: u16 = 9_000 - HEADERS;

/// The largest datagram that fits into an Ethernet frame, in bytes of UDP payload. It is what is searched
/// for where the system does not know the first hop.
pub const DATAGRAM_ETHERNET: u16 = 1_500 - HEADERS;

/// The smallest that every path of QUIC carries [RFC9000 §14].
const DATAGRAM_MIN: u16 = 1_200;

/// What the headers of IPv6, the larger ones, and of UDP take.
const HEADERS: u16 = 40 + 8;

/// The search on paths that begin at these addresses and go to those, for at most `limit` bytes. A
/// connection has one search for all its paths: what each of their first hops carries.
pub(crate) fn search(ways: impl IntoIterator<Item = (IpAddr, SocketAddr)>, limit: u16) -> MtuDiscoveryConfig {
    let first_hops = ways.into_iter().map(|(local, remote)| mtu_towards(local, remote));
    let carried = first_hops.map(|mtu| mtu.map_or(DATAGRAM_ETHERNET, |mtu| mtu.saturating_sub(HEADERS)));
    let bound = carried.min().unwrap_or(DATAGRAM_ETHERNET).min(limit);
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(bound.max(DATAGRAM_MIN));
    search
}

/// The endpoint that takes in datagrams of up to `limit` bytes.
pub(crate) fn endpoint_config(limit: u16) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(limit.max(DATAGRAM_MIN)).expect("no smaller than QUIC allows");
    config
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

#[cfg(test)]
mod tests {
    use super::*;

    fn way(local: &str, remote: &str) -> (IpAddr, SocketAddr) {
        (local.parse().unwrap(), remote.parse().unwrap())
    }

    fn bound(ways: &[(IpAddr, SocketAddr)], limit: u16) -> String {
        format!("{:?}", search(ways.iter().copied(), limit))
    }

    fn expected(upper_bound: u16) -> String {
        format!("{:?}", MtuDiscoveryConfig::default().upper_bound(upper_bound))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_search_goes_as_far_as_every_first_hop_and_the_limit_allow() {
        let loopback = way("127.0.0.1", "127.0.0.1:9");
        let unknown = way("192.0.2.1", "192.0.2.2:9");
        assert_eq!(bound(&[loopback], DATAGRAM_MAX), expected(DATAGRAM_MAX));
        assert_eq!(bound(&[loopback], 4_000), expected(4_000));
        assert_eq!(bound(&[loopback], 100), expected(DATAGRAM_MIN));
        assert_eq!(bound(&[loopback, unknown], DATAGRAM_MAX), expected(DATAGRAM_ETHERNET));
        assert_eq!(bound(&[], DATAGRAM_MAX), expected(DATAGRAM_ETHERNET));
    }
}
