//! The constants of the budget of an encoder: live streams that send what it allows, with each of them halved and doubled.
//!
//! # Claim
//!
//! Each constant matters for how much is carried, what of it comes in time, or how restless the encoder becomes, and none
//! is better at half or at twice its value.
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
//! | paths | 40 and 60 ms, 5 ms of jitter, queues of 200 ms, one packet in a thousand lost; table `carried` names their rates | assumed |
//! | the stream | an encoder that always sends what the budget allows, in packets of 1,316 B | assumed |
//! | deadlines | 300 ms, in one network 4 s | assumed |
//! | restlessness | all steps of the budget in a minute, in parts of its mean | assumed |
//! | congestion control | coupled CUBIC, coupled where a shared bottleneck is found | assumed: our default |
//! | duration | 60 s, of which the first 10 are left out; of a start the first 10 s, without any left out | assumed |
//!
//! # Deviations
//!
//! - A cell is the difference to the default, seed by seed.
//! - Some of so many cells differ by chance: the first half of the seeds chooses the cell of a claim, the second judges it.
//! - A value is better where it brings something noticeable in the mean over all networks, and costs nothing noticeable.
//! - The quick form has one of the networks, for 20 s, and one of the constants.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, LossConfig, QueueConfig, Rate};
use fairpath_scenario::{BudgetParameters, Change, ChangeKind, Live, PathRoute, StreamConfig, Traffic};
use fairpath_sim::SimError;

use super::halved::{Constant, Run, Variant, difference, matters, table, variants};
use crate::{Cell, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/budget", include_str!("budget.rs"), run)
    .left_to_full(&[
        "none is better",
        "mean of matters",
        "wait max matters",
        "stands matters",
        "drained matters",
        "used matters",
        "tries matters",
        "passed for matters",
        "first try matters",
    ]);

const CONSTANTS: &[Constant<BudgetParameters>] = &[
    ("mean of", |all, times| all.mean_of = all.mean_of.mul_f64(times)),
    ("wait max", |all, times| all.wait_max = all.wait_max.mul_f64(times)),
    ("stands", |all, times| all.stands = all.stands.mul_f64(times)),
    ("drained", |all, times| all.drained *= times),
    ("rises", |all, times| all.rises *= times),
    // The part that is left free is halved and doubled.
    ("used", |all, times| all.used = 1.0 - (1.0 - all.used) * times),
    ("tries", |all, times| all.tries = 1.0 + (all.tries - 1.0) * times),
    ("passed for", |all, times| all.passed_for = all.passed_for.mul_f64(times)),
    ("first try", |all, times| {
        all.first_try = Bitrate::from_bps((all.first_try.as_bps() as f64 * times) as u64);
    }),
];

/// The measures: their names, what is noticed of each in points of a hundred, and whether more is better.
pub(super) const MEASURES: [(&str, f64, bool); 3] =
    [("carried", 1.0, true), ("in time", 0.2, true), ("restlessness", 100.0, false)];

/// The rate of a path over time.
#[derive(Clone, Copy, Debug)]
enum Line {
    /// In Mbit/s.
    Steady(u64),
    /// The one and the other in turn, for so many seconds each.
    Turns(u64, u64, u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    pub(super) name: &'static str,
    lines: [Line; 2],
    deadline_ms: u64,
    /// Whether its beginning is what counts.
    is_start: bool,
}

impl Network {
    const fn new(name: &'static str, lines: [Line; 2]) -> Self {
        Self { name, lines, deadline_ms: 300, is_start: false }
    }
}

pub(super) const NETWORKS: [Network; 6] = [
    Network::new("10 and 6", [Line::Steady(10), Line::Steady(6)]),
    Network::new("10 or 7 for 1 s, and 6", [Line::Turns(10, 7, 1), Line::Steady(6)]),
    Network::new("10 or 3 for 8 s, and 3", [Line::Turns(10, 3, 8), Line::Steady(3)]),
    Network::new("10 or none for 5 s, and 2", [Line::Turns(10, 0, 5), Line::Steady(2)]),
    Network {
        deadline_ms: 4_000,
        ..Network::new("8 or 2 for 4 s, and 2, 4 s", [Line::Turns(8, 2, 4), Line::Steady(2)])
    },
    Network { is_start: true, ..Network::new("a start, 10 and 6", [Line::Steady(10), Line::Steady(6)]) },
];

impl Line {
    /// The mean rate in Mbit/s.
    fn mean(self) -> f64 {
        match self {
            Self::Steady(rate) => rate as f64,
            Self::Turns(one, other, _) => 0.5 * (one + other) as f64,
        }
    }

    fn path(self, net: &mut Net, at: usize, until: Duration) -> PathRoute {
        let (first, one_way) = match self {
            Self::Steady(rate) | Self::Turns(rate, ..) => (rate, ms([20, 30][at])),
        };
        let link = LinkConfig::new(Bitrate::from_mbps(first)).delay(one_way).jitter(ms(5));
        let loss = LossConfig::Random { probability: 0.001 };
        let there = net.link(&format!("path {at}"), link.queue(QueueConfig::sojourn(ms(200))).loss(loss));
        let back = net.link(&format!("path {at} back"), LinkConfig::pure_delay(one_way));
        if let Self::Turns(one, other, seconds) = self {
            net.scenario.changes.extend((1..=until.as_secs() / seconds).map(|turn| {
                let rate = if turn % 2 == 1 { other } else { one };
                let kind = ChangeKind::Rate(Rate::Fixed(Bitrate::from_mbps(rate)));
                Change { at: Duration::from_secs(turn * seconds), link: there, kind }
            }));
        }
        PathRoute { forward: vec![there], backward: vec![back] }
    }
}

impl Network {
    /// The measures, in points of a hundred.
    pub(super) fn run(&self, live: Live, seed: u64, duration: Duration) -> Result<[f64; 3], SimError> {
        let ten = Duration::from_secs(10);
        let (warm_up, measured) = if self.is_start { (Duration::ZERO, ten) } else { (ten, duration) };
        let until = warm_up + measured;
        let mut net = Net::new(self.name, seed, warm_up, until);
        let paths = [0, 1].map(|at| self.lines[at].path(&mut net, at, until));
        let stream = StreamConfig { deadline: ms(self.deadline_ms), ..StreamConfig::default() };
        let flow = net.live("stream", EngineConfig::live(), &paths);
        flow.traffic = Traffic::Live(Live { stream, ..live });
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        let live = outcome.flows[0].live.unwrap_or_default();
        let could = self.lines.iter().map(|line| line.mean()).sum::<f64>() * measured.as_secs_f64();
        let carried = 8e-6 * live.in_time_bytes.as_f64() / could;
        Ok([carried, live.on_time().unwrap_or(0.0).min(1.0), live.restlessness()].map(|share| 100.0 * share))
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let networks = context.pick(NETWORKS[2..3].to_vec(), NETWORKS.to_vec());
    let duration = Duration::from_secs(context.pick(20, 60));
    let is_meant = |variant: &Variant<BudgetParameters>| context.pick(variant.constant == "rises", true);
    let variants: Vec<Variant<BudgetParameters>> = variants(CONSTANTS).filter(is_meant).collect();
    let runs: Vec<Vec<Run<3>>> = context.sweep(&networks, &context.seeds(context.pick(6, 8)), |network, seed| {
        let with = |budget| network.run(Live { budget, ..Live::default() }, seed, duration);
        let default = with(BudgetParameters::default())?;
        let changed = variants.iter().map(|variant| with(variant.parameters));
        Ok((default, changed.collect::<Result<_, SimError>>()?))
    })?;
    let names: Vec<&str> = networks.iter().map(|network| network.name).collect();
    let table = |name, title, of| table((name, title), &names, &variants, &runs, of);
    let tables = [
        table(
            "carried",
            "What came in time, in parts of what the links carry: of the default, and with another value",
            0,
        ),
        table("in_time", "What came in time, in parts of what was sent: of the default, and with another value", 1),
        table("restlessness", "How restless an encoder becomes: of the default, and with another value", 2),
    ];
    let mut verdicts = vec![none_is_better(&tables)];
    for (constant, _) in CONSTANTS {
        let mut all = Vec::new();
        for (at, variant) in variants.iter().enumerate().filter(|(_, variant)| variant.constant == *constant) {
            for (network, runs) in networks.iter().zip(&runs) {
                for (of, (measure, noticed, _)) in MEASURES.into_iter().enumerate() {
                    let difference = difference::<3>(at, of);
                    let what = format!("{}, {measure} in parts of {noticed} points, {}", variant.times, network.name);
                    all.push((what, runs.iter().map(|run| difference(run) / noticed).collect()));
                }
            }
        }
        let claim = format!("Half or twice of \"{constant}\" changes one of the measures by what is noticed of it.");
        verdicts.push(matters(constant, &claim, all, 1.0));
    }
    Ok(Report { tables: tables.into(), verdicts, ..Report::default() })
}

/// Whether another value brings something in the mean over all networks, and costs nothing.
fn none_is_better(tables: &[Table; 3]) -> Verdict {
    let claim = "No other value brings what is noticed of one measure, and costs less of each other one.";
    let verdict = Verdict::ours("none is better", claim);
    (1..tables[0].rows.len()).fold(verdict, |verdict, row| {
        let gains: Vec<Estimate> = tables
            .iter()
            .zip(MEASURES)
            .map(|(table, (_, noticed, is_good))| {
                let mean = Estimate::mean_of(table.rows[row].1.iter().map(Cell::estimate));
                mean * (if is_good { 1.0 } else { -1.0 } / noticed)
            })
            .collect();
        if gains.iter().any(|gain| gain.mean <= -1.0) {
            return verdict;
        }
        let best = gains.into_iter().max_by(|one, other| one.mean.total_cmp(&other.mean));
        verdict.at_most(&tables[0].rows[row].0.join(", "), best.unwrap_or_else(Estimate::unknown), 1.0)
    })
}
