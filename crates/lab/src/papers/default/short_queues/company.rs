//! Links that others use, too: greedy flows, steady ones, short ones, and others of ours.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::Coupling;
use fairpath_net::QueueConfig;
use fairpath_scenario::Traffic;
use fairpath_sim::{SimError, jain_index};

use super::seen::{wait_ms, watched};
use super::{BBR3, PAYLOAD, Section, TODAY, of_runs};
use crate::papers::default::cell::{Cell, Contender, HYBRID, Queue, REFERENCES, in_parts_of};
use crate::{Cell as Number, Context, Failure, Net, Table, Verdict, engine, ms};

const QUEUES: [u64; 4] = [20, 50, 200, 1_000];
const OTHERS: [(&str, usize); 4] = [("cubic", 1), ("reno", 1), ("bbr3", 1), ("cubic", 3)];
const COMPANY: [(&str, &str); 4] = [
    ("coupled CUBIC", "of one CUBIC's"),
    ("hybrid CUBIC", "of one CUBIC's"),
    ("mean wait, coupled CUBIC", "ms"),
    ("mean wait, hybrid CUBIC", "ms"),
];

fn cells(context: &Context) -> Vec<Cell> {
    let others = context.pick(vec![OTHERS[0]], OTHERS.to_vec());
    let queues = context.pick(vec![200], QUEUES.to_vec());
    let one = |is_shared, (competitor, competitors), queue| Cell {
        is_shared,
        paths: 2,
        mbps: 20,
        rtt_ms: 40,
        rtt_last: 1,
        queue: Queue::Millis(queue),
        loss: 0.0,
        competitor,
        competitors,
        is_late: false,
    };
    let queues = &queues;
    let of = |other| {
        [true, false].into_iter().flat_map(move |shared| queues.iter().map(move |queue| one(shared, other, *queue)))
    };
    others.into_iter().flat_map(of).collect()
}

pub(super) fn greedy(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let who = [TODAY, HYBRID];
    let cells = cells(context);
    let times = context.pick((ms(10_000), ms(45_000)), (ms(20_000), ms(100_000)));
    let runs = context.sweep(&cells, seeds, |cell, seed| {
        let one = |engine, over: &[usize]| -> Result<[f64; 2], SimError> {
            let outcome = cell.run(engine, over, seed, times, Traffic::Bulk)?;
            Ok([outcome.flows[0].goodput.as_mbps_f64(), wait_ms(&outcome, "bottleneck 0")])
        };
        // Both links are alike, so that one flow on each has twice what it has on the first.
        let places = if cell.is_shared { 1.0 } else { 2.0 };
        let reference = one(REFERENCES[0].as_reference(), &[0]).map(|[mbps, wait]| [places * mbps, wait]);
        let ours = who.iter().map(|who| one(who.engine(Coupling::Auto), &[0, 1]));
        ours.chain([reference]).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "What two paths get where others fill the queues, and the mean wait in the first";
    let mut table = Table::new("company", title, &["links", "others on each", "queue"], &COMPANY);
    let mut fair = Verdict::ours("fair", "In company it gets 0.8 to 1.25 of what one CUBIC gets in its place.");
    let mut default = Verdict::ours("fit as a default", "In company it gets 0.67 to 1.5 of that.");
    for (cell, runs) in cells.iter().zip(&runs) {
        let of = |at: usize| runs.iter().map(move |run| run[at][0]);
        let share = |at: usize| Number::from(in_parts_of(of(at), of(who.len())));
        let wait = |at: usize| Number::of(runs.iter().map(|run| run[at][1]));
        let links = if cell.is_shared { "one" } else { "two" };
        let heads = [links, &*format!("{} {}", cell.competitors, cell.competitor), &*cell.queue.name()];
        table.row(heads, [share(0), share(1), wait(0), wait(1)]);
        let what = format!("{} of {}, beside {}", heads[0], heads[2], heads[1]);
        let share = table.estimate(&heads, HYBRID.title);
        fair = fair.between(&what, share.clone(), 0.8, 1.25);
        default = default.between(&what, share, 0.67, 1.5);
    }
    let reason = "A test gives up the place in the queue, and in a long queue CUBIC needs longer to win it back.";
    Ok(Section { table, verdicts: vec![fair.because(reason), default.because(reason)], missing: None })
}

const LINK_MBPS: u64 = 20;

/// A network of one link, and of a second one where there is one.
fn net(seed: u64, queue_ms: u64, times: (Duration, Duration)) -> (Net, [fairpath_scenario::PathRoute; 2]) {
    let mut net = Net::new("company", seed, times.0, times.1);
    let queue = QueueConfig::sojourn(ms(queue_ms));
    let paths = ["first", "second"].map(|name| net.path(name, Bitrate::from_mbps(LINK_MBPS), ms(20), queue.clone()));
    (net, paths)
}

const LEAVES: [(&str, &str); 3] =
    [("while it is there", "of one CUBIC's"), ("wait before", "ms"), ("wait after", "ms")];
/// When somebody comes and goes, and how long there is to notice either, in seconds.
const COMES: u64 = 20;
const GOES: u64 = 50;
const NOTICED: u64 = 3;
const SHORT_AGAIN: u64 = 5;

pub(super) fn leaving(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let queues = context.pick(vec![200], QUEUES[1..].to_vec());
    let runs = context.sweep(&queues, seeds, |queue, seed| {
        let one = |who: &Contender, from: u64, to: u64| -> Result<[f64; 2], SimError> {
            let (mut net, [path, _]) = net(seed, *queue, (Duration::from_secs(from), Duration::from_secs(to)));
            let engine = if *who == REFERENCES[0] { who.as_reference() } else { who.engine(Coupling::Auto) };
            net.live("ours", engine, core::slice::from_ref(&path)).start_jitter = ms(500);
            let other = net.flow("other", crate::engine("cubic"), core::slice::from_ref(&path));
            (other.start, other.start_jitter) = (Duration::from_secs(COMES), ms(500));
            other.stop = Some(Duration::from_secs(GOES));
            let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
            Ok([outcome.mean_goodput("ours").as_mbps_f64(), wait_ms(&outcome, "first")])
        };
        let there = |who: &Contender| one(who, COMES + NOTICED, GOES);
        let mut all = Vec::new();
        for who in [TODAY, HYBRID] {
            let before = one(&who, 5, COMES)?[1];
            all.push([there(&who)?[0], before, one(&who, GOES + SHORT_AGAIN, GOES + SHORT_AGAIN + 10)?[1]]);
        }
        all.push([there(&REFERENCES[0])?[0], 0.0, 0.0]);
        Ok(all)
    })?;
    let title = "One CUBIC comes, and leaves after 30 s: what ours gets from 3 s after it came, and the mean waits";
    let mut table = Table::new("leaving", title, &["queue", "who"], &LEAVES);
    let mut noticed = Verdict::ours("noticed", "From 3 s after somebody came it gets 0.8 of one CUBIC in its place.");
    let mut short = Verdict::ours("short again", "From 5 s after somebody left the mean wait is 15 ms at most.");
    for (queue, runs) in queues.iter().zip(&runs) {
        let name = format!("{queue} ms");
        for (at, who) in [TODAY, HYBRID].iter().enumerate() {
            let share = in_parts_of(runs.iter().map(|run| run[at][0]), runs.iter().map(|run| run[2][0]));
            let [_, before, after] = of_runs::<3>(runs, at);
            table.row([&name, who.title], [share.into(), before, after]);
        }
        let of = |column: usize| table.estimate(&[&name, HYBRID.title], LEAVES[column].0);
        noticed = noticed.at_least(&name, of(0), 0.8);
        short = short.at_most(&name, of(2), 15.0);
    }
    let noticed = noticed.because("A test takes some round trips, and until it is over the other has the queue.");
    let short = short.because("Whether somebody has left is looked for rarely after tests that found somebody.");
    Ok(Section { table, verdicts: vec![noticed, short], missing: None })
}

const STEADY: [(&str, &str); 4] =
    [("ours", "Mbit/s"), ("mean wait", "ms"), ("95 % wait less than", "ms"), ("others' transfers take", "s")];

fn inelastic_traffic() -> [(&'static str, Traffic); 4] {
    let constant = |part: u64| Traffic::Constant { rate: Bitrate::from_mbps(LINK_MBPS * part / 100) };
    // 100 kB every 80 ms are half of the link.
    let web = Traffic::ShortFlows { size: ByteCount::new(100_000), mean_interval: ms(80) };
    [
        ("50 % steady", constant(50)),
        ("50 % short flows", web),
        ("25 % steady", constant(25)),
        ("75 % steady", constant(75)),
    ]
}

/// The rate that others ask for, without headers.
fn offered_mbps(traffic: &Traffic) -> f64 {
    match traffic {
        Traffic::Constant { rate } => rate.as_mbps_f64(),
        Traffic::ShortFlows { size, mean_interval } => 8e-6 * size.as_f64() / mean_interval.as_secs_f64(),
        _ => 0.0,
    }
}

pub(super) fn inelastic(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let who = [TODAY, HYBRID, BBR3];
    let kinds: Vec<_> = inelastic_traffic().into_iter().take(context.pick(2, 4)).collect();
    let end = Duration::from_secs(context.pick(20, 60));
    let runs = context.sweep(&kinds, seeds, |(_, traffic), seed| {
        let one = |who: &Contender| -> Result<[f64; 4], SimError> {
            let (mut net, [path, _]) = net(seed, 400, (ms(5_000), end));
            net.live("ours", who.engine(Coupling::Auto), core::slice::from_ref(&path)).start_jitter = ms(500);
            net.flow("others", engine("cubic"), &[path]).traffic = *traffic;
            let (outcome, p95) = watched(&net.scenario)?;
            let done = outcome.class("others").flat_map(|flow| &flow.completions);
            let (sum, count) = done.fold((0.0, 0.0), |(sum, count), took| (sum + took.as_secs_f64(), count + 1.0));
            let took = if count > 0.0 { sum / count } else { 0.0 };
            Ok([outcome.mean_goodput("ours").as_mbps_f64(), wait_ms(&outcome, "first"), p95, took])
        };
        who.iter().map(one).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "A link of 20 Mbit/s with a queue of 400 ms beside traffic that does not fill what is left";
    let mut table = Table::new("inelastic", title, &["others", "who"], &STEADY);
    let mut short =
        Verdict::ours("inelastic, short", "Beside inelastic traffic 95 % of packets wait for 40 ms at most.");
    let mut fast = Verdict::ours("inelastic, fast", "Beside it, it carries 0.95 of what the others leave.");
    let mut web = Verdict::ours("inelastic, web", "Short flows take no longer beside it than beside BBRv3.");
    for ((name, traffic), runs) in kinds.iter().zip(&runs) {
        let is_web = matches!(traffic, Traffic::ShortFlows { .. });
        for (at, who) in who.iter().enumerate() {
            let [ours, mean, p95, took] = of_runs::<4>(runs, at);
            table.row([name, who.title], [ours, mean, p95, if is_web { took } else { Number::EMPTY }]);
        }
        let of = |who: &Contender, column: usize| table.estimate(&[name, who.title], STEADY[column].0);
        short = short.at_most(name, of(&HYBRID, 2), 40.0);
        let left = LINK_MBPS as f64 * PAYLOAD - offered_mbps(traffic);
        fast = fast.at_least(&format!("{name}, of what they leave"), of(&HYBRID, 0) * (1.0 / left), 0.95);
        if is_web {
            web = web.at_most(&format!("{name}, of those beside BBRv3"), of(&HYBRID, 3) / of(&BBR3, 3), 1.0);
        }
    }
    let reason =
        "Windows of steady and short flows fill the queue themselves once it is long, which is taken for company.";
    let verdicts = [short, fast, web].map(|verdict| verdict.because(reason)).to_vec();
    Ok(Section { table, verdicts, missing: None })
}

const OURS: [(&str, &str); 2] = [("Jain's index", ""), ("mean wait", "ms")];

pub(super) fn ours(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let counts = context.pick(vec![2_u64], vec![2, 4]);
    let times = (ms(15_000), Duration::from_secs(context.pick(40, 90)));
    let runs = context.sweep(&counts, seeds, |count, seed| {
        let one = |who: &Contender| -> Result<[f64; 2], SimError> {
            let (mut net, [path, _]) = net(seed, 400, times);
            for at in 0..*count {
                let flow = net.live("ours", who.engine(Coupling::Auto), core::slice::from_ref(&path));
                (flow.start, flow.start_jitter) = (ms(2_000 * at), ms(500));
            }
            let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
            let shares = outcome.class("ours").map(|flow| flow.goodput.as_mbps_f64());
            Ok([jain_index(shares), wait_ms(&outcome, "first")])
        };
        [TODAY, HYBRID].iter().map(one).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "Connections alike on one link of 20 Mbit/s with a queue of 400 ms";
    let mut table = Table::new("ours", title, &["connections", "who"], &OURS);
    let mut fair = Verdict::ours("ours, fair", "Connections of it share a link with an index of 0.95 at least.");
    let mut short = Verdict::ours("ours, short", "And the mean wait is 15 ms at most.");
    for (count, runs) in counts.iter().zip(&runs) {
        let name = count.to_string();
        for (at, who) in [TODAY, HYBRID].iter().enumerate() {
            table.row([&name, who.title], of_runs::<2>(runs, at));
        }
        let of = |column: usize| table.estimate(&[&name, HYBRID.title], OURS[column].0);
        fair = fair.at_least(&name, of(0), 0.95);
        short = short.at_most(&name, of(1), 15.0);
    }
    let fair =
        fair.because("A latecomer takes the queue of the others for delay, and without losses nothing evens out.");
    let short = short.because("While one looks, the others hold the queue, and all take each other for company.");
    Ok(Section { table, verdicts: vec![fair, short], missing: None })
}

const ONE_OF_TWO: [(&str, &str); 4] =
    [("first", "of one CUBIC's"), ("second", "Mbit/s"), ("wait on the first", "ms"), ("on the second", "ms")];

pub(super) fn one_of_two(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let queues = context.pick(vec![200], vec![50, 200, 1_000]);
    let times = context.pick((ms(10_000), ms(40_000)), (ms(20_000), ms(100_000)));
    let runs = context.sweep(&queues, seeds, |queue, seed| {
        let one = |who: Option<&Contender>| -> Result<[f64; 4], SimError> {
            let (mut net, [first, second]) = net(seed, *queue, times);
            let (engine, over) = match who {
                Some(who) => (who.engine(Coupling::Auto), vec![first.clone(), second]),
                None => (REFERENCES[0].as_reference(), vec![first.clone()]),
            };
            net.live("ours", engine, &over).start_jitter = ms(500);
            net.flow("other", crate::engine("cubic"), &[first]).start_jitter = ms(1_000);
            let outcome = fairpath_sim::run(&net.scenario, &mut ())?;
            let path = |at: usize| outcome.flows[0].paths.get(at).map_or(0.0, |path| path.goodput.as_mbps_f64());
            Ok([path(0), path(1), wait_ms(&outcome, "first"), wait_ms(&outcome, "second")])
        };
        [Some(&TODAY), Some(&HYBRID), None].into_iter().map(one).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "Two links of 20 Mbit/s, one CUBIC on the first and nobody on the second";
    let mut table = Table::new("one_of_two", title, &["queues", "who"], &ONE_OF_TWO);
    let mut fair = Verdict::ours("one of two, fair", "The path in company gets 0.8 to 1.25 of one CUBIC there.");
    let mut short = Verdict::ours("one of two, short", "On the other the mean wait is 15 ms at most.");
    for (queue, runs) in queues.iter().zip(&runs) {
        let name = format!("{queue} ms");
        for (at, who) in [TODAY, HYBRID].iter().enumerate() {
            let [_, second, wait, wait_there] = of_runs::<4>(runs, at);
            let share = in_parts_of(runs.iter().map(|run| run[at][0]), runs.iter().map(|run| run[2][0]));
            table.row([&name, who.title], [share.into(), second, wait, wait_there]);
        }
        let of = |column: usize| table.estimate(&[&name, HYBRID.title], ONE_OF_TWO[column].0);
        fair = fair.between(&name, of(0), 0.8, 1.25);
        short = short.at_most(&name, of(3), 15.0);
    }
    let fair =
        fair.because("A test gives up the place in the queue, and in a long queue CUBIC needs longer to win it back.");
    let short = short.because("While the paths are taken for one group they compete together.");
    Ok(Section { table, verdicts: vec![fair, short], missing: None })
}
