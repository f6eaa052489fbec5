//! `fairpath sim`: a described network in virtual time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fairpath_core::Timestamp;
use fairpath_quic::Coupling;
use fairpath_report::text::print_line;
use fairpath_runs::{Described, Files, Plan, Results, Run, figure, json, text, values_json};
use fairpath_scenario::{Scenario, ScenarioFile};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::UsageError;

/// Run a described network in virtual time: same file, same seed, same bytes
///
/// The file says which links there are, which flows use them and for how long; `docs/reference/scenario.md`
/// describes it and `scenarios/` has examples. A table of flows and links comes out, and in the
/// directory time series of every path and link (NDJSON and Parquet), a picture and a summary.
///
/// A file whose parameters have several values is run with each combination of them. Then, and with
/// several seeds, there are means instead of time series: one table, a picture of it, a summary.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath sim scenarios/two_separate_links.toml\n  \
    fairpath sim my.toml --seed 7 --out results --json\n  \
    fairpath sim my.toml --coupling auto     another coupling than the file's\n  \
    fairpath sim my.toml --seeds 20     means and 95 % intervals over 20 seeds, on all cores\n  \
    fairpath sim scenarios/fat_tree_k4.toml --threads 2     one run over two cores\n  \
    fairpath sim scenarios/rivals.toml --set rivals=3     one value for a parameter")]
pub(crate) struct Args {
    /// The scenario
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The seed, instead of the file's
    #[arg(long)]
    seed: Option<u64>,
    /// Run so many seeds from the first on, and give means with 95 % intervals instead of time series
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: Option<u64>,
    /// Give a parameter of the file one value, in place of those of its `[sweep]`; for several, again
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    set: Vec<(String, String)>,
    /// How many runs go side by side, where there are several; all cores if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Run one large network over so many cores, all links of which have a delay; any number gives the
    /// same bytes. More than there are cores is slow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with_all = ["seeds", "jobs"])]
    threads: Option<u16>,
    /// When the paths of a flow are coupled, instead of what the file says; for all flows of several
    /// paths
    #[arg(long, value_name = "WHEN", value_parser = crate::engine_args::coupling())]
    coupling: Option<Coupling>,
    /// Where time series or the table, the picture and the summary go
    #[arg(long, value_name = "DIR", default_value = "fairpath-sim")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let file = Described::read(&args.file, &args.set)?;
    match args.seeds {
        None if file.sweep().points() == 1 => run_once(args, &file),
        None if args.threads.is_some() => Err(several_points(&file).into()),
        _ => run_many(args, &file),
    }
}

/// One run may have several threads, and there would be several.
fn several_points(file: &Described) -> UsageError {
    let (name, points) = (file.name(), file.sweep().points());
    UsageError(format!(
        "{name} describes {points} scenarios, which run side by side (--jobs says how many); --threads is for one, so \
         choose it with --set"
    ))
}

/// A parameter and its value.
pub(super) fn parameter(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("a name and a value are needed, like load=2")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// The scenario file, where there is one combination of the values of its parameters.
pub(super) fn only(described: &Described) -> anyhow::Result<ScenarioFile> {
    let several = |(_, values): &(_, &[_])| values.len() > 1;
    let Some((name, values)) = described.sweep().parameters().find(several) else { return Ok(described.at(0)?) };
    let (file, points, value) = (described.name(), described.sweep().points(), values[0].plain());
    Err(UsageError(format!(
        "{file} describes {points} scenarios, one for each combination of the values in its [sweep], and one is \
         wanted; choose with --set, like --set {name}={value}"
    ))
    .into())
}

/// Applies the other options of the command line to a scenario.
fn change(args: &Args, scenario: &mut Scenario) {
    if let Some(coupling) = args.coupling {
        let multipath = scenario.flows.iter_mut().filter(|flow| flow.paths.len() > 1);
        multipath.for_each(|flow| flow.engine.coupling = coupling);
    }
}

fn run_once(args: &Args, file: &Described) -> anyhow::Result<()> {
    let mut scenario = file.scenario(0, args.seed)?;
    change(args, &mut scenario);
    let mut simulation = Run::new(&scenario, args.threads).map_err(|error| UsageError(error.to_string()))?;
    let mut files = Files::create(&args.out, &scenario)?;
    let bar = bar(PARTS, "{elapsed} {bar:40} {percent} %  {eta} to go");
    for part in 1..=PARTS {
        let until = scenario.duration.mul_f64(part as f64 / PARTS as f64);
        let ran = simulation.run_until(Timestamp::ZERO + until, &mut files);
        files.fault()?;
        ran.map_err(|error| file.too_much(0, &error))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let outcome = simulation.outcome();
    let mut summary = json(&scenario, &outcome);
    if file.sweep().parameters().len() > 0 {
        summary["values"] = values_json(file.sweep());
    }
    let written = files.finish(&summary)?;
    if args.json {
        print_line(&serde_json::to_string_pretty(&summary)?)
    } else {
        print_line(text(&scenario, &outcome).trim_end())?;
        print_line(&format!("Time series, picture and summary: {}", written.display()))
    }
}

/// The files that several runs leave.
const SUMMARY: &str = "summary.json";
const TABLE: &str = "table.csv";
const PICTURE: &str = "picture.svg";

fn run_many(args: &Args, file: &Described) -> anyhow::Result<()> {
    let mut plan = Plan {
        file,
        seed: args.seed,
        seeds: args.seeds.unwrap_or(1),
        jobs: args.jobs.unwrap_or(0).into(),
        change: &|scenario| change(args, scenario),
        ran: &|| {},
    };
    plan.check()?;
    create(&args.out)?;
    let bar = bar(plan.runs(), "{elapsed} {bar:40} {pos}/{len} runs  {eta} to go");
    let ran = || bar.inc(1);
    plan.ran = &ran;
    let results = plan.run(&|| true)?;
    bar.finish_and_clear();
    finish(args, &results)
}

/// Creates the files, so that a missing permission is found before the runs.
fn create(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create the directory {}", folder.display()))?;
    [SUMMARY, TABLE, PICTURE].into_iter().try_for_each(|name| write(folder, name, ""))
}

fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn finish(args: &Args, results: &Results) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(&results.json())?;
    write(&args.out, SUMMARY, &format!("{json}\n"))?;
    write(&args.out, TABLE, &results.csv())?;
    write(&args.out, PICTURE, &figure(results).svg()?)?;
    if args.json {
        print_line(&json)
    } else {
        print_line(results.text().trim_end())?;
        print_line(&format!("Table, picture and summary: {}", args.out.display()))
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
