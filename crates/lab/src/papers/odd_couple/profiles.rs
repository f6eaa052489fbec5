//! Sixteen pairs of links on which a bond is slower than its better link.
//!
//! # Claim
//!
//! A bond is never slower than its better link, whatever the two are like, and without a choice of options.
//!
//! # Topology
//!
//! ```text
//!            ┌── A: rate, delay, jitter, loss ──┐
//!   sender ──┤                                  ├── receiver
//!            └── B: rate, delay, jitter, loss ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links | the sixteen pairs of mqvpn's report of 2026-06-18, `scenarios/profiles/` | assumed, as there |
//! | delays | one way, on both directions, so that a round trip takes twice as long | assumed |
//! | jitter | normal, and packets overtake each other | assumed, as in netem |
//! | queues | 1,000 packets | assumed, netem's default |
//! | transfer | 20 MiB, once; and as much as goes in 60 s, in the quick form 20 s | assumed, as there |
//! | congestion control | coupled CUBIC, coupled where a shared bottleneck is found, HyStart++ | assumed, our default |
//! | the tail | what slower paths carry at the end is sent again on a faster one, as over QUIC | assumed, our default |
//! | time | a transfer that takes longer than 120 s is counted with what had arrived by then | assumed |
//! | the bound | when both links alone would together have brought 20 MiB, from the first round trip on | assumed |
//!
//! # Deviations
//!
//! - The rates of the report hold a tunnel's costs, and its congestion control is BBR. Compared are ratios to the better
//!   single link of the same run, never rates.
//! - A schedule of the report's own choosing is what a person found by hand for each pair.
//! - The bound is none for windows that coupling makes smaller than those of a link alone, nor for what is sent twice:
//!   it counts what arrived, from runs that have other losses than the bond's.

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};
use fairpath_engine::EngineConfig;
use fairpath_scenario::{Scenario, ScenarioFile, Traffic};
use fairpath_sim::{Recorder, SimError, Simulation, View};
use serde::{Deserialize, Serialize};

use crate::table::Source;
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/profiles", include_str!("profiles.rs"), run);

const SIZE: ByteCount = ByteCount::new(20 << 20);
/// A transfer that takes longer is counted with what had arrived by then.
pub(in crate::papers) const PATIENCE: Duration = Duration::from_secs(120);

/// A pair of links, and what mqvpn has on the better one alone and at the best that a person found, in Mbit/s.
#[derive(Clone, Copy, Debug)]
pub(in crate::papers) struct Profile {
    pub(in crate::papers) name: &'static str,
    text: &'static str,
    best_single: f64,
    hand_picked: f64,
}

impl Profile {
    /// The scenario in its file.
    pub(in crate::papers) fn scenario(&self, seed: u64) -> Scenario {
        let file = ScenarioFile::parse(self.text, self.name).expect("a test reads all files");
        file.expand(Some(seed)).expect("a test expands all files")
    }

    /// A transfer of 20 MiB by such an engine over some of the links, counted from its beginning.
    pub(in crate::papers) fn transfer(&self, engine: EngineConfig, over: &[usize], seed: u64) -> Scenario {
        let mut scenario = self.scenario(seed);
        let flow = &mut scenario.flows[0];
        flow.paths = over.iter().map(|at| flow.paths[*at].clone()).collect();
        flow.as_live(engine);
        (scenario.duration, scenario.warm_up, scenario.sample_every) = (PATIENCE, Duration::ZERO, Duration::ZERO);
        scenario
    }

    /// Whether a link loses packets at random.
    fn is_lossy(&self) -> bool {
        self.text.contains("\nloss = ")
    }

    /// By how much the best that a person found is above the better link alone there. The rates have three digits.
    fn by_hand(&self) -> f64 {
        (self.hand_picked / self.best_single * 100.0).round() / 100.0
    }
}

/// A pair of links by the name of its file.
macro_rules! profile {
    ($name:literal, $best_single:literal, $hand_picked:literal) => {
        Profile {
            name: $name,
            text: include_str!(concat!("../../../profiles/", $name, ".toml")),
            best_single: $best_single,
            hand_picked: $hand_picked,
        }
    };
}

pub(in crate::papers) const PROFILES: [Profile; 16] = [
    profile!("baseline", 40.6, 73.9),
    profile!("rtt_40", 40.5, 45.7),
    profile!("rtt_70", 40.6, 40.2),
    profile!("rtt_120", 40.7, 40.6),
    profile!("rtt_320", 40.3, 40.1),
    profile!("jit_5", 38.8, 55.7),
    profile!("jit_20", 17.4, 37.6),
    profile!("loss_05", 32.2, 70.7),
    profile!("loss_2", 16.3, 29.0),
    profile!("bw_4to1", 40.6, 39.9),
    profile!("bw_10to1", 74.2, 70.1),
    profile!("dual_lte", 29.6, 29.6),
    profile!("fiber_lte", 212.4, 212.3),
    profile!("lte_starlink", 29.6, 27.2),
    profile!("lte_geo", 31.7, 31.5),
    profile!("congested", 6.4, 6.4),
];

/// Over which of the links, and with which scheduler.
const BONDS: [(&str, &[usize], &str); 6] = [
    ("A alone", &[0], "min_rtt"),
    ("B alone", &[1], "min_rtt"),
    ("min_rtt", &[0, 1], "min_rtt"),
    ("blest", &[0, 1], "blest"),
    ("ecf", &[0, 1], "ecf"),
    ("arrival", &[0, 1], "arrival"),
];

/// A run of one bond over one pair.
#[derive(Clone, Copy, Debug)]
struct Case {
    profile: Profile,
    over: &'static [usize],
    scheduler: &'static str,
}

impl Case {
    fn scenario(&self, seed: u64) -> Scenario {
        let engine = EngineConfig { scheduler: self.scheduler.into(), ..EngineConfig::live() };
        self.profile.transfer(engine, self.over, seed)
    }

    /// The transfer, and where one link carries it how that arrived.
    fn run(&self, seed: u64) -> Result<Transfer, SimError> {
        let mut scenario = self.scenario(seed);
        let mut arrivals = Arrivals::default();
        if self.over.len() == 1 {
            scenario.sample_every = ms(10);
        }
        let mut simulation = Simulation::new(&scenario)?;
        simulation.run(&mut arrivals)?;
        let flow = &simulation.outcome().flows[0];
        let took = flow.completions.first().copied().unwrap_or(PATIENCE);
        Ok(Transfer { mbps: flow.delivered.as_f64() * 8e-6 / took.as_secs_f64(), arrivals })
    }

    /// The goodput over such a time, in Mbit/s.
    fn lasting(&self, seed: u64, lasts: Duration) -> Result<f64, SimError> {
        let mut scenario = self.scenario(seed);
        scenario.duration = lasts;
        scenario.flows[0].traffic = Traffic::Bulk;
        Ok(fairpath_sim::run(&scenario, &mut ())?.flows[0].goodput.as_mbps_f64())
    }
}

/// The result of a transfer.
#[derive(Debug, Serialize, Deserialize)]
struct Transfer {
    mbps: f64,
    arrivals: Arrivals,
}

/// How much had arrived over the first link of a scenario, a hundredth of a second apart, in bytes of payload.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Arrivals(Vec<f64>);

impl Recorder for Arrivals {
    fn on_sample(&mut self, _: Timestamp, view: &View<'_>) {
        let link = view.scenario().flows[0].paths[0].forward[0].0 as usize;
        let Some((_, stats)) = view.links().nth(link) else { return };
        self.0.push(stats.delivered.bytes.as_f64() * 1_448.0 / 1_500.0);
    }
}

/// How fast the transfer would be if each link brought what it brings alone, in Mbit/s.
fn bound(alone: [&Arrivals; 2]) -> f64 {
    let at = |arrivals: &Arrivals, step: usize| arrivals.0.get(step).or(arrivals.0.last()).copied().unwrap_or(0.0);
    let steps = alone[0].0.len().max(alone[1].0.len());
    let enough = |step: &usize| at(alone[0], *step) + at(alone[1], *step) >= SIZE.as_f64();
    let needed = (0..steps).find(enough).unwrap_or(steps) + 1;
    SIZE.as_f64() * 8e-6 / (needed as f64 * 0.01)
}

fn run(context: &Context) -> Result<Report, Failure> {
    let profiles: Vec<Profile> = context.pick(vec![PROFILES[0], PROFILES[4], PROFILES[10]], PROFILES.to_vec());
    let case = |profile: &Profile| BONDS.map(|(_, over, scheduler)| Case { profile: *profile, over, scheduler });
    let cases: Vec<Case> = profiles.iter().flat_map(case).collect();
    let seeds = context.seeds(context.pick(2, 10));
    let seen = context.sweep(&cases, &seeds, Case::run)?;
    let mut rates = Table::new(
        "rates",
        "20 MiB over two links, and over each alone",
        &["profile"],
        &BONDS.map(|(title, ..)| (title, "Mbit/s")),
    );
    let mut ratios = Table::new(
        "ratios",
        "In parts of the better link alone, run by run",
        &["profile"],
        &[("min_rtt", ""), ("blest", ""), ("ecf", ""), ("arrival", ""), ("the bound", "")],
    );
    for (profile, runs) in profiles.iter().zip(seen.chunks(BONDS.len())) {
        let rate = |at: usize| Cell::of(runs[at].iter().map(|run| run.mbps));
        rates.row([profile.name], core::array::from_fn::<_, { BONDS.len() }, _>(rate));
        let single = |seed: usize| runs[0][seed].mbps.max(runs[1][seed].mbps);
        let ratio = |at: usize| Cell::of(runs[at].iter().enumerate().map(|(seed, run)| run.mbps / single(seed)));
        let bounds = (0..seeds.len()).map(|seed| bound([0, 1].map(|at| &runs[at][seed].arrivals)) / single(seed));
        let ours = ratio(5).elsewhere(Source::Mqvpn, profile.by_hand());
        ratios.row([profile.name], [ratio(2), ratio(3), ratio(4), ours, Cell::of(bounds)]);
    }
    let long = long(context, &profiles)?;
    let mut verdicts = verdicts(&profiles, &ratios);
    verdicts.extend(long_verdicts(&profiles, &long));
    Ok(Report { tables: vec![rates, ratios, long], verdicts, ..Report::default() })
}

/// A minute over each link alone, and over both.
fn long(context: &Context, profiles: &[Profile]) -> Result<Table, Failure> {
    let bonds = [BONDS[0], BONDS[1], BONDS[2], BONDS[5]];
    let case = |profile: &Profile| bonds.map(|(_, over, scheduler)| Case { profile: *profile, over, scheduler });
    let cases: Vec<Case> = profiles.iter().flat_map(case).collect();
    let lasts = Duration::from_secs(context.pick(20, 60));
    let seen = context.sweep(&cases, &context.seeds(context.pick(2, 5)), |case, seed| case.lasting(seed, lasts))?;
    let columns = [("A alone", "Mbit/s"), ("B alone", "Mbit/s"), ("min_rtt", "of the sum"), ("arrival", "of the sum")];
    let title = format!("{} s over two links, in parts of the sum of both alone", lasts.as_secs());
    let mut table = Table::new("minute", &title, &["profile"], &columns);
    for (profile, runs) in profiles.iter().zip(seen.chunks(bonds.len())) {
        let alone = |at: usize| Cell::of(runs[at].iter().copied());
        let share = |at: usize| {
            Cell::of(runs[at].iter().enumerate().map(|(seed, rate)| rate / (runs[0][seed] + runs[1][seed])))
        };
        table.row([profile.name], [alone(0), alone(1), share(2), share(3)]);
    }
    Ok(table)
}

/// The goal of a long transfer, as a share of the sum of both links: without and with losses.
const OF_THE_SUM: (f64, f64) = (0.90, 0.80);

fn long_verdicts(profiles: &[Profile], long: &Table) -> Vec<Verdict> {
    let mut clean =
        Verdict::ours("the sum, without loss", "A long transfer has 0.90 of the sum where no packets are lost.");
    let mut lossy =
        Verdict::ours("the sum, with losses", "A long transfer has 0.80 of the sum where packets are lost.");
    let any_lossy = profiles.iter().any(Profile::is_lossy);
    for profile in profiles {
        let share = long.estimate(&[profile.name], "arrival");
        if profile.is_lossy() {
            lossy = lossy.at_least(&format!("{}, of the sum", profile.name), share, OF_THE_SUM.1);
        } else {
            clean = clean.at_least(&format!("{}, of the sum", profile.name), share, OF_THE_SUM.0);
        }
    }
    if any_lossy { vec![clean, lossy] } else { vec![clean] }
}

/// A bond is not slower than its better link where it has so much of it.
const NO_SLOWER: f64 = 0.97;

/// A bond gains more than mqvpn's does at its best in so many of so many pairs.
const BETTER: (usize, usize) = (14, 16);

fn verdicts(profiles: &[Profile], ratios: &Table) -> Vec<Verdict> {
    let mut no_slower = Verdict::ours("never slower", "With `arrival` a bond has at least 0.97 of its better link.");
    let mut gains = Vec::new();
    for profile in profiles {
        let ratio: Estimate = ratios.estimate(&[profile.name], "arrival");
        no_slower =
            no_slower.at_least(&format!("{}, in parts of the better link", profile.name), ratio.clone(), NO_SLOWER);
        gains.push((format!("{}, above mqvpn's best", profile.name), ratio - Estimate::from(profile.by_hand())));
    }
    // That many pairs are better if the best that many are.
    gains.sort_by(|(_, one), (_, other)| other.mean.total_cmp(&one.mean));
    gains.truncate((gains.len() * BETTER.0).div_ceil(BETTER.1));
    let claim = "With `arrival` a bond gains more than mqvpn's does at its best in 14 of 16 pairs, these.";
    let better = Verdict::ours("better than by hand", claim);
    let better = gains.into_iter().fold(better, |better, (what, gain)| better.at_least(&what, gain, 0.0));
    vec![no_slower, better]
}
