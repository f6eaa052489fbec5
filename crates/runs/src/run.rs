//! A run on one core, or one over several.

use fairpath_core::Timestamp;
use fairpath_engine::{Engine, UnknownName};
use fairpath_scenario::{Flow, Scenario};
use fairpath_sim::{Outcome, Parallel, Recorder, SimError, Simulation};

/// A run of one scenario.
pub enum Run {
    /// In the order that one core gives events.
    OneCore(Box<Simulation>),
    /// Over several cores; any number of them gives the same bytes.
    Several(Box<Parallel>),
}

impl Run {
    /// Over so many threads; without a number on one core.
    ///
    /// # Errors
    ///
    /// Where the scenario cannot be meant, or not over several threads.
    pub fn new(scenario: &Scenario, threads: Option<u16>) -> Result<Self, SimError> {
        match threads {
            None => Ok(Self::OneCore(Box::new(Simulation::new(scenario)?))),
            Some(threads) => Ok(Self::Several(Box::new(Parallel::new(scenario, threads.into())?))),
        }
    }

    /// On one core, with an engine of one's own for each connection of a flow.
    ///
    /// # Errors
    ///
    /// Where the scenario cannot be meant, or a flow has a name that `build` does not know.
    pub fn with_engines(
        scenario: &Scenario,
        build: impl Fn(&Flow) -> Result<Engine, UnknownName> + Send + Sync + 'static,
    ) -> Result<Self, SimError> {
        Ok(Self::OneCore(Box::new(Simulation::with_engines(scenario, build)?)))
    }

    /// Goes on until then.
    ///
    /// # Errors
    ///
    /// Where the run has become more than can be run.
    pub fn run_until(&mut self, end: Timestamp, recorder: &mut dyn Recorder) -> Result<(), SimError> {
        match self {
            Self::OneCore(run) => run.run_until(end, recorder),
            Self::Several(run) => run.run_until(end, recorder),
        }
    }

    /// Its results so far.
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::OneCore(run) => run.outcome(),
            Self::Several(run) => run.outcome(),
        }
    }
}
