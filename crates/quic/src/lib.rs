//! Connections over several paths in real time: sockets for each interface, and the tasks that drive
//! `fairpath-quic-core`, which knows neither sockets nor a clock.
//!
//! One task per endpoint reads its sockets. Each connection has a task of its own, which hands what came to the core and
//! sends what the core has to send ([`Connection`] is a handle to what it drives). Applications exchange messages, in order,
//! and bulk [`Record`]s, in any order.
//!
//! ```
//! use fairpath_quic::{ChannelId, ConnectConfig, ListenConfig, Listener, connect};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let listen = ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new()? };
//! let listener = Listener::bind(listen)?;
//! // Over two addresses of this host; over interfaces by their names, or over all there are where `via` is empty.
//! let via = vec!["127.0.1.1".to_owned(), "127.0.2.1".to_owned()];
//! let config = ConnectConfig { via, ..ConnectConfig::new(listener.addresses(), listener.fingerprint()) };
//! let (client, server) = tokio::join!(connect(config), listener.accept());
//! let (client, server) = (client?, server.expect("the listener is open"));
//! client.send_message("a message".into()).await?;
//! assert_eq!(&server.recv_message().await?[..], b"a message");
//! client.flushed(ChannelId::Messages).await?;
//! for path in client.paths() {
//!     println!("{} to {}: {}", path.interface, path.remote, path.state);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accept;
mod allowance;
pub mod bulk;
mod clock;
mod connect;
mod connection;
mod datagram;
mod driver;
mod endpoint;
mod error;
mod given;
pub mod interfaces;
mod machine;
mod manager;
mod path_control;
mod pauses;
mod probe;
mod socket;
mod sockets;
mod stream_fault;
mod streams;
mod watch;

pub use accept::{AcceptStats, CROWDED};
pub use allowance::Allowance;
pub use connect::{ConnectConfig, DialConfig, Dialer, connect};
#[cfg(feature = "simulation")]
pub use connection::Observer;
pub use connection::{Connection, SendError};
pub use driver::is_lost;
pub use endpoint::{ListenConfig, Listener};
pub use error::Error;
pub use fairpath_engine::{Coupling, EngineConfig, PairVerdict, PathId, PathSnapshot, TermsChange};
pub use fairpath_quic_core::bulk::{MAX_RECORD, Record, RecordTooLarge};
pub use fairpath_quic_core::flows;
pub use fairpath_quic_core::pairs::{Outcome, Tried, WhyNot};
pub use fairpath_quic_core::streams::{Budget, StreamError, StreamId, StreamKind, StreamsConfig};
pub use fairpath_quic_core::violation;
pub use fairpath_quic_core::{
    AdmissionKey, Application, Authority, BackupReason, BadFingerprint, BadPem, Binding, ChannelId, CongestionMark,
    DATAGRAM_ETHERNET, DATAGRAM_MAX, Fingerprint, IDLE_TIMEOUT, Identity, NamedTerms, PATHS_MAX, PathNotice,
    PathReport, PathState, PathUse, ShutReason, Terms, Verify,
};
pub use given::{BadSocket, GivenSockets};
pub use machine::Machine;
#[cfg(feature = "simulation")]
pub use machine::{SimulatedMachine, SimulatedSocket};
pub use noq_proto::ConnectionError;
pub use path_control::PathControl;
pub use pauses::Pauses;
pub use socket::binding_of;
pub use stream_fault::{ResumeError, StreamFault};
pub use streams::{DROPPED, RecvStream, SendStream, StreamsNumber};

/// The data size that suits a record of a bulk transfer, in bytes.
pub const RECORD: usize = 64 << 10;
