//! The network of the paper's figure 1, and what is watched on it.

use core::time::Duration;

use fairpath_core::{Bitrate, PathId, Timestamp};
use fairpath_engine::{Daimd, EngineConfig, LongestQueue, Parameters};
use fairpath_net::QueueConfig;
use fairpath_scenario::{Scenario, Transport};
use fairpath_sim::{FlowIndex, Outcome, PathCount, Recorder, SimError, View};
use serde::{Deserialize, Serialize};

use crate::{Cell, Estimate, Net, bdp_packets, engine, ms};

/// The algorithms that are compared, the paper's own first.
pub(super) const ALGORITHMS: [&str; 2] = ["daimd", "lia"];

/// DAIMD as the paper's tables are run again: the longest queue is the longest that was seen, because its
/// hosts acknowledge each packet at once.
pub(super) fn as_seen() -> Daimd {
    Daimd { queue: LongestQueue::Seen, ..Daimd::default() }
}

/// DAIMD with parameters.
pub(super) fn daimd(rule: Daimd) -> EngineConfig {
    EngineConfig { parameters: Parameters { daimd: rule, ..Parameters::default() }, ..engine("daimd") }
}

/// One of the [`ALGORITHMS`] as the tables have it.
pub(super) fn as_printed(algorithm: &str) -> EngineConfig {
    if algorithm == "daimd" { daimd(as_seen()) } else { engine(algorithm) }
}

/// One of the two paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) mbps: u64,
    pub(super) one_way_ms: u64,
}

/// Two paths between two hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) paths: [Wire; 2],
}

/// 10 and 5 Mbit/s, one-way delay 50 ms.
pub(super) const CAPACITY: Setting = Setting {
    name: "different capacity",
    paths: [Wire { mbps: 10, one_way_ms: 50 }, Wire { mbps: 5, one_way_ms: 50 }],
};
/// 5 Mbit/s, one-way delays 25 and 50 ms.
pub(super) const DELAY: Setting =
    Setting { name: "different delay", paths: [Wire { mbps: 5, one_way_ms: 25 }, Wire { mbps: 5, one_way_ms: 50 }] };
/// 5 Mbit/s, one-way delay 50 ms.
pub(super) const EQUAL: Setting =
    Setting { name: "equal paths", paths: [Wire { mbps: 5, one_way_ms: 50 }, Wire { mbps: 5, one_way_ms: 50 }] };

impl Setting {
    /// The most that data can take of a path, in Mbit/s: 1448 B of each packet of 1500 B.
    pub(super) fn most(&self, path: usize) -> f64 {
        self.paths[path].mbps as f64 * 1448.0 / 1500.0
    }

    /// The rate of one TCP connection that shares the best path with another, in Mbit/s.
    pub(super) fn fair_share(&self) -> f64 {
        self.most(0).max(self.most(1)) / 2.0
    }
}

/// The flows and the conditions of a run.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) setting: Setting,
    /// The congestion control of the multipath flow.
    pub(super) multipath: EngineConfig,
    /// Whether a Reno flow runs beside it on each path.
    pub(super) cross_traffic: bool,
    /// How packets are made and acknowledged, of all flows.
    pub(super) transport: Transport,
    /// Flows start up to this much later than at once.
    pub(super) start_jitter: Duration,
    /// Nothing is counted before this.
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
}

impl Case {
    /// The multipath flow alone, as in the paper. Slow start overflows the queues, and the window
    /// that it leaves does so once more: all that is over by 1.5 s. What counts, counts from 5 s on.
    pub(super) fn idle(setting: Setting, algorithm: &str, duration: Duration) -> Self {
        Self {
            setting,
            multipath: as_printed(algorithm),
            cross_traffic: false,
            transport: Transport::default(),
            start_jitter: ms(100),
            warm_up: Duration::from_secs(5),
            duration,
        }
    }

    /// With a Reno flow beside it on each path.
    pub(super) fn shared(setting: Setting, algorithm: &str, duration: Duration) -> Self {
        Self { cross_traffic: true, ..Self::idle(setting, algorithm, duration) }
    }

    /// The scenario: flow 0 has both paths, flows 1 and 2 one each.
    fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new(self.setting.name, seed, self.warm_up, self.duration);
        net.scenario.sample_every = ms(100);
        let paths: Vec<_> = ["A", "B"]
            .into_iter()
            .zip(self.setting.paths)
            .map(|(name, wire)| {
                let (rate, one_way) = (Bitrate::from_mbps(wire.mbps), ms(wire.one_way_ms));
                net.path(name, rate, one_way, QueueConfig::packets(bdp_packets(rate, 2 * one_way)))
            })
            .collect();
        net.flow("multipath", self.multipath.clone(), &paths);
        if self.cross_traffic {
            for path in &paths {
                net.flow("reno", engine("reno"), core::slice::from_ref(path));
            }
        }
        for flow in &mut net.scenario.flows {
            flow.transport = self.transport;
            flow.start_jitter = self.start_jitter;
        }
        net.scenario
    }

    /// The window at which a multipath flow alone makes its window smaller, in packets: for DAIMD what
    /// fills the path and the queue up to D0, for the others up to its end.
    pub(super) fn highest_window(&self, path: usize) -> f64 {
        let wire = self.setting.paths[path];
        let product = (wire.mbps * 1000 * 2 * wire.one_way_ms) as f64 / 8.0 / 1500.0;
        product * (1.0 + self.fullest_and_emptiest().0)
    }

    /// How long packets wait on average before a path that a multipath flow has alone, in ms, if its
    /// queue grows steadily from the emptiest to the fullest.
    pub(super) fn mean_wait_ms(&self, path: usize) -> f64 {
        let (fullest, emptiest) = self.fullest_and_emptiest();
        (fullest + emptiest) / 2.0 * (2 * self.setting.paths[path].one_way_ms) as f64
    }

    /// The queue before and after the window becomes smaller, in bandwidth-delay products, which is
    /// also how long it can be.
    fn fullest_and_emptiest(&self) -> (f64, f64) {
        let daimd = self.multipath.parameters.daimd;
        let (fullest, left) =
            if self.multipath.congestion == "daimd" { (daimd.full, daimd.backoff) } else { (1.0, 0.5) };
        (fullest, f64::max(0.0, left * (1.0 + fullest) - 1.0))
    }

    /// Runs it.
    pub(super) fn run(&self, seed: u64) -> Result<Seen, SimError> {
        let mut watch = Watch::default();
        let outcome = fairpath_sim::run(&self.scenario(seed), &mut watch)?;
        Ok(Seen { outcome, paths: watch.paths, reno: watch.reno })
    }
}

/// The record of a path of the multipath flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PathSeen {
    /// The congestion window: seconds, packets.
    pub(super) window: Vec<(f64, f64)>,
    /// Where delay made it smaller, at the last window before that.
    pub(super) cuts: Vec<(f64, f64)>,
    /// When losses made it smaller.
    pub(super) episodes: Vec<f64>,
    cuts_so_far: u64,
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) paths: [PathSeen; 2],
    /// The windows of the Reno flows: seconds, packets.
    pub(super) reno: [Vec<(f64, f64)>; 2],
}

impl Seen {
    /// The counters of a path of the multipath flow since the warm-up.
    pub(super) fn count(&self, path: usize) -> &PathCount {
        &self.outcome.flows[0].paths[path].count
    }

    /// Packets lost on both paths since the warm-up.
    pub(super) fn lost(&self) -> f64 {
        (self.count(0).lost + self.count(1).lost) as f64
    }

    /// Packets sent on both paths since the warm-up.
    pub(super) fn sent(&self) -> f64 {
        (self.count(0).sent + self.count(1).sent) as f64
    }

    /// How often losses made a window smaller since the warm-up.
    pub(super) fn loss_episodes(&self) -> f64 {
        (self.count(0).episodes + self.count(1).episodes) as f64
    }

    /// How often delay did.
    pub(super) fn delay_cuts(&self) -> f64 {
        let begin = self.paths[0].window.last().map_or(0.0, |(end, _)| end - self.outcome.measured.as_secs_f64());
        let cuts = self.paths.iter().flat_map(|path| &path.cuts);
        cuts.filter(|(at, _)| *at >= begin).count() as f64
    }

    /// New data that the multipath flow got over a path, in Mbit/s.
    pub(super) fn multipath(&self, path: usize) -> f64 {
        self.outcome.flows[0].paths[path].goodput.as_mbps_f64()
    }

    /// That over both paths.
    pub(super) fn total(&self) -> f64 {
        self.multipath(0) + self.multipath(1)
    }

    /// The goodput of the Reno flow on a path, in Mbit/s.
    pub(super) fn reno(&self, path: usize) -> f64 {
        self.outcome.flows[1 + path].goodput.as_mbps_f64()
    }

    /// The multipath flow's goodput over Reno's, on the path where that ratio is largest, over these runs.
    pub(super) fn part_of_reno(runs: &[Self]) -> Estimate {
        let part = |path| {
            let of = |rate: &dyn Fn(&Self) -> f64| Cell::of(runs.iter().map(rate)).estimate();
            of(&|seen| seen.multipath(path)) / of(&|seen| seen.reno(path))
        };
        Estimate::largest([part(0), part(1)])
    }

    /// How long packets wait before a path on average, in ms.
    pub(super) fn wait_ms(&self, path: usize) -> f64 {
        self.outcome.links[2 * path].mean_wait.as_secs_f64() * 1e3
    }
}

#[derive(Debug, Default)]
struct Watch {
    paths: [PathSeen; 2],
    reno: [Vec<(f64, f64)>; 2],
}

impl Recorder for Watch {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        let now = now.as_secs_f64();
        for (flow, snapshot) in view.paths() {
            let window = snapshot.window.as_f64() / 1500.0;
            if flow.0 > 0 {
                self.reno[flow.0 as usize - 1].push((now, window));
                continue;
            }
            let path = &mut self.paths[snapshot.path.get() as usize];
            if snapshot.delay_cuts > path.cuts_so_far {
                path.cuts.extend(path.window.last());
                path.cuts_so_far = snapshot.delay_cuts;
            }
            path.window.push((now, window));
        }
    }

    fn on_congestion(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        if flow.0 == 0 {
            self.paths[path.get() as usize].episodes.push(now.as_secs_f64());
        }
    }
}
