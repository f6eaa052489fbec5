//! Packets in the order in which they were sent, where paths differ in delay.
//!
//! A packet that overtook others is held back for as long as those are late, as measured: the spread of the one-way delays
//! of the paths that are in use. Where few packets are late, or by little, nothing is held back at all.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// When packets are held back, and for how long. `sensitivity.rs` halves and doubles each.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The longest that a packet is held back. One that is later than this is not waited for, and does not count.
    hold_max: Duration,
    /// A spread that is smaller is that of an ordinary network, to which programs are used.
    spread_min: Duration,
    /// Below one late packet in this many, order is not worth the wait after each loss.
    late_min: u64,
    /// How long measurements count: for this time and the one before.
    epoch: Duration,
    /// Room for jitter beside the spread that was measured, in parts of it.
    margin: f64,
    /// The most packets that are held back.
    held_max: usize,
}

impl Limits {
    const DEFAULT: Self = Self {
        hold_max: Duration::from_millis(200),
        spread_min: Duration::from_millis(2),
        late_min: 100,
        epoch: Duration::from_secs(5),
        margin: 0.25,
        held_max: 512,
    };
}

/// Packets of one association on their way to its reader.
#[derive(Debug)]
pub(super) struct Order<T> {
    spread: Spread,
    /// The number of the next packet in order; `None` before the first.
    next: Option<u64>,
    held: BTreeMap<u64, (Instant, T)>,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self::new(Limits::DEFAULT)
    }
}

impl<T> Order<T> {
    fn new(limits: Limits) -> Self {
        Self { spread: Spread::new(limits), next: None, held: BTreeMap::new() }
    }

    /// Takes a packet that arrived then. Its number counts from any and wraps around.
    pub(super) fn take(&mut self, number: u32, packet: T, arrived: Instant) {
        let number = self.unwrapped(number);
        self.spread.on_arrival(number, arrived);
        let next = *self.next.get_or_insert(number);
        // One that is late waits for nothing, but stands in the queue before those that wait.
        self.held.insert(number, (arrived, packet));
        self.next = Some(next);
    }

    /// The number, continued from the highest that there was.
    fn unwrapped(&self, number: u32) -> u64 {
        // Far from zero, so that packets before the first one have numbers.
        let Some(highest) = self.spread.highest else { return (1 << 32) + u64::from(number) };
        let ahead = number.wrapping_sub(highest as u32) as i32;
        highest.saturating_add_signed(ahead.into())
    }

    /// The next packet that may go on.
    pub(super) fn pop(&mut self, now: Instant) -> Option<T> {
        let (number, (arrived, _)) = self.held.first_key_value()?;
        let is_next = self.next.is_none_or(|next| *number <= next);
        if is_next || *arrived + self.spread.hold() <= now || self.held.len() > self.spread.limits.held_max {
            let (number, (_, packet)) = self.held.pop_first()?;
            self.next = self.next.max(Some(number + 1));
            return Some(packet);
        }
        None
    }

    /// When a packet may go on, where one is held back.
    pub(super) fn due(&self) -> Option<Instant> {
        let (_, (arrived, _)) = self.held.first_key_value()?;
        Some(*arrived + self.spread.hold())
    }

    /// The next packet, whatever is missing before it.
    pub(super) fn pop_any(&mut self) -> Option<T> {
        self.held.pop_first().map(|(_, (_, packet))| packet)
    }
}

/// How late packets are that others overtook.
#[derive(Debug)]
struct Spread {
    limits: Limits,
    highest: Option<u64>,
    /// The packets of which each had a higher number than all before, for as long as anything is waited for.
    rising: VecDeque<(u64, Instant)>,
    now: Epoch,
    before: Epoch,
}

#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    begun: Option<Instant>,
    packets: u64,
    late: u64,
    latest: Duration,
}

impl Spread {
    fn new(limits: Limits) -> Self {
        Self { limits, highest: None, rising: VecDeque::new(), now: Epoch::default(), before: Epoch::default() }
    }

    fn on_arrival(&mut self, number: u64, arrived: Instant) {
        let begun = *self.now.begun.get_or_insert(arrived);
        if arrived.saturating_duration_since(begun) >= self.limits.epoch {
            self.before = std::mem::replace(&mut self.now, Epoch { begun: Some(arrived), ..Epoch::default() });
        }
        self.now.packets += 1;
        let Limits { hold_max, held_max, .. } = self.limits;
        while self.rising.front().is_some_and(|(_, at)| arrived.saturating_duration_since(*at) > hold_max) {
            self.rising.pop_front();
        }
        if self.highest.is_none_or(|highest| number > highest) {
            self.highest = Some(number);
            if self.rising.len() < 4 * held_max {
                self.rising.push_back((number, arrived));
            }
            return;
        }
        // The first that overtook it. Where that is forgotten, it is too late to be waited for.
        let after = self.rising.partition_point(|(other, _)| *other <= number);
        let is_known = after > 0 || self.rising.front().is_some_and(|(other, _)| *other == number + 1);
        if let Some((_, at)) = self.rising.get(after).filter(|_| is_known) {
            self.now.late += 1;
            self.now.latest = self.now.latest.max(arrived.saturating_duration_since(*at));
        }
    }

    /// How long a packet is held back behind a gap.
    fn hold(&self) -> Duration {
        let Limits { hold_max, spread_min, late_min, margin, .. } = self.limits;
        let [packets, late] =
            [|epoch: &Epoch| epoch.packets, |epoch: &Epoch| epoch.late].map(|of| of(&self.now) + of(&self.before));
        let spread = self.now.latest.max(self.before.latest);
        match late * late_min >= packets && spread >= spread_min {
            true => spread.mul_f64(1.0 + margin).min(hold_max),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod sensitivity;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Packets are sent one a millisecond, and `delay` says how long each takes, if it arrives. The numbers as they are handed
    /// out, each with how long it took from being sent, in ms.
    fn run(count: u64, first: u32, delay: impl Fn(u64) -> Option<u64>) -> Vec<(u64, u64)> {
        let begun = Instant::now();
        let mut arrivals: Vec<(u64, u64)> = (0..count).filter_map(|sent| Some((sent + delay(sent)?, sent))).collect();
        arrivals.sort_unstable();
        let (mut order, mut out) = (Order::default(), Vec::new());
        let mut arrivals = arrivals.into_iter().peekable();
        for tick in 0..count + 500 {
            let now = begun + MS * tick as u32;
            while let Some((_, sent)) = arrivals.next_if(|(at, _)| *at <= tick) {
                order.take(first.wrapping_add(sent as u32), sent, now);
            }
            while let Some(sent) = order.pop(now) {
                out.push((sent, tick - sent));
            }
        }
        assert!(order.pop_any().is_none() && order.due().is_none(), "nothing is kept");
        out
    }

    fn disorder(out: &[(u64, u64)]) -> usize {
        out.windows(2).filter(|two| two[0].0 > two[1].0).count()
    }

    #[test]
    fn two_paths_of_different_delay_give_order_once_their_spread_was_measured() {
        for first in [0, u32::MAX - 700] {
            let out = run(2_000, first, |sent| Some(if sent % 2 == 0 { 10 } else { 35 }));
            assert_eq!(out.len(), 2_000, "each comes once");
            let measured = out.iter().position(|(sent, _)| *sent > 200).unwrap();
            assert_eq!(disorder(&out[measured..]), 0);
            assert!(
                out.iter().all(|(_, took)| *took <= 35 + 10),
                "no packet waits for much longer than the slower path takes"
            );
        }
    }

    #[test]
    fn one_path_that_loses_packets_holds_nothing_back() {
        let out = run(2_000, 7, |sent| (sent % 20 != 3).then_some(10));
        assert!(out.iter().all(|(_, took)| *took == 10));
    }

    #[test]
    fn a_packet_that_is_lost_among_two_paths_costs_the_spread_and_no_more() {
        let out = run(4_000, 0, |sent| (sent % 50 != 7).then_some(if sent % 2 == 0 { 10 } else { 30 }));
        assert_eq!(out.len(), 4_000 - 80);
        let late = &out[out.iter().position(|(sent, _)| *sent > 200).unwrap()..];
        assert_eq!(disorder(late), 0);
        // 20 ms of spread, and a quarter more for jitter.
        assert!(late.iter().all(|(_, took)| *took <= 10 + 25 + 30), "{:?}", late.iter().map(|(_, took)| took).max());
    }

    #[test]
    fn a_jitter_below_the_least_spread_and_one_late_packet_change_nothing() {
        let out = run(2_000, 0, |sent| Some(if sent % 2 == 0 { 10 } else { 11 }));
        assert!(out.iter().all(|(_, took)| *took <= 11));
        let once = run(2_000, 0, |sent| Some(if sent == 1_000 { 60 } else { 10 }));
        let waited = once.iter().filter(|(sent, took)| *sent != 1_000 && *took > 10).count();
        assert_eq!(waited, 0);
    }

    #[test]
    fn no_more_are_held_back_than_there_is_room_for() {
        let now = Instant::now();
        let mut order = Order::default();
        // Every second one is late by much, so that all are waited for.
        for number in 0..400_u32 {
            order.take(number ^ 1, number, now + 3 * MS * (number / 2));
        }
        while order.pop(now).is_some() {}
        let later = now + 1_200 * MS;
        for number in 1_000..3_000_u32 {
            order.take(number, number, later);
            let _ = order.pop(later);
            assert!(order.held.len() <= Limits::DEFAULT.held_max + 1);
        }
    }
}
