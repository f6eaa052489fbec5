//! How large a datagram may be.
//!
//! QUIC searches for the largest datagram that arrives [RFC9000 §14.3]. How far up the search goes is
//! said here: as far as the first hops can carry. So a jumbo frame, or loopback, is used as a whole, and
//! where all is Ethernet nothing is tried that cannot arrive. Each datagram costs the processor about
//! the same, small or large, and at gigabits per second that is what limits a sender.

use noq_proto::{EndpointConfig, MtuDiscoveryConfig};
use web_time::Duration;

/// The largest datagram that is searched for, in bytes of UDP payload: one that fits into a jumbo frame
/// of 9,000 bytes.
pub const DATAGRAM_MAX: u16 = 9_000 - HEADERS;

/// The largest datagram that fits into an Ethernet frame, in bytes of UDP payload. It is what is searched
/// for where the system does not know the first hop.
pub const DATAGRAM_ETHERNET: u16 = 1_500 - HEADERS;

/// The smallest that every path of QUIC carries [RFC9000 §14].
const DATAGRAM_MIN: u16 = 1_200;

/// The headers of IPv6, which are larger than those of IPv4, and of UDP.
const HEADERS: u16 = 40 + 8;

/// How long after an apparent black hole for large datagrams they are probed again. A path that loses a
/// third of all packets looks like one, and then all paths carry small datagrams only: the stack is
/// bounded by the path that carries the least. A new search takes at most 15 probes, which is 34 kbit/s
/// over 5 s on a path that does not carry them. The stack's default of a minute would be ten times the
/// outage of a modem.
const TRIED_AGAIN: Duration = Duration::from_secs(5);

/// The search of a connection whose paths begin with hops that carry packets of these sizes, in bytes with
/// their IP headers, where they are known; for at most `limit` bytes. A connection has one search for all its
/// paths: what each of their first hops carries.
pub fn search(first_hops: impl IntoIterator<Item = Option<u16>>, limit: u16) -> MtuDiscoveryConfig {
    let carried = first_hops.into_iter().map(|mtu| mtu.map_or(DATAGRAM_ETHERNET, |mtu| mtu.saturating_sub(HEADERS)));
    let bound = carried.min().unwrap_or(DATAGRAM_ETHERNET).min(limit);
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(bound.max(DATAGRAM_MIN)).black_hole_cooldown(TRIED_AGAIN);
    search
}

/// Lets an endpoint take in datagrams of up to `limit` bytes.
pub(crate) fn take_up_to(limit: u16, config: &mut EndpointConfig) {
    config.max_udp_payload_size(limit.max(DATAGRAM_MIN)).expect("no smaller than QUIC allows");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(first_hops: &[Option<u16>], limit: u16) -> String {
        format!("{:?}", search(first_hops.iter().copied(), limit))
    }

    fn expected(upper_bound: u16) -> String {
        format!("{:?}", MtuDiscoveryConfig::default().upper_bound(upper_bound).black_hole_cooldown(TRIED_AGAIN))
    }

    #[test]
    fn the_search_goes_as_far_as_every_first_hop_and_the_limit_allow() {
        let loopback = Some(u16::MAX);
        assert_eq!(bound(&[loopback], DATAGRAM_MAX), expected(DATAGRAM_MAX));
        assert_eq!(bound(&[loopback], 4_000), expected(4_000));
        assert_eq!(bound(&[loopback], 100), expected(DATAGRAM_MIN));
        assert_eq!(bound(&[loopback, None], DATAGRAM_MAX), expected(DATAGRAM_ETHERNET));
        assert_eq!(bound(&[], DATAGRAM_MAX), expected(DATAGRAM_ETHERNET));
    }
}
