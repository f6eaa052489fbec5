//! The constants of the scheduler `deadline`: live streams with each of them halved and doubled.
//!
//! # Claim
//!
//! Each constant matters for what comes in time or for what that costs, and none is better at half or at twice its value.
//!
//! # Topology
//!
//! ```text
//!            ┌── path 1 ──┐
//!   sender ──┤            ├── player
//!            └── path 2 ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | paths | two of 3 to 10 Mbit/s, 20 to 160 ms, with 10 ms of jitter and queues of 200 ms; table `in_time` names what they lose | assumed |
//! | the stream | 1.5 to 3.6 Mbit/s in packets of 1,316 B | assumed |
//! | deadlines | 100 ms to 1 s | assumed |
//! | turns bad | the first path loses a third of its packets in every second span of 3 s | assumed |
//! | turns narrow | the first path carries 1 Mbit/s in every second span of 3 s | assumed |
//! | dear | the first path costs nothing and loses a tenth in bursts; the second one costs something | assumed |
//! | cost | packets that are no new data, in parts of all, and the share of the dear path | assumed |
//! | congestion control | coupled CUBIC, coupled where a shared bottleneck is found | assumed: our default |
//! | duration | 40 s, of which the first 5 are left out | assumed |
//!
//! # Deviations
//!
//! - A cell is the difference to the default, seed by seed. Above 0 more comes in time, or it costs more.
//! - `serves` is a share of which nearly all is meant: what it lacks to 1 is halved and doubled.
//! - Some of so many cells differ by chance: the first half of the seeds chooses the cell of a claim, the second judges it.
//! - `slice` is halved where twice as many slices count, and doubled where half as many do: for as long as before.
//! - The quick form has one of the networks, for 10 s, and judges one of the constants.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{DeadlineParameters, EngineConfig};
use fairpath_net::{Filter, GilbertElliott, LinkConfig, LossConfig, QueueConfig, Rate};
use fairpath_scenario::{Change, ChangeKind, Live, PathRoute, StreamConfig, Traffic};
use fairpath_sim::SimError;

use super::halved::{Constant, Run, Variant, count, difference, matters, table, variants};
use crate::{Cell, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/deadline", include_str!("deadline.rs"), run)
    .left_to_full(&[
        "none is better",
        "alike matters",
        "parts matters",
        "slow matters",
        "waits longest matters",
        "slice matters",
        "slices matters",
        "judged min matters",
        "lost min matters",
    ]);

const CONSTANTS: &[Constant<DeadlineParameters>] = &[
    ("alike", |all, times| all.alike *= times),
    ("serves", |all, times| all.serves = 1.0 - (1.0 - all.serves) * times),
    ("parts", |all, times| all.parts = count(all.parts, times)),
    ("slow", |all, times| all.slow = all.slow.mul_f64(times)),
    ("waits longest", |all, times| all.waits_longest = all.waits_longest.mul_f64(times)),
    ("slice", |all, times| {
        all.losses.slice = all.losses.slice.mul_f64(times);
        all.losses.slices = count(all.losses.slices, 1.0 / times);
    }),
    ("slices", |all, times| all.losses.slices = count(all.losses.slices, times)),
    ("judged min", |all, times| all.losses.judged_min *= times),
    ("lost min", |all, times| all.losses.lost_min *= times),
];

/// A difference in points of a hundred that counts: of a thousand packets, two.
const NOTICED: f64 = 0.2;

#[derive(Clone, Copy, Debug)]
pub(super) enum Loss {
    Random(f64),
    /// Such a share of all packets, four in a row.
    Bursts(f64),
    /// This share in every second span.
    InTurns(f64),
    /// None, but in every second span the line carries two thirds of the stream.
    Narrow,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) mbps: u64,
    pub(super) round_trip_ms: u64,
    pub(super) loss: Loss,
    pub(super) cost: u32,
}

impl Line {
    pub(super) const fn new(mbps: u64, round_trip_ms: u64, loss: Loss) -> Self {
        Self { mbps, round_trip_ms, loss, cost: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) name: &'static str,
    pub(super) lines: [Line; 2],
    pub(super) kbps: u64,
    pub(super) deadline_ms: u64,
}

pub(super) const NETWORKS: [Network; 8] = [
    Network {
        name: "40 and 120 ms, 1 % in bursts",
        lines: [Line::new(10, 40, Loss::Bursts(0.01)), Line::new(10, 120, Loss::Bursts(0.01))],
        kbps: 1_500,
        deadline_ms: 300,
    },
    Network {
        name: "turns bad",
        lines: [Line::new(10, 40, Loss::InTurns(1.0 / 3.0)), Line::new(10, 60, Loss::Random(0.002))],
        kbps: 1_500,
        deadline_ms: 300,
    },
    Network {
        name: "dear",
        lines: [Line::new(10, 40, Loss::Bursts(0.1)), Line { cost: 1, ..Line::new(10, 60, Loss::Random(0.002)) }],
        kbps: 1_500,
        deadline_ms: 300,
    },
    Network {
        name: "100 ms for 20 and 60",
        lines: [Line::new(10, 20, Loss::Random(0.01)), Line::new(10, 60, Loss::Random(0.001))],
        kbps: 1_500,
        deadline_ms: 100,
    },
    Network {
        name: "3 % on the quicker",
        lines: [Line::new(10, 20, Loss::Random(0.03)), Line::new(10, 110, Loss::Random(0.001))],
        kbps: 1_500,
        deadline_ms: 300,
    },
    Network {
        name: "more than one carries",
        lines: [Line::new(3, 40, Loss::Random(0.002)), Line::new(3, 160, Loss::Random(0.002))],
        kbps: 3_600,
        deadline_ms: 300,
    },
    Network {
        name: "turns narrow",
        lines: [Line::new(10, 40, Loss::Narrow), Line::new(10, 160, Loss::Random(0.005))],
        kbps: 1_500,
        deadline_ms: 1_000,
    },
    Network {
        name: "both lose 2 % in bursts",
        lines: [Line::new(6, 50, Loss::Bursts(0.02)), Line::new(6, 70, Loss::Bursts(0.02))],
        kbps: 2_000,
        deadline_ms: 400,
    },
];

impl Network {
    /// The share in time, and the cost, in points of a hundred.
    pub(super) fn run(&self, live: Live, seed: u64, duration: Duration) -> Result<[f64; 2], SimError> {
        let warm_up = Duration::from_secs(5);
        let mut net = Net::new(self.name, seed, warm_up, warm_up + duration);
        let paths = [0, 1].map(|at| self.lines[at].path(&mut net, at, warm_up + duration));
        let stream = StreamConfig { deadline: ms(self.deadline_ms), ..StreamConfig::default() };
        let rate = Some(Bitrate::from_kbps(self.kbps));
        let flow = net.live("stream", EngineConfig::live(), &paths);
        flow.traffic = Traffic::Live(Live { rate, stream, ..live });
        flow.terms = self.lines.map(|line| fairpath_engine::Terms { cost: line.cost, ..Default::default() }).to_vec();
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        let flow = &outcome.flows[0];
        let live = flow.live.unwrap_or_default();
        let carried = |path: usize| flow.paths[path].goodput.as_mbps_f64();
        let dear =
            if self.lines[1].cost > 0 { carried(1) / (carried(0) + carried(1)).max(f64::MIN_POSITIVE) } else { 0.0 };
        Ok([100.0 * live.on_time().unwrap_or(0.0).min(1.0), 100.0 * (live.beside() + dear)])
    }
}

impl Line {
    fn path(&self, net: &mut Net, at: usize, until: Duration) -> PathRoute {
        const SPAN: Duration = Duration::from_secs(3);
        let loss = match self.loss {
            Loss::Random(probability) => LossConfig::Random { probability },
            Loss::Bursts(share) => LossConfig::GilbertElliott(GilbertElliott {
                good_to_bad: 0.25 * share,
                bad_to_good: 0.25,
                loss_in_good: 0.0,
                loss_in_bad: 1.0,
            }),
            Loss::InTurns(_) | Loss::Narrow => LossConfig::None,
        };
        let link = LinkConfig::new(Bitrate::from_mbps(self.mbps)).delay(ms(self.round_trip_ms / 2)).jitter(ms(10));
        let there = net.link(&format!("path {at}"), link.queue(QueueConfig::sojourn(ms(200))).loss(loss));
        let back = net.link(&format!("path {at} back"), LinkConfig::pure_delay(ms(self.round_trip_ms / 2)));
        let rate = |mbps: f64| ChangeKind::Rate(Rate::Fixed(Bitrate::from_bps((mbps * 1e6) as u64)));
        let [bad, good] = match self.loss {
            Loss::InTurns(share) => [Filter::DropShare(share), Filter::Pass].map(ChangeKind::Filter),
            Loss::Narrow => [rate(1.0), rate(self.mbps as f64)],
            Loss::Random(_) | Loss::Bursts(_) => return PathRoute { forward: vec![there], backward: vec![back] },
        };
        let turns = (until.as_secs_f64() / SPAN.as_secs_f64()) as u32;
        net.scenario.changes.extend((1..=turns).map(|turn| {
            let kind = if turn % 2 == 1 { bad.clone() } else { good.clone() };
            Change { at: SPAN * turn, link: there, kind }
        }));
        PathRoute { forward: vec![there], backward: vec![back] }
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let networks = context.pick(NETWORKS[2..3].to_vec(), NETWORKS.to_vec());
    let duration = Duration::from_secs(context.pick(10, 35));
    let variants: Vec<Variant<DeadlineParameters>> = variants(CONSTANTS).collect();
    let runs: Vec<Vec<Run<2>>> = context.sweep(&networks, &context.seeds(context.pick(4, 8)), |network, seed| {
        let with = |scheduler| network.run(Live { scheduler, ..Live::default() }, seed, duration);
        let default = with(DeadlineParameters::default())?;
        let changed = variants.iter().map(|variant| with(variant.parameters));
        Ok((default, changed.collect::<Result<_, SimError>>()?))
    })?;
    let names: Vec<&str> = networks.iter().map(|network| network.name).collect();
    let table = |name, title, of| table((name, title), &names, &variants, &runs, of);
    let in_time = table("in_time", "Packets in time: of the default, and how much more with another value", 0);
    let cost = table("cost", "The cost: of the default, and how much more with another value", 1);
    let mut verdicts = vec![none_is_better(&in_time)];
    for (constant, _) in CONSTANTS {
        let mut all = Vec::new();
        for (at, variant) in variants.iter().enumerate().filter(|(_, variant)| variant.constant == *constant) {
            for (network, runs) in networks.iter().zip(&runs) {
                for (of, measure) in ["in time", "cost"].into_iter().enumerate() {
                    let what = format!("{}, {measure}, {}", variant.times, network.name);
                    all.push((what, runs.iter().map(difference(at, of)).collect()));
                }
            }
        }
        let claim =
            format!("Half or twice of \"{constant}\" changes what comes in time or its cost by {NOTICED} points.");
        verdicts.push(matters(constant, &claim, all, NOTICED));
    }
    Ok(Report { tables: vec![in_time, cost], verdicts, ..Report::default() })
}

/// Whether the mean over all networks is better with another value.
fn none_is_better(in_time: &Table) -> Verdict {
    let mean = |cells: &[Cell]| Estimate::mean_of(cells.iter().map(Cell::estimate));
    let claim = format!("With no other value {NOTICED} points more are in time, in the mean over all networks.");
    in_time.rows.iter().skip(1).fold(Verdict::ours("none is better", &claim), |verdict, (heads, cells)| {
        verdict.at_most(&heads.join(", "), mean(cells), NOTICED)
    })
}
