//! Congestion control for connections with several paths, coupled and uncoupled.
//!
//! `controller` is the contract, `aimd` the machine that all window rules share, `slow_start` what
//! comes before a rule has its say, `model` what the controllers share that keep a model of the
//! path, `algorithm` has one file for each published rule, and [`by_name`] makes a controller of it.
//! [`equation`] has the equations of the window rules, as the sources state them.

mod aimd;
mod algorithm;
mod catalogue;
#[cfg(test)]
mod contract;
mod controller;
mod model;
mod rounds;
mod slow_start;
#[cfg(test)]
mod testing;
mod time;

/// The equations of the coupled window rules, a module for each rule. They hold in bytes, as the controllers have
/// them, and in packets, as the sources do.
pub mod equation {
    pub use crate::algorithm::{balia, coupled, coupled_cubic, cubic, epsilon, ewtcp, lia, olia};
}

pub use aimd::{
    Adjustment, Aimd, AimdConfig, Both, Followed, GroupView, Losses, Member, PathWindow, Rule, Totals, UntilCoupled,
};
pub use algorithm::{
    Balia, BaseRtt, Bbr, Bbr3, Coupled, CoupledBbr, CoupledBbr3, CoupledConstants, CoupledCubic, Cruise, Cubic, Daimd,
    Epsilon, Ewtcp, Lia, LongestQueue, Olia, PathMetric, Reno, WVegas,
};
pub use catalogue::{Alone, CATALOGUE, Entry, NAMES, Parameters, by_name, by_name_with, entry};
pub use controller::{ControlState, Controller, Phase};
pub use model::{BbrConfig, PerPath};
pub use slow_start::SlowStart;
