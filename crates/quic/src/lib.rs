//! The engine on multipath QUIC: congestion control and scheduling of noq's paths, one socket per
//! interface, paths that are opened, watched and reopened, and bulk data over lanes.
//!
//! `adapter` joins the engine to noq and is free of sockets and of any runtime. `endpoint` and
//! `connection` are what applications use.

mod accept;
pub mod adapter;
pub mod bulk;
mod connect;
mod connection;
mod datagram;
mod endpoint;
mod error;
mod guests;
pub mod interfaces;
mod knock;
pub mod lanes;
mod one_way;
mod pairs;
mod path_manager;
mod probe;
mod socket;
mod tls;
mod train;
mod transport;
#[cfg(test)]
mod virtual_time;

pub use accept::{CROWDED, Knocks};
pub use connect::{ConnectConfig, connect};
pub use connection::{Connection, PathNotice, PathReport, PathState};
pub use datagram::{DATAGRAM_ETHERNET, DATAGRAM_MAX};
pub use endpoint::{ListenConfig, Listener};
pub use error::Error;
pub use fairpath_engine::{Coupling, EngineConfig, PairVerdict, PathSnapshot};
pub use knock::KnockKey;
pub use pairs::{Outcome, Tried, WhyNot};
pub use socket::{Binding, binding_of};
pub use tls::{BadFingerprint, Fingerprint, Identity};
pub use transport::{IDLE_TIMEOUT, PATHS_MAX};
