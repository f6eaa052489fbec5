//! How friendly a stream is to TCP, by what is measured of both.
//!
//! # Claim
//!
//! On any set of its paths a stream takes no more than a TCP does on the best of them.
//!
//! # Topology
//!
//! ```text
//!            ┌── 40 ms ──┐
//!   stream ──┼── 60 ms ──┼── player    the three share one link, have one each, or the first two share one;
//!            └── 90 ms ──┘             two TCP flows take each way
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links | 12 Mbit/s where three ways share, 8 where two do, 4 where one has a link alone | assumed: about 1.3 Mbit/s for each flow |
//! | queues | drop-tail of 100 ms, or RED: from 20 to 60 ms up to 10 %, gentle | assumed |
//! | jitter | a packet's transmission on each way there | assumed, as [Floyd1992] advises: full queues else meet packets of TCPs, which come in step with those that leave, more often than the stream's |
//! | TCP | Reno, two on each way | assumed |
//! | the stream | an encoder that follows its budget, 300 ms | assumed |
//! | its paths | one group; each by itself, where the bottleneck is hidden; or as detected | assumed |
//! | duration | 80 s, of which the first 20 are left out; over time in windows of 10 s | assumed |
//!
//! # Deviations
//!
//! - A TCP's rate on a path is what the two on the same way have on average beside the stream. The stream's is all that it
//!   sends and that arrives: data, repair and copies.
//! - As one group the stream must keep eq. (1) on all sets; where bottlenecks are separate that is more than
//!   fairness asks for. As what is detected it must keep it on each path, and on those that share.
//! - The quick form has one shared link with drop-tail, for 30 s.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig, QueueLimit, RedConfig};
use fairpath_scenario::{LinkIndex, PathRoute, Traffic};
use fairpath_sim::{Recorder, SimError, View};
use serde::{Deserialize, Serialize};

use super::live::{Policy, live};
use crate::{Cell, Context, Estimate, Experiment, Failure, Net, Report, Table, Verdict, engine, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tfrc_multipath/friendly", include_str!("friendly.rs"), run);

const PATHS: usize = 3;
const RTTS: [u64; PATHS] = [40, 60, 90];

/// How many TCP flows take each way.
const TCPS: usize = 2;

const WINDOW: Duration = Duration::from_secs(10);

/// By how much the stream may be above: a TCP's own rate over a minute is known to about a tenth.
const MARGIN: f64 = 1.10;

/// How the paths share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Links {
    Shared,
    Separate,
    FirstTwo,
}

impl Links {
    const fn name(self) -> &'static str {
        match self {
            Self::Shared => "one for all",
            Self::Separate => "one each",
            Self::FirstTwo => "two share",
        }
    }

    const fn of(self) -> [usize; PATHS] {
        match self {
            Self::Shared => [0, 0, 0],
            Self::Separate => [0, 1, 2],
            Self::FirstTwo => [0, 0, 1],
        }
    }

    /// 4 Mbit/s for each way over it.
    fn rate(self, link: usize) -> Bitrate {
        Bitrate::from_mbps(4 * self.of().iter().filter(|one| **one == link).count() as u64)
    }

    /// How long a packet of 1,500 bytes takes over the link of a path.
    fn service_time(self, path: usize) -> Duration {
        Duration::from_secs_f64(12_000.0 / self.rate(self.of()[path]).as_bps() as f64)
    }

    /// The set of the paths that share a link.
    const fn sharing(self) -> Option<usize> {
        match self {
            Self::Shared => Some(0b111),
            Self::Separate => None,
            Self::FirstTwo => Some(0b011),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    links: Links,
    is_red: bool,
    coupling: Coupling,
    has_stream: bool,
    warm_up: Duration,
    duration: Duration,
}

/// The record of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    /// The stream's rate on each path, and that of a TCP on the same way, in Mbit/s.
    stream: [f64; PATHS],
    tcp: [f64; PATHS],
    /// The same, window by window.
    windows: Vec<[[f64; PATHS]; 2]>,
    on_time: f64,
}

/// The bytes of each flow that have arrived on each path, window by window.
#[derive(Default)]
struct Arrived(Vec<[[u64; PATHS]; 2]>);

impl Recorder for Arrived {
    fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
        let mut arrived = [[0; PATHS]; 2];
        for (flow, path) in view.paths() {
            // The stream comes first, and after it the TCP flows way by way.
            match (flow.0 as usize).checked_sub(1) {
                None => arrived[0][path.path.get() as usize] += path.delivered.get(),
                Some(tcp) => arrived[1][tcp / TCPS] += path.delivered.get(),
            }
        }
        self.0.push(arrived);
    }
}

impl Case {
    fn queue(&self) -> QueueConfig {
        match self.is_red {
            false => QueueConfig::sojourn(ms(100)),
            true => {
                let (low, high) = (QueueLimit::Sojourn(ms(20)), QueueLimit::Sojourn(ms(60)));
                let mut red = RedConfig::gentle(low, high, 0.1);
                red.limit = QueueLimit::Sojourn(ms(200));
                QueueConfig::Red(red)
            }
        }
    }

    fn net(&self, seed: u64) -> Net {
        let mut net = Net::new("a stream beside TCP", seed, self.warm_up, self.duration);
        net.scenario.sample_every = WINDOW;
        let of = self.links.of();
        let links: Vec<LinkIndex> = (0..=of[PATHS - 1])
            .map(|link| {
                let narrow = LinkConfig::new(self.links.rate(link)).queue(self.queue());
                net.link(&format!("link {link}"), narrow)
            })
            .collect();
        let way = |net: &mut Net, name: &str, path: usize| {
            let there = LinkConfig::pure_delay(ms(RTTS[path] / 2)).jitter(self.links.service_time(path));
            let there = net.link(&format!("{name} there"), there);
            let back = net.link(&format!("{name} back"), LinkConfig::pure_delay(ms(RTTS[path] / 2)));
            PathRoute { forward: vec![there, links[of[path]]], backward: vec![back] }
        };
        let paths: Vec<PathRoute> = (0..PATHS).map(|path| way(&mut net, &format!("path {path}"), path)).collect();
        let config = EngineConfig { coupling: self.coupling, ..EngineConfig::live() };
        let stream = net.live("stream", config, &paths);
        stream.traffic = Traffic::Live(live(Policy::Best, None, ms(300)));
        if !self.has_stream {
            // One that sends next to nothing.
            stream.traffic = Traffic::Finite { size: ByteCount::new(1) };
        }
        for (path, route) in paths.iter().enumerate() {
            for _ in 0..TCPS {
                let tcp = net.flow(&format!("tcp {path}"), engine("reno"), core::slice::from_ref(route));
                tcp.start_jitter = ms(1_000);
            }
        }
        net
    }

    fn run(&self, seed: u64) -> Result<Seen, SimError> {
        let net = self.net(seed);
        let mut arrived = Arrived::default();
        let outcome = fairpath_sim::run(&net.scenario, &mut arrived)?;
        let first = (self.warm_up.as_secs() / WINDOW.as_secs()) as usize;
        let mbps = |bytes: u64, flows: usize, time: Duration| bytes as f64 * 8e-6 / flows as f64 / time.as_secs_f64();
        let rates = |[from, to]: [&[[u64; PATHS]; 2]; 2], time: Duration| {
            let of = |who: usize, flows: usize| {
                core::array::from_fn(|path| mbps(to[who][path].saturating_sub(from[who][path]), flows, time))
            };
            [of(0, 1), of(1, TCPS)]
        };
        // The first sample is taken after the first window.
        let counted = &arrived.0[first.saturating_sub(1)..];
        let windows: Vec<[[f64; PATHS]; 2]> =
            counted.windows(2).map(|pair| rates([&pair[0], &pair[1]], WINDOW)).collect();
        let whole = WINDOW * (counted.len() - 1) as u32;
        let [stream, tcp] = rates([&counted[0], &counted[counted.len() - 1]], whole);
        let on_time = outcome.flows[0].live.and_then(|live| live.on_time()).unwrap_or(1.0);
        Ok(Seen { stream, tcp, windows, on_time })
    }
}

/// The sets of paths, by bits.
fn sets() -> core::ops::Range<usize> {
    1..1 << PATHS
}

fn set_name(set: usize) -> String {
    let names: Vec<String> =
        (0..PATHS).filter(|path| set >> path & 1 == 1).map(|path| (path + 1).to_string()).collect();
    names.join(" + ")
}

/// The stream's rate on a set of paths over that of a TCP on the best of them [Pluntke2011 §2 eq. 1].
fn taken(set: usize, stream: &[f64; PATHS], tcp: &[f64; PATHS]) -> f64 {
    let inside = || (0..PATHS).filter(|path| set >> path & 1 == 1);
    let most = inside().map(|path| tcp[path]).fold(0.0, f64::max);
    inside().map(|path| stream[path]).sum::<f64>() / most
}

const COUPLINGS: [(Coupling, &str); 3] =
    [(Coupling::Always, "one group"), (Coupling::Never, "each by itself"), (Coupling::Auto, "as detected")];

fn run(context: &Context) -> Result<Report, Failure> {
    let links = context.pick(vec![Links::Shared], vec![Links::Shared, Links::FirstTwo, Links::Separate]);
    let queues = context.pick(vec![false], vec![false, true]);
    let [warm_up, duration] = context.pick([10, 30], [20, 80]).map(Duration::from_secs);
    let mut cases = Vec::new();
    for links in links {
        for is_red in &queues {
            let case = |coupling, has_stream| Case { links, is_red: *is_red, coupling, has_stream, warm_up, duration };
            cases.extend(COUPLINGS.map(|(coupling, _)| case(coupling, true)));
            cases.push(case(Coupling::Always, false));
        }
    }
    let seen = context.sweep(&cases, &context.seeds(4), Case::run)?;
    let sets_of: Vec<String> = sets().map(set_name).collect();
    let columns: Vec<(&str, &str)> = sets_of.iter().map(|name| (name.as_str(), "")).collect();
    let heads = ["links", "queues", "the stream takes its paths for"];
    let mut taken_of = Table::new(
        "taken",
        "What the stream takes on each set of paths, in parts of what a TCP has on the best of them",
        &heads,
        &columns,
    );
    let mut shares = Table::new(
        "shares",
        "What TCP has, and the stream",
        &heads,
        &[
            ("TCP without", "Mbit/s"),
            ("TCP", "Mbit/s"),
            ("the stream", "Mbit/s"),
            ("windows above", "%"),
            ("in time", "%"),
        ],
    );
    for (cases, runs) in cases.chunks(4).zip(seen.chunks(4)) {
        for at in 0..COUPLINGS.len() {
            let row = heads_of(&cases[at], at);
            let of = |of: &dyn Fn(&Seen) -> f64| Cell::of(runs[at].iter().map(of));
            let cells: Vec<Cell> = sets().map(|set| of(&|seen| taken(set, &seen.stream, &seen.tcp))).collect();
            taken_of.push(&row, &cells);
            let tcp = |seen: &Seen| seen.tcp.iter().sum::<f64>() / PATHS as f64;
            let cells = [
                Cell::of(runs[3].iter().map(tcp)),
                of(&tcp),
                of(&|seen| seen.stream.iter().sum()),
                of(&|seen| 100.0 * above(seen)),
                of(&|seen| 100.0 * seen.on_time),
            ];
            shares.row(row, cells);
        }
    }
    let verdicts = verdicts(&taken_of, &cases);
    Ok(Report { tables: vec![taken_of, shares], verdicts, ..Report::default() })
}

fn heads_of(case: &Case, at: usize) -> [&'static str; 3] {
    [case.links.name(), if case.is_red { "RED" } else { "drop-tail" }, COUPLINGS[at].1]
}

/// The share of windows in which the stream takes more on all paths together than a TCP on the best of them.
fn above(seen: &Seen) -> f64 {
    let all = (1 << PATHS) - 1;
    let is_above = |[stream, tcp]: &&[[f64; PATHS]; 2]| taken(all, stream, tcp) > 1.0;
    seen.windows.iter().filter(is_above).count() as f64 / seen.windows.len().max(1) as f64
}

fn verdicts(taken: &Table, cases: &[Case]) -> Vec<Verdict> {
    let mut friendly = Verdict::new(
        "friendly on any set",
        "As one group the stream takes no more on any set of its paths than a TCP on the best.",
    );
    let mut alone = Verdict::ours(
        "friendly on each path",
        "Whatever it takes its paths for, the stream takes no more on one path than a TCP.",
    );
    let mut detected = Verdict::ours(
        "friendly as detected",
        "On the paths that share a link the stream that detects it takes no more than a TCP on the best of them.",
    );
    let mut hidden = Verdict::ours(
        "a hidden bottleneck",
        "Where all share one link and the stream takes each path by itself, it takes more than a TCP.",
    );
    let mut share =
        Verdict::ours("its share", "On all paths together the stream has at least half of what a TCP has on the best.");
    for chunk in cases.chunks(4) {
        for (at, case) in chunk[..COUPLINGS.len()].iter().enumerate() {
            let row = heads_of(case, at);
            let name = row.join(", ");
            let of = |set: usize| -> Estimate { taken.estimate(&row, &set_name(set)) };
            if case.coupling == Coupling::Always {
                friendly = friendly.at_most(&name, Estimate::largest(sets().map(of)), MARGIN);
            }
            share = share.at_least(&name, of((1 << PATHS) - 1), 0.5);
            alone = alone.at_most(&name, Estimate::largest((0..PATHS).map(|path| of(1 << path))), MARGIN);
            if case.coupling == Coupling::Auto
                && let Some(sharing) = case.links.sharing()
            {
                detected = detected.at_most(&name, of(sharing), MARGIN);
            }
            if case.coupling == Coupling::Never && case.links == Links::Shared {
                hidden = hidden.at_least(&name, of((1 << PATHS) - 1), 1.0);
            }
        }
    }
    vec![friendly, alone, detected, hidden, share]
}
