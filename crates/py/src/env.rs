//! A run that goes on step by step, with what a learner sets in between.

mod steered;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairpath_core::Timestamp;
use fairpath_engine::EngineConfig;
use fairpath_runs::Run;
use fairpath_scenario::Flow;
use fairpath_sim::{Recorder, View};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rayon::prelude::*;

use crate::errors::{unusable, wrong};
use crate::picture::Picture;
use crate::scenario::Scenario;
use steered::{Agent, Steered, Steering};

/// How many numbers describe a path.
const FACTS: usize = 6;

/// The windows to begin with, in packets, and the rates, in bit/s.
const PACKETS_FIRST: u64 = 10;
const RATE_FIRST: f64 = 1e6;

/// A network in which some flows are steered from outside.
#[pyclass(module = "fairpath", frozen)]
pub(crate) struct Env(Mutex<Stepped>);

struct Stepped {
    run: Run,
    watch: Watch,
    agents: Vec<Arc<Agent>>,
    steering: Option<Steering>,
    step: Duration,
    at: Timestamp,
    end: Timestamp,
}

/// Notes the paths of the steered flows at each sample; they are one for each step.
struct Watch {
    /// The position of each steered flow among those of the scenario.
    flows: Vec<usize>,
    paths: usize,
    step_s: f64,
    /// Bytes delivered and lost at the sample before, for each path.
    before: Vec<[u64; 2]>,
    /// The newest facts, [`FACTS`] numbers for each path.
    facts: Vec<f32>,
    srtt_s: Vec<f64>,
    picture: Option<fairpath_runs::Picture>,
}

impl Recorder for Watch {
    fn hears_all(&self) -> bool {
        false
    }

    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        for (flow, path) in view.paths() {
            let Some(agent) = self.flows.iter().position(|of| *of == flow.0 as usize) else { continue };
            let at = agent * self.paths + path.path.get() as usize;
            let now = [path.delivered.get(), path.lost.get()];
            let [delivered, lost] = [0, 1].map(|of| now[of].saturating_sub(self.before[at][of]) as f64);
            self.before[at] = now;
            let ms = |of: fn(&fairpath_core::Rtt) -> Duration| path.rtt.map_or(0.0, |rtt| of(&rtt).as_secs_f64() * 1e3);
            self.srtt_s[at] = ms(|rtt| rtt.smoothed) / 1e3;
            let facts = [
                delivered * 8e-6 / self.step_s,
                ms(|rtt| rtt.smoothed),
                ms(|rtt| rtt.min),
                if delivered + lost > 0.0 { lost / (delivered + lost) } else { 0.0 },
                path.window.as_f64() / 1e3,
                path.in_flight.as_f64() / 1e3,
            ];
            let kept = &mut self.facts[at * FACTS..][..FACTS];
            kept.iter_mut().zip(facts).for_each(|(kept, fact)| *kept = fact as f32);
        }
        if let Some(picture) = &mut self.picture {
            picture.add(now, view);
        }
    }
}

impl Stepped {
    fn step(&mut self, values: &[f64]) -> Result<(), String> {
        for (agent, values) in self.agents.iter().zip(values.chunks(self.watch.paths)) {
            match self.steering {
                Some(Steering::Windows) => agent.set_windows(values),
                Some(Steering::Shares) => agent.set_shares(values),
                Some(Steering::Rates) => {
                    let first = agent.number * self.watch.paths;
                    agent.set_rates(values, &self.watch.srtt_s[first..][..values.len()]);
                }
                None => {}
            }
        }
        self.at = self.at + self.step;
        self.run.run_until(self.at, &mut self.watch).map_err(|error| error.to_string())
    }
}

#[pymethods]
impl Env {
    /// The scenario with this seed, in steps of so many milliseconds. `flows` are steered by `steering`: `windows`,
    /// `rates` or `shares`; without it they do as the scenario says, and are watched only.
    #[new]
    #[pyo3(signature = (scenario, flows, steering, step_ms, seed, *, picture=false))]
    fn py_new(
        scenario: &Scenario,
        flows: Vec<String>,
        steering: Option<&str>,
        step_ms: u64,
        seed: u64,
        picture: bool,
    ) -> PyResult<Self> {
        if !(1..=60_000).contains(&step_ms) {
            return Err(wrong(format!("step_ms = {step_ms}: from 1 to 60000 milliseconds are a step")));
        }
        let steering = steering.map(str::parse).transpose().map_err(wrong)?;
        let file = scenario.described()?;
        let mut scenario = scenario.only(&file, Some(seed))?;
        let step = Duration::from_millis(step_ms);
        scenario.sample_every = step;
        let of = |name: &String| {
            let found = scenario.flows.iter().position(|flow| flow.name == *name);
            found.ok_or_else(|| unusable(format!("there is no flow {name:?}")))
        };
        let places = flows.iter().map(of).collect::<PyResult<Vec<_>>>()?;
        let paths = places.first().map_or(0, |first| scenario.flows[*first].paths.len());
        if let Some(other) = places.iter().find(|place| scenario.flows[**place].paths.len() != paths) {
            return Err(unusable(format!("{} has not {paths} paths as {} has", scenario.flows[*other].name, flows[0])));
        }
        let mut agents = Vec::new();
        for (number, place) in places.iter().enumerate() {
            let flow = &mut scenario.flows[*place];
            let window = flow.transport.packet.get() * PACKETS_FIRST;
            agents.push(Arc::new(Agent::new(number, paths, window, RATE_FIRST)));
            if matches!(steering, Some(Steering::Rates)) {
                flow.transport.pacing = Some(true);
            }
        }
        let names: Vec<(String, Arc<Agent>)> = flows.into_iter().zip(agents.iter().cloned()).collect();
        let build = move |flow: &Flow| {
            let agent = names.iter().find(|(name, _)| *name == flow.name).map(|(_, agent)| agent);
            match (steering, agent) {
                (Some(Steering::Shares), Some(agent)) => {
                    flow.engine.build_of(None, Some(Box::new(Steered::new(agent, steering))))
                }
                (Some(_), Some(agent)) => flow.engine.build_around(Box::new(Steered::new(agent, steering))),
                _ => flow.engine.build(),
            }
        };
        let run = Run::with_engines(&scenario, build).map_err(|error| unusable(error.to_string()))?;
        let number = places.len() * paths;
        let watch = Watch {
            flows: places,
            paths,
            step_s: step.as_secs_f64(),
            before: vec![[0; 2]; number],
            facts: vec![0.0; number * FACTS],
            srtt_s: vec![0.0; number],
            picture: picture.then(|| fairpath_runs::Picture::new(&scenario)),
        };
        let end = Timestamp::ZERO + scenario.duration;
        Ok(Self(Mutex::new(Stepped { run, watch, agents, steering, step, at: Timestamp::ZERO, end })))
    }

    /// How many steered flows there are, and how many paths each has.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        let stepped = self.stepped();
        (stepped.agents.len(), stepped.watch.paths)
    }

    /// Sets a value for each path of each steered flow, and goes on by a step: windows in bytes, rates in bit/s, or
    /// shares. Returns six 32-bit floats for each path, and whether the scenario is over.
    fn step<'py>(&self, py: Python<'py>, values: Vec<f64>) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        self.check(&values)?;
        py.detach(|| self.stepped().step(&values)).map_err(wrong)?;
        Ok(self.seen(py))
    }

    /// The picture of what has run, where it was asked for.
    fn plot(&self) -> PyResult<Option<Picture>> {
        let svg = self.stepped().watch.picture.as_ref().map(fairpath_runs::Picture::svg).transpose();
        let svg = svg.map_err(|error| crate::errors::error(&error))?;
        svg.map(|svg| Picture::new(svg, None)).transpose()
    }
}

impl Env {
    fn stepped(&self) -> MutexGuard<'_, Stepped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, values: &[f64]) -> PyResult<()> {
        let (agents, paths) = self.shape();
        if values.len() != agents * paths {
            return Err(wrong(format!("{} values for {agents} flows of {paths} paths", values.len())));
        }
        match values.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
            Some(value) => Err(wrong(format!("{value}: a number from 0 on is needed"))),
            None => Ok(()),
        }
    }

    fn seen<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, bool) {
        let stepped = self.stepped();
        let bytes: Vec<u8> = stepped.watch.facts.iter().flat_map(|fact| fact.to_le_bytes()).collect();
        (PyBytes::new(py, &bytes), stepped.at >= stepped.end)
    }
}

/// The names of the congestion controls.
#[pyfunction]
pub(crate) fn congestion_controls() -> Vec<&'static str> {
    EngineConfig::CONGESTION.to_vec()
}

/// The names of the schedulers.
#[pyfunction]
pub(crate) fn schedulers() -> Vec<&'static str> {
    EngineConfig::SCHEDULERS.to_vec()
}

/// Steps several environments, each with its values, over all cores.
#[pyfunction]
pub(crate) fn step_all<'py>(
    py: Python<'py>,
    envs: Vec<Py<Env>>,
    values: Vec<Vec<f64>>,
) -> PyResult<Vec<(Bound<'py, PyBytes>, bool)>> {
    if envs.len() != values.len() {
        return Err(wrong(format!("{} values for {} environments", values.len(), envs.len())));
    }
    envs.iter().zip(&values).try_for_each(|(env, values)| env.get().check(values))?;
    let stepped: Vec<&Env> = envs.iter().map(Py::get).collect();
    let step = |(env, values): (&&Env, &Vec<f64>)| env.stepped().step(values);
    py.detach(|| stepped.par_iter().zip(&values).try_for_each(step)).map_err(wrong)?;
    Ok(envs.iter().map(|env| env.get().seen(py)).collect())
}
