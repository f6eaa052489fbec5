//! Scenarios built in code, link by link and flow by flow.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::Bitrate;
//! use fairpath_net::QueueConfig;
//! use fairpath_scenario::build::{Net, engine, ms};
//!
//! let mut net = Net::new("two paths", 1, ms(500), Duration::from_secs(10));
//! let queue = QueueConfig::packets(50);
//! let paths = [20, 60].map(|delay| net.path(&format!("{delay} ms"), Bitrate::from_mbps(10), ms(delay), queue.clone()));
//! net.flow("both", engine("lia"), &paths);
//! assert_eq!((net.scenario.links.len(), net.scenario.flows.len()), (4, 1));
//! ```

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig};

use crate::model::{Flow, LinkIndex, PathRoute, Remedies, Scenario, ScenarioLink, Traffic, Transport};

/// Milliseconds.
pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How many full packets of 1,500 B a link carries in a time, rounded.
pub fn bdp_packets(rate: Bitrate, time: Duration) -> usize {
    (rate.as_bps() as f64 * time.as_secs_f64() / 8.0 / 1500.0).round() as usize
}

/// The engine for a congestion control of this name, coupled; `uncoupled <name>` where each path is
/// on its own.
pub fn engine(congestion: &str) -> EngineConfig {
    let (congestion, coupling) = match congestion.strip_prefix("uncoupled ") {
        Some(name) => (name, Coupling::Never),
        None => (congestion, Coupling::Always),
    };
    EngineConfig { congestion: congestion.into(), coupling, ..EngineConfig::default() }
}

/// A scenario under construction. What the methods do not set is set on [`Net::scenario`] and on
/// the [`Flow`]s they give.
#[derive(Clone, Debug)]
pub struct Net {
    /// The scenario so far.
    pub scenario: Scenario,
}

impl Net {
    /// Nothing, to be run for `duration`, summed up from `warm_up` on, without time series.
    pub fn new(title: &str, seed: u64, warm_up: Duration, duration: Duration) -> Self {
        let scenario = Scenario {
            title: title.into(),
            seed,
            duration,
            warm_up,
            sample_every: Duration::ZERO,
            links: Vec::new(),
            flows: Vec::new(),
            changes: Vec::new(),
        };
        Self { scenario }
    }

    /// Adds one direction of a wire.
    pub fn link(&mut self, name: &str, config: LinkConfig) -> LinkIndex {
        let index = self.scenario.links.len() as u32;
        let (from, to) = (format!("{name} begin"), format!("{name} end"));
        self.scenario.links.push(ScenarioLink { name: name.into(), from, to, config });
        LinkIndex(index)
    }

    /// Adds a bottleneck of a rate, a delay and a queue, and a way back that is only the same delay.
    pub fn path(&mut self, name: &str, rate: Bitrate, one_way: Duration, queue: QueueConfig) -> PathRoute {
        let there = self.link(name, LinkConfig::new(rate).delay(one_way).queue(queue));
        let back = self.link(&format!("{name} back"), LinkConfig::pure_delay(one_way));
        PathRoute { forward: vec![there], backward: vec![back] }
    }

    /// Adds a greedy flow over `paths`, called `<class>.<number>`, that starts at once.
    pub fn flow(&mut self, class: &str, engine: EngineConfig, paths: &[PathRoute]) -> &mut Flow {
        let name = format!("{class}.{}", self.scenario.flows.len());
        self.scenario.flows.push(Flow {
            name,
            class: class.into(),
            paths: paths.to_vec(),
            terms: Vec::new(),
            engine,
            transport: Transport::default(),
            remedies: Remedies::default(),
            traffic: Traffic::Bulk,
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
        });
        self.scenario.flows.last_mut().expect("one was added")
    }
    /// The same of a connection as it is over real networks: [`Flow::as_live`].
    pub fn live(&mut self, class: &str, engine: EngineConfig, paths: &[PathRoute]) -> &mut Flow {
        self.flow(class, EngineConfig::default(), paths).as_live(engine)
    }
}
