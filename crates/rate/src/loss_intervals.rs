//! The loss event rate, by the average loss interval.
//!
//! # Source
//! [RFC5348 §5].
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | I_0 | `open`, from the first loss of the newest event on | packets |
//! | I_1, … | `closed`, the newest first | packets |
//! | w_i | `WEIGHTS` | 1 |
//! | p | [`LossIntervals::rate`] | share |
//!
//! # Deviations
//! History discounting [§5.5], which is optional, is left out. The first interval is what came before the first loss:
//! the RFC puts one there that is made from the rate at that time [§6.3.1], which only a sender knows. The RFC's receiver
//! waits for three later packets and takes nothing back [§5.1]; where paths reorder, that counts losses that are none.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::Timestamp;

/// The weights of the newest eight intervals [RFC5348 §5.4].
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// How often losses that count apart come. Losses within a round trip are one event.
#[derive(Clone, Debug, Default)]
pub struct LossIntervals {
    closed: VecDeque<u64>,
    open: u64,
    /// When the packet left with which the newest event began.
    event_at: Option<Timestamp>,
}

impl LossIntervals {
    /// Nothing was sent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet arrived.
    pub fn on_received(&mut self) {
        self.open = self.open.saturating_add(1);
    }

    /// A packet that left at `sent_at` was lost, when a round trip took `rtt`. Losses are told in the order in which
    /// the packets left.
    pub fn on_lost(&mut self, sent_at: Timestamp, rtt: Duration) {
        let is_new = self.event_at.is_none_or(|event_at| sent_at > event_at + rtt);
        if is_new {
            self.event_at = Some(sent_at);
            self.closed.push_front(self.open.max(1));
            self.closed.truncate(WEIGHTS.len());
            self.open = 0;
        }
        self.open = self.open.saturating_add(1);
    }

    /// The packet that left at `sent_at` was not lost: others had overtaken it. Where it began the newest event there was
    /// none; what else was lost in it began none either.
    pub fn on_late(&mut self, sent_at: Timestamp) {
        if self.event_at == Some(sent_at)
            && let Some(interval) = self.closed.pop_front()
        {
            self.event_at = None;
            self.open = self.open.saturating_add(interval);
        }
    }

    /// The share of packets that begin a loss event; 0 before the first.
    pub fn rate(&self) -> f64 {
        if self.closed.is_empty() {
            return 0.0;
        }
        let mean = |intervals: &mut dyn Iterator<Item = u64>| {
            let weighed = intervals.zip(WEIGHTS).map(|(interval, weight)| (interval as f64 * weight, weight));
            let (sum, weights) = weighed.fold((0.0, 0.0), |(sum, all), (one, weight)| (sum + one, all + weight));
            sum / weights
        };
        let without_open = mean(&mut self.closed.iter().copied());
        // The open interval counts only where it makes the mean longer.
        let with_open = mean(&mut core::iter::once(self.open).chain(self.closed.iter().copied()).take(WEIGHTS.len()));
        1.0 / without_open.max(with_open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// The loss event rate after `packets`, a millisecond apart, of which every `every`th is lost.
    fn rate(every: u64, packets: u64) -> f64 {
        let mut intervals = LossIntervals::new();
        for packet in 1..=packets {
            match packet % every {
                0 => intervals.on_lost(Timestamp::from_millis(packet), RTT),
                _ => intervals.on_received(),
            }
        }
        intervals.rate()
    }

    #[test]
    fn losses_apart_by_more_than_a_round_trip_are_events_each() {
        assert_eq!(rate(200, 199), 0.0);
        assert!((rate(200, 4_000) - 1.0 / 200.0).abs() < 1e-4, "{}", rate(200, 4_000));
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        // One in ten is lost, and an event begins more than 100 packets after the one before: at the 110th.
        assert!((rate(10, 11_000) - 1.0 / 110.0).abs() < 1e-4, "{}", rate(10, 11_000));
    }

    #[test]
    fn a_long_time_without_losses_makes_the_rate_smaller_and_a_short_one_changes_nothing() {
        let mut intervals = LossIntervals::new();
        for packet in 1..=2_000 {
            match packet % 200 {
                0 => intervals.on_lost(Timestamp::from_millis(packet), RTT),
                _ => intervals.on_received(),
            }
        }
        let before = intervals.rate();
        (0..100).for_each(|_| intervals.on_received());
        assert_eq!(intervals.rate(), before);
        (0..2_000).for_each(|_| intervals.on_received());
        assert!(intervals.rate() < 0.6 * before);
    }

    #[test]
    fn a_packet_that_was_overtaken_began_no_event() {
        let mut intervals = LossIntervals::new();
        for packet in 1..=2_000 {
            match packet % 200 {
                0 => intervals.on_lost(Timestamp::from_millis(packet), RTT),
                _ => intervals.on_received(),
            }
        }
        let before = intervals.clone();
        intervals.on_received();
        intervals.on_lost(Timestamp::from_millis(2_150), RTT);
        intervals.on_late(Timestamp::from_millis(2_149));
        assert!(intervals.rate() > before.rate(), "another packet");
        intervals.on_late(Timestamp::from_millis(2_150));
        assert_eq!(intervals.rate(), before.rate());
    }

    #[test]
    fn what_is_older_than_eight_intervals_is_forgotten() {
        let mut intervals = LossIntervals::new();
        let mut at = 0;
        let mut run = |intervals: &mut LossIntervals, every: u64, events: u64| {
            for _ in 0..events {
                (1..every).for_each(|_| intervals.on_received());
                at += every;
                intervals.on_lost(Timestamp::from_millis(at), RTT);
            }
            intervals.rate()
        };
        run(&mut intervals, 200, 20);
        let after = run(&mut intervals, 1_000, 9);
        assert!((after - 1e-3).abs() < 1e-5, "{after}");
    }
}
