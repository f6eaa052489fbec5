//! The clock of a host, which need not go as time does.

use std::time::{Duration, Instant};

/// A clock: ahead by an offset, and a little too fast or too slow.
///
/// Its reading never goes backwards. Nor does it while the host sleeps: the clock then stands
/// still, as the monotonic clocks of most systems do.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// From here on it runs. Before, it stands still.
    since: Instant,
    /// The reading at `since`.
    showed: Instant,
    /// Its rate error, in millionths; positive if it is too fast.
    ppm: i32,
}

/// A million.
const MILLION: i128 = 1_000_000;

/// How far a clock is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// The offset of the reading at the beginning.
    pub ahead: Duration,
    /// The rate error in millionths; positive if it is too fast.
    pub ppm: i32,
}

impl Clock {
    /// A clock with this skew.
    pub fn new(now: Instant, skew: Skew) -> Self {
        Self { since: now, showed: now + skew.ahead, ppm: skew.ppm }
    }

    /// The reading.
    pub fn at(&self, now: Instant) -> Instant {
        let passed = now.saturating_duration_since(self.since);
        if self.ppm == 0 {
            return self.showed + passed;
        }
        let passed = passed.as_nanos() as i128;
        let shown = passed + (passed * i128::from(self.ppm)).div_euclid(MILLION);
        self.showed + nanos(shown)
    }

    /// When it will show `shown`, or show more for the first time.
    pub fn when(&self, shown: Instant) -> Instant {
        let ahead = shown.saturating_duration_since(self.showed);
        if self.ppm == 0 {
            return self.since + ahead;
        }
        let ahead = ahead.as_nanos() as i128;
        let rate = MILLION + i128::from(self.ppm);
        // The reading after p ns is p + ⌊p · ppm / 10⁶⌋ = ⌊p · rate / 10⁶⌋. It is at least `ahead`
        // from the least p on with p · rate ≥ ahead · 10⁶.
        self.since + nanos((ahead * MILLION + rate - 1).div_euclid(rate))
    }

    /// Jumps ahead.
    pub fn jump(&mut self, now: Instant, by: Duration) {
        (self.since, self.showed) = (now, self.at(now) + by);
    }

    /// Stands still for this time.
    pub fn stand_still(&mut self, now: Instant, time: Duration) {
        (self.since, self.showed) = (now + time, self.at(now));
    }
}

fn nanos(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or_default())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests need an instant to begin at")]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_clock_shows_what_was_asked_for_when_it_says_so_and_not_earlier() {
        let start = Instant::now();
        for ppm in [-500, -100, -1, 0, 1, 100, 500] {
            let clock = Clock::new(start, Skew { ahead: Duration::ZERO, ppm });
            for ahead in (0..2_000).chain([999_999_937, 3_600_000_000_001]) {
                let shown = start + Duration::from_nanos(ahead);
                let when = clock.when(shown);
                assert!(clock.at(when) >= shown, "{ppm} ppm, {ahead} ns");
                let earlier = when - Duration::from_nanos(1);
                assert!(ahead == 0 || clock.at(earlier) < shown, "{ppm} ppm, {ahead} ns: earlier");
            }
        }
    }

    #[test]
    fn a_clock_that_is_fast_jumps_and_sleeps_never_goes_backwards() {
        let start = Instant::now();
        let mut clock = Clock::new(start, Skew { ahead: Duration::ZERO, ppm: 100 });
        // 100 millionths of 10 s are 1 ms.
        assert_eq!(clock.at(start + 10 * SECOND), start + 10 * SECOND + Duration::from_millis(1));
        clock.jump(start + 10 * SECOND, 3 * SECOND);
        let jumped = clock.at(start + 10 * SECOND);
        assert_eq!(jumped, start + 13 * SECOND + Duration::from_millis(1));
        clock.stand_still(start + 10 * SECOND, 5 * SECOND);
        assert_eq!(clock.at(start + 12 * SECOND), jumped);
        assert_eq!(clock.at(start + 15 * SECOND), jumped);
        // A second of the reading takes 100 µs less, plus 100 millionths of these, rounded up.
        assert_eq!(clock.when(jumped + SECOND), start + 16 * SECOND - Duration::from_nanos(99_990));
    }
}
