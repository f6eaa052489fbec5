//! Redundant: every path carries all data, for what must arrive soon whatever a path does.
//!
//! # Source
//! [SCHED]; the `redundant` scheduler of Linux MPTCP.
//!
//! # Symbols
//! None.
//!
//! # Deviations
//! None. A slow path falls behind, and catches up by leaving out what was acknowledged meanwhile.

use fairpath_core::Timestamp;

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, active, candidates};

/// Sends each packet on all paths, on the fastest with room first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let Some(first) = candidates(paths).min_by_key(|path| (path.smoothed(), path.id)) else { return Choice::Wait };
        let others = active(paths).map(|path| path.id).filter(|id| *id != first.id);
        Choice::Copies(core::iter::once(first.id).chain(others).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, picked, view};

    #[test]
    fn all_paths_carry_each_packet_and_the_fastest_with_room_goes_first() {
        let carriers = |paths: &[PathView]| match picked(&Redundant, paths) {
            Choice::Copies(copies) => copies.iter().collect::<Vec<_>>(),
            choice => panic!("{choice:?}"),
        };
        let mut paths = [view(0, 30), view(1, 20), view(2, 10), view(3, 5)];
        paths[3].backup = true;
        assert_eq!(carriers(&paths), [2, 0, 1].map(path), "no backup");
        paths[2].in_flight = paths[2].window;
        assert_eq!(carriers(&paths), [1, 0, 2].map(path), "the full one owes it");
        paths[2].usable = false;
        assert_eq!(carriers(&paths), [1, 0].map(path));
        (paths[0].in_flight, paths[1].in_flight) = (paths[0].window, paths[1].window);
        assert_eq!(picked(&Redundant, &paths), Choice::Wait);
    }
}
