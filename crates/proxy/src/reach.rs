//! Reach: which addresses a device may reach through the far end.
//!
//! By default those are the public unicast addresses, and no others. Private addresses are left out, and those of this
//! machine and of its links. So are those that stand for another address, such as the forms of IPv6 that carry one of IPv4.
//! Rules of a device add addresses by name. Addresses are judged after names were resolved, so a name cannot lead anywhere
//! else.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The rules of a device: an address that one of them allows may be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach(Vec<Rule>);

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Public unicast addresses, but for those of the far end itself.
    Public,
    /// A network, at one port or at all.
    Network { address: IpAddr, bits: u8, port: Option<u16> },
}

/// A text that is no rule. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is nothing that can be reached: `public`, 192.168.1.0/24, 192.168.1.5:22 or [fd00::]/8 are examples")]
pub struct BadReach(String);

impl Default for Reach {
    /// Public addresses.
    fn default() -> Self {
        Self(vec![Rule::Public])
    }
}

impl Reach {
    /// Why an address may not be reached, in words; `None`: it may. `own` are the addresses of the far end.
    pub fn objection(&self, target: SocketAddr, own: &[IpAddr]) -> Option<String> {
        let address = target.ip().to_canonical();
        let is_named = |rule: &Rule| match *rule {
            Rule::Public => false,
            Rule::Network { address: network, bits, port } => {
                port.is_none_or(|port| port == target.port()) && is_in(address, network, bits)
            }
        };
        if self.0.iter().any(is_named) {
            return None;
        }
        let is_own = own.iter().any(|one| one.to_canonical() == address);
        let why = match kind(address) {
            _ if is_own => "is an address of the far end itself".to_owned(),
            Some(kind) => format!("is {kind}"),
            None if self.0.contains(&Rule::Public) => return None,
            None => "is not among the addresses of this device's line".to_owned(),
        };
        Some(format!("{address} {why}, which this device may not reach"))
    }
}

/// The kind of an address that is not a public unicast one.
fn kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

/// The special-purpose addresses of IPv4, as IANA lists them (RFC 6890).
fn kind_of_v4(address: Ipv4Addr) -> Option<&'static str> {
    const SPECIAL: [(Ipv4Addr, u8, &str); 14] = [
        (Ipv4Addr::new(0, 0, 0, 0), 8, "an unspecified address"),
        (Ipv4Addr::new(10, 0, 0, 0), 8, "a private address"),
        (Ipv4Addr::new(100, 64, 0, 0), 10, "an address inside a provider's network"),
        (Ipv4Addr::new(127, 0, 0, 0), 8, "a loopback address"),
        (Ipv4Addr::new(169, 254, 0, 0), 16, "a link-local address"),
        (Ipv4Addr::new(172, 16, 0, 0), 12, "a private address"),
        (Ipv4Addr::new(192, 0, 0, 0), 24, "a reserved address"),
        (Ipv4Addr::new(192, 0, 2, 0), 24, "an address for documentation"),
        (Ipv4Addr::new(192, 88, 99, 0), 24, "a reserved address"),
        (Ipv4Addr::new(192, 168, 0, 0), 16, "a private address"),
        (Ipv4Addr::new(198, 18, 0, 0), 15, "an address for measurements"),
        (Ipv4Addr::new(198, 51, 100, 0), 24, "an address for documentation"),
        (Ipv4Addr::new(203, 0, 113, 0), 24, "an address for documentation"),
        (Ipv4Addr::new(224, 0, 0, 0), 3, "a multicast or reserved address"),
    ];
    let found = SPECIAL.iter().find(|(network, bits, _)| is_in(address.into(), (*network).into(), *bits));
    found.map(|(_, _, kind)| *kind)
}

/// Public unicast addresses of IPv6 are in `2000::/3`, but for those that carry another address in them (Teredo, 6to4)
/// and those for documentation.
fn kind_of_v6(address: Ipv6Addr) -> Option<&'static str> {
    const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0);
    const WITHIN: [(Ipv6Addr, u8, &str); 4] = [
        (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "a reserved address"),
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "an address for documentation"),
        (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "an address that carries another one"),
        (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "an address for documentation"),
    ];
    let outside = || match address {
        _ if address.is_loopback() => "a loopback address",
        _ if address.is_multicast() => "a multicast address",
        _ if address.is_unicast_link_local() => "a link-local address",
        _ if address.is_unique_local() => "a private address",
        _ => "no public unicast address",
    };
    if !is_in(address.into(), GLOBAL.into(), 3) {
        return Some(outside());
    }
    let found = WITHIN.iter().find(|(network, bits, _)| is_in(address.into(), (*network).into(), *bits));
    found.map(|(_, _, kind)| *kind)
}

/// Whether `address` is in the network of the first `bits` of `network`.
fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (address, network, length) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => (address.to_bits().into(), network.to_bits().into(), 32),
        (IpAddr::V6(address), IpAddr::V6(network)) => (address.to_bits(), network.to_bits(), 128),
        _ => return false,
    };
    let rest: u32 = length - u32::from(bits).min(length);
    let shift = |bits: u128| bits.checked_shr(rest).unwrap_or(0);
    shift(address) == shift(network)
}

impl FromStr for Rule {
    type Err = BadReach;

    fn from_str(text: &str) -> Result<Self, BadReach> {
        let bad = || BadReach(crate::target::shown(text));
        if text == "public" {
            return Ok(Self::Public);
        }
        if let Some((network, bits)) = text.split_once('/') {
            let address: IpAddr = network.trim_matches(['[', ']']).parse().map_err(|_| bad())?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            let bits: u8 = bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(bad)?;
            return Ok(Self::Network { address, bits, port: None });
        }
        let (address, port) = match (text.trim_matches(['[', ']']).parse::<IpAddr>(), text.parse::<SocketAddr>()) {
            (Ok(address), _) => (address, None),
            (_, Ok(at)) => (at.ip(), Some(at.port())),
            _ => return Err(bad()),
        };
        Ok(Self::Network { address, bits: if address.is_ipv4() { 32 } else { 128 }, port })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Public => f.write_str("public"),
            Self::Network { address, port: Some(port), .. } => SocketAddr::new(address, port).fmt(f),
            Self::Network { address, bits, port: None } => write!(f, "{address}/{bits}"),
        }
    }
}

/// Rules with commas between them.
impl FromStr for Reach {
    type Err = BadReach;

    fn from_str(text: &str) -> Result<Self, BadReach> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&rules.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection(rules: &str, target: &str) -> Option<String> {
        let own = ["93.184.216.34".parse().unwrap(), "2a00::5".parse().unwrap()];
        rules.parse::<Reach>().unwrap().objection(target.parse().unwrap(), &own)
    }

    #[test]
    fn by_default_only_public_unicast_addresses_are_reached() {
        for target in ["1.1.1.1:443", "[2606:4700::1111]:443", "[::ffff:1.1.1.1]:443", "100.128.0.1:1", "172.32.0.1:1"]
        {
            assert_eq!(objection("public", target), None, "{target}");
        }
        for target in [
            "10.0.0.1:80",
            "100.64.0.1:80",
            "127.0.0.1:22",
            "169.254.169.254:80",
            "172.31.255.255:1",
            "192.168.1.1:80",
            "0.0.0.0:80",
            "224.0.0.251:5353",
            "255.255.255.255:1",
            "[::]:1",
            "[::1]:1",
            "[::127.0.0.1]:1",
            "[::ffff:10.0.0.1]:80",
            "[::ffff:127.0.0.1]:80",
            "[64:ff9b::7f00:1]:80",
            "[2002:7f00:1::]:80",
            "[2001:0:7f00:1::]:80",
            "[fe80::1]:80",
            "[fd00:ec2::254]:80",
            "[ff02::1]:80",
            "93.184.216.34:22",
            "[::ffff:93.184.216.34]:22",
            "[2a00::5]:22",
        ] {
            assert!(objection("public", target).is_some(), "{target}");
        }
    }

    #[test]
    fn a_line_that_names_an_address_allows_it_and_nothing_beside_it() {
        let rules = "192.168.1.0/24,127.0.0.1:8080,[fd00::]/8";
        for target in ["192.168.1.77:1", "127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", "[fd12::1]:9"] {
            assert_eq!(objection(rules, target), None, "{target}");
        }
        for target in ["192.168.2.1:1", "127.0.0.1:8081", "1.1.1.1:443", "[fe00::1]:9"] {
            assert!(objection(rules, target).is_some(), "{target}");
        }
        assert_eq!(objection("public,0.0.0.0/0", "127.0.0.1:22"), None);
    }

    #[test]
    fn rules_survive_text_and_others_are_refused() {
        for text in ["public", "public,10.0.0.0/8,192.168.1.5:22,[fd00::1]:80"] {
            assert_eq!(text.parse::<Reach>().unwrap().to_string(), text);
        }
        for text in ["", "everything", "10.0.0.0/33", "10.0.0.0/8,", "example.com", "1.2.3.4:99999"] {
            assert!(text.parse::<Reach>().is_err(), "{text}");
        }
    }
}
