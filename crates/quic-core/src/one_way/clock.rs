//! The peer's clock, as far as reports tell of it.
//!
//! A datagram arrives after it left and before its arrival was reported. So each sample bounds how far
//! the peer's clock is ahead, and all samples together bound it narrowly, but for drift. A sample that
//! contradicts these bounds shows that a clock has jumped, or stood still with its host. Its delay
//! would look as if the queues of all paths had changed at once, as with a bottleneck that all of them
//! share.

use web_time::Duration;

use fairpath_engine::Timestamp;

use super::micros;

/// The delay that the first sample is said to have: the true one is not known, and later ones may
/// be smaller.
pub(super) const FIRST_DELAY: Duration = Duration::from_secs(1);

/// Limit on the delay of a sample: no packet is in flight for as long, so a peer that reports more
/// errs or lies.
pub(super) const DELAY_MAX: Duration = Duration::from_secs(600);

/// Limit on the relative drift of two clocks: one part in this many. Each may drift by 100 ppm,
/// which is poor for a quartz.
const DRIFT: i64 = 5_000;

/// When a datagram left and was heard of, by the clock here, and when it came, by the clock there; in µs since any
/// moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) left: i64,
    pub(super) came: i64,
    pub(super) heard: i64,
}

impl Times {
    /// How far the clock there is ahead, at least and at most.
    fn bounds(&self) -> (i64, i64) {
        (self.came.saturating_sub(self.heard), self.came.saturating_sub(self.left))
    }
}

/// The peer's clock: its zero is set by the first sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerClock {
    /// How far it is ahead, at least and at most.
    ahead: (i64, i64),
    /// The time up to which these bounds were widened for the drift of the clocks.
    widened: i64,
    /// Subtracted from the raw difference, arrival there less departure here, to give the delay.
    delay_offset: i64,
    /// Added to the peer's time to give the engine's.
    time_offset: i64,
}

impl PeerClock {
    /// Begins with the first sample, heard of at `now`. Its true delay is not known and is set to `delay`.
    /// Its arrival is set to its departure, so later corrections move times only forwards.
    pub(super) fn new(times: Times, delay: Duration, now: Timestamp) -> Self {
        let came_to = left(times, now);
        Self {
            ahead: times.bounds(),
            widened: times.heard,
            delay_offset: times.came.saturating_sub(times.left).saturating_sub(micros(delay)),
            time_offset: came_to.saturating_sub(times.came),
        }
    }

    /// Takes a sample in. False where it does not go with those before: a clock has jumped.
    pub(super) fn goes_with(&mut self, times: Times) -> bool {
        let drifted = times.heard.saturating_sub(self.widened).max(0) / DRIFT;
        self.widened = self.widened.saturating_add(drifted.saturating_mul(DRIFT));
        let (least, most) = (self.ahead.0.saturating_sub(drifted), self.ahead.1.saturating_add(drifted));
        let (least_here, most_here) = times.bounds();
        self.ahead = (least.max(least_here), most.min(most_here));
        // A delay of less than nothing comes of clocks that have drifted for hours.
        self.ahead.0 <= self.ahead.1 && most_here >= self.delay_offset
    }

    /// The delay, less an unknown constant.
    pub(super) fn delay(&self, times: Times) -> Duration {
        let delay = times.came.saturating_sub(times.left).saturating_sub(self.delay_offset);
        Duration::from_micros(u64::try_from(delay).unwrap_or(0)).min(DELAY_MAX)
    }

    /// When it came, in the engine's time, which it is `now`: neither before it left nor in the future. Where clocks
    /// have drifted so far that it seems to be, times are moved.
    pub(super) fn time(&mut self, times: Times, now: Timestamp) -> Timestamp {
        let at = times.came.saturating_add(self.time_offset);
        let within = at.clamp(left(times, now), micros(now.since(Timestamp::ZERO)));
        self.time_offset = self.time_offset.saturating_add(within.saturating_sub(at));
        Timestamp::ZERO + Duration::from_micros(within.unsigned_abs())
    }
}

/// When it left, in the engine's time, which was `now` when it was heard of.
fn left(times: Times, now: Timestamp) -> i64 {
    micros(now.since(Timestamp::ZERO)).saturating_sub(times.heard.saturating_sub(times.left).max(0)).max(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(10);

    /// A datagram that left at `left` ms and took `delay` ms, of which a report came after 60 ms more, where the
    /// clock there is ahead by `ahead` ms.
    fn times(left: i64, delay: i64, ahead: i64) -> Times {
        let came = left + delay;
        Times { left: 1_000 * left, came: 1_000 * (came + ahead), heard: 1_000 * (came + 60) }
    }

    #[test]
    fn the_difference_of_the_clocks_does_not_matter() {
        for ahead in [7_000, 0, -3_000] {
            let first = times(10_000, 30, ahead);
            let mut clock = PeerClock::new(first, FIRST_DELAY, NOW);
            assert!(clock.goes_with(first));
            assert_eq!(clock.delay(first), FIRST_DELAY);
            let (later, sooner) = (times(11_000, 50, ahead), times(12_000, 10, ahead));
            assert!(clock.goes_with(later) && clock.goes_with(sooner));
            assert_eq!(clock.delay(later), FIRST_DELAY + Duration::from_millis(20));
            assert_eq!(clock.delay(sooner), FIRST_DELAY - Duration::from_millis(20));
        }
    }

    #[test]
    fn what_came_came_after_it_left_and_before_it_was_heard_of() {
        let first = times(10_000, 30, 7_000);
        let mut clock = PeerClock::new(first, FIRST_DELAY, NOW);
        let (ms, later) = (Duration::from_millis, NOW + Duration::from_secs(1));
        // 30 ms on its way, and 60 ms more.
        assert_eq!(clock.time(first, NOW), NOW - ms(90));
        assert_eq!(clock.time(times(11_000, 30, 7_000), later), later - ms(90));
        assert_eq!(clock.time(times(11_000, 50, 7_000), later + ms(20)), later - ms(70));
        // It came 10 ms earlier than the others take.
        assert_eq!(clock.time(times(11_000, 20, 7_000), later - ms(10)), later - ms(90), "not before it left");
        assert_eq!(clock.time(times(11_000, 30, 7_000), later), later - ms(80));
        assert_eq!(clock.time(times(11_100, 30, 99_000), later), later, "nothing comes from the future");
    }

    #[test]
    fn a_clock_that_jumps_by_more_than_a_round_trip_is_noticed() {
        for jump in [-3_000, -120, 120, 3_000] {
            let mut clock = PeerClock::new(times(0, 30, 500), FIRST_DELAY, NOW);
            assert!((1..100).all(|n| clock.goes_with(times(10 * n, 30 + n % 20, 500))));
            assert!(!clock.goes_with(times(1_100, 30, 500 + jump)), "{jump} ms");
        }
    }

    #[test]
    fn queues_that_fill_and_drain_are_no_jump_of_a_clock() {
        let mut clock = PeerClock::new(times(0, 20, 0), FIRST_DELAY, NOW);
        for (n, delay) in [30, 900, 40, 2_000, 20, 5, 700].into_iter().enumerate() {
            assert!(clock.goes_with(times(5_000 * n as i64, delay, 0)), "{delay} ms");
        }
    }

    /// Two clocks of 100 millionths each, for a day.
    #[test]
    fn clocks_that_drift_seldom_begin_anew_and_their_delays_never_end() {
        for sign in [-1, 1] {
            let at = |second: i64| {
                let steady = times(1_000 * second, 30 + 10 * (second % 2), 0);
                Times { came: steady.came + sign * second * 200, ..steady }
            };
            let mut clock = PeerClock::new(at(0), FIRST_DELAY, NOW);
            let (mut begun_anew, mut before) = (0, FIRST_DELAY);
            for second in 1..86_400 {
                let goes_on = clock.goes_with(at(second));
                if !goes_on {
                    begun_anew += 1;
                    clock = PeerClock::new(at(second), FIRST_DELAY, NOW);
                }
                let delay = clock.delay(at(second));
                // 10 ms more or less, and 0.2 ms of drift.
                let changed = delay.abs_diff(before).abs_diff(Duration::from_millis(10));
                assert!(!goes_on || changed <= Duration::from_micros(200), "{before:?}, then {delay:?}");
                before = delay;
            }
            // 17 s in a day, of which a second may go to waste.
            assert!(begun_anew <= 18, "{begun_anew} times");
        }
    }

    proptest! {
        #[test]
        fn no_clock_of_a_peer_overflows(
            first in any_times(),
            later in proptest::collection::vec(any_times(), 0..5),
            now in any::<u64>(),
        ) {
            let now = Timestamp::from_nanos(now);
            let mut clock = PeerClock::new(first, FIRST_DELAY, now);
            for times in later {
                clock.goes_with(times);
                prop_assert!(clock.delay(times) <= DELAY_MAX);
                prop_assert!(clock.time(times, now) <= now);
            }
        }
    }

    pub(crate) fn any_times() -> impl Strategy<Value = Times> {
        (extreme(), extreme(), extreme()).prop_map(|(left, came, heard)| Times { left, came, heard })
    }

    /// Numbers near the ends of the range are as likely as all others together.
    fn extreme() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), 0..10_i64, i64::MAX - 10..=i64::MAX, i64::MIN..i64::MIN + 10]
    }
}
