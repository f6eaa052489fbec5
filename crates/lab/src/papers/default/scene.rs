//! Two paths over one link beside one other flow, in parts of what one flow gets there; and over two links of them.
//!
//! # Claim
//!
//! Coupled CUBIC gets on one bottleneck what one flow of CUBIC would in its place, whoever is beside it, and on two what
//! two would.
//!
//! # Topology
//!
//! ```text
//!        ┌── path 1 ──┐
//!   ours ┤            ├── 20 Mbit/s, queue ── ours
//!        └── path 2 ──┘
//!   one competitor ────── 20 Mbit/s, queue ── competitor
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | link | 20 Mbit/s, 20 ms one way | assumed |
//! | queue | 20, 50, 100 and 200 ms, drop-tail | assumed |
//! | competitor | one flow of Reno, CUBIC, BBRv3 or BBRv1 | assumed |
//! | reference | one flow of CUBIC in our place, of BBRv3 for what goes by rates; seed by seed | assumed |
//! | rates | from 30 to 180 s | assumed |
//! | two links | each as that one, with a competitor on each; the reference is the sum of one flow on each, by itself | assumed |
//! | configuration | that of live connections: HyStart++, dips while in doubt | assumed |
//! | jitter | a packet's transmission on each way to a bottleneck | assumed, as [Floyd1992] advises |
//!
//! # Deviations
//!
//! - The quick form has a short and a long queue, Reno and CUBIC, and 10 to 45 s. Where the bottleneck is given it has LIA, OLIA,
//!   BALIA and coupled CUBIC, elsewhere coupled CUBIC alone, and nothing of the rest of the catalogue.
//! - Competitors have no HyStart++.

use fairpath_engine::Coupling;

use super::cell::{CONTENDERS, Cell, Contender, JUDGED, JUDGED_AT, OTHERS, REFERENCES, in_parts_of};
use crate::{Cell as Number, Context, Estimate, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("default/scene", include_str!("scene.rs"), run);

const QUEUES_MS: [u64; 4] = [20, 50, 100, 200];
const COMPETITORS: [&str; 4] = ["reno", "cubic", "bbr3", "bbr"];

fn cell(competitor: &'static str, queue_ms: u64, is_shared: bool) -> Cell {
    Cell { competitor, ..Cell::beside_cubic(is_shared, queue_ms) }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let queues = context.pick(vec![20, 200], QUEUES_MS.to_vec());
    let competitors = context.pick(vec!["reno", "cubic"], COMPETITORS.to_vec());
    let cells = |is_shared: bool| -> Vec<Cell> {
        let of = |competitor: &&'static str| {
            queues.iter().map(|queue| cell(competitor, *queue, is_shared)).collect::<Vec<_>>()
        };
        competitors.iter().flat_map(of).collect()
    };
    let judged = &CONTENDERS[JUDGED_AT..=JUDGED_AT];
    let (given, found) = context.pick((&CONTENDERS[..=JUDGED_AT], judged), (&CONTENDERS[..], &CONTENDERS[..]));
    let others = context.pick(&OTHERS[..0], &OTHERS);
    let all = context.pick(judged.to_vec(), CONTENDERS.into_iter().chain(OTHERS).collect());
    let (shared, separate) = (cells(true), cells(false));
    let one_link = "Two paths in parts of one flow, where that they share a bottleneck is";
    let tables = [
        ("given", format!("{one_link} given"), &shared, Coupling::Always, given),
        ("found", format!("{one_link} found"), &shared, Coupling::Auto, found),
        ("others", format!("{one_link} found: the rest of the catalogue"), &shared, Coupling::Auto, others),
        (
            "separate",
            "Two paths over two links in parts of one flow on each".to_owned(),
            &separate,
            Coupling::Auto,
            &all,
        ),
    ];
    let tables = tables.into_iter().filter(|(.., who)| !who.is_empty());
    let tables = tables.map(|(name, title, cells, coupling, who)| table(context, (name, &title), cells, coupling, who));
    let tables = tables.collect::<Result<Vec<Table>, Failure>>()?;
    let mut verdicts = verdicts(&shared, &tables);
    verdicts.extend(tables.last().map(|table| two_links(&separate, table)));
    Ok(Report { tables, verdicts, ..Report::default() })
}

/// The contenders' rates over those of their references.
fn table(
    context: &Context,
    (name, title): (&str, &str),
    cells: &[Cell],
    coupling: Coupling,
    contenders: &[Contender],
) -> Result<Table, Failure> {
    let seeds = context.seeds(context.pick(2, 3));
    let is_quick = context.pick(true, false);
    let got = context.sweep(cells, &seeds, |cell, seed| {
        let any_rate_based = contenders.iter().any(|one| one.is_rate_based);
        let references = REFERENCES.iter().filter(|one| !one.is_rate_based || any_rate_based);
        let references = references.map(|one| cell.reference(one, seed, is_quick)).collect::<Result<Vec<_>, _>>()?;
        let ours = contenders.iter().map(|one| cell.contend(one, coupling, seed, is_quick));
        Ok((references, ours.collect::<Result<Vec<_>, _>>()?))
    })?;
    let mut columns = vec![("one CUBIC / competitor", "")];
    columns.extend(contenders.iter().map(|one| (one.title, "of one flow's")));
    let mut table = Table::new(name, title, &["competitor", "queue"], &columns);
    for (cell, runs) in cells.iter().zip(&got) {
        let links = if cell.is_shared { 1 } else { cell.paths };
        let theirs = runs.iter().map(|(references, _)| references[0].theirs * links as f64);
        let mut numbers: Vec<Number> =
            vec![in_parts_of(runs.iter().map(|(references, _)| references[0].mbps), theirs).into()];
        numbers.extend(contenders.iter().enumerate().map(|(at, one)| {
            let reference = runs.iter().map(|(references, _)| references[usize::from(one.is_rate_based)].mbps);
            Number::from(in_parts_of(runs.iter().map(|(_, ours)| ours[at].mbps), reference))
        }));
        table.push(&[cell.competitor, &cell.queue.name()], &numbers);
    }
    Ok(table)
}

fn two_links(cells: &[Cell], table: &Table) -> Verdict {
    let claim = "Over two links it gets at least 0.95 of what a flow on each would.";
    cells.iter().fold(Verdict::ours("two links", claim), |verdict, cell| {
        let got = table.estimate(&[cell.competitor, &cell.queue.name()], JUDGED);
        verdict.at_least(&format!("{}, {}", cell.competitor, cell.queue.name()), got, 0.95)
    })
}

fn verdicts(cells: &[Cell], tables: &[Table]) -> Vec<Verdict> {
    let of =
        |table: &Table, cell: &Cell, contender: &str| table.estimate(&[cell.competitor, &cell.queue.name()], contender);
    let mut given = Verdict::ours("one flow", "Coupled CUBIC gets 0.8 to 1.25 of what one flow would.");
    let mut found = Verdict::ours("one flow, found", "So it does where the bottleneck has to be found.");
    for cell in cells {
        let what = format!("{}, {}", cell.competitor, cell.queue.name());
        given = given.between(&what, of(&tables[0], cell, JUDGED), 0.8, 1.25);
        found = found.between(&what, of(&tables[1], cell, JUDGED), 0.8, 1.25);
    }
    // How far from one on the mean, whichever way: |ln|, so that half and double are alike.
    let distance = |table: &Table, contender: &str| {
        Estimate::mean_of(cells.iter().map(|cell| {
            let ratio = of(table, cell, contender);
            let (mean, half) = (ratio.mean, ratio.half_width);
            Estimate::with_interval(mean.ln().abs(), half.map(|half| half / mean), ratio.samples)
        }))
    };
    let mut nearer = Verdict::ours("nearer", "Coupled CUBIC is nearer to one flow than the coupled rules of Reno are.");
    for (table, name) in tables.iter().zip(["given", "found"]) {
        let is_there = |rule: &&str| table.columns.iter().any(|column| column.name == *rule);
        for rule in ["LIA", "OLIA", "BALIA"].into_iter().filter(is_there) {
            let more = distance(table, rule) - distance(table, JUDGED);
            nearer = nearer.at_least(&format!("{name}: mean |ln ratio|, {rule} − coupled CUBIC"), more, 0.0);
        }
    }
    vec![given, found, nearer]
}
