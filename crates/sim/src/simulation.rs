//! The run: one order of events over the network and the hosts.
//!
//! The order is by time. At equal times packets come before timers; packets are ordered by the
//! network, timers by when they were set.

mod limits;
mod live;
mod shown;

use core::time::Duration;

use fairpath_core::{Bytes, PathId, Timestamp};
use fairpath_engine::{Engine, UnknownName};
use fairpath_net::{Delivery, LinkId, LinkStats, Network, PathRoutes, Streams, TopologyError};
use fairpath_scenario::{ChangeKind, Flow, Scenario, ScenarioLink, Traffic};

use crate::connection::{Connection, Name, Outside};
use crate::count::FlowCount;
use crate::engines::Engines;
use crate::outcome::Outcome;
use crate::packet::{Body, Packet};
use crate::recorder::{Recorder, View};
use crate::source::{self, Deed, Source};
use crate::timers::{Timer, Timers};
use limits::{Counted, Limits};

/// A scenario that cannot be run. The fault is the scenario's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A link cannot be meant.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A flow names an algorithm that does not exist.
    #[error("flow {flow:?}: {source}")]
    Algorithm {
        /// The flow.
        flow: String,
        /// The name.
        source: UnknownName,
    },
    /// A flow has no path.
    #[error("flow {flow:?} has no path")]
    NoPath {
        /// The flow.
        flow: String,
    },
    /// A flow has more paths than packets can name.
    #[error("flow {flow:?} has {paths} paths; at most {} can be told apart", u16::MAX)]
    TooManyPaths {
        /// The flow.
        flow: String,
        /// How many.
        paths: usize,
    },
    /// A flow's path or a change names a link that the scenario does not have.
    #[error("{what} goes over link number {link}, and there are only {links} links")]
    UnknownLink {
        /// What names it.
        what: String,
        /// The link.
        link: u32,
        /// How many there are.
        links: usize,
    },
    /// The links hold more packets than fit the memory, or the hosts have sent more that are open.
    #[error(
        "at {at} more than {most} packets are on their way, most of them at link {name:?} (rate {rate}, delay {delay:?}, queue {queue}); give it a lower `rate`, a shorter `delay` or a smaller `queue`"
    )]
    TooManyPackets {
        /// When.
        at: Timestamp,
        /// How many may be.
        most: u64,
        /// The link that holds most.
        name: String,
        /// Its rate.
        rate: String,
        /// Its delay.
        delay: Duration,
        /// What its queue has room for.
        queue: String,
    },
    /// More connections are open than fit the memory.
    #[error(
        "at {at} more than {most} connections are open, most of them of flow {flow:?}; give its `short_flows` a longer `mean_interval` or a smaller `size`"
    )]
    TooManyConnections {
        /// When.
        at: Timestamp,
        /// How many may be.
        most: usize,
        /// The flow that has most.
        flow: String,
    },
    /// A flow has had more transfers or frames than are noted.
    #[error(
        "by {at} flow {flow:?} has had more than {most} transfers or frames; give the run a shorter `duration`, or the flow a longer `mean_interval` or fewer `frames_per_second`"
    )]
    TooManyTimes {
        /// When.
        at: Timestamp,
        /// How many are noted.
        most: usize,
        /// The flow.
        flow: String,
    },
    /// The events come to no end, and no time passes.
    #[error(
        "time stands still at {at}, after {events} events at that moment; on the way of every flow one link needs a `delay` above zero, or a `rate` that is not \"unlimited\""
    )]
    Standstill {
        /// When.
        at: Timestamp,
        /// How many events there were.
        events: u64,
    },
}

/// Something that must always hold did not. The fault is the simulator's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: {what}")]
pub struct Violation {
    /// When it was found.
    pub at: Timestamp,
    /// What.
    pub what: String,
}

/// A flow at work.
#[derive(Debug)]
pub(crate) struct FlowState {
    routes: Vec<PathRoutes>,
    source: Source,
    /// The slot of its connection; `None` before it starts, and for flows of short transfers.
    connection: Option<u32>,
    stop: Timestamp,
    pub(crate) count: FlowCount,
    /// The count when summaries began.
    before: FlowCount,
}

/// A run.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) scenario: Scenario,
    engines: Engines,
    links: Vec<LinkId>,
    network: Network<Packet>,
    timers: Timers,
    pub(crate) now: Timestamp,
    pub(crate) flows: Vec<FlowState>,
    connections: Vec<Option<Connection>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    next_change: usize,
    /// Link statistics when summaries began.
    links_before: Vec<LinkStats>,
    /// How many packets hosts have sent and received.
    pub(crate) sent: u64,
    received: u64,
    pub(crate) events: u64,
    pub(crate) limits: Limits,
    pub(crate) counted: Counted,
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
        build: impl Fn(&Flow) -> Result<Engine, UnknownName> + Send + 'static,
    ) -> Result<Self, SimError> {
        Self::ready(scenario, Engines::new(build))
    }

    fn ready(scenario: &Scenario, engines: Engines) -> Result<Self, SimError> {
        let streams = Streams::new(scenario.seed);
        let mut network = Network::new(scenario.seed);
        let mut links = Vec::with_capacity(scenario.links.len());
        for link in &scenario.links {
            links.push(network.add_link(&link.name, &link.config)?);
        }
        let mut timers = Timers::default();
        let mut flows = Vec::with_capacity(scenario.flows.len());
        for (index, flow) in scenario.flows.iter().enumerate() {
            let routes = routes(flow, &links, &mut network)?;
            engines.build(flow).map_err(|source| SimError::Algorithm { flow: flow.name.clone(), source })?;
            let mut source = Source::new(&flow.name, flow.traffic, flow.transport, &streams);
            let start = flow.start + source::start_jitter(&flow.name, flow.start_jitter, &streams);
            timers.set(source.first(Timestamp::ZERO + start), Timer::Source { flow: index as u32 });
            let count = FlowCount::new(routes.len());
            let stop = flow.stop.map_or(Timestamp::MAX, |stop| Timestamp::ZERO + stop);
            flows.push(FlowState { routes, source, connection: None, stop, before: count.clone(), count });
        }
        for change in &scenario.changes {
            check_link("a change", change.link.0, &links)?;
            timers.set(Timestamp::ZERO + change.at, Timer::Change);
        }
        timers.set(Timestamp::ZERO + scenario.warm_up, Timer::WarmUp);
        if scenario.sample_every > Duration::ZERO {
            timers.set(Timestamp::ZERO + scenario.sample_every, Timer::Sample);
        }
        Ok(Self {
            scenario: scenario.clone(),
            engines,
            links_before: vec![LinkStats::default(); links.len()],
            links,
            network,
            timers,
            now: Timestamp::ZERO,
            flows,
            connections: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            next_change: 0,
            sent: 0,
            received: 0,
            events: 0,
            limits: Limits::default(),
            counted: Counted::default(),
        })
    }

    /// Runs to the end of the scenario.
    ///
    /// # Errors
    ///
    /// Where that needs more memory than a run may take, or comes to no end.
    pub fn run<R: Recorder>(&mut self, recorder: &mut R) -> Result<(), SimError> {
        self.run_until(Timestamp::ZERO + self.scenario.duration, recorder)
    }

    /// Runs everything that is due by `end`, which is then the time.
    ///
    /// # Errors
    ///
    /// Where that needs more memory than a run may take, or comes to no end.
    pub fn run_until<R: Recorder>(&mut self, end: Timestamp, recorder: &mut R) -> Result<(), SimError> {
        loop {
            let timer = self.timers.next();
            if let Some(delivery) = self.network.poll(timer.min(end)) {
                self.advance(delivery.at);
                self.on_delivery(&delivery, recorder);
            } else if let Some((at, timer)) = self.timers.pop_by(end) {
                self.advance(at);
                self.on_timer(at, timer, recorder);
            } else {
                break;
            }
            self.check_limits()?;
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

    /// What is run.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// How many packets arrived at hosts and how many timers came up.
    pub fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().flatten()
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = (&ScenarioLink, LinkStats)> {
        self.scenario.links.iter().zip(self.links.iter().map(|link| self.network.stats(*link)))
    }

    /// What has come out of it since the end of the warm-up.
    pub fn outcome(&self) -> Outcome {
        let begin = Timestamp::ZERO + self.scenario.warm_up;
        let flows = self.scenario.flows.iter().zip(self.flows.iter().map(|state| (&state.before, &state.count)));
        let links = self.links().zip(&self.links_before);
        Outcome::new(self.now.since(begin), flows, links)
    }

    #[inline]
    fn on_delivery<R: Recorder>(&mut self, delivery: &Delivery<Packet>, recorder: &mut R) {
        self.events += 1;
        self.received += 1;
        let packet = &delivery.packet;
        if packet.is_corrupted() {
            return;
        }
        let Some(Some(connection)) = self.connections.get_mut(packet.connection as usize) else { return };
        if connection.generation() != packet.generation {
            return;
        }
        let flow = &mut self.flows[connection.flow as usize];
        let out = &mut Outside {
            network: &mut self.network,
            timers: &mut self.timers,
            count: &mut flow.count,
            sent: &mut self.sent,
            recorder,
        };
        let now = delivery.at;
        match packet.body() {
            Body::Data { number, chunk } => connection.on_data(packet, number, chunk, now, out),
            Body::Ack(frame) => {
                connection.on_ack(packet.path.into(), &frame, now, out);
                if connection.is_over()
                    && matches!(self.scenario.flows[connection.flow as usize].traffic, Traffic::ShortFlows { .. })
                {
                    self.connections[packet.connection as usize] = None;
                    self.free.push(packet.connection);
                }
            }
            Body::Report { number } => connection.on_report(number, now, out),
            Body::Datagram => {
                flow.count.delivered += delivery.size;
                flow.count.paths[packet.path as usize].delivered += delivery.size;
            }
        }
    }

    fn on_timer<R: Recorder>(&mut self, at: Timestamp, timer: Timer, recorder: &mut R) {
        self.events += 1;
        match timer {
            Timer::Source { flow } => self.on_source(flow, at, recorder),
            Timer::Recovery { connection, generation, path } => {
                self.with(connection, generation, recorder, |connection, out| {
                    connection.on_recovery_timer(path, at, out);
                });
            }
            Timer::Pacing { connection, generation } => {
                self.with(connection, generation, recorder, |connection, out| connection.on_pacing_timer(at, out));
            }
            Timer::Probe { connection, generation } => {
                self.with(connection, generation, recorder, |connection, out| connection.on_probe_timer(at, out));
            }
            Timer::Ack { connection, generation, path } => {
                self.with(connection, generation, recorder, |connection, out| connection.on_ack_timer(path, at, out));
            }
            Timer::Live { connection, generation } => {
                self.with(connection, generation, recorder, |connection, out| connection.on_live_timer(at, out));
            }
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
                for flow in &mut self.flows {
                    flow.before = flow.count.clone();
                }
                self.links_before = self.links().map(|(_, stats)| stats).collect();
            }
            Timer::Sample => {
                self.timers.set(at + self.scenario.sample_every, Timer::Sample);
                recorder.on_sample(at, &View { run: self, now: at });
                debug_assert_eq!(self.check(), Ok(()));
            }
        }
    }

    /// Does something with a connection, if it is still the same.
    fn with<R: Recorder>(
        &mut self,
        slot: u32,
        generation: u32,
        recorder: &mut R,
        deed: impl FnOnce(&mut Connection, &mut Outside<'_, R>),
    ) {
        let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
        if connection.generation() != generation {
            return;
        }
        let count = &mut self.flows[connection.flow as usize].count;
        let (network, timers, sent) = (&mut self.network, &mut self.timers, &mut self.sent);
        deed(connection, &mut Outside { network, timers, count, sent, recorder });
    }

    fn on_source<R: Recorder>(&mut self, index: u32, now: Timestamp, recorder: &mut R) {
        let flow = &mut self.flows[index as usize];
        if now >= flow.stop {
            if let Some(connection) = flow.connection.and_then(|slot| self.connections[slot as usize].as_mut()) {
                connection.stream.stop();
            }
            return;
        }
        let (deed, next) = flow.source.act(now);
        if deed == Deed::Live {
            self.on_live_source(index, now, recorder);
            return;
        }
        // A flow that has nothing more to do comes back once, to stop.
        let next = next.unwrap_or(flow.stop).min(flow.stop);
        if next < Timestamp::MAX {
            self.timers.set(next, Timer::Source { flow: index });
        }
        if deed == Deed::Datagram {
            self.send_datagram(index, now);
            return;
        }
        let slot = match (deed, flow.connection) {
            (Deed::Begin(_), _) | (_, None) => {
                flow.count.begun += 1;
                self.connect(index, now)
            }
            (_, Some(slot)) => slot,
        };
        let generation = self.generations[slot as usize];
        self.with(slot, generation, recorder, |connection, out| {
            match deed {
                Deed::Flood => connection.stream.set_endless(true),
                Deed::Pause => connection.stream.set_endless(false),
                Deed::Supply(bytes) => connection.stream.supply(bytes),
                Deed::SupplyAll(bytes) | Deed::Begin(bytes) => {
                    connection.stream.supply(bytes);
                    connection.stream.end();
                }
                Deed::Frame(bytes) => connection.supply_frame(bytes, now),
                Deed::Datagram | Deed::Live => {}
            }
            connection.send(now, out);
        });
    }

    /// Opens a connection of the flow; its slot.
    fn connect(&mut self, index: u32, now: Timestamp) -> u32 {
        let flow: &Flow = &self.scenario.flows[index as usize];
        let slot = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.generations.push(0);
            self.connections.len() as u32 - 1
        });
        self.generations[slot as usize] += 1;
        let name = Name { flow: index, slot, generation: self.generations[slot as usize] };
        let engine = self.engines.build(flow).expect("the name was looked up when the run was made ready");
        let paces = flow.transport.pacing.unwrap_or_else(|| flow.engine.is_rate_based());
        let engine = if paces { engine } else { engine.unpaced() };
        let state = &mut self.flows[index as usize];
        let mut connection = Connection::new(name, engine, (flow.transport, flow.traffic), &state.routes, now);
        for (path, terms) in flow.terms.iter().enumerate() {
            connection.engine.set_terms(PathId::new(path as u32), *terms);
        }
        self.connections[slot as usize] = Some(connection);
        if !matches!(flow.traffic, Traffic::ShortFlows { .. }) {
            state.connection = Some(slot);
        }
        slot
    }

    fn send_datagram(&mut self, index: u32, now: Timestamp) {
        let size = self.scenario.flows[index as usize].transport.packet;
        let slot = match self.flows[index as usize].connection {
            Some(slot) => slot,
            None => self.connect(index, now),
        };
        let state = &mut self.flows[index as usize];
        let path = (state.count.paths.iter().map(|path| path.sent).sum::<u64>() % state.routes.len() as u64) as u16;
        state.count.paths[path as usize].sent += 1;
        self.sent += 1;
        let generation = self.generations[slot as usize];
        let packet = Packet::new(slot, generation, path, Body::Datagram);
        let _ = self.network.send(now, state.routes[path as usize].forward, packet, size);
    }

    /// Checks what must always hold: packets are neither made nor lost but where a link says so,
    /// and data is delivered once and in order. In builds with debug assertions it is called at
    /// every sample.
    ///
    /// # Errors
    ///
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<(), Violation> {
        let violation = |what: String| Violation { at: self.now, what };
        let mut inside = 0;
        let mut dropped = 0;
        let mut made = self.sent;
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
        let accounted = self.received + inside + dropped;
        if made != accounted {
            return Err(violation(format!("hosts and links made {made} packets, {accounted} are accounted for")));
        }
        for connection in self.connections() {
            let name = &self.scenario.flows[connection.flow as usize].name;
            connection.check().map_err(|what| violation(format!("flow {name:?}: {what}")))?;
        }
        for (flow, state) in self.scenario.flows.iter().zip(&self.flows) {
            let arrived: Bytes = state.count.paths.iter().map(|path| path.delivered).sum();
            if state.count.delivered > arrived {
                let what =
                    format!("flow {:?} delivered {}, but only {arrived} arrived", flow.name, state.count.delivered);
                return Err(violation(what));
            }
        }
        Ok(())
    }
}

fn check_link(what: &str, link: u32, links: &[LinkId]) -> Result<(), SimError> {
    match links.get(link as usize) {
        Some(_) => Ok(()),
        None => Err(SimError::UnknownLink { what: what.to_owned(), link, links: links.len() }),
    }
}

fn routes(flow: &Flow, links: &[LinkId], network: &mut Network<Packet>) -> Result<Vec<PathRoutes>, SimError> {
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
