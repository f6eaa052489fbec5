//! Addresses and ports as the command line names them: hosts may have names, and link-local addresses zones.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

use anyhow::{Context as _, bail};
use fairpath_quic::interfaces;

/// An address, or the name of a host, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPort {
    Address(SocketAddr),
    Name { host: String, port: u16 },
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl HostPort {
    /// Reads `ADDRESS:PORT`, `[ADDRESS]:PORT`, `[ADDRESS%INTERFACE]:PORT` or `NAME:PORT`. `right` tells what would be.
    pub(crate) fn parse(text: &str, right: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(right)?;
        let port: u16 = port.parse().map_err(|_| right)?;
        if let Some(inside) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (address, zone) = inside.split_once('%').ok_or(right)?;
            let address: Ipv6Addr = address.parse().map_err(|_| right)?;
            let zone = interfaces::index(zone).ok_or_else(|| format!("there is no interface '{zone}' for {inside}"))?;
            return Ok(Self::Address(SocketAddrV6::new(address, port, 0, zone).into()));
        }
        match is_host_name(host) {
            true => Ok(Self::Name { host: host.to_owned(), port }),
            false => Err(right.to_owned()),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name { port, .. } => *port,
        }
    }

    /// The address, where it is one already.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(address.ip()),
            Self::Name { .. } => None,
        }
    }

    /// The addresses of the host, each once, in the order in which the system gives them; at least one.
    pub(crate) async fn resolve(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let (host, port) = match self {
            Self::Address(address) => return Ok(vec![*address]),
            Self::Name { host, port } => (host, *port),
        };
        let found = tokio::net::lookup_host((host.as_str(), port)).await;
        let mut addresses: Vec<SocketAddr> =
            found.with_context(|| format!("cannot find the address of '{host}'"))?.collect();
        let mut seen = std::collections::BTreeSet::new();
        addresses.retain(|address| seen.insert(*address));
        if addresses.is_empty() {
            bail!("the host '{host}' has no address");
        }
        Ok(addresses)
    }
}

/// Whether a host may be called so. A name of digits and dots alone is an address with a fault.
fn is_host_name(name: &str) -> bool {
    let is_allowed = |one: char| one.is_alphanumeric() || "-_.".contains(one);
    let is_number = name.chars().all(|one| one.is_ascii_digit() || one == '.');
    !name.is_empty() && !name.starts_with(['-', '.']) && !is_number && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_names_and_zones_are_read() {
        let read = |text: &str| HostPort::parse(text, "wrong").map(|one| one.to_string());
        for text in ["192.0.2.1:4433", "[2001:db8::1]:4433", "nas.example:4433", "localhost:1"] {
            assert_eq!(read(text), Ok(text.to_owned()));
        }
        let wrong =
            ["192.0.2.1", "192.0.2.300:4433", "nas.example", "nas:70000", "a b:1", ":4433", "[::1:4433", "fe80::1:9"];
        for text in wrong {
            assert_eq!(read(text), Err("wrong".to_owned()), "{text}");
        }
        assert_eq!(
            read("[fe80::1%no-such-link0]:9").unwrap_err(),
            "there is no interface 'no-such-link0' for fe80::1%no-such-link0"
        );
        assert_eq!(read("[fe80::1%1]:9"), Ok("[fe80::1%1]:9".to_owned()));
    }

    #[tokio::test]
    async fn a_name_is_resolved_and_one_that_is_unknown_is_named() {
        let local = HostPort::parse("localhost:4433", "").unwrap().resolve().await.unwrap();
        assert!(local.iter().all(|address| address.ip().is_loopback() && address.port() == 4433), "{local:?}");
        let unknown = HostPort::parse("no-such-host.invalid:1", "").unwrap().resolve().await.unwrap_err();
        assert!(unknown.to_string().contains("'no-such-host.invalid'"), "{unknown}");
    }
}
