//! What the first seconds cost on separate links, and take on a shared one.
//!
//! # Claim
//!
//! Transfers over two separate links take no longer than uncoupled ones by a tenth, and in the first ten seconds two
//! paths take of a shared link what one flow would.
//!
//! # Topology
//!
//! ```text
//!          ┌── 20 Mbit/s ──┐                ┌── path 1 ──┐
//!   ours ──┤               ├── ours   ours ─┤            ├── 20 Mbit/s ── ours
//!          └── 20 Mbit/s ──┘                └── path 2 ──┘
//!                                      one competitor ────── 20 Mbit/s
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links | 20 Mbit/s, round trip of 40 ms, drop-tail queues of 50, 200 and 1,000 ms | assumed |
//! | transfers | 1, 5 and 20 MB over separate links that nobody else uses | assumed |
//! | competitor | one flow of CUBIC, which starts within the same second, or 10 s before | assumed |
//! | shares | over the first 10 s of ours | assumed |
//! | reference | uncoupled CUBIC for the time; one flow of CUBIC in our place for the share, both with HyStart++ | assumed |
//! | jitter | a packet's transmission on each way to a bottleneck | assumed, as [Floyd1992] advises |
//!
//! # Deviations
//!
//! - A prior, that is a guess by addresses before anything is measured, is no part of the engine. What it would bring where
//!   it is right, and cost where it is wrong, is measured by coupling from the first packet on, with the initial window of
//!   each path, and with one initial window for both.
//! - All paths open at once. Those of a real connection open round trips later than the first, of which there are few in
//!   the first seconds behind a deep queue: over the real stack two paths have what one flow has there
//!   (`cargo test -p fairpath-faults --test all fair::behind_a_queue`).
//! - The quick form has one queue and two seeds.

use core::time::Duration;

use fairpath_core::ByteCount;
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_scenario::Traffic;
use fairpath_sim::SimError;

use super::cell::{CONTENDERS, Cell, JUDGED, JUDGED_AT, REFERENCES, in_parts_of};
use crate::{Cell as Number, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/start", include_str!("start.rs"), run);

const SIZES_MB: [u64; 3] = [1, 5, 20];
/// How long the share is measured.
const FIRST: Duration = Duration::from_secs(10);
/// Long enough for every transfer; one that is not through counts as this long.
const LATEST: Duration = Duration::from_secs(60);
/// The reference of the judged times.
const UNCOUPLED: &str = "uncoupled CUBIC";

fn cell(is_shared: bool, queue_ms: u64, is_late: bool) -> Cell {
    Cell { competitors: usize::from(is_shared), is_late, ..Cell::beside_cubic(is_shared, queue_ms) }
}

/// The goodput of the flow in our place in its first seconds, in Mbit/s.
fn first(cell: &Cell, engine: EngineConfig, over: &[usize], seed: u64) -> Result<f64, SimError> {
    let begin = cell.begin();
    let outcome = cell.run(engine, over, seed, (begin, begin + FIRST), Traffic::Bulk)?;
    Ok(outcome.flows[0].goodput.as_mbps_f64())
}

/// How long a transfer takes, in seconds.
fn transfer(cell: &Cell, engine: &EngineConfig, megabytes: u64, seed: u64) -> Result<f64, SimError> {
    let traffic = Traffic::Finite { size: ByteCount::new(1_000_000 * megabytes) };
    let outcome = cell.run(engine.clone(), &[0, 1], seed, (Duration::ZERO, LATEST), traffic)?;
    Ok(outcome.flows[0].completions.first().copied().unwrap_or(LATEST).as_secs_f64())
}

fn run(context: &Context) -> Result<Report, Failure> {
    let queues = context.pick(vec![50], vec![50, 200, 1000]);
    let seeds = context.seeds(context.pick(2, 6));
    let separate: Vec<Cell> = queues.iter().map(|queue| cell(false, *queue, false)).collect();
    let times = context.sweep(&separate, &seeds, |cell, seed| {
        let of = |engine: EngineConfig| {
            let each = SIZES_MB.map(|megabytes| transfer(cell, &engine, megabytes, seed));
            each.into_iter().collect::<Result<Vec<f64>, SimError>>()
        };
        all().map(of).collect::<Result<Vec<_>, _>>()
    })?;
    let columns = CONTENDERS.map(|one| (one.title, "s"));
    let mut cost = Table::new("time", "How long transfers over two separate links take", &["queue", "size"], &columns);
    for (cell, runs) in separate.iter().zip(&times) {
        for (at, megabytes) in SIZES_MB.iter().enumerate() {
            let numbers: [Number; CONTENDERS.len()] =
                core::array::from_fn(|who| Number::of(runs.iter().map(|run| run[who][at])));
            cost.row([&cell.queue.name(), &format!("{megabytes} MB")], numbers);
        }
    }
    let both = |queue: &u64| [false, true].map(|is_late| cell(true, *queue, is_late));
    let shared: Vec<Cell> = queues.iter().flat_map(both).collect();
    let shares = context.sweep(&shared, &seeds, |cell, seed| {
        let ours = all().map(|engine| first(cell, engine, &[0, 1], seed));
        let references = REFERENCES.iter().map(|one| first(cell, one.engine(Coupling::Auto), &[0], seed));
        ours.chain(references).collect::<Result<Vec<f64>, SimError>>()
    })?;
    let columns = CONTENDERS.map(|one| (one.title, "of one flow's"));
    let title = "What two paths get of a shared link in their first 10 s";
    let mut share = Table::new("share", title, &["queue", "competitor"], &columns);
    for (cell, runs) in shared.iter().zip(&shares) {
        let of = |place: usize| runs.iter().map(move |run| run[place]);
        let numbers: [Number; CONTENDERS.len()] = core::array::from_fn(|who| {
            let reference = CONTENDERS.len() + TOLD.len() + usize::from(CONTENDERS[who].is_rate_based);
            in_parts_of(of(who), of(reference)).into()
        });
        share.row([&cell.queue.name(), begins(cell)], numbers);
    }
    let mut cheap = Verdict::ours("cheap", "Transfers over separate links take at most 1.10 of the uncoupled time.");
    for cell in &separate {
        for megabytes in SIZES_MB {
            let (queue, size) = (cell.queue.name(), format!("{megabytes} MB"));
            let of = |who: &str| cost.estimate(&[&queue, &size], who);
            cheap = cheap.at_most(&format!("{queue}, {size}: time / uncoupled"), of(JUDGED) / of(UNCOUPLED), 1.10);
        }
    }
    let mut fair = Verdict::ours("fair", "The share of the first 10 s is 0.67 to 1.5 of one flow's.");
    for cell in &shared {
        let (queue, begins) = (cell.queue.name(), begins(cell));
        let ours = share.estimate(&[&queue, begins], JUDGED);
        fair = fair.between(&format!("{queue}, {begins}: share / one flow's"), ours, 2.0 / 3.0, 1.5);
    }
    let fair = fair.because(
        // Over the real stack the second path opens round trips later, and gets less of its first 10 s.
        "All paths open at once here, each with an initial window of its own, into a second of queue that another flow filled.",
    );
    let prior = prior_table(&separate, &times, &shared, &shares);
    Ok(Report { tables: vec![cost, share, prior], verdicts: vec![cheap, fair], ..Report::default() })
}

/// The judged one that is told from the first packet on that its paths are one: how it is called, and in how many parts the
/// initial window goes.
const TOLD: [(&str, u32); 2] = [("told that it is one", 1), ("told, one initial window", 2)];

/// Everybody as people get them, and those that are told.
fn all() -> impl Iterator<Item = EngineConfig> {
    let told = TOLD.map(|(_, parts)| {
        let mut engine = CONTENDERS[JUDGED_AT].engine(Coupling::Always);
        engine.parameters.aimd.initial_window_datagrams /= parts;
        engine
    });
    CONTENDERS.iter().map(|who| who.engine(Coupling::Auto)).chain(told)
}

/// The gain of a prior on a shared link, where it is right, and its cost on separate ones.
fn prior_table(separate: &[Cell], times: &[Vec<Vec<Vec<f64>>>], shared: &[Cell], shares: &[Vec<Vec<f64>>]) -> Table {
    let columns: Vec<(&str, &str)> = [("found", "")].into_iter().chain(TOLD.map(|(title, _)| (title, ""))).collect();
    let title = "What a guess before anything is measured would bring: the first 10 s in parts of one flow's, and the time \
                 of transfers over separate links in parts of the uncoupled";
    let mut table = Table::new("prior", title, &["network"], &columns);
    let told = CONTENDERS.len()..CONTENDERS.len() + TOLD.len();
    let places: Vec<usize> = core::iter::once(JUDGED_AT).chain(told.clone()).collect();
    for (cell, runs) in shared.iter().zip(shares) {
        let of = |who: usize| runs.iter().map(move |run| run[who]);
        let numbers: Vec<Number> = places.iter().map(|who| in_parts_of(of(*who), of(told.end)).into()).collect();
        table.push(&[&format!("one link, {}, {}", cell.queue.name(), begins(cell))], &numbers);
    }
    let uncoupled = CONTENDERS.iter().position(|one| one.title == UNCOUPLED).unwrap_or(JUDGED_AT);
    for (cell, runs) in separate.iter().zip(times) {
        for (at, megabytes) in SIZES_MB.iter().enumerate() {
            let of = |who: usize| runs.iter().map(move |run| run[who][at]);
            let numbers: Vec<Number> = places.iter().map(|who| in_parts_of(of(*who), of(uncoupled)).into()).collect();
            table.push(&[&format!("two links, {}, {megabytes} MB", cell.queue.name())], &numbers);
        }
    }
    table
}

fn begins(cell: &Cell) -> &'static str {
    if cell.is_late { "10 s before" } else { "at once" }
}
