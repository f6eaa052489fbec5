//! What is left of two links where packets are lost at random, and what is left to others.
//!
//! # Claim
//!
//! Coupled CUBIC, to which losses while no packet waits are no congestion, carries nine tenths of what two links without
//! loss would where 0.1 % is lost, three quarters where 2 % is, and leaves a competitor on a shared link what one flow
//! of CUBIC would.
//!
//! # Topology
//!
//! ```text
//!          ┌── 50 Mbit/s, loss ──┐                ┌── path 1 ──┐
//!   ours ──┤                     ├── ours   ours ─┤            ├── 50 Mbit/s, loss
//!          └── 50 Mbit/s, loss ──┘                └── path 2 ──┘
//!                                       one competitor ───────── the same
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | links | 50 Mbit/s, round trip of 40 ms, drop-tail queue of 50 ms | assumed |
//! | loss | 0, 0.1, 0.5 and 2 % of the packets, each by itself | assumed |
//! | competitor | nobody on the separate links; one flow of Reno or CUBIC on the shared one | assumed |
//! | reference | one flow of CUBIC in our place, to which every loss is congestion, of BBRv3 for what goes by rates; seed by seed | assumed |
//! | rates | from 10 to 60 s | assumed |
//! | configuration | that of live connections: bottlenecks are found, HyStart++, dips while in doubt | assumed |
//! | jitter | a packet's transmission on each way to a bottleneck | assumed, as [Floyd1992] advises |
//!
//! # Deviations
//!
//! - The quick form has no loss and 2 %, CUBIC, three seeds, and 2 to 6 s.

use core::time::Duration;

use fairpath_engine::{Coupling, EngineConfig};
use fairpath_scenario::Traffic;
use fairpath_sim::SimError;

use super::cell::{CONTENDERS, Cell, Contender, JUDGED, Queue, REFERENCES, in_parts_of};
use crate::{Cell as Number, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/loss", include_str!("loss.rs"), run);

const LOSSES: [f64; 4] = [0.0, 0.001, 0.005, 0.02];
const COMPETITORS: [&str; 2] = ["reno", "cubic"];
/// The reference as a column: CUBIC on each link, to which every loss is congestion.
const EVERY_LOSS: &str = "CUBIC, every loss";

fn cell(loss: f64, competitor: Option<&'static str>) -> Cell {
    Cell {
        is_shared: competitor.is_some(),
        paths: 2,
        mbps: 50,
        rtt_ms: 40,
        rtt_last: 1,
        queue: Queue::Millis(50),
        loss,
        competitor: competitor.unwrap_or("cubic"),
        competitors: usize::from(competitor.is_some()),
        is_late: false,
    }
}

/// The goodput in our place and the competitor's, in Mbit/s.
fn got(
    cell: &Cell,
    who: EngineConfig,
    over: &[usize],
    seed: u64,
    times: (Duration, Duration),
) -> Result<[f64; 2], SimError> {
    let outcome = cell.run(who, over, seed, times, Traffic::Bulk)?;
    let theirs = if cell.competitors == 0 { 0.0 } else { outcome.mean_goodput("theirs").as_mbps_f64() };
    Ok([outcome.flows[0].goodput.as_mbps_f64(), theirs])
}

fn run(context: &Context) -> Result<Report, Failure> {
    let losses = context.pick(vec![0.0, 0.02], LOSSES.to_vec());
    let competitors = context.pick(vec!["cubic"], COMPETITORS.to_vec());
    let seeds = context.seeds(context.pick(3, 4));
    let seconds = context.pick((2, 6), (10, 60));
    let times = (Duration::from_secs(seconds.0), Duration::from_secs(seconds.1));
    let separate: Vec<Cell> = losses.iter().map(|loss| cell(*loss, None)).collect();
    let alone = context.sweep(&separate, &seeds, |cell, seed| {
        let ours = CONTENDERS.iter().map(|who| who.engine(Coupling::Auto));
        let all = ours.chain([REFERENCES[0].as_reference()]);
        all.map(|who| Ok(got(cell, who, &[0, 1], seed, times)?[0])).collect::<Result<Vec<_>, SimError>>()
    })?;
    let columns: Vec<_> =
        CONTENDERS.iter().map(|one| one.title).chain([EVERY_LOSS]).map(|title| (title, "Mbit/s")).collect();
    let mut rates = Table::new("rates", "Two links of 50 Mbit/s that nobody else uses", &["loss"], &columns);
    for (cell, runs) in separate.iter().zip(&alone) {
        let numbers: [Number; CONTENDERS.len() + 1] =
            core::array::from_fn(|who| Number::of(runs.iter().map(|run| run[who])));
        rates.row([&percent(cell)], numbers);
    }
    let of = |other: &&'static str| losses.iter().map(|loss| cell(*loss, Some(*other))).collect::<Vec<_>>();
    let shared: Vec<Cell> = competitors.iter().flat_map(of).collect();
    let beside = context.sweep(&shared, &seeds, |cell, seed| {
        let reference = |one: &Contender| got(cell, one.as_reference(), &[0], seed, times);
        let ours = |who: &Contender| got(cell, who.engine(Coupling::Auto), &[0, 1], seed, times);
        let all = CONTENDERS.iter().map(ours).chain(REFERENCES.iter().map(reference));
        all.collect::<Result<Vec<_>, SimError>>()
    })?;
    let [mut share, mut left] = [
        ("share", "What two paths get on a shared link of 50 Mbit/s", "of one flow's"),
        ("left", "What they leave the competitor", "of what one flow leaves"),
    ]
    .map(|(name, title, unit)| {
        Table::new(name, title, &["competitor", "loss"], &CONTENDERS.map(|one| (one.title, unit)))
    });
    for (cell, runs) in shared.iter().zip(&beside) {
        for (at, table) in [&mut share, &mut left].into_iter().enumerate() {
            let of = |place: usize| runs.iter().map(move |run| run[place][at]);
            let numbers: [Number; CONTENDERS.len()] = core::array::from_fn(|who| {
                let reference = CONTENDERS.len() + usize::from(CONTENDERS[who].is_rate_based);
                in_parts_of(of(who), of(reference)).into()
            });
            table.row([cell.competitor, &percent(cell)], numbers);
        }
    }
    let mut fast = Verdict::ours("fast", "Random loss leaves coupled CUBIC most of the links.");
    let whole = rates.estimate(&[&percent(&separate[0])], JUDGED);
    for cell in &separate[1..] {
        let least = if cell.loss > 0.001 { 0.75 } else { 0.9 };
        let part = rates.estimate(&[&percent(cell)], JUDGED) / whole.clone();
        fast = fast.at_least(&format!("{}, of what there is without", percent(cell)), part, least);
    }
    let mut more = Verdict::ours("more", "It carries more than CUBIC does to which every loss is congestion.");
    for cell in &separate[1..] {
        let of = |who: &str| rates.estimate(&[&percent(cell)], who);
        let least = if cell.loss > 0.001 { 3.0 } else { 1.25 };
        more = more.at_least(&percent(cell), of(JUDGED) / of(EVERY_LOSS), least);
    }
    let mut fair = Verdict::ours("fair", "It leaves a competitor what one flow of CUBIC would, within a fifth.");
    for cell in &shared {
        let what = format!("beside {}, {}", cell.competitor, percent(cell));
        fair = fair.at_least(&what, left.estimate(&[cell.competitor, &percent(cell)], JUDGED), 0.8);
    }
    Ok(Report { tables: vec![rates, share, left], verdicts: vec![fast, more, fair], ..Report::default() })
}

fn percent(cell: &Cell) -> String {
    format!("{} %", cell.loss * 100.0)
}
