//! How right all shared-bottleneck detectors are, over one grid.
//!
//! # Claim
//!
//! Ours, as no paper gives such a table: the engine couples at least 95 % of the pairs that share a
//! bottleneck, the median within 10 s, and separate pairs for at most 5 % of the time; and its detector is
//! ahead of TR and of SSC (RFC 8382) in all three.
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
//! | session | Reno on each path, uncoupled; detectors watch, and are given every round-trip time | assumed |
//! | the engine | a second run of the same network, whose session couples as over real networks: its detector is given what the engine gives it | assumed |
//! | seeds | all draws of a run begin with `training` or `reporting`; ours was tuned on the training runs 1 to 315 | assumed |
//!
//! # Deviations
//!
//! - Detectors only watch: what they say changes nothing, and they hear more than an engine would tell
//!   them. What an engine decides is in its own row, and by factor. What a detector does to the paths
//!   that it couples is in `tr/table3` and `tr/table4`.
//! - A pair that was together before its routes parted, and is not let go of at once, counts in the time
//!   together and not as a false verdict.
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

pub(super) mod classes;
mod factors;
mod network;
mod roc;
mod score;
pub(super) mod traces;
mod watch;

use core::time::Duration;

use self::factors::{Factors, Half, NAMES};
use self::network::Case;
use self::score::{Score, Summed};
use self::watch::{Entry, NO_MEMORY, ORACLE};
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tr/grid", include_str!("grid.rs"), run).left_to_full(&[
    "finds",
    "seldom wrong",
    "soon",
    "ahead of TR",
    "ahead of SSC",
]);

/// The row of the engine, whose session is coupled as over real networks.
const ENGINE: &str = "the engine";

/// Our detector, and what it is to be ahead of: TR, and SSC.
const OURS: &str = "concordance";
const TR: &str = "trendline";
const SSC: &str = "ssc_rfc8382";

/// The columns of the tables, with their units.
const COLUMNS: [(&str, &str); 9] = [
    ("found", ""),
    ("found pairs that share", ""),
    ("together, shared", ""),
    ("together, separate", ""),
    ("time together that is right", ""),
    ("false verdicts", "in an hour"),
    ("first correct verdict, median", "s"),
    ("never", ""),
    ("runs", ""),
];

/// The runs of one half: what each is like, and how right each detector was.
struct Runs {
    factors: Vec<Factors>,
    /// By run, and then by detector; then the oracle, and last what the engine decided.
    scores: Vec<Vec<Score>>,
}

impl Runs {
    fn of(context: &Context, half: Half, seeds: &[u64], entries: &[Entry]) -> Result<Self, Failure> {
        let duration = Duration::from_secs(context.pick(25, 120));
        let results = context.sweep(&[half], seeds, |half, number| {
            let case = Case::new(&Factors::of(*half, number), duration);
            let mut verdicts = watch::run(&case, entries)?;
            verdicts.push(watch::run_live(&case.clone().live())?);
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
        self.summed(detector, meant).cells(count)
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let entries = Entry::all();
    let reported = Runs::of(context, Half::Reporting, &context.seeds(context.pick(7, 525)), &entries)?;
    let tuned: Vec<Entry> = [Entry::of(OURS)].into_iter().chain(watch::alphas()).collect();
    let trained = Runs::of(context, Half::Training, &context.seeds(context.pick(3, 105)), &tuned)?;
    let mut report = Report {
        tables: vec![
            detectors(&reported, &entries),
            by_factor(&reported, &entries),
            halves(&reported, &trained, &entries, engine(&tuned)),
            swept(&reported, &entries),
            alphas(&reported, &entries, &trained, &tuned),
        ],
        figures: vec![roc::figure(&reported, &entries)],
        verdicts: verdicts(&reported, &entries),
        ..Report::default()
    };
    let (table, missing) = traces::table(&entries, &traces::folder());
    report.tables.push(table);
    report.missing.extend(missing);
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
    table.row([ORACLE, ""], runs.cells(oracle(entries), |_| true));
    table.row([ENGINE, ""], runs.cells(engine(entries), |_| true));
    table
}

/// The places of what is no entry.
fn oracle(entries: &[Entry]) -> usize {
    entries.len()
}

fn engine(entries: &[Entry]) -> usize {
    entries.len() + 1
}

fn by_factor(runs: &Runs, entries: &[Entry]) -> Table {
    let mut table = Table::new("factors", "What the engine decides, by factor", &["factor", "level"], &COLUMNS);
    let ours = engine(entries);
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
fn halves(reported: &Runs, trained: &Runs, entries: &[Entry], engine_trained: usize) -> Table {
    let mut table = Table::new("halves", "Ours on both halves of the grid", &["half", "what"], &COLUMNS);
    table.row(["reporting", OURS], reported.cells(place(entries, OURS), |_| true));
    table.row(["training", OURS], trained.cells(0, |_| true));
    table.row(["reporting", ENGINE], reported.cells(engine(entries), |_| true));
    table.row(["training", ENGINE], trained.cells(engine_trained, |_| true));
    table
}

/// Every setting that was tried of the detectors.
fn swept(runs: &Runs, entries: &[Entry]) -> Table {
    let mut table = Table::new("swept", "What settings of the detectors do", &["detector", "setting"], &COLUMNS);
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.setting.is_empty()) {
        table.row([entry.name, &entry.setting], runs.cells(at, |_| true));
    }
    table
}

/// The trend line with each weight of a new sample: who chooses, chooses on the training half.
fn alphas(reported: &Runs, entries: &[Entry], trained: &Runs, tuned: &[Entry]) -> Table {
    let title = "TR by the weight of a new sample (alpha), which the paper's text has lost";
    let mut table = Table::new("alpha", title, &["alpha", "half"], &COLUMNS);
    for alpha in watch::ALPHAS {
        for (half, runs, entries) in [("training", trained, tuned), ("reporting", reported, entries)] {
            let at = entries.iter().position(|entry| entry.setting == watch::alpha_setting(alpha));
            let at = at.expect("all weights are watching");
            table.row([&alpha.to_string(), half], runs.cells(at, |_| true));
        }
    }
    table
}

fn verdicts(runs: &Runs, entries: &[Entry]) -> Vec<Verdict> {
    let of = |name| runs.summed(place(entries, name), |_| true);
    let (ours, tr, ssc) = (of(OURS), of(TR), of(SSC));
    let [oracle, live] = [oracle(entries), engine(entries)].map(|at| runs.summed(at, |_| true));
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
        Verdict::ours("finds", "The engine couples 95 % of the pairs that share a bottleneck.").at_least(
            "part of the shared pairs that was found",
            live.recall.estimate(),
            0.95,
        ),
        Verdict::ours("seldom wrong", "The engine couples separate pairs for at most 5 % of the time.").at_most(
            "part of the time together, separate",
            live.separate.estimate(),
            0.05,
        ),
        Verdict::ours("soon", "The engine first couples what shares a bottleneck within 10 s in half of the cases.")
            .at_most("first correct verdict, median, s", first(&live), 10.0),
        Verdict::ours("oracle", "Who knows the truth is right all the time: truth and scores belong together.")
            .at_least("part of the shared pairs that was found", oracle.recall.estimate(), 1.0)
            // It answers with the first acknowledgement.
            .at_least("part of the time together, shared", oracle.shared.estimate(), 0.99)
            .at_most("part of the time together, separate", oracle.separate.estimate(), 0.01),
        ahead("Our detector is ahead of TR in all three.", "ahead of TR", &tr),
        ahead("Our detector is ahead of SSC (RFC 8382) in all three.", "ahead of SSC", &ssc),
    ]
}
