//! One run over several cores.
//!
//! Flows with their hosts, and links, are dealt out to *parts*, one for each thread. Time goes in windows that are no
//! longer than the least delay of all links. What hosts send in a window changes links in that window, and what links
//! do in a window reaches hosts and other links in the next at the earliest. So in each window first the hosts of all
//! parts run, side by side, then the links; after each half all parts wait for one another and hand over packets.
//! Hence both ends of a connection may be one object here, too, and any flow and any link may be in any part.
//!
//! The result is the same, byte for byte, for any number of threads. A host sees its events in the
//! order of time, packets before timers; a link takes its packets by [`Moving::order`]. The result
//! differs from that of [`Simulation`](crate::Simulation), where packets that reach a link at one
//! instant keep the order in which one core had moved them.

mod barrier;
mod notes;
mod part;
mod shares;

use core::time::Duration;
use std::sync::Arc;
use std::thread;

use fairpath_core::Timestamp;
use fairpath_engine::{Engine, UnknownName};
use fairpath_net::{LinkId, LinkStats};
use fairpath_scenario::{ChangeKind, Flow, Scenario};

use crate::engines::Engines;
use crate::error::{SimError, Violation};
use crate::hosts::Hosts;
use crate::limits::{Counted, Limits};
use crate::moment::Moment;
use crate::outcome::Outcome;
use crate::ready::Ready;
use crate::recorder::{Recorder, View};
use notes::Notes;
use part::{Meeting, Partition, Reached};

/// A run over several cores.
#[derive(Debug)]
pub struct Parallel {
    scenario: Arc<Scenario>,
    lookahead: Duration,
    parts: Vec<Partition>,
    links: Vec<LinkId>,
    /// The part of each link, and its place there.
    places: Vec<(usize, usize)>,
    now: Timestamp,
    /// Everything before this has happened.
    frontier: Timestamp,
    next_change: usize,
    warm_up: Option<Timestamp>,
    next_sample: Timestamp,
    /// Link statistics when summaries began.
    links_before: Vec<LinkStats>,
    limits: Limits,
    counted: Counted,
}

impl Parallel {
    /// Prepares a run on this many threads, but on no more than there are flows.
    ///
    /// # Errors
    ///
    /// Where the scenario cannot be meant, or a link has no delay: then nothing may run ahead of anything else.
    pub fn new(scenario: &Scenario, threads: usize) -> Result<Self, SimError> {
        Self::ready(scenario, threads, Engines::default())
    }

    /// The same with algorithms of one's own, as [`Simulation::with_engines`](crate::Simulation::with_engines) has
    /// them.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and where `build` knows a name of a flow not.
    pub fn with_engines(
        scenario: &Scenario,
        threads: usize,
        build: impl Fn(&Flow) -> Result<Engine, UnknownName> + Send + Sync + 'static,
    ) -> Result<Self, SimError> {
        Self::ready(scenario, threads, Engines::new(build))
    }

    fn ready(scenario: &Scenario, threads: usize, engines: Engines) -> Result<Self, SimError> {
        let Ready { scenario, network, links, routes } = Ready::new(scenario, &engines)?;
        let no_delay = |link: LinkId| SimError::NoLookahead { link: scenario.links[link.index()].name.clone() };
        let lookahead = network.lookahead().map_err(no_delay)?;
        for (flow, routes) in scenario.flows.iter().zip(&routes) {
            let ends = routes.iter().flat_map(|path| [path.forward, path.backward]);
            if ends.into_iter().any(|route| network.route(route).next().is_none()) {
                return Err(SimError::NoLink { flow: flow.name.clone() });
            }
        }
        let shares = shares::deal(&network, &routes, threads.max(1));
        let mut hosts_of = Vec::with_capacity(shares.flows.len());
        let mut routes = routes.into_iter();
        for range in &shares.flows {
            hosts_of.push(Hosts::new(&scenario, &engines, range.clone(), routes.by_ref().take(range.len())));
        }
        let count = hosts_of.len();
        let mut places = Vec::with_capacity(links.len());
        let mut held = vec![0; count];
        for part in &shares.links {
            places.push((*part, held[*part]));
            held[*part] += 1;
        }
        let cut = network.divide(count, &shares.links, &shares.routes);
        let parts = hosts_of.into_iter().zip(cut).map(|(hosts, links)| Partition::new(hosts, links, count)).collect();
        let every = scenario.sample_every;
        Ok(Self {
            lookahead,
            parts,
            links_before: vec![LinkStats::default(); links.len()],
            links,
            places,
            now: Timestamp::ZERO,
            frontier: Timestamp::ZERO,
            next_change: 0,
            warm_up: Some(Timestamp::ZERO + scenario.warm_up),
            next_sample: if every > Duration::ZERO { Timestamp::ZERO + every } else { Timestamp::MAX },
            limits: Limits::default(),
            counted: Counted::default(),
            scenario,
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

    /// Runs everything that is due by `end`, which is then the time. What a recorder is told comes late, in the order
    /// of time and of flows, before the next sample at the latest.
    ///
    /// # Errors
    ///
    /// Where that needs more memory than a run may take, or comes to no end.
    pub fn run_until(&mut self, end: Timestamp, recorder: &mut dyn Recorder) -> Result<(), SimError> {
        self.parts.iter_mut().for_each(|part| part.notes.wanted(recorder.hears_all()));
        while self.frontier <= end {
            let change = self.scenario.changes.get(self.next_change).map(|change| Timestamp::ZERO + change.at);
            let meeting = change.into_iter().chain(self.warm_up).chain([self.next_sample, end]).min();
            let reached = self.run_windows(meeting.unwrap_or(end));
            let at = reached.at();
            (self.now, self.frontier) = (at, at + Duration::from_nanos(1));
            Notes::tell(self.parts.iter_mut().map(|part| &mut part.notes), recorder);
            match reached {
                Reached::Standstill(_) => {
                    return Err(SimError::Standstill { at, events: self.limits.standstill });
                }
                Reached::Work(_) => {
                    self.counted.is_due(at, 0, self.work(), &self.limits);
                    self.limits.check(&self.moment(), 0)?;
                }
                Reached::End(_) => self.meet(at, recorder),
            }
        }
        self.now = self.now.max(end);
        Ok(())
    }

    /// Runs until the time `end` is over, or until it is time to count what the run holds.
    fn run_windows(&mut self, end: Timestamp) -> Reached {
        let before = self.counted.work();
        let meeting = Meeting::new(self.parts.len(), self.lookahead, end, before, self.limits);
        let mut parts = self.parts.iter_mut().enumerate();
        let Some((_, first)) = parts.next() else { return Reached::End(end) };
        thread::scope(|scope| {
            for (index, part) in parts {
                let meeting = &meeting;
                scope.spawn(move || part.run(index, meeting));
            }
            first.run(0, &meeting)
        })
    }

    /// All parts have come to `at`: does what is due of the run itself.
    fn meet(&mut self, at: Timestamp, recorder: &mut dyn Recorder) {
        while let Some(change) = self.scenario.changes.get(self.next_change)
            && Timestamp::ZERO + change.at <= at
        {
            let link = change.link.0 as usize;
            let (part, id) = (&mut self.parts[self.places[link].0].links, self.links[link]);
            match &change.kind {
                ChangeKind::Up(up) => part.set_link_up(id, *up, at),
                ChangeKind::Rate(rate) => part.set_link_rate(id, rate, at),
                ChangeKind::Filter(filter) => part.set_filters(id, &[*filter], at),
            }
            self.next_change += 1;
        }
        if self.warm_up.is_some_and(|over| over <= at) {
            self.warm_up = None;
            self.parts.iter_mut().for_each(|part| part.hosts.end_warm_up());
            let stats = self.moment().all_stats();
            self.links_before = stats;
        }
        if self.next_sample <= at {
            self.next_sample = at + self.scenario.sample_every;
            recorder.on_sample(at, &View { run: &self.moment(), now: at });
            debug_assert_eq!(self.check(), Ok(()));
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// How many threads it takes.
    pub fn threads(&self) -> usize {
        self.parts.len()
    }

    /// How far one part may run ahead of the others.
    pub fn lookahead(&self) -> Duration {
        self.lookahead
    }

    /// How many packets arrived at hosts and how many of their timers came up.
    pub fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.hosts.events).sum()
    }

    fn work(&self) -> u64 {
        self.parts.iter().map(|part| part.hosts.events + part.hosts.sent).sum()
    }

    /// The outcome since the end of the warm-up.
    pub fn outcome(&self) -> Outcome {
        self.moment().outcome(&self.links_before)
    }

    /// Checks what must always hold, as [`Simulation::check`](crate::Simulation::check) does.
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
            hosts: self.parts.iter().map(|part| &part.hosts).collect(),
            by_flow: true,
            stats: Box::new(|link| {
                let (part, place) = self.places[link];
                self.parts[part].links.stats_at(place)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use fairpath_scenario::ScenarioFile;

    use super::*;

    fn run(text: &str, limits: Limits, threads: usize) -> Result<(), SimError> {
        let scenario = ScenarioFile::parse(text, "test").unwrap().expand(None).unwrap();
        let mut run = Parallel::new(&scenario, threads).unwrap();
        run.limits = limits;
        run.run(&mut ())
    }

    #[test]
    fn what_a_run_may_hold_is_counted_over_all_parts() {
        let text = r#"
            duration = "10s"
            sample_every = "0s"
            link = [
                { name = "x", from = "a", to = "b", rate = "1Mbit/s", delay = "5ms", queue = "unlimited" },
                { name = "y", from = "a", to = "b", rate = "1Mbit/s", delay = "5ms", queue = "unlimited" },
            ]
            flow = [
                { name = "f", from = "a", to = "b", via = [["x"]], traffic = { unresponsive = "1Gbit/s" } },
                { name = "g", from = "a", to = "b", via = [["y"]], traffic = { unresponsive = "900Mbit/s" } },
            ]
        "#;
        let limits = Limits { packets: 20_000, every: 1_000, ..Limits::default() };
        let [one, two] = [1, 2].map(|threads| run(text, limits, threads).unwrap_err());
        assert!(matches!(&one, SimError::TooManyPackets { name, .. } if name == "x"), "{one}");
        assert_eq!(one, two, "it ends at the same moment");
    }
}
