//! Controllers and schedulers that are written in Python, for trying: each event calls into the interpreter.

mod controller;
mod scheduler;
mod views;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fairpath_engine::{Engine, UnknownName};
use fairpath_scenario::{Flow, Scenario};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::errors::unusable;
use controller::OwnController;
use scheduler::OwnScheduler;
pub(crate) use views::{Ack, Connection, Loss, Path};

/// The first exception of an algorithm: algorithms cannot fail, so the run is ended between two steps.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<(AtomicBool, Mutex<Option<PyErr>>)>);

impl Fault {
    fn is_set(&self) -> bool {
        self.0.0.load(Ordering::Relaxed)
    }

    /// Does something in Python, unless something has gone wrong before.
    fn guard<T>(&self, deed: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
        if self.is_set() {
            return None;
        }
        match Python::attach(deed) {
            Ok(done) => Some(done),
            Err(error) => {
                *self.0.1.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                self.0.0.store(true, Ordering::Relaxed);
                None
            }
        }
    }

    /// The first exception, if there was one.
    pub(crate) fn check(&self) -> PyResult<()> {
        let taken = self.0.1.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map_or(Ok(()), Err)
    }
}

/// Makes an algorithm: a class, or whatever else is called without arguments.
pub(crate) struct Maker {
    call: Py<PyAny>,
    /// The class whose methods do nothing.
    base: Py<PyType>,
}

impl Maker {
    fn new(call: &Bound<'_, PyAny>, base: &str) -> PyResult<Self> {
        let base = call.py().import("fairpath.own")?.getattr(base)?.cast_into::<PyType>()?;
        if !call.is_callable() {
            let name = base.name()?;
            return Err(unusable(format!("{call} makes no {name}; give the class, or a function that makes one")));
        }
        Ok(Self { call: call.clone().unbind(), base: base.unbind() })
    }

    /// Whether what it makes has a method of its own of this name. Of a function nobody knows before the call.
    fn overrides(&self, py: Python<'_>, method: &str) -> bool {
        let Ok(class) = self.call.bind(py).cast::<PyType>() else { return true };
        let methods = class.getattr(method).and_then(|own| Ok((own, self.base.bind(py).getattr(method)?)));
        methods.is_ok_and(|(own, base)| !own.is(&base))
    }

    fn make<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.call.bind(py).call0()?;
        if made.is_instance(self.base.bind(py))? {
            return Ok(made);
        }
        Err(unusable(format!("{} is no {}", made.get_type().name()?, self.base.bind(py).name()?)))
    }
}

/// The algorithms of one's own, by the names of flows or of their classes.
#[derive(Default)]
pub(crate) struct Own {
    controllers: BTreeMap<String, Arc<Maker>>,
    schedulers: BTreeMap<String, Arc<Maker>>,
}

impl Own {
    pub(crate) fn new(
        scenario: &mut Scenario,
        controllers: Option<&Bound<'_, PyDict>>,
        schedulers: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let own = Self {
            controllers: makers(scenario, controllers, "Controller")?,
            schedulers: makers(scenario, schedulers, "Scheduler")?,
        };
        for flow in &mut scenario.flows {
            let paces = |py: Python<'_>, maker: &Arc<Maker>| maker.overrides(py, "pacing_rate");
            // A controller that says how fast is not itself without pacing.
            if of(&own.controllers, flow).is_some_and(|maker| Python::attach(|py| paces(py, maker))) {
                flow.transport.pacing.get_or_insert(true);
            }
        }
        Ok(own)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.controllers.is_empty() && self.schedulers.is_empty()
    }

    /// Builds the engines of a run, and tells `fault` of the first exception.
    pub(crate) fn build(self, fault: Fault) -> impl Fn(&Flow) -> Result<Engine, UnknownName> + Send + Sync + 'static {
        move |flow| {
            let controller = of(&self.controllers, flow).map(|maker| OwnController::boxed(maker, &fault));
            let scheduler = of(&self.schedulers, flow).map(|maker| OwnScheduler::boxed(maker, &fault));
            flow.engine.build_of(controller, scheduler)
        }
    }
}

/// The maker for a flow: by its own name, or by that of its class.
fn of<'m>(makers: &'m BTreeMap<String, Arc<Maker>>, flow: &Flow) -> Option<&'m Arc<Maker>> {
    makers.get(&flow.name).or_else(|| makers.get(&flow.class))
}

fn makers(
    scenario: &Scenario,
    given: Option<&Bound<'_, PyDict>>,
    base: &str,
) -> PyResult<BTreeMap<String, Arc<Maker>>> {
    let mut makers = BTreeMap::new();
    for (name, call) in given.into_iter().flatten() {
        let name: String = name.extract()?;
        if !scenario.flows.iter().any(|flow| flow.name == name || flow.class == name) {
            let known: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).take(20).collect();
            return Err(unusable(format!("there is no flow {name:?}; there are {}", known.join(", "))));
        }
        makers.insert(name, Arc::new(Maker::new(&call, base)?));
    }
    Ok(makers)
}
