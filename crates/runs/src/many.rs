//! Several runs of one file: with each combination of the values of its parameters, and several seeds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use fairpath_scenario::{ParameterValue, Scenario};
use fairpath_sim::Simulation;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::measured::{Facts, Point, Run};
use crate::tables::Results;
use crate::{Described, Unusable, expand};

/// The results of at most so many flows and links are kept, of about a kilobyte each.
const OUTCOMES_MAX: u64 = 2_000_000;

/// Somebody asked the runs to end.
#[derive(Debug, thiserror::Error)]
#[error("the runs were ended before all of them were done")]
pub struct Stopped;

/// The results of some of the runs of a plan, which may go from one process to another.
#[derive(Serialize, Deserialize)]
pub struct Part {
    first: u64,
    runs: Vec<(Option<Facts>, Run)>,
}

impl Part {
    /// As bytes, for [`from_bytes`](Self::from_bytes) of the same version.
    ///
    /// # Errors
    ///
    /// None is known.
    pub fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        Ok(postcard::to_stdvec(self)?)
    }

    /// From bytes; numbers are the same to the bit.
    ///
    /// # Errors
    ///
    /// Where these are none of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8]) -> anyhow::Result<Self> {
        Ok(postcard::from_bytes(bytes)?)
    }
}

/// Several runs of one file.
pub struct Plan<'a> {
    /// The file.
    pub file: &'a Described,
    /// The first seed; `None`: the file's.
    pub seed: Option<u64>,
    /// How many seeds from the first on, at each combination of the values of its parameters.
    pub seeds: u64,
    /// How many runs go side by side; 0: as many as there are cores.
    pub jobs: usize,
    /// Changes the file's scenario before it is run.
    pub change: &'a (dyn Fn(&mut Scenario) + Sync),
    /// Called after each run.
    pub ran: &'a (dyn Fn() + Sync),
}

impl Plan<'_> {
    /// How many runs these are.
    pub fn runs(&self) -> u64 {
        (self.file.sweep().points() as u64).saturating_mul(self.seeds)
    }

    /// Whether they may be run, before anything is written.
    ///
    /// # Errors
    ///
    /// Where a scenario cannot be meant, or the results would be too many to be kept.
    pub fn check(&self) -> Result<(), Unusable> {
        self.first_seeds().map(drop)
    }

    /// Runs them all. `goes_on` is asked before each run; where it says no, those that have not begun are left out.
    ///
    /// # Errors
    ///
    /// Where a scenario cannot be meant or is too much ([`Unusable`]), or the runs were ended ([`Stopped`]).
    pub fn run(&self, goes_on: &(dyn Fn() -> bool + Sync)) -> anyhow::Result<Results> {
        let first_seeds = self.first_seeds()?;
        let runs = self.run_of(0..self.runs(), &|point| first_seeds[point], goes_on)?;
        Ok(results(self.file, runs))
    }

    /// Runs a part of them: point by point, and for each seed by seed, these are the runs in `range`. [`join`](Self::join)
    /// makes results of all parts, wherever each was run.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run), and where there are no such runs.
    pub fn part(&self, range: Range<u64>, goes_on: &(dyn Fn() -> bool + Sync)) -> anyhow::Result<Part> {
        if range.is_empty() || range.end > self.runs() {
            let (Range { start, end }, runs) = (&range, self.runs());
            return Err(Unusable(format!("there are {runs} runs from 0 on, and none from {start} to {end}")).into());
        }
        let mut first_seeds = BTreeMap::new();
        let points = (range.start / self.seeds) as usize..=((range.end - 1) / self.seeds) as usize;
        for point in points {
            first_seeds.insert(point, self.file.scenario(point, self.seed)?.seed);
        }
        let runs = self.run_of(range.clone(), &|point| first_seeds[&point], goes_on)?;
        Ok(Part { first: range.start, runs })
    }

    /// The results of all parts, in any order.
    ///
    /// # Errors
    ///
    /// Where a run is missing, or is there twice.
    pub fn join(&self, mut parts: Vec<Part>) -> Result<Results, Unusable> {
        parts.sort_by_key(|part| part.first);
        let mut next = 0;
        for part in &parts {
            if part.first != next {
                return Err(Unusable(format!(
                    "after run {next} comes run {}: one is missing or there twice",
                    part.first
                )));
            }
            next += part.runs.len() as u64;
        }
        if next != self.runs() {
            return Err(Unusable(format!("{next} of {} runs are there", self.runs())));
        }
        Ok(results(self.file, parts.into_iter().flat_map(|part| part.runs).collect()))
    }

    fn run_of(
        &self,
        range: Range<u64>,
        first_seed: &(dyn Fn(usize) -> u64 + Sync),
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> anyhow::Result<Vec<(Option<Facts>, Run)>> {
        let only = if self.file.sweep().points() == 1 { Some(self.file.at(0)?) } else { None };
        let one = |job: u64| -> anyhow::Result<(Option<Facts>, Run)> {
            if !goes_on() {
                return Err(Stopped.into());
            }
            let (point, at) = ((job / self.seeds) as usize, job % self.seeds);
            let described = match &only {
                Some(only) => Cow::Borrowed(only),
                None => Cow::Owned(self.file.at(point)?),
            };
            let mut scenario = expand(&described, Some(first_seed(point).wrapping_add(at)))?;
            (self.change)(&mut scenario);
            // The samples are for time series, and there are none.
            scenario.sample_every = Duration::ZERO;
            let mut simulation = Simulation::new(&scenario).map_err(|error| Unusable(error.to_string()))?;
            simulation.run(&mut ()).map_err(|error| self.file.too_much(point, &error))?;
            (self.ran)();
            let outcome = simulation.outcome();
            // The outcome is dropped with all that is not told of single runs.
            Ok(((at == 0).then(|| Facts::new(&scenario, &outcome)), Run::new(&scenario, &outcome)))
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build()?;
        pool.install(|| range.into_par_iter().map(one).collect::<Result<Vec<_>, _>>())
    }

    /// The first seed of each point. Refuses what would keep too much.
    fn first_seeds(&self) -> Result<Vec<u64>, Unusable> {
        let (points, seeds) = (self.file.sweep().points(), self.seeds);
        let mut size: u64 = 0;
        let mut first = Vec::new();
        for point in 0..points {
            let whole = self.file.scenario(point, self.seed)?;
            size += (whole.flows.len() + whole.links.len()) as u64;
            first.push(whole.seed);
        }
        if seeds.saturating_mul(size) <= OUTCOMES_MAX {
            return Ok(first);
        }
        let said = match OUTCOMES_MAX / size {
            0 => {
                format!("{points} combinations have {size} flows and links, whose results are kept; give fewer values")
            }
            most => format!(
                "{seeds} seeds are too many for {size} flows and links, whose results are kept; at most {most} fit"
            ),
        };
        Err(Unusable(said))
    }
}

fn results(file: &Described, runs: Vec<(Option<Facts>, Run)>) -> Results {
    let parameters: Vec<(String, Vec<ParameterValue>)> =
        file.sweep().parameters().map(|(name, values)| (name.to_owned(), values.to_vec())).collect();
    let mut points: Vec<Point> = Vec::new();
    for (facts, run) in runs {
        match (facts, points.last_mut()) {
            (Some(facts), _) => {
                let values = file.sweep().values(points.len()).into_iter().cloned().collect();
                points.push(Point { values, facts, runs: vec![run] });
            }
            (None, Some(point)) => point.runs.push(run),
            (None, None) => {}
        }
    }
    let titles = || points.iter().map(|point| &point.facts.title);
    let same = titles().next().filter(|first| titles().all(|title| title == *first));
    let title = same.map_or_else(|| file.name().to_owned(), String::clone);
    Results { title, parameters, points }
}
