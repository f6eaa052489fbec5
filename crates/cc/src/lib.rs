//! Congestion control for connections with several paths, coupled and uncoupled.
//!
//! `controller` is the contract, `aimd` the machine that all window rules share, `slow_start` what
//! comes before a rule has its say, `algorithm` has one file for each published rule, and
//! [`by_name`] makes a controller of it.

mod aimd;
mod algorithm;
mod catalogue;
#[cfg(test)]
mod contract;
mod controller;
mod slow_start;
#[cfg(test)]
mod testing;

pub use aimd::{Aimd, AimdConfig, GroupView, Member, PathWindow, Rule};
pub use algorithm::{Cubic, Lia, Olia, PathMetric, Reno};
pub use catalogue::{NAMES, by_name, by_name_with};
pub use controller::{ControlState, Controller, Phase};
