//! Scenarios, and how they are run.

use std::path::{Path, PathBuf};

use fairpath_core::Timestamp;
use fairpath_runs::{Described, Kept, Run, Unusable};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml::Value;

use crate::convert::{self, to_toml};
use crate::errors::{error, unusable};
use crate::own::{Fault, Own};
use crate::plan::{SweepPlan, described};
use crate::result::RunResult;
use crate::table::Table;

/// A run is done in so many parts, so that Ctrl-C ends it between two of them.
const PARTS: u32 = 200;

/// With algorithms of Python each part is at most so long, in virtual time.
const OWN_PART_MS: u128 = 10;

/// Seeds of one call: more would run for years.
const SEEDS_MAX: u64 = 100_000;

/// The end of the name of a changed scenario.
const CHANGED: &str = ", changed";

/// Links, flows over them, and for how long they run.
#[pyclass(module = "fairpath", frozen)]
pub(crate) struct Scenario {
    text: String,
    keys: toml::Table,
    /// Its name in errors.
    name: String,
    /// Where files that it names are looked for.
    beside: PathBuf,
}

impl Scenario {
    /// Reads it, so that what cannot be meant is told at once.
    fn new(text: String, name: String, beside: PathBuf) -> PyResult<Self> {
        described(&text, &name, &beside)?;
        let keys = text.parse().map_err(|error| unusable(format!("{name}: {error}")))?;
        Ok(Self { text, keys, name, beside })
    }

    fn with_keys(keys: &toml::Table, name: String, beside: PathBuf) -> PyResult<Self> {
        let text = toml::to_string(keys).map_err(|error| unusable(format!("{name}: {error}")))?;
        Self::new(text, name, beside)
    }

    /// Its name in errors where its keys are not those of the file: lines are those of `to_toml`.
    fn changed(&self) -> String {
        let is_changed = self.name.ends_with(CHANGED);
        if is_changed { self.name.clone() } else { format!("{}{CHANGED}", self.name) }
    }

    pub(crate) fn described(&self) -> PyResult<Described> {
        described(&self.text, &self.name, &self.beside)
    }

    /// The only scenario of the file.
    pub(crate) fn only(&self, file: &Described, seed: Option<u64>) -> PyResult<fairpath_scenario::Scenario> {
        let points = file.sweep().points();
        if points > 1 {
            return Err(unusable(format!(
                "{} describes {points} scenarios, one for each combination of the values in its [sweep]; `sweep` runs \
                 them, `replace` chooses one",
                self.name
            )));
        }
        file.scenario(0, seed).map_err(|Unusable(text)| unusable(text))
    }
}

#[pymethods]
impl Scenario {
    /// From keys like those of a file; `links` and `flows` are lists of dictionaries.
    #[new]
    #[pyo3(signature = (**keys))]
    fn py_new(keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut keys = keys.map_or(Ok(toml::Table::new()), |keys| convert::table(keys, "", 0))?;
        for (several, one) in [("links", "link"), ("flows", "flow")] {
            if let Some(value) = keys.remove(several) {
                if keys.contains_key(one) {
                    return Err(unusable(format!("{several} and {one} are the same; give one of them")));
                }
                keys.insert(one.to_owned(), value);
            }
        }
        Self::with_keys(&keys, "scenario".to_owned(), PathBuf::new())
    }

    /// From the text of a file, or from the file: what holds a line break or an equals sign is the text.
    #[staticmethod]
    fn from_toml(text_or_path: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = text_or_path.extract::<String>()
            && text.contains(['\n', '='])
        {
            return Self::new(text, "scenario".to_owned(), PathBuf::new());
        }
        let path: PathBuf = text_or_path.extract()?;
        let text = std::fs::read_to_string(&path).map_err(|cause| {
            error(&anyhow::Error::new(cause).context(format!("cannot read the scenario {}", path.display())))
        })?;
        Self::new(text, path.display().to_string(), path.parent().map_or_else(PathBuf::new, Path::to_owned))
    }

    /// Another scenario in which a key has this value, or all keys of a dictionary have theirs. `link.wifi.rate` is the
    /// rate of the link that is named wifi.
    #[pyo3(signature = (key, value=None))]
    fn replace(&self, key: &Bound<'_, PyAny>, value: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut keys = self.keys.clone();
        match (key.cast::<PyDict>(), value) {
            (Ok(several), None) => {
                for (key, value) in several {
                    let key: String = key.extract()?;
                    set(&mut keys, &key, to_toml(&value, &key)?)?;
                }
            }
            (Ok(_), Some(_)) => return Err(unusable("a dictionary has the values; give no other")),
            (Err(_), Some(value)) => {
                let key: String = key.extract()?;
                set(&mut keys, &key, to_toml(value, &key)?)?;
            }
            (Err(_), None) => return Err(unusable("a key needs a value")),
        }
        Self::with_keys(&keys, self.changed(), self.beside.clone())
    }

    /// The scenario as a file has it.
    fn to_toml(&self) -> &str {
        &self.text
    }

    /// Runs it, with the file's seed where none is given. Ctrl-C ends it at once.
    ///
    /// `threads`: over so many cores, where all links have a delay; any number gives the same bytes. `controllers` and
    /// `schedulers`: classes of one's own, by the names of flows.
    #[pyo3(signature = (seed=None, *, threads=None, controllers=None, schedulers=None))]
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        threads: Option<u16>,
        controllers: Option<&Bound<'_, PyDict>>,
        schedulers: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<RunResult> {
        if threads == Some(0) {
            return Err(unusable("threads = 0: at least one is needed"));
        }
        let file = self.described()?;
        let mut scenario = self.only(&file, seed)?;
        let own = Own::new(&mut scenario, controllers, schedulers)?;
        if !own.is_empty() {
            if threads.is_some() {
                return Err(unusable("threads: what is written in Python runs on one"));
            }
            return run_own(py, &file, scenario, own);
        }
        let mut run = Run::new(&scenario, threads).map_err(|cause| unusable(cause.to_string()))?;
        let mut kept = Kept::new(&scenario);
        for until in parts(&scenario, PARTS) {
            let ran = py.detach(|| run.run_until(until, &mut kept));
            ran.map_err(|cause| unusable(file.too_much(0, &cause).to_string()))?;
            py.check_signals()?;
        }
        let outcome = run.outcome();
        Ok(RunResult::new(scenario, kept, &outcome))
    }

    /// Runs it with each combination of these values and each seed, over all cores.
    ///
    /// A parameter is one of the file's `${…}`, or a key as in `replace`. `progress` is called with how many runs are
    /// done and how many there are; `True` tells of them on standard error after two seconds. `on`: `threads`, or `ray`,
    /// over the machines of a cluster.
    #[pyo3(signature = (parameters=None, *, seeds=1, seed=None, threads=0, progress=None, on="threads"))]
    #[allow(clippy::too_many_arguments)]
    fn sweep(
        &self,
        py: Python<'_>,
        parameters: Option<&Bound<'_, PyDict>>,
        seeds: u64,
        seed: Option<u64>,
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        on: &str,
    ) -> PyResult<Py<Table>> {
        let plan = self.plan(parameters, seeds, seed)?;
        match on {
            "threads" => Table::new(py, plan.run(py, threads, progress)?),
            "ray" if threads != 0 => Err(unusable("threads: on=\"ray\" takes the processors of the cluster")),
            "ray" => plan.run_on_ray(py, progress),
            other => Err(unusable(format!("on = {other:?}: there are threads and ray"))),
        }
    }

    /// The runs of such a sweep, to be cut into parts.
    #[pyo3(signature = (parameters=None, *, seeds=1, seed=None))]
    fn plan(&self, parameters: Option<&Bound<'_, PyDict>>, seeds: u64, seed: Option<u64>) -> PyResult<SweepPlan> {
        if !(1..=SEEDS_MAX).contains(&seeds) {
            return Err(unusable(format!("seeds = {seeds}: from 1 to {SEEDS_MAX} can be run")));
        }
        let mut keys = self.keys.clone();
        for (name, values) in parameters.into_iter().flatten() {
            vary(&mut keys, &name.extract::<String>()?, &values)?;
        }
        let swept = Self::with_keys(&keys, self.changed(), self.beside.clone())?;
        SweepPlan::new(swept.text, swept.name, swept.beside, seeds, seed)
    }

    fn __repr__(&self) -> String {
        format!("Scenario({:?}, {} links, {} flows)", self.name, count(&self.keys, "link"), count(&self.keys, "flow"))
    }
}

/// The times at which so many parts of a run end.
fn parts(scenario: &fairpath_scenario::Scenario, parts: u32) -> impl Iterator<Item = Timestamp> {
    let duration = scenario.duration;
    (1..=parts).map(move |part| Timestamp::ZERO + duration.mul_f64(f64::from(part) / f64::from(parts)))
}

/// Runs it with algorithms of Python, whose first exception ends it.
fn run_own(py: Python<'_>, file: &Described, scenario: fairpath_scenario::Scenario, own: Own) -> PyResult<RunResult> {
    let fault = Fault::default();
    let run = Run::with_engines(&scenario, own.build(fault.clone()));
    let mut run = run.map_err(|cause| unusable(cause.to_string()))?;
    let mut kept = Kept::new(&scenario);
    // Short parts: after an exception nobody wants to wait.
    let number = (scenario.duration.as_millis() / OWN_PART_MS).clamp(PARTS.into(), u32::MAX.into()) as u32;
    for until in parts(&scenario, number) {
        let ran = run.run_until(until, &mut kept);
        fault.check()?;
        ran.map_err(|cause| unusable(file.too_much(0, &cause).to_string()))?;
        py.check_signals()?;
    }
    let outcome = run.outcome();
    Ok(RunResult::new(scenario, kept, &outcome))
}

fn count(keys: &toml::Table, name: &str) -> usize {
    keys.get(name).and_then(Value::as_array).map_or(0, Vec::len)
}

/// Makes a parameter of the file have these values, or a key become a parameter.
fn vary(keys: &mut toml::Table, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
    let Value::Array(values) = to_toml(values, name)? else {
        return Err(unusable(format!("{name}: a list of values is needed")));
    };
    if values.is_empty() {
        return Err(unusable(format!("{name}: the list of values is empty")));
    }
    let is_parameter = keys.get("sweep").and_then(Value::as_table).is_some_and(|sweep| sweep.contains_key(name));
    let parameter = if is_parameter { name.to_owned() } else { name.replace(['.', '-'], "_") };
    if !is_parameter {
        set(keys, name, Value::String(format!("${{{parameter}}}")))?;
    }
    let sweep = keys.entry("sweep").or_insert_with(|| Value::Table(toml::Table::new()));
    let sweep = sweep.as_table_mut().ok_or_else(|| unusable("sweep: a table of parameters is needed"))?;
    sweep.insert(parameter, Value::Array(values));
    Ok(())
}

/// Gives a key a value; in a list of tables an entry goes by its name.
fn set(keys: &mut toml::Table, key: &str, value: Value) -> PyResult<()> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().filter(|last| !last.is_empty()).ok_or_else(|| unusable("an empty key names nothing"))?;
    let mut at = keys;
    let mut parts = parts.into_iter();
    while let Some(part) = parts.next() {
        let entry = at.entry(part).or_insert_with(|| Value::Table(toml::Table::new()));
        at = match entry {
            Value::Table(table) => table,
            Value::Array(entries) => named(entries, key, part, parts.next())?,
            _ => return Err(unusable(format!("{key}: {part} is a value and has no keys"))),
        };
    }
    at.insert(last.to_owned(), value);
    Ok(())
}

/// The entry of a list of tables that has this name.
fn named<'t>(entries: &'t mut [Value], key: &str, list: &str, name: Option<&str>) -> PyResult<&'t mut toml::Table> {
    let of = |entry: &Value| entry.get("name").and_then(Value::as_str).map(str::to_owned);
    let names: Vec<String> = entries.iter().filter_map(of).collect();
    let found = entries.iter_mut().find(|entry| name.is_some() && of(entry).as_deref() == name);
    found.and_then(Value::as_table_mut).ok_or_else(|| {
        let name = name.unwrap_or_default();
        unusable(format!("{key}: there is no {list} named {name:?}; there are {}", names.join(", ")))
    })
}
