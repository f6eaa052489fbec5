//! What an encoder may send, steadily.
//!
//! Rates follow the paths from one tenth of a second to the next; an encoder that followed them too would change its
//! picture all the time, and one that follows a weak path down takes half a minute to come back. So the budget is what
//! was there for a while at least: it falls at once, and rises slowly.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{Bitrate, Timestamp};

/// The budget is the least that there was for so long.
const LEAST_OF: Duration = Duration::from_secs(2);

/// What there is is the mean of as long as packets may wait for it, but of no longer than this.
const MEAN_OF: Duration = Duration::from_millis(500);

/// What it rises by in a second at most, in parts of what there is: from nothing to all takes 20 s, in which an encoder
/// makes a few pictures that begin anew.
const RISES: f64 = 0.05;

/// What of the rates is left free, so that a picture larger than others finds room.
const USED: f64 = 0.9;

/// By how much it varies is said of the last so long.
const SPREAD_OF: Duration = Duration::from_secs(30);

/// What an encoder may send.
#[derive(Debug, Default)]
pub struct Budget {
    now: f64,
    set_at: Option<Timestamp>,
    newest: VecDeque<(Timestamp, f64)>,
    offered: VecDeque<(Timestamp, f64)>,
    past: VecDeque<(Timestamp, f64)>,
}

impl Budget {
    /// The paths may send `whole`, of which this share is repair and copies; what is sent may wait for so long.
    pub(crate) fn on_rates(&mut self, whole: Bitrate, beside: f64, wait: Duration, now: Timestamp) {
        let offer = USED * (1.0 - beside.clamp(0.0, 1.0)) * whole.as_bps() as f64;
        self.newest.push_back((now, offer));
        keep(&mut self.newest, wait.min(MEAN_OF), now);
        let mean = self.newest.iter().map(|(_, offer)| *offer).sum::<f64>() / self.newest.len() as f64;
        self.offered.push_back((now, mean));
        keep(&mut self.offered, LEAST_OF, now);
        let least = self.offered.iter().map(|(_, offer)| *offer).fold(f64::INFINITY, f64::min);
        let passed = self.set_at.map_or(0.0, |at| now.since(at).as_secs_f64());
        let risen = self.now + RISES * passed * least.max(self.now);
        // A stream that begins has no budget that it could be steady at.
        let is_first = self.set_at.is_none_or(|_| self.past.front().is_none_or(|(at, _)| now.since(*at) < LEAST_OF));
        self.now = if is_first { least } else { least.min(risen) };
        self.set_at = Some(now);
        self.past.push_back((now, self.now));
        keep(&mut self.past, SPREAD_OF, now);
    }

    /// What it is now.
    pub fn rate(&self) -> Bitrate {
        Bitrate::from_bps(self.now as u64)
    }

    /// The deviation of the last half minute, in parts of the mean.
    pub fn variation(&self) -> f64 {
        let count = self.past.len().max(1) as f64;
        let mean = self.past.iter().map(|(_, rate)| rate).sum::<f64>() / count;
        let squares = self.past.iter().map(|(_, rate)| (rate - mean) * (rate - mean)).sum::<f64>() / count;
        if mean > 0.0 { libm::sqrt(squares) / mean } else { 0.0 }
    }
}

fn keep(samples: &mut VecDeque<(Timestamp, f64)>, time: Duration, now: Timestamp) {
    while samples.front().is_some_and(|(at, _)| now.since(*at) > time) {
        samples.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget, in Mbit/s, at the end of so many seconds of rates that are offered, in Mbit/s.
    fn run(budget: &mut Budget, from: u64, seconds: u64, offer: impl Fn(u64) -> u64) -> f64 {
        for tenth in 10 * from..10 * (from + seconds) {
            budget.on_rates(Bitrate::from_mbps(offer(tenth)), 0.0, Duration::ZERO, Timestamp::from_millis(100 * tenth));
        }
        budget.rate().as_mbps_f64()
    }

    #[test]
    fn rates_that_swing_make_a_budget_that_does_not() {
        let mut budget = Budget::default();
        // A sawtooth between 10 and 19, twice a second.
        let rate = run(&mut budget, 0, 60, |tenth| 10 + 2 * (tenth % 5));
        assert!((rate - 9.0).abs() < 1e-6 && budget.variation() < 0.02, "{rate} {}", budget.variation());
    }

    #[test]
    fn a_budget_falls_at_once_and_rises_by_a_twentieth_in_a_second() {
        let mut budget = Budget::default();
        assert!((run(&mut budget, 0, 10, |_| 10) - 9.0).abs() < 1e-6);
        assert!((run(&mut budget, 10, 1, |_| 4) - 3.6).abs() < 1e-6);
        let after_three = run(&mut budget, 11, 3, |_| 10);
        assert!((3.9..4.2).contains(&after_three), "{after_three}: the least of two seconds, and one of rising");
        assert!((run(&mut budget, 14, 60, |_| 10) - 9.0).abs() < 1e-6);
    }

    #[test]
    fn a_budget_comes_back_from_nothing() {
        let mut budget = Budget::default();
        run(&mut budget, 0, 10, |_| 10);
        assert_eq!(run(&mut budget, 10, 3, |_| 0), 0.0);
        assert!((run(&mut budget, 13, 30, |_| 10) - 9.0).abs() < 1e-6);
    }
}
