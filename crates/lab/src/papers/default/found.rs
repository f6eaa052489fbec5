//! How soon a shared bottleneck is found whose queue is short or deep, and how long separate ones are taken for one.
//!
//! # Claim
//!
//! On a shared link the paths are coupled within 5 s or 20 round trips, whichever is longer, and on separate ones
//! for 5 % of the time at most, whether queues take 12 ms or 2 s.
//!
//! # Topology
//!
//! ```text
//!          ┌── path 1 ──┐                           ┌── 20 Mbit/s, queue ──┐
//!   ours ──┤            ├── 20 Mbit/s, queue   ours ┤                      ├── ours
//!          └── path 2 ──┘                           └── 20 Mbit/s, queue ──┘
//!   competitor ────────── the same                competitors ── each of them
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | link | 20 Mbit/s, round trip of 40 ms, drop-tail queue of 12, 25, 50, 100, 200, 500, 1,000 and 2,000 ms | assumed |
//! | competitor | one flow of Reno, CUBIC or BBRv3 on each link, or nobody | assumed |
//! | time | 60 s, and with queues of more than 200 ms 150 s | assumed |
//! | round trips | the link's and the time that its full queue takes | assumed |
//! | configuration | that of live connections: HyStart++, dips while in doubt, paced; competitors are not | assumed |
//! | jitter | a packet's transmission on each way to a bottleneck | assumed, as [Floyd1992] advises |
//!
//! # Deviations
//!
//! - The quick form has one queue, one competitor, two seeds and 20 s.

use core::time::Duration;

use fairpath_engine::Coupling;
use fairpath_scenario::Traffic;
use fairpath_sim::SimError;

use super::cell::{CONTENDERS, Cell, Contender, Queue};
use super::said::Said;
use crate::{Cell as Number, Context, Estimate, Experiment, Failure, Report, Table, Verdict, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/found", include_str!("found.rs"), run);

const QUEUES_MS: [u64; 8] = [12, 25, 50, 100, 200, 500, 1000, 2000];
const NOBODY: &str = "nobody";
const COMPETITORS: [&str; 4] = ["reno", "cubic", "bbr3", NOBODY];
/// The contenders under test: the standard coupling, the default, and a rate-based one.
const WHO: [&str; 3] = ["LIA", "coupled CUBIC", "coupled BBRv3"];
const RTT_MS: u64 = 40;
/// Within the longer of the two a bottleneck is to be found.
const SOON: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 20;

const COLUMNS: [(&str, &str); 4] =
    [("first, median", "s"), ("in time", "of the runs"), ("together, shared", ""), ("together, separate", "")];

fn cell(is_shared: bool, queue_ms: u64, competitor: &'static str) -> Cell {
    let beside = Cell { rtt_ms: RTT_MS, ..Cell::beside_cubic(is_shared, queue_ms) };
    if competitor == NOBODY { Cell { competitors: 0, ..beside } } else { Cell { competitor, ..beside } }
}

fn said(cell: &Cell, who: &Contender, seed: u64, lasts: Duration) -> Result<Said, SimError> {
    let mut said = Said::default();
    let times = (Duration::ZERO, lasts);
    cell.watch(who.engine(Coupling::Auto), &[0, 1], seed, times, Traffic::Bulk, &mut said)?;
    Ok(said)
}

fn run(context: &Context) -> Result<Report, Failure> {
    let queues = context.pick(vec![50], QUEUES_MS.to_vec());
    let competitors = context.pick(vec!["cubic"], COMPETITORS.to_vec());
    let seeds = context.seeds(context.pick(2, 6));
    let points: Vec<(u64, &'static str)> =
        queues.iter().flat_map(|queue| competitors.iter().map(|other| (*queue, *other))).collect();
    let (mut tables, mut verdicts) = (Vec::new(), Vec::new());
    for who in CONTENDERS.iter().filter(|one| WHO.contains(&one.title)) {
        let lasts = |queue_ms: u64| context.pick(20, if queue_ms > 200 { 150 } else { 60 });
        let runs = context.sweep(&points, &seeds, |(queue_ms, competitor), seed| {
            let of = |is_shared| {
                said(&cell(is_shared, *queue_ms, competitor), who, seed, Duration::from_secs(lasts(*queue_ms)))
            };
            Ok((of(true)?, of(false)?))
        })?;
        let title = format!("How soon {} finds a bottleneck, and how long it takes two for one", who.title);
        let mut table = Table::new(who.congestion, &title, &["queue", "competitor"], &COLUMNS);
        for ((queue_ms, competitor), runs) in points.iter().zip(&runs) {
            let bound = SOON.max(ms(RTT_MS + queue_ms) * ROUNDS);
            let in_time = |said: &Said| f64::from(u8::from(said.first.is_some_and(|first| first <= bound)));
            let cells: [Number; COLUMNS.len()] = [
                median(runs.iter().map(|(shared, _)| shared.first)).into(),
                Number::of(runs.iter().map(|(shared, _)| in_time(shared))),
                Number::of(runs.iter().map(|(shared, _)| shared.part())),
                Number::of(runs.iter().map(|(_, separate)| separate.part())),
            ];
            table.row([&Queue::Millis(*queue_ms).name(), competitor], cells);
        }
        verdicts.extend(judge(who, &points, &table));
        tables.push(table);
    }
    Ok(Report { tables, verdicts, ..Report::default() })
}

/// The middle one of these times in seconds; unknown where half of them never came.
fn median(times: impl Iterator<Item = Option<Duration>>) -> Estimate {
    let mut times: Vec<f64> = times.map(|time| time.map_or(f64::INFINITY, |time| time.as_secs_f64())).collect();
    times.sort_by(f64::total_cmp);
    let middle = times.get(times.len() / 2).copied().filter(|time| time.is_finite());
    middle.map_or_else(Estimate::unknown, |time| Estimate::with_interval(time, None, times.len()))
}

fn judge(who: &Contender, points: &[(u64, &str)], table: &Table) -> [Verdict; 2] {
    let over = |column: &str| {
        let of = |(queue_ms, other): &(u64, &str)| table.estimate(&[&Queue::Millis(*queue_ms).name(), other], column);
        Estimate::mean_of(points.iter().map(of))
    };
    let verdict =
        |what: &str, claim: &str| Verdict::ours(&format!("{}, {what}", who.title), &format!("{}: {claim}", who.title));
    let found = verdict("found", "bottlenecks are found within 5 s or 20 round trips, in 95 % of the runs.");
    let apart = verdict("apart", "separate paths are coupled for 5 % of the time at most.");
    let [found, apart] = [
        found.at_least("runs in which it is found in time", over(COLUMNS[1].0), 0.95),
        apart.at_most("part of the time together, separate", over(COLUMNS[3].0), 0.05),
    ];
    if who.is_rate_based {
        let reason = "Without dips, which BBRv3 would measure, nothing tells two links apart that are alike and that \
                      nobody else uses: their queues rise and fall with the same probes.";
        return [found, apart.because(reason)];
    }
    [found, apart]
}
