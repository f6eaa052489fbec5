//! Multipath sessions of two paths beside TCP flows, coupled when a detector says so: what Tables 3
//! to 5 and figures 8 to 13 have in common.
//!
//! All kinds of session run side by side in one network, so that they meet the same queues.

use core::time::Duration;

use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_engine::{Alone, Coupling, EngineConfig};
use fairpath_net::QueueConfig;
use fairpath_sbd::{BuildUp, Detector, Trendline, TrendlineConfig};
use fairpath_sim::{FlowIndex, Outcome, Recorder, SimError, View, jain_index};
use serde::{Deserialize, Serialize};

use super::network::{Network, Wire};
use crate::{engine, ms};

/// How often rates and groups are looked at.
const SAMPLE: Duration = Duration::from_millis(100);
/// How long a yes holds.
const HOLD: Duration = Duration::from_secs(100);

/// A kind of session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) title: &'static str,
    pub(super) colour: &'static str,
    /// The detector that couples it; `None`: nothing is detected.
    detector: Option<&'static str>,
    /// How long a yes holds; `None`: as long as the detector says.
    hold: Option<Duration>,
    /// The coupling without a detector.
    coupling: Coupling,
}

pub(super) const TR: usize = 0;
pub(super) const SSC: usize = 1;
pub(super) const OURS: usize = 2;
pub(super) const COUPLED: usize = 3;
pub(super) const UNCOUPLED: usize = 4;
pub(super) const TR_WITHOUT_HOLD: usize = 5;

/// How many sessions there are.
const COUNT: usize = 6;

/// The sessions, numbered as flows of the scenario.
pub(super) const SESSIONS: [Session; COUNT] = [
    Session::detecting("LIA-TR", "lia", "trendline_srtt", None),
    Session::detecting("LIA-SSC", "daimd", "ssc_rfc8382", Some(HOLD)),
    Session::detecting("LIA-concordance", "balia", "concordance", None),
    Session { coupling: Coupling::Always, ..Session::blind("LIA", "reno") },
    Session { coupling: Coupling::Never, ..Session::blind("uncoupled", "uncoupled") },
    Session::detecting("LIA-TR without hold", "wvegas", "trendline_srtt", Some(Duration::ZERO)),
];

/// The congestion control of a session's paths while they are not coupled. The paper does not say which
/// it used.
pub(super) const ALONE: [(&str, Alone); 2] = [("Reno", Alone::Reno), ("CUBIC", Alone::Cubic)];

impl Session {
    const fn blind(title: &'static str, colour: &'static str) -> Self {
        Self { title, colour, detector: None, hold: None, coupling: Coupling::Always }
    }

    const fn detecting(
        title: &'static str,
        colour: &'static str,
        detector: &'static str,
        hold: Option<Duration>,
    ) -> Self {
        Self { title, colour, detector: Some(detector), hold, coupling: Coupling::Auto }
    }

    fn engine(&self, alone: Alone) -> EngineConfig {
        let mut config = EngineConfig { coupling: self.coupling, ..engine("lia") };
        config.parameters.alone = alone;
        if let Some(name) = self.detector {
            config.detector = name.into();
        }
        match (self.detector, self.hold) {
            // The trend line holds its answers itself.
            (Some("trendline_srtt"), hold) => config.detection.trendline.hold = hold,
            (_, hold) => config.hold = hold.unwrap_or_default(),
        }
        config
    }
}

/// TCP flows over a route. The rates of those that go all the way from n0 are what a session is
/// compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    pub(super) count: u32,
    pub(super) over: &'static [&'static str],
    /// The path of a session that is the same; `None` for cross traffic.
    pub(super) path: Option<usize>,
}

/// A network, its TCP flows, and the two paths of the sessions.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) wires: Vec<Wire>,
    pub(super) others: Vec<Others>,
    pub(super) paths: [&'static [&'static str]; 2],
    /// The congestion control of the TCP flows.
    pub(super) tcp: &'static str,
    /// The congestion control of the sessions' paths while they are not coupled.
    pub(super) alone: Alone,
    pub(super) duration: Duration,
}

/// A link with Mbit/s, one-way ms and packets.
pub(super) fn wire(name: &'static str, mbps: u64, one_way_ms: u64, packets: usize) -> Wire {
    Wire { name, mbps, one_way_ms, queue: QueueConfig::packets(packets) }
}

const CLASSES: [&str; 3] = ["path 1", "path 2", "cross"];

impl Case {
    fn network(&self, seed: u64) -> Network {
        let mut network = Network::new(self.name, seed, self.duration, &self.wires);
        network.net.scenario.sample_every = SAMPLE;
        let paths = self.paths.map(|over| network.route(over));
        for session in &SESSIONS {
            network.flow(session.title, session.engine(self.alone), &paths);
        }
        for others in &self.others {
            let route = network.route(others.over);
            let class = CLASSES[others.path.unwrap_or(2)];
            for _ in 0..others.count {
                network.flow(class, engine(self.tcp), core::slice::from_ref(&route));
            }
        }
        network
    }

    /// Runs it.
    pub(super) fn run(&self, seed: u64) -> Result<Seen, SimError> {
        self.run_with(seed, &[TrendlineConfig::smoothed_input()])
    }

    /// Runs it, and has trend lines of these kinds listen to LIA-TR.
    pub(super) fn run_with(&self, seed: u64, listening: &[TrendlineConfig]) -> Result<Seen, SimError> {
        let scenario = self.network(seed).net.scenario;
        let first_of = |class| scenario.flows.iter().position(|flow| flow.class == class);
        let tcp = [CLASSES[0], CLASSES[1]].map(|class| first_of(class).unwrap_or_default() as u32);
        let mut watch = Watch::new(tcp, listening);
        let outcome = fairpath_sim::run(&scenario, &mut watch)?;
        Ok(Seen { outcome, end: self.duration.as_secs_f64(), watched: watch.seen })
    }
}

/// A yes of the trend line: when, and the build-ups of both paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Logged {
    pub(super) at: f64,
    pub(super) build_ups: [BuildUp; 2],
}

/// The log of a trend line that listened to LIA-TR.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Heard {
    log: Vec<Logged>,
    together: u32,
}

/// The observations of a run: the groups of the sessions, their rates, those of one TCP flow of each path, and
/// what trend lines log of LIA-TR.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Watched {
    first: [Option<f64>; COUNT],
    coupled: [u32; COUNT],
    samples: u32,
    /// Seconds, and what had arrived of the sessions and the two TCP flows, in bytes.
    arrived: Vec<(f64, [f64; COUNT + 2])>,
    heard: Vec<Heard>,
}

/// The observer of a run.
#[derive(Debug)]
struct Watch {
    tcp: [u32; 2],
    seen: Watched,
    /// Those that listen to LIA-TR, in the order of what was heard.
    listening: Vec<Trendline>,
}

impl Watch {
    fn new(tcp: [u32; 2], listening: &[TrendlineConfig]) -> Self {
        let listen = |config: &TrendlineConfig| {
            let mut trendline = Trendline::new(*config);
            (0..2).for_each(|path| trendline.on_path_opened(PathId::new(path), Timestamp::ZERO));
            trendline
        };
        let heard = listening.iter().map(|_| Heard::default()).collect();
        let seen = Watched { heard, ..Watched::default() };
        Self { tcp, seen, listening: listening.iter().map(listen).collect() }
    }

    fn slot(&self, flow: FlowIndex) -> Option<usize> {
        let tcp = self.tcp.iter().position(|one| *one == flow.0).map(|at| SESSIONS.len() + at);
        tcp.or_else(|| Some(flow.0 as usize).filter(|at| *at < SESSIONS.len()))
    }
}

impl Recorder for Watch {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        let at = now.as_secs_f64();
        let (one, other) = (PathId::new(0), PathId::new(1));
        for session in 0..SESSIONS.len() {
            if view.groups(FlowIndex(session as u32)).is_some_and(|groups| groups.together(one, other)) {
                self.seen.first[session].get_or_insert(at);
                self.seen.coupled[session] += 1;
            }
        }
        self.seen.samples += 1;
        let mut arrived = [0.0; COUNT + 2];
        for (flow, path) in view.paths() {
            if let Some(slot) = self.slot(flow) {
                arrived[slot] += path.delivered.as_f64();
            }
        }
        self.seen.arrived.push((at, arrived));
        for (trendline, Heard { log, together }) in self.listening.iter().zip(&mut self.seen.heard) {
            let newest = trendline.matched(one, other);
            if let Some(build_ups) = newest.filter(|newest| log.last().is_none_or(|last| last.build_ups != *newest)) {
                log.push(Logged { at, build_ups });
            }
            *together += u32::from(trendline.verdicts().first().is_some_and(|pair| pair.together));
        }
    }

    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, path: PathId, rtt: Duration) {
        if flow.0 as usize == TR {
            for trendline in &mut self.listening {
                trendline.on_sample(path, &DelaySample { now, rtt, one_way: None });
                trendline.poll(now);
            }
        }
    }
}

/// The record of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    end: f64,
    watched: Watched,
}

impl Seen {
    /// The goodput of a session over both paths, in Mbit/s.
    pub(super) fn rate(&self, session: usize) -> f64 {
        self.outcome.flows[session].goodput.as_mbps_f64()
    }

    /// The mean goodput of the TCP flows over a session's path, in Mbit/s.
    pub(super) fn tcp(&self, path: usize) -> f64 {
        self.outcome.mean_goodput(CLASSES[path]).as_mbps_f64()
    }

    /// The mean goodput of the TCP flows from n0, in Mbit/s.
    pub(super) fn tcp_mean(&self) -> f64 {
        let flows = || CLASSES[..2].iter().flat_map(|class| self.outcome.class(class));
        flows().map(|flow| flow.goodput.as_mbps_f64()).sum::<f64>() / flows().count() as f64
    }

    /// Jain's index of a session and a TCP flow.
    // [TR2018 §5.2 eq. 19]
    //     J = (x_tcp + x_mp)^2 / (2 (x_tcp^2 + x_mp^2))
    pub(super) fn jain(&self, session: usize) -> f64 {
        jain_index([self.tcp_mean(), self.rate(session)])
    }

    /// A session's goodput over the mean of the TCP flows.
    pub(super) fn ratio(&self, session: usize) -> f64 {
        self.rate(session) / self.tcp_mean()
    }

    /// A session's goodput over that of a TCP flow on the best path.
    // [TR2018 §5.2 eq. 20]
    pub(super) fn gain(&self, session: usize) -> f64 {
        self.rate(session) / f64::max(self.tcp(0), self.tcp(1))
    }

    /// When the paths of a session were first coupled, in seconds; `None`: never.
    pub(super) fn found(&self, session: usize) -> Option<f64> {
        self.watched.first[session]
    }

    /// The same, with the end of the run for never.
    pub(super) fn first(&self, session: usize) -> f64 {
        self.found(session).unwrap_or(self.end)
    }

    /// For which part of the time they were.
    pub(super) fn coupled(&self, session: usize) -> f64 {
        f64::from(self.watched.coupled[session]) / f64::from(self.watched.samples.max(1))
    }

    /// The log of LIA-TR's trend line.
    pub(super) fn log(&self) -> &[Logged] {
        self.log_of(0)
    }

    /// The log of a trend line that listened to LIA-TR.
    pub(super) fn log_of(&self, listening: usize) -> &[Logged] {
        &self.watched.heard[listening].log
    }

    /// For which part of the time it had the paths together.
    pub(super) fn together(&self, listening: usize) -> f64 {
        f64::from(self.watched.heard[listening].together) / f64::from(self.watched.samples.max(1))
    }

    /// The rate of the TCP flow on a path over time, as in [`rates`](Self::rates).
    pub(super) fn tcp_rates(&self, path: usize, every: usize) -> Vec<(f64, f64)> {
        self.rates(COUNT + path, every)
    }

    /// The rate of a session over time: seconds, Mbit/s, over `every` samples.
    pub(super) fn rates(&self, slot: usize, every: usize) -> Vec<(f64, f64)> {
        let samples: Vec<_> = self.watched.arrived.iter().step_by(every).collect();
        let rate = |pair: &[&(f64, [f64; COUNT + 2])]| {
            let seconds = pair[1].0 - pair[0].0;
            (pair[1].0, (pair[1].1[slot] - pair[0].1[slot]) * 8e-6 / seconds)
        };
        samples.windows(2).map(rate).collect()
    }
}

/// The queue of the narrowest link and that of all others, in packets.
pub(super) fn queues(narrow: usize) -> (usize, usize) {
    (narrow, 10 * narrow)
}

/// A duration of so many seconds.
pub(super) fn seconds(seconds: u64) -> Duration {
    ms(1000 * seconds)
}
