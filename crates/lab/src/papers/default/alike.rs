//! Two links that are alike: for how long they are taken for one, and how soon one link is found beside them.
//!
//! # Claim
//!
//! Two separate links that are alike, or nearly so, with nothing else on them or one flow each, are called one for 1 % of
//! the time at most, and one link is found by the same connections within 5 s.
//!
//! # Topology
//!
//! ```text
//!          ┌── 5 to 50 Mbit/s, queue ──┐           ┌── path 1 ──┐
//!   ours ──┤                           ├── ours    ┤            ├── 5 to 50 Mbit/s, queue ── ours
//!          └── the same, or nearly ────┘           └── path 2 ──┘
//!   one flow on each of them, or none
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links | 5 to 50 Mbit/s, round trips of 10 to 100 ms, drop-tail queues of 10 to 200 ms, drawn by the seed, uniform in the logarithm | assumed |
//! | nearly alike | rate, round trip and queue of the second differ by up to 5 % | assumed |
//! | those of the demo | 20 Mbit/s, a round trip of 20 ms and a queue of 20 ms | assumed |
//! | the other flow | one of Reno, CUBIC and BBRv3, by the seed | assumed |
//! | time | 60 s | assumed |
//! | configuration | that of live connections: dips while in doubt | assumed |
//!
//! # Deviations
//!
//! - The quick form has two kinds of links, coupled CUBIC, two seeds and 20 s.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Scenario};
use fairpath_sim::SimError;

use super::said::Said;
use crate::{Cell, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, engine, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/alike", include_str!("alike.rs"), run);

/// A pair of links.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    name: &'static str,
    is_shared: bool,
    /// By up to which part the second differs.
    differ: f64,
    has_rival: bool,
    is_drawn: bool,
}

const SEPARATE: Kind = Kind { name: "alike", is_shared: false, differ: 0.0, has_rival: false, is_drawn: true };

const KINDS: [Kind; 7] = [
    SEPARATE,
    Kind { name: "one", is_shared: true, ..SEPARATE },
    Kind { name: "those of the demo", is_drawn: false, ..SEPARATE },
    Kind { name: "nearly alike", differ: 0.05, ..SEPARATE },
    Kind { name: "alike, a flow on each", has_rival: true, ..SEPARATE },
    Kind { name: "nearly alike, a flow on each", differ: 0.05, has_rival: true, ..SEPARATE },
    Kind { name: "one, a flow on it", is_shared: true, has_rival: true, ..SEPARATE },
];

/// Those that are looked at, and how they are called.
const CONGESTION: [(&str, &str); 3] =
    [("coupled_cubic", "coupled CUBIC"), ("lia", "LIA"), ("coupled_bbr3", "coupled BBRv3")];

const RIVALS: [&str; 3] = ["reno", "cubic", "bbr3"];

const COLUMNS: [(&str, &str); 5] = [
    ("together", "of the time"),
    ("verdicts of one link", "in an hour"),
    ("first, mean of those found", "s"),
    ("ever", "of the runs"),
    ("goodput", "Mbit/s"),
];

/// Random numbers.
struct Draw(u64);

impl Draw {
    /// From 0 up to but not including 1.
    // [Steele2014]
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between two numbers, uniform in the logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }
}

impl Kind {
    fn scenario(&self, congestion: &str, seed: u64, lasts: Duration) -> Scenario {
        let mut draw = Draw(seed);
        let mut net = Net::new(self.name, seed, Duration::ZERO, lasts);
        net.scenario.sample_every = ms(100);
        let drawn = [draw.between(5.0, 50.0), draw.between(10.0, 100.0), draw.between(10.0, 200.0)];
        let of_first = if self.is_drawn { drawn } else { [20.0, 20.0, 20.0] };
        let of_second = of_first.map(|number| number * (1.0 + self.differ * (2.0 * draw.unit() - 1.0)));
        let start = Duration::from_secs_f64(draw.unit());
        let bottleneck = |net: &mut Net, name: &str, [mbps, _, queue_ms]: [f64; 3]| {
            let queue = QueueConfig::sojourn(Duration::from_secs_f64(queue_ms / 1e3));
            net.link(name, LinkConfig::new(Bitrate::from_bps((mbps * 1e6) as u64)).queue(queue))
        };
        let first = bottleneck(&mut net, "bottleneck 0", of_first);
        let second = if self.is_shared { first } else { bottleneck(&mut net, "bottleneck 1", of_second) };
        let paths = [(first, of_first), (second, of_second)].map(|(narrow, [_, rtt_ms, _])| {
            let half = Duration::from_secs_f64(rtt_ms / 2e3);
            let access = net.link(&format!("access {}", net.scenario.links.len()), LinkConfig::pure_delay(half));
            let back = net.link(&format!("back {}", net.scenario.links.len()), LinkConfig::pure_delay(half));
            PathRoute { forward: vec![access, narrow], backward: vec![back] }
        });
        let live = EngineConfig { congestion: congestion.into(), coupling: Coupling::Auto, ..EngineConfig::live() };
        net.live("ours", live, &paths).start = start;
        let crossed = match (self.has_rival, self.is_shared) {
            (false, _) => &paths[..0],
            (true, true) => &paths[..1],
            (true, false) => &paths[..],
        };
        for path in crossed {
            let rival = engine(RIVALS[seed as usize % RIVALS.len()]);
            net.flow("rival", rival, core::slice::from_ref(path)).start_jitter = ms(1000);
        }
        net.scenario
    }
}

/// The engine's verdicts on such links, and the goodput in Mbit/s.
fn said(kind: &Kind, congestion: &str, seed: u64, lasts: Duration) -> Result<(Said, f64), SimError> {
    let mut said = Said::default();
    let outcome = fairpath_sim::run(&kind.scenario(congestion, seed, lasts), &mut said)?;
    Ok((said, outcome.flows[0].goodput.as_mbps_f64()))
}

/// How often in an hour they were taken for one; a sample is a tenth of a second.
fn in_an_hour(said: &Said) -> f64 {
    f64::from(said.verdicts) / (f64::from(said.samples) / 36_000.0)
}

fn run(context: &Context) -> Result<Report, Failure> {
    let lasts = Duration::from_secs(context.pick(20, 60));
    let kinds = &KINDS[..context.pick(2, KINDS.len())];
    let seeds = context.seeds(context.pick(2, 100));
    let (mut tables, mut verdicts) = (Vec::new(), Vec::new());
    for (congestion, title) in &CONGESTION[..context.pick(1, CONGESTION.len())] {
        let runs = context.sweep(kinds, &seeds, |kind, seed| said(kind, congestion, seed, lasts))?;
        let mut table = Table::new(congestion, &format!("What {title} takes for one link"), &["links"], &COLUMNS);
        for (kind, runs) in kinds.iter().zip(&runs) {
            let firsts = || runs.iter().filter_map(|(said, _)| said.first);
            let first = if firsts().next().is_some() {
                Cell::of(firsts().map(|first| first.as_secs_f64()))
            } else {
                Estimate::unknown().into()
            };
            let cells: [Cell; COLUMNS.len()] = [
                Cell::of(runs.iter().map(|(said, _)| said.part())),
                Cell::of(runs.iter().map(|(said, _)| in_an_hour(said))),
                first,
                Cell::of(runs.iter().map(|(said, _)| f64::from(u8::from(said.first.is_some())))),
                Cell::of(runs.iter().map(|(_, mbps)| *mbps)),
            ];
            table.row([kind.name], cells);
        }
        verdicts.extend(judge(congestion, title, kinds, &table));
        tables.push(table);
    }
    Ok(Report { tables, verdicts, ..Report::default() })
}

fn judge(congestion: &str, title: &str, kinds: &[Kind], table: &Table) -> [Verdict; 2] {
    let mut apart = Verdict::ours(
        &format!("{title}, apart"),
        &format!("{title}: separate links are one for 1 % of the time at most."),
    );
    let mut found = Verdict::ours(&format!("{title}, found"), &format!("{title}: one link is found within 5 s."));
    for kind in kinds {
        let of = |column: usize| table.estimate(&[kind.name], COLUMNS[column].0);
        if kind.is_shared {
            found = found.at_most(&format!("{}: first, mean, s", kind.name), of(2), 5.0);
        } else {
            apart = apart.at_most(&format!("{}: part of the time", kind.name), of(0), 0.01);
        }
    }
    let reason = "BBRv3 does without dips, and what it is coupled by probes on both paths at once: nothing gets two links \
                  alike out of step.";
    [if congestion == "coupled_bbr3" { apart.because(reason) } else { apart }, found]
}
