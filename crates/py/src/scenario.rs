//! Scenarios, and how they are run.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fairpath_core::Timestamp;
use fairpath_runs::{Described, Kept, Plan, Results, Run, Unusable};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml::Value;

use crate::convert::{self, to_toml};
use crate::errors::{error, unusable};
use crate::result::RunResult;
use crate::table::Table;

/// A run is done in so many parts, so that Ctrl-C ends it between two of them.
const PARTS: u32 = 200;

/// After so long progress is shown.
const QUIET: Duration = Duration::from_secs(2);

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

    fn described(&self) -> PyResult<Described> {
        described(&self.text, &self.name, &self.beside)
    }
}

fn described(text: &str, name: &str, beside: &Path) -> PyResult<Described> {
    let described = Described::parse(text, name, beside, &[]).and_then(|file| {
        // One point shows what all have in common.
        file.at(0)?;
        Ok(file)
    });
    described.map_err(|Unusable(text)| unusable(text))
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
    /// `threads`: over so many cores, where all links have a delay; any number gives the same bytes.
    #[pyo3(signature = (seed=None, *, threads=None))]
    fn run(&self, py: Python<'_>, seed: Option<u64>, threads: Option<u16>) -> PyResult<RunResult> {
        if threads == Some(0) {
            return Err(unusable("threads = 0: at least one is needed"));
        }
        let file = self.described()?;
        let points = file.sweep().points();
        if points > 1 {
            return Err(unusable(format!(
                "{} describes {points} scenarios, one for each combination of the values in its [sweep]; `sweep` runs \
                 them, `replace` chooses one",
                self.name
            )));
        }
        let scenario = file.scenario(0, seed).map_err(|Unusable(text)| unusable(text))?;
        let mut run = Run::new(&scenario, threads).map_err(|cause| unusable(cause.to_string()))?;
        let mut kept = Kept::new(&scenario);
        for part in 1..=PARTS {
            let until = Timestamp::ZERO + scenario.duration.mul_f64(f64::from(part) / f64::from(PARTS));
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
    /// done and how many there are; `True` tells of them on standard error after two seconds.
    #[pyo3(signature = (parameters=None, *, seeds=1, seed=None, threads=0, progress=None))]
    fn sweep(
        &self,
        py: Python<'_>,
        parameters: Option<&Bound<'_, PyDict>>,
        seeds: u64,
        seed: Option<u64>,
        threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        if !(1..=SEEDS_MAX).contains(&seeds) {
            return Err(unusable(format!("seeds = {seeds}: from 1 to {SEEDS_MAX} can be run")));
        }
        let mut keys = self.keys.clone();
        for (name, values) in parameters.into_iter().flatten() {
            vary(&mut keys, &name.extract::<String>()?, &values)?;
        }
        let swept = Self::with_keys(&keys, self.changed(), self.beside.clone())?.described()?;
        let results = run_all(py, &swept, seeds, seed, threads, progress)?;
        Ok(Table { results })
    }

    fn __repr__(&self) -> String {
        format!("Scenario({:?}, {} links, {} flows)", self.name, count(&self.keys, "link"), count(&self.keys, "flow"))
    }
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

/// How far a sweep is, for the one who waits.
struct Progress<'a, 'py> {
    given: Option<&'a Bound<'py, PyAny>>,
    begun: Instant,
    told: u64,
    of: u64,
}

impl Progress<'_, '_> {
    /// Whether to tell of it oneself: where nobody said how, or said yes.
    fn is_own(&self) -> bool {
        self.given.is_none_or(|given| given.is_truthy().unwrap_or(false) && !given.is_callable())
    }

    fn tell(&mut self, py: Python<'_>, done: u64) -> PyResult<()> {
        if done == self.told {
            return Ok(());
        }
        self.told = done;
        if let Some(given) = self.given.filter(|given| given.is_callable()) {
            given.call1((done, self.of))?;
        } else if self.is_own() && self.begun.elapsed() > QUIET {
            let end = if done == self.of { "\n" } else { "" };
            py.import("sys")?.getattr("stderr")?.call_method1("write", (format!("\r{done}/{} runs{end}", self.of),))?;
        }
        Ok(())
    }
}

/// Runs them on threads of their own; this one tells how far they are, and listens for Ctrl-C.
fn run_all(
    py: Python<'_>,
    file: &Described,
    seeds: u64,
    seed: Option<u64>,
    jobs: usize,
    given: Option<&Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let ran = || {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let plan = Plan { file, seed, seeds, jobs, change: &|_| {}, ran: &ran };
    let mut progress = Progress { given, begun: Instant::now(), told: 0, of: plan.runs() };
    std::thread::scope(|scope| {
        let (send, mut receive) = mpsc::channel();
        let (plan, stop) = (&plan, &stop);
        scope.spawn(move || send.send(plan.run(&|| !stop.load(Ordering::Relaxed))));
        loop {
            let waiting = &mut receive;
            let ended = py.detach(move || waiting.recv_timeout(Duration::from_millis(50)));
            let told = progress.tell(py, done.load(Ordering::Relaxed)).and_then(|()| py.check_signals());
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
