//! Order: one queue preserves the order of the packets of two paths; two queues do not.
//!
//! Beside TCP a short queue of 20 ms moves only within a round trip, and so do two. Processes that
//! are off the processor for as long let all queues of their host drain at once. Delays at one
//! moment also differ by the trains that left just before. So neither levels nor their changes tell
//! such queues apart; the order of arrivals does.
//!
//! If two packets leave one after the other on different paths, and the second arrives first, there
//! are two queues, or something besides the queue delayed the first. The time by which orders are
//! broken is compared with that expected by chance, if the delays of the paths were independent.
//!
//! This takes one-way delays, and only the order of departures: neither trains nor pauses of a host
//! change it. If the ways of two paths differ before or behind the queue, orders are broken by as
//! much. They then tell of one queue only if it moves by far more. Without evidence from orders
//! this module says nothing.

mod parameters;

use fairpath_core::{DelaySample, Timestamp};

pub use self::parameters::OrderParameters;
use super::changes::SPAN;
use super::evidence::{after_change, log_ratio};
use super::scales::Scale;
use super::{ConcordanceConfig, Path};
use crate::grid::millis;

/// The trains remembered of a path: those that arrived while others were in flight. With half and
/// twice as many nothing changes over short queues.
const TRAINS: usize = 48;

/// More than any one-way delay, whose zero is unknown: a packet that arrived early in the engine's
/// time left before it.
const BEFORE_NS: u64 = 1 << 40;

/// The arrivals on one path.
#[derive(Clone, Debug)]
pub(super) struct Course {
    parameters: OrderParameters,
    /// The newest trains; train n is at n modulo their number.
    trains: [Train; TRAINS],
    count: usize,
    /// Delays of the last second, in ms; once all are there, the oldest is at `next`.
    past: Box<[f32]>,
    known: usize,
    next: usize,
    noted: Option<Timestamp>,
}

/// A train of packets: its time of departure, and the delays of its first and last packet in ms.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    left_ns: u64,
    first_ms: f64,
    last_ms: f64,
}

impl Train {
    /// A train of one packet; `None` without a one-way delay, since round-trip times include the
    /// way back.
    fn of(sample: &DelaySample) -> Option<Self> {
        let delay = sample.one_way?;
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let left_ns = sample.now.as_nanos().saturating_add(BEFORE_NS).saturating_sub(delay_ns);
        Some(Self { left_ns, first_ms: millis(delay), last_ms: millis(delay) })
    }

    /// The time from another train's departure to this one's, in ms; zero if it left earlier.
    fn behind(&self, other: &Self) -> f64 {
        self.left_ns.saturating_sub(other.left_ns) as f64 / 1e6
    }
}

impl Course {
    /// No arrivals yet.
    pub(super) fn new(parameters: OrderParameters) -> Self {
        let past = vec![0.0; parameters.past.max(1)].into();
        Self { parameters, trains: [Train::default(); TRAINS], count: 0, past, known: 0, next: 0, noted: None }
    }

    /// Takes a sample.
    pub(super) fn add(&mut self, sample: &DelaySample) {
        let Some(train) = Train::of(sample) else { return };
        let past = self.past.len();
        let within = self.parameters.train.as_nanos() as u64;
        match self.count.checked_sub(1).map(|newest| &mut self.trains[newest % TRAINS]) {
            Some(newest) if train.left_ns < newest.left_ns => {
                // Reordered packets, or a new zero of the delays.
                (self.count, self.trains[0]) = (1, train);
            }
            Some(newest) if train.left_ns - newest.left_ns < within => newest.last_ms = train.last_ms,
            _ => {
                self.trains[self.count % TRAINS] = train;
                self.count += 1;
            }
        }
        if self.noted.is_none_or(|noted| sample.now.since(noted) >= self.parameters.past_every) {
            self.noted = Some(sample.now);
            self.past[self.next] = train.last_ms as f32;
            self.next = (self.next + 1) % past;
            self.known = (self.known + 1).min(past);
        }
    }

    /// The first train that left after this one, if one has arrived, or else the last one that left
    /// before it.
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

/// Two packets sent one after the other on different paths.
#[derive(Clone, Copy, Debug)]
struct Two {
    /// Orders broken by less are put down to timestamps.
    known_ms: f64,
    /// Whether the first one belongs to the path of the packet that just arrived.
    is_first: bool,
    /// The time from the first departure to the second, in ms.
    gap: f64,
    first_ms: f64,
    second_ms: f64,
}

impl Two {
    fn of(came: &Train, next: &Train, known_ms: f64) -> Self {
        let is_first = came.left_ns < next.left_ns;
        let (first, second) = if is_first { (came, next) } else { (next, came) };
        Self { known_ms, is_first, gap: second.behind(first), first_ms: first.last_ms, second_ms: second.first_ms }
    }

    fn came_within(&self, ms: f64) -> bool {
        (self.first_ms - self.second_ms - self.gap).abs() < ms
    }

    /// How much earlier than the first the second would arrive with these delays, in ms.
    fn broken_by(&self, first_ms: f64, second_ms: f64) -> f64 {
        (first_ms - second_ms - self.gap - self.known_ms).max(0.0)
    }
}

/// The evidence of the orders of two paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    /// For the arrivals of each path, the departure of the other path's train last compared with.
    compared: [u64; 2],
    /// The time by which orders were broken since the last piece of evidence, and that expected by
    /// chance, in ms.
    broken: f64,
    expected: f64,
    /// The number of broken orders expected by chance.
    breaks: f64,
    /// The orders compared, and those during which a dip showed.
    count: u32,
    dipped: u32,
    /// The step of the last piece of evidence.
    judged: u64,
    /// The log-odds of one queue: from all measurements, and from those while a dip showed.
    all: f64,
    tested: f64,
}

impl Order {
    /// A packet arrived on one of two paths: the second, if `is_second`. True: there is new
    /// evidence.
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
        let two = Two::of(&came, &next, config.order.known_ms);
        if step < settled || *compared == next.left_ns || two.came_within(config.order.at_once_ms) {
            return false;
        }
        *compared = next.left_ns;
        self.add(&two, [&own.course, &other.course]);
        self.dipped += u32::from([own, other].iter().any(|path| path.is_dipped(step, Scale::SHORTEST)));
        let is_piece = self.breaks >= config.order.piece && step >= self.judged + SPAN;
        if is_piece {
            self.judge(step, config);
        }
        is_piece
    }

    /// Compares an order with those expected by chance.
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

    /// Makes a piece of evidence from the orders compared.
    fn judge(&mut self, step: u64, config: &ConcordanceConfig) {
        let kept = (1.0 - self.broken / self.expected).max(0.0);
        let piece = log_ratio(kept, config.one_queue, 1.0) - log_ratio(kept, config.order.two_queues, 1.0);
        let changed = config.changed(step.saturating_sub(self.judged));
        let [all, tested] = [self.all, self.tested].map(|odds| after_change(odds, changed));
        let part = f64::from(self.dipped) / f64::from(self.count);
        let (compared, all, tested) = (self.compared, all + piece, tested + part * piece);
        *self = Self { compared, judged: step, all, tested, ..Self::default() };
    }

    /// The log-odds of one queue, from all measurements and from those while a dip showed; `None`
    /// if no order was compared.
    pub(super) fn log_odds(&self) -> Option<[f64; 2]> {
        let is_heard = self.count > 0 || self.judged > 0;
        is_heard.then_some([self.all, self.tested])
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// A packet that left and came at these times, in ms.
    fn sample(left: f64, came: f64) -> DelaySample {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        DelaySample { now: Timestamp::ZERO + ms(1_000.0 + came), rtt: Duration::ZERO, one_way: Some(ms(came - left)) }
    }

    fn course(packets: &[(f64, f64)]) -> Course {
        let mut course = Course::new(OrderParameters::DEFAULT);
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
        // The second left 2 ms later and took 7 ms less: broken by 5 ms, less the uncertainty of
        // 0.2 ms.
        let [came, next] = [(0.0, 20.0), (2.0, 15.0)].map(|(left, came)| Train::of(&sample(left, came)).unwrap());
        let two = Two::of(&came, &next, OrderParameters::DEFAULT.known_ms);
        assert!(two.is_first);
        assert!((two.broken_by(two.first_ms, two.second_ms) - 4.8).abs() < 1e-6);
        assert_eq!(two.broken_by(two.second_ms, two.first_ms), 0.0);
    }
}
