//! Both ends of a connection in virtual time, over the links of `fairpath-net`: the stack, the engine, the path
//! policy and the channels as they are, with real cryptography or, to save time, with none. Hours pass in
//! minutes, and faults come when a scenario says so.
//!
//! [`Scenario`] is about connections, between two endpoints of `quic-core`; [`Crowd`] about connections that share
//! links; [`Transfer`] about files, between two processes of which all is the product's down to the sockets.
//!
//! Everything that is random comes from a seed: the same seed gives the same packets, byte for byte.

mod clock;
mod crowd;
mod end;
mod files;
mod idle;
mod lateness;
mod null;
mod pinned;
mod proof;
mod scenario;
mod session;
mod side;
mod trace;
mod wires;
mod world;

pub use clock::{Clock, Skew};
pub use crowd::Crowd;
pub use end::{End, Leaving, Process};
pub use files::Transfer;
pub use lateness::Host;
pub use pinned::{Cryptography, Pinned};
pub use scenario::{Failure, Fault, Outcome, Scenario, Scheduled};
pub use session::Account;
pub use side::Side;
pub use trace::Teller;
pub use wires::{Impair, Wire};
pub use world::World;
