//! Views for tests.

use core::time::Duration;

use fairpath_core::{ByteCount, OneWayDelay, PathId, Rtt, Timestamp};

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, Terms};

pub(crate) fn path(id: u32) -> PathId {
    PathId::new(id)
}

/// The times of a path on which every packet took this long.
pub(crate) fn rtt(rtt: Duration) -> Rtt {
    Rtt::steady(rtt)
}

/// The delays of a path on which every packet took this long there.
pub(crate) fn one_way(delay_ms: u64) -> OneWayDelay {
    let delay = Duration::from_millis(delay_ms);
    OneWayDelay { latest: delay, windowed_min: delay, spread: Duration::ZERO }
}

/// A usable path with an empty window of ten datagrams.
pub(crate) fn view(id: u32, rtt_ms: u64) -> PathView {
    PathView {
        id: path(id),
        window: ByteCount::new(12_000),
        paced: false,
        in_flight: ByteCount::ZERO,
        max_datagram: ByteCount::new(1200),
        rtt: Some(rtt(Duration::from_millis(rtt_ms))),
        one_way: None,
        transit: None,
        delivery_rate: None,
        ssthresh: None,
        in_slow_start: true,
        window_limited: false,
        burst_until: Timestamp::ZERO,
        heard_at: Timestamp::ZERO,
        oldest_sent: None,
        usable: true,
        backup: false,
        terms: Terms::default(),
    }
}

/// The choice for a full datagram of a connection of which nothing else is known.
pub(crate) fn picked(scheduler: &dyn Scheduler, paths: &[PathView]) -> Choice {
    scheduler.pick(&ConnectionView::default(), paths, Timestamp::ZERO)
}
