//! A cell of the grid: a network, who is already there, and who comes in our place.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{Coupling, EngineConfig, Losses};
use fairpath_net::{CoDelConfig, LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Scenario, Traffic};
use fairpath_sim::{Outcome, Recorder, SimError};
use serde::{Deserialize, Serialize};

use crate::{Estimate, Net, bdp_packets, ms};

/// All flows start within so long, those that come late after [`LATE`].
const START_JITTER: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(10);

/// The jitter before each bottleneck is the transmission time of this many bytes. Without it packets of
/// one flow arrive in step with departures from a full queue, and those of others find it full
/// [Floyd1992].
const PACKET: u64 = 1_500;

/// The flow under test, over all paths or one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contender {
    pub(super) title: &'static str,
    /// The algorithm, for its colour.
    pub(super) congestion: &'static str,
    /// Whether one flow of BBRv3 is what it is compared with, and not one of CUBIC.
    pub(super) is_rate_based: bool,
    pub(super) couples: bool,
}

const fn contender(title: &'static str, congestion: &'static str, is_rate_based: bool, couples: bool) -> Contender {
    Contender { title, congestion, is_rate_based, couples }
}

/// The references of the comparison: flows over one path.
pub(super) const REFERENCES: [Contender; 2] =
    [contender("one CUBIC", "cubic", false, false), contender("one BBRv3", "bbr3", true, false)];

/// Those that are compared.
pub(super) const CONTENDERS: [Contender; 8] = [
    contender("LIA", "lia", false, true),
    contender("OLIA", "olia", false, true),
    contender("BALIA", "balia", false, true),
    contender("coupled CUBIC", "coupled_cubic", false, true),
    contender("uncoupled CUBIC", "cubic", false, false),
    contender("coupled BBR", "coupled_bbr", true, true),
    contender("coupled BBRv3", "coupled_bbr3", true, true),
    contender("uncoupled BBRv3", "bbr3", true, false),
];

/// The option for queues that nobody else fills.
pub(super) const HYBRID: Contender = contender("hybrid CUBIC", "hybrid_cubic", false, true);

/// The rest of the catalogue.
pub(super) const OTHERS: [Contender; 8] = [
    HYBRID,
    contender("EWTCP", "ewtcp", false, true),
    contender("Coupled", "coupled", false, true),
    contender("ε", "epsilon", false, true),
    contender("wVegas", "wvegas", false, true),
    contender("DAIMD", "daimd", false, true),
    contender("uncoupled Reno", "reno", false, false),
    contender("uncoupled BBRv1", "bbr", true, false),
];

/// Where among [`CONTENDERS`] the one is whose goals are judged: coupled CUBIC, what people get who choose nothing.
pub(super) const JUDGED_AT: usize = 3;
pub(super) const JUDGED: &str = CONTENDERS[JUDGED_AT].title;

impl Contender {
    /// As people get it, with this coupling where it couples at all.
    pub(super) fn engine(&self, coupling: Coupling) -> EngineConfig {
        let coupling = if self.couples { coupling } else { Coupling::Never };
        EngineConfig { congestion: self.congestion.into(), coupling, ..EngineConfig::live() }
    }

    /// As one of the [`REFERENCES`]: flows of today, which take every loss for congestion.
    pub(super) fn as_reference(&self) -> EngineConfig {
        let mut engine = self.engine(Coupling::Never);
        engine.parameters.aimd.losses = Losses::Congestion;
        engine
    }
}

/// How a bottleneck queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Queue {
    /// Drop-tail, so long at the rate of the link.
    Millis(u64),
    /// Drop-tail, in parts of what the link carries in a round trip.
    Bdp(f64),
    /// CoDel [RFC8289].
    CoDel,
}

impl Queue {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Millis(millis) => format!("{millis} ms"),
            Self::Bdp(part) => format!("{part} BDP"),
            Self::CoDel => "CoDel".to_owned(),
        }
    }

    fn config(self, rate: Bitrate, rtt: Duration) -> QueueConfig {
        match self {
            Self::Millis(millis) => QueueConfig::sojourn(ms(millis)),
            // Two packets are the least that a queue holds.
            Self::Bdp(part) => QueueConfig::packets(((bdp_packets(rate, rtt) as f64 * part).round() as usize).max(2)),
            Self::CoDel => CoDelConfig::default().into(),
        }
    }
}

/// A cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    /// Whether all paths share one bottleneck, or each has one of its own, all alike.
    pub(super) is_shared: bool,
    pub(super) paths: usize,
    pub(super) mbps: u64,
    /// The round-trip time of the first path. That of the last one is `rtt_last` times as long; those
    /// between lie between.
    pub(super) rtt_ms: u64,
    pub(super) rtt_last: u64,
    pub(super) queue: Queue,
    /// Packets lost at random on each bottleneck.
    pub(super) loss: f64,
    pub(super) competitor: &'static str,
    /// How many of them each bottleneck has.
    pub(super) competitors: usize,
    /// Whether we come when the others are under way.
    pub(super) is_late: bool,
}

impl Cell {
    /// Two paths of 20 Mbit/s and 40 ms, with one CUBIC on each bottleneck.
    pub(super) fn beside_cubic(is_shared: bool, queue_ms: u64) -> Self {
        Self {
            is_shared,
            paths: 2,
            mbps: 20,
            rtt_ms: 40,
            rtt_last: 1,
            queue: Queue::Millis(queue_ms),
            loss: 0.0,
            competitor: "cubic",
            competitors: 1,
            is_late: false,
        }
    }

    pub(super) fn name(&self) -> String {
        let layout = if self.is_shared { "shared" } else { "separate" };
        let rtt = if self.rtt_last == 1 { String::new() } else { format!("–{}", self.rtt_ms * self.rtt_last) };
        let loss = if self.loss > 0.0 { format!(", {} % lost", self.loss * 100.0) } else { String::new() };
        let late = if self.is_late { ", late" } else { "" };
        let (paths, mbps, rtt_ms, queue) = (self.paths, self.mbps, self.rtt_ms, self.queue.name());
        let beside = format!("{} {}", self.competitors, self.competitor);
        format!("{layout}, {paths} paths, {mbps} Mbit/s, {rtt_ms}{rtt} ms, {queue}, beside {beside}{loss}{late}")
    }

    /// Long enough for CUBIC to go through several epochs, and to be run.
    pub(super) fn times(&self, is_quick: bool) -> (Duration, Duration) {
        let seconds = match self.mbps {
            ..=20 => (30, 180),
            21..=100 => (20, 90),
            _ => (5, 20),
        };
        let (warm_up, end) = if is_quick { (seconds.0 / 3, seconds.1 / 4) } else { seconds };
        (Duration::from_secs(warm_up), Duration::from_secs(end))
    }

    /// The network, and the paths of ours and of the competitors: they meet at the bottlenecks.
    fn net(&self, seed: u64, warm_up: Duration, end: Duration) -> (Net, [Vec<PathRoute>; 2]) {
        let mut net = Net::new(&self.name(), seed, warm_up, end);
        let rate = Bitrate::from_mbps(self.mbps);
        let queue = self.queue.config(rate, ms(self.rtt_ms));
        let loss = if self.loss > 0.0 { LossConfig::Random { probability: self.loss } } else { LossConfig::None };
        let narrow = LinkConfig::new(rate).queue(queue).loss(loss);
        let bottlenecks = if self.is_shared { 1 } else { self.paths };
        let bottlenecks: Vec<_> =
            (0..bottlenecks).map(|at| net.link(&format!("bottleneck {at}"), narrow.clone())).collect();
        let mut path = |who: &str, at: usize| {
            let last = (self.paths - 1).max(1) as u64;
            let rtt_us = 1000 * self.rtt_ms * (last + at as u64 * (self.rtt_last - 1)) / last;
            let half = LinkConfig::pure_delay(Duration::from_micros(rtt_us / 2));
            let access = half.clone().jitter(ByteCount::new(PACKET) / rate);
            let access = net.link(&format!("{who} {at}"), access);
            let back = net.link(&format!("{who} {at} back"), half);
            PathRoute { forward: vec![access, bottlenecks[at % bottlenecks.len()]], backward: vec![back] }
        };
        let paths = ["ours", "theirs"].map(|who| (0..self.paths).map(|at| path(who, at)).collect());
        (net, paths)
    }

    /// When we come, at the earliest.
    pub(super) fn begin(&self) -> Duration {
        if self.is_late { LATE } else { Duration::ZERO }
    }

    /// Runs it with a flow over these paths in our place, and measures between the two times.
    pub(super) fn run(
        &self,
        engine: EngineConfig,
        over: &[usize],
        seed: u64,
        (from, to): (Duration, Duration),
        traffic: Traffic,
    ) -> Result<Outcome, SimError> {
        self.watch(engine, over, seed, (from, to), traffic, &mut ())
    }

    /// The same, watched.
    pub(super) fn watch(
        &self,
        engine: EngineConfig,
        over: &[usize],
        seed: u64,
        times: (Duration, Duration),
        traffic: Traffic,
        recorder: &mut dyn Recorder,
    ) -> Result<Outcome, SimError> {
        fairpath_sim::run(&self.scenario(engine, over, seed, times, traffic), recorder)
    }

    /// The scenario, in which the first flow is ours.
    pub(super) fn scenario(
        &self,
        engine: EngineConfig,
        over: &[usize],
        seed: u64,
        (from, to): (Duration, Duration),
        traffic: Traffic,
    ) -> Scenario {
        let (mut net, [ours, theirs]) = self.net(seed, from, to);
        net.scenario.sample_every = ms(100);
        let ours: Vec<PathRoute> = over.iter().map(|at| ours[*at].clone()).collect();
        let flow = net.live("ours", engine, &ours);
        (flow.start, flow.traffic) = (self.begin(), traffic);
        let bottlenecks = if self.is_shared { 1 } else { self.paths };
        for path in theirs.iter().take(bottlenecks) {
            for _ in 0..self.competitors {
                net.flow("theirs", crate::engine(self.competitor), core::slice::from_ref(path));
            }
        }
        for flow in &mut net.scenario.flows {
            flow.start_jitter = START_JITTER;
        }
        net.scenario
    }

    fn bulk(&self, engine: EngineConfig, over: &[usize], seed: u64, is_quick: bool) -> Result<Got, SimError> {
        Ok(Got::of(&self.run(engine, over, seed, self.times(is_quick), Traffic::Bulk)?))
    }

    /// The goodput of a contender over all paths, in Mbit/s, and the mean wait in the first bottleneck, in ms.
    pub(super) fn contend(
        &self,
        contender: &Contender,
        coupling: Coupling,
        seed: u64,
        is_quick: bool,
    ) -> Result<Got, SimError> {
        let all: Vec<usize> = (0..self.paths).collect();
        self.bulk(contender.engine(coupling), &all, seed, is_quick)
    }

    /// A contender's result over one of its paths, or the sum over separate ones, each run by itself.
    pub(super) fn own_path(&self, contender: &Contender, seed: u64, is_quick: bool) -> Result<Got, SimError> {
        self.each_alone(contender.engine(Coupling::Never), seed, is_quick)
    }

    /// The reference's result: over a shared bottleneck that of one flow, over separate ones the sum.
    pub(super) fn reference(&self, reference: &Contender, seed: u64, is_quick: bool) -> Result<Got, SimError> {
        self.each_alone(reference.as_reference(), seed, is_quick)
    }

    fn each_alone(&self, engine: EngineConfig, seed: u64, is_quick: bool) -> Result<Got, SimError> {
        let one = |at| self.bulk(engine.clone(), &[at], seed, is_quick);
        if self.is_shared {
            return one(0);
        }
        let each = (0..self.paths).map(one).collect::<Result<Vec<Got>, SimError>>()?;
        let sum = |of: fn(&Got) -> f64| each.iter().map(of).sum::<f64>();
        let best = each.iter().map(|got| got.mbps).fold(0.0, f64::max);
        let paths = self.paths as f64;
        Ok(Got {
            mbps: sum(|got| got.mbps),
            theirs: sum(|got| got.theirs) / paths,
            wait_ms: sum(|got| got.wait_ms) / paths,
            best,
        })
    }
}

/// The mean of runs over the mean of a reference's. The ratio of means is taken since runs with one
/// seed share the network, and little of their rates. Suppose that a flow of CUBIC has half of its
/// share with one seed and twice that with another. Then the mean of ratios is well above the ratio of
/// means.
pub(super) fn in_parts_of(ours: impl IntoIterator<Item = f64>, reference: impl IntoIterator<Item = f64>) -> Estimate {
    match (Estimate::of(ours), Estimate::of(reference)) {
        (Some(ours), Some(reference)) => ours / reference,
        _ => Estimate::unknown(),
    }
}

/// The result of a flow in a cell.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Got {
    /// In our place.
    pub(super) mbps: f64,
    /// The mean of the competitors.
    pub(super) theirs: f64,
    /// The mean wait at the first bottleneck.
    pub(super) wait_ms: f64,
    /// The rate of the best single flow, where `mbps` sums several.
    pub(super) best: f64,
}

impl Got {
    fn of(outcome: &Outcome) -> Self {
        let mbps = outcome.flows[0].goodput.as_mbps_f64();
        let theirs = outcome.mean_goodput("theirs").as_mbps_f64();
        let wait = outcome.link("bottleneck 0").map_or(Duration::ZERO, |link| link.mean_wait);
        Self { mbps, theirs, wait_ms: wait.as_secs_f64() * 1e3, best: mbps }
    }
}
