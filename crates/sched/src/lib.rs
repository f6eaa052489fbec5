//! Packet scheduling: which path carries the next packet.
//!
//! `scheduler` is the contract, `algorithm` has one file for each scheduler, `catalogue` lists
//! them by name.

mod algorithm;
mod catalogue;
mod scheduler;
#[cfg(test)]
mod testing;

pub use algorithm::{MinRtt, RoundRobin};
pub use catalogue::{NAMES, by_name};
pub use scheduler::{Choice, PathView, Pending, Scheduler};
