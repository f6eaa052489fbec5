//! One experiment: a table or a figure of a paper, or a question of our own.

use crate::context::{Context, Effort, Failure};
use crate::head::Description;
use crate::report::Report;
use crate::verdict::Verdict;

/// A table or a figure of a paper, or a question of our own.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    name: &'static str,
    source: &'static str,
    run: fn(&Context) -> Result<Report, Failure>,
    left_to_full: &'static [&'static str],
}

impl Experiment {
    /// The experiment `name`, whose file has the text `source`; its description is the head of it.
    pub const fn new(name: &'static str, source: &'static str, run: fn(&Context) -> Result<Report, Failure>) -> Self {
        Self { name, source, run, left_to_full: &[] }
    }

    /// The same, whose quick form does not judge these claims: it is too short for them.
    pub const fn left_to_full(self, claims: &'static [&'static str]) -> Self {
        Self { left_to_full: claims, ..self }
    }

    /// The claims that the quick form does not judge.
    pub fn claims_left_to_full(&self) -> &'static [&'static str] {
        self.left_to_full
    }

    /// Its name, `<key of the paper>/<name of the file>`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The key of its paper.
    pub fn paper(&self) -> &'static str {
        self.name.split_once('/').map_or(self.name, |(paper, _)| paper)
    }

    /// The description in the head of its file.
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
            if context.effort() == Effort::Quick {
                self.leave_to_full(&mut report);
            }
            let needed = report.verdicts.iter().filter_map(Verdict::seeds_needed).reduce(f64::max);
            if !needed.is_some_and(|needed| context.more_seeds(needed)) {
                report.verdicts = report.verdicts.into_iter().map(Verdict::with_bound_as_reason).collect();
                return Ok(report);
            }
        }
    }

    /// Takes out what the quick form cannot tell, and says so.
    fn leave_to_full(&self, report: &mut Report) {
        let is_left = |verdict: &Verdict| self.left_to_full.contains(&verdict.name.as_str());
        let left: Vec<String> = report
            .verdicts
            .extract_if(.., |verdict| is_left(verdict))
            .map(|verdict| format!("\"{}\"", verdict.name))
            .collect();
        if !left.is_empty() {
            report.notes.push(format!("Claims that only the full form judges: {}.", left.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_claims(_: &Context) -> Result<Report, Failure> {
        let verdicts = ["a", "b"].map(|name| Verdict::new(name, "").at_least("x", 1.0, 0.0)).to_vec();
        Ok(Report { verdicts, ..Report::default() })
    }

    #[test]
    fn the_quick_form_says_which_claims_it_does_not_judge() {
        let experiment = Experiment::new("some/two", "", two_claims).left_to_full(&["b"]);
        let of = |effort| experiment.run(&Context::new(effort)).unwrap();
        let quick = of(Effort::Quick);
        assert!(quick.verdict("a").is_some() && quick.verdict("b").is_none());
        assert_eq!(quick.notes, ["Claims that only the full form judges: \"b\"."]);
        assert!(of(Effort::Full).verdict("b").is_some() && of(Effort::Full).notes.is_empty());
    }
}
