//! The context of an experiment's runs: effort, seeds, and the observer of progress.

use core::ops::Range;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fairpath_sim::SimError;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[cfg(feature = "cells")]
use crate::cells::{Cells, Stopped};

/// How much trouble to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Some seconds, for tests: the same questions, shorter and with fewer seeds.
    Quick,
    /// The full form, as in the report.
    #[default]
    Full,
}

impl Effort {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// The choice of seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeds {
    /// As many as the experiment thinks right.
    #[default]
    AsMeant,
    /// This many.
    Count(u32),
    /// This one only.
    Only(u64),
}

/// How far an experiment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs that ended.
    pub done: u64,
    /// Runs that are known to be needed; a later sweep may add some.
    pub planned: u64,
}

/// Where claims stay undecided, up to so many times as many seeds are used as the experiment thinks right: in
/// full intervals are half as wide then; the quick form shall stay quick.
const MORE_SEEDS_MAX: [(Effort, u32); 2] = [(Effort::Quick, 2), (Effort::Full, 4)];

type Observer = Box<dyn Fn(Progress) + Send + Sync>;

/// The context in which an experiment runs.
pub struct Context {
    effort: Effort,
    seeds: Seeds,
    jobs: usize,
    observer: Observer,
    done: AtomicU64,
    planned: AtomicU64,
    /// How many times as many seeds are used as is meant.
    times: AtomicU32,
    /// The same, where the experiment is run once whatever is undecided.
    once: Option<u32>,
    /// The seeds of the runs so far.
    used: Mutex<BTreeSet<u64>>,
    /// Where cells are run one by one, those that are known.
    #[cfg(feature = "cells")]
    cells: Option<Cells>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("effort", &self.effort).field("seeds", &self.seeds).finish_non_exhaustive()
    }
}

impl Context {
    /// With this effort, the seeds that are meant, all processors, and nobody watching.
    pub fn new(effort: Effort) -> Self {
        let observer: Observer = Box::new(|_| {});
        Self {
            effort,
            seeds: Seeds::default(),
            jobs: 0,
            observer,
            done: AtomicU64::new(0),
            planned: AtomicU64::new(0),
            times: AtomicU32::new(1),
            once: None,
            used: Mutex::default(),
            #[cfg(feature = "cells")]
            cells: None,
        }
    }

    /// The same, which goes as far as these cells are known.
    #[cfg(feature = "cells")]
    pub(crate) fn with_cells(self, cells: Cells) -> Self {
        Self { cells: Some(cells), ..self }
    }

    /// Where it has stopped for want of cells.
    #[cfg(feature = "cells")]
    pub(crate) fn stopped(&self) -> Option<Result<Stopped, String>> {
        self.cells.as_ref().and_then(Cells::stopped)
    }

    /// The same with these seeds.
    pub fn with_seeds(self, seeds: Seeds) -> Self {
        Self { seeds, ..self }
    }

    /// The same with this many runs side by side; 0: as many as there are processors.
    pub fn with_jobs(self, jobs: usize) -> Self {
        Self { jobs, ..self }
    }

    /// The same, run once with so many times as many seeds as are meant. Claims may stay undecided.
    pub fn once(self, times: u32) -> Self {
        Self { once: Some(times), ..self }
    }

    /// The same, telling `observer` whenever a run ends.
    pub fn with_observer(self, observer: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self { observer: Box::new(observer), ..self }
    }

    /// How much trouble to take.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// One of two values, by the effort.
    pub fn pick<T>(&self, quick: T, full: T) -> T {
        match self.effort {
            Effort::Quick => quick,
            Effort::Full => full,
        }
    }

    /// The seeds: `meant` of them from 1 on, where nothing else was asked for; more of them where claims
    /// were undecided with so many.
    pub fn seeds(&self, meant: u32) -> Vec<u64> {
        self.seeds_from(1, meant)
    }

    /// The seeds: `meant` of them from `first` on, where nothing else was asked for. What is tuned
    /// on some seeds is reported on others.
    pub fn seeds_from(&self, first: u64, meant: u32) -> Vec<u64> {
        match self.seeds {
            Seeds::AsMeant => {
                let count = u64::from(meant) * u64::from(self.times.load(Ordering::Relaxed));
                (first..first + count).collect()
            }
            Seeds::Count(count) => (first..first + u64::from(count)).collect(),
            Seeds::Only(seed) => vec![seed],
        }
    }

    /// The seeds as they were asked for.
    pub(crate) fn chosen_seeds(&self) -> Seeds {
        self.seeds
    }

    /// The seeds of all runs of the experiment, in order.
    pub(crate) fn seeds_used(&self) -> Vec<u64> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    pub(crate) fn begin(&self) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.times.store(self.once.unwrap_or(1), Ordering::Relaxed);
    }

    /// Whether more seeds are to be had, which will be used from here on, where `needed` times as many
    /// would decide something. None are where the seeds were chosen by whoever asked.
    pub(crate) fn more_seeds(&self, needed: f64) -> bool {
        let now = self.times.load(Ordering::Relaxed);
        let wanted = f64::from(now) * needed;
        let most = MORE_SEEDS_MAX.iter().find(|(effort, _)| *effort == self.effort).map_or(1, |(_, most)| *most);
        if self.once.is_some() || self.seeds != Seeds::AsMeant || now >= most {
            return false;
        }
        let times = (wanted.ceil() as u32).clamp(now + 1, most);
        self.times.store(times, Ordering::Relaxed);
        true
    }

    /// Runs every point with every seed, side by side. The results are in the order of the points,
    /// and for each in the order of the seeds, whichever ended first.
    ///
    /// # Errors
    ///
    /// Where a run failed or panicked; the others are ended all the same.
    pub fn sweep<P, R, F>(&self, points: &[P], seeds: &[u64], run: F) -> Result<Vec<Vec<R>>, Failure>
    where
        P: Sync + fmt::Debug,
        R: Send + Serialize + DeserializeOwned,
        F: Fn(&P, u64) -> Result<R, SimError> + Sync,
    {
        let work: Vec<(&P, u64)> =
            points.iter().flat_map(|point| seeds.iter().map(move |seed| (point, *seed))).collect();
        self.used.lock().unwrap_or_else(PoisonError::into_inner).extend(seeds);
        self.planned.fetch_add(work.len() as u64, Ordering::Relaxed);
        let one = |(point, seed): &(&P, u64)| {
            let result = catch_unwind(AssertUnwindSafe(|| run(point, *seed)));
            self.tell_one_done();
            let message = match result {
                Ok(Ok(result)) => return Ok(result),
                Ok(Err(error)) => error.to_string(),
                Err(panic) => panic_message(panic.as_ref()),
            };
            Err(FailedRun { point: format!("{point:?}"), seed: *seed, message })
        };
        let run_all = |cells: Range<usize>| {
            let all = || work[cells.clone()].par_iter().with_max_len(1).map(one).collect::<Vec<_>>();
            match rayon::ThreadPoolBuilder::new().num_threads(self.jobs).build() {
                Ok(pool) => pool.install(all),
                Err(_) => all(),
            }
        };
        let results = self.results(work.len(), run_all).ok_or_else(|| self.failure(Vec::new()))?;
        let mut done = Vec::with_capacity(results.len());
        let mut failed = Vec::new();
        for result in results {
            match result {
                Ok(result) => done.push(result),
                Err(run) => failed.push(run),
            }
        }
        if !failed.is_empty() {
            return Err(self.failure(failed));
        }
        let mut done = done.into_iter();
        Ok(points.iter().map(|_| done.by_ref().take(seeds.len()).collect()).collect())
    }

    /// The results of all cells of a sweep. `None`: the experiment stops here, since they are run elsewhere.
    fn results<R: Serialize + DeserializeOwned>(
        &self,
        cells: usize,
        run: impl FnOnce(Range<usize>) -> Vec<Result<R, FailedRun>>,
    ) -> Option<Vec<Result<R, FailedRun>>> {
        #[cfg(feature = "cells")]
        if let Some(known) = &self.cells {
            return known.sweep(cells, run);
        }
        Some(run(0..cells))
    }

    fn failure(&self, runs: Vec<FailedRun>) -> Failure {
        Failure { experiment: String::new(), effort: self.effort, runs }
    }

    fn tell_one_done(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.observer)(Progress { done, planned: self.planned.load(Ordering::Relaxed) });
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// The point of the sweep.
    pub point: String,
    /// The seed.
    pub seed: u64,
    /// The error or panic.
    pub message: String,
}

/// Runs of an experiment failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    experiment: String,
    effort: Effort,
    /// The runs, in order.
    pub runs: Vec<FailedRun>,
}

impl Failure {
    pub(crate) fn of(self, experiment: &str, effort: Effort) -> Self {
        Self { experiment: experiment.to_owned(), effort, ..self }
    }

    /// The command that repeats a failed run.
    pub fn command(&self, run: &FailedRun) -> String {
        let quick = if self.effort == Effort::Quick { " --quick" } else { "" };
        format!("fairpath lab run {}{quick} --seed {}", self.experiment, run.seed)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of its runs failed", self.experiment, self.runs.len())?;
        for run in &self.runs {
            let (point, message) = (&run.point, &run.message);
            write!(f, "\n  seed {}, {point}: {message}\n    repeat it with: {}", run.seed, self.command(run))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whoever_is_first() {
        for jobs in [1, 2, 7] {
            let context = Context::new(Effort::Quick).with_jobs(jobs);
            let results = context.sweep(&[10, 20], &[1, 2, 3], |point, seed| Ok(point + seed)).unwrap();
            assert_eq!(results, [[11, 12, 13], [21, 22, 23]]);
        }
    }

    #[test]
    fn whoever_watches_sees_every_run_end() {
        let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let context = Context::new(Effort::Quick).with_observer(move |progress| sink.lock().unwrap().push(progress));
        context.sweep(&[(), ()], &[1, 2], |(), _| Ok(())).unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_by_key(|progress| progress.done);
        let expected: Vec<_> = (1..=4).map(|done| Progress { done, planned: 4 }).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_failed_run_is_told_with_the_command_that_repeats_it() {
        fn run(context: &Context) -> Result<crate::Report, Failure> {
            context.sweep(&["a", "b"], &[1, 2], |point, seed| match (*point, seed) {
                ("b", 2) => Err(SimError::NoPath { flow: "x".into() }),
                ("b", 1) => panic!("the {point} of {seed}"),
                _ => Ok(()),
            })?;
            Ok(crate::Report::default())
        }
        let experiment = crate::Experiment::new("some/table1", "", run);
        let text = experiment.run(&Context::new(Effort::Quick)).unwrap_err().to_string();
        assert!(text.contains("seed 1, \"b\": panicked: the b of 1"), "{text}");
        assert!(text.contains("flow \"x\" has no path"), "{text}");
        assert!(text.contains("fairpath lab run some/table1 --quick --seed 2"), "{text}");
    }

    /// Samples around 1, alternating by as much, so that an interval gets narrower with the seeds.
    fn scattered(context: &Context) -> Result<crate::Report, Failure> {
        let samples = context.sweep(&[()], &context.seeds(4), |(), seed| Ok(if seed % 2 == 0 { 1.5 } else { 0.5 }))?;
        let estimate = crate::Estimate::of(samples.concat()).expect("numbers");
        let verdict = crate::Verdict::new("x", "").at_least("mean", estimate, 0.5);
        Ok(crate::Report { verdicts: vec![verdict], ..crate::Report::default() })
    }

    #[test]
    fn what_is_undecided_gets_more_seeds_up_to_a_bound_and_if_nobody_chose_them() {
        let experiment = crate::Experiment::new("some/scattered", "", scattered);
        let seen = |context: Context| {
            let report = experiment.run(&context).unwrap();
            (report.verdicts[0].outcome, report.verdicts[0].checks[0].samples)
        };
        // 4 samples: 3.182 · 0.577 / 2 = 0.92; 8 samples: 2.365 · 0.535 / 2.83 = 0.45.
        use crate::Outcome::{Holds, Undecided};
        assert_eq!(seen(Context::new(Effort::Full)), (Holds, 8));
        assert_eq!(seen(Context::new(Effort::Full).with_seeds(Seeds::Count(4))), (Undecided, 4));
        assert_eq!(seen(Context::new(Effort::Full).once(1)), (Undecided, 4));
        assert_eq!(seen(Context::new(Effort::Full).once(2)), (Holds, 8));
        let again = Context::new(Effort::Full);
        assert_eq!(
            [experiment.run(&again), experiment.run(&again)].map(|run| run.unwrap().verdicts[0].checks[0].samples),
            [8, 8]
        );
    }

    #[test]
    fn seeds_are_as_asked_for() {
        let context = Context::new(Effort::Full);
        assert_eq!(context.seeds(3), [1, 2, 3]);
        assert_eq!(context.seeds_from(101, 2), [101, 102]);
        assert_eq!(Context::new(Effort::Full).with_seeds(Seeds::Count(2)).seeds(9), [1, 2]);
        assert_eq!(Context::new(Effort::Full).with_seeds(Seeds::Only(7)).seeds_from(101, 9), [7]);
    }
}
