//! The one place where detection, congestion control and scheduling meet. Hosts (a simulator, a
//! QUIC stack) report the fate of packets and ask which path may send; they call no lower layer.
//!
//! Data flows one way: signals → groups → windows → path choice.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_engine::{ByteCount, Choice, ConnectionView, EngineConfig, PathId, PathUse, Timestamp};
//!
//! let datagram = ByteCount::new(1_200);
//! let mut engine = EngineConfig::default().build()?;
//! engine.on_path_opened(PathId::new(0), datagram, Timestamp::ZERO);
//! engine.set_use(PathId::new(0), PathUse::Open);
//! let choice = engine.pick(&ConnectionView::default(), Timestamp::ZERO);
//! let Choice::Send(path) = choice else { panic!("nothing is in flight") };
//! engine.on_sent(path, 0, datagram, Timestamp::ZERO);
//! let before = engine.verdict(path, Timestamp::ZERO).in_flight;
//! let now = Timestamp::from_millis(20);
//! engine.on_ack(path, 0, now);
//! engine.on_ack_end(path, Duration::ZERO, now);
//! assert_eq!((before, engine.verdict(path, now).in_flight), (datagram, ByteCount::ZERO));
//! # Ok::<(), fairpath_engine::UnknownName>(())
//! ```
//!
//! `examples/by_hand.rs` is a whole host in forty lines.

mod config;
mod control;
mod dips;
mod engine;
pub mod health;
mod health_parameters;
mod limit;
mod named_terms;
mod pacer;
mod path;
mod paths;
mod sent_packets;
mod steady;
mod without;

pub use config::{Coupling, EngineConfig, UnknownName};
pub use engine::{Engine, PathSnapshot, SendState};
pub use fairpath_cc::{
    Aimd, AimdConfig, Alone, BaseRtt, BbrConfig, ControlState, Controller, Coupled, CoupledConstants, Cruise, Cubic,
    Daimd, Epsilon, Ewtcp, GroupView, LongestQueue, Losses, Olia, Parameters, PathMetric, Phase, Rule, SlowStart,
    WVegas,
};
pub use fairpath_core::{
    Bitrate, ByteCount, CongestionSignal, GroupId, Groups, PathId, PathMap, RateSample, Rtt, Timestamp,
};
pub use fairpath_sbd::PairVerdict;
pub use fairpath_sched::{
    Choice, ConnectionView, Deadline, DeadlineParameters, Due, PathSet, PathView, Rank, Scheduler, Terms, Transit,
};
pub use named_terms::{NamedTerms, TermsChange, TermsChanges};
pub use path::{BackupReason, Liveness, LossBatch, LossDetector, PathUse, ShutReason, Tracked, probe_timeout};
pub use without::Without;
