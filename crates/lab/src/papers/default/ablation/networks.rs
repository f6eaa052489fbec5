//! The networks of the ablation, and the cost of the default in them.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{Filter, LinkConfig, Policer, QueueConfig, Rate};
use fairpath_scenario::{Change, ChangeKind, Flow, PathRoute, Scenario, Traffic, Transport};
use fairpath_sim::{SimError, run};

use super::super::cell::{Cell, REFERENCES};
use super::super::said::Said;
use crate::papers::odd_couple::profiles::{PROFILES, Profile};
use crate::{Context, Net, ms};

/// A kind of networks, and what its rows show.
#[derive(Clone, Copy)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
}

pub(super) const KINDS: [Kind; 5] = [
    Kind {
        name: "profiles",
        title: "20 MiB over sixteen pairs of links: seconds, and the time without in parts of it",
    },
    Kind { name: "beside", title: "Beside CUBIC: unfairness, and the unfairness without in parts of it" },
    Kind { name: "faults", title: "10 MB over links that fail: seconds, and the time without in parts of it" },
    Kind { name: "alike", title: "Links that nobody else uses: 1 and the part of the time judged wrong, and without" },
    Kind {
        name: "light",
        title: "A steady fifth of links with CUBIC: 1 and the part of the time judged wrong, and without",
    },
];

/// A transfer that takes longer counts as this long.
const PATIENCE: Duration = Duration::from_secs(120);
const FAULT_SIZE: ByteCount = ByteCount::new(10_000_000);
const FAULT_AT: Duration = Duration::from_secs(1);
/// The load of an application that never fills its paths, in parts of what they carry.
const LIGHT: f64 = 0.2;

/// A network, and how long it is watched where nothing ends by itself.
#[derive(Clone, Copy, Debug)]
pub(super) enum Network {
    Profile(Profile),
    Beside { cell: Cell, lasts: Duration },
    Policed { lasts: Duration },
    Fault(Fault),
    Alike { cell: Cell, lasts: Duration },
    Light { cell: Cell, lasts: Duration },
}

/// The event on the second of two links.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Down(Duration),
    DownForGood,
    Slow(u64),
    Lossy(f64),
}

const FAULTS: [Fault; 5] = [
    Fault::Down(Duration::from_millis(300)),
    Fault::Down(Duration::from_secs(2)),
    Fault::DownForGood,
    Fault::Slow(1),
    Fault::Lossy(0.2),
];

/// All of them, or some.
pub(super) fn networks(context: &Context) -> Vec<Network> {
    let lasts = Duration::from_secs(context.pick(15, 60));
    let profiles = context.pick(vec![PROFILES[8], PROFILES[15]], PROFILES.to_vec());
    let queues = context.pick(vec![50], vec![20, 50, 200]);
    let beside = [true, false]
        .into_iter()
        .flat_map(|is_shared| queues.iter().map(move |queue| Cell::beside_cubic(is_shared, *queue)));
    let alike = [true, false]
        .into_iter()
        .flat_map(|is_shared| [20, 100].map(|queue| Cell { competitors: 0, ..Cell::beside_cubic(is_shared, queue) }));
    let mut networks: Vec<Network> = profiles.into_iter().map(Network::Profile).collect();
    networks.extend(beside.map(|cell| Network::Beside { cell, lasts }));
    networks.push(Network::Policed { lasts });
    networks.extend(FAULTS.map(Network::Fault));
    networks.extend(alike.map(|cell| Network::Alike { cell, lasts }));
    let light = context.pick(vec![true], vec![true, false]);
    // Steadiness is believed after three seconds, and a verdict takes some more.
    let lasts = Duration::from_secs(context.pick(20, 60));
    networks
        .extend(light.into_iter().map(|is_shared| Network::Light { cell: Cell::beside_cubic(is_shared, 100), lasts }));
    networks
}

impl Network {
    pub(super) fn kind(&self) -> &'static str {
        let at = match self {
            Self::Profile(_) => 0,
            Self::Beside { .. } | Self::Policed { .. } => 1,
            Self::Fault(_) => 2,
            Self::Alike { .. } => 3,
            Self::Light { .. } => 4,
        };
        KINDS[at].name
    }

    pub(super) fn name(&self) -> String {
        let layout = |cell: &Cell| if cell.is_shared { "shared" } else { "separate" };
        match self {
            Self::Profile(profile) => profile.name.to_owned(),
            Self::Beside { cell, .. } | Self::Alike { cell, .. } | Self::Light { cell, .. } => {
                format!("{}, {}", layout(cell), cell.queue.name())
            }
            Self::Policed { .. } => "policed".to_owned(),
            Self::Fault(Fault::Down(time)) => format!("down for {} ms", time.as_millis()),
            Self::Fault(Fault::DownForGood) => "down for good".to_owned(),
            Self::Fault(Fault::Slow(mbps)) => format!("{mbps} Mbit/s from then on"),
            Self::Fault(Fault::Lossy(part)) => format!("{} % lost from then on", part * 100.0),
        }
    }

    /// The cost of the default there with such a change to it: the less, the better.
    pub(super) fn cost(&self, seed: u64, change: impl Fn(&mut Flow)) -> Result<f64, SimError> {
        let mut scenario = self.scenario(seed);
        let flow = &mut scenario.flows[0];
        (flow.engine, flow.transport) = (EngineConfig::live(), Transport::live());
        change(flow);
        if matches!(self, Self::Light { .. }) {
            // Both paths carry their part, however long their queues are.
            flow.engine.scheduler = "round_robin".into();
        }
        let is_uncoupled = flow.engine.coupling == Coupling::Never;
        let mut said = Said::default();
        let outcome = run(&scenario, &mut said)?;
        Ok(match self {
            Self::Profile(_) | Self::Fault(_) => {
                outcome.flows[0].completions.first().copied().unwrap_or(PATIENCE).as_secs_f64()
            }
            Self::Beside { cell, .. } => {
                let links = if cell.is_shared { 1.0 } else { 2.0 };
                let theirs = outcome.mean_goodput("theirs").as_mbps_f64() * links;
                let share = outcome.flows[0].goodput.as_mbps_f64() / theirs;
                share.max(1.0 / share)
            }
            Self::Policed { .. } => {
                let share = outcome.flows[0].goodput.as_mbps_f64() / outcome.mean_goodput("theirs").as_mbps_f64();
                share.max(1.0 / share)
            }
            Self::Alike { cell, .. } | Self::Light { cell, .. } => {
                let together = if is_uncoupled { 0.0 } else { said.part() };
                1.0 + if cell.is_shared { 1.0 - together } else { together }
            }
        })
    }

    fn scenario(&self, seed: u64) -> Scenario {
        match self {
            Self::Profile(profile) => {
                let mut scenario = profile.scenario(seed);
                (scenario.duration, scenario.warm_up, scenario.sample_every) =
                    (PATIENCE, Duration::ZERO, Duration::ZERO);
                scenario
            }
            Self::Beside { cell, lasts } | Self::Alike { cell, lasts } => {
                let times = (Duration::from_secs(2), *lasts);
                cell.scenario(EngineConfig::live(), &[0, 1], seed, times, Traffic::Bulk)
            }
            Self::Light { cell, lasts } => {
                let links = if cell.is_shared { 1.0 } else { 2.0 };
                let rate = Bitrate::from_mbps(cell.mbps).scaled(LIGHT * links);
                let times = (Duration::from_secs(2), *lasts);
                cell.scenario(EngineConfig::live(), &[0, 1], seed, times, Traffic::Constant { rate })
            }
            Self::Policed { lasts } => policed(*lasts, seed),
            Self::Fault(fault) => fault.scenario(seed),
        }
    }
}

/// A flow over one path beside four of CUBIC, behind a policer.
fn policed(lasts: Duration, seed: u64) -> Scenario {
    const WARM_UP: Duration = Duration::from_secs(5);
    let mut net = Net::new("a policer", seed, WARM_UP, WARM_UP + lasts);
    let policer = Policer { rate: Bitrate::from_mbps(20), burst: ByteCount::new(100_000) };
    let forward = net.link("policed", LinkConfig::new(Bitrate::from_mbps(100)).delay(ms(20)).policer(policer));
    let backward = net.link("back", LinkConfig::pure_delay(ms(20)));
    let path = PathRoute { forward: vec![forward], backward: vec![backward] };
    net.live("ours", EngineConfig::live(), std::slice::from_ref(&path));
    for _ in 0..4 {
        net.live("theirs", REFERENCES[0].as_reference(), std::slice::from_ref(&path)).start_jitter =
            Duration::from_secs(1);
    }
    net.scenario
}

impl Fault {
    fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new("a fault", seed, Duration::ZERO, PATIENCE);
        let queue = QueueConfig::sojourn(ms(100));
        let paths = ["A", "B"].map(|name| net.path(name, Bitrate::from_mbps(20), ms(20), queue.clone()));
        net.live("ours", EngineConfig::live(), &paths).traffic = Traffic::Finite { size: FAULT_SIZE };
        let link = paths[1].forward[0];
        let at = |at: Duration, kind: ChangeKind| Change { at, link, kind };
        net.scenario.changes = match self {
            Self::Down(time) => {
                vec![at(FAULT_AT, ChangeKind::Up(false)), at(FAULT_AT + *time, ChangeKind::Up(true))]
            }
            Self::DownForGood => vec![at(FAULT_AT, ChangeKind::Up(false))],
            Self::Slow(mbps) => vec![at(FAULT_AT, ChangeKind::Rate(Rate::Fixed(Bitrate::from_mbps(*mbps))))],
            Self::Lossy(part) => vec![at(FAULT_AT, ChangeKind::Filter(Filter::DropShare(*part)))],
        };
        net.scenario
    }
}
