//! Forwards as they are given: ports of this machine whose connections or packets go to one target, and ports of the far
//! end whose connections come here.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use crate::target::{Target, shown};

/// A transport of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Packets.
    Udp,
}

/// A port of this machine, and the target that its connections go to at the far end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The transport.
    pub protocol: Protocol,
    /// The port here; of loopback where the text names no address.
    pub listen: SocketAddr,
    /// The target, as the far end reaches it.
    pub target: Target,
}

/// A port of the far end, and the target of this machine's that its connections or packets go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverse {
    /// The transport.
    pub protocol: Protocol,
    /// The port there; of all its addresses where the text names none.
    pub listen: SocketAddr,
    /// The target, as this machine reaches it.
    pub target: Target,
}

/// A text that is no forward. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no forward: {why}; right is tcp:8080=example.com:80 or udp:51820=192.0.2.1:51820")]
pub struct BadForward {
    text: String,
    why: String,
}

impl FromStr for Forward {
    type Err = BadForward;

    fn from_str(text: &str) -> Result<Self, BadForward> {
        let (protocol, listen, target) = parse(text, Ipv4Addr::LOCALHOST.into())?;
        Ok(Self { protocol, listen, target })
    }
}

impl FromStr for Reverse {
    type Err = BadForward;

    fn from_str(text: &str) -> Result<Self, BadForward> {
        let (protocol, listen, target) = parse(text, Ipv4Addr::UNSPECIFIED.into())?;
        Ok(Self { protocol, listen, target })
    }
}

fn bad(text: &str, why: impl std::fmt::Display) -> BadForward {
    BadForward { text: shown(text), why: why.to_string() }
}

fn parse(text: &str, here: IpAddr) -> Result<(Protocol, SocketAddr, Target), BadForward> {
    let (protocol, rest) = match (text.strip_prefix("tcp:"), text.strip_prefix("udp:")) {
        (Some(rest), _) => (Protocol::Tcp, rest),
        (_, Some(rest)) => (Protocol::Udp, rest),
        _ => return Err(bad(text, "it begins with tcp: or udp:")),
    };
    let (listen, target) = rest.split_once('=').ok_or_else(|| bad(text, "an = stands before the target"))?;
    let port = listen.parse::<u16>().map(|port| SocketAddr::new(here, port)).ok();
    let listen = port.or_else(|| listen.parse().ok());
    let listen = listen.ok_or_else(|| bad(text, "a port, or an address and a port, stands before the ="))?;
    let target = target.parse().map_err(|error| bad(text, error))?;
    Ok((protocol, listen, target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read_with_and_without_an_address() {
        let forward: Forward = "tcp:8080=example.com:80".parse().unwrap();
        assert_eq!((forward.protocol, forward.listen), (Protocol::Tcp, "127.0.0.1:8080".parse().unwrap()));
        let forward: Forward = "udp:[::]:51820=192.0.2.1:51820".parse().unwrap();
        assert_eq!((forward.protocol, forward.listen), (Protocol::Udp, "[::]:51820".parse().unwrap()));
        let reverse: Reverse = "tcp:8080=localhost:80".parse().unwrap();
        assert_eq!(reverse.listen, "0.0.0.0:8080".parse().unwrap());
        for text in ["8080=a:80", "tcp:8080", "tcp:x=a:80", "tcp:8080=a", "sctp:1=a:1"] {
            let error = text.parse::<Forward>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is no forward: ")), "{error}");
        }
        assert_eq!("udp:1=a:1".parse::<Reverse>().unwrap().protocol, Protocol::Udp);
    }
}
