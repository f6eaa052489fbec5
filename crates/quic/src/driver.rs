//! Drives an endpoint in real time: reads its sockets, hands arrivals to the core, sends the core's
//! packets, and wakes the tasks that wait.
//!
//! One task reads the sockets of an endpoint. It asks the router whose each datagram is and hands it over. Each connection
//! has a task of its own, which takes in what came, makes packets and sends them: so an endpoint uses as many cores as it
//! has connections.
//!
//! # Locks
//!
//! The router with all that the connections share has a lock ([`Shared`]), and so has each connection ([`Guarded`]). Nobody
//! has two of these at once. A task holds its connection only while it hands over what came and while packets are made;
//! both are bounded, so that a handle does not wait long. The kernel is called with no lock held. Where streams go from one
//! connection to another, the place of these streams is locked before any of the others.

mod guarded;
mod home;
mod inbox;
mod intake;
mod link;
mod moving;
mod outbox;
mod reader;
mod shared;
mod task;
#[cfg(test)]
mod tests;

pub(crate) use home::Home;
pub use home::is_lost;
pub(crate) use link::{Awaited, Link};
pub(crate) use reader::spawn;
pub(crate) use shared::{Handle, Owner, Shared};
