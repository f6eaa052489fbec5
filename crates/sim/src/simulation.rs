//! The run: one order of events over the network and the hosts.
//!
//! The order is by time. At equal times packets come before timers; packets are ordered by the
//! network, timers by when they were set.

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::Timestamp;
use fairpath_engine::{Engine, UnknownName};
use fairpath_net::{LinkId, LinkStats, Network};
use fairpath_scenario::{ChangeKind, Flow, Scenario};

use crate::engines::Engines;
use crate::error::{SimError, Violation};
use crate::hosts::Hosts;
use crate::limits::{Counted, Limits};
use crate::moment::Moment;
use crate::outcome::Outcome;
use crate::packet::Packet;
use crate::ready::Ready;
use crate::recorder::{Recorder, View};
use crate::timers::Timer;

/// A run.
#[derive(Debug)]
pub struct Simulation {
    scenario: Arc<Scenario>,
    links: Vec<LinkId>,
    network: Network<Packet>,
    hosts: Hosts,
    now: Timestamp,
    next_change: usize,
    /// Link statistics when summaries began.
    links_before: Vec<LinkStats>,
    pub(crate) limits: Limits,
    counted: Counted,
}

impl Simulation {
    /// Makes everything ready.
    ///
    /// # Errors
    ///
    /// Where the scenario cannot be meant.
    pub fn new(scenario: &Scenario) -> Result<Self, SimError> {
        Self::ready(scenario, Engines::default())
    }

    /// Makes everything ready, with algorithms of one's own: `build` makes the engine of each connection of
    /// a flow. [`EngineConfig::build_around`](fairpath_engine::EngineConfig::build_around) helps where only
    /// the congestion control is.
    ///
    /// # Errors
    ///
    /// Where the scenario cannot be meant, or `build` knows a name of a flow not.
    pub fn with_engines(
        scenario: &Scenario,
        build: impl Fn(&Flow) -> Result<Engine, UnknownName> + Send + Sync + 'static,
    ) -> Result<Self, SimError> {
        Self::ready(scenario, Engines::new(build))
    }

    fn ready(scenario: &Scenario, engines: Engines) -> Result<Self, SimError> {
        let Ready { scenario, network, links, routes } = Ready::new(scenario, &engines)?;
        let mut hosts = Hosts::new(&scenario, &engines, 0..scenario.flows.len(), routes);
        for change in &scenario.changes {
            hosts.timers.set(Timestamp::ZERO + change.at, Timer::Change);
        }
        hosts.timers.set(Timestamp::ZERO + scenario.warm_up, Timer::WarmUp);
        if scenario.sample_every > Duration::ZERO {
            hosts.timers.set(Timestamp::ZERO + scenario.sample_every, Timer::Sample);
        }
        Ok(Self {
            scenario,
            links_before: vec![LinkStats::default(); links.len()],
            links,
            network,
            hosts,
            now: Timestamp::ZERO,
            next_change: 0,
            limits: Limits::default(),
            counted: Counted::default(),
        })
    }

    /// Runs to the end of the scenario.
    ///
    /// # Errors
    ///
    /// Where that needs more memory than a run may take, or comes to no end.
    pub fn run(&mut self, recorder: &mut dyn Recorder) -> Result<(), SimError> {
        self.run_until(Timestamp::ZERO + self.scenario.duration, recorder)
    }

    /// Runs everything that is due by `end`, which is then the time.
    ///
    /// # Errors
    ///
    /// Where that needs more memory than a run may take, or comes to no end.
    pub fn run_until(&mut self, end: Timestamp, recorder: &mut dyn Recorder) -> Result<(), SimError> {
        loop {
            let timer = self.hosts.timers.next();
            if let Some(delivery) = self.network.poll(timer.min(end)) {
                self.advance(delivery.at);
                self.hosts.on_delivery(&delivery, &mut self.network, recorder);
            } else if let Some((at, timer)) = self.hosts.timers.pop_by(end) {
                self.advance(at);
                self.on_timer(at, timer, recorder);
            } else {
                break;
            }
            let work = self.hosts.events + self.hosts.sent;
            if self.counted.is_due(self.now, self.hosts.events, work, &self.limits) {
                self.limits.check(&self.moment(), self.hosts.events - self.counted.since)?;
            }
        }
        self.now = self.now.max(end);
        Ok(())
    }

    fn advance(&mut self, at: Timestamp) {
        debug_assert!(at >= self.now, "time went from {} back to {at}", self.now);
        self.now = at;
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The scenario of the run.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// How many packets arrived at hosts and how many timers came up.
    pub fn events(&self) -> u64 {
        self.hosts.events
    }

    /// The outcome since the end of the warm-up.
    pub fn outcome(&self) -> Outcome {
        self.moment().outcome(&self.links_before)
    }

    /// Checks what must always hold: packets are neither made nor lost but where a link says so,
    /// and data is delivered once and in order. In builds with debug assertions it is called at
    /// every sample.
    ///
    /// # Errors
    ///
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        self.moment().check()
    }

    fn moment(&self) -> Moment<'_> {
        Moment {
            at: self.now,
            scenario: &self.scenario,
            hosts: vec![&self.hosts],
            by_flow: false,
            stats: Box::new(|link| self.network.stats(self.links[link])),
        }
    }

    fn on_timer(&mut self, at: Timestamp, timer: Timer, recorder: &mut dyn Recorder) {
        match timer {
            Timer::Change => {
                let change = &self.scenario.changes[self.next_change];
                let link = self.links[change.link.0 as usize];
                match &change.kind {
                    ChangeKind::Up(up) => self.network.set_link_up(link, *up, at),
                    ChangeKind::Rate(rate) => self.network.set_link_rate(link, rate, at),
                    ChangeKind::Filter(filter) => self.network.set_filters(link, &[*filter], at),
                }
                self.next_change += 1;
            }
            Timer::WarmUp => {
                self.hosts.end_warm_up();
                let stats = self.moment().all_stats();
                self.links_before = stats;
            }
            Timer::Sample => {
                self.hosts.timers.set(at + self.scenario.sample_every, Timer::Sample);
                recorder.on_sample(at, &View { run: &self.moment(), now: at });
                debug_assert_eq!(self.check(), Ok(()));
            }
            _ => return self.hosts.on_timer(at, timer, &mut self.network, recorder),
        }
        self.hosts.events += 1;
    }
}
