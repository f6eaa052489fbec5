//! How right all shared-bottleneck detectors are, over one grid.
//!
//! # Claim
//!
//! Ours, as no paper gives such a table: our detector finds at least 95 % of the pairs that share a
//! bottleneck, the median within 10 s, holds separate pairs together for at most 5 % of the time, and
//! is ahead of TR and of SSC (RFC 8382) in all three.
//!
//! # Topology
//!
//! ```text
//!             ┌─ access 0 ─┐                ┌─ own 0 ─ exit 0 ─┐
//!   session ──┤            ├─── common 0 ───┤                  ├── session
//!             ├─ access 1 ─┘                └─ own 1 ─ exit 1 ─┤
//!             └─ access 2 ───── common 1 ───── own 2 ─ exit 2 ─┘
//!   cross traffic k ──────────── common i ──── own j ──────────── cross traffic k
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | runs | 525 of 120 s; the levels of all factors are drawn from the number of the run, each level equally often | assumed |
//! | paths | 2: shared, separate; 3: 2+1; 4: 2+2, 3+1, all shared, all separate | assumed |
//! | shared | both paths cross one common link, and it is the narrowest link of both | assumed |
//! | separate | the narrowest link of at least one of them is its own, or there is no common link | assumed |
//! | bottlenecks | 10 to 40 Mbit/s, uniform in the logarithm; all alike in half the runs; other links 1 Gbit/s | assumed |
//! | queue | drop-tail, RED (gentle) and CoDel, of 40 to 160 ms | assumed |
//! | cross traffic | Reno, CUBIC, BBR; base round-trip times 20 to 200 ms | assumed |
//! | load | 1, 3, 8, 16 greedy flows on a bottleneck; light: transfers of 100 kB offer 30 % of it, and each path of the session sends 20 % | assumed |
//! | unresponsive traffic | none, 20 % of a bottleneck, 40 % of it on and off for 3 s each on average | assumed |
//! | base round-trip times | the shortest 20 to 50 ms, the longest 1 to 5 times that; a random part before and behind the bottleneck | assumed |
//! | jitter | up to 0, 2 and 10 ms, before the bottleneck | assumed |
//! | routes | stay in two thirds of the runs; in a third shared becomes separate, or the other way round, after about 40 s, and changes back after about 80 s | assumed |
//! | session | Reno on each path, uncoupled; detectors watch | assumed |
//! | seeds | all draws of a run begin with `training` or `reporting`; ours was tuned on the training runs 1 to 315 | assumed |
//!
//! # Deviations
//!
//! - Detectors only watch: what they say changes nothing. What a detector does to the paths that it
//!   couples is in `tr/table3` and `tr/table4`.
//! - A route changes by its links: those that were narrow become wide, and others narrow. Nothing
//!   else of a path changes.
//! - Everything counts, from the first packet of the session on: also a pair under light load, whose
//!   queue hardly ever builds and so carries little evidence; and after a change of routes the old
//!   verdict is wrong at once. Where flows spread over paths do not come out even, a bottleneck has
//!   up to three more.
//! - A run counts once, however many pairs it has. Intervals are those of runs.
//! - "no memory" is a detector whose yes is not held, so that what it decides from one time to the
//!   next can be told from what it remembers; SSC has no memory as published.
//! - The traces of another simulator are not part of this project. Where they are not beside it, every
//!   row of their table says so.

mod factors;
mod network;
mod roc;
mod score;
mod traces;
mod watch;

use core::time::Duration;

use self::factors::{Factors, Half, NAMES};
use self::network::Case;
use self::score::{Score, Summed};
use self::watch::{Entry, NO_MEMORY, ORACLE};
use crate::{Cell, Context, Estimate, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/grid", include_str!("grid.rs"), run);

/// Our detector, and what it is to be ahead of: TR, and SSC.
const OURS: &str = "concordance";
const TR: &str = "trendline";
const SSC: &str = "ssc_rfc8382";

/// What the tables show, and the unit.
const COLUMNS: [(&str, &str); 8] = [
    ("found", ""),
    ("found pairs that share", ""),
    ("together, shared", ""),
    ("together, separate", ""),
    ("time together that is right", ""),
    ("first correct verdict, median", "s"),
    ("never", ""),
    ("runs", ""),
];

/// The runs of one half: what each is like, and how right each detector was.
struct Runs {
    factors: Vec<Factors>,
    /// By run, and then by detector, the oracle last.
    scores: Vec<Vec<Score>>,
}

impl Runs {
    fn of(context: &Context, half: Half, seeds: &[u64], entries: &[Entry]) -> Result<Self, Failure> {
        let duration = Duration::from_secs(context.pick(25, 120));
        let results = context.sweep(&[half], seeds, |half, number| {
            let case = Case::new(&Factors::of(*half, number), duration);
            let verdicts = watch::run(&case, entries)?;
            Ok(verdicts.iter().map(|verdicts| Score::of(&case, verdicts)).collect::<Vec<_>>())
        })?;
        let factors = seeds.iter().map(|number| Factors::of(half, *number)).collect();
        Ok(Self { factors, scores: results.into_iter().flatten().collect() })
    }

    /// A detector over the runs that are meant.
    fn summed(&self, detector: usize, meant: impl Fn(&Factors) -> bool) -> Summed {
        let meant = self.factors.iter().zip(&self.scores).filter(|(factors, _)| meant(factors));
        Summed::over(meant.map(|(_, scores)| &scores[detector]))
    }

    fn cells(&self, detector: usize, meant: impl Fn(&Factors) -> bool) -> [Cell; COLUMNS.len()] {
        let count = self.factors.iter().filter(|factors| meant(factors)).count();
        let summed = self.summed(detector, meant);
        let Summed { recall, precision, shared, separate, right, first, never } = summed;
        let count = Cell::from(Estimate::from(count as f64));
        [recall, precision, shared, separate, right, first, never, count]
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let entries = Entry::all();
    let reported = Runs::of(context, Half::Reporting, &context.seeds(context.pick(7, 525)), &entries)?;
    let ours = [Entry::of(OURS)];
    let trained = Runs::of(context, Half::Training, &context.seeds(context.pick(3, 105)), &ours)?;
    let mut report = Report {
        tables: vec![
            detectors(&reported, &entries),
            by_factor(&reported, &entries),
            halves(&reported, &trained, &entries),
        ],
        figures: vec![roc::figure(&reported, &entries)],
        verdicts: verdicts(&reported, &entries),
        notes: Vec::new(),
    };
    let (table, missing) = traces::table(&entries, &traces::folder());
    report.tables.push(table);
    report.notes.extend(missing);
    Ok(report)
}

/// The place of a detector as it is in the catalogue.
fn place(entries: &[Entry], name: &str) -> usize {
    let found = entries.iter().position(|entry| entry.name == name && entry.setting.is_empty());
    found.expect("all detectors of the catalogue are watching")
}

fn detectors(runs: &Runs, entries: &[Entry]) -> Table {
    let mut table = Table::new("grid", "Detectors over all runs", &["detector", "setting"], &COLUMNS);
    let shown = entries.iter().enumerate().filter(|(_, entry)| entry.setting.is_empty() || entry.setting == NO_MEMORY);
    for (at, entry) in shown {
        table.row([entry.name, &entry.setting], runs.cells(at, |_| true));
    }
    table.row([ORACLE, ""], runs.cells(entries.len(), |_| true));
    table
}

fn by_factor(runs: &Runs, entries: &[Entry]) -> Table {
    let mut table = Table::new("factors", "Ours by factor", &["factor", "level"], &COLUMNS);
    let ours = place(entries, OURS);
    let is_light = |factors: &Factors| factors.load == 0;
    table.row(["all", ""], runs.cells(ours, |_| true));
    table.row(["all", "but light load"], runs.cells(ours, |factors| !is_light(factors)));
    for (factor, name) in NAMES.iter().enumerate() {
        let mut levels: Vec<&str> = Vec::new();
        for level in runs.factors.iter().map(|factors| factors.levels[factor]) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
        levels.sort_unstable();
        for level in levels {
            table.row([*name, level], runs.cells(ours, |factors| factors.levels[factor] == level));
        }
    }
    table
}

/// Ours on the runs that it was tuned on, beside those that it was not.
fn halves(reported: &Runs, trained: &Runs, entries: &[Entry]) -> Table {
    let mut table = Table::new("halves", "Ours on both halves of the grid", &["half"], &COLUMNS);
    table.row(["reporting"], reported.cells(place(entries, OURS), |_| true));
    table.row(["training"], trained.cells(0, |_| true));
    table
}

fn verdicts(runs: &Runs, entries: &[Entry]) -> Vec<Verdict> {
    let of = |name| runs.summed(place(entries, name), |_| true);
    let (ours, tr, ssc) = (of(OURS), of(TR), of(SSC));
    let oracle = runs.summed(entries.len(), |_| true);
    // Where most are never found, the time is that of a run.
    let first = |summed: &Summed| summed.first.ours.clone().unwrap_or_else(|| 120.0.into());
    let ahead = |claim: &str, name: &str, other: &Summed| {
        Verdict::ours(name, claim)
            .at_least("found, ours less theirs", ours.recall.estimate() - other.recall.estimate(), 0.0)
            .at_most(
                "together though separate, ours less theirs",
                ours.separate.estimate() - other.separate.estimate(),
                0.0,
            )
            .at_most("first correct verdict, ours less theirs, s", first(&ours) - first(other), 0.0)
    };
    vec![
        Verdict::ours("finds", "Ours finds 95 % of the pairs that share a bottleneck.").at_least(
            "part of the shared pairs that was found",
            ours.recall.estimate(),
            0.95,
        ),
        Verdict::ours("seldom wrong", "Ours holds separate pairs together for at most 5 % of the time.").at_most(
            "part of the time together, separate",
            ours.separate.estimate(),
            0.05,
        ),
        Verdict::ours("soon", "Ours gives its first correct verdict within 10 s in half of the cases.").at_most(
            "first correct verdict, median, s",
            first(&ours),
            10.0,
        ),
        Verdict::ours("oracle", "Who knows the truth is right all the time: truth and scores belong together.")
            .at_least("part of the shared pairs that was found", oracle.recall.estimate(), 1.0)
            .at_least("part of the time together, shared", oracle.shared.estimate(), 0.999)
            .at_most("part of the time together, separate", oracle.separate.estimate(), 0.001),
        ahead("Ours is ahead of TR in all three.", "ahead of TR", &tr),
        ahead("Ours is ahead of SSC (RFC 8382) in all three.", "ahead of SSC", &ssc),
    ]
}
