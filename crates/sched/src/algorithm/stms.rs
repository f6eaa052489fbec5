//! STMS, slide together: the slower path carries data from further ahead, so that both arrive in
//! step.
//!
//! # Source
//! [STMS], by description: the text was not at hand. The fast path carries the next data in order.
//! The slow path carries data a gap ahead: the data that the fast path will have reached when it
//! arrives. The gap follows the difference of the one-way delays. It is corrected packet by packet
//! as the slow path's data comes too early or too late.
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | f, s | the path of min-RTT among all; among those with room | |
//! | OWD | one-way delay, half the smoothed round-trip time where it is not measured | time |
//! | Gap | `gap` = (OWD_s − OWD_f) · cwnd_f / RTT_f + `correction` | bytes |
//!
//! # Deviations
//! A host whose data need not arrive in order has no gaps: there this is min-RTT.
//! With more than two paths each of the slower ones has its own gap to the fastest. The correction is bounded by the
//! window of the fast path.

use core::cell::Cell;

use fairpath_core::{ByteCount, PathId, PathMap, Timestamp};

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, active, candidates};

/// Sends on the fastest path with room, on slower ones from further ahead.
#[derive(Debug, Default)]
pub struct Stms {
    /// By how many datagrams the gap of a path is more than the delays say.
    corrections: PathMap<i64>,
    /// The fastest path and how many datagrams its window is, as last seen: what arrives on it tells of no gap.
    fast: Cell<Option<(PathId, i64)>>,
}

/// How long a datagram takes on the path there, less what is the same for all paths.
fn one_way(path: &PathView, is_measured: bool) -> f64 {
    let half = || path.smoothed().unwrap_or_default() / 2;
    path.one_way.filter(|_| is_measured).map_or_else(half, |delay| delay.latest).as_secs_f64()
}

impl Stms {
    /// How far ahead of the fast path's data that of the slow one is.
    fn gap(&self, slow: &PathView, fast: &PathView) -> ByteCount {
        let Some(round_trip) = fast.smoothed().filter(|time| !time.is_zero()) else { return ByteCount::ZERO };
        let is_measured = slow.one_way.is_some() && fast.one_way.is_some();
        let later = one_way(slow, is_measured) - one_way(fast, is_measured);
        let window = fast.window.as_f64();
        let correction = self.corrections.get(slow.id).copied().unwrap_or(0) as f64 * slow.max_datagram.as_f64();
        ByteCount::from_f64(later * window / round_trip.as_secs_f64() + correction)
    }
}

impl Scheduler for Stms {
    fn pick(&self, _connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let by_time = |path: &&PathView| (path.smoothed(), path.id);
        let Some(slow) = candidates(paths).min_by_key(by_time) else { return Choice::Wait };
        let Some(fast) = active(paths).min_by_key(by_time) else { return Choice::Wait };
        let datagrams = fast.window / fast.max_datagram.max(ByteCount::new(1));
        self.fast.set(Some((fast.id, i64::try_from(datagrams).unwrap_or(i64::MAX))));
        match self.gap(slow, fast) {
            gap if fast.id != slow.id && gap > ByteCount::ZERO => Choice::Ahead(slow.id, gap),
            _ => Choice::Send(slow.id),
        }
    }

    fn hears_order(&self) -> bool {
        true
    }

    fn on_arrived(&mut self, path: PathId, was_awaited: bool) {
        let Some((_, most)) = self.fast.get().filter(|(fast, _)| *fast != path) else { return };
        let before = self.corrections.get(path).copied().unwrap_or(0);
        let step = if was_awaited { 1 } else { -1 };
        self.corrections.insert(path, (before + step).clamp(-most, most));
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.corrections.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::testing::{one_way, path, picked, view};

    /// A fast path of 20 ms that is full, and a slow one of 100 ms with room.
    fn paths() -> [PathView; 2] {
        let mut paths = [view(0, 20), view(1, 100)];
        paths[0].in_flight = paths[0].window;
        paths
    }

    #[test]
    fn the_slow_path_carries_what_the_fast_one_will_have_come_to() {
        // (50 − 10) ms · 12,000 bytes / 20 ms.
        assert_eq!(picked(&Stms::default(), &paths()), Choice::Ahead(path(1), ByteCount::new(24_000)));
        let mut measured = paths();
        (measured[0].one_way, measured[1].one_way) = (Some(one_way(5)), Some(one_way(35)));
        assert_eq!(picked(&Stms::default(), &measured), Choice::Ahead(path(1), ByteCount::new(18_000)));
    }

    #[test]
    fn the_fast_path_carries_what_is_next() {
        let mut paths = paths();
        paths[0].in_flight = ByteCount::ZERO;
        assert_eq!(picked(&Stms::default(), &paths), Choice::Send(path(0)));
    }

    #[test]
    fn what_was_awaited_widens_the_gap_by_a_datagram_and_what_has_to_wait_narrows_it() {
        let mut stms = Stms::default();
        picked(&stms, &paths());
        stms.on_arrived(path(1), true);
        stms.on_arrived(path(1), true);
        assert_eq!(picked(&stms, &paths()), Choice::Ahead(path(1), ByteCount::new(26_400)));
        stms.on_arrived(path(1), false);
        assert_eq!(picked(&stms, &paths()), Choice::Ahead(path(1), ByteCount::new(25_200)));
        stms.on_arrived(path(0), true);
        assert_eq!(
            picked(&stms, &paths()),
            Choice::Ahead(path(1), ByteCount::new(25_200)),
            "the fast path is always awaited"
        );
    }
}
