//! Live streams in the simulator, as several experiments run them.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::LinkConfig;
use fairpath_scenario::{Copies, Live, PathRoute, Sharing, StreamConfig, Traffic};
use fairpath_sim::{FlowOutcome, SimError};
use serde::{Deserialize, Serialize};

use crate::Net;

/// How a stream uses its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// As ours does: a TCP's share for each group of paths that is found to share a bottleneck.
    Best,
    /// As ours does where all paths are one group: a TCP's share for all of them.
    BestAsOne,
    /// By the rates of coupled TCP.
    Coupled,
    /// The same on each.
    Equal,
    /// Each packet on two paths.
    Redundant,
    /// On one of them alone.
    Alone(usize),
}

impl Policy {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Best => "ours",
            Self::BestAsOne => "ours, one budget for all paths",
            Self::Coupled => "MPTCP's rates",
            Self::Equal => "equal split",
            Self::Redundant => "redundant",
            Self::Alone(0) => "path 1 alone",
            Self::Alone(1) => "path 2 alone",
            Self::Alone(_) => "path 3 alone",
        }
    }
}

/// A stream over some links.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// There and back.
    pub(super) paths: Vec<[LinkConfig; 2]>,
    pub(super) policy: Policy,
    /// The application's rate; `None`: what the budget allows.
    pub(super) rate: Option<Bitrate>,
    pub(super) deadline: Duration,
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
}

/// The result of a stream.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    /// The share of packets that were played in time.
    pub(super) on_time: f64,
    /// The goodput in time, in Mbit/s.
    pub(super) goodput: f64,
    /// The budget, in Mbit/s.
    pub(super) budget: f64,
    /// The share of packets that were no new data.
    pub(super) beside: f64,
    /// How long what was played took, in ms: half of it at most, and all but a hundredth.
    pub(super) median: f64,
    pub(super) slowest: f64,
}

impl Seen {
    pub(super) fn of(flow: &FlowOutcome, measured: Duration) -> Self {
        let live = flow.live.unwrap_or_default();
        let mut took: Vec<f64> = flow.frame_delays.iter().map(|took| 1e3 * took.as_secs_f64()).collect();
        took.sort_by(f64::total_cmp);
        let quantile = |share: f64| took.get((share * took.len() as f64) as usize).copied().unwrap_or(0.0);
        Self {
            on_time: live.on_time().unwrap_or(0.0).min(1.0),
            goodput: live.in_time_bytes.as_f64() * 8e-6 / measured.as_secs_f64(),
            budget: live.budget().as_mbps_f64(),
            beside: live.beside(),
            median: quantile(0.5),
            slowest: quantile(0.99),
        }
    }
}

/// The configuration of a stream under a policy.
pub(super) fn live(policy: Policy, rate: Option<Bitrate>, deadline: Duration) -> Live {
    let copies = if policy == Policy::Redundant { Copies::All } else { Copies::None };
    let sharing = match policy {
        Policy::Coupled => Sharing::Coupled,
        Policy::Equal => Sharing::Equal,
        _ => Sharing::Best,
    };
    Live { rate, stream: StreamConfig { deadline, copies, ..StreamConfig::default() }, sharing, ..Live::default() }
}

impl Case {
    pub(super) fn run(&self, seed: u64) -> Result<Seen, SimError> {
        let mut net = Net::new("a live stream", seed, self.warm_up, self.duration);
        let path = |(at, [there, back]): (usize, &[LinkConfig; 2])| {
            let there = net.link(&format!("path {at}"), there.clone());
            let back = net.link(&format!("path {at} back"), back.clone());
            PathRoute { forward: vec![there], backward: vec![back] }
        };
        let paths: Vec<PathRoute> = self.paths.iter().enumerate().map(path).collect();
        let used = match self.policy {
            Policy::Alone(path) => &paths[path..=path],
            _ => &paths[..],
        };
        let coupling = match self.policy {
            Policy::BestAsOne => Coupling::Always,
            _ => EngineConfig::live().coupling,
        };
        net.live("stream", EngineConfig { coupling, ..EngineConfig::live() }, used).traffic =
            Traffic::Live(live(self.policy, self.rate, self.deadline));
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        Ok(Seen::of(&outcome.flows[0], outcome.measured))
    }
}
