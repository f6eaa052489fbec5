//! A described network in real time, for real programs.

use std::net::SocketAddr;

use fairpath_emu::{Emulator, EmulatorError, EmulatorStats, LinkId};
use fairpath_scenario::{Change, ChangeKind, Flow, LinkIndex, Scenario};
use serde_json::{Value, json};

use crate::Unusable;

/// The paths of a flow of a scenario as relays on this machine. It ends when this is dropped.
#[derive(Debug)]
pub struct Emulated {
    emulator: Emulator,
    links: Vec<LinkId>,
}

impl Emulated {
    /// Starts it. What is sent to a relay crosses the links of its path and comes out at `to`.
    ///
    /// # Errors
    ///
    /// Where the operating system refuses a socket, or the links cannot be meant.
    pub fn start(scenario: &Scenario, flow: &Flow, to: SocketAddr) -> Result<Self, EmulatorError> {
        let mut builder = Emulator::builder(scenario.seed);
        let mut links = Vec::new();
        for link in &scenario.links {
            links.push(builder.link(&link.name, &link.config)?);
        }
        for path in &flow.paths {
            let chain =
                |chain: &[LinkIndex]| -> Vec<LinkId> { chain.iter().map(|link| links[link.0 as usize]).collect() };
            builder.path(&chain(&path.forward), &chain(&path.backward), to)?;
        }
        Ok(Self { emulator: builder.start()?, links })
    }

    /// The address of each path.
    pub fn relays(&self) -> &[SocketAddr] {
        self.emulator.relays()
    }

    /// Counters of links, paths and the clock.
    pub fn stats(&self) -> EmulatorStats {
        self.emulator.stats()
    }

    /// Changes a link, now, as the scenario says.
    pub fn change(&self, change: &Change) {
        let link = self.links[change.link.0 as usize];
        match &change.kind {
            ChangeKind::Up(up) => self.emulator.set_link_up(link, *up),
            ChangeKind::Rate(rate) => self.emulator.set_link_rate(link, rate.clone()),
            ChangeKind::Filter(filter) => self.emulator.set_filter(link, *filter),
        }
    }

    /// Its counters, for programs.
    pub fn json(&self) -> Value {
        let stats = self.stats();
        let link = |link: &fairpath_emu::LinkReport| {
            json!({
                "name": link.name,
                "offered_packets": link.stats.offered.packets,
                "delivered_packets": link.stats.delivered.packets,
                "delivered_bytes": link.stats.delivered.bytes.get(),
                "dropped_packets": link.stats.dropped().packets,
                "marked_packets": link.stats.marked.packets,
            })
        };
        json!({ "links": stats.links.iter().map(link).collect::<Vec<_>>(), "too_large_packets": too_large(&stats) })
    }
}

/// How many packets were dropped since no link carries them.
pub fn too_large(stats: &EmulatorStats) -> u64 {
    stats.paths.iter().map(|path| path.forward.too_large.packets + path.backward.too_large.packets).sum()
}

/// The flow of this name, or of a class of this name; without a name the first.
///
/// # Errors
///
/// Where there is none.
pub fn choose_flow<'a>(scenario: &'a Scenario, name: Option<&str>) -> Result<&'a Flow, Unusable> {
    let found = match name {
        Some(name) => scenario.flows.iter().find(|flow| flow.name == name || flow.class == name),
        None => scenario.flows.first(),
    };
    found.ok_or_else(|| {
        let mut known: Vec<&str> = scenario.flows.iter().map(|flow| flow.class.as_str()).collect();
        known.dedup();
        Unusable(match name {
            Some(name) => format!("the scenario has no flow '{name}'; it has {}", known.join(", ")),
            None => "the scenario has no flow, so there is no path to make".to_owned(),
        })
    })
}
