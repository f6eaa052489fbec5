//! Both ends of a connection in virtual time, over the links of `fairpath-net`: the stack, the engine, the path
//! policy and the channels as they are, with real cryptography or, to save time, with none. Hours pass in
//! minutes, and faults come when a scenario says so.
//!
//! Everything that is random comes from a seed: the same seed gives the same packets, byte for byte.

pub mod end;
mod null;
mod pinned;
pub mod scenario;
mod trace;
pub mod world;

pub use end::{End, Host};
pub use pinned::{Cryptography, Pinned};
pub use scenario::{Failure, Fault, Outcome, Scenario, Scheduled};
pub use world::{Impair, Wire, World};
