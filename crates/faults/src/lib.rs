//! Both ends of a connection in virtual time, over links that break: `fairpath-quic-sim` with real cryptography or,
//! to save time, with none. Hours pass in minutes, and faults come when a scenario says so.
//!
//! [`Scenario`] is about connections, between two endpoints of `quic-core`; [`Transfer`] about files, between two processes of which all is the product's down to the sockets.
//!
//! Everything that is random comes from a seed: the same seed gives the same packets, byte for byte.

mod files;
mod idle;
mod proof;
mod scenario;
mod trace;
mod wires;
mod world;

pub use fairpath_quic_sim::{
    Account, Clock, Crowd, Cryptography, End, Host, Leaving, Pinned, Plan, Process, Side, Skew,
};
pub use files::{LiedTo, Transfer};
pub use scenario::{Failure, Fault, Outcome, Scenario, Scheduled};
pub use trace::Teller;
pub use wires::{Impair, Wire};
pub use world::World;
