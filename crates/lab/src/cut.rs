//! An experiment cut into cells, which may run anywhere: each is a point of a sweep with a seed.
//!
//! An experiment is a function that calls [`Context::sweep`], and what it sweeps next may depend on what it has
//! seen. So it is run again from its beginning for each step, with the results of the sweeps that are done; it stops
//! at the first one that is not. Nothing in an experiment depends on anything else, so it stops at the same place
//! each time, on every machine.

use core::ops::Range;

use crate::cells::{CellBytes, Cells, Stopped};
use crate::context::{Context, Effort, Failure, Seeds};
use crate::experiment::Experiment;
use crate::report::Report;

/// An experiment with its effort and its seeds, to be run cell by cell.
///
/// `done` are the sweeps so far: for each of them the results of its cells, in order.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    experiment: &'static Experiment,
    effort: Effort,
    seeds: Seeds,
}

/// The next step after the sweeps that are done.
#[derive(Debug)]
pub enum Step {
    /// A sweep of so many cells.
    Sweep(usize),
    /// Nothing: the report, and the context that it was made with.
    Over(Box<(Report, Context)>),
}

/// The cells that were handed in cannot be of this experiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutError {
    /// Runs failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// Cells are missing, or are of another experiment or version.
    #[error("{experiment}: {what}")]
    NotItsCells {
        /// The experiment.
        experiment: &'static str,
        /// The fault.
        what: String,
    },
}

impl Cut {
    /// Cuts this experiment.
    pub fn new(experiment: &'static Experiment, effort: Effort, seeds: Seeds) -> Self {
        Self { experiment, effort, seeds }
    }

    /// The experiment.
    pub fn experiment(&self) -> &'static Experiment {
        self.experiment
    }

    /// The next step after the sweeps that are done.
    ///
    /// # Errors
    ///
    /// Where runs have failed, or cells are not of this experiment.
    pub fn step(&self, done: Vec<Vec<CellBytes>>) -> Result<Step, CutError> {
        let context = self.context(done, 0..0);
        let report = self.experiment.run(&context);
        match (self.stopped(&context)?, report) {
            (Some(Stopped { cells, .. }), _) => Ok(Step::Sweep(cells)),
            (None, report) => Ok(Step::Over(Box::new((report?, context)))),
        }
    }

    /// Runs these cells of the sweep that comes next, one after the other.
    ///
    /// # Errors
    ///
    /// Where there are no such cells. What fails is told by the step that comes after the sweep.
    pub fn cells(&self, done: Vec<Vec<CellBytes>>, range: Range<usize>) -> Result<Vec<CellBytes>, CutError> {
        let context = self.context(done, range.clone());
        let report = self.experiment.run(&context);
        match self.stopped(&context)? {
            Some(Stopped { results, .. }) if results.len() == range.len() => Ok(results),
            Some(Stopped { cells, .. }) => {
                Err(self.wrong(format!("cells {} to {} of {cells}: there are none", range.start, range.end)))
            }
            None => report.map_err(CutError::from).and_then(|_| Err(self.wrong("all sweeps are done".to_owned()))),
        }
    }

    fn context(&self, done: Vec<Vec<CellBytes>>, wanted: Range<usize>) -> Context {
        Context::new(self.effort).with_seeds(self.seeds).with_jobs(1).with_cells(Cells::new(done, wanted))
    }

    fn stopped(&self, context: &Context) -> Result<Option<Stopped>, CutError> {
        context.stopped().transpose().map_err(|what| self.wrong(what))
    }

    fn wrong(&self, what: String) -> CutError {
        CutError::NotItsCells { experiment: self.experiment.name(), what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, Report, Verdict};

    /// A sweep whose points depend on the one before it, and claims that more seeds decide.
    fn run(context: &Context) -> Result<Report, Failure> {
        let first = context.sweep(&[1.0, 2.0], &context.seeds(4), |point, seed| {
            Ok((point * if seed % 2 == 0 { 1.5 } else { 0.5 }, f64::NAN.to_bits()))
        })?;
        let means: Vec<f64> = first.iter().map(|all| all.iter().map(|(value, _)| value).sum()).collect();
        let second = context.sweep(&means, &[7], |mean, seed| Ok(mean * seed as f64))?;
        let estimate = Estimate::of(first[0].iter().map(|(value, _)| *value)).expect("numbers");
        let verdict = Verdict::new("x", "").at_least("mean", estimate, 0.5);
        Ok(Report { verdicts: vec![verdict], notes: vec![format!("{second:?}")], ..Report::default() })
    }
    static EXPERIMENT: Experiment = Experiment::new("some/cut", "", run);

    fn fails(context: &Context) -> Result<Report, Failure> {
        context.sweep(&["a"], &[1, 2], |point, seed| if seed == 2 { panic!("{point}") } else { Ok(()) })?;
        Ok(Report::default())
    }
    static FAILS: Experiment = Experiment::new("some/failing", "", fails);

    /// All sweeps, cell by cell, the last one first; how many cells each had.
    fn one_by_one(cut: Cut) -> (Result<Step, CutError>, Vec<usize>) {
        let (mut done, mut sizes) = (Vec::new(), Vec::new());
        loop {
            match cut.step(done.clone()) {
                Ok(Step::Sweep(cells)) => {
                    let one = |at| cut.cells(done.clone(), at..at + 1).unwrap().remove(0);
                    let mut results: Vec<CellBytes> = (0..cells).rev().map(one).collect();
                    results.reverse();
                    sizes.push(cells);
                    done.push(results);
                }
                other => return (other, sizes),
            }
        }
    }

    #[test]
    fn a_list_of_cells_gives_the_report_that_threads_give() {
        let (step, sizes) = one_by_one(Cut::new(&EXPERIMENT, Effort::Full, Seeds::AsMeant));
        let Ok(Step::Over(over)) = step else { panic!("{step:?}") };
        let context = Context::new(Effort::Full);
        assert_eq!(over.0, EXPERIMENT.run(&context).unwrap());
        assert_eq!(over.1.seeds_used(), context.seeds_used());
        // Twice as many seeds decide the claim.
        assert_eq!(sizes, [8, 2, 16, 2]);
    }

    #[test]
    fn a_cell_that_fails_is_told_as_it_is_by_threads() {
        let (step, _) = one_by_one(Cut::new(&FAILS, Effort::Quick, Seeds::AsMeant));
        let local = FAILS.run(&Context::new(Effort::Quick)).unwrap_err();
        assert_eq!(step.unwrap_err().to_string(), local.to_string());
    }

    #[test]
    fn cells_of_something_else_are_refused() {
        let cut = Cut::new(&EXPERIMENT, Effort::Quick, Seeds::AsMeant);
        let told = |done| cut.step(done).unwrap_err().to_string();
        assert_eq!(told(vec![vec![vec![0]]]), "some/cut: a sweep of 8 cells has 1");
        assert!(told(vec![vec![vec![9]; 8]]).contains("cannot be read"));
        assert_eq!(cut.cells(Vec::new(), 7..9).unwrap_err().to_string(), "some/cut: cells 7 to 9 of 8: there are none");
    }
}
