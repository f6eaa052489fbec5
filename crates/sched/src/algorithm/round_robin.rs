//! Round robin: the paths with room take turns, one packet each.
//!
//! # Source
//! [SCHED §3.2].
//!
//! # Symbols
//! None.
//!
//! # Deviations
//! None.

use fairpath_core::{ByteCount, PathId, Timestamp};

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, candidates};

/// Sends on the next path, in order of the ids, that has room.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    last: Option<PathId>,
}

impl Scheduler for RoundRobin {
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let after_last = candidates(paths).find(|path| Some(path.id) > self.last);
        match after_last.or_else(|| candidates(paths).next()) {
            Some(path) => Choice::Send(path.id),
            None => Choice::Wait,
        }
    }

    fn on_sent(&mut self, path: PathId, _bytes: ByteCount) {
        self.last = Some(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, picked, view};

    #[test]
    fn paths_take_turns_and_a_full_one_is_passed_over() {
        let mut paths = [view(0, 10), view(1, 20), view(2, 30)];
        let mut scheduler = RoundRobin::default();
        let mut order = Vec::new();
        for step in 0..6 {
            if step == 3 {
                paths[1].in_flight = paths[1].window;
            }
            let Choice::Send(chosen) = picked(&scheduler, &paths) else { panic!("two paths have room") };
            scheduler.on_sent(chosen, ByteCount::new(1200));
            order.push(chosen);
        }
        assert_eq!(order, [0, 1, 2, 0, 2, 0].map(path));
    }

    #[test]
    fn asking_twice_without_sending_gives_the_same_answer() {
        let paths = [view(0, 10), view(1, 20)];
        let scheduler = RoundRobin::default();
        assert_eq!(picked(&scheduler, &paths), picked(&scheduler, &paths));
    }
}
