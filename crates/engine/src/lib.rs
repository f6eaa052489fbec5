//! The one place where detection, congestion control and scheduling meet. Hosts (a simulator, a
//! QUIC stack) report what happens to packets and ask which path may send; they call nothing below.
//!
//! Data flows one way: signals → groups → windows → path choice.

mod config;
mod dips;
mod engine;
mod pacer;
mod path;
mod sent_packets;

pub use config::{Coupling, EngineConfig, UnknownName};
pub use engine::{Engine, PathSnapshot, Verdict};
pub use fairpath_cc::{
    AimdConfig, BbrConfig, Cruise, Cubic, Daimd, Epsilon, Ewtcp, LongestQueue, Olia, Parameters, PathMetric, Phase,
    SlowStart, WVegas,
};
pub use fairpath_core::{Bitrate, Bytes, CongestionSignal, GroupId, Groups, PathId, PathMap, Rtt, Timestamp};
pub use fairpath_sbd::PairVerdict;
pub use fairpath_sched::{Choice, Pending};
