//! Ends of `quic-core` over the links of `fairpath-net`, in virtual time: the stack, the engine, the path policy and
//! the channels as they are in the product, without sockets and without a clock.
//!
//! [`End`] is an endpoint with an application that sends and counts, and holds what may never happen to it against
//! what does. [`Crowd`] is several connections over links that they share.
//!
//! Everything that is random comes from a seed: the same seed gives the same packets, byte for byte.

mod clock;
mod crowd;
mod end;
mod lateness;
#[cfg(feature = "null")]
mod null;
mod pinned;
mod session;
mod side;
mod streams;

pub use clock::{Clock, Skew};
pub use crowd::Crowd;
pub use end::{End, Leaving, Process};
pub use lateness::Host;
pub use pinned::{Cryptography, Pinned, identity};
pub use session::Account;
pub use side::Side;
pub use streams::{Ends, Plan};
