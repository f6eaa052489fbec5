//! The engine on multipath QUIC as functions of time: endpoints and connections without sockets, without
//! a clock and without a runtime. `fairpath-quic` drives them in real time, tests in virtual time.
//!
//! [`Endpoint`] takes in datagrams and hands out packets; [`Connection`] joins the stack (`noq-proto`) to
//! the engine, decides on which path each packet leaves, watches the paths, and carries messages,
//! bulk records and [`streams`].
//!
//! Two ends in one process, and a network between them that takes 10 ms. Over sockets and by the wall clock the calls
//! are the same.
//!
//! ```
//! use std::net::{IpAddr, SocketAddr};
//! use std::num::NonZeroUsize;
//! use std::time::{Duration, Instant};
//! use bytes::BytesMut;
//! use fairpath_quic_core::*;
//!
//! let (here, there): (IpAddr, SocketAddr) = ("10.0.0.1".parse()?, "10.0.0.2:4433".parse()?);
//! let (engine, datagrams) = (EngineConfig::live(), || search([], DATAGRAM_ETHERNET));
//! let identity = Identity::generate()?;
//! let verify = Verify::Fingerprint(identity.fingerprint());
//! let end = |identity| {
//!     let application = Application::Fairpath;
//!     Endpoint::new(EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application })
//! };
//! let mut ends = [end(None)?, end(Some(identity))?];
//! let mut now = Instant::now();
//! let connecting = Connecting { local: here, remote: there, verify, admission_key: None, engine: &engine, datagrams: datagrams() };
//! let client = ends[0].connect(connecting, now)?;
//! ends[0].connection(client).expect("it has begun").send_message("a message".into())?;
//!
//! let mut heard = None;
//! for _ in 0..20 {
//!     for from in 0..2 {
//!         // All that leaves this end now arrives at the other.
//!         let (mut packets, mut buffer) = (Vec::new(), Vec::new());
//!         while let Some((_, transmit)) = ends[from].poll_transmit(now, NonZeroUsize::MIN, &mut buffer) {
//!             packets.push(BytesMut::from(&buffer[..transmit.size]));
//!         }
//!         now += Duration::from_millis(10);
//!         let to = &mut ends[1 - from];
//!         let way = if from == 0 { (SocketAddr::new(here, 1), there.ip()) } else { (there, here) };
//!         for packet in packets {
//!             let mut answer = Vec::new();
//!             if let Some(Received::New(incoming)) = to.handle_datagram(ReceivedDatagram::new(way, packet, now), now, &mut answer) {
//!                 let accepting = Accepting { engine: &engine, datagrams: datagrams(), trust: Trust::Full };
//!                 assert!(to.accept(*incoming, accepting, now, &mut answer).is_ok());
//!             }
//!         }
//!         to.handle_timeout(now);
//!         heard = heard.or(to.connections().find_map(|(_, connection)| connection.take_message()));
//!     }
//! }
//! assert_eq!(heard.as_deref(), Some(&b"a message"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests need an instant to begin at"))]

mod adapter;
mod address;
mod admission_key;
mod announcement;
mod arrival;
pub mod bulk;
mod carrier;
mod channel;
mod connection;
mod datagram;
mod endpoint;
mod farewell;
mod forged;
#[doc(hidden)]
pub mod fuzzing;
pub mod guests;
mod interface;
mod one_way;
mod origin;
pub mod pairs;
mod paths;
mod peer_addresses;
mod peer_terms;
mod receipts;
mod router;
pub mod streams;
mod tls;
mod transport;

pub use adapter::Controllers;
pub use address::{is_link_local, mapped, own_address, stand_in, twin_of, unmapped};
pub use admission_key::AdmissionKey;
pub use arrival::{Arrival, ReceivedDatagram};
pub use channel::ChannelId;
pub use connection::{CongestionMark, Connection, Event, HeldData, Interfaces, TRAIN_MAX, VIOLATION, violation};
pub use datagram::{DATAGRAM_ETHERNET, DATAGRAM_MAX, search};
pub use endpoint::{Endpoint, Received};
pub use fairpath_engine::health::HealthParameters;
pub use fairpath_engine::{
    BackupReason, Coupling, EngineConfig, NamedTerms, PairVerdict, PathSnapshot, PathUse, ShutReason, Terms,
    TermsChanges,
};
pub use fairpath_live as flows;
pub use interface::{Binding, Interface, Kind, Unusable, is_too_small};
pub use origin::Origin;
pub use paths::{PathNotice, PathReport, PathState};
pub use router::{Accepting, BeginError, Connecting, EndpointConfig, Routed, Router};
pub use tls::{Application, Authority, BadFingerprint, BadPem, Fingerprint, Identity, Verify, WRONG_FINGERPRINT};
pub use transport::{IDLE_TIMEOUT, PATHS_MAX, Trust};
