//! When a packet of the peer left, by the clock here.
//!
//! The offset of two clocks is unknown. The packet with the least delay took about half of the
//! shortest round trip, which is assumed for it. The error is half the difference of the two
//! directions, a few milliseconds on most links. Clocks drift and routes change, so the least is
//! that of the last half minute.

use core::time::Duration;

use fairpath_core::Timestamp;

use crate::wire::expand;

/// How long the least counts that was found in a window; two of them are known at a time.
const WINDOW: Duration = Duration::from_secs(15);

/// How long all packets have to seem late before the clock is taken to have jumped.
const LATE_FOR: Duration = Duration::from_secs(1);

/// The peer's clock.
#[derive(Debug, Default)]
pub(crate) struct PeerClock {
    /// The newest time of the peer's clock, in µs; its low 32 bits travel.
    newest: Option<u64>,
    /// The least of (here − there), in µs, in the window before and in this one.
    least: [Option<i64>; 2],
    window_ends: Timestamp,
    /// The shortest round trip, in µs.
    round_trip: i64,
    late_since: Option<Timestamp>,
}

impl PeerClock {
    /// A packet arrived that left at `left`; the sender's shortest round trip is `least`, in tenths
    /// of a millisecond. Returns the packet's delay.
    pub(crate) fn on_arrival(&mut self, left: u32, least: u16, now: Timestamp) -> Duration {
        let there = self.there(left);
        let here = micros(now);
        let ahead = here - there as i64;
        if now >= self.window_ends {
            self.window_ends = now + WINDOW;
            self.least = [self.least[1], None];
        }
        let [_, current] = &mut self.least;
        *current = Some(current.map_or(ahead, |least| least.min(ahead)));
        self.round_trip = i64::from(least) * 100;
        Duration::from_micros((ahead - self.ahead()).max(0).unsigned_abs())
    }

    /// The time here at the peer's time `there`, which must be near that of the last arrival.
    pub(crate) fn here(&self, there: u32) -> Timestamp {
        let there = self.newest.map_or(u64::from(there), |newest| expand(there, newest));
        let here = (there as i64).saturating_add(self.ahead());
        Timestamp::from_micros(here.max(0).unsigned_abs())
    }

    /// Records whether an arrival was in time. If nothing is for long, the estimate of the clock is
    /// dropped.
    pub(crate) fn on_judged(&mut self, in_time: bool, now: Timestamp) {
        if in_time {
            self.late_since = None;
        } else if now.since(*self.late_since.get_or_insert(now)) > LATE_FOR {
            (self.late_since, self.least) = (None, [None; 2]);
        }
    }

    fn there(&mut self, left: u32) -> u64 {
        // Times before the first are none: it begins in the middle.
        let there = self.newest.map_or(u64::from(left) + (1 << 32), |newest| expand(left, newest));
        self.newest = Some(self.newest.map_or(there, |newest| newest.max(there)));
        there
    }

    /// The offset added to a time of the peer.
    fn ahead(&self) -> i64 {
        let least = self.least.iter().flatten().min().copied().unwrap_or(0);
        least - self.round_trip / 2
    }
}

fn micros(at: Timestamp) -> i64 {
    i64::try_from(at.as_nanos() / 1_000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of the peer's clock: it is behind by this much.
    const BEHIND: u64 = 1_000_000_000;

    /// The measured delay of a packet that leaves at `ms` and takes `delay`, with a round trip of
    /// 40 ms.
    fn took(clock: &mut PeerClock, ms: u64, delay: u64) -> Duration {
        let left = (1_000 * ms).wrapping_sub(BEHIND) as u32;
        clock.on_arrival(left, 400, Timestamp::from_millis(ms + delay))
    }

    #[test]
    fn the_fastest_takes_half_of_a_round_trip_and_others_what_they_take_more() {
        let mut clock = PeerClock::default();
        assert_eq!(took(&mut clock, 2_000, 20), Duration::from_millis(20));
        assert_eq!(took(&mut clock, 2_010, 55), Duration::from_millis(55));
        // 5 ms less than the least that was known: now this one takes half of a round trip.
        assert_eq!(took(&mut clock, 2_020, 15), Duration::from_millis(20));
        assert_eq!(clock.here(2_020_000_u64.wrapping_sub(BEHIND) as u32), Timestamp::from_millis(2_015));
    }

    #[test]
    fn times_go_on_where_their_32_bits_end_and_an_old_least_is_forgotten() {
        let mut clock = PeerClock::default();
        for second in 0..10_000 {
            // Each second 200 µs of drift.
            let delay = Duration::from_millis(20) + Duration::from_micros(200 * second);
            let left = (1_000_000 * second).wrapping_sub(BEHIND) as u32;
            let took = clock.on_arrival(left, 400, Timestamp::from_secs(second) + delay);
            assert!(took < Duration::from_millis(27), "{took:?} at {second} s");
        }
    }

    #[test]
    fn a_clock_that_jumps_back_is_known_after_a_second() {
        let mut clock = PeerClock::default();
        took(&mut clock, 1_000, 20);
        // The host there has slept for 5 s, and its clock too.
        let mut late = 0;
        for ms in (10_000..13_000).step_by(20) {
            let delay = took(&mut clock, ms, 5_020);
            let in_time = delay < Duration::from_millis(300);
            late += u32::from(!in_time);
            clock.on_judged(in_time, Timestamp::from_millis(ms + 5_020));
        }
        assert!((50..55).contains(&late), "{late} of 150");
    }
}
