//! Strict priority: the path that costs least of those with room.
//!
//! # Source
//! [SCHED]; among paths of the same priority the one with the lowest round-trip time, as there.
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | priority | [`Terms::cost`](crate::Terms::cost), the least first | 1 |
//!
//! # Deviations
//! None.

use fairpath_core::Timestamp;

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, Train, candidates};

/// Sends on the path that costs least, and on a dearer one what no cheaper one has room for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority;

impl Scheduler for Priority {
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        match candidates(paths).min_by_key(|path| (path.terms.cost, path.smoothed(), path.id)) {
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
    fn a_dearer_path_has_what_the_cheaper_ones_have_no_room_for() {
        let mut paths = [view(0, 10), view(1, 60), view(2, 40)];
        paths[0].terms.cost = 5;
        assert_eq!(picked(&Priority, &paths), Choice::Send(path(2)), "two cost nothing, this one is faster");
        paths[2].in_flight = paths[2].window;
        assert_eq!(picked(&Priority, &paths), Choice::Send(path(1)));
        paths[1].usable = false;
        assert_eq!(picked(&Priority, &paths), Choice::Send(path(0)));
    }
}
