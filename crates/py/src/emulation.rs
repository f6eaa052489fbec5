//! The links of a scenario in real time.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use fairpath_runs::{Emulated, choose_flow};
use fairpath_scenario::Change;
use pyo3::prelude::*;

use crate::convert::from_json;
use crate::errors::{error, unusable, wrong};
use crate::scenario::Scenario;

/// Relays on this machine, one for each path of a flow, from when it is entered until it is left.
#[pyclass(module = "fairpath", frozen)]
pub(crate) struct Emulation {
    scenario: fairpath_scenario::Scenario,
    flow: fairpath_scenario::Flow,
    to: SocketAddr,
    running: Mutex<Option<Running>>,
}

struct Running {
    emulated: Arc<Emulated>,
    ends: Arc<(Mutex<bool>, Condvar)>,
    changes: Option<JoinHandle<()>>,
}

#[pymethods]
impl Emulation {
    #[new]
    #[pyo3(signature = (scenario, to, *, flow=None, seed=None))]
    fn py_new(scenario: &Scenario, to: &str, flow: Option<&str>, seed: Option<u64>) -> PyResult<Self> {
        let file = scenario.described()?;
        let scenario = scenario.only(&file, seed)?;
        let flow = choose_flow(&scenario, flow).map_err(|cause| unusable(cause.0))?.clone();
        let found = to.to_socket_addrs().ok().and_then(|mut found| found.next());
        let to = found.ok_or_else(|| wrong(format!("to = {to:?}: an address like 127.0.0.1:4433 is needed")))?;
        Ok(Self { scenario, flow, to, running: Mutex::new(None) })
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        let this = slf.get();
        let mut running = this.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.is_some() {
            return Err(unusable("this emulation is running already; make another"));
        }
        let emulated = Emulated::start(&this.scenario, &this.flow, this.to).map_err(|cause| error(&cause.into()))?;
        let (emulated, ends) = (Arc::new(emulated), Arc::new((Mutex::new(false), Condvar::new())));
        let (links, stop, changes) = (Arc::clone(&emulated), Arc::clone(&ends), this.scenario.changes.clone());
        let changes = std::thread::spawn(move || change_links(&links, &changes, &stop));
        *running = Some(Running { emulated, ends, changes: Some(changes) });
        drop(running);
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(running));
    }

    /// The address of each path, as `host:port`: what is sent there comes out at the server.
    #[getter]
    fn addresses(&self) -> PyResult<Vec<String>> {
        self.with(|emulated| emulated.relays().iter().map(SocketAddr::to_string).collect())
    }

    /// Counters of the links so far, as `fairpath emu --json` prints them.
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.with(Emulated::json)?)
    }
}

impl Emulation {
    fn with<T>(&self, of: impl FnOnce(&Emulated) -> T) -> PyResult<T> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running.as_ref().ok_or_else(|| unusable("the emulation runs inside `with` only"))?;
        Ok(of(&running.emulated))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        *self.ends.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ends.1.notify_all();
        drop(self.changes.take().map(JoinHandle::join));
    }
}

/// Changes links when the scenario says so, until the end.
fn change_links(emulated: &Emulated, changes: &[Change], (over, told): &(Mutex<bool>, Condvar)) {
    let begun = Instant::now();
    for change in changes {
        let mut is_over = over.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_over && begun.elapsed() < change.at {
            let left = change.at.saturating_sub(begun.elapsed());
            is_over = told.wait_timeout(is_over, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if *is_over {
            return;
        }
        drop(is_over);
        emulated.change(change);
    }
}
