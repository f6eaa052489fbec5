//! A scenario made ready: its network, and the routes of its flows, once all names are known to mean something.

use std::sync::Arc;

use fairpath_net::{LinkId, Network, PathRoutes};
use fairpath_scenario::{Flow, Scenario};

use crate::engines::Engines;
use crate::error::SimError;
use crate::packet::Packet;

/// The initial state of a run.
pub(crate) struct Ready {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) network: Network<Packet>,
    pub(crate) links: Vec<LinkId>,
    /// Those of each flow's paths.
    pub(crate) routes: Vec<Vec<PathRoutes>>,
}

impl Ready {
    pub(crate) fn new(scenario: &Scenario, engines: &Engines) -> Result<Self, SimError> {
        let mut network = Network::new(scenario.seed);
        let mut links = Vec::with_capacity(scenario.links.len());
        for link in &scenario.links {
            links.push(network.add_link(&link.name, &link.config)?);
        }
        let mut routes = Vec::with_capacity(scenario.flows.len());
        for flow in &scenario.flows {
            routes.push(routes_of(flow, &links, &mut network)?);
            engines.build(flow).map_err(|source| SimError::Algorithm { flow: flow.name.clone(), source })?;
        }
        for change in &scenario.changes {
            check_link("a change", change.link.0, &links)?;
        }
        Ok(Self { scenario: Arc::new(scenario.clone()), network, links, routes })
    }
}

fn check_link(what: &str, link: u32, links: &[LinkId]) -> Result<(), SimError> {
    match links.get(link as usize) {
        Some(_) => Ok(()),
        None => Err(SimError::UnknownLink { what: what.to_owned(), link, links: links.len() }),
    }
}

fn routes_of(flow: &Flow, links: &[LinkId], network: &mut Network<Packet>) -> Result<Vec<PathRoutes>, SimError> {
    if flow.paths.is_empty() {
        return Err(SimError::NoPath { flow: flow.name.clone() });
    }
    if flow.paths.len() > usize::from(u16::MAX) {
        return Err(SimError::TooManyPaths { flow: flow.name.clone(), paths: flow.paths.len() });
    }
    let chain = |indices: &[fairpath_scenario::LinkIndex]| -> Result<Vec<LinkId>, SimError> {
        let what = format!("flow {:?}", flow.name);
        indices.iter().map(|link| check_link(&what, link.0, links).map(|()| links[link.0 as usize])).collect()
    };
    flow.paths.iter().map(|path| Ok(network.add_path(&chain(&path.forward)?, &chain(&path.backward)?)?)).collect()
}
