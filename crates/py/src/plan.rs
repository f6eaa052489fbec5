//! The runs of a sweep: over threads of this process, or part by part, wherever each is run.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fairpath_runs::{Described, Part, Plan, Results, Unusable};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{error, unusable};
use crate::table::Table;

/// After so long progress is shown.
const QUIET: Duration = Duration::from_secs(2);

/// The runs of a sweep. It can be pickled; files that the scenario names must then be where they were.
#[pyclass(module = "fairpath._fairpath", frozen)]
pub(crate) struct SweepPlan {
    text: String,
    name: String,
    beside: PathBuf,
    seeds: u64,
    seed: Option<u64>,
    file: Described,
}

#[pymethods]
impl SweepPlan {
    #[new]
    pub(crate) fn new(text: String, name: String, beside: PathBuf, seeds: u64, seed: Option<u64>) -> PyResult<Self> {
        let file = described(&text, &name, &beside)?;
        Ok(Self { text, name, beside, seeds, seed, file })
    }

    fn __getnewargs__(&self) -> (&str, &str, &PathBuf, u64, Option<u64>) {
        (&self.text, &self.name, &self.beside, self.seeds, self.seed)
    }

    /// Refuses what would keep too much.
    fn check(&self) -> PyResult<()> {
        self.plan(1, &|| {}).check().map_err(|cause| unusable(cause.to_string()))
    }

    /// How many runs these are.
    fn __len__(&self) -> usize {
        usize::try_from(self.plan(1, &|| {}).runs()).unwrap_or(usize::MAX)
    }

    /// Does `count` runs from `first` on, one after the other. Their results are for `join`.
    fn part<'py>(&self, py: Python<'py>, first: u64, count: u64) -> PyResult<Bound<'py, PyBytes>> {
        let range = first..first.saturating_add(count);
        let part = py.detach(|| self.plan(1, &|| {}).part(range, &|| true)?.to_bytes());
        part.map(|bytes| PyBytes::new(py, &bytes)).map_err(|cause| error(&cause))
    }

    /// The table of all parts, in any order. Refuses parts that are missing or there twice.
    fn join(&self, py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Py<Table>> {
        let parts = parts.iter().map(|part| Part::from_bytes(part)).collect::<Result<Vec<_>, _>>();
        let parts = parts.map_err(|cause| error(&cause))?;
        let results = self.plan(1, &|| {}).join(parts).map_err(|cause| unusable(cause.to_string()))?;
        Table::new(py, results)
    }
}

impl SweepPlan {
    /// All of them over so many threads; 0: all cores.
    pub(crate) fn run(&self, py: Python<'_>, threads: usize, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Results> {
        run_all(py, self, threads, progress)
    }

    /// All of them over the machines of a Ray cluster.
    pub(crate) fn run_on_ray(self, py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Py<Table>> {
        let module = py.import("fairpath.ray").map_err(|cause| {
            let said = PyImportError::new_err("on=\"ray\" needs Ray: pip install fairpath[ray]");
            said.set_cause(py, Some(cause));
            said
        })?;
        let told = Progress::new(progress, self.plan(1, &|| {}).runs(), py)?;
        Ok(module.call_method1("sweep", (Py::new(py, self)?, told))?.cast_into::<Table>()?.unbind())
    }

    fn plan<'p>(&'p self, jobs: usize, ran: &'p (dyn Fn() + Sync)) -> Plan<'p> {
        Plan { file: &self.file, seed: self.seed, seeds: self.seeds, jobs, change: &|_| {}, ran }
    }
}

/// A scenario as it was read. One point of it shows what all have in common.
pub(crate) fn described(text: &str, name: &str, beside: &Path) -> PyResult<Described> {
    let described = Described::parse(text, name, beside, &[]).and_then(|file| {
        file.at(0)?;
        Ok(file)
    });
    described.map_err(|Unusable(text)| unusable(text))
}

/// How far a sweep is, for the one who waits. Called with how many runs are done and how many there are.
#[pyclass(frozen)]
struct Progress {
    given: Option<Py<PyAny>>,
    is_own: bool,
    begun: Instant,
    of: u64,
}

impl Progress {
    /// Tells whoever was given; where nobody was, or `True`, standard error.
    fn new(given: Option<&Bound<'_, PyAny>>, of: u64, py: Python<'_>) -> PyResult<Py<Self>> {
        let is_callable = given.is_some_and(|given| given.is_callable());
        let is_own = !is_callable && given.is_none_or(|given| given.is_truthy().unwrap_or(false));
        let given = given.filter(|_| is_callable).map(|given| given.clone().unbind());
        Py::new(py, Self { given, is_own, begun: Instant::now(), of })
    }
}

#[pymethods]
impl Progress {
    #[pyo3(signature = (done, _of=0))]
    fn __call__(&self, py: Python<'_>, done: u64, _of: u64) -> PyResult<()> {
        if let Some(given) = &self.given {
            given.call1(py, (done, self.of))?;
        } else if self.is_own && self.begun.elapsed() > QUIET {
            let end = if done == self.of { "\n" } else { "" };
            py.import("sys")?.getattr("stderr")?.call_method1("write", (format!("\r{done}/{} runs{end}", self.of),))?;
        }
        Ok(())
    }
}

/// Runs them on threads of their own; this one tells how far they are, and listens for Ctrl-C.
fn run_all(py: Python<'_>, swept: &SweepPlan, jobs: usize, given: Option<&Bound<'_, PyAny>>) -> PyResult<Results> {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let ran = || {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let plan = swept.plan(jobs, &ran);
    let progress = Progress::new(given, plan.runs(), py)?;
    let mut told_of = 0;
    std::thread::scope(|scope| {
        let (send, mut receive) = mpsc::channel();
        let (plan, stop) = (&plan, &stop);
        scope.spawn(move || send.send(plan.run(&|| !stop.load(Ordering::Relaxed))));
        loop {
            let waiting = &mut receive;
            let ended = py.detach(move || waiting.recv_timeout(Duration::from_millis(50)));
            let now = done.load(Ordering::Relaxed);
            let told = if now == told_of { Ok(()) } else { progress.get().__call__(py, now, plan.runs()) };
            told_of = now;
            let told = told.and_then(|()| py.check_signals());
            if let Err(cause) = told {
                stop.store(true, Ordering::Relaxed);
                // Runs that have begun end first: none is longer than one run.
                let waiting = &mut receive;
                py.detach(move || drop(waiting.recv()));
                return Err(cause);
            }
            match ended {
                Ok(results) => return results.map_err(|cause| error(&cause)),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(unusable("a run ended without a result")),
            }
        }
    })
}
