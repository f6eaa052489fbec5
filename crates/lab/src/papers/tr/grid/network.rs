//! The network of a run of the grid, and which of its paths share a bottleneck when.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_engine::EngineConfig;
use fairpath_net::{CoDelConfig, LinkConfig, QueueConfig, QueueLimit, RedConfig};
use fairpath_sbd::Groups;
use fairpath_scenario::{Change, ChangeKind, LinkIndex, PathRoute, Scenario, Traffic};

use super::factors::{Discipline, Draw, Factors, Unresponsive};
use crate::{Net, engine, ms};

/// A link that is not the bottleneck.
pub(super) const WIDE: Bitrate = Bitrate::from_mbps(1000);

/// The size of a transfer under light load.
const SHORT: ByteCount = ByteCount::new(100_000);

/// When the session begins: after the cross traffic.
pub(super) const BEGIN: Duration = Duration::from_secs(5);

/// How often it is looked at what an engine has decided.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A run that is ready, and what is true of it.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Flow 0 is the session.
    pub(super) scenario: Scenario,
    /// The number of the common link that each path crosses, by path.
    pub(super) common: &'static [usize],
    /// From when on the common links are the bottlenecks, or those of each path are.
    pub(super) phases: Vec<(Duration, bool)>,
}

impl Case {
    /// The network of a run with these factors.
    pub(super) fn new(factors: &Factors, duration: Duration) -> Self {
        let mut draw = factors.draw("network");
        let mut net = Net::new("grid", factors.draw("seed").next(), BEGIN, duration);
        let common = factors.layout.common;
        let phases = phases(factors, duration, &mut draw);
        let links = Links::add(&mut net, factors, &mut draw);
        add_changes(&mut net.scenario, &phases, &links);
        add_session(&mut net, factors, &links, &mut draw);
        add_cross_traffic(&mut net, factors, &links, &mut draw);
        Self { scenario: net.scenario, common, phases }
    }

    /// The same with a session whose engine decides by itself which of its paths are coupled, as that of a
    /// connection over real networks does: what it decides changes what it sends.
    pub(super) fn live(mut self) -> Self {
        let session = &mut self.scenario.flows[0];
        let scheduler = session.engine.scheduler.clone();
        session.as_live(EngineConfig { scheduler, ..EngineConfig::live() });
        self.scenario.sample_every = LOOK;
        self
    }

    /// Whether two paths have the bottleneck in common: the common link that both cross, while it is
    /// the narrowest of both.
    pub(super) fn share(&self, low: usize, high: usize, shared_now: bool) -> bool {
        shared_now && self.common[low] == self.common[high]
    }

    /// The truth, for the oracle.
    pub(super) fn truth(&self) -> Vec<(Timestamp, Groups)> {
        let groups = |shared: bool| {
            let paths = (0..).map(fairpath_core::PathId::new).zip(self.common).enumerate();
            let group = |(at, (path, common)): (usize, (_, &usize))| (if shared { *common } else { at }, path);
            let of: Vec<(usize, fairpath_core::PathId)> = paths.map(group).collect();
            let members = |number: usize| of.iter().filter(move |(group, _)| *group == number).map(|(_, path)| *path);
            Groups::from_members((0..of.len()).map(members))
        };
        self.phases.iter().map(|(from, shared)| (Timestamp::ZERO + *from, groups(*shared))).collect()
    }
}

/// When which links are the bottlenecks.
fn phases(factors: &Factors, duration: Duration, draw: &mut Draw) -> Vec<(Duration, bool)> {
    let shared = factors.layout.shared;
    let mut at = |part: f64| duration.mul_f64(part + 0.1 * draw.unit());
    let mut phases = vec![(Duration::ZERO, shared)];
    if factors.changes {
        phases.extend([(at(0.3), !shared), (at(0.6), shared)]);
    }
    phases
}

/// The links that are bottlenecks, or may become so.
struct Links {
    /// The common ones, by number.
    common: Vec<(LinkIndex, Bitrate)>,
    /// The paths' own.
    own: Vec<(LinkIndex, Bitrate)>,
    /// The common link that each path crosses.
    of: &'static [usize],
}

impl Links {
    fn add(net: &mut Net, factors: &Factors, draw: &mut Draw) -> Self {
        let alike = draw.clone();
        let mut link = |name: String, narrow_now: bool| {
            let draw = if factors.alike { &mut alike.clone() } else { &mut *draw };
            let rate = Bitrate::from_bps(draw.log_between(10e6, 40e6) as u64);
            let room = Duration::from_secs_f64(draw.log_between(0.04, 0.16));
            let now = if narrow_now { rate } else { WIDE };
            (net.link(&name, LinkConfig::new(now).queue(queue(factors.discipline, room))), rate)
        };
        let (of, shared) = (factors.layout.common, factors.layout.shared);
        let numbers = of.iter().max().map_or(0, |last| last + 1);
        let common = (0..numbers).map(|number| link(format!("common {number}"), shared)).collect();
        let own = (0..of.len()).map(|path| link(format!("own {path}"), !shared)).collect();
        Self { common, own, of }
    }

    /// Over the common link and the own link of a path.
    fn chain(&self, path: usize) -> [LinkIndex; 2] {
        [self.common[self.of[path]].0, self.own[path].0]
    }

    /// How many paths cross the common link of a path.
    fn members(&self, path: usize) -> usize {
        self.of.iter().filter(|number| **number == self.of[path]).count()
    }

    /// The fair share of a path at its bottlenecks, in bits per second.
    fn part(&self, path: usize, factors: &Factors) -> f64 {
        let own = self.own[path].1.as_bps() as f64;
        let common = self.common[self.of[path]].1.as_bps() as f64 / self.members(path) as f64;
        match (factors.changes, factors.layout.shared) {
            (true, _) => own.min(common),
            (false, true) => common,
            (false, false) => own,
        }
    }
}

pub(super) fn queue(discipline: Discipline, room: Duration) -> QueueConfig {
    let part = |part: f64| QueueLimit::Sojourn(room.mul_f64(part));
    match discipline {
        Discipline::DropTail => QueueConfig::sojourn(room),
        Discipline::Red => RedConfig::gentle(part(0.25), part(0.75), 0.1).limit(part(2.0)).into(),
        Discipline::CoDel => CoDelConfig { limit: part(2.0), ..CoDelConfig::default() }.into(),
    }
}

/// At each change of the routes the links that were narrow become wide, and the other way round.
fn add_changes(scenario: &mut Scenario, phases: &[(Duration, bool)], links: &Links) {
    for (at, shared) in &phases[1..] {
        let sides = [(&links.common, *shared), (&links.own, !*shared)];
        for ((link, narrow), is_narrow) in
            sides.iter().flat_map(|(side, is_narrow)| side.iter().map(move |link| (link, *is_narrow)))
        {
            let rate = if is_narrow { *narrow } else { WIDE };
            scenario.changes.push(Change { at: *at, link: *link, kind: ChangeKind::Rate(rate.into()) });
        }
    }
}

/// A way from a sender over a path's links and back, of a base round-trip time that is split at
/// random between before the bottleneck, behind it, and the way back.
pub(super) fn route(
    net: &mut Net,
    name: &str,
    chain: &[LinkIndex],
    rtt: Duration,
    jitter: Duration,
    draw: &mut Draw,
) -> PathRoute {
    let before = rtt.mul_f64(0.5 * draw.unit());
    let behind = rtt.mul_f64(0.4 * draw.unit());
    let access = net.link(&format!("{name} access"), LinkConfig::pure_delay(before).jitter(jitter));
    let exit = net.link(&format!("{name} exit"), LinkConfig::pure_delay(behind));
    let back = net.link(&format!("{name} back"), LinkConfig::pure_delay(rtt.saturating_sub(before + behind)));
    let forward = [&[access], chain, &[exit]].concat();
    PathRoute { forward, backward: vec![back] }
}

/// The session that is watched: a path over each of the layout's, each on its own.
fn add_session(net: &mut Net, factors: &Factors, links: &Links, draw: &mut Draw) {
    let paths = links.of.len();
    let shortest = draw.log_between(20.0, 50.0);
    let first = (draw.unit() * paths as f64) as usize;
    let routes: Vec<PathRoute> = (0..paths)
        .map(|path| {
            let place = ((path + first) % paths) as f64 / (paths - 1) as f64;
            let rtt = Duration::from_secs_f64(shortest * (1.0 + f64::from(factors.rtt_ratio - 1) * place) / 1e3);
            route(net, &format!("path {path}"), &links.chain(path), rtt, ms(factors.jitter_ms), draw)
        })
        .collect();
    let light = factors.load == 0;
    // The best path first would leave the others of a session that is not greedy without a packet.
    let scheduler = if light { "round_robin" } else { "min_rtt" };
    let session = net.flow("session", EngineConfig { scheduler: scheduler.into(), ..engine("uncoupled lia") }, &routes);
    session.start = BEGIN;
    if light {
        let least = (0..paths).map(|path| links.part(path, factors)).fold(f64::INFINITY, f64::min);
        session.traffic = Traffic::Constant { rate: Bitrate::from_bps((0.2 * least) as u64 * paths as u64) };
    }
}

/// Adds the cross traffic of the bottlenecks. If several paths share one at any time, its flows are
/// spread over the paths.
fn add_cross_traffic(net: &mut Net, factors: &Factors, links: &Links, draw: &mut Draw) {
    for path in 0..links.of.len() {
        let ever_shared = factors.layout.shared || factors.changes;
        let flows = if ever_shared { factors.load.div_ceil(links.members(path)) } else { factors.load };
        let (chain, part) = (links.chain(path), links.part(path, factors));
        for flow in 0..flows.max(1) {
            let rtt = Duration::from_secs_f64(draw.log_between(0.02, 0.2));
            let route = route(net, &format!("cross {path} {flow}"), &chain, rtt, Duration::ZERO, draw);
            let cross = net.flow("cross", engine(factors.cross), &[route]);
            cross.start_jitter = BEGIN;
            if factors.load == 0 {
                let mean_interval = Duration::from_secs_f64(SHORT.as_f64() * 8.0 / (0.3 * part));
                cross.traffic = Traffic::ShortFlows { size: SHORT, mean_interval };
            }
        }
        add_unresponsive(net, factors.unresponsive, path, chain, part, draw);
    }
}

/// Traffic that does not react, in parts of what is a path's by right.
fn add_unresponsive(
    net: &mut Net,
    kind: Unresponsive,
    path: usize,
    chain: [LinkIndex; 2],
    right: f64,
    draw: &mut Draw,
) {
    let (part, bursts) = match kind {
        Unresponsive::None => return,
        Unresponsive::Constant => (0.2, vec![(Duration::ZERO, None)]),
        Unresponsive::OnOff => (0.4, bursts(net.scenario.duration, draw)),
    };
    let route = route(net, &format!("unresponsive {path}"), &chain, ms(20), Duration::ZERO, draw);
    for (start, stop) in bursts {
        let flow = net.flow("unresponsive", engine("reno"), core::slice::from_ref(&route));
        flow.traffic = Traffic::Unresponsive { rate: Bitrate::from_bps((part * right) as u64) };
        (flow.start, flow.stop) = (start, stop);
    }
}

/// Times on and off, 3 s each on average.
fn bursts(duration: Duration, draw: &mut Draw) -> Vec<(Duration, Option<Duration>)> {
    let mut bursts = Vec::new();
    let mut at = 0.0;
    while at < duration.as_secs_f64() {
        let [on, off] = [draw.exponential(3.0), draw.exponential(3.0)];
        bursts.push((Duration::from_secs_f64(at), Some(Duration::from_secs_f64(at + on))));
        at += on + off;
    }
    bursts
}
