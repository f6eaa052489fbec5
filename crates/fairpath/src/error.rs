//! Failures, each with what to do about it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use fairpath_quic as quic;
use quic::ConnectionError as Quic;

use crate::fingerprint::{BadFingerprint, Fingerprint};

/// Why an endpoint or a connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An interface or address asked for does not exist. The caller is at fault.
    #[error("no interface or address '{name}' on this machine; there are {}", available.join(", "))]
    UnknownInterface {
        /// The name asked for.
        name: String,
        /// The names of the interfaces there are.
        available: Vec<String>,
    },
    /// A text is no fingerprint. The caller is at fault.
    #[error(transparent)]
    BadFingerprint(#[from] BadFingerprint),
    /// A certificate, key or name of a host cannot be used. The caller is at fault.
    #[error("{0}")]
    Pem(String),
    /// A socket given cannot start a path. The caller is at fault.
    #[error("{0}")]
    Socket(String),
    /// No interface can carry a path.
    #[error("no usable network interface: name one with `via`; `interfaces()` says why those there are do not do")]
    NoUsableInterface,
    /// No interface has an address of the family of the peer's addresses.
    #[error("no usable interface has an address of the family of {}: give an address of the other family", list(peer))]
    OtherFamily {
        /// The peer's addresses.
        peer: Vec<SocketAddr>,
    },
    /// A local address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("cannot read the network interfaces: {0}")]
    System(#[from] io::Error),
    /// No address of the peer answered.
    #[error("no connection to {}; is the other end running, and reachable from here?", attempts(tried))]
    Unreachable {
        /// The attempts.
        tried: Vec<Attempt>,
    },
    /// The address answered, but as somebody else.
    #[error("the end at {address} is not the one meant: its certificate is not {expected}")]
    WrongFingerprint {
        /// The address that answered.
        address: SocketAddr,
        /// The certificate that was meant.
        expected: Fingerprint,
    },
    /// The peer takes no more connections for now.
    #[error("the end at {0} takes no more connections: try again in a while")]
    Busy(SocketAddr),
    /// The peer does not speak multipath QUIC.
    #[error("the peer at {0} does not speak multipath QUIC")]
    NoMultipath(SocketAddr),
    /// The handshake failed: another protocol (ALPN), or a certificate that nobody trusted vouches for.
    #[error("no connection to {address}: {reason}")]
    Handshake {
        /// The peer.
        address: SocketAddr,
        /// The reason, in words.
        reason: String,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// One pair of addresses that was tried in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The interface here.
    pub interface: String,
    /// The address here.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The outcome, in words.
    pub outcome: String,
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The addresses that were tried and what happened there. Interfaces are named only where they differ in that.
fn attempts(tried: &[Attempt]) -> String {
    let mut by_address: Vec<(String, SocketAddr)> = Vec::new();
    for one in tried {
        if by_address.iter().all(|(_, remote)| *remote != one.remote) {
            by_address.push((outcomes(tried, one.remote), one.remote));
        }
    }
    let told = by_address.chunk_by(|one, next| one.0 == next.0).map(|alike| {
        let addresses: Vec<SocketAddr> = alike.iter().map(|(_, remote)| *remote).collect();
        format!("{} ({})", list(&addresses), alike[0].0)
    });
    match tried {
        [] => "the peer".to_owned(),
        _ => told.collect::<Vec<_>>().join(", "),
    }
}

/// The outcomes at an address in words.
fn outcomes(tried: &[Attempt], remote: SocketAddr) -> String {
    let mut outcomes: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in tried.iter().filter(|one| one.remote == remote) {
        match outcomes.iter_mut().find(|(outcome, _)| *outcome == one.outcome) {
            Some((_, from)) if from.contains(&one.interface.as_str()) => {}
            Some((_, from)) => from.push(&one.interface),
            None => outcomes.push((&one.outcome, vec![&one.interface])),
        }
    }
    match &outcomes[..] {
        [(outcome, _)] => (*outcome).to_owned(),
        several => {
            let words = several.iter().map(|(outcome, from)| format!("{outcome} from {}", from.join(", ")));
            words.collect::<Vec<_>>().join("; ")
        }
    }
}

pub(crate) fn failed(error: quic::Error) -> Error {
    let reason = error.to_string();
    match error {
        quic::Error::UnknownInterface(quic::interfaces::UnknownInterface { name, available }) => {
            Error::UnknownInterface { name, available }
        }
        quic::Error::NoUsableInterface => Error::NoUsableInterface,
        quic::Error::OtherFamily { peer } => Error::OtherFamily { peer },
        quic::Error::Bind { address, source } => Error::Bind { address, source },
        quic::Error::System(source) => Error::System(source),
        quic::Error::Unreachable { tried } => {
            let attempt = |one: quic::Tried| Attempt {
                local: one.address(),
                interface: one.interface,
                remote: one.remote,
                outcome: one.outcome.to_string(),
            };
            Error::Unreachable { tried: tried.into_iter().map(attempt).collect() }
        }
        quic::Error::WrongFingerprint { address, expected } => {
            Error::WrongFingerprint { address, expected: Fingerprint(expected) }
        }
        quic::Error::Busy(address) => Error::Busy(address),
        quic::Error::NoMultipath(address) => Error::NoMultipath(address),
        quic::Error::Handshake { address, application, source } => {
            Error::Handshake { address, reason: application.words_for(&source) }
        }
        quic::Error::Tls(reason) => Error::Tls(reason),
        _ => Error::Tls(reason),
    }
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The peer closed it, with a code and words of its own.
    #[error("the peer closed the connection with code {code}{}", quoted(reason))]
    Closed {
        /// The code.
        code: u64,
        /// The words.
        reason: String,
    },
    /// It was closed at this end: by `close`, or because the last handle was dropped.
    #[error("the connection was closed here")]
    LocallyClosed,
    /// Nothing was heard of the peer for too long on any path.
    #[error("nothing was heard of the peer any more on any path")]
    TimedOut,
    /// The peer does not know the connection: it was started anew.
    #[error("the peer does not know the connection any more; was it started anew?")]
    Reset,
    /// One end broke the rules of the protocol.
    #[error("{0}")]
    Protocol(String),
}

fn quoted(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

pub(crate) fn ended(error: Quic) -> ConnectionError {
    match error {
        Quic::ApplicationClosed(close) => ConnectionError::Closed {
            code: close.error_code.into_inner(),
            reason: String::from_utf8_lossy(&close.reason).into_owned(),
        },
        Quic::LocallyClosed => ConnectionError::LocallyClosed,
        Quic::TimedOut => ConnectionError::TimedOut,
        Quic::Reset => ConnectionError::Reset,
        other => ConnectionError::Protocol(other.to_string()),
    }
}

/// Why something cannot be done with a stream. Inside an [`io::Error`] of a stream it is found by
/// [`get_ref`](io::Error::get_ref) and `downcast_ref`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// The peer gave up sending. Its code.
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// The peer wants no more. Its code.
    #[error("the peer stopped reading the stream with code {0}")]
    Stopped(u64),
    /// It was finished or reset at this end before.
    #[error("the stream was finished or reset before")]
    Finished,
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Connection(_) => io::ErrorKind::NotConnected,
            StreamError::Reset(_) | StreamError::Stopped(_) => io::ErrorKind::ConnectionReset,
            StreamError::Finished => io::ErrorKind::BrokenPipe,
        };
        Self::new(kind, error)
    }
}

pub(crate) fn stream_failed(fault: quic::StreamFault) -> StreamError {
    match fault {
        quic::StreamFault::Connection(reason) => ended(reason).into(),
        quic::StreamFault::Stream(quic::StreamError::Reset(code)) => StreamError::Reset(code),
        quic::StreamFault::Stream(quic::StreamError::Stopped(code)) => StreamError::Stopped(code),
        quic::StreamFault::Stream(_) => StreamError::Finished,
        quic::StreamFault::Lost => ConnectionError::Reset.into(),
        other => ConnectionError::Protocol(other.to_string()).into(),
    }
}

/// The same, inside an error of the standard library.
pub(crate) fn io_failed(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<quic::StreamFault>());
    match inner.cloned() {
        Some(fault) => stream_failed(fault).into(),
        None => error,
    }
}

/// Why a message, record or packet was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// It is too large: how large it is, and may be, in bytes. The caller is at fault.
    #[error("{bytes} bytes are too many: at most {most} are taken")]
    TooLarge {
        /// The size of the data.
        bytes: usize,
        /// The largest size.
        most: usize,
    },
    /// Too much waits already: send less.
    #[error("too much waits to be sent already: send less")]
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_addresses_from_many_interfaces_are_told_in_few_words() {
        let attempt = |interface: &str, remote: &str, outcome: &str| Attempt {
            interface: interface.to_owned(),
            local: "10.0.0.1".parse().unwrap(),
            remote: remote.parse().unwrap(),
            outcome: outcome.to_owned(),
        };
        let mut tried = Vec::new();
        for interface in ["wlan0", "wwan0", "eth0"] {
            let first = if interface == "eth0" { "no answer" } else { "refused" };
            tried.push(attempt(interface, "192.0.2.1:4433", first));
            tried.push(attempt(interface, "192.0.2.2:4433", "no answer"));
            tried.push(attempt(interface, "192.0.2.3:4433", "no answer"));
        }
        let expected = "192.0.2.1:4433 (refused from wlan0, wwan0; no answer from eth0), \
                        192.0.2.2:4433, 192.0.2.3:4433 (no answer)";
        assert_eq!(attempts(&tried), expected);
    }
}
