//! Dips: from time to time one path sends a little less for a moment, to show which delays fall.
//!
//! Two separate queues that are alike in all respects, as those of two modems of one operator, may
//! fill and drain in step until something disturbs them. No detector can tell them from one. A path
//! that gives way lets its own queue fall, and that of another path only if the queue is shared;
//! afterwards the two are out of step. In the simulator pairs of such links without other traffic
//! are called shared for 89 to 97 % of the time without dips. With one dip a second it is 0 to 3 %,
//! and the goodput is 0.3 % less.
//!
//! A path without a queue skips its turn, since nothing would fall. A dip would cost it capacity:
//! on links with random losses, which never fill, a transfer of some seconds takes three hundredths
//! longer. The other paths do not dip in its place, as they would pay for it.
//!
//! No path dips while only one path has delays that tell of the network. A path that carries only
//! occasional overflow would not show a change, and the doubt would last as long as the connection.

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, Rtt, Timestamp};

/// Interval between dips of any path: for the first [`SOON`] dips, and later. More is to be learnt
/// in the beginning. The next dip waits until the effect of the last one is over: while one path
/// comes back as another gives way, a shared queue does not change.
const EVERY: Duration = Duration::from_secs(1);
const LATER_EVERY: Duration = Duration::from_secs(4);
const SOON: usize = 10;

/// Below this confidence a pair of paths certainly has separate bottlenecks.
pub(crate) const SURELY_SEPARATE: f64 = 0.05;

/// A path without a delay sample for this long, since it opened or since the last one, is not
/// expected to have samples while another path dips.
pub(crate) const HEARD: Duration = LATER_EVERY;

/// How long a dip lasts beyond the round trip until it shows. Detectors compare spans of some
/// hundred milliseconds.
const LASTS: Duration = Duration::from_millis(300);

/// The part of the window that remains: less of a cut than after a loss, and large enough to be
/// seen.
const LEFT: f64 = 0.75;

/// A shorter queueing delay could not be seen to fall.
const QUEUED: Duration = Duration::from_millis(1);

/// The least window during a dip, in datagrams.
const LEFT_DATAGRAMS: u64 = 4;

/// The schedule of dips.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dips {
    /// When the next dip begins; `None` before the first question.
    next: Option<Timestamp>,
    /// How many turns there have been, skipped ones included.
    count: usize,
    current: Option<Dip>,
}

#[derive(Clone, Copy, Debug)]
struct Dip {
    path: PathId,
    until: Timestamp,
}

/// A path whose turn to dip may come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    path: PathId,
    round_trip: Duration,
    is_queued: bool,
}

impl Candidate {
    /// From the path's round-trip times. Before the first sample a queue is assumed.
    pub(crate) fn new(path: PathId, rtt: Option<Rtt>) -> Self {
        let round_trip = rtt.map_or(Duration::ZERO, |rtt| rtt.smoothed);
        let is_queued = rtt.is_none_or(|rtt| rtt.queueing_delay() >= QUEUED);
        Self { path, round_trip, is_queued }
    }
}

/// The time in which a dip shows in the measurements, a round trip later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) path: PathId,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

impl Dips {
    /// Begins a dip if one is due. The next of `paths` has its turn, and skips it without a queue;
    /// there must be two paths. `None` if no dip begins.
    pub(crate) fn update(&mut self, now: Timestamp, paths: impl Fn() -> Vec<Candidate>) -> Option<Shown> {
        let next = *self.next.get_or_insert(now + EVERY);
        if now < next {
            return None;
        }
        let due = now + if self.count < SOON { EVERY } else { LATER_EVERY };
        let begun = self.begin(now, &paths());
        self.next = Some(begun.map_or(due, |shown| due.max(shown.until + LASTS)));
        begun
    }

    fn begin(&mut self, now: Timestamp, paths: &[Candidate]) -> Option<Shown> {
        if paths.len() < 2 {
            return None;
        }
        let Candidate { path, round_trip, is_queued } = paths[self.count % paths.len()];
        self.count += 1;
        if !is_queued {
            return None;
        }
        let until = now + LASTS + round_trip;
        self.current = Some(Dip { path, until });
        Some(Shown { path, from: now + round_trip, until: until + round_trip })
    }

    /// The time until which [`Dips::cap`] gives the same answer, unless a dip begins.
    pub(crate) fn same_until(&self, now: Timestamp) -> Timestamp {
        self.current.map(|dip| dip.until).filter(|until| *until > now).unwrap_or(Timestamp::MAX)
    }

    /// How much of its `window` a path may use now.
    pub(crate) fn cap(&self, path: PathId, window: ByteCount, max_datagram: ByteCount, now: Timestamp) -> ByteCount {
        match self.current {
            Some(dip) if dip.path == path && now < dip.until => {
                window.min(ByteCount::from_f64(window.as_f64() * LEFT).max(max_datagram * LEFT_DATAGRAMS))
            }
            _ => window,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32) -> PathId {
        PathId::new(id)
    }

    /// A path whose packets have a queue.
    fn queued(id: u32, round_trip: Duration) -> Candidate {
        Candidate { path: path(id), round_trip, is_queued: true }
    }

    #[test]
    fn paths_dip_in_turn_and_one_at_a_time() {
        let mut dips = Dips::default();
        let (mut begun, mut was) = (Vec::new(), None);
        for at in (0..20_000).step_by(10) {
            let now = Timestamp::from_millis(at);
            dips.update(now, || vec![queued(0, Duration::from_millis(50)), queued(1, Duration::ZERO)]);
            let dipping =
                [0, 1].map(|id| dips.cap(path(id), ByteCount::new(100_000), ByteCount::new(1200), now).get() == 75_000);
            assert_ne!(dipping, [true, true]);
            let is = dipping.iter().position(|dips| *dips);
            if let (None, Some(path)) = (was, is) {
                begun.push((at, path));
            }
            was = is;
        }
        assert_eq!(begun[..3], [(1_000, 0), (2_000, 1), (3_000, 0)]);
        assert_eq!(begun[10..], [(11_000, 0), (15_000, 1), (19_000, 0)]);
    }

    #[test]
    fn a_path_without_a_queue_lets_its_turn_pass() {
        let rtt = |smoothed_us| {
            let [smoothed, min] = [smoothed_us, 40_000].map(Duration::from_micros);
            Some(Rtt { min, windowed_min: min, ..Rtt::steady(smoothed) })
        };
        let who = |round_trips: [u64; 3]| {
            let mut dips = Dips::default();
            dips.update(Timestamp::ZERO, Vec::new);
            let candidates = || (0..3).map(|id| Candidate::new(path(id), rtt(round_trips[id as usize]))).collect();
            let at = |second| Some(dips.update(Timestamp::from_secs(second), candidates)?.path.get());
            [2, 4, 6].map(at)
        };
        assert_eq!(who([41_000, 40_999, 60_000]), [Some(0), None, Some(2)]);
        assert_eq!(who([40_500, 40_000, 40_999]), [None; 3]);
        assert!(Candidate::new(path(0), None).is_queued, "nothing is known of it");
    }

    #[test]
    fn no_dip_begins_before_the_last_one_is_over_where_it_shows() {
        for round_trip_ms in [10, 100, 500, 1_000, 2_000] {
            let round_trip = Duration::from_millis(round_trip_ms);
            let (mut dips, mut over, mut count) = (Dips::default(), Timestamp::ZERO, 0);
            for now in (0..60_000).step_by(10).map(Timestamp::from_millis) {
                if let Some(shown) = dips.update(now, || vec![queued(0, round_trip), queued(1, round_trip)]) {
                    assert!(now >= over, "round trips of {round_trip_ms} ms: {now:?} is before {over:?}");
                    (over, count) = (shown.until, count + 1);
                }
            }
            assert!(count >= 10, "round trips of {round_trip_ms} ms: {count} in a minute");
        }
    }

    #[test]
    fn one_path_never_dips_and_a_small_window_stays() {
        let mut dips = Dips::default();
        let now = Timestamp::from_secs(5);
        dips.update(Timestamp::ZERO, Vec::new);
        dips.update(now, || vec![queued(0, Duration::ZERO)]);
        assert_eq!(dips.cap(path(0), ByteCount::new(100_000), ByteCount::new(1200), now), ByteCount::new(100_000));
        dips.update(now + EVERY, || vec![queued(0, Duration::ZERO), queued(1, Duration::ZERO)]);
        let cap = |window| dips.cap(path(0), ByteCount::new(window), ByteCount::new(1200), now + EVERY).get();
        assert_eq!((cap(5_000), cap(3_000)), (4_800, 3_000));
    }
}
