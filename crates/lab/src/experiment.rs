//! One experiment: a table or a figure of a paper, or a question of our own.

use crate::context::{Context, Failure};
use crate::head::Description;
use crate::report::Report;
use crate::verdict::Verdict;

/// A table or a figure of a paper, or a question of our own.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    name: &'static str,
    source: &'static str,
    run: fn(&Context) -> Result<Report, Failure>,
}

impl Experiment {
    /// The experiment `name`, whose file has the text `source`; its description is the head of it.
    pub const fn new(name: &'static str, source: &'static str, run: fn(&Context) -> Result<Report, Failure>) -> Self {
        Self { name, source, run }
    }

    /// Its name, `<key of the paper>/<name of the file>`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The key of its paper.
    pub fn paper(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(paper, _)| paper)
    }

    /// What the head of its file says.
    pub fn description(&self) -> Description {
        Description::read(self.source)
    }

    /// Runs it, and again with more seeds where claims are undecided and some more might decide them.
    ///
    /// # Errors
    ///
    /// Where a run failed: each with the command that repeats it.
    pub fn run(&self, context: &Context) -> Result<Report, Failure> {
        context.begin();
        loop {
            let mut report = (self.run)(context).map_err(|failure| failure.of(self.name, context.effort()))?;
            let needed = report.verdicts.iter().filter_map(Verdict::seeds_needed).reduce(f64::max);
            if !needed.is_some_and(|needed| context.more_seeds(needed)) {
                report.verdicts = report.verdicts.into_iter().map(Verdict::with_bound_as_reason).collect();
                return Ok(report);
            }
        }
    }
}
