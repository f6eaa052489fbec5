//! Congestion control for connections with several paths, coupled and uncoupled.
//!
//! `controller` is the contract, `aimd` the machine that all window rules share, `algorithm` has
//! one file for each published rule.

mod controller;

pub use controller::{ControlState, Controller, Phase};
