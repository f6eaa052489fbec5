//! Views for tests.

use core::time::Duration;

use fairpath_core::{Bytes, PathId};

use crate::scheduler::PathView;

pub(crate) fn path(id: u32) -> PathId {
    PathId::new(id)
}

/// A usable path with an empty window of ten datagrams.
pub(crate) fn view(id: u32, rtt_ms: u64) -> PathView {
    PathView {
        id: path(id),
        window: Bytes::new(12_000),
        in_flight: Bytes::ZERO,
        max_datagram: Bytes::new(1200),
        smoothed_rtt: Some(Duration::from_millis(rtt_ms)),
        usable: true,
        backup: false,
    }
}
