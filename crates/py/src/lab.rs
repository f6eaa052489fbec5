//! The experiments of the papers, one by one, so that each may run on another machine.

use std::path::PathBuf;

use fairpath_lab::{Context, Effort, Seeds, Store, select};
use pyo3::prelude::*;

use crate::errors::{error, wrong};

/// The names of the experiments that are meant by a name: one, all of a paper, or `all`.
#[pyfunction]
pub(crate) fn experiments(name: &str) -> PyResult<Vec<&'static str>> {
    let selected = select(name).map_err(|error| wrong(error.to_string()))?;
    Ok(selected.into_iter().map(|experiment| experiment.name()).collect())
}

/// Runs an experiment and keeps its report in a folder, as `fairpath lab run` does.
#[pyfunction]
pub(crate) fn run_experiment(
    py: Python<'_>,
    name: &str,
    folder: PathBuf,
    quick: bool,
    seeds: Option<u32>,
    jobs: usize,
) -> PyResult<()> {
    let selected = select(name).map_err(|error| wrong(error.to_string()))?;
    let effort = if quick { Effort::Quick } else { Effort::Full };
    let seeds = match seeds {
        Some(0) => return Err(wrong("seeds = 0: at least one is needed")),
        Some(count) => Seeds::Count(count),
        None => Seeds::AsMeant,
    };
    let kept = py.detach(|| -> anyhow::Result<()> {
        let store = Store::create(&folder)?;
        for experiment in selected {
            let context = Context::new(effort).with_seeds(seeds).with_jobs(jobs);
            let report = experiment.run(&context)?;
            store.keep(experiment, &context, report)?;
        }
        Ok(())
    });
    kept.map_err(|cause| error(&cause))
}

/// Writes the page over all reports of a folder; where it is.
#[pyfunction]
pub(crate) fn keep_reports(folder: PathBuf) -> PyResult<String> {
    let store = Store::create(&folder).map_err(|cause| error(&cause.into()))?;
    Ok(store.page().display().to_string())
}
