//! The engine on multipath QUIC as functions of time: endpoints and connections without sockets, without
//! a clock and without a runtime. `fairpath-quic` drives them in real time, tests in virtual time.
//!
//! [`Endpoint`] takes in datagrams and hands out packets; [`Connection`] joins the stack (`noq-proto`) to
//! the engine, decides on which path each packet leaves, watches the paths, and has two channels: messages
//! and bulk records.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests need an instant to begin at"))]

mod adapter;
mod address;
pub mod bulk;
mod channel;
mod connection;
mod datagram;
mod endpoint;
mod farewell;
#[doc(hidden)]
pub mod fuzzing;
pub mod guests;
mod interface;
mod knock;
mod one_way;
mod origin;
pub mod pairs;
mod paths;
mod receipts;
mod tls;
mod transport;

pub use address::{mapped, unmapped};
pub use channel::ChannelId;
pub use connection::{Connection, Event, Held, Interfaces, TRAIN_MAX, VIOLATION};
pub use datagram::{DATAGRAM_ETHERNET, DATAGRAM_MAX, search};
pub use endpoint::{Accepting, BeginError, Connecting, Endpoint, EndpointConfig, Received};
pub use fairpath_engine::{Coupling, EngineConfig, NamedTerms, PairVerdict, PathSnapshot, Remedies, Terms};
pub use fairpath_stream as flows;
pub use interface::{Binding, Interface, Kind, Unusable};
pub use knock::KnockKey;
pub use origin::Origin;
pub use paths::{PathNotice, PathReport, PathState};
pub use tls::{Application, BadFingerprint, Fingerprint, Identity, Verify, WRONG_FINGERPRINT};
pub use transport::{IDLE_TIMEOUT, PATHS_MAX, Trust};
