//! ECF, earliest completion first: a slower path is used only where what is left would be complete later without it.
//!
//! # Source
//! [ECF §4, Algorithm 1]; with bytes in the place of packets, as in Linux MPTCP 0.96 (`mptcp_ecf`), by description.
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | x_s, x_f | the path of min-RTT among those with room; among all | |
//! | k | [`ConnectionView::unsent`] | bytes |
//! | B_f, B_s | the windows | bytes |
//! | δ | `margin`, the larger of the variances | time |
//! | β | `BETA` | 1 |
//!
//! # Deviations
//! None.

use core::cell::Cell;

use fairpath_core::{ByteCount, Timestamp};

use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, active, candidates};

/// Hysteresis: the part by which the bound on waiting rises once ECF waits [ECF §4].
const BETA: f64 = 0.25;

/// Sends on the fastest path with room, or waits for a faster one where that completes earlier.
#[derive(Debug, Default)]
pub struct Ecf {
    /// Whether it waits already, which makes it wait longer. In the same state the answer is the
    /// same.
    waiting: Cell<bool>,
}

impl Scheduler for Ecf {
    fn pick(&self, connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let by_time = |path: &&PathView| (path.smoothed(), path.id);
        let Some(slow) = candidates(paths).min_by_key(by_time) else { return Choice::Wait };
        let Some(fast) = active(paths).min_by_key(by_time) else { return Choice::Wait };
        let (Some(times_fast), Some(times_slow), Some(unsent)) = (fast.rtt, slow.rtt, connection.unsent) else {
            return Choice::Send(slow.id);
        };
        // Nothing is heard of a path with nothing in flight: nobody would ask again.
        if fast.id == slow.id || fast.in_flight == ByteCount::ZERO {
            return Choice::Send(slow.id);
        }
        let [unsent, of_fast, of_slow] = [unsent, fast.window, slow.window].map(|bytes| bytes.get() as f64);
        let [rtt_fast, rtt_slow] = [times_fast.smoothed, times_slow.smoothed].map(|time| time.as_secs_f64());
        let margin = times_fast.variance.max(times_slow.variance).as_secs_f64();
        let patience = if self.waiting.get() { 1.0 + BETA } else { 1.0 };
        let completes_earlier = rtt_fast * (unsent.max(of_fast) + of_fast) < patience * of_fast * (rtt_slow + margin);
        if !completes_earlier {
            self.waiting.set(false);
            return Choice::Send(slow.id);
        }
        if rtt_slow * unsent.max(of_slow) >= of_slow * (2.0 * rtt_fast + margin) {
            self.waiting.set(true);
            return Choice::WaitFor(fast.id);
        }
        Choice::Send(slow.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, view};

    /// A fast path of 20 ms that is full, and a slow one with room; both have windows of 12,000 bytes.
    fn paths(slow_ms: u64) -> [PathView; 2] {
        let mut paths = [view(0, 20), view(1, slow_ms)];
        paths[0].in_flight = paths[0].window;
        paths
    }

    fn choice(ecf: &Ecf, unsent: u64, paths: &[PathView]) -> Choice {
        let connection = ConnectionView { unsent: Some(ByteCount::new(unsent)), ..ConnectionView::default() };
        ecf.pick(&connection, paths, Timestamp::ZERO)
    }

    #[test]
    fn the_tail_waits_for_the_fast_path_and_what_is_long_uses_both() {
        // 20 · (k + 12,000) < 12,000 · 100 holds for k below 48,000.
        assert_eq!(choice(&Ecf::default(), 47_999, &paths(100)), Choice::WaitFor(path(0)));
        assert_eq!(choice(&Ecf::default(), 48_000, &paths(100)), Choice::Send(path(1)));
        // Hardly slower: 20 · 24,000 is not less than 12,000 · 40.
        assert_eq!(choice(&Ecf::default(), 0, &paths(40)), Choice::Send(path(1)));
    }

    #[test]
    fn who_waits_goes_on_waiting_for_a_quarter_more() {
        let ecf = Ecf::default();
        assert_eq!(choice(&ecf, 40_000, &paths(100)), Choice::WaitFor(path(0)));
        // 20 · (k + 12,000) < 1.25 · 12,000 · 100 holds for k below 63,000.
        assert_eq!(choice(&ecf, 62_999, &paths(100)), Choice::WaitFor(path(0)));
        assert_eq!(choice(&ecf, 63_000, &paths(100)), Choice::Send(path(1)));
        assert_eq!(choice(&ecf, 50_000, &paths(100)), Choice::Send(path(1)), "no longer");
    }

    #[test]
    fn a_slow_path_that_sends_what_is_left_soon_enough_is_used() {
        // 20 · 24,000 < 12,000 · 41: waiting completes earlier. But where variances are 10 ms, the slow path is done
        // with it after 41 ms, and the fast one only after 2 · 20 + 10.
        let mut paths = paths(41);
        assert_eq!(choice(&Ecf::default(), 0, &paths), Choice::WaitFor(path(0)));
        let times = paths[1].rtt.as_mut().expect("times");
        times.variance = core::time::Duration::from_millis(10);
        assert_eq!(choice(&Ecf::default(), 0, &paths), Choice::Send(path(1)));
    }

    #[test]
    fn what_is_not_known_or_would_not_be_heard_of_is_not_waited_for() {
        let mut paths = paths(100);
        assert_eq!(crate::testing::picked(&Ecf::default(), &paths), Choice::Send(path(1)), "no end in sight");
        (paths[0].in_flight, paths[0].window) = (ByteCount::ZERO, ByteCount::ZERO);
        assert_eq!(choice(&Ecf::default(), 0, &paths), Choice::Send(path(1)));
    }
}
