//! What a run shows to those who watch it.

use fairpath_engine::Engine;
use fairpath_net::LinkStats;
use fairpath_scenario::{Scenario, ScenarioLink};
use fairpath_stream::{Counts, Status};

use super::Simulation;
use crate::recorder::{FlowIndex, Shown};

impl Shown for Simulation {
    fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn engines(&self) -> Box<dyn Iterator<Item = (FlowIndex, &Engine)> + '_> {
        Box::new(self.connections().map(|connection| (FlowIndex(connection.flow), &connection.engine)))
    }

    fn live(&self, flow: FlowIndex) -> Option<(Status, Counts)> {
        self.connections().find(|connection| connection.flow == flow.0)?.live_status()
    }

    fn links(&self) -> Box<dyn Iterator<Item = (&ScenarioLink, LinkStats)> + '_> {
        Box::new(Simulation::links(self))
    }
}
