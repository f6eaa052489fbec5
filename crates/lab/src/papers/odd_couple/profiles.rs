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
//! | links | the sixteen pairs of mqvpn's report of 2026-06-18 | assumed, as there |
//! | delays | one way, on both directions, so that a round trip takes twice as long | assumed |
//! | jitter | normal, and packets overtake each other | assumed, as in netem |
//! | queues | 1,000 packets | assumed, netem's default |
//! | transfer | 20 MiB, once | assumed, as there |
//! | congestion control | LIA, coupled where a shared bottleneck is found, HyStart++ | assumed, our default |
//! | the tail | what slower paths carry at the end is sent again on a faster one, as over QUIC | assumed, our default |
//! | time | a transfer that takes longer than 120 s is counted with what had arrived by then | assumed |
//!
//! # Deviations
//!
//! - The rates of the report hold a tunnel's costs, and its congestion control is BBR. Compared are ratios to the better
//!   single link of the same run, never rates.
//! - A schedule of the report's own choosing is what a person found by hand for each pair.

use core::time::Duration;

use fairpath_core::{Bitrate, Bytes};
use fairpath_engine::EngineConfig;
use fairpath_net::{Jitter, JitterDistribution, LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Traffic};
use fairpath_sim::SimError;

use crate::table::Source;
use crate::{Cell, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/profiles", include_str!("profiles.rs"), run);

const SIZE: Bytes = Bytes::new(20 << 20);
const PATIENCE: Duration = Duration::from_secs(120);
/// netem's default.
const QUEUE_PACKETS: usize = 1_000;

/// A link: rate in Mbit/s, delay one way and its deviation in ms, share of packets lost.
#[derive(Clone, Copy, Debug)]
struct Link(u64, u64, u64, f64);

/// A pair of links, and what mqvpn has on the better one alone and at the best that a person found, in Mbit/s.
#[derive(Clone, Copy, Debug)]
struct Profile {
    name: &'static str,
    links: [Link; 2],
    best_single: f64,
    hand_picked: f64,
}

impl Profile {
    /// By how much the best that a person found is above the better link alone there. The rates have three digits.
    fn by_hand(&self) -> f64 {
        (self.hand_picked / self.best_single * 100.0).round() / 100.0
    }
}

const fn profile(name: &'static str, a: Link, b: Link, best_single: f64, hand_picked: f64) -> Profile {
    Profile { name, links: [a, b], best_single, hand_picked }
}

const PROFILES: [Profile; 16] = [
    profile("baseline", Link(50, 20, 0, 0.0), Link(50, 20, 0, 0.0), 40.6, 73.9),
    profile("rtt_40", Link(50, 20, 0, 0.0), Link(50, 40, 0, 0.0), 40.5, 45.7),
    profile("rtt_70", Link(50, 20, 0, 0.0), Link(50, 70, 0, 0.0), 40.6, 40.2),
    profile("rtt_120", Link(50, 20, 0, 0.0), Link(50, 120, 0, 0.0), 40.7, 40.6),
    profile("rtt_320", Link(50, 20, 0, 0.0), Link(50, 320, 0, 0.0), 40.3, 40.1),
    profile("jit_5", Link(50, 20, 5, 0.0), Link(50, 20, 5, 0.0), 38.8, 55.7),
    profile("jit_20", Link(50, 20, 20, 0.0), Link(50, 20, 20, 0.0), 17.4, 37.6),
    profile("loss_05", Link(50, 20, 0, 0.005), Link(50, 20, 0, 0.005), 32.2, 70.7),
    profile("loss_2", Link(50, 20, 0, 0.02), Link(50, 20, 0, 0.02), 16.3, 29.0),
    profile("bw_4to1", Link(50, 20, 0, 0.0), Link(12, 20, 0, 0.0), 40.6, 39.9),
    profile("bw_10to1", Link(100, 20, 0, 0.0), Link(10, 20, 0, 0.0), 74.2, 70.1),
    profile("dual_lte", Link(40, 30, 5, 0.005), Link(25, 45, 8, 0.005), 29.6, 29.6),
    profile("fiber_lte", Link(300, 8, 0, 0.0), Link(30, 40, 8, 0.005), 212.4, 212.3),
    profile("lte_starlink", Link(40, 35, 8, 0.0), Link(100, 50, 25, 0.01), 29.6, 27.2),
    profile("lte_geo", Link(40, 35, 0, 0.0), Link(20, 320, 20, 0.005), 31.7, 31.5),
    profile("congested", Link(20, 50, 20, 0.02), Link(15, 60, 25, 0.02), 6.4, 6.4),
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
    links: [Link; 2],
    over: &'static [usize],
    scheduler: &'static str,
}

impl Case {
    /// The goodput of the transfer, in Mbit/s.
    fn run(&self, seed: u64) -> Result<f64, SimError> {
        let mut net = Net::new("two links", seed, Duration::ZERO, PATIENCE);
        let paths: Vec<_> = self.over.iter().map(|at| route(&mut net, ["A", "B"][*at], self.links[*at])).collect();
        let engine = EngineConfig { scheduler: self.scheduler.into(), ..EngineConfig::live() };
        let flow = net.flow("transfer", engine, &paths);
        (flow.traffic, flow.transport.reinjection) = (Traffic::Finite { size: SIZE }, true);
        let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
        let flow = &outcome.flows[0];
        let took = flow.completions.first().copied().unwrap_or(PATIENCE);
        Ok(flow.delivered.as_f64() * 8e-6 / took.as_secs_f64())
    }
}

fn route(net: &mut Net, name: &str, Link(mbps, delay, deviation, loss): Link) -> PathRoute {
    let mut config =
        LinkConfig::new(Bitrate::from_mbps(mbps)).delay(ms(delay)).queue(QueueConfig::packets(QUEUE_PACKETS));
    if deviation > 0 {
        config = config.jitter(Jitter::new(JitterDistribution::Normal, ms(deviation)).overtaking());
    }
    if loss > 0.0 {
        config = config.loss(LossConfig::Random { probability: loss });
    }
    let there = net.link(name, config.clone());
    let back = net.link(&format!("{name} back"), config);
    PathRoute { forward: vec![there], backward: vec![back] }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let profiles: Vec<Profile> = context.pick(vec![PROFILES[0], PROFILES[4], PROFILES[10]], PROFILES.to_vec());
    let case = |profile: &Profile| BONDS.map(|(_, over, scheduler)| Case { links: profile.links, over, scheduler });
    let cases: Vec<Case> = profiles.iter().flat_map(case).collect();
    let seen = context.sweep(&cases, &context.seeds(context.pick(2, 10)), Case::run)?;
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
        &[("min_rtt", ""), ("blest", ""), ("ecf", ""), ("arrival", "")],
    );
    for (profile, runs) in profiles.iter().zip(seen.chunks(BONDS.len())) {
        rates.row(
            [profile.name],
            core::array::from_fn::<_, { BONDS.len() }, _>(|at| Cell::of(runs[at].iter().copied())),
        );
        let single = |seed: usize| runs[0][seed].max(runs[1][seed]);
        let ratio = |at: usize| Cell::of(runs[at].iter().enumerate().map(|(seed, rate)| rate / single(seed)));
        ratios
            .row([profile.name], [ratio(2), ratio(3), ratio(4), ratio(5).elsewhere(Source::Mqvpn, profile.by_hand())]);
    }
    let verdicts = verdicts(&profiles, &ratios);
    Ok(Report { tables: vec![rates, ratios], figures: Vec::new(), verdicts, notes: Vec::new() })
}

/// A bond is not slower than its better link where it has so much of it.
const NO_SLOWER: f64 = 0.97;

fn verdicts(profiles: &[Profile], ratios: &Table) -> Vec<Verdict> {
    let mut no_slower = Verdict::ours("never slower", "With `arrival` a bond has at least 0.97 of its better link.");
    let mut better =
        Verdict::ours("better than by hand", "With `arrival` a bond gains more than mqvpn's does at its best.");
    for profile in profiles {
        let ratio: Estimate = ratios.estimate(&[profile.name], "arrival");
        no_slower =
            no_slower.at_least(&format!("{}, in parts of the better link", profile.name), ratio.clone(), NO_SLOWER);
        better = better.at_least(
            &format!("{}, above mqvpn's best", profile.name),
            ratio - Estimate::from(profile.by_hand()),
            0.0,
        );
    }
    vec![no_slower, better]
}
