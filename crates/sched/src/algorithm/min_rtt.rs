//! Minimum RTT: the path with the lowest smoothed round-trip time among those with room.
//!
//! # Source
//! [SCHED §3.1]; the default of Linux MPTCP.
//!
//! # Symbols
//! None: the rule is a comparison.
//!
//! # Deviations
//! A path without a sample yet comes first: it is tried, or its time would never be known.

use fairpath_core::Timestamp;

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, Train, candidates};

/// Sends on the path with the lowest smoothed round-trip time that has room.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        match candidates(paths).min_by_key(|path| (path.smoothed(), path.id)) {
            Some(path) => Choice::Send(path.id),
            None => Choice::Wait,
        }
    }

    fn train(&self, _chosen: &PathView) -> Train {
        Train::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, picked, view};

    #[test]
    fn the_fastest_path_with_room_is_taken() {
        let mut paths = [view(0, 60), view(1, 20)];
        assert_eq!(picked(&MinRtt, &paths), Choice::Send(path(1)));
        paths[1].in_flight = paths[1].window;
        assert_eq!(picked(&MinRtt, &paths), Choice::Send(path(0)));
    }

    #[test]
    fn a_path_never_measured_is_tried_first() {
        let mut paths = [view(0, 1), view(1, 20)];
        paths[1].rtt = None;
        assert_eq!(picked(&MinRtt, &paths), Choice::Send(path(1)));
        paths[1].rtt = view(1, 20).rtt;
        assert_eq!(picked(&MinRtt, &paths), Choice::Send(path(0)));
    }
}
