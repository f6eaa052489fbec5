//! A packet-level simulator in virtual time, whose hosts carry the engine unchanged.
//!
//! A [`Scenario`](fairpath_scenario::Scenario) says what runs; a [`Recorder`] watches; an
//! [`Outcome`] sums up. Nothing is drawn but from the scenario's seed, each element from a stream
//! of its own, and events have one total order: the same scenario gives the same bytes.
//!
//! Every packet is modelled on every link; what it carries is not. A host is the engine of a real
//! connection with loss recovery around it [RFC9002], data numbered through the connection and
//! packets numbered path by path. A flow over one path is the same host with one path.

mod connection;
mod count;
mod limits;
mod outcome;
mod packet;
mod receiver;
mod recorder;
mod recovery;
mod reordering;
mod send_stream;
mod simulation;
mod source;
mod timers;

pub use count::PathCount;
pub use outcome::{FlowOutcome, LinkOutcome, Outcome, PathOutcome, jain_index};
pub use recorder::{FlowIndex, Recorder, View};
pub use simulation::{SimError, Simulation, Violation};

use fairpath_scenario::Scenario;

/// Runs a scenario to its end.
///
/// # Errors
///
/// Where the scenario cannot be meant, or is more than can be run.
pub fn run<R: Recorder>(scenario: &Scenario, recorder: &mut R) -> Result<Outcome, SimError> {
    let mut simulation = Simulation::new(scenario)?;
    simulation.run(recorder)?;
    Ok(simulation.outcome())
}
