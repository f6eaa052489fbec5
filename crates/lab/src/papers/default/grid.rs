//! Cells spread over networks of today: what each controller gets in parts of what single flows would.
//!
//! # Claim
//!
//! As people get it, coupled CUBIC is fair where paths share a bottleneck and fast where they do not.
//!
//! # Topology
//!
//! ```text
//!          ┌── path 1 ──┐                           ┌── path 1 ── L1, queue ──┐
//!   ours ──┤    …       ├── L, queue ── ours   ours ┤    …                    ├── ours
//!          └── path n ──┘                           └── path n ── Ln, queue ──┘
//!   competitors ────────── L                        competitors ── each of them
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates | 2, 20, 100, 500 Mbit/s | assumed |
//! | round trips | 10, 40, 120, 300 ms, equal or 1 : 4 | assumed |
//! | queues | 0.25, 1, 4 and 10 BDP, drop-tail, and CoDel | assumed |
//! | competitors | 1, 3 or 10 of Reno, CUBIC, BBRv1, BBRv3 on each bottleneck | assumed |
//! | random loss | 0, 0.1 and 1 % | assumed |
//! | paths | 2 and 4, over one bottleneck or one each; together with the others or 10 s later | assumed |
//! | reference | one flow of CUBIC in our place, of BBRv3 for what goes by rates; on separate links the sum of one on each, each by itself | assumed |
//! | configuration | that of live connections: bottlenecks are found, HyStart++, dips while in doubt | assumed |
//! | rates measured | from 30 to 180 s; at 100 Mbit/s from 20 to 90 s, at 500 Mbit/s from 5 to 20 s | assumed |
//! | jitter | a packet's transmission on each way to a bottleneck | assumed, as [Floyd1992] advises |
//!
//! # Deviations
//!
//! - A cell is run with three seeds, with twelve where coupled CUBIC is judged. The whole grid has 46,080 cells. A point of
//!   a sequence that fills space evenly says which are taken, so that each value of each parameter comes about equally
//!   often; the intervals of shares are those of independent cells.
//! - RED, FQ-CoDel and flows of our own as competitors are left out.
//! - The quick form has a dozen cells of 2 and 10 Mbit/s, each with one seed, from 10 to 45 s.

use fairpath_engine::Coupling;
use fairpath_sim::SimError;
use serde::{Deserialize, Serialize};

use super::cell::{CONTENDERS, Cell, Contender, Got, JUDGED, JUDGED_AT, Queue, REFERENCES, in_parts_of};
use crate::{
    Axis, Cell as Number, Context, Estimate, Experiment, Failure, Figure, Report, Series, Table, Verdict, ranked,
};

pub(super) const EXPERIMENT: Experiment =
    Experiment::new("default/grid", include_str!("grid.rs"), run).left_to_full(&["goals", "kept"]);

/// Square roots of primes: the multiples of their fractions fill the unit cube evenly, whatever the number of points.
const STEPS: [f64; 9] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0];

/// The cell at this place of the sequence.
fn cell(at: usize, rates: &[u64]) -> Cell {
    let chosen = |axis: usize, among: usize| ((at as f64 * STEPS[axis].sqrt()).fract() * among as f64) as usize;
    let (rtt_ms, rtt_last) = [(10, 1), (40, 1), (120, 1), (300, 1), (40, 4)][chosen(1, 5)];
    Cell {
        is_shared: at.is_multiple_of(2),
        paths: [2, 4][chosen(0, 2)],
        mbps: rates[chosen(2, rates.len())],
        rtt_ms,
        rtt_last,
        queue: [Queue::Bdp(0.25), Queue::Bdp(1.0), Queue::Bdp(4.0), Queue::Bdp(10.0), Queue::CoDel][chosen(3, 5)],
        loss: [0.0, 0.001, 0.01][chosen(4, 3)],
        competitor: ["reno", "cubic", "bbr", "bbr3"][chosen(5, 4)],
        competitors: [1, 3, 10][chosen(6, 3)],
        is_late: chosen(7, 2) == 1,
    }
}

/// A contender's results in a cell, relative to the reference.
#[derive(Clone, Debug)]
struct Compared {
    of_reference: Estimate,
    /// In parts of what one path of the judged one gets, or each of its paths by itself.
    of_own: Estimate,
    of_best: Estimate,
    /// The competitors' rate, over their rate beside the reference.
    left: Estimate,
    wait: Estimate,
}

/// The results of all runs in a cell, one with each seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Runs {
    /// By family; none where nothing is compared with it.
    references: Vec<Vec<Got>>,
    /// One path of the judged one, which takes losses as it does.
    own: Vec<Got>,
    /// By contender.
    ours: Vec<Vec<Got>>,
}

impl Runs {
    fn compared(&self, contender: usize) -> Compared {
        let (ours, family) = (&self.ours[contender], usize::from(CONTENDERS[contender].is_rate_based));
        let reference = &self.references[family];
        let over = |reference: &[Got], of: fn(&Got) -> f64, than: fn(&Got) -> f64| {
            in_parts_of(ours.iter().map(of), reference.iter().map(than))
        };
        // One millisecond more keeps ratios of queues that are nearly empty meaningful.
        let wait = |got: &Got| got.wait_ms + 1.0;
        Compared {
            of_own: over(&self.own, |got| got.mbps, |own| own.mbps),
            of_reference: over(reference, |got| got.mbps, |one| one.mbps),
            of_best: over(reference, |got| got.mbps, |one| one.best),
            left: over(reference, |got| got.theirs, |one| one.theirs),
            wait: over(reference, wait, wait),
        }
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let rates: &[u64] = context.pick(&[2, 10], &[2, 20, 100, 500]);
    // More seeds give more cells here.
    let places = context.seeds(context.pick(12, 48));
    let cells: Vec<Cell> = places.iter().map(|at| cell(*at as usize, rates)).collect();
    let (is_quick, times, judged_times) = context.pick((true, 1, 1), (false, 3, 12));
    // The quick form leaves out those that go by rates, and their reference.
    let (families, contenders) = context.pick((1, JUDGED_AT + 1), (REFERENCES.len(), CONTENDERS.len()));
    let got = context.sweep(&[()], &places, |(), at| {
        let cell = cell(at as usize, rates);
        let each = |times: u64, run: &dyn Fn(u64) -> Result<Got, SimError>| {
            (0..times).map(|again| run(at * judged_times + again)).collect::<Result<Vec<Got>, _>>()
        };
        // The judged one is compared with the first reference.
        let reference = |one: usize| {
            let times = if one == 0 { judged_times } else { times };
            each(times, &|seed| cell.reference(&REFERENCES[one], seed, is_quick))
        };
        let contend = |one: usize| {
            let times = if one == JUDGED_AT { judged_times } else { times };
            each(times, &|seed| cell.contend(&CONTENDERS[one], Coupling::Auto, seed, is_quick))
        };
        Ok(Runs {
            references: (0..families).map(reference).collect::<Result<Vec<_>, _>>()?,
            own: each(judged_times, &|seed| cell.own_path(&CONTENDERS[JUDGED_AT], seed, is_quick))?,
            ours: (0..contenders).map(contend).collect::<Result<Vec<_>, _>>()?,
        })
    })?;
    let got: Vec<Runs> = got.into_iter().flatten().collect();
    let all: Vec<Vec<Compared>> =
        (0..contenders).map(|contender| got.iter().map(|runs| runs.compared(contender)).collect()).collect();
    let cells_table = cells_table(&cells, &all);
    let goals = goals_table(&cells, &all);
    let own = own_table(&cells, &all[JUDGED_AT]);
    let verdicts = verdicts(&goals, &own);
    let figures = vec![figure(&cells, &all)];
    Ok(Report { tables: vec![goals, own, cells_table], figures, verdicts, ..Report::default() })
}

fn cells_table(cells: &[Cell], all: &[Vec<Compared>]) -> Table {
    let own = ("coupled CUBIC beside itself", "of its own path");
    let columns: Vec<(&str, &str)> =
        CONTENDERS[..all.len()].iter().map(|one| (one.title, "of the reference")).chain([own]).collect();
    let mut table = Table::new("cells", "Goodput in parts of the reference, cell by cell", &["cell"], &columns);
    for (at, cell) in cells.iter().enumerate() {
        let numbers = all.iter().map(|compared| compared[at].of_reference.clone());
        let numbers: Vec<Number> = numbers.chain([all[JUDGED_AT][at].of_own.clone()]).map(Number::from).collect();
        table.push(&[&cell.name()], &numbers);
    }
    table
}

/// The goals, as columns: what they are called, and which cells they are about.
const GOALS: [&str; 9] = [
    "shared, 0.8 to 1.25",
    "shared, 0.67 to 1.5",
    "shared, mean |ln|",
    "separate, at least 0.95",
    "separate, mean of the sum",
    "at least 0.97 of the best path",
    "shared, no random loss, 0.8 to 1.25",
    "shared, others keep 0.8",
    "wait, no random loss",
];

fn goals_table(cells: &[Cell], all: &[Vec<Compared>]) -> Table {
    let columns: Vec<(&str, &str)> = GOALS.iter().map(|goal| (*goal, "")).chain([("wait / reference's", "")]).collect();
    let title = "The goals: parts of the cells in which they are reached, and means";
    let mut table = Table::new("goals", title, &["controller"], &columns);
    for (contender, compared) in CONTENDERS.iter().zip(all) {
        let of = |is_shared: bool| {
            let pairs = cells.iter().zip(compared);
            pairs.filter(move |(cell, _)| cell.is_shared == is_shared).map(|(_, compared)| compared)
        };
        let lossless = |is_shared: Option<bool>| {
            let pairs = cells.iter().zip(compared).filter(|(cell, _)| cell.loss == 0.0);
            pairs.filter(move |(cell, _)| is_shared.is_none_or(|is| cell.is_shared == is)).map(|(_, compared)| compared)
        };
        let ratio = |one: &Compared| one.of_reference.mean;
        let mean = |values: Vec<f64>| Number::of(values);
        let within = |low: f64, high: f64| share(of(true).map(|one| (low..=high).contains(&ratio(one))));
        let distance = of(true).map(|one| ratio(one).max(1e-3).ln().abs()).collect();
        let fair = lossless(Some(true)).map(|one| (0.8..=1.25).contains(&ratio(one)));
        let numbers: [Number; GOALS.len() + 1] = [
            within(0.8, 1.25).into(),
            within(2.0 / 3.0, 1.5).into(),
            mean(distance),
            share(of(false).map(|one| ratio(one) >= 0.95)).into(),
            mean(of(false).map(ratio).collect()),
            share(compared.iter().map(|one| one.of_best.mean >= 0.97)).into(),
            share(fair).into(),
            share(of(true).map(|one| one.left.mean >= 0.8)).into(),
            mean(lossless(None).map(|one| one.wait.mean).collect()),
            mean(compared.iter().map(|one| one.wait.mean).collect()),
        ];
        table.row([contender.title], numbers);
    }
    table
}

/// The goals in parts of one path that takes losses as the judged one does: what is above it is coupling, and not what
/// losses are taken for.
const OWN: [&str; 5] = [
    "shared, 0.8 to 1.25",
    "shared, interval meets 0.8 to 1.25",
    "shared, 0.67 to 1.5",
    "separate, at least 0.95",
    "separate, mean of the sum",
];

fn own_table(cells: &[Cell], judged: &[Compared]) -> Table {
    let title = "The same in parts of one of its own paths alone, or of the sum of them, each by itself";
    let mut table = Table::new("own", title, &["controller"], &OWN.map(|goal| (goal, "")));
    let of = |is_shared: bool| {
        let pairs = cells.iter().zip(judged).filter(move |(cell, _)| cell.is_shared == is_shared);
        pairs.map(|(_, compared)| &compared.of_own)
    };
    let meets = |one: &Estimate| {
        let half = one.half_width.unwrap_or(0.0);
        one.mean + half >= 0.8 && one.mean - half <= 1.25
    };
    let numbers: [Number; OWN.len()] = [
        share(of(true).map(|one| (0.8..=1.25).contains(&one.mean))).into(),
        share(of(true).map(meets)).into(),
        share(of(true).map(|one| (2.0 / 3.0..=1.5).contains(&one.mean))).into(),
        share(of(false).map(|one| one.mean >= 0.95)).into(),
        Number::of(of(false).map(|one| one.mean)),
    ];
    table.row([JUDGED], numbers);
    table
}

/// The part of the cells in which something is so. The interval is that of independent cells, with two of each kind
/// added [AgrestiCoull1998], so that none of a few is not taken for none of all.
fn share(cells: impl Iterator<Item = bool>) -> Estimate {
    let (so, count) = cells.fold((0, 0), |(so, count), is| (so + usize::from(is), count + 1));
    if count == 0 {
        return Estimate::unknown();
    }
    let (part, more) = (so as f64 / count as f64, (count + 4) as f64);
    let middle = (so + 2) as f64 / more;
    Estimate::with_interval(part, Some(1.96 * (middle * (1.0 - middle) / more).sqrt()), count)
}

fn verdicts(goals: &Table, own: &Table) -> Vec<Verdict> {
    let of = |goal: &str| goals.estimate(&[JUDGED], goal);
    let all = "As people get it, coupled CUBIC is fair on shared bottlenecks and fast on separate ones.";
    let all = Verdict::ours("goals", all)
        .at_least("shared cells within 0.8 and 1.25 of one flow", of(GOALS[0]), 0.9)
        .at_least("shared cells within 0.67 and 1.5", of(GOALS[1]), 0.98)
        .at_least("separate cells with 0.95 of the sum of references", of(GOALS[3]), 0.9)
        .at_least("cells with 0.97 of the best single path", of(GOALS[5]), 0.98)
        .at_most("mean wait beside the reference's", of("wait / reference's"), 1.0);
    let kept = "Where random loss keeps a single flow back, what it leaves unused is taken, and not what others have.";
    let kept = Verdict::ours("kept", kept)
        .at_least("shared cells without random loss within 0.8 and 1.25", of(GOALS[6]), 0.9)
        .at_least("shared cells in which the others keep 0.8 of what one flow leaves them", of(GOALS[7]), 0.9);
    let fast = "On separate bottlenecks it gets nine tenths of the sum of single flows, on the mean of the cells.";
    let fast = Verdict::ours("fast", fast).at_least("goodput / sum of references", of(GOALS[4]), 0.9);
    let reason = "Where packets are lost at random, one flow of CUBIC leaves most of the link unused, and what is lost while \
                  no packet waits is no congestion to ours: we get many times as much. What that takes from others \
                  is the next verdict.";
    let crowded = "Beside ten others on a slow link a flow's part is a few packets, and each path keeps two; on long fast \
                   links fifty round trips are too few to find the bottleneck (the table of cells shows which).";
    let apart = "Links that are alike count as one for moments, and where nobody loses at random no path has more than one flow.";
    let of = |goal: &str| own.estimate(&[JUDGED], goal);
    let alone = "Beside one of its own paths, which takes losses as it does, it is as fair and as fast.";
    let alone = Verdict::ours("of its own path", alone)
        .at_least("shared cells within 0.8 and 1.25 of one path", of(OWN[0]), 0.9)
        .at_least("shared cells within 0.67 and 1.5", of(OWN[2]), 0.98)
        .at_least("separate cells with 0.95 of the sum of its paths", of(OWN[3]), 0.9);
    vec![all.because(reason), kept.because(crowded), fast.because(apart), alone.because(crowded)]
}

fn figure(cells: &[Cell], all: &[Vec<Compared>]) -> Figure {
    let panel = |is_shared: bool| {
        let series = |(contender, compared): (&Contender, &Vec<Compared>)| {
            let of = cells.iter().zip(compared).filter(|(cell, _)| cell.is_shared == is_shared);
            // Contenders with ten times the rate of one flow would hide all others.
            let series = Series::new(
                contender.title,
                contender.congestion,
                ranked(of.map(|(_, one)| one.of_reference.mean.min(4.0))),
            );
            if contender.couples { series } else { series.dashed() }
        };
        CONTENDERS.iter().zip(all).map(series).collect::<Vec<_>>()
    };
    let axes = || (Axis::new("cells, by rank", ""), Axis::new("goodput / reference", ""));
    let ((x, y), (x2, y2)) = (axes(), axes());
    Figure::new("cells", "What each controller gets in parts of its reference")
        .lines("One bottleneck: one flow", x, y, panel(true))
        .lines("Separate ones: the sum of flows", x2, y2, panel(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_parameter_comes_about_equally_often() {
        let cells: Vec<Cell> = (1..=72).map(|at| cell(at, &[2, 20, 100, 500])).collect();
        let count = |is: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is(cell)).count();
        assert_eq!(count(&|cell| cell.is_shared), 36);
        for mbps in [2, 20, 100, 500] {
            assert!((15..=21).contains(&count(&|cell| cell.mbps == mbps)), "{mbps}");
        }
        for competitor in ["reno", "cubic", "bbr", "bbr3"] {
            assert!((15..=21).contains(&count(&|cell| cell.competitor == competitor)), "{competitor}");
            assert!((6..=12).contains(&count(&|cell| cell.competitor == competitor && cell.is_shared)), "{competitor}");
        }
    }
}
