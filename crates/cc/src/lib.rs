//! Congestion control for connections with several paths, coupled and uncoupled.
//!
//! `controller` is the contract, `aimd` the machine that all window rules share, and `slow_start`
//! the phase before a rule decides. `model` is shared by the controllers that keep a model of the
//! path. `algorithm` has one file for each published rule, and [`by_name`] makes a controller of
//! it. [`equation`] has the equations of the window rules, as the sources state them.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::{Ack, ByteCount, Congestion, CongestionSignal, PathId, RttEstimator, Timestamp};
//!
//! let mut lia = fairpath_cc::by_name("lia").expect("LIA is in the catalogue");
//! let path = PathId::new(0);
//! lia.on_path_opened(path, ByteCount::new(1_200), Timestamp::ZERO);
//! assert_eq!(lia.window(path), ByteCount::new(12_000));
//!
//! // All of it arrives within 20 ms, and slow start doubles the window.
//! let (sent_at, now) = (Timestamp::ZERO, Timestamp::from_millis(20));
//! let mut rtt = RttEstimator::new();
//! rtt.on_sample(now, now.since(sent_at), Duration::ZERO);
//! let bytes = ByteCount::new(12_000);
//! let ack = Ack { now, sent_at, bytes, in_flight: bytes, window_limited: true, rtt: rtt.get(), rate: None };
//! lia.on_ack(path, &ack);
//! assert_eq!(lia.window(path), ByteCount::new(24_000));
//!
//! // A packet that was sent then is lost, and half of the window goes.
//! let (signal, lost) = (CongestionSignal::Loss, ByteCount::new(1_200));
//! let loss = Congestion { now, sent_at: now, signal, lost, in_flight: bytes, persistent: false };
//! lia.on_congestion(path, &loss);
//! assert_eq!(lia.window(path), ByteCount::new(12_000));
//! ```
//!
//! A rule of one's own implements [`Rule`], and [`Aimd`] is the controller around it.

mod aimd;
mod algorithm;
mod catalogue;
#[cfg(test)]
mod contract;
mod controller;
mod levels;
mod model;
mod rounds;
mod slow_start;
#[cfg(test)]
mod testing;
mod time;

/// The equations of the coupled window rules, a module for each rule. They hold in bytes, as the controllers have
/// them, and in packets, as the sources do.
pub mod equation {
    pub use crate::algorithm::{balia, coupled, coupled_cubic, cubic, epsilon, ewtcp, hybrid_cubic, lia, olia};
}

pub use aimd::{
    Adjustment, Aimd, AimdConfig, Both, Followed, GroupView, Losses, Member, PathWindow, Rule, Totals, UntilCoupled,
};
pub use algorithm::{
    Balia, BaseRtt, Bbr, Bbr3, Coupled, CoupledBbr, CoupledBbr3, CoupledConstants, CoupledCubic, Cruise, Cubic, Daimd,
    Epsilon, Ewtcp, HybridCubic, Lia, LongestQueue, Olia, PathMetric, Reno, WVegas,
};
pub use catalogue::{Alone, CATALOGUE, Entry, NAMES, Parameters, by_name, by_name_with, entry};
pub use controller::{ControlState, Controller, Phase};
pub use model::{BbrConfig, PerPath};
pub use slow_start::SlowStart;
