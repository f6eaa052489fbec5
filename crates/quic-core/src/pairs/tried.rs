//! The outcomes of trying to reach the peer, in words.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::address::own_address;

/// Why a pair of addresses carries no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhyNot {
    /// Nothing came back.
    Silent,
    /// Packets of the size that a handshake takes do not pass; smaller ones may.
    TooSmall,
    /// Somebody is there, but nobody listens on that port.
    Refused,
    /// There is no route from here, or a router on the way says so.
    NoRoute,
    /// The system refuses to send there.
    NotAllowed,
    /// Somebody else answers there: another certificate, or another protocol.
    Stranger,
    /// Something answers there, but no path could be opened.
    NoPath,
}

impl WhyNot {
    /// Whether waiting would not help: an answer was given.
    pub fn is_certain(self) -> bool {
        self != Self::Silent
    }

    /// Whether it stands although something answers there.
    pub fn outlasts_an_answer(self) -> bool {
        matches!(self, Self::Stranger | Self::NoPath)
    }

    /// The reason behind an error of the system's send or receive call.
    pub fn of(error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::PermissionDenied => Self::NotAllowed,
            _ => Self::NoRoute,
        }
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Silent => "no answer",
            Self::TooSmall => "packets of 1,200 bytes, which QUIC needs, do not pass",
            Self::Refused => "refused",
            Self::NoRoute => "no route",
            Self::NotAllowed => "not allowed by this system",
            Self::Stranger => "somebody else answers",
            Self::NoPath => "answers, but opens no path",
        })
    }
}

/// The outcome of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A path works there, or did when last seen.
    Works,
    /// Something answers; no path has been needed there.
    Answers,
    /// It is being asked, and has not answered yet.
    Asked,
    /// It was in vain.
    Failed(WhyNot),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Works => f.write_str("works"),
            Self::Answers => f.write_str("answers"),
            Self::Asked => f.write_str("still waiting for an answer"),
            Self::Failed(why) => why.fmt(f),
        }
    }
}

/// One pair of addresses that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The interface here.
    pub interface: String,
    /// The name by which paths know the address here.
    pub local: IpAddr,
    /// The address of the peer.
    pub remote: SocketAddr,
    /// Its outcome.
    pub outcome: Outcome,
}

impl Tried {
    /// The address here.
    pub fn address(&self) -> IpAddr {
        own_address(self.local)
    }
}

/// The peer's addresses that were tried in vain, each once, with the reasons.
pub fn in_vain(tried: &[Tried]) -> String {
    let mut by_address: Vec<(SocketAddr, Vec<WhyNot>)> = Vec::new();
    for one in tried {
        let Outcome::Failed(why) = one.outcome else { continue };
        match by_address.iter_mut().find(|(remote, _)| *remote == one.remote) {
            Some((_, reasons)) if reasons.contains(&why) => {}
            Some((_, reasons)) => reasons.push(why),
            None => by_address.push((one.remote, vec![why])),
        }
    }
    let word = |(remote, reasons): &(SocketAddr, Vec<WhyNot>)| {
        let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        format!("{remote} ({})", reasons.join(", "))
    };
    by_address.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_named_once_with_every_reason() {
        let tried = |interface: &str, remote: &str, outcome| Tried {
            interface: interface.into(),
            local: "10.0.0.1".parse().unwrap(),
            remote: remote.parse().unwrap(),
            outcome,
        };
        let all = [
            tried("a", "192.0.2.1:7", Outcome::Failed(WhyNot::Silent)),
            tried("b", "192.0.2.1:7", Outcome::Failed(WhyNot::Refused)),
            tried("c", "192.0.2.1:7", Outcome::Failed(WhyNot::Silent)),
            tried("a", "192.0.2.2:7", Outcome::Answers),
            tried("a", "192.0.2.3:7", Outcome::Failed(WhyNot::NoRoute)),
        ];
        assert_eq!(in_vain(&all), "192.0.2.1:7 (no answer, refused), 192.0.2.3:7 (no route)");
    }
}
