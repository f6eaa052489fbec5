//! `fairpath lab`: every table and figure of the papers, run again.

mod pages;

use std::path::PathBuf;
use std::time::Duration;

use fairpath_lab::{
    Context, Effort, Experiment, Failure, NoSuchExperiment, Outcome, Seeds, State, Store, StoredReport, papers, select,
    table_text, verdict_text,
};
use fairpath_report::text::{print_line, table};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::error::UsageError;

/// Run the tables and figures of the papers again, and say which claims hold
///
/// Everything runs in the packet simulator: no network is used, and the same seeds give the same
/// numbers. What comes out stands beside what the paper printed.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath lab list\n  fairpath lab run daimd/table2 --quick")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LabCommand {
    List(ListArgs),
    Run(RunArgs),
    Pages(pages::Args),
}

/// Show the experiments, and what of each paper they reproduce
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath lab list")]
struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Run one experiment, all of a paper, or all there are
///
/// Each leaves a report, its tables as CSV and its figures as SVG in a directory of its own;
/// index.html shows all that were run so far. A claim that does not hold is a finding: the exit code
/// is 0 where everything ran.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath lab run daimd/table2\n  fairpath lab run daimd --quick\n  \
    fairpath lab run all --out results")]
struct RunArgs {
    /// An experiment, a paper, or all
    name: String,
    /// Take the short form, which takes seconds
    #[arg(long)]
    quick: bool,
    /// How many seeds to use, instead of as many as is meant
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    seeds: Option<u32>,
    /// Use this seed only, to repeat a run
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// How many runs go side by side, instead of one per processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// Where the results go
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Go on after an interruption: take what --out already has of the same command and commit
    #[arg(long)]
    resume: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        LabCommand::List(args) => list(&args),
        LabCommand::Run(args) => run_experiments(&args),
        LabCommand::Pages(args) => pages::run(&args),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let papers = papers();
    if args.json {
        let papers = papers.iter().map(|(key, paper)| json!({ "key": key, "paper": paper }));
        let experiments =
            fairpath_lab::experiments().map(|one| json!({ "name": one.name(), "description": one.description() }));
        let list = json!({ "papers": papers.collect::<Vec<_>>(), "experiments": experiments.collect::<Vec<_>>() });
        return print_line(&serde_json::to_string_pretty(&list)?);
    }
    for (_, paper) in &papers {
        print_line(&format!("{}\n", paper.title))?;
        let item = |item: &fairpath_lab::Item| {
            let experiment = item.experiment.clone().unwrap_or_else(|| "-".to_owned());
            let state = if item.state == State::Reproduced { String::new() } else { item.state.name().to_owned() };
            vec![item.item.clone(), experiment, item.what.clone(), state]
        };
        let own = |own: &fairpath_lab::Own| {
            vec!["(our own)".to_owned(), own.experiment.clone(), own.what.clone(), String::new()]
        };
        let rows: Vec<_> = paper.items.iter().map(item).chain(paper.own.iter().map(own)).collect();
        print_line(&table(&["in the paper", "experiment", "what", "state"], &rows))?;
    }
    Ok(())
}

fn run_experiments(args: &RunArgs) -> anyhow::Result<()> {
    let experiments = select(&args.name).map_err(|error: NoSuchExperiment| UsageError(error.to_string()))?;
    // Before minutes are spent: can the results be kept?
    let store = Store::create(&args.out)?.made_by(pages::maker());
    let mut kept = Vec::new();
    let mut failures = Vec::new();
    for (at, experiment) in experiments.iter().enumerate() {
        let bar = progress(experiment, at + 1, experiments.len());
        let context = context(args, &bar);
        if let Some(stored) = args.resume.then(|| store.kept_by_same_command(experiment, &context)).flatten() {
            bar.finish_and_clear();
            if !args.json {
                print_line(&format!("{}: {}, as it was kept", stored.experiment, stored.description.title))?;
            }
            kept.push(stored);
            continue;
        }
        let result = experiment.run(&context);
        bar.finish_and_clear();
        match result {
            Ok(report) => {
                let stored = store.keep(experiment, &context, report)?;
                if !args.json {
                    print_line(&text(&stored))?;
                }
                kept.push(stored);
            }
            Err(failure) => failures.push(failure),
        }
    }
    if args.json {
        let result = json!({
            "experiments": kept.iter().map(summary).collect::<Vec<_>>(),
            "failed": failures.iter().map(Failure::to_string).collect::<Vec<_>>(),
            "page": store.page(),
        });
        print_line(&serde_json::to_string_pretty(&result)?)?;
    } else {
        print_line(&format!("Page: {}", store.page().display()))?;
        print_line(&last_line(&kept))?;
    }
    match failures.as_slice() {
        [] => Ok(()),
        some => anyhow::bail!("{}", some.iter().map(Failure::to_string).collect::<Vec<_>>().join("\n")),
    }
}

fn context(args: &RunArgs, bar: &ProgressBar) -> Context {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let seeds = match (args.seeds, args.seed) {
        (Some(count), _) => Seeds::Count(count),
        (None, Some(seed)) => Seeds::Only(seed),
        (None, None) => Seeds::AsMeant,
    };
    let bar = bar.clone();
    Context::new(effort).with_seeds(seeds).with_jobs(args.jobs.unwrap_or(0).into()).with_observer(move |progress| {
        bar.set_length(progress.planned);
        bar.set_position(progress.done);
    })
}

/// A bar on standard error, where that is a terminal.
fn progress(experiment: &Experiment, at: usize, of: usize) -> ProgressBar {
    let style =
        ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} runs, {eta} left").expect("a constant template");
    let bar = ProgressBar::new(0).with_style(style).with_prefix(format!("[{at}/{of}] {}", experiment.name()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A report for people.
fn text(stored: &StoredReport) -> String {
    let mut text = format!("{}: {}\n", stored.experiment, stored.description.title);
    for table in &stored.report.tables {
        text += &format!("\n{}", table_text(table));
    }
    for verdict in &stored.report.verdicts {
        text += &format!("\n{}", verdict_text(verdict));
    }
    for note in stored.report.remarks() {
        text += &format!("\nNote: {note}\n");
    }
    text
}

/// A report for programs; the points of the figures are in the report's file only.
fn summary(stored: &StoredReport) -> serde_json::Value {
    json!({
        "experiment": stored.experiment,
        "effort": stored.effort,
        "tables": stored.report.tables,
        "verdicts": stored.report.verdicts,
        "notes": stored.report.remarks().collect::<Vec<_>>(),
    })
}

/// How many claims hold, and which do not.
fn last_line(kept: &[StoredReport]) -> String {
    let verdicts = || kept.iter().flat_map(|one| one.report.verdicts.iter().map(move |verdict| (one, verdict)));
    let count = |outcome| verdicts().filter(|(_, verdict)| verdict.outcome == outcome).count();
    let claims = match verdicts().count() {
        1 => "1 claim".to_owned(),
        count => format!("{count} claims"),
    };
    let mut line = format!("{claims}: {} hold", count(Outcome::Holds));
    let others =
        [(Outcome::Partly, "hold partly"), (Outcome::Undecided, "are undecided"), (Outcome::Misses, "do not hold")];
    for (outcome, words) in others {
        let names: Vec<String> = verdicts()
            .filter(|(_, verdict)| verdict.outcome == outcome)
            .map(|(one, verdict)| format!("{} \"{}\"", one.experiment, verdict.name))
            .collect();
        if !names.is_empty() {
            line += &format!(", {} {words} ({})", names.len(), names.join(", "));
        }
    }
    line + "."
}
