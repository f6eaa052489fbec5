//! A run on one core, or one over several.

use fairpath_core::Timestamp;
use fairpath_scenario::Scenario;
use fairpath_sim::{Outcome, Parallel, Recorder, SimError, Simulation};

pub(super) enum Run {
    OneCore(Box<Simulation>),
    Several(Box<Parallel>),
}

impl Run {
    /// Over so many threads; without a number on one core, in the order that one core gives events.
    pub(super) fn new(scenario: &Scenario, threads: Option<u16>) -> Result<Self, SimError> {
        match threads {
            None => Ok(Self::OneCore(Box::new(Simulation::new(scenario)?))),
            Some(threads) => Ok(Self::Several(Box::new(Parallel::new(scenario, threads.into())?))),
        }
    }

    pub(super) fn run_until(&mut self, end: Timestamp, recorder: &mut dyn Recorder) -> Result<(), SimError> {
        match self {
            Self::OneCore(run) => run.run_until(end, recorder),
            Self::Several(run) => run.run_until(end, recorder),
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        match self {
            Self::OneCore(run) => run.outcome(),
            Self::Several(run) => run.outcome(),
        }
    }
}
