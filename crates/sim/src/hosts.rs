//! The hosts: applications, connections and their timers, for all flows of a run or some of them.

mod live;

use std::ops::Range;
use std::sync::Arc;

use fairpath_core::{PathId, Timestamp};
use fairpath_net::{Delivery, PathRoutes, Streams};
use fairpath_scenario::{Flow, Scenario, Traffic};

use crate::connection::{Connection, Name, Outside};
use crate::count::FlowCount;
use crate::egress::Egress;
use crate::engines::Engines;
use crate::packet::{Body, Packet};
use crate::recorder::Recorder;
use crate::source::{self, Deed, Source};
use crate::timers::{Timer, Timers};

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
    pub(crate) before: FlowCount,
}

/// The hosts of flows that stand next to each other in a scenario.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) scenario: Arc<Scenario>,
    engines: Engines,
    pub(crate) timers: Timers,
    /// The position of the first of the flows.
    first: u32,
    pub(crate) flows: Vec<FlowState>,
    connections: Vec<Option<Connection>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    /// How many packets they have sent and received.
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// How many packets arrived and how many timers came up.
    pub(crate) events: u64,
}

impl Hosts {
    /// The hosts of the flows in `range`, whose paths take `routes`.
    pub(crate) fn new(
        scenario: &Arc<Scenario>,
        engines: &Engines,
        range: Range<usize>,
        routes: impl IntoIterator<Item = Vec<PathRoutes>>,
    ) -> Self {
        let streams = Streams::new(scenario.seed);
        let mut timers = Timers::default();
        let mut flows = Vec::with_capacity(range.len());
        for (index, routes) in range.clone().zip(routes) {
            let flow = &scenario.flows[index];
            let mut source = Source::new(&flow.name, flow.traffic, flow.transport, &streams);
            let start = flow.start + source::start_jitter(&flow.name, flow.start_jitter, &streams);
            timers.set(source.first(Timestamp::ZERO + start), Timer::Source { flow: index as u32 });
            let count = FlowCount::new(routes.len());
            let stop = flow.stop.map_or(Timestamp::MAX, |stop| Timestamp::ZERO + stop);
            flows.push(FlowState { routes, source, connection: None, stop, before: count.clone(), count });
        }
        Self {
            scenario: Arc::clone(scenario),
            engines: engines.clone(),
            timers,
            first: range.start as u32,
            flows,
            connections: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            sent: 0,
            received: 0,
            events: 0,
        }
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.connections.len() - self.free.len()
    }

    pub(crate) fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.iter().flatten()
    }

    /// The flows as the scenario has them, with what each has done.
    pub(crate) fn flows(&self) -> impl Iterator<Item = (&Flow, &FlowState)> {
        self.scenario.flows[self.first as usize..].iter().zip(&self.flows)
    }

    /// Summaries begin.
    pub(crate) fn end_warm_up(&mut self) {
        for flow in &mut self.flows {
            flow.before = flow.count.clone();
        }
    }

    #[inline]
    fn flow(&mut self, index: u32) -> &mut FlowState {
        &mut self.flows[(index - self.first) as usize]
    }

    #[inline]
    pub(crate) fn on_delivery<N: Egress>(
        &mut self,
        delivery: &Delivery<Packet>,
        network: &mut N,
        recorder: &mut dyn Recorder,
    ) {
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
        let flow = &mut self.flows[(connection.flow - self.first) as usize];
        let out =
            &mut Outside { network, timers: &mut self.timers, count: &mut flow.count, sent: &mut self.sent, recorder };
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

    /// A timer of a host came up; those of the run itself are not for hosts.
    pub(crate) fn on_timer<N: Egress>(
        &mut self,
        at: Timestamp,
        timer: Timer,
        network: &mut N,
        recorder: &mut dyn Recorder,
    ) {
        self.events += 1;
        match timer {
            Timer::Source { flow } => self.on_source(flow, at, network, recorder),
            Timer::Recovery { connection, generation, path } => {
                self.with(connection, generation, network, recorder, |connection, out| {
                    connection.on_recovery_timer(path, at, out);
                });
            }
            Timer::Pacing { connection, generation } => {
                self.with(connection, generation, network, recorder, |connection, out| {
                    connection.on_pacing_timer(at, out);
                });
            }
            Timer::Probe { connection, generation } => {
                self.with(connection, generation, network, recorder, |connection, out| {
                    connection.on_probe_timer(at, out);
                });
            }
            Timer::Ack { connection, generation, path } => {
                self.with(connection, generation, network, recorder, |connection, out| {
                    connection.on_ack_timer(path, at, out);
                });
            }
            Timer::Live { connection, generation } => {
                self.with(connection, generation, network, recorder, |connection, out| {
                    connection.on_live_timer(at, out);
                });
            }
            Timer::Change | Timer::WarmUp | Timer::Sample => {}
        }
    }

    /// Does something with a connection, if it is still the same.
    fn with<N: Egress>(
        &mut self,
        slot: u32,
        generation: u32,
        network: &mut N,
        recorder: &mut dyn Recorder,
        deed: impl FnOnce(&mut Connection, &mut Outside<'_, N>),
    ) {
        let Some(Some(connection)) = self.connections.get_mut(slot as usize) else { return };
        if connection.generation() != generation {
            return;
        }
        let count = &mut self.flows[(connection.flow - self.first) as usize].count;
        let (timers, sent) = (&mut self.timers, &mut self.sent);
        deed(connection, &mut Outside { network, timers, count, sent, recorder });
    }

    fn on_source<N: Egress>(&mut self, index: u32, now: Timestamp, network: &mut N, recorder: &mut dyn Recorder) {
        let flow = &mut self.flows[(index - self.first) as usize];
        if now >= flow.stop {
            if let Some(connection) = flow.connection.and_then(|slot| self.connections[slot as usize].as_mut()) {
                connection.stream.stop();
            }
            return;
        }
        let (deed, next) = flow.source.act(now);
        if deed == Deed::Live {
            self.on_live_source(index, now, network, recorder);
            return;
        }
        // A flow that has nothing more to do comes back once, to stop.
        let next = next.unwrap_or(flow.stop).min(flow.stop);
        if next < Timestamp::MAX {
            self.timers.set(next, Timer::Source { flow: index });
        }
        if deed == Deed::Datagram {
            self.send_datagram(index, now, network);
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
        self.with(slot, generation, network, recorder, |connection, out| {
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
        let generation = self.generations[slot as usize];
        let state = &mut self.flows[(index - self.first) as usize];
        let name = Name { flow: index, slot, generation, number: state.count.begun };
        let engine = self.engines.build(flow).expect("the name was looked up when the run was made ready");
        let paces = flow.transport.pacing.unwrap_or_else(|| flow.engine.is_rate_based());
        let engine = if paces { engine } else { engine.unpaced() };
        // Pacing that the scenario asks for models a host in real time, whose pacer allows bursts.
        let engine = if flow.transport.pacing == Some(true) { engine.with_bursts() } else { engine };
        let mut connection =
            Connection::new(name, engine, (flow.transport, flow.traffic, flow.remedies), &state.routes, now);
        for (path, terms) in flow.terms.iter().enumerate() {
            connection.engine.set_terms(PathId::new(path as u32), *terms);
        }
        self.connections[slot as usize] = Some(connection);
        if !matches!(flow.traffic, Traffic::ShortFlows { .. }) {
            state.connection = Some(slot);
        }
        slot
    }

    fn send_datagram<N: Egress>(&mut self, index: u32, now: Timestamp, network: &mut N) {
        let size = self.scenario.flows[index as usize].transport.packet;
        let slot = match self.flow(index).connection {
            Some(slot) => slot,
            None => self.connect(index, now),
        };
        let generation = self.generations[slot as usize];
        self.sent += 1;
        let state = self.flow(index);
        let path = (state.count.paths.iter().map(|path| path.sent).sum::<u64>() % state.routes.len() as u64) as u16;
        state.count.paths[path as usize].sent += 1;
        let packet = Packet::new(slot, generation, path, Body::Datagram);
        network.send(now, state.routes[path as usize].forward, packet, size);
    }
}
