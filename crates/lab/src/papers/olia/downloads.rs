//! Download times over Wi-Fi and a cellular network, by size (slide 19).
//!
//! # Claim
//!
//! Downloads by LIA and OLIA take about as long as over the better single path, large ones less, and OLIA is no slower
//! than LIA.
//!
//! # Topology
//!
//! ```text
//!            ┌── Wi-Fi: 20 Mbit/s, 30 ms, bursts of losses ─────┐
//!   server ──┤                                                  ├── client
//!            └── cellular: its rate varies, 70 ms, deep queue ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | sizes | 8 kB, 64 kB, 512 kB, 4 MB and 16 MB | assumed: those of the measurements that the slide shows, from memory |
//! | Wi-Fi | 20 Mbit/s, a round trip of 30 ms, a queue of 100 packets | assumed: a home's |
//! | its losses | 0.5 % of the packets, in bursts of 4 [Gilbert1960] | assumed |
//! | cellular, as modelled | 10 Mbit/s on average, log-normal, σ = 0.5, forgotten in 3 s | assumed |
//! | cellular, as recorded | the downlinks of AT&T, T-Mobile and Verizon, as recorded for Mahimahi | assumed |
//! | begin of a recording | seed n: 29 n s after its own | assumed |
//! | cellular, beside its rate | a round trip of 70 ms, a queue of 1,000 packets, nothing lost | assumed: it repeats what is lost |
//! | single paths | TCP | assumed, as there |
//! | scheduling | min-RTT | assumed, as there |
//! | patience | a download that takes longer than 120 s counts as that | assumed |
//!
//! # Deviations
//!
//! - The slide shows measurements of 2013 in a picture, and its text has no numbers: the networks are ours.
//! - Connections are open when the time begins, and both paths at once. A second subflow of MPTCP joins a round trip
//!   later, so the smallest files are over before that.
//! - Recordings are used in the full form, where they are beside this project, in `shared/traces`.

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::{GilbertElliott, LinkConfig, LossConfig, MahimahiTrace, QueueConfig, Rate};
use fairpath_scenario::{PathRoute, Scenario, Traffic};
use fairpath_sim::SimError;

use super::algorithms::{Algorithm, LIA, OLIA, TCP, UNCOUPLED};
use crate::papers::cellular::{self, OPERATORS};
use crate::{
    Axis, BarSeries, Cell, Context, Effort, Estimate, Experiment, Failure, Figure, Net, Report, Table, Verdict,
};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("olia/downloads", include_str!("downloads.rs"), run).left_to_full(&["large_ones_gain"]);

const SIZES: [(&str, u64); 5] = [("8 kB", 8), ("64 kB", 64), ("512 kB", 512), ("4 MB", 4_000), ("16 MB", 16_000)];
const PATIENCE: Duration = Duration::from_secs(120);
const WIFI_RTT: Duration = Duration::from_millis(30);
const CELLULAR_RTT: Duration = Duration::from_millis(70);
/// 0.5 % in bursts of 4: p / (p + r) = 0.005 with r = 1/4.
const LOSSES: GilbertElliott =
    GilbertElliott { good_to_bad: 0.25 * 0.005 / 0.995, bad_to_good: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };

/// Over which of the paths, and by which algorithm.
type Way = (&'static str, &'static [usize], Algorithm);

const WAYS: [Way; 5] = [
    ("Wi-Fi", &[0], TCP),
    ("cellular", &[1], TCP),
    (LIA.title, &[0, 1], LIA),
    (OLIA.title, &[0, 1], OLIA),
    (UNCOUPLED.title, &[0, 1], UNCOUPLED),
];

/// A cellular network: as modelled, or as recorded.
#[derive(Clone)]
struct Cellular {
    name: &'static str,
    recorded: Option<Arc<MahimahiTrace>>,
}

impl core::fmt::Debug for Cellular {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

#[derive(Clone, Debug)]
struct Case {
    cellular: Cellular,
    kilobytes: u64,
    way: Way,
}

impl Case {
    fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new("a download", seed, Duration::ZERO, PATIENCE);
        let rate = match &self.cellular.recorded {
            Some(trace) => cellular::beginning(trace, 1, seed),
            None => cellular::modelled(Bitrate::from_mbps(10), "cellular", seed, PATIENCE),
        };
        let wifi = LinkConfig::new(Rate::Fixed(Bitrate::from_mbps(20))).queue(QueueConfig::packets(100));
        let wifi = wifi.loss(LossConfig::GilbertElliott(LOSSES));
        let links = [(wifi, WIFI_RTT), (LinkConfig::new(rate).queue(QueueConfig::packets(1_000)), CELLULAR_RTT)];
        let path = |(name, (there, rtt)): (&str, (LinkConfig, Duration))| {
            let there = net.link(name, there.delay(rtt / 2));
            let back = net.link(&format!("{name} back"), LinkConfig::pure_delay(rtt / 2));
            PathRoute { forward: vec![there], backward: vec![back] }
        };
        let paths: Vec<PathRoute> = ["Wi-Fi", "cellular"].into_iter().zip(links).map(path).collect();
        let over: Vec<PathRoute> = self.way.1.iter().map(|at| paths[*at].clone()).collect();
        let flow = net.flow("download", self.way.2.tcp(), &over);
        flow.traffic = Traffic::Finite { size: ByteCount::from_kilobytes(self.kilobytes) };
        net.scenario
    }

    /// How long the download takes, in seconds.
    fn run(&self, seed: u64) -> Result<f64, SimError> {
        let outcome = fairpath_sim::run(&self.scenario(seed), &mut ())?;
        Ok(outcome.flows[0].completions.first().copied().unwrap_or(PATIENCE).as_secs_f64())
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let (mut networks, mut missing) = (vec![Cellular { name: "modelled", recorded: None }], Vec::new());
    if context.effort() == Effort::Full {
        match cellular::recorded(&cellular::folder(), "down") {
            Ok(traces) => networks.extend(
                OPERATORS.iter().zip(traces).map(|((name, _), trace)| Cellular { name, recorded: Some(trace) }),
            ),
            Err(error) => missing.push(format!("{error}: cellular networks are modelled only.")),
        }
    }
    let sizes = context.pick(vec![SIZES[1], SIZES[3]], SIZES.to_vec());
    let rows: Vec<(Cellular, (&str, u64))> =
        networks.iter().flat_map(|network| sizes.iter().map(|size| (network.clone(), *size))).collect();
    let cases: Vec<Case> = rows
        .iter()
        .flat_map(|(network, (_, kilobytes))| {
            WAYS.map(|way| Case { cellular: network.clone(), kilobytes: *kilobytes, way })
        })
        .collect();
    let seen = context.sweep(&cases, &context.seeds(context.pick(12, 40)), Case::run)?;
    let mut table =
        Table::new("times", "Download times", &["cellular network", "size"], &WAYS.map(|(title, ..)| (title, "s")));
    for ((network, (size, _)), runs) in rows.iter().zip(seen.chunks(WAYS.len())) {
        let cells: [Cell; WAYS.len()] = core::array::from_fn(|way| Cell::of(runs[way].iter().copied()));
        table.row([network.name, size], cells);
    }
    let heads: Vec<(&str, &str, u64)> = rows.iter().map(|(network, (size, kb))| (network.name, *size, *kb)).collect();
    let verdicts = verdicts(&table, &heads);
    let figures = vec![figure(&table, &sizes)];
    Ok(Report { tables: vec![table], figures, verdicts, missing, ..Report::default() })
}

/// A tenth of the time is what a user may not notice.
const TOLERANCE: f64 = 1.1;
/// Downloads from this size on are large: many round trips long.
const LARGE_KB: u64 = 4_000;

fn verdicts(table: &Table, rows: &[(&str, &str, u64)]) -> Vec<Verdict> {
    let mut fast = Verdict::new("olia_is_as_fast", "Downloads by OLIA take no longer than by LIA, by a tenth.");
    let mut near =
        Verdict::ours("near_the_better", "They take no longer than over the better single path, by a tenth.");
    let mut gain = Verdict::ours("large_ones_gain", "Large ones take less than over the better single path.");
    for (network, size, kilobytes) in rows {
        let of = |way: &str| table.estimate(&[network, size], way);
        let better = Estimate::smallest([of(WAYS[0].0), of(WAYS[1].0)]);
        let at = |what: &str| format!("{network}, {size}: {what}");
        fast = fast.at_most(&at("OLIA / LIA"), of(OLIA.title) / of(LIA.title), TOLERANCE);
        for way in [LIA.title, OLIA.title] {
            let ratio = of(way) / better.clone();
            near = near.at_most(&at(&format!("{way} / better single path")), ratio.clone(), TOLERANCE);
            if *kilobytes >= LARGE_KB {
                gain = gain.at_most(&at(&format!("{way} / better single path")), ratio, 0.9);
            }
        }
    }
    vec![fast, near, gain]
}

fn figure(table: &Table, sizes: &[(&str, u64)]) -> Figure {
    let colours = ["cubic", "uncoupled", LIA.colour, OLIA.colour, "reno"];
    sizes.iter().fold(
        Figure::new("downloads", "Download times over Wi-Fi and a modelled cellular network"),
        |figure, (size, _)| {
            let bar = |((title, ..), colour): (&Way, &str)| {
                let cell = table.cell(&["modelled", size], title).cloned().unwrap_or_default();
                BarSeries::new(title, colour, [cell])
            };
            figure.bars(size, Axis::new("mean time", "s"), &[size], WAYS.iter().zip(colours).map(bar).collect())
        },
    )
}
