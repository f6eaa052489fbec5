//! Addresses of both families, as an endpoint and as a person knows them.

use std::net::{SocketAddr, SocketAddrV6};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_and_back_is_the_same_address() {
        let address: SocketAddr = "192.0.2.7:4433".parse().unwrap();
        assert_eq!(mapped(address).to_string(), "[::ffff:192.0.2.7]:4433");
        assert_eq!(unmapped(mapped(address)), address);
    }
}
