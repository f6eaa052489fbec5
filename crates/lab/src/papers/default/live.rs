//! The constants of the sender of live streams, with each of them halved and doubled.
//!
//! # Claim
//!
//! Each constant matters for what comes in time, for what that costs, or for how much an encoder can carry.
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
//! | streams | six networks of `default/deadline`, and two more; tables `in_time` and `cost` name them | assumed |
//! | goes dark | 100 kbit/s; the first path loses all in every second span of 3 s; it has 40 ms, the other 60 ms | assumed |
//! | the other dear | the same, where the path that stays costs something | assumed |
//! | encoders | three networks of `default/budget`: an encoder that always sends what the budget allows | assumed |
//! | congestion control | coupled CUBIC, coupled where a shared bottleneck is found | assumed: our default |
//! | duration | 35 s after the first 5 or 10; of a start the first 10 s | assumed |
//!
//! # Deviations
//!
//! - A cell is the difference to the default, seed by seed.
//! - Some of so many cells differ by chance: the first half of the seeds chooses the cell of a claim, the second judges it.
//! - The quick form has one of the networks, for 10 s, and judges one of the constants.

use core::time::Duration;

use fairpath_scenario::{Live, LiveParameters};
use fairpath_sim::SimError;

use super::budget::{self, MEASURES};
use super::deadline::{self, Line, Loss};
use super::halved::{Constant, Run, Variant, count, difference, matters, table, variants};
use crate::{Context, Experiment, Failure, Report};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/live", include_str!("live.rs"), run);

const CONSTANTS: &[Constant<LiveParameters>] = &[
    ("span parts", |all, times| all.span_parts = count(all.span_parts, times)),
    ("residual", |all, times| all.residual *= times),
    ("protected min", |all, times| all.protected_min = count(all.protected_min, times)),
    ("burst", |all, times| all.burst = all.burst.mul_f64(times)),
    ("by chance", |all, times| all.by_chance *= times),
    ("loss max", |all, times| all.loss_max *= times),
    ("varies", |all, times| all.varies = all.varies.mul_f64(times)),
    ("solve every", |all, times| all.solve_every = all.solve_every.mul_f64(times)),
    ("waits", |all, times| all.waits = count(all.waits, times)),
    ("late max", |all, times| all.late_max *= times),
    ("probing", |all, times| all.probing *= times),
    ("probe every", |all, times| all.probe_every = all.probe_every.mul_f64(times)),
    ("dear probe every", |all, times| all.dear_probe_every = all.dear_probe_every.mul_f64(times)),
    ("delays for", |all, times| all.delays_for = all.delays_for.mul_f64(times)),
    ("newest for", |all, times| all.newest_for = all.newest_for.mul_f64(times)),
];

/// The one that the quick form judges.
const QUICK: &str = "dear probe every";

/// A difference in points of a hundred that counts: of a thousand packets, two.
const NOTICED: f64 = 0.2;

fn streams() -> Vec<deadline::Network> {
    let dark = Line::new(10, 40, Loss::InTurns(1.0));
    let other = Line::new(10, 60, Loss::Random(0.002));
    let goes_dark = deadline::Network { name: "goes dark", lines: [dark, other], kbps: 100, deadline_ms: 300 };
    let mut networks = vec![
        deadline::Network { name: "goes dark, the other dear", lines: [dark, Line { cost: 1, ..other }], ..goes_dark },
        goes_dark,
    ];
    networks.extend([1, 2, 3, 5, 6, 7].map(|at| deadline::NETWORKS[at]));
    networks
}

fn run(context: &Context) -> Result<Report, Failure> {
    let is_quick = context.pick(true, false);
    let streams: Vec<_> = streams().into_iter().take(context.pick(1, usize::MAX)).collect();
    let encoders = context.pick(vec![], [2, 3, 5].map(|at| budget::NETWORKS[at]).to_vec());
    let duration = Duration::from_secs(context.pick(10, 35));
    let is_meant = |name: &str| !is_quick || name == QUICK;
    let variants: Vec<Variant<LiveParameters>> =
        variants(CONSTANTS).filter(|variant| is_meant(variant.constant)).collect();
    let seeds = context.seeds(context.pick(4, 8));
    let live = |parameters| Live { parameters, ..Live::default() };
    let of_streams: Vec<Vec<Run<2>>> = context.sweep(&streams, &seeds, |network, seed| {
        let changed = variants.iter().map(|one| network.run(live(one.parameters), seed, duration));
        let changed = changed.collect::<Result<_, SimError>>()?;
        Ok((network.run(live(LiveParameters::default()), seed, duration)?, changed))
    })?;
    let of_encoders: Vec<Vec<Run<3>>> = context.sweep(&encoders, &seeds, |network, seed| {
        let changed = variants.iter().map(|one| network.run(live(one.parameters), seed, duration));
        let changed = changed.collect::<Result<_, SimError>>()?;
        Ok((network.run(live(LiveParameters::default()), seed, duration)?, changed))
    })?;
    let stream_names: Vec<&str> = streams.iter().map(|network| network.name).collect();
    let encoder_names: Vec<&str> = encoders.iter().map(|network| network.name).collect();
    let stream = |name, title, of| table((name, title), &stream_names, &variants, &of_streams, of);
    let encoder = |name, title, of| table((name, title), &encoder_names, &variants, &of_encoders, of);
    let mut tables = vec![
        stream("in_time", "Packets in time: of the default, and how much more with another value", 0),
        stream("cost", "The cost: of the default, and how much more with another value", 1),
    ];
    if !is_quick {
        tables.extend([
            encoder("carried", "What came in time, in parts of what the links carry: the same of an encoder", 0),
            encoder("encoder_in_time", "What came in time, in parts of what was sent: the same", 1),
            encoder("restlessness", "How restless an encoder becomes: the same", 2),
        ]);
    }
    let mut verdicts = Vec::new();
    for (constant, _) in CONSTANTS.iter().filter(|(constant, _)| is_meant(constant)) {
        let mut all = Vec::new();
        for (at, variant) in variants.iter().enumerate().filter(|(_, variant)| variant.constant == *constant) {
            for (network, runs) in streams.iter().zip(&of_streams) {
                for (of, measure) in ["in time", "cost"].into_iter().enumerate() {
                    let what = format!("{}, {measure} in parts of {NOTICED} points, {}", variant.times, network.name);
                    all.push((what, runs.iter().map(|run| difference::<2>(at, of)(run) / NOTICED).collect()));
                }
            }
            for (network, runs) in encoders.iter().zip(&of_encoders) {
                for (of, (measure, noticed, _)) in MEASURES.into_iter().enumerate() {
                    let what = format!("{}, {measure} in parts of {noticed} points, {}", variant.times, network.name);
                    all.push((what, runs.iter().map(|run| difference::<3>(at, of)(run) / noticed).collect()));
                }
            }
        }
        let claim = format!("Half or twice of \"{constant}\" changes one of the measures by what is noticed of it.");
        verdicts.push(matters(constant, &claim, all, 1.0));
    }
    Ok(Report { tables, verdicts, ..Report::default() })
}
