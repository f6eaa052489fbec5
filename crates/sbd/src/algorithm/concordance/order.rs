//! Order: one queue gives out what two paths send in the order in which it came in; two queues do not.
//!
//! A queue of 20 ms beside TCP moves within a round trip and nowhere else, and so do two. Processes that are off the processor
//! for as long let all queues of their host run empty at once, and delays of one moment differ by the trains that left
//! just before. So levels tell nothing there, and neither do their changes. The order of what comes does. Two packets leave
//! one after the other on different paths, and the second comes first: then there are two queues, or something besides the
//! queue delayed the first. The times by which orders are broken are compared with those that chance would bring, if the
//! delays of both paths had nothing to do with each other.
//!
//! That takes one-way delays, and of departures only their order: neither trains nor pauses of a host change it. Where the
//! ways of two paths differ before or behind the queue, orders are broken by as much, and tell of one queue only if it
//! moves by far more. Until orders tell, nothing is sure.

use core::time::Duration;

use fairpath_core::{DelaySample, Timestamp};

use super::changes::SPAN;
use super::evidence::{after_change, log_ratio};
use super::scales::Scale;
use super::{ConcordanceConfig, Path};
use crate::grid::millis;

/// The order of packets that came within this time is not known, in ms: a host without times of arrival reads one socket
/// after the other.
const AT_ONCE_MS: f64 = 0.1;

/// Packets of a path that left within this are one train, which has one time of departure.
const TRAIN_NS: u64 = 2_000;

/// How many trains of a path are remembered: those that came while others were on their way.
const TRAINS: usize = 48;

/// How far apart the delays are that are remembered, and how many: those of a second.
const PAST_EVERY: Duration = Duration::from_millis(25);
const PAST: usize = 40;

/// How many orders chance would break for a piece of evidence.
const PIECE: f64 = 3.0;

/// The part of the orders that two queues keep where their hosts stand still: both run empty then. With 0.3 two of sixteen
/// pairs of starved hosts were one for a while.
const TWO_QUEUES: f64 = 0.5;

/// Orders that are broken by less, in ms, are broken by the times that hosts note.
const KNOWN_MS: f64 = 0.2;

/// More than any one-way delay, whose zero is unknown: a packet that came early in the engine's time left before it.
const BEFORE_NS: u64 = 1 << 40;

/// The packets that came on one path.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// The newest trains; that of the number n is at n modulo their number.
    trains: [Train; TRAINS],
    count: usize,
    /// Delays of the last second, in ms; the oldest is at `next` where all are there.
    past: [f32; PAST],
    known: usize,
    next: usize,
    noted: Option<Timestamp>,
}

/// Packets that left at once: when, and the delays of the first and of the last in ms.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    left_ns: u64,
    first_ms: f64,
    last_ms: f64,
}

impl Train {
    /// One packet. Round-trip times tell nothing: with them comes the way back.
    fn of(sample: &DelaySample) -> Option<Self> {
        let delay = sample.one_way?;
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let left_ns = sample.now.as_nanos().saturating_add(BEFORE_NS).saturating_sub(delay_ns);
        Some(Self { left_ns, first_ms: millis(delay), last_ms: millis(delay) })
    }

    /// How much later it left than another, in ms.
    fn behind(&self, other: &Self) -> f64 {
        self.left_ns.saturating_sub(other.left_ns) as f64 / 1e6
    }
}

impl Course {
    /// Nothing came yet.
    pub(super) fn new() -> Self {
        Self { trains: [Train::default(); TRAINS], count: 0, past: [0.0; PAST], known: 0, next: 0, noted: None }
    }

    /// Takes a sample.
    pub(super) fn add(&mut self, sample: &DelaySample) {
        let Some(train) = Train::of(sample) else { return };
        match self.count.checked_sub(1).map(|newest| &mut self.trains[newest % TRAINS]) {
            Some(newest) if train.left_ns < newest.left_ns => {
                // Out of order, or delays have another zero now.
                (self.count, self.trains[0]) = (1, train);
            }
            Some(newest) if train.left_ns - newest.left_ns < TRAIN_NS => newest.last_ms = train.last_ms,
            _ => {
                self.trains[self.count % TRAINS] = train;
                self.count += 1;
            }
        }
        if self.noted.is_none_or(|noted| sample.now.since(noted) >= PAST_EVERY) {
            self.noted = Some(sample.now);
            self.past[self.next] = train.last_ms as f32;
            self.next = (self.next + 1) % PAST;
            self.known = (self.known + 1).min(PAST);
        }
    }

    /// The first train that left after this one, where one has come already, or else the last that left before it.
    fn next_to(&self, train: &Train) -> Option<Train> {
        let newest_first = || (self.count.saturating_sub(TRAINS)..self.count).rev().map(|at| self.trains[at % TRAINS]);
        let after = newest_first().take_while(|other| other.left_ns > train.left_ns).last();
        after.or_else(|| newest_first().find(|other| other.left_ns < train.left_ns))
    }

    /// The delays of the last second.
    fn past(&self) -> impl Iterator<Item = f64> {
        self.past[..self.known].iter().map(|ms| f64::from(*ms))
    }
}

/// Two packets that left one after the other on different paths.
#[derive(Clone, Copy, Debug)]
struct Two {
    /// Whether the first one is that of the path whose packet came.
    is_first: bool,
    /// How much later the second left, in ms.
    gap: f64,
    first_ms: f64,
    second_ms: f64,
}

impl Two {
    fn of(came: &Train, next: &Train) -> Self {
        let is_first = came.left_ns < next.left_ns;
        let (first, second) = if is_first { (came, next) } else { (next, came) };
        Self { is_first, gap: second.behind(first), first_ms: first.last_ms, second_ms: second.first_ms }
    }

    fn came_at_once(&self) -> bool {
        (self.first_ms - self.second_ms - self.gap).abs() < AT_ONCE_MS
    }

    /// By how much the second would come before the first with these delays; in ms.
    fn broken_by(&self, first_ms: f64, second_ms: f64) -> f64 {
        (first_ms - second_ms - self.gap - KNOWN_MS).max(0.0)
    }
}

/// The evidence of the orders of two paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// When the last train of each path left that one of the other was compared with.
    compared: [u64; 2],
    /// By how much orders were broken since the last piece of evidence, and would be by chance, in ms.
    broken: f64,
    expected: f64,
    /// How many would be by chance.
    breaks: f64,
    /// How many were compared, and in how many of these a dip showed.
    count: u32,
    dipped: u32,
    /// The step of the last piece of evidence.
    judged: u64,
    /// The log-odds of one queue, of all that was measured and of what was while a dip showed.
    all: f64,
    tested: f64,
}

impl Order {
    /// A packet came on one of two paths, the second where `is_second`; true: there is new evidence.
    pub(super) fn compare(
        &mut self,
        sample: &DelaySample,
        paths: [&Path; 2],
        is_second: bool,
        config: &ConcordanceConfig,
    ) -> bool {
        let [own, other] = if is_second { [paths[1], paths[0]] } else { paths };
        let Some(came) = Train::of(sample) else { return false };
        let Some(next) = other.course.next_to(&came) else { return false };
        let settled = own.scales.step_of(own.opened.max(other.opened) + config.settle);
        let step = own.scales.step_of(sample.now);
        let compared = &mut self.compared[usize::from(is_second)];
        let two = Two::of(&came, &next);
        if step < settled || *compared == next.left_ns || two.came_at_once() {
            return false;
        }
        *compared = next.left_ns;
        self.add(&two, [&own.course, &other.course]);
        self.dipped += u32::from([own, other].iter().any(|path| path.is_dipped(step, Scale::SHORTEST)));
        let is_piece = self.breaks >= PIECE && step >= self.judged + SPAN;
        if is_piece {
            self.judge(step, config);
        }
        is_piece
    }

    /// Compares an order with those that chance would bring.
    fn add(&mut self, two: &Two, [own, other]: [&Course; 2]) {
        let (firsts, seconds) = if two.is_first { (own, other) } else { (other, own) };
        self.broken += two.broken_by(two.first_ms, two.second_ms);
        self.count += 1;
        let by_first = firsts.past().map(|first_ms| two.broken_by(first_ms, two.second_ms));
        let by_second = seconds.past().map(|second_ms| two.broken_by(two.first_ms, second_ms));
        let part = 1.0 / (firsts.known + seconds.known).max(1) as f64;
        for broken_by in by_first.chain(by_second).filter(|broken_by| *broken_by > 0.0) {
            self.expected += part * broken_by;
            self.breaks += part;
        }
    }

    /// Makes a piece of evidence of the orders compared.
    fn judge(&mut self, step: u64, config: &ConcordanceConfig) {
        let kept = (1.0 - self.broken / self.expected).max(0.0);
        let piece = log_ratio(kept, config.one_queue, 1.0) - log_ratio(kept, TWO_QUEUES, 1.0);
        let changed = config.changed(step.saturating_sub(self.judged));
        let [all, tested] = [self.all, self.tested].map(|odds| after_change(odds, changed));
        let part = f64::from(self.dipped) / f64::from(self.count);
        let (compared, all, tested) = (self.compared, all + piece, tested + part * piece);
        *self = Self { compared, judged: step, all, tested, ..Self::default() };
    }

    /// The log-odds of one queue, of all that was measured and of what was while a dip showed; `None` where no order was
    /// compared.
    pub(super) fn log_odds(&self) -> Option<[f64; 2]> {
        let is_heard = self.count > 0 || self.judged > 0;
        is_heard.then_some([self.all, self.tested])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet that left and came at these times, in ms.
    fn sample(left: f64, came: f64) -> DelaySample {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        DelaySample { now: Timestamp::ZERO + ms(1_000.0 + came), rtt: Duration::ZERO, one_way: Some(ms(came - left)) }
    }

    fn course(packets: &[(f64, f64)]) -> Course {
        let mut course = Course::new();
        packets.iter().for_each(|(left, came)| course.add(&sample(*left, *came)));
        course
    }

    fn next_ms(course: &Course, left: f64, came: f64) -> Option<f64> {
        let train = Train::of(&sample(left, came)).unwrap();
        course.next_to(&train).map(|next| next.first_ms)
    }

    #[test]
    fn a_packet_is_compared_with_the_first_that_overtook_it_or_else_with_the_last_before_it() {
        let course = course(&[(0.0, 10.0), (20.0, 31.0), (40.0, 52.0)]);
        assert!((next_ms(&course, 30.0, 60.0).unwrap() - 12.0).abs() < 1e-6, "the one of 40 came at 52");
        assert!((next_ms(&course, 50.0, 60.0).unwrap() - 12.0).abs() < 1e-6, "the last before it is that of 40");
        assert!((next_ms(&course, 10.0, 60.0).unwrap() - 11.0).abs() < 1e-6, "that of 20 left next");
        assert!((next_ms(&course, 40.0, 60.0).unwrap() - 11.0).abs() < 1e-6, "what left at once has no order");
    }

    #[test]
    fn a_train_counts_as_one() {
        let course = course(&[(0.0, 10.0), (0.0, 11.0), (0.0, 12.0)]);
        assert_eq!(course.count, 1);
        assert!((course.trains[0].last_ms - 12.0).abs() < 1e-6);
    }

    #[test]
    fn orders_are_broken_by_how_much_earlier_the_second_comes() {
        // It left 2 ms later and took 7 ms less: 5 ms, of which 0.2 are not known.
        let [came, next] = [(0.0, 20.0), (2.0, 15.0)].map(|(left, came)| Train::of(&sample(left, came)).unwrap());
        let two = Two::of(&came, &next);
        assert!(two.is_first);
        assert!((two.broken_by(two.first_ms, two.second_ms) - 4.8).abs() < 1e-6);
        assert_eq!(two.broken_by(two.second_ms, two.first_ms), 0.0);
    }
}
