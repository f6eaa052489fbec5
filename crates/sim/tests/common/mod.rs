//! Scenarios built in code.

#![allow(dead_code, reason = "each test file uses some of it")]

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{Flow, LinkIndex, PathRoute, Remedies, Scenario, ScenarioLink, Traffic, Transport};

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A network under construction.
pub(crate) struct Net {
    pub(crate) scenario: Scenario,
}

impl Net {
    pub(crate) fn new(seconds: u64, seed: u64) -> Self {
        let scenario = Scenario {
            title: "test".into(),
            seed,
            duration: Duration::from_secs(seconds),
            warm_up: Duration::ZERO,
            sample_every: ms(1000),
            links: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
        };
        Self { scenario }
    }

    pub(crate) fn warm_up(mut self, seconds: u64) -> Self {
        self.scenario.warm_up = Duration::from_secs(seconds);
        self
    }

    pub(crate) fn link(&mut self, config: LinkConfig) -> LinkIndex {
        let index = self.scenario.links.len() as u32;
        let (name, from, to) = (format!("link {index}"), format!("a{index}"), format!("b{index}"));
        self.scenario.links.push(ScenarioLink { name, from, to, config });
        LinkIndex(index)
    }

    /// A bottleneck of a rate, a delay there and the same back, and a queue; the way back is only
    /// delay. Both links of the path.
    pub(crate) fn path(&mut self, mbps: u64, one_way: Duration, queue: QueueConfig) -> PathRoute {
        let there = self.link(LinkConfig::new(Bitrate::from_mbps(mbps)).delay(one_way).queue(queue));
        let back = self.link(LinkConfig::pure_delay(one_way));
        PathRoute { forward: vec![there], backward: vec![back] }
    }

    pub(crate) fn flow(&mut self, class: &str, congestion: &str, paths: &[PathRoute]) -> &mut Flow {
        let name = format!("{class}.{}", self.scenario.flows.len());
        self.scenario.flows.push(Flow {
            name,
            class: class.into(),
            paths: paths.to_vec(),
            engine: engine(congestion),
            transport: Transport::default(),
            remedies: Remedies::default(),
            traffic: Traffic::Bulk,
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
            terms: Vec::new(),
        });
        self.scenario.flows.last_mut().unwrap()
    }
}

pub(crate) fn engine(congestion: &str) -> EngineConfig {
    let (congestion, coupling) = match congestion.strip_prefix("uncoupled ") {
        Some(name) => (name, Coupling::Never),
        None => (congestion, Coupling::Always),
    };
    EngineConfig { congestion: congestion.into(), coupling, ..EngineConfig::default() }
}

/// How many full packets a link carries in a time.
pub(crate) fn packets(mbps: u64, time: Duration) -> usize {
    (mbps as f64 * 1e6 * time.as_secs_f64() / 8.0 / 1500.0).round() as usize
}
