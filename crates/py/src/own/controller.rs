//! A congestion controller in Python.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use fairpath_core::{Ack as Acked, Bitrate, ByteCount, Congestion, CongestionSignal, PathId, Sent, Timestamp};
use fairpath_engine::{ControlState, Controller, Phase};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMappingProxy};

use super::views::{Ack, Known, Loss, Path};
use super::{Fault, Maker};

/// No window is smaller, in packets [RFC9002 §7.2].
const PACKETS_MIN: u64 = 2;

/// A path, and the newest answers about it.
struct Said {
    view: Py<Path>,
    max_datagram: u64,
    window: ByteCount,
    pacing: Option<Bitrate>,
}

/// Hands on what happens, and keeps what was answered: windows are asked for more often than they change.
pub(crate) struct OwnController {
    maker: Arc<Maker>,
    /// Made with its first path, since an engine may be built only to see whether it can be.
    made: Option<(Py<PyAny>, Py<PyDict>)>,
    paths: BTreeMap<PathId, Said>,
    fault: Fault,
    hears_sent: bool,
    paces: bool,
}

impl OwnController {
    pub(super) fn boxed(maker: &Arc<Maker>, fault: &Fault) -> Box<dyn Controller> {
        let overrides = |method| Python::attach(|py| maker.overrides(py, method));
        Box::new(Self {
            maker: Arc::clone(maker),
            made: None,
            paths: BTreeMap::new(),
            fault: fault.clone(),
            hears_sent: overrides("on_sent"),
            paces: overrides("pacing_rate"),
        })
    }

    fn open(&mut self, path: PathId, max_datagram: ByteCount) {
        let max_datagram = max_datagram.get();
        let opened = self.fault.guard(|py| {
            if self.made.is_none() {
                let (made, paths) = (self.maker.make(py)?, PyDict::new(py));
                made.setattr("paths", PyMappingProxy::new(py, paths.as_mapping()))?;
                self.made = Some((made.unbind(), paths.unbind()));
            }
            let Some((made, paths)) = &self.made else { return Ok(None) };
            let view = Py::new(py, Path::new(Known { id: path.get(), max_datagram, ..Known::default() }))?;
            paths.bind(py).set_item(path.get(), &view)?;
            made.call_method1(py, "on_open", (&view,))?;
            Ok(Some(view))
        });
        if let Some(Some(view)) = opened {
            let window = ByteCount::new(PACKETS_MIN * max_datagram);
            self.paths.insert(path, Said { view, max_datagram, window, pacing: None });
            self.ask();
        }
    }

    /// Asks for the windows of all paths: any of them may have changed.
    fn ask(&mut self) {
        let Self { made: Some((made, _)), paths, fault, paces, .. } = self else { return };
        fault.guard(|py| {
            for said in paths.values_mut() {
                let window = made.call_method1(py, "window", (&said.view,))?;
                let least = (PACKETS_MIN * said.max_datagram) as f64;
                said.window = ByteCount::new(number(window.bind(py), "window", "bytes")?.max(least) as u64);
                said.view.get().change(|known| known.window = said.window.get());
                if *paces {
                    let rate = made.call_method1(py, "pacing_rate", (&said.view,))?;
                    let rate = rate.bind(py);
                    let bps = if rate.is_none() { None } else { Some(number(rate, "pacing_rate", "bit/s")?) };
                    said.pacing = bps.map(|bps| Bitrate::from_bps(bps.max(1.0) as u64));
                }
            }
            Ok(())
        });
    }

    /// Tells of something that happened on a path.
    fn tell<T>(&self, path: PathId, method: &str, event: T, change: impl FnOnce(&mut Known))
    where
        T: pyo3::PyClass + Into<PyClassInitializer<T>>,
    {
        let (Some((made, _)), Some(said)) = (&self.made, self.paths.get(&path)) else { return };
        said.view.get().change(change);
        self.fault.guard(|py| made.call_method1(py, method, (&said.view, Py::new(py, event)?)));
    }
}

/// A number that Python answered with.
fn number(value: &Bound<'_, PyAny>, method: &str, unit: &str) -> PyResult<f64> {
    let number: f64 =
        value.extract().map_err(|_| PyTypeError::new_err(format!("{method} gave {value}, not a number of {unit}")))?;
    if number.is_finite() && number >= 0.0 {
        return Ok(number);
    }
    Err(PyValueError::new_err(format!("{method} gave {number}; a number of {unit} from 0 on is needed")))
}

impl fmt::Debug for OwnController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnController")
    }
}

impl Controller for OwnController {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, _now: Timestamp) {
        self.open(path, max_datagram);
    }

    fn on_path_closed(&mut self, path: PathId) {
        let Some(said) = self.paths.remove(&path) else { return };
        if let Some((made, paths)) = &self.made {
            self.fault.guard(|py| {
                paths.bind(py).del_item(path.get())?;
                made.call_method1(py, "on_close", (&said.view,))
            });
        }
        self.ask();
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        if let Some(said) = self.paths.get_mut(&path) {
            said.max_datagram = max_datagram.get();
            said.view.get().change(|known| known.max_datagram = max_datagram.get());
        }
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        let (Some((made, _)), Some(said)) = (&self.made, self.paths.get(&path)) else { return };
        said.view.get().change(|known| known.in_flight = sent.in_flight.get());
        let (bytes, now_ns) = (sent.bytes.get(), sent.now.as_nanos());
        self.fault.guard(|py| made.call_method1(py, "on_sent", (&said.view, bytes, now_ns)));
    }

    fn hears_sent(&self) -> bool {
        self.hears_sent
    }

    fn on_ack(&mut self, path: PathId, ack: &Acked) {
        let bytes = ack.bytes.get();
        let (now_ns, sent_at_ns) = (ack.now.as_nanos(), ack.sent_at.as_nanos());
        let event = Ack { now_ns, sent_at_ns, bytes, window_limited: ack.window_limited };
        self.tell(path, "on_ack", event, |known| {
            known.in_flight = ack.in_flight.get().saturating_sub(bytes);
            known.rtt = ack.rtt;
            known.rate_bps = ack.rate.map(|sample| sample.rate.as_bps()).or(known.rate_bps);
            known.delivered += bytes;
        });
    }

    fn on_ack_end(&mut self, _path: PathId, _now: Timestamp) {
        self.ask();
    }

    fn on_congestion(&mut self, path: PathId, event: &Congestion) {
        let bytes = event.lost.get();
        let loss = Loss {
            now_ns: event.now.as_nanos(),
            sent_at_ns: event.sent_at.as_nanos(),
            bytes,
            is_mark: event.signal == CongestionSignal::Ecn,
            is_persistent: event.persistent,
        };
        self.tell(path, "on_loss", loss, |known| {
            known.in_flight = event.in_flight.get().saturating_sub(bytes);
            known.lost += bytes;
        });
        self.ask();
    }

    fn window(&self, path: PathId) -> ByteCount {
        self.paths.get(&path).map_or(ByteCount::ZERO, |said| said.window)
    }

    fn pacing_rate(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(&path)?.pacing
    }

    fn state(&self, path: PathId) -> Option<ControlState> {
        let window = self.paths.get(&path)?.window;
        Some(ControlState { window, ssthresh: None, phase: Phase::CongestionAvoidance, delay_cuts: 0 })
    }
}
