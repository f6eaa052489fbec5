//! Packet scheduling: which path carries the next packet.
//!
//! `scheduler` is the contract, `algorithm` has one file for each scheduler, `catalogue` lists
//! them by name.

mod algorithm;
mod catalogue;
mod extremes;
mod path_set;
mod scheduler;
#[cfg(test)]
mod testing;

pub use algorithm::{Arrival, Blest, Ecf, MinRtt, Priority, Redundant, RoundRobin, Stms, Weighted};
pub use catalogue::{NAMES, by_name};
pub use path_set::PathSet;
pub use scheduler::{Choice, Class, ConnectionView, PathView, Scheduler, Terms, Train, Work};
