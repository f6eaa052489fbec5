//! Links that nobody else uses: steady ones, cellular ones, and those that lose, police and jitter.

use core::time::Duration;
use std::path::{Path, PathBuf};

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::Coupling;
use fairpath_net::{Jitter, JitterDistribution, LinkConfig, LossConfig, MahimahiTrace, Policer, QueueConfig};
use fairpath_scenario::PathRoute;
use fairpath_sim::SimError;
use fairpath_theory::short_queue_wait;

use super::seen::{wait_ms, watched};
use super::{BBR, PAYLOAD, Section, TODAY, of_runs};
use crate::papers::default::cell::{Contender, HYBRID};
use crate::{Context, Failure, Net, Table, Verdict, ms};

const QUEUES: [u64; 3] = [100, 400, 1_500];
const COLUMNS: [(&str, &str); 4] =
    [("goodput", "Mbit/s"), ("wait on the first", "ms"), ("on the second", "ms"), ("95 % wait less than", "ms")];

/// Both links, without headers.
const SUM_MBPS: f64 = 60.0 * PAYLOAD;

pub(super) fn steady(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let who = [TODAY, HYBRID];
    let queues = context.pick(vec![400], QUEUES.to_vec());
    let end = Duration::from_secs(context.pick(20, 60));
    let runs = context.sweep(&queues, seeds, |queue, seed| {
        who.iter().map(|who| two_links(who, *queue, seed, end)).collect::<Result<Vec<_>, SimError>>()
    })?;
    let mut table = Table::new("alone", "Two links that nobody else uses", &["queues", "who"], &COLUMNS);
    let theory = short_queue_wait(Bitrate::from_mbps(20), ms(50), ByteCount::new(1_500)).as_secs_f64() * 1e3;
    let mut fast = Verdict::ours("fast", "Alone, hybrid CUBIC carries 0.96 of both links, and 0.95 of coupled CUBIC.");
    let mut short = Verdict::ours("short", "Alone, the mean wait is 15 ms at most, and 95 % of packets wait for 30.");
    for (queue, runs) in queues.iter().zip(&runs) {
        let name = format!("{queue} ms");
        for (at, who) in who.iter().enumerate() {
            let mut cells = of_runs::<4>(runs, at);
            if *who == HYBRID {
                cells[1] = cells[1].clone().theory(theory);
            }
            table.row([&name, who.title], cells);
        }
        let of = |who: &Contender, column: usize| table.estimate(&[&name, who.title], COLUMNS[column].0);
        fast = fast.at_least(&format!("{name}, of both links"), of(&HYBRID, 0) * (1.0 / SUM_MBPS), 0.96);
        fast = fast.at_least(&format!("{name}, of coupled CUBIC"), of(&HYBRID, 0) / of(&TODAY, 0), 0.95);
        for (column, most) in [(1, 15.0), (2, 15.0), (3, 30.0)] {
            short = short.at_most(&format!("{name}, {}", COLUMNS[column].0), of(&HYBRID, column), most);
        }
    }
    let fast = fast.because("In a queue of 100 ms the start is over before the longer link is full.");
    let short = short.because("The first round trips fill the queue before its length is known.");
    Ok(Section { table, verdicts: vec![fast, short], missing: None })
}

fn two_links(who: &Contender, queue_ms: u64, seed: u64, end: Duration) -> Result<[f64; 4], SimError> {
    let mut net = Net::new("alone", seed, ms(5_000), end);
    let queue = QueueConfig::sojourn(ms(queue_ms));
    let first = net.path("first", Bitrate::from_mbps(20), ms(25), queue.clone());
    let second = net.path("second", Bitrate::from_mbps(40), ms(10), queue);
    net.live("ours", who.engine(Coupling::Auto), &[first, second]).start_jitter = ms(500);
    let (outcome, p95) = watched(&net.scenario)?;
    Ok([outcome.mean_goodput("ours").as_mbps_f64(), wait_ms(&outcome, "first"), wait_ms(&outcome, "second"), p95])
}

/// Recordings beside this project.
const TRACES: [&str; 5] = [
    "ATT-LTE-driving-2016.down",
    "TMobile-LTE-short.down",
    "Verizon-LTE-short.down",
    "ATT-LTE-driving-2016.up",
    "TMobile-LTE-short.up",
];

const ONE_LINK: [(&str, &str); 3] = [("goodput", "Mbit/s"), ("mean wait", "ms"), ("95 % wait less than", "ms")];

/// Those that are used two at a time.
const PAIRS: [[usize; 2]; 3] = [[0, 1], [1, 2], [3, 4]];

/// How much later each seed begins: recordings take 120 to 140 s, and are compared at other moments each time. The
/// second of two is at another moment than the first.
const LATER: u64 = 29;
const SECOND: u64 = 13;

pub(super) fn cellular(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let who = [TODAY, HYBRID, BBR];
    let title = "One or two recorded cellular links with a queue of 3,000 packets each";
    let mut table = Table::new("cellular", title, &["recordings", "who"], &ONE_LINK);
    let mut fast = Verdict::ours("cellular, fast", "On cellular links it carries 0.95 of coupled CUBIC.");
    let mut short = Verdict::ours("cellular, short", "On cellular links packets wait no longer than with BBRv1.");
    let all: Vec<Vec<&str>> =
        TRACES.iter().map(|name| vec![*name]).chain(PAIRS.map(|of| of.map(|at| TRACES[at]).to_vec())).collect();
    let names = context.pick(all[1..2].to_vec(), all);
    let end = Duration::from_secs(context.pick(25, 60));
    let traces = |names: &[&str]| names.iter().map(|name| trace(name)).collect::<Option<Vec<MahimahiTrace>>>();
    let (found, absent): (Vec<_>, Vec<_>) =
        names.into_iter().map(|names| (names.join(" + "), traces(&names))).partition(|it| it.1.is_some());
    let found: Vec<(String, Vec<MahimahiTrace>)> =
        found.into_iter().filter_map(|(name, traces)| Some((name, traces?))).collect();
    let at: Vec<usize> = (0..found.len()).collect();
    let runs = context.sweep(&at, seeds, |at, seed| {
        let later = |nth: usize| Duration::from_secs(LATER * (seed % 1_000) + SECOND * nth as u64);
        let starting = found[*at].1.iter().enumerate().map(|(nth, trace)| trace.starting(later(nth)));
        let links: Vec<LinkConfig> =
            starting.map(|trace| LinkConfig::new(trace).delay(ms(20)).queue(QueueConfig::packets(3_000))).collect();
        who.iter().map(|who| cellular_links(who, &links, seed, end)).collect::<Result<Vec<_>, SimError>>()
    })?;
    for ((name, _), runs) in found.iter().zip(&runs) {
        for (at, who) in who.iter().enumerate() {
            table.row([name, who.title], of_runs::<3>(runs, at));
        }
        let of = |who: &Contender, column: usize| table.estimate(&[name, who.title], ONE_LINK[column].0);
        fast = fast.at_least(name, of(&HYBRID, 0) / of(&TODAY, 0), 0.95);
        short = short.at_most(&format!("{name}, in parts of BBRv1's"), of(&HYBRID, 1) / of(&BBR, 1), 1.0);
    }
    let reason = "Where the rate falls to nothing for a while the queue stays, as it does where somebody fills it.";
    let verdicts = if found.is_empty() { vec![] } else { vec![fast.because(reason), short.because(reason)] };
    let absent: Vec<&str> = absent.iter().map(|(name, _)| name.as_str()).collect();
    let missing =
        (!absent.is_empty()).then(|| format!("Left out, for they are not beside this project: {}.", absent.join(", ")));
    Ok(Section { table, verdicts, missing })
}

/// All of these links at once. The wait is the mean of theirs.
fn cellular_links(who: &Contender, there: &[LinkConfig], seed: u64, end: Duration) -> Result<[f64; 3], SimError> {
    let mut net = Net::new("cellular", seed, ms(5_000), end);
    let named = |at: usize| (format!("there {at}"), format!("back {at}"));
    let mut paths = Vec::new();
    for (at, there) in there.iter().enumerate() {
        let (name, back) = named(at);
        let back = net.link(&back, LinkConfig::pure_delay(ms(20)));
        paths.push(PathRoute { forward: vec![net.link(&name, there.clone())], backward: vec![back] });
    }
    net.live("ours", who.engine(Coupling::Auto), &paths).start_jitter = ms(500);
    let (outcome, p95) = watched(&net.scenario)?;
    let waits = (0..there.len()).map(|at| wait_ms(&outcome, &named(at).0)).sum::<f64>();
    Ok([outcome.mean_goodput("ours").as_mbps_f64(), waits / there.len() as f64, p95])
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces")
}

fn trace(name: &str) -> Option<MahimahiTrace> {
    MahimahiTrace::parse(&std::fs::read_to_string(folder().join(name)).ok()?).ok()
}

fn one_link(who: &Contender, [there, back]: [LinkConfig; 2], seed: u64, end: Duration) -> Result<[f64; 3], SimError> {
    let mut net = Net::new("one link", seed, ms(5_000), end);
    let path = PathRoute { forward: vec![net.link("there", there)], backward: vec![net.link("back", back)] };
    net.live("ours", who.engine(Coupling::Auto), &[path]).start_jitter = ms(500);
    let (outcome, p95) = watched(&net.scenario)?;
    Ok([outcome.mean_goodput("ours").as_mbps_f64(), wait_ms(&outcome, "there"), p95])
}

/// A link that is not ideal: its name, and both directions.
type Unruly = (&'static str, [LinkConfig; 2]);

fn unruly_links() -> [Unruly; 7] {
    let clean = || LinkConfig::new(Bitrate::from_mbps(20)).delay(ms(20)).queue(QueueConfig::sojourn(ms(400)));
    let back = || LinkConfig::pure_delay(ms(20));
    let loses = |probability| [clean().loss(LossConfig::Random { probability }), back()];
    let jitters = |jitter: Jitter| [clean().jitter(jitter), back().jitter(jitter)];
    let policer = Policer { rate: Bitrate::from_mbps(20), burst: ByteCount::new(100_000) };
    let policed = LinkConfig::new(Bitrate::from_mbps(100)).delay(ms(20)).queue(QueueConfig::sojourn(ms(100)));
    [
        ("2 % lost", loses(0.02)),
        ("jitter, exponential, 8 ms, in order", jitters(Jitter::new(JitterDistribution::Exponential, ms(8)))),
        ("0.5 % lost", loses(0.005)),
        ("policer", [policed.policer(policer), back()]),
        ("jitter, normal, 5 ms", jitters(Jitter::new(JitterDistribution::Normal, ms(5)).overtaking())),
        ("jitter, normal, 20 ms", jitters(Jitter::new(JitterDistribution::Normal, ms(20)).overtaking())),
        ("jitter, uniform, 25 ms, in order", jitters(Jitter::new(JitterDistribution::Uniform, ms(25)))),
    ]
}

pub(super) fn unruly(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let who = [TODAY, HYBRID];
    let links: Vec<Unruly> = unruly_links().into_iter().take(context.pick(2, 7)).collect();
    let end = Duration::from_secs(context.pick(20, 60));
    let runs = context.sweep(&links, seeds, |(_, link), seed| {
        who.iter().map(|who| one_link(who, link.clone(), seed, end)).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "A link of 20 Mbit/s that nobody else uses, and that is not ideal";
    let mut table = Table::new("unruly", title, &["link", "who"], &ONE_LINK);
    let mut kept =
        Verdict::ours("unruly", "Loss, policers and jitter cost at most 3 % more than they cost coupled CUBIC.");
    for ((name, _), runs) in links.iter().zip(&runs) {
        for (at, who) in who.iter().enumerate() {
            table.row([name, who.title], of_runs::<3>(runs, at));
        }
        let of = |who: &Contender| table.estimate(&[name, who.title], ONE_LINK[0].0);
        kept = kept.at_least(name, of(&HYBRID) / of(&TODAY), 0.97);
    }
    let reason = "Where the least delay is rare, the delay of most packets looks like a queue, and windows stay small.";
    Ok(Section { table, verdicts: vec![kept.because(reason)], missing: None })
}
