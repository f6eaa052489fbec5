//! The budget: the rate that an encoder may send at, steadily.
//!
//! The rates of paths change every tenth of a second, and an encoder that followed them would keep
//! changing its picture. Windows fall for a moment with each loss, and data without room then
//! leaves a moment later. So the budget is a part of the mean room, and rises slowly. It stays
//! while little would wait, or waits, and otherwise falls to the room there is.
//!
//!
//! Windows that were never filled do not tell a path's capacity: the first ones are guesses, and
//! those of an encoder that sends little never change. So the budget is at most half as much again
//! as what arrived in the last seconds. An encoder that follows it probes that rate, and gets more
//! once it has arrived.
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | r | `now`: `used` of the mean room, or less, and at most `tries` times P | bit/s |
//! | room | what the paths may send, less repair and copies | bit/s |
//! | B | `waits`: grows by r − room, and is never below 0 nor below what has waited for `stands` | bit |
//! | P | `passed`: what arrived in `mean_of`, at its most in `passed_for` | bit/s |
//! | d | how long packets may wait: r falls where B > d room | s |
//!
//! The others are [`BudgetParameters`].

mod parameters;

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

pub use parameters::BudgetParameters;

/// The time over which the variation of the budget is reported.
const SPREAD_OF: Duration = Duration::from_secs(30);

/// The budget of an encoder.
#[derive(Debug, Default)]
pub struct Budget {
    parameters: BudgetParameters,
    now: f64,
    /// The same when nothing waits for too long.
    steady: f64,
    /// The bits that would wait of an encoder that follows the budget.
    waits: f64,
    set_at: Option<Timestamp>,
    room: VecDeque<(Timestamp, f64)>,
    waiting: VecDeque<(Timestamp, f64)>,
    past: VecDeque<(Timestamp, f64)>,
    /// All that has arrived, in bits.
    arrived: f64,
    /// The same, as it was.
    arrivals: VecDeque<(Timestamp, f64)>,
    /// The mean rates at which it arrived.
    passed: VecDeque<(Timestamp, f64)>,
}

impl Budget {
    /// One with these parameters.
    pub fn new(parameters: BudgetParameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// This many bytes of the application's data have arrived.
    pub(crate) fn on_arrived(&mut self, bytes: ByteCount) {
        self.arrived += 8.0 * bytes.as_f64();
    }

    /// The rate that an encoder may try now.
    fn tries(&mut self, now: Timestamp) -> f64 {
        self.arrivals.push_back((now, self.arrived));
        // The newest that is as old as what is averaged over stays.
        while self.arrivals.get(1).is_some_and(|(at, _)| now.since(*at) >= self.parameters.mean_of) {
            self.arrivals.pop_front();
        }
        let (at, before) = self.arrivals.front().copied().unwrap_or((now, self.arrived));
        let mean = (self.arrived - before) / now.since(at).max(self.parameters.mean_of).as_secs_f64();
        self.passed.push_back((now, mean));
        keep(&mut self.passed, self.parameters.passed_for, now);
        let passed = self.passed.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        (self.parameters.first_try.as_bps() as f64).max(self.parameters.tries * passed)
    }

    /// Takes the rate `whole` of the paths, the share `beside` of repair and copies in it, how long
    /// data may wait, and how much waits.
    pub(crate) fn on_rates(&mut self, whole: Bitrate, beside: f64, wait: Duration, waiting: ByteCount, now: Timestamp) {
        let room = (1.0 - beside.clamp(0.0, 1.0)) * whole.as_bps() as f64;
        let elapsed = self.set_at.map_or(0.0, |at| now.since(at).as_secs_f64());
        let tries = self.tries(now);
        self.room.push_back((now, room));
        keep(&mut self.room, self.parameters.mean_of, now);
        let mean = self.room.iter().map(|(_, room)| *room).sum::<f64>() / self.room.len() as f64;
        if self.waiting.is_empty() {
            self.waiting.push_back((now, 0.0));
        }
        self.waiting.push_back((now, 8.0 * waiting.as_f64()));
        while self.waiting.get(1).is_some_and(|(at, _)| now.since(*at) >= self.parameters.stands) {
            self.waiting.pop_front();
        }
        let stands = self.waiting.iter().map(|(_, waiting)| *waiting).fold(f64::INFINITY, f64::min);
        self.waits = (self.waits + elapsed * (self.now - room)).max(stands);
        let is_full = self.waits > wait.min(self.parameters.wait_max).as_secs_f64() * room;
        let all = self.parameters.used * if is_full { mean.min(room) } else { mean };
        let most = all.min(tries);
        // A stream that begins has no budget that it could be steady at.
        let is_first = self.past.front().is_none_or(|(at, _)| now.since(*at) < self.parameters.mean_of);
        let risen = self.steady + self.parameters.rises * elapsed * all.max(self.steady);
        self.steady = if is_first { most } else { most.min(risen) };
        self.now = if is_full { self.steady.min(self.parameters.drained * room) } else { self.steady };
        self.set_at = Some(now);
        self.past.push_back((now, self.now));
        keep(&mut self.past, SPREAD_OF, now);
    }

    /// The current budget.
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

    const WAIT: Duration = Duration::from_millis(75);

    /// A tenth of a second of an encoder that sends, and whose data arrive, as fast as the paths take them.
    fn deliver(budget: &mut Budget, tenth: u64, offer: u64, waiting: ByteCount) {
        let offer = Bitrate::from_mbps(offer);
        budget.on_arrived(offer * Duration::from_millis(100));
        budget.on_rates(offer, 0.0, WAIT, waiting, Timestamp::from_millis(100 * tenth));
    }

    /// The budget at the end of `seconds` with the offered rates, both in Mbit/s.
    fn run(budget: &mut Budget, from: u64, seconds: u64, offer: impl Fn(u64) -> u64) -> f64 {
        for tenth in 10 * from..10 * (from + seconds) {
            deliver(budget, tenth, offer(tenth), ByteCount::ZERO);
        }
        budget.rate().as_mbps_f64()
    }

    #[test]
    fn rates_that_swing_for_less_time_than_packets_may_wait_make_a_budget_that_does_not() {
        let mut budget = Budget::default();
        // A sawtooth between 10 and 18, twice a second: 14 on average.
        let rate = run(&mut budget, 0, 60, |tenth| 10 + 2 * (tenth % 5));
        assert!((rate - 12.6).abs() < 0.1 && budget.variation() < 0.02, "{rate} {}", budget.variation());
    }

    #[test]
    fn a_window_that_falls_with_a_loss_leaves_the_budget_as_it_was() {
        let mut budget = Budget::default();
        // 7 of 10 for two tenths, every four seconds: 50 ms wait.
        let rate = run(&mut budget, 0, 60, |tenth| if tenth % 40 < 2 { 7 } else { 10 });
        assert!(rate > 8.6 && budget.variation() < 0.02, "{rate} {}", budget.variation());
    }

    #[test]
    fn a_budget_falls_before_packets_wait_for_too_long_and_rises_by_a_twentieth_in_a_second() {
        let mut budget = Budget::default();
        assert!((run(&mut budget, 0, 10, |_| 10) - 9.0).abs() < 1e-6);
        // Data sent at the budget's rate, and how long it waits.
        let (mut waits, mut most) = (0.0, 0.0);
        for tenth in 100..130 {
            waits = f64::max(0.0, waits + 0.1 * (budget.rate().as_mbps_f64() - 4.0) / 4.0);
            most = f64::max(most, waits);
            deliver(&mut budget, tenth, 4, ByteCount::ZERO);
            assert!(tenth < 102 || waits < WAIT.as_secs_f64(), "{waits} at {tenth}");
        }
        // Sent before the budget could react: (9 - 4) / 4 of a tenth.
        assert!((most - 0.125).abs() < 1e-6, "{most}");
        assert!((budget.rate().as_mbps_f64() - 3.6).abs() < 1e-6, "{:?}", budget.rate());
        let after_two = run(&mut budget, 13, 2, |_| 10);
        assert!((3.6..4.8).contains(&after_two), "{after_two}");
        assert!((run(&mut budget, 15, 60, |_| 10) - 9.0).abs() < 1e-6);
    }

    #[test]
    fn what_stands_makes_the_budget_fall_and_what_comes_with_a_picture_does_not() {
        // 100 kB take 80 ms of 10 Mbit/s. They wait for so many tenths of each second.
        let least = |tenths: u64| {
            let (mut budget, mut least) = (Budget::default(), f64::INFINITY);
            for tenth in 0..100 {
                let waiting = ByteCount::new(if tenth % 10 < tenths { 100_000 } else { 0 });
                deliver(&mut budget, tenth, 10, waiting);
                // In the first seconds it grows to the rate that has arrived.
                least = if tenth < 20 { least } else { budget.rate().as_mbps_f64().min(least) };
            }
            least
        };
        assert!((least(2) - 9.0).abs() < 1e-6, "{}", least(2));
        assert!((least(5) - 5.0).abs() < 1e-6, "{}", least(5));
    }

    #[test]
    fn a_budget_is_half_as_much_again_as_what_has_passed_whatever_windows_say() {
        let mut budget = Budget::default();
        let mut say = |tenths: core::ops::Range<u64>, sends: &dyn Fn(f64) -> f64| {
            for tenth in tenths {
                let sent = sends(budget.rate().as_mbps_f64());
                budget.on_arrived(ByteCount::new((sent * 1e5 / 8.0) as u64));
                let now = Timestamp::from_millis(100 * tenth);
                budget.on_rates(Bitrate::from_mbps(60), 0.0, WAIT, ByteCount::ZERO, now);
            }
            budget.rate().as_mbps_f64()
        };
        let idle = say(0..20, &|_| 0.0);
        assert!((idle - 0.5).abs() < 1e-3, "{idle}: a first try");
        let little = say(20..100, &|_| 1.0);
        assert!((little - 1.5).abs() < 1e-3, "{little}");
        // Ten seconds in which it sends nothing, then as it is told: a half more in a bit more than two seconds.
        let after_a_pause = say(100..180, &|_| 0.0);
        assert!((after_a_pause - 1.5).abs() < 1e-3, "{after_a_pause}");
        assert!((say(180..230, &|_| 0.0) - 0.5).abs() < 1e-3);
        let follows = say(230..330, &|told| told);
        assert!((4.0..54.0).contains(&follows), "{follows} after ten seconds");
        assert!((say(330..600, &|told| told) - 54.0).abs() < 1e-3, "nine tenths of what windows say");
    }

    #[test]
    fn a_budget_comes_back_from_nothing() {
        let mut budget = Budget::default();
        run(&mut budget, 0, 10, |_| 10);
        assert_eq!(run(&mut budget, 10, 3, |_| 0), 0.0);
        assert!((run(&mut budget, 13, 30, |_| 10) - 9.0).abs() < 1e-6);
    }
}
