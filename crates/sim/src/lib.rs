//! A packet-level simulator in virtual time, whose hosts carry the engine unchanged.
//!
//! A [`Scenario`] says what runs; a [`Recorder`] watches; an
//! [`Outcome`] sums up. Nothing is drawn but from the scenario's seed, each element from a stream
//! of its own, and events have one total order: the same scenario gives the same bytes.
//!
//! Every packet is modelled on every link; what it carries is not. A host is the engine of a real
//! connection with loss recovery around it [RFC9002 §6], data numbered through the connection and
//! packets numbered path by path. A flow over one path is the same host with one path.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::Bitrate;
//! use fairpath_net::QueueConfig;
//! use fairpath_scenario::build::{Net, engine, ms};
//!
//! let mut net = Net::new("two links of 10 Mbit/s", 1, ms(1_000), Duration::from_secs(10));
//! let paths = ["a", "b"].map(|name| net.path(name, Bitrate::from_mbps(10), ms(10), QueueConfig::packets(20)));
//! net.flow("both", engine("olia"), &paths);
//! let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
//! assert!((17.0..20.0).contains(&outcome.flows[0].goodput.as_mbps_f64()));
//! # Ok::<(), fairpath_sim::SimError>(())
//! ```
//!
//! [`Simulation::with_engines`] runs algorithms of one's own; `examples/own_controller.rs` is one in full.

mod connection;
mod count;
mod egress;
mod engines;
mod error;
mod hosts;
mod limits;
mod moment;
mod outcome;
mod packet;
mod parallel;
mod ready;
mod receiver;
mod recorder;
mod recovery;
mod remedies;
mod send_stream;
mod simulation;
mod source;
mod timers;

pub use count::{LiveCount, PathCount};
pub use error::{SimError, Violation};
pub use fairpath_live::{Counts, PathStatus, Status};
pub use outcome::{FlowOutcome, LinkOutcome, Outcome, PathOutcome, jain_index};
pub use parallel::Parallel;
pub use recorder::{FlowIndex, Recorder, View};
pub use simulation::Simulation;

use fairpath_scenario::Scenario;

/// Runs a scenario to its end.
///
/// # Errors
///
/// Where the scenario cannot be meant, or is more than can be run.
// `dyn`, here and below: the simulator is compiled once, and not anew for each recorder.
pub fn run(scenario: &Scenario, recorder: &mut dyn Recorder) -> Result<Outcome, SimError> {
    let mut simulation = Simulation::new(scenario)?;
    simulation.run(recorder)?;
    Ok(simulation.outcome())
}
