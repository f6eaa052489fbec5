//! Refusals: why a connection was not made, in the codes of SOCKS and HTTP and in a sentence.

use std::fmt;
use std::io;

/// The reason why a program's connection was not made, with a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct Refusal {
    /// The kind of reason.
    pub kind: RefusalKind,
    /// A sentence.
    pub words: String,
}

/// A kind of reason. Its number travels between the two ends; those up to 8 are SOCKS5's (RFC 1928, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// None of the others.
    Failed = 1,
    /// The far end does not let this device reach the target.
    Forbidden = 2,
    /// No route leads to the target's network.
    NetworkUnreachable = 3,
    /// The host does not answer, as its network says.
    HostUnreachable = 4,
    /// The target refused the connection.
    Refused = 5,
    /// Nothing answered in time.
    TimedOut = 6,
    /// The command is not one that is served.
    Unsupported = 7,
    /// The name has no address.
    UnknownName = 16,
    /// The two ends are not connected.
    NotConnected = 17,
    /// The device has too many connections.
    TooMany = 18,
}

impl RefusalKind {
    const ALL: [Self; 10] = [
        Self::Failed,
        Self::Forbidden,
        Self::NetworkUnreachable,
        Self::HostUnreachable,
        Self::Refused,
        Self::TimedOut,
        Self::Unsupported,
        Self::UnknownName,
        Self::NotConnected,
        Self::TooMany,
    ];

    /// The kind with this number; [`RefusalKind::Failed`] where this version knows none.
    pub(crate) fn from_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code).unwrap_or(Self::Failed)
    }

    /// The reply of SOCKS5.
    pub fn socks(self) -> u8 {
        match self {
            Self::UnknownName => Self::HostUnreachable as u8,
            Self::NotConnected => Self::NetworkUnreachable as u8,
            Self::TooMany => Self::Failed as u8,
            other => other as u8,
        }
    }

    /// The status of HTTP.
    pub fn http(self) -> (u16, &'static str) {
        match self {
            Self::Forbidden => (403, "Forbidden"),
            Self::TimedOut => (504, "Gateway Timeout"),
            Self::Unsupported => (501, "Not Implemented"),
            Self::NotConnected | Self::TooMany => (503, "Service Unavailable"),
            Self::Failed | Self::NetworkUnreachable | Self::HostUnreachable | Self::Refused | Self::UnknownName => {
                (502, "Bad Gateway")
            }
        }
    }
}

impl Refusal {
    /// A refusal of this kind.
    pub(crate) fn new(kind: RefusalKind, words: impl fmt::Display) -> Self {
        Self { kind, words: words.to_string() }
    }

    /// The refusal of a connection to `target` that failed with an error of the system.
    pub(crate) fn of(target: impl fmt::Display, error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        let kind = match error.kind() {
            Kind::ConnectionRefused => RefusalKind::Refused,
            Kind::NetworkUnreachable | Kind::NetworkDown => RefusalKind::NetworkUnreachable,
            Kind::HostUnreachable => RefusalKind::HostUnreachable,
            Kind::TimedOut => RefusalKind::TimedOut,
            _ => RefusalKind::Failed,
        };
        let words = match kind {
            RefusalKind::Refused => format!("{target} refuses connections"),
            RefusalKind::NetworkUnreachable => format!("the far end has no route to {target}"),
            RefusalKind::HostUnreachable => format!("the host of {target} cannot be reached from the far end"),
            RefusalKind::TimedOut => format!("{target} does not answer"),
            _ => format!("no connection to {target}: {error}"),
        };
        Self { kind, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_the_wire_and_has_codes_that_programs_know() {
        for kind in RefusalKind::ALL {
            assert_eq!(RefusalKind::from_code(kind as u8), kind);
            assert!((1..=8).contains(&kind.socks()), "{kind:?}");
            assert!((400..600).contains(&kind.http().0), "{kind:?}");
        }
        assert_eq!(RefusalKind::from_code(200), RefusalKind::Failed);
    }

    #[test]
    fn a_connection_that_the_system_refuses_is_told_as_such() {
        let refusal = Refusal::of("a:1", &io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!((refusal.kind, refusal.words.as_str()), (RefusalKind::Refused, "a:1 refuses connections"));
    }
}
