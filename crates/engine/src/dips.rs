//! Dips: now and then one path sends a little less for a moment, to see whose delay falls.
//!
//! Two separate queues that are alike in all respects, as those of two modems of one operator, may
//! fill and drain in step for as long as nothing disturbs them, and no detector can tell them from
//! one. A path that gives way for a moment lets its own queue fall, and that of another path only if
//! it is the same; afterwards the two are out of step. In the simulator pairs of such links, with
//! nothing else on them, are called one for 89 to 97 % of the time without dips, and for 0 to 3 % with
//! one in every second; the goodput is 0.3 % less.
//!
//! A path whose packets find no queue lets its turn pass: none would fall. It would carry less for the time, and on links
//! that lose packets at random, which never fill, a transfer of some seconds takes three hundredths longer for it. The
//! other paths do not dip for it, which they would pay for. Nor does any dip while of one path alone there are delays that
//! say something of the network: a path that carries now and then what is left for it would not show whether it gives way,
//! and the doubt that makes others dip for it would last as long as the connection.

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, Rtt, Timestamp};

/// From one dip to the next, of whichever path: at first, and after the first [`SOON`] dips. More is
/// to be learnt in the beginning. Where it takes longer until a dip is over and its effect seen, the next one waits:
/// while one path comes back as another gives way, a queue of both does not change.
const EVERY: Duration = Duration::from_secs(1);
const LATER_EVERY: Duration = Duration::from_secs(4);
const SOON: usize = 10;

/// Of a path of which nothing was heard for so long, since it was opened or since the last delay, nothing would be heard
/// while another dips.
pub(crate) const HEARD: Duration = LATER_EVERY;

/// How long a dip lasts beside the round trip after which it shows: what detectors compare are
/// stretches of some hundred milliseconds.
const LASTS: Duration = Duration::from_millis(300);

/// What is left of the window: less than halving it, as a loss does, and enough to be seen.
const LEFT: f64 = 0.75;

/// A queue in which packets wait for less could not be seen to fall.
const QUEUED: Duration = Duration::from_millis(1);

/// A window is never made smaller than so many datagrams.
const LEFT_DATAGRAMS: u64 = 4;

/// When which path gives way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dips {
    /// When the next dip begins; `None` before the first question.
    next: Option<Timestamp>,
    /// How many there were.
    count: usize,
    current: Option<Dip>,
}

#[derive(Clone, Copy, Debug)]
struct Dip {
    path: PathId,
    until: Timestamp,
}

/// A path that may give way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    path: PathId,
    round_trip: Duration,
    is_queued: bool,
}

impl Candidate {
    /// Of its round-trip times; before the first sample nothing is known of a queue.
    pub(crate) fn new(path: PathId, rtt: Option<Rtt>) -> Self {
        let round_trip = rtt.map_or(Duration::ZERO, |rtt| rtt.smoothed);
        let is_queued = rtt.is_none_or(|rtt| rtt.queueing_delay() >= QUEUED);
        Self { path, round_trip, is_queued }
    }
}

/// A dip as it shows in what is measured, a round trip later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) path: PathId,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

impl Dips {
    /// Begins a dip where one is due, of the next of these `paths` in turn, if there are two and it has a queue. `None`
    /// where none begins.
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

    /// Until when [`Dips::cap`] answers the same, unless a dip begins.
    pub(crate) fn same_until(&self, now: Timestamp) -> Timestamp {
        self.current.map(|dip| dip.until).filter(|until| *until > now).unwrap_or(Timestamp::MAX)
    }

    /// What a path may have in flight of its `window`.
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
