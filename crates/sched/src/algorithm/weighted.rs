//! Weighted round robin: the paths take turns, each as many packets as its weight says.
//!
//! # Source
//! [SCHED].
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | weight | [`Terms::weight`](crate::Terms::weight) | packets |
//!
//! # Deviations
//! A path without room is passed over, and the rest of its turn is not made up for. So a weight
//! bounds a share from above if windows allow that share, and has no effect otherwise. A weight of
//! 0 counts as 1. To keep data off a path, close it or make it a backup.

use fairpath_core::{ByteCount, PathId, Timestamp};

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, candidates};

/// Sends on each path as often in a row as its weight says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighted {
    /// The path whose turn it is, and how many packets it has had of it.
    turn: Option<(PathId, u32)>,
}

impl Scheduler for Weighted {
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let goes_on = |path: &&PathView| self.turn.is_some_and(|(id, had)| path.id == id && had < path.terms.weight);
        let after = |path: &&PathView| self.turn.is_some_and(|(id, _)| path.id > id);
        let mut found = candidates(paths).find(goes_on);
        found = found.or_else(|| candidates(paths).find(after));
        match found.or_else(|| candidates(paths).next()) {
            Some(path) => Choice::Send(path.id),
            None => Choice::Wait,
        }
    }

    fn on_sent(&mut self, path: PathId, _bytes: ByteCount) {
        let had = self.turn.filter(|(id, _)| *id == path).map_or(0, |(_, had)| had);
        self.turn = Some((path, had.saturating_add(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, picked, view};

    fn order(paths: &[PathView], count: usize) -> Vec<u32> {
        let mut scheduler = Weighted::default();
        let mut order = Vec::new();
        for _ in 0..count {
            let Choice::Send(chosen) = picked(&scheduler, paths) else { panic!("there is room") };
            scheduler.on_sent(chosen, ByteCount::new(1200));
            order.push(chosen.get());
        }
        order
    }

    #[test]
    fn each_path_has_as_many_packets_in_a_turn_as_its_weight_says() {
        let mut paths = [view(0, 10), view(1, 20), view(2, 30)];
        paths[0].terms.weight = 3;
        paths[2].terms.weight = 2;
        assert_eq!(order(&paths, 12), [0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 2, 2]);
    }

    #[test]
    fn a_path_without_room_or_weight_does_not_hold_up_the_others() {
        let mut paths = [view(0, 10), view(1, 20)];
        paths[0].terms.weight = 0;
        assert_eq!(order(&paths, 4), [0, 1, 0, 1], "no weight counts as one");
        paths[1].in_flight = paths[1].window;
        assert_eq!(order(&paths, 3), [0, 0, 0]);
        assert_eq!(picked(&Weighted { turn: Some((path(1), 0)) }, &paths), Choice::Send(path(0)));
    }
}
