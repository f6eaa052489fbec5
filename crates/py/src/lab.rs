//! The experiments of the papers, one by one or cell by cell, so that each may run on another machine.

use std::path::{Path, PathBuf};

use fairpath_lab::{Context, Effort, Experiment, Report, Seeds, Step, Store, select};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

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
    let (effort, seeds) = form(quick, seeds)?;
    let kept = py.detach(|| -> anyhow::Result<()> {
        for experiment in selected {
            let context = Context::new(effort).with_seeds(seeds).with_jobs(jobs);
            let report = experiment.run(&context)?;
            keep(&folder, experiment, &context, report)?;
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

/// An experiment cut into cells. It can be pickled.
#[pyclass(module = "fairpath._fairpath", frozen)]
pub(crate) struct Cut {
    name: String,
    quick: bool,
    seeds: Option<u32>,
    cut: fairpath_lab::Cut,
}

/// The results of the cells of the sweeps that are done.
type Done = Vec<Vec<Vec<u8>>>;

#[pymethods]
impl Cut {
    #[new]
    #[pyo3(signature = (name, quick=false, seeds=None))]
    fn new(name: String, quick: bool, seeds: Option<u32>) -> PyResult<Self> {
        let selected = select(&name).map_err(|error| wrong(error.to_string()))?;
        let [experiment] = selected[..] else {
            let first = selected.first().map_or("", |first| first.name());
            return Err(wrong(format!("{name}: that are {} experiments; one is cut, such as {first}", selected.len())));
        };
        let (effort, of) = form(quick, seeds)?;
        Ok(Self { name, quick, seeds, cut: fairpath_lab::Cut::new(experiment, effort, of) })
    }

    fn __getnewargs__(&self) -> (&str, bool, Option<u32>) {
        (&self.name, self.quick, self.seeds)
    }

    #[getter]
    fn name(&self) -> &str {
        self.cut.experiment().name()
    }

    /// How many cells the sweep has that comes after these. `None`: nothing comes, and the report is kept in the folder.
    #[pyo3(signature = (done, folder=None))]
    fn step(&self, py: Python<'_>, done: Done, folder: Option<PathBuf>) -> PyResult<Option<usize>> {
        let stepped = py.detach(|| -> anyhow::Result<Option<usize>> {
            let (report, context) = match self.cut.step(done)? {
                Step::Sweep(cells) => return Ok(Some(cells)),
                Step::Over(over) => *over,
            };
            if let Some(folder) = folder {
                keep(&folder, self.cut.experiment(), &context, report)?;
            }
            Ok(None)
        });
        stepped.map_err(|cause| error(&cause))
    }

    /// Runs `count` cells from `first` on of the sweep that comes after these, one after the other.
    fn cells<'py>(
        &self,
        py: Python<'py>,
        done: Done,
        first: usize,
        count: usize,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let range = first..first.saturating_add(count);
        let cells = py.detach(|| self.cut.cells(done, range)).map_err(|cause| error(&cause.into()))?;
        Ok(cells.iter().map(|cell| PyBytes::new(py, cell)).collect())
    }
}

fn form(quick: bool, seeds: Option<u32>) -> PyResult<(Effort, Seeds)> {
    let seeds = match seeds {
        Some(0) => return Err(wrong("seeds = 0: at least one is needed")),
        Some(count) => Seeds::Count(count),
        None => Seeds::AsMeant,
    };
    Ok((if quick { Effort::Quick } else { Effort::Full }, seeds))
}

fn keep(folder: &Path, experiment: &Experiment, context: &Context, report: Report) -> anyhow::Result<()> {
    Store::create(folder)?.keep(experiment, context, report)?;
    Ok(())
}
