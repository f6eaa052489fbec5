//! How right the engine is about shared bottlenecks, over classes of networks that `tr/grid` does not have.
//!
//! # Claim
//!
//! Ours, as no paper gives such a table: in every class the engine couples at least 95 % of the pairs that share
//! a bottleneck, the median within 10 s, and separate pairs for at most 5 % of the time.
//!
//! # Topology
//!
//! ```text
//!             ┌─ access 0 ─┐              ┌─ own 0 ─ exit 0 ─┐
//!   session ──┤            ├─── common ───┤                  ├── session
//!             └─ access 1 ─┘              └─ own 1 ─ exit 1 ─┘
//!   greedy flows ─────────── common, or own i ───────────────── greedy flows
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | runs | of each class 12 networks whose paths share and 12 whose paths do not, 120 s | assumed |
//! | paths | 2 | assumed |
//! | shared | the common link is the narrowest of both paths; the other links have 1 Gbit/s | assumed |
//! | separate | the path's own is; alike in half of the networks, in the other half drawn anew | assumed |
//! | usual | 10 to 40 Mbit/s, drop-tail of 40 to 160 ms, three greedy flows (Reno, CUBIC or BBR), base round trips of 20 to 50 ms and up to twice that | assumed |
//! | two congested links | the other link of each path has half the rate (and carries two more flows), or it is the common link, with twice the rate; the bottleneck is the link with the smaller share for a flow, which has eight or four | assumed |
//! | policer | a token bucket of 20 to 100 ms in the place of a queue | assumed |
//! | FQ-CoDel | every path is a flow of its own | assumed, after [RFC8290] |
//! | RED beside CUBIC | base round trips of 140 and 380 ms | assumed |
//! | the session | couples as over real networks | assumed |
//! | smoothed | a detector that watches a session without coupling, and is given the smoothed round-trip times only, with a weight of 1/8 | assumed, after [RFC9002] |
//! | seeds | all draws begin with the half, the class and the kind; nothing was tuned on the reporting half | assumed |
//!
//! # Deviations
//!
//! - Behind FQ-CoDel every path has a queue of its own, whoever shares the link: what one sends neither delays nor
//!   drops what the other does, and the link gives every flow its turn. So paths over one such link count as
//!   separate, and coupling them is a mistake; a table shows what the session gets in either case.
//! - A policer has no queue: losses are all that can be seen of it.

use core::time::Duration;

use fairpath_core::{Bitrate, DelaySample, Groups, Lost, PathId, PathMap, Timestamp};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{FqCoDelConfig, LinkConfig, Policer, QueueConfig};
use fairpath_sbd::{Concordance, Detector, PairVerdict};
use fairpath_scenario::LinkIndex;

use super::factors::{Discipline, Draw, Half};
use super::network::{BEGIN, Case, WIDE, queue, route};
use super::score::{Score, Summed};
use super::watch::{self, Entry};
use super::{COLUMNS, OURS};
use crate::{Cell, Context, Experiment, Failure, Net, Report, Table, Verdict, engine};

pub(in super::super) const EXPERIMENT: Experiment = Experiment::new("tr/classes", include_str!("classes.rs"), run);

/// The kind of bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    Queue(Discipline),
    FqCoDel,
    Policer,
}

/// A class of networks. Ranges are drawn from uniformly in the logarithm.
#[derive(Clone, Copy, Debug)]
struct Class {
    name: &'static str,
    mbps: [f64; 2],
    gate: Gate,
    /// How long a packet may wait, in seconds; of a policer, the time that its bucket holds.
    room: [f64; 2],
    /// The congestion control of the cross traffic, one after the other.
    cross: &'static [&'static str],
    /// Greedy flows on a bottleneck.
    load: usize,
    /// The base round-trip time of the first path, in ms, and by how much that of the second is longer.
    rtt_ms: [f64; 2],
    ratio: [f64; 2],
    /// Whether another link of the path is congested, too.
    second: bool,
}

const USUAL: Class = Class {
    name: "usual",
    mbps: [10.0, 40.0],
    gate: Gate::Queue(Discipline::DropTail),
    room: [0.04, 0.16],
    cross: &["reno", "cubic", "bbr"],
    load: 3,
    rtt_ms: [20.0, 50.0],
    ratio: [1.0, 2.0],
    second: false,
};

const CLASSES: [Class; 13] = [
    USUAL,
    Class { name: "two congested links", load: 8, second: true, ..USUAL },
    Class { name: "policer", gate: Gate::Policer, room: [0.02, 0.1], ..USUAL },
    Class { name: FQ_CODEL, gate: Gate::FqCoDel, ..USUAL },
    Class { name: "2 Mbit/s", mbps: [2.0, 2.0], room: [0.1, 0.4], ..USUAL },
    Class { name: "500 Mbit/s", mbps: [500.0, 500.0], room: [0.01, 0.08], ..USUAL },
    Class { name: "50 flows", load: 50, ..USUAL },
    Class { name: "round trips 1:5", ratio: [5.0, 5.0], ..USUAL },
    Class { name: "queues of 12 ms", room: [0.012, 0.012], ..USUAL },
    Class { name: "queues of 0.5 s", room: [0.5, 0.5], load: 1, cross: &["reno", "cubic"], ..USUAL },
    Class { name: "queues of 1 to 2 s", room: [1.0, 2.0], load: 1, cross: &["reno", "cubic"], ..USUAL },
    Class {
        name: "RED beside CUBIC, 140 and 380 ms",
        gate: Gate::Queue(Discipline::Red),
        cross: &["cubic"],
        rtt_ms: [140.0, 140.0],
        ratio: [380.0 / 140.0, 380.0 / 140.0],
        ..USUAL
    },
    Class { name: "CoDel beside Reno", gate: Gate::Queue(Discipline::CoDel), cross: &["reno"], ..USUAL },
];

const FQ_CODEL: &str = "FQ-CoDel";

impl Class {
    /// The networks of both kinds, by number.
    fn case(&self, half: Half, shared: bool, number: u64, duration: Duration) -> Case {
        let kind = if shared { "shared" } else { "separate" };
        let mut draw = Draw::new(half, &format!("class {} {kind}", self.name), number);
        let mut net = Net::new(self.name, draw.next(), BEGIN, duration);
        let narrow = self.narrow(&mut draw);
        let other = if draw.unit() < 0.5 { narrow.clone() } else { self.narrow(&mut draw) };
        let rate = |link: &LinkConfig, times: f64| {
            let rate = link.policer.map(|policer| policer.rate).or(link.rate.mean()).unwrap_or(WIDE);
            rate.scaled(times)
        };
        let wide = || LinkConfig::new(WIDE);
        let queued = |rate: Bitrate| LinkConfig::new(rate).queue(narrow.queue.clone());
        let (common, own) = match (shared, self.second) {
            (true, false) => (narrow.clone(), [wide(), wide()]),
            (true, true) => (narrow.clone(), [(); 2].map(|()| queued(rate(&narrow, 0.5)))),
            (false, false) => (wide(), [narrow.clone(), other]),
            (false, true) => (queued(rate(&narrow, 2.0)), [narrow.clone(), other]),
        };
        let common = net.link("common", common);
        let [first, second] = own;
        let own = [net.link("own 0", first), net.link("own 1", second)];
        self.add_session(&mut net, common, own, &mut draw);
        let loads = match (shared, self.second) {
            (true, false) => [self.load, 0],
            (false, false) => [0, self.load],
            // The smaller share is that of a tenth here, of a third of a half there; or a fifth and a fourth.
            (true, true) => [self.load, 2],
            (false, true) => [2, self.load / 2],
        };
        self.add_cross_traffic(&mut net, "common", common, loads[0], number, &mut draw);
        self.add_cross_traffic(&mut net, "own 0", own[0], loads[1], number, &mut draw);
        self.add_cross_traffic(&mut net, "own 1", own[1], loads[1], number, &mut draw);
        let truth = shared && self.gate != Gate::FqCoDel;
        Case { scenario: net.scenario, common: &[0, 0], phases: vec![(Duration::ZERO, truth)] }
    }

    /// A bottleneck.
    fn narrow(&self, draw: &mut Draw) -> LinkConfig {
        let rate = Bitrate::from_bps((1e6 * draw.log_between(self.mbps[0], self.mbps[1])) as u64);
        let room = Duration::from_secs_f64(draw.log_between(self.room[0], self.room[1]));
        match self.gate {
            Gate::Queue(discipline) => LinkConfig::new(rate).queue(queue(discipline, room)),
            Gate::FqCoDel => LinkConfig::new(rate).queue(QueueConfig::FqCoDel(FqCoDelConfig::default())),
            Gate::Policer => LinkConfig::new(WIDE).policer(Policer { rate, burst: rate * room }),
        }
    }

    fn add_session(&self, net: &mut Net, common: LinkIndex, own: [LinkIndex; 2], draw: &mut Draw) {
        let first = draw.log_between(self.rtt_ms[0], self.rtt_ms[1]);
        let rtts = [first, first * draw.log_between(self.ratio[0], self.ratio[1])];
        let routes = [0, 1].map(|path: usize| {
            let rtt = Duration::from_secs_f64(rtts[path] / 1e3);
            route(net, &format!("path {path}"), &[common, own[path]], rtt, Duration::ZERO, draw)
        });
        net.flow("session", engine("uncoupled lia"), &routes).start = BEGIN;
    }

    fn add_cross_traffic(
        &self,
        net: &mut Net,
        name: &str,
        link: LinkIndex,
        flows: usize,
        number: u64,
        draw: &mut Draw,
    ) {
        let congestion = self.cross[number as usize % self.cross.len()];
        for flow in 0..flows {
            let rtt = Duration::from_secs_f64(draw.log_between(0.02, 0.2));
            let route = route(net, &format!("cross {name} {flow}"), &[link], rtt, Duration::ZERO, draw);
            net.flow("cross", engine(congestion), &[route]).start_jitter = BEGIN;
        }
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let duration = Duration::from_secs(context.pick(20, 120));
    let seeds = context.seeds(context.pick(2, 12));
    let classes = &CLASSES[..context.pick(1, CLASSES.len())];
    let points: Vec<(Class, bool)> = classes.iter().flat_map(|class| [(*class, true), (*class, false)]).collect();
    let runs = context.sweep(&points, &seeds, |(class, shared), number| {
        let case = class.case(Half::Reporting, *shared, number, duration);
        Ok(Score::of(&case, &watch::run_live(&case.clone().live())?))
    })?;
    let mut table = Table::new("classes", "What the engine decides, by class of networks", &["class"], &COLUMNS);
    let mut verdicts = Vec::new();
    for (class, scores) in classes.iter().zip(runs.chunks(2)) {
        let scores: Vec<&Score> = scores.iter().flatten().collect();
        let summed = Summed::over(scores.iter().copied());
        verdicts.extend((class.gate != Gate::FqCoDel).then(|| verdict(class, &summed)));
        table.row([class.name], summed.cells(scores.len()));
    }
    let all = Summed::over(runs.iter().flatten());
    verdicts.push(
        Verdict::ours("seldom wrong", "Over all classes separate pairs are together for 5 % of the time at most.")
            .at_most("part of the time together, separate", all.separate.estimate(), 0.05),
    );
    let mut tables = vec![table, smoothed(context, duration, &seeds)?];
    if classes.iter().any(|class| class.name == FQ_CODEL) {
        tables.push(turns(context, duration, &seeds)?);
    }
    Ok(Report { tables, verdicts, ..Report::default() })
}

fn verdict(class: &Class, summed: &Summed) -> Verdict {
    let claim = format!("{}: found within 10 s, and separate pairs are together for 5 % of the time.", class.name);
    Verdict::ours(class.name, &claim)
        .at_least("part of the shared pairs that was found", summed.recall.estimate(), 0.95)
        .at_most("part of the time together, separate", summed.separate.estimate(), 0.05)
        .at_most("first correct verdict, median, s", summed.first.ours.clone().unwrap_or_else(|| 120.0.into()), 10.0)
}

/// A detector that hears smoothed round-trip times where it is told all of them.
#[derive(Debug, Default)]
struct Smoothed {
    inner: Concordance,
    smoothed: PathMap<Duration>,
}

impl Detector for Smoothed {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        self.inner.on_path_opened(path, now);
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.inner.on_path_closed(path, now);
    }

    fn on_sample(&mut self, path: PathId, sample: &DelaySample) {
        // [RFC9002 §5.3] smoothed_rtt = 7/8 * smoothed_rtt + 1/8 * adjusted_rtt
        let smoothed = self.smoothed.get(path).map_or(sample.rtt, |before| (*before * 7 + sample.rtt) / 8);
        self.smoothed.insert(path, smoothed);
        self.inner.on_sample(path, &DelaySample { rtt: smoothed, ..*sample });
    }

    fn on_loss(&mut self, path: PathId, lost: &Lost) {
        self.inner.on_loss(path, lost);
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        self.inner.poll(now)
    }

    fn verdicts(&self) -> Vec<PairVerdict> {
        self.inner.verdicts()
    }
}

/// The usual networks, watched by detectors that are given every round-trip time, and smoothed ones.
fn smoothed(context: &Context, duration: Duration, seeds: &[u64]) -> Result<Table, Failure> {
    let entries = [Entry::of(OURS), Entry::new(OURS, "smoothed", || Box::<Smoothed>::default())];
    let runs = context.sweep(&[true, false], seeds, |shared, number| {
        let case = USUAL.case(Half::Reporting, *shared, number, duration);
        let verdicts = watch::run(&case, &entries)?;
        Ok(verdicts.iter().map(|verdicts| Score::of(&case, verdicts)).collect::<Vec<_>>())
    })?;
    let title = "A detector that watches the usual networks, by what it is given";
    let mut table = Table::new("smoothed", title, &["round-trip times"], &COLUMNS);
    for (at, name) in ["all", "smoothed"].into_iter().enumerate() {
        let scores: Vec<&Score> = runs.iter().flatten().map(|scores| &scores[at]).collect();
        table.row([name], Summed::over(scores.iter().copied()).cells(scores.len()));
    }
    Ok(table)
}

/// Behind one link with FQ-CoDel: what the session gets, in parts of what a flow beside it does.
fn turns(context: &Context, duration: Duration, seeds: &[u64]) -> Result<Table, Failure> {
    let class = CLASSES.iter().find(|class| class.name == FQ_CODEL).expect("it is one of them");
    let points = [("never", Coupling::Never), ("always", Coupling::Always), ("as found", Coupling::Auto)];
    let runs = context.sweep(&points, seeds, |(_, coupling), number| {
        let mut case = class.case(Half::Reporting, true, number, duration).live();
        case.scenario.flows[0].engine = EngineConfig { coupling: *coupling, ..EngineConfig::live() };
        let outcome = fairpath_sim::run(&case.scenario, &mut ())?;
        let of = |class: &str| outcome.mean_goodput(class).as_mbps_f64();
        Ok(of("session") / of("cross"))
    })?;
    let title = "Two paths behind one link with FQ-CoDel: what a session gets, in parts of a flow beside it";
    let mut table = Table::new("turns", title, &["coupled"], &[("session, of a flow", "")]);
    for ((name, _), ratios) in points.iter().zip(runs) {
        table.row([*name], [Cell::of(ratios)]);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_halves_and_the_kinds_have_no_network_in_common() {
        let seed = |half, shared| USUAL.case(half, shared, 1, MINUTE).scenario.seed;
        let seeds =
            [(Half::Training, true), (Half::Training, false), (Half::Reporting, true), (Half::Reporting, false)];
        let seeds: std::collections::BTreeSet<u64> = seeds.into_iter().map(|(half, kind)| seed(half, kind)).collect();
        assert_eq!(seeds.len(), 4);
    }

    #[test]
    fn paths_share_what_is_narrow_and_flows_of_their_own_are_separate() {
        for class in CLASSES {
            let shared = class.case(Half::Training, true, 1, MINUTE);
            assert_eq!(shared.share(0, 1, shared.phases[0].1), class.gate != Gate::FqCoDel, "{}", class.name);
            let separate = class.case(Half::Training, false, 1, MINUTE);
            assert!(!separate.share(0, 1, separate.phases[0].1), "{}", class.name);
        }
    }
}
