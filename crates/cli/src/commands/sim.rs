//! `fairpath sim`: a described network in virtual time.

mod files;
mod picture;
mod summary;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fairpath_core::Timestamp;
use fairpath_quic::Coupling;
use fairpath_scenario::{Scenario, ScenarioFile};
use fairpath_sim::{Outcome, SimError, Simulation};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::prelude::*;

use crate::error::UsageError;
use crate::text::print_line;
use files::Files;

/// Run a described network in virtual time: same file, same seed, same bytes
///
/// The file says which links there are, which flows use them and for how long; `docs/scenario.md`
/// describes it and `scenarios/` has examples. A table of flows and links comes out, and in the
/// directory time series of every path and link (NDJSON and Parquet), a picture and a summary.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  fairpath sim scenarios/two_separate_links.toml\n  \
    fairpath sim my.toml --seed 7 --out results --json\n  \
    fairpath sim my.toml --coupling auto     another coupling than the file's\n  \
    fairpath sim my.toml --seeds 20     means and 95 % intervals over 20 seeds, on all cores")]
pub(crate) struct Args {
    /// The scenario
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The seed, instead of the file's
    #[arg(long)]
    seed: Option<u64>,
    /// Run so many seeds from the first on, and print means; no time series are written
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), conflicts_with = "out")]
    seeds: Option<u64>,
    /// How many of these runs go side by side; all cores if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), requires = "seeds")]
    jobs: Option<u16>,
    /// When the paths of a flow are coupled, instead of what the file says; for all flows of several
    /// paths
    #[arg(long, value_name = "WHEN", value_parser = crate::engine_args::coupling())]
    coupling: Option<Coupling>,
    /// Where time series, picture and summary go
    #[arg(long, value_name = "DIR", default_value = "fairpath-sim")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = read(&args.file)?;
    match args.seeds {
        Some(seeds) => run_seeds(args, &file, seeds),
        None => run_once(args, &file),
    }
}

/// No scenario is larger: it would have a hundred thousand entries.
const SCENARIO_BYTES_MAX: u64 = 16 << 20;

/// No recorded rate is larger: it would have an opportunity every millisecond for half a day.
const TRACE_BYTES_MAX: u64 = 512 << 20;

/// The text of a file that has at most so many bytes. Its size says nothing where it is a device.
fn read_text(path: &Path, most: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!("it has more than {most} bytes; give a smaller one")));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not text"))
}

/// Reads a scenario. Files that it names are looked for beside it.
pub(super) fn read(path: &Path) -> anyhow::Result<ScenarioFile> {
    let name = path.display().to_string();
    let text = read_text(path, SCENARIO_BYTES_MAX).with_context(|| format!("cannot read the scenario {name}"))?;
    let beside = path.parent().unwrap_or(Path::new(""));
    let read = |named: &str| read_text(&beside.join(named), TRACE_BYTES_MAX).map_err(|error| error.to_string());
    Ok(ScenarioFile::parse_with(&text, &name, &read).map_err(|error| UsageError(error.to_string()))?)
}

pub(super) fn expand(file: &ScenarioFile, seed: Option<u64>) -> anyhow::Result<Scenario> {
    Ok(file.expand(seed).map_err(|error| UsageError(error.to_string()))?)
}

/// The scenario with this seed, and what else the command line says.
fn scenario(args: &Args, file: &ScenarioFile, seed: Option<u64>) -> anyhow::Result<Scenario> {
    let mut scenario = expand(file, seed)?;
    if let Some(coupling) = args.coupling {
        let multipath = scenario.flows.iter_mut().filter(|flow| flow.paths.len() > 1);
        multipath.for_each(|flow| flow.engine.coupling = coupling);
    }
    Ok(scenario)
}

fn prepare(scenario: &Scenario) -> anyhow::Result<Simulation> {
    Ok(Simulation::new(scenario).map_err(|error| UsageError(error.to_string()))?)
}

/// A scenario that only the run has shown to be too much.
fn too_much(args: &Args, error: &SimError) -> UsageError {
    UsageError(format!("{}: {error}", args.file.display()))
}

fn run_once(args: &Args, file: &ScenarioFile) -> anyhow::Result<()> {
    let scenario = scenario(args, file, args.seed)?;
    let mut simulation = prepare(&scenario)?;
    let mut files = Files::create(&args.out, &scenario)?;
    let bar = bar(PARTS, "{elapsed} {bar:40} {percent} %  {eta} to go");
    for part in 1..=PARTS {
        let until = scenario.duration.mul_f64(part as f64 / PARTS as f64);
        let ran = simulation.run_until(Timestamp::ZERO + until, &mut files);
        files.fault()?;
        ran.map_err(|error| too_much(args, &error))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let outcome = simulation.outcome();
    let written = files.finish(&summary::json(&scenario, &outcome))?;
    if args.json {
        print_line(&serde_json::to_string_pretty(&summary::json(&scenario, &outcome))?)
    } else {
        print_line(summary::text(&scenario, &outcome).trim_end())?;
        print_line(&format!("Time series, picture and summary: {}", written.display()))
    }
}

/// The results of at most so many flows and links are kept, of about a kilobyte each.
const OUTCOMES_MAX: u64 = 2_000_000;

fn run_seeds(args: &Args, file: &ScenarioFile, seeds: u64) -> anyhow::Result<()> {
    let first = match args.seed {
        Some(seed) => seed,
        None => expand(file, None)?.seed,
    };
    let whole = expand(file, Some(first))?;
    let size = (whole.flows.len() + whole.links.len()) as u64;
    if seeds.saturating_mul(size) > OUTCOMES_MAX {
        let most = (OUTCOMES_MAX / size).max(1);
        let said = format!(
            "--seeds {seeds} is too much for {size} flows and links, whose results are kept; at most {most} fit"
        );
        return Err(UsageError(said).into());
    }
    drop(whole);
    let bar = bar(seeds, "{elapsed} {bar:40} {pos}/{len} seeds  {eta} to go");
    let one = |seed: u64| -> anyhow::Result<(Scenario, Outcome)> {
        // The samples are for time series, and there are none.
        let mut scenario = Scenario { sample_every: Duration::ZERO, ..scenario(args, file, Some(seed))? };
        let mut simulation = prepare(&scenario)?;
        simulation.run(&mut ()).map_err(|error| too_much(args, &error))?;
        bar.inc(1);
        // Of the network, the results have what is shown.
        scenario.links = Vec::new();
        scenario.flows.iter_mut().for_each(|flow| flow.paths = Vec::new());
        Ok((scenario, simulation.outcome()))
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.unwrap_or(0).into()).build()?;
    let all = || (0..seeds).into_par_iter().map(|at| one(first.wrapping_add(at))).collect::<Result<Vec<_>, _>>();
    let runs = pool.install(all)?;
    bar.finish_and_clear();
    if args.json {
        print_line(&serde_json::to_string_pretty(&summary::seeds_json(first, &runs))?)
    } else {
        print_line(summary::seeds_text(first, &runs).trim_end())
    }
}

/// A run is done in so many parts, so that it can say how far it is.
const PARTS: u64 = 200;

/// A progress bar on standard error that comes up after two seconds.
fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
    bar.set_style(ProgressStyle::with_template(template).expect("a constant template"));
    let shown = bar.downgrade();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        if let Some(bar) = shown.upgrade().filter(|bar| !bar.is_finished()) {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    });
    bar
}
