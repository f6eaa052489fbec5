//! Several runs of one file: with each combination of the values of its parameters, and several seeds.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use fairpath_report::text::print_line;
use fairpath_scenario::{ParameterValue, Scenario};
use rayon::prelude::*;

use super::measured::{Facts, Point, Run};
use super::tables::Results;
use super::{Args, Described, bar, expand, means, prepare, scenario, too_much};
use crate::error::UsageError;

/// The results of at most so many flows and links are kept, of about a kilobyte each.
const OUTCOMES_MAX: u64 = 2_000_000;

/// The files that are written.
const SUMMARY: &str = "summary.json";
const TABLE: &str = "table.csv";
const PICTURE: &str = "picture.svg";

pub(super) fn run_many(args: &Args, file: &Described) -> anyhow::Result<()> {
    let (points, seeds) = (file.sweep.points(), args.seeds.unwrap_or(1));
    let first_seeds = first_seeds(args, file)?;
    create(&args.out)?;
    let only = if points == 1 { Some(file.at(0)?) } else { None };
    let bar = bar(points as u64 * seeds, "{elapsed} {bar:40} {pos}/{len} runs  {eta} to go");
    let one = |(point, at): (usize, u64)| -> anyhow::Result<(Option<Facts>, Run)> {
        let described = match &only {
            Some(only) => Cow::Borrowed(only),
            None => Cow::Owned(file.at(point)?),
        };
        let seed = first_seeds[point].wrapping_add(at);
        // The samples are for time series, and there are none.
        let scenario = Scenario { sample_every: Duration::ZERO, ..scenario(args, &described, Some(seed))? };
        let mut simulation = prepare(&scenario)?;
        simulation.run(&mut ()).map_err(|error| too_much(args, &error, &file.sweep.said(point)))?;
        bar.inc(1);
        let outcome = simulation.outcome();
        // What is not said of single runs is dropped with the outcome.
        Ok(((at == 0).then(|| Facts::new(&scenario, &outcome)), Run::new(&scenario, &outcome)))
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.jobs.unwrap_or(0).into()).build()?;
    let jobs: Vec<(usize, u64)> = (0..points).flat_map(|point| (0..seeds).map(move |at| (point, at))).collect();
    let runs = pool.install(|| jobs.into_par_iter().map(one).collect::<Result<Vec<_>, _>>())?;
    bar.finish_and_clear();
    finish(args, &results(file, runs))
}

/// The first seed of each point. Refuses what would keep too much.
fn first_seeds(args: &Args, file: &Described) -> anyhow::Result<Vec<u64>> {
    let (points, seeds) = (file.sweep.points(), args.seeds.unwrap_or(1));
    let mut size: u64 = 0;
    let mut first = Vec::new();
    for point in 0..points {
        let whole = expand(&file.at(point)?, args.seed)?;
        size += (whole.flows.len() + whole.links.len()) as u64;
        first.push(whole.seed);
    }
    if seeds.saturating_mul(size) <= OUTCOMES_MAX {
        return Ok(first);
    }
    let most = OUTCOMES_MAX / size;
    let said = match most {
        0 => format!("{points} combinations have {size} flows and links, whose results are kept; give fewer values"),
        _ => format!(
            "--seeds {seeds} is too much for {size} flows and links, whose results are kept; at most {most} fit"
        ),
    };
    Err(UsageError(said).into())
}

fn results(file: &Described, runs: Vec<(Option<Facts>, Run)>) -> Results {
    let parameters: Vec<(String, Vec<ParameterValue>)> =
        file.sweep.parameters().map(|(name, values)| (name.to_owned(), values.to_vec())).collect();
    let mut points: Vec<Point> = Vec::new();
    for (facts, run) in runs {
        match (facts, points.last_mut()) {
            (Some(facts), _) => {
                let values = file.sweep.values(points.len()).into_iter().cloned().collect();
                points.push(Point { values, facts, runs: vec![run] });
            }
            (None, Some(point)) => point.runs.push(run),
            (None, None) => {}
        }
    }
    let titles = || points.iter().map(|point| &point.facts.title);
    let same = titles().next().filter(|first| titles().all(|title| title == *first));
    let title = same.map_or_else(|| file.name.clone(), String::clone);
    Results { title, parameters, points }
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
    write(&args.out, PICTURE, &means::figure(results).svg()?)?;
    if args.json {
        print_line(&json)
    } else {
        print_line(results.text().trim_end())?;
        print_line(&format!("Table, picture and summary: {}", args.out.display()))
    }
}
