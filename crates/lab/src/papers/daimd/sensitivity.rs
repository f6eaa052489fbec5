//! What DAIMD's own parameters do, and whether there are better ones.
//!
//! # Claim
//!
//! Ours, because the paper leaves D0, T and W0 open: there are values with which everything holds that
//! the paper says of DAIMD, also that it induces less queueing delay than LIA, and which are as near to
//! Table II as those of `daimd/table2` or nearer.
//!
//! # Topology
//!
//! ```text
//!               ┌─── A, queue of one bandwidth-delay product ───┐
//!   multipath ──┤                                               ├── multipath
//!               └─── B, queue of one bandwidth-delay product ───┘
//!   Reno 1 ───────── A ──────────────────────────────────────────── Reno 1
//!   Reno 2 ───────── B ──────────────────────────────────────────── Reno 2
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | paths and queues | those of Tables I and II | paper |
//! | D0 | 0.5 to 0.95 of the longest queue seen | assumed |
//! | D1, below which a cut may follow a cut | 0.5 of it, or 0.1 below D0 where that is less | assumed |
//! | T | 0 to 2 smoothed round-trip times | assumed |
//! | W0 | 5 to 20 packets | assumed |
//! | error | how far the six rates of DAIMD in Table II are off on average, in parts of them | assumed |
//! | nearest | the least error of those that fill idle paths without a loss and stay behind Reno | assumed |
//! | best | the least wait of those whose error is at most 0.02 above that | assumed |
//! | seeds | tuned on those from 1001 on, reported on those from 1 on | assumed |
//!
//! # Deviations
//!
//! None: the paper has no such experiment.

use core::time::Duration;

use fairpath_engine::{Daimd, EngineConfig};

use super::setup::{CAPACITY, Case, DELAY, Seen, as_printed, as_seen, daimd};
use super::table2::PRINTED;
use crate::{Axis, Cell, Context, Estimate, Experiment, Failure, Figure, Report, Series, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("daimd/sensitivity", include_str!("sensitivity.rs"), run);

/// The results of one choice of parameters.
struct Tried {
    engine: EngineConfig,
    /// The least utilisation of any path in both idle settings.
    used: Cell,
    /// Packets lost on idle paths after slow start.
    lost: Cell,
    /// How long packets wait on the idle paths of different capacity, in ms.
    wait: Cell,
    /// The rates in Table II: setting by setting, path by path, beside those printed for DAIMD.
    rates: Vec<Cell>,
    /// The largest part of Reno's rate that was taken on a path.
    part_of_reno: Estimate,
}

impl Tried {
    fn rule(&self) -> &Daimd {
        &self.engine.parameters.daimd
    }

    /// How far the rates are from Table II on average, in parts of it.
    fn error(&self) -> Estimate {
        let errors = self.rates.iter().map(|rate| (rate.estimate() / rate.paper.unwrap_or(f64::NAN) - 1.0).abs());
        Estimate::mean_of(errors)
    }

    /// Whether it fills idle paths without a loss and stays behind Reno.
    fn is_admissible(&self) -> bool {
        self.used.mean() >= 0.95 && self.lost.mean() == 0.0 && self.part_of_reno.mean <= 1.0
    }

    /// D0, T and W0; for LIA, which has none, its name.
    fn heads(&self) -> [String; 3] {
        let Daimd { full, hold_rtts, window_least, .. } = self.rule();
        match self.engine.congestion.as_str() {
            "daimd" => [full.to_string(), hold_rtts.to_string(), window_least.to_string()],
            other => [other.to_uppercase(), String::new(), String::new()],
        }
    }
}

fn grid(context: &Context) -> Vec<EngineConfig> {
    let thresholds: &[f64] = context.pick(&[0.7, 0.9], &[0.5, 0.6, 0.7, 0.8, 0.9, 0.95]);
    let holds: &[f64] = context.pick(&[1.0], &[0.0, 1.0, 2.0]);
    let windows: &[f64] = context.pick(&[10.0, 15.0], &[5.0, 10.0, 15.0, 20.0]);
    let mut grid = Vec::new();
    for full in thresholds {
        for hold_rtts in holds {
            for window_least in windows {
                let (full, hold_rtts, window_least) = (*full, *hold_rtts, *window_least);
                let rearmed = f64::min(0.5, full - 0.1);
                grid.push(daimd(Daimd { full, hold_rtts, window_least, rearmed, ..as_seen() }));
            }
        }
    }
    grid
}

fn run(context: &Context) -> Result<Report, Failure> {
    let tuned = attempts(context, &grid(context), &context.seeds_from(1001, context.pick(1, 3)))?;
    let admissible = || tuned.iter().filter(|one| one.is_admissible());
    let nearest = admissible().min_by(|a, b| a.error().mean.total_cmp(&b.error().mean));
    let near = |one: &&Tried| nearest.is_some_and(|nearest| one.error().mean <= nearest.error().mean + 0.02);
    let best = admissible().filter(near).min_by(|a, b| a.wait.mean().total_cmp(&b.wait.mean()));
    let engine_of = |one: Option<&Tried>| one.map_or(as_printed("daimd"), |one| one.engine.clone());
    let chosen = [as_printed("daimd"), engine_of(nearest), engine_of(best), as_printed("lia")];
    let reported = attempts(context, &chosen, &context.seeds(context.pick(2, 20)))?;

    let tables = vec![
        outcomes("tuning", "What the parameters do, on the tuning seeds", &tuned),
        outcomes("chosen", "Ours, the nearest, the best, and LIA, on other seeds", &reported),
        rates("rates", "Rates beside Reno, on other seeds", &reported),
    ];
    Ok(Report { tables, verdicts: verdicts(&reported), figures: vec![figure(&tuned)], ..Report::default() })
}

/// Tries each engine on all settings with all seeds.
fn attempts(context: &Context, engines: &[EngineConfig], seeds: &[u64]) -> Result<Vec<Tried>, Failure> {
    let duration = Duration::from_secs(context.pick(60, 300));
    let mut cases = Vec::new();
    for engine in engines {
        let idle = [CAPACITY, DELAY].map(|setting| Case::idle(setting, "daimd", duration));
        let shared = PRINTED.map(|printed| Case::shared(printed.setting, "daimd", duration));
        cases.extend(idle.into_iter().chain(shared).map(|case| Case { multipath: engine.clone(), ..case }));
    }
    let seen = context.sweep(&cases, seeds, Case::run)?;
    Ok(engines.iter().zip(seen.chunks(2 + PRINTED.len())).map(|(engine, seen)| tried(engine, seen)).collect())
}

fn tried(engine: &EngineConfig, seen: &[Vec<Seen>]) -> Tried {
    let (idle, shared) = seen.split_at(2);
    let least_used = |at: usize| {
        let settings = [CAPACITY, DELAY].into_iter().zip(idle);
        let parts =
            settings.flat_map(|(setting, runs)| [0, 1].map(|path| runs[at].multipath(path) / setting.most(path)));
        parts.fold(f64::INFINITY, f64::min)
    };
    let seeds = 0..idle[0].len();
    let rates = PRINTED.iter().zip(shared).flat_map(|(printed, runs)| {
        [0, 1].map(|path| Cell::of(runs.iter().map(|seen| seen.multipath(path))).paper(printed.daimd[path]))
    });
    Tried {
        engine: engine.clone(),
        used: Cell::of(seeds.clone().map(least_used)),
        lost: Cell::of(seeds.map(|at| idle.iter().map(|runs| runs[at].lost()).sum())),
        wait: Cell::of(idle[0].iter().map(|seen| (seen.wait_ms(0) + seen.wait_ms(1)) / 2.0)),
        rates: rates.collect(),
        part_of_reno: Estimate::largest(shared.iter().map(|runs| Seen::part_of_reno(runs))),
    }
}

fn outcomes(name: &str, title: &str, tried: &[Tried]) -> Table {
    let columns = [
        ("idle, least used", "of the wire"),
        ("idle, lost", "packets"),
        ("idle, wait", "ms"),
        ("error to Table II", ""),
        ("largest part of Reno", ""),
    ];
    let mut table = Table::new(name, title, &["D0", "T", "W0"], &columns);
    for one in tried {
        let [used, lost, wait] = [&one.used, &one.lost, &one.wait].map(Cell::clone);
        let cells = [used, lost, wait, one.error().into(), one.part_of_reno.clone().into()];
        table.row(one.heads().each_ref().map(String::as_str), cells);
    }
    table
}

fn rates(name: &str, title: &str, tried: &[Tried]) -> Table {
    let of = |name: &str| ["A", "B"].map(|path| format!("{name}, {path}"));
    let names: Vec<String> = PRINTED.iter().flat_map(|printed| of(printed.setting.name)).collect();
    let columns: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "Mbit/s")).collect();
    let mut table = Table::new(name, title, &["D0", "T", "W0"], &columns);
    for one in tried.iter().filter(|one| one.engine.congestion == "daimd") {
        table.push(&one.heads().each_ref().map(String::as_str), &one.rates);
    }
    table
}

fn verdicts(reported: &[Tried]) -> Vec<Verdict> {
    let [ours, nearest, best, lia] = reported else { unreachable!("four were tried") };
    let nearer = Verdict::ours("nearer", "The nearest parameters are nearer to Table II than ours.").at_most(
        "error, nearest / ours",
        nearest.error() / ours.error(),
        1.0,
    );
    let all = Verdict::ours("all at once", "With the best parameters everything holds that the paper says of DAIMD.")
        .at_most("error to Table II, best / ours", best.error() / ours.error(), 1.0)
        .at_least("least part of an idle path used", best.used.estimate(), 0.95)
        .at_most("packets lost on idle paths", best.lost.estimate(), 0.0)
        .at_most("largest part of Reno", best.part_of_reno.clone(), 1.0)
        .at_most("wait on idle paths, best / LIA", best.wait.estimate() / lia.wait.estimate(), 1.0);
    vec![nearer, all]
}

fn figure(tried: &[Tried]) -> Figure {
    let lines = |quantity: &dyn Fn(&Tried) -> f64| {
        let of = |least: f64| {
            let chosen = tried.iter().filter(|one| one.rule().hold_rtts == 1.0 && one.rule().window_least == least);
            chosen.map(|one| (one.rule().full, quantity(one))).collect()
        };
        vec![Series::new("T 1, W0 10", "daimd", of(10.0)), Series::new("T 1, W0 15", "daimd", of(15.0)).dashed()]
    };
    let x = || Axis::new("D0", "of the longest queue");
    Figure::new("threshold", "DAIMD: what the threshold D0 does")
        .lines("Idle paths: wait in the queues", x(), Axis::new("mean wait", "ms"), lines(&|one| one.wait.mean()))
        .lines("Beside Reno: distance from Table II", x(), Axis::new("mean error", ""), lines(&|one| one.error().mean))
}
