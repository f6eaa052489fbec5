//! Addresses as an endpoint knows them, and as a person does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// IPv4 addresses as IPv6 ones, which is how an endpoint of both families knows them.
pub fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into(),
        v6 => v6,
    }
}

/// The address as a person knows it.
pub fn unmapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// How far an address is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In the site only [RFC1918 §3] [RFC6598 §4] [RFC4193 §3].
    Site,
    /// Everywhere.
    Global,
}

/// How far the address is known.
pub(crate) fn scope(address: IpAddr) -> Scope {
    let is_of_site = match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_private() || v4.is_loopback() || v4.is_link_local() || (a == 100 && b & 0xc0 == 64)
        }
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_loopback(),
    };
    if is_of_site { Scope::Site } else { Scope::Global }
}

/// Whether an address has a meaning at one link only.
pub fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// The first half of addresses that stand for another and are never on a wire: the prefix that is discarded
/// everywhere [RFC6666 §3].
const STAND_IN: [u16; 4] = [0x100, 0, 0, 0];

/// The name by which paths know `address` at the interface number `twin` of those that have it. The stack tells paths
/// here apart by their addresses alone, so all but the first, number 0, need a stand-in. `None`: there is none.
pub fn stand_in(address: IpAddr, twin: u16) -> Option<IpAddr> {
    match address {
        _ if twin == 0 => Some(address),
        IpAddr::V4(v4) => {
            let ([p, q, r, s], bits) = (STAND_IN, v4.to_bits());
            Some(Ipv6Addr::from([p, q, r, s, 0, twin, (bits >> 16) as u16, bits as u16]).into())
        }
        // The 54 bits behind the prefix of a link-local address are zero [RFC4291 §2.5.6].
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            let mut parts = v6.segments();
            parts[1] = twin;
            Some(Ipv6Addr::from(parts).into())
        }
        IpAddr::V6(_) => None,
    }
}

/// The number of the interface among those that have its address.
pub fn twin_of(name: IpAddr) -> u16 {
    match name {
        IpAddr::V6(v6) if v6.segments()[..4] == STAND_IN => v6.segments()[5],
        IpAddr::V6(v6) if v6.is_unicast_link_local() => v6.segments()[1],
        _ => 0,
    }
}

/// The address that an interface has, of the name by which paths know it.
pub fn own_address(name: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = name else { return name };
    let mut parts = v6.segments();
    if parts[..4] == STAND_IN {
        let [.., a, b] = parts;
        return Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b)).into();
    }
    if v6.is_unicast_link_local() {
        parts[1] = 0;
    }
    Ipv6Addr::from(parts).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_and_back_is_the_same_address() {
        let address: SocketAddr = "192.0.2.7:4433".parse().unwrap();
        assert_eq!(mapped(address).to_string(), "[::ffff:192.0.2.7]:4433");
        assert_eq!(unmapped(mapped(address)), address);
    }

    #[test]
    fn an_address_that_several_interfaces_have_gets_a_name_for_each() {
        for address in ["192.168.8.100", "fe80::1"] {
            let address: IpAddr = address.parse().unwrap();
            let names = [0, 1, 2, u16::MAX].map(|twin| stand_in(address, twin).unwrap());
            let different: std::collections::BTreeSet<IpAddr> = names.into();
            assert_eq!((names[0], different.len()), (address, 4));
            assert!(names.iter().all(|name| own_address(*name) == address), "{names:?}");
            assert_eq!(names.map(twin_of), [0, 1, 2, u16::MAX]);
        }
        let global: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!((stand_in(global, 0), stand_in(global, 1), own_address(global)), (Some(global), None, global));
    }
}
