//! A run at one moment: what its hosts have done and hold, and its links.
//!
//! Recorders, limits, invariants and summaries read a run through this view. It is the same whether
//! one core runs it or several.

use fairpath_core::{ByteCount, Timestamp};
use fairpath_engine::Engine;
use fairpath_live::{Counts, Status};
use fairpath_net::LinkStats;
use fairpath_scenario::{Flow, Scenario, ScenarioLink};

use crate::connection::Connection;
use crate::error::Violation;
use crate::hosts::{FlowState, Hosts};
use crate::outcome::Outcome;
use crate::recorder::{FlowIndex, Shown};

/// A run at one moment.
pub(crate) struct Moment<'a> {
    pub(crate) at: Timestamp,
    pub(crate) scenario: &'a Scenario,
    /// Its hosts, in the order of the flows.
    pub(crate) hosts: Vec<&'a Hosts>,
    /// Whether connections come in the order of flows and not of slots, which depends on whose hosts stand together.
    pub(crate) by_flow: bool,
    /// The counters of each link, by its number.
    pub(crate) stats: Box<dyn Fn(usize) -> LinkStats + 'a>,
}

impl<'a> Moment<'a> {
    /// The connections that are open.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &'a Connection> + use<'a> {
        let mut all: Vec<_> = self.hosts.iter().flat_map(|hosts| hosts.connections()).collect();
        if self.by_flow {
            all.sort_by_key(|connection| (connection.flow, connection.number));
        }
        all.into_iter()
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.hosts.iter().map(|hosts| hosts.open_connections()).sum()
    }

    pub(crate) fn flows(&self) -> impl Iterator<Item = (&'a Flow, &'a FlowState)> {
        self.hosts.iter().flat_map(|hosts| hosts.flows())
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = (&'a ScenarioLink, LinkStats)> {
        self.scenario.links.iter().enumerate().map(|(index, link)| (link, (self.stats)(index)))
    }

    /// The counters of all links.
    pub(crate) fn all_stats(&self) -> Vec<LinkStats> {
        (0..self.scenario.links.len()).map(&self.stats).collect()
    }

    /// The outcome since the end of the warm-up, when the links' counters stood at `before`.
    pub(crate) fn outcome(&self, before: &[LinkStats]) -> Outcome {
        let begin = Timestamp::ZERO + self.scenario.warm_up;
        let flows = self.flows().map(|(flow, state)| (flow, (&state.before, &state.count)));
        Outcome::new(self.at.since(begin), flows, self.links().zip(before))
    }

    /// Checks what must always hold: packets are neither made nor lost but where a link says so, and data is
    /// delivered once and in order.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        let violation = |what: String| Violation { at: self.at, what };
        let mut inside = 0;
        let mut dropped = 0;
        let mut made: u64 = self.hosts.iter().map(|hosts| hosts.sent).sum();
        for (link, stats) in self.links() {
            let accounted =
                stats.delivered.packets + stats.dropped().packets + stats.queued.packets + stats.in_flight.packets;
            let given = stats.offered.packets + stats.duplicated.packets;
            if given != accounted {
                return Err(violation(format!(
                    "link {:?} was given {given} packets, copies included, and accounts for {accounted}",
                    link.name
                )));
            }
            inside += stats.queued.packets + stats.in_flight.packets;
            dropped += stats.dropped().packets;
            made += stats.duplicated.packets;
        }
        let received: u64 = self.hosts.iter().map(|hosts| hosts.received).sum();
        let accounted = received + inside + dropped;
        if made != accounted {
            return Err(violation(format!("hosts and links made {made} packets, {accounted} are accounted for")));
        }
        for connection in self.connections() {
            let name = &self.scenario.flows[connection.flow as usize].name;
            connection.check().map_err(|what| violation(format!("flow {name:?}: {what}")))?;
        }
        for (flow, state) in self.flows() {
            let arrived: ByteCount = state.count.paths.iter().map(|path| path.delivered).sum();
            if state.count.delivered > arrived {
                let what =
                    format!("flow {:?} delivered {}, but only {arrived} arrived", flow.name, state.count.delivered);
                return Err(violation(what));
            }
        }
        Ok(())
    }
}

impl Shown for Moment<'_> {
    fn scenario(&self) -> &Scenario {
        self.scenario
    }

    fn engines(&self) -> Box<dyn Iterator<Item = (FlowIndex, &Engine)> + '_> {
        Box::new(self.connections().map(|connection| (FlowIndex(connection.flow), &connection.engine)))
    }

    fn live(&self, flow: FlowIndex) -> Option<(Status, Counts)> {
        self.connections().find(|connection| connection.flow == flow.0)?.live_status()
    }

    fn links(&self) -> Box<dyn Iterator<Item = (&ScenarioLink, LinkStats)> + '_> {
        Box::new(Moment::links(self))
    }
}
