//! Views for algorithms in Python, which cannot change them.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// The state of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) id: u32,
    pub(crate) max_datagram: u64,
    pub(crate) window: u64,
    pub(crate) in_flight: u64,
    pub(crate) rtt: Option<fairpath_core::Rtt>,
    pub(crate) rate_bps: Option<u64>,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) has_room: bool,
    pub(crate) backup: bool,
}

/// A path. It shows how things stand: what was read of it before may have changed.
#[pyclass(module = "fairpath", frozen)]
pub(crate) struct Path(Mutex<Known>);

impl Path {
    pub(crate) fn new(known: Known) -> Self {
        Self(Mutex::new(known))
    }

    pub(crate) fn known(&self) -> Known {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn rtt(&self, of: fn(&fairpath_core::Rtt) -> core::time::Duration) -> Option<u64> {
        self.known().rtt.map(|rtt| of(&rtt).as_nanos() as u64)
    }
}

#[pymethods]
impl Path {
    /// Its number, from 0.
    #[getter]
    fn id(&self) -> u32 {
        self.known().id
    }

    /// The size of a full packet.
    #[getter]
    fn max_datagram_bytes(&self) -> u64 {
        self.known().max_datagram
    }

    /// The congestion window.
    #[getter]
    fn window_bytes(&self) -> u64 {
        self.known().window
    }

    /// Bytes that were sent and are neither acknowledged nor lost.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.known().in_flight
    }

    /// The newest round-trip time; `None` before the first.
    #[getter]
    fn rtt_ns(&self) -> Option<u64> {
        self.rtt(|rtt| rtt.latest)
    }

    /// The smoothed round-trip time.
    #[getter]
    fn srtt_ns(&self) -> Option<u64> {
        self.rtt(|rtt| rtt.smoothed)
    }

    /// The least round-trip time.
    #[getter]
    fn rtt_min_ns(&self) -> Option<u64> {
        self.rtt(|rtt| rtt.min)
    }

    /// The newest delivery rate.
    #[getter]
    fn rate_bps(&self) -> Option<u64> {
        self.known().rate_bps
    }

    /// Bytes acknowledged in all; only controllers see it.
    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.known().delivered
    }

    /// Bytes lost in all; only controllers see it.
    #[getter]
    fn lost_bytes(&self) -> u64 {
        self.known().lost
    }

    /// Whether a full packet may leave now; only schedulers see it.
    #[getter]
    fn has_room(&self) -> bool {
        self.known().has_room
    }

    /// Whether it is only for when no other works.
    #[getter]
    fn is_backup(&self) -> bool {
        self.known().backup
    }

    fn __repr__(&self) -> String {
        let Known { id, window, in_flight, .. } = self.known();
        format!("Path(id={id}, window_bytes={window}, in_flight_bytes={in_flight})")
    }
}

/// A packet was acknowledged.
#[pyclass(module = "fairpath", frozen, get_all)]
pub(crate) struct Ack {
    /// When the acknowledgement came.
    pub(crate) now_ns: u64,
    /// When the packet had left.
    pub(crate) sent_at_ns: u64,
    /// Its size.
    pub(crate) bytes: u64,
    /// Whether the window bounded what was sent. One that was not used must not grow.
    pub(crate) window_limited: bool,
}

/// Packets were lost, or came marked.
#[pyclass(module = "fairpath", frozen, get_all)]
pub(crate) struct Loss {
    /// When it was found.
    pub(crate) now_ns: u64,
    /// When the newest of the packets had left: what left before the last reduction is of the same congestion.
    pub(crate) sent_at_ns: u64,
    /// How much was lost at this moment; 0 for marks.
    pub(crate) bytes: u64,
    /// Whether it is a mark and no loss.
    pub(crate) is_mark: bool,
    /// Whether all was lost for so long that the path begins anew.
    pub(crate) is_persistent: bool,
}

/// The connection, as a scheduler sees it.
#[pyclass(module = "fairpath", frozen, get_all)]
pub(crate) struct Connection {
    /// The time.
    pub(crate) now_ns: u64,
    /// How much waits that was never sent; `None`: no end of it in sight.
    pub(crate) unsent_bytes: Option<u64>,
    /// Whether a window of the receiver or a buffer keeps new data back.
    pub(crate) is_blocked: bool,
}
