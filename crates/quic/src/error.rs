//! Errors between two ends, worded so that a person knows what to do.

use std::net::SocketAddr;

use fairpath_engine::UnknownName;
use fairpath_quic_core::pairs::{Tried, in_vain};
use fairpath_quic_core::{Application, BeginError, Fingerprint, Verify, WRONG_FINGERPRINT};
use noq_proto::{ConnectionError, TransportErrorCode};

use crate::interfaces::UnknownInterface;

/// Why a connection could not be made, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A congestion control or scheduler of that name does not exist. The caller is at fault.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// An interface asked for does not exist. The caller is at fault.
    #[error(transparent)]
    UnknownInterface(#[from] UnknownInterface),
    /// No interface can carry a path.
    #[error("no usable network interface; `fairpath paths` says why")]
    NoUsableInterface,
    /// Nothing may go over the interfaces that there are.
    #[error("the quota of {} is used up, and no other interface is there to use", interfaces.join(", "))]
    UsedUp {
        /// The interfaces.
        interfaces: Vec<String>,
    },
    /// No interface has an address of the family of the peer's addresses.
    #[error(
        "no usable interface has an address of the family of {}; `fairpath paths` shows those there are",
        list(peer)
    )]
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
        source: std::io::Error,
    },
    /// The system refused something else.
    #[error("cannot read the network interfaces: {0}")]
    System(#[from] std::io::Error),
    /// No address of the peer answered.
    #[error("no connection to {}; is the other end running, and reachable from here?", in_vain(tried))]
    Unreachable {
        /// The pairs of addresses that were tried.
        tried: Vec<Tried>,
    },
    /// The address answered, but as somebody else.
    #[error("the end at {address} is not the one meant: its certificate is not {expected}")]
    WrongFingerprint {
        /// The address that answered.
        address: SocketAddr,
        /// The fingerprint expected there.
        expected: Fingerprint,
    },
    /// The peer takes no more connections for now.
    #[error("the end at {0} has too much to do and takes no more connections: try again in a while")]
    Busy(SocketAddr),
    /// The peer does not speak multipath QUIC.
    #[error("the peer at {0} does not speak multipath QUIC")]
    NoMultipath(SocketAddr),
    /// The handshake failed in another way.
    #[error("no connection to {address}: {}", application.words_for(source))]
    Handshake {
        /// The peer.
        address: SocketAddr,
        /// The protocol.
        application: Application,
        /// QUIC's error.
        source: Box<ConnectionError>,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Error {
    /// Whether the caller gave something that cannot be, rather than the network failing.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::UnknownName(_) | Self::UnknownInterface(_))
    }

    /// Whether another attempt would fail for the same reason, whatever the network does.
    pub fn is_lasting(&self) -> bool {
        self.is_usage() || matches!(self, Self::UsedUp { .. })
    }

    pub(crate) fn handshake(
        address: SocketAddr,
        verify: &Verify,
        application: Application,
        source: ConnectionError,
    ) -> Self {
        match source {
            ConnectionError::TimedOut => Self::Unreachable { tried: Vec::new() },
            ConnectionError::ConnectionClosed(close) if close.error_code == TransportErrorCode::CONNECTION_REFUSED => {
                Self::Busy(address)
            }
            source => match verify {
                Verify::Fingerprint(expected) if source.to_string().contains(WRONG_FINGERPRINT) => {
                    Self::WrongFingerprint { address, expected: *expected }
                }
                _ => Self::Handshake { address, application, source: Box::new(source) },
            },
        }
    }
}

impl From<rustls::Error> for Error {
    fn from(error: rustls::Error) -> Self {
        Self::Tls(error.to_string())
    }
}

impl From<BeginError> for Error {
    fn from(error: BeginError) -> Self {
        match error {
            BeginError::UnknownName(error) => error.into(),
            BeginError::Tls(error) => error.into(),
            BeginError::Unverified => Self::Tls(error.to_string()),
            // Where it is refused because of an address, another is tried.
            BeginError::Connect(_) => Self::Unreachable { tried: Vec::new() },
        }
    }
}

impl From<rcgen::Error> for Error {
    fn from(error: rcgen::Error) -> Self {
        Self::Tls(error.to_string())
    }
}
