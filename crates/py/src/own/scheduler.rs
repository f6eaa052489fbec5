//! A packet scheduler in Python.

use core::cell::RefCell;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use fairpath_core::{ByteCount, PathId, Timestamp};
use fairpath_engine::{Choice, ConnectionView, PathView, Scheduler};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::views::{Connection, Known, Path};
use super::{Fault, Maker};

/// Asks Python for each packet.
pub(crate) struct OwnScheduler {
    maker: Arc<Maker>,
    fault: Fault,
    hears_sent: bool,
    hears_acks: bool,
    /// Made when it is asked first.
    made: RefCell<Option<Py<PyAny>>>,
    views: RefCell<BTreeMap<PathId, Py<Path>>>,
}

impl OwnScheduler {
    pub(super) fn boxed(maker: &Arc<Maker>, fault: &Fault) -> Box<dyn Scheduler> {
        let overrides = |method| Python::attach(|py| maker.overrides(py, method));
        Box::new(Self {
            maker: Arc::clone(maker),
            fault: fault.clone(),
            hears_sent: overrides("on_sent"),
            hears_acks: overrides("on_ack"),
            made: RefCell::new(None),
            views: RefCell::new(BTreeMap::new()),
        })
    }

    fn ask(
        &self,
        py: Python<'_>,
        connection: &ConnectionView,
        paths: &[&PathView],
        now: Timestamp,
    ) -> PyResult<Choice> {
        let mut made = self.made.borrow_mut();
        let made = match &*made {
            Some(made) => made,
            None => made.insert(self.maker.make(py)?.unbind()),
        };
        let views = paths.iter().map(|path| self.view(py, path)).collect::<PyResult<Vec<_>>>()?;
        let connection = Connection {
            now_ns: now.as_nanos(),
            unsent_bytes: connection.unsent.map(ByteCount::get),
            is_blocked: connection.is_blocked,
        };
        let answer = made.call_method1(py, "pick", (Py::new(py, connection)?, PyList::new(py, views)?))?;
        choice(answer.bind(py), paths)
    }

    /// How the path stands now.
    fn view(&self, py: Python<'_>, path: &PathView) -> PyResult<Py<Path>> {
        let mut views = self.views.borrow_mut();
        let before = views.get(&path.id).map(|view| view.get().known()).unwrap_or_default();
        let known = Known {
            id: path.id.get(),
            max_datagram: path.max_datagram.get(),
            window: path.window.get(),
            in_flight: path.in_flight.get(),
            rtt: path.rtt,
            rate_bps: path.delivery_rate.map(|rate| rate.as_bps()),
            has_room: path.has_room(),
            backup: path.backup,
            ..before
        };
        match views.get(&path.id) {
            Some(view) => view.get().change(|old| *old = known),
            None => drop(views.insert(path.id, Py::new(py, Path::new(known))?)),
        }
        Ok(views[&path.id].clone_ref(py))
    }

    fn tell(&self, method: &str, path: PathId, bytes: ByteCount) {
        if let (Some(made), Some(view)) = (&*self.made.borrow(), self.views.borrow().get(&path)) {
            self.fault.guard(|py| made.call_method1(py, method, (view, bytes.get())));
        }
    }
}

/// The answer as a choice among these paths.
fn choice(answer: &Bound<'_, PyAny>, paths: &[&PathView]) -> PyResult<Choice> {
    let nothing_comes = || paths.iter().all(|path| path.in_flight == ByteCount::ZERO);
    if answer.is_none() {
        if nothing_comes() {
            let said = "pick gave None while nothing is in flight: nothing would ever make it be asked again";
            return Err(PyValueError::new_err(said));
        }
        return Ok(Choice::Wait);
    }
    let id = match answer.cast::<Path>() {
        Ok(path) => path.get().known().id,
        Err(_) => answer.extract().map_err(|_| {
            PyTypeError::new_err(format!("pick gave {answer}; one of the paths, or None to wait, is needed"))
        })?,
    };
    let ids = || paths.iter().map(|path| path.id.get().to_string()).collect::<Vec<_>>().join(", ");
    let Some(chosen) = paths.iter().find(|path| path.id.get() == id) else {
        return Err(PyValueError::new_err(format!("pick gave path {id}; there are {}", ids())));
    };
    match chosen {
        path if path.has_room() => Ok(Choice::Send(path.id)),
        path if path.in_flight > ByteCount::ZERO => Ok(Choice::WaitFor(path.id)),
        _ => Err(PyValueError::new_err(format!("pick gave path {id}, which has no room and nothing in flight"))),
    }
}

impl fmt::Debug for OwnScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnScheduler")
    }
}

impl Scheduler for OwnScheduler {
    fn pick(&self, connection: &ConnectionView, paths: &[PathView], now: Timestamp) -> Choice {
        let usable: Vec<&PathView> = paths.iter().filter(|path| path.usable).collect();
        let Some(first) = usable.iter().find(|path| path.has_room()) else { return Choice::Wait };
        let asked = self.fault.guard(|py| self.ask(py, connection, &usable, now));
        asked.unwrap_or(Choice::Send(first.id))
    }

    fn on_sent(&mut self, path: PathId, bytes: ByteCount) {
        if self.hears_sent {
            self.tell("on_sent", path, bytes);
        }
    }

    fn hears_acks(&self) -> bool {
        self.hears_acks
    }

    fn on_ack(&mut self, path: &PathView, bytes: ByteCount, _now: Timestamp) {
        self.tell("on_ack", path.id, bytes);
    }

    fn on_lost(&mut self, path: PathId, bytes: ByteCount, _now: Timestamp) {
        self.tell("on_loss", path, bytes);
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.views.get_mut().remove(&path);
    }
}
