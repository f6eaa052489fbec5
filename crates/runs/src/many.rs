//! Several runs of one file: with each combination of the values of its parameters, and several seeds.

use std::borrow::Cow;
use std::time::Duration;

use fairpath_scenario::{ParameterValue, Scenario};
use fairpath_sim::Simulation;
use rayon::prelude::*;

use crate::measured::{Facts, Point, Run};
use crate::tables::Results;
use crate::{Described, Unusable, expand};

/// The results of at most so many flows and links are kept, of about a kilobyte each.
const OUTCOMES_MAX: u64 = 2_000_000;

/// Somebody asked the runs to end.
#[derive(Debug, thiserror::Error)]
#[error("the runs were ended before all of them were done")]
pub struct Stopped;

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
        let points = self.file.sweep().points();
        let first_seeds = self.first_seeds()?;
        let only = if points == 1 { Some(self.file.at(0)?) } else { None };
        let one = |(point, at): (usize, u64)| -> anyhow::Result<(Option<Facts>, Run)> {
            if !goes_on() {
                return Err(Stopped.into());
            }
            let described = match &only {
                Some(only) => Cow::Borrowed(only),
                None => Cow::Owned(self.file.at(point)?),
            };
            let mut scenario = expand(&described, Some(first_seeds[point].wrapping_add(at)))?;
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
        let jobs: Vec<(usize, u64)> =
            (0..points).flat_map(|point| (0..self.seeds).map(move |at| (point, at))).collect();
        let runs = pool.install(|| jobs.into_par_iter().map(one).collect::<Result<Vec<_>, _>>())?;
        Ok(results(self.file, runs))
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
