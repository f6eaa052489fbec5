//! Targets of programs' connections: a host and a port.
//!
//! On the wire a target has the form that SOCKS5 gives it (RFC 1928, section 5). A byte says the kind of address: 1 for
//! IPv4, 4 for IPv6, and 3 for a name, whose length is the next byte. Then the address follows, and two bytes for the port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The longest encoded target, in bytes.
pub(crate) const TARGET_MAX: usize = 1 + 1 + 255 + 2;

const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;

/// A host and a port that a program wants to reach.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// A host, by its address or by a name that the far end resolves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name, checked by [`Target::named`].
    Name(String),
}

/// A text or a sequence of bytes that names no target. The peer or the caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// A text without a port.
    #[error("'{0}' names no host and port: HOST:PORT is wanted, such as example.com:443 or [2001:db8::1]:443")]
    Text(String),
    /// A name of a host has a character that names do not have.
    #[error("'{0}' is not the name of a host")]
    Name(String),
    /// The kind of address is unknown.
    #[error("{0} is no kind of address")]
    Kind(u8),
}

impl Target {
    /// A host by its name, or by an address that stands in the name's place.
    ///
    /// # Errors
    ///
    /// [`BadTarget::Name`] where no host can have the name.
    pub fn named(name: &str, port: u16) -> Result<Self, BadTarget> {
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        if let Ok(address) = bare.parse() {
            return Ok(Self { host: Host::Address(address), port });
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match (1..=255).contains(&name.len()) && name.bytes().all(is_allowed) && !name.starts_with(['-', '.']) {
            true => Ok(Self { host: Host::Name(name.to_ascii_lowercase()), port }),
            false => Err(BadTarget::Name(shown(name))),
        }
    }

    /// Reads a target at the beginning of `bytes`: it and its length, or `None` where more bytes are needed.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadTarget> {
        let Some((&kind, rest)) = bytes.split_first() else { return Ok(None) };
        let (head, length) = match (kind, rest.first()) {
            (V4, _) => (1, 4),
            (V6, _) => (1, 16),
            (NAME, Some(&length)) => (2, usize::from(length)),
            (NAME, None) => return Ok(None),
            (other, _) => return Err(BadTarget::Kind(other)),
        };
        let Some((host, rest)) = bytes[head..].split_at_checked(length) else { return Ok(None) };
        let Some(&[high, low]) = rest.first_chunk::<2>() else { return Ok(None) };
        let port = u16::from_be_bytes([high, low]);
        let address = |address: IpAddr| Self { host: Host::Address(address), port };
        let target = match (<[u8; 4]>::try_from(host), <[u8; 16]>::try_from(host)) {
            (Ok(v4), _) if kind == V4 => address(Ipv4Addr::from(v4).into()),
            (_, Ok(v6)) if kind == V6 => address(Ipv6Addr::from(v6).into()),
            _ => Self::named(&String::from_utf8_lossy(host), port)?,
        };
        Ok(Some((target, head + length + 2)))
    }

    /// Appends the target to `to`.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        match &self.host {
            Host::Address(IpAddr::V4(address)) => {
                to.push(V4);
                to.extend(address.octets());
            }
            Host::Address(IpAddr::V6(address)) => {
                to.push(V6);
                to.extend(address.octets());
            }
            Host::Name(name) => {
                let name = &name.as_bytes()[..name.len().min(255)];
                to.extend([NAME, name.len() as u8]);
                to.extend(name);
            }
        }
        to.extend(self.port.to_be_bytes());
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { host: Host::Address(address.ip()), port: address.port() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = || BadTarget::Text(shown(text));
        let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
        let is_bare_v6 = host.contains(':') && !host.starts_with('[');
        match port.parse() {
            Ok(port) if !is_bare_v6 => Self::named(host, port),
            _ => Err(bad()),
        }
    }
}

/// A peer's text as it may be shown: short, and without control characters.
pub(crate) fn shown(text: &str) -> String {
    let cut: String = text.chars().take(100).collect();
    fairpath_transfer::printable(&cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_survive_the_wire_and_every_beginning_of_one_waits_for_more() {
        for text in ["192.0.2.1:80", "[2001:db8::1]:443", "example.com:8080", "a:1"] {
            let target: Target = text.parse().unwrap();
            assert_eq!(target.to_string(), text);
            let mut bytes = Vec::new();
            target.encode(&mut bytes);
            assert!(bytes.len() <= TARGET_MAX);
            for length in 0..bytes.len() {
                assert_eq!(Target::decode(&bytes[..length]), Ok(None), "{text}: {length}");
            }
            let length = bytes.len();
            bytes.extend(b"more");
            assert_eq!(Target::decode(&bytes), Ok(Some((target, length))));
        }
    }

    #[test]
    fn what_names_no_host_is_refused() {
        for text in ["example.com", "a b:1", ":80", "-x:1", "a/b:1", "2001:db8::1", "x:70000", "ex\u{1b}:1"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
        assert_eq!(Target::decode(&[2, 0, 0]), Err(BadTarget::Kind(2)));
        assert!(matches!(Target::decode(b"\x03\x03a\nb\0\x50"), Err(BadTarget::Name(_))));
        assert!(matches!(Target::decode(b"\x03\0\0\x50"), Err(BadTarget::Name(_))));
    }

    #[test]
    fn an_address_in_the_place_of_a_name_is_an_address() {
        let target = Target::named("[::ffff:127.0.0.1]", 1).unwrap();
        assert_eq!(target.host, Host::Address("::ffff:127.0.0.1".parse().unwrap()));
    }
}
