//! The datagrams of an application that wait to leave, under CoDel.
//!
//! Where more comes than the paths carry, a queue grows until it is full, and from then on each datagram waits as long as a
//! full one takes. So where each has waited for more than 5 ms during 100 ms, the oldest is dropped, and again at shrinking
//! distances until the wait is short. A burst that is gone sooner is left alone. A datagram that says where it can carry a mark
//! of congestion is marked instead of dropped, and leaves.
//!
//! # Source
//!
//! [RFC8289] §5, as a judgement on each datagram that is taken out.
//!
//! # Deviations
//!
//! - The last datagram that waits is never dropped, where the RFC spares the last bytes of a queue.
//! - The distance to the next drop is set with each drop, also where the wait is short afterwards.

use std::collections::VecDeque;
use web_time::{Duration, Instant};

use bytes::Bytes;

/// The wait that is acceptable for good [RFC8289 §4].
const TARGET: Duration = Duration::from_millis(5);

/// How long a longer one is put up with [RFC8289 §4].
const INTERVAL: Duration = Duration::from_millis(100);

/// The most datagrams that wait: they are for what is worth little when it is old.
const WAITING_MAX: usize = 256;

/// Where a datagram carries a mark of congestion: these bits of this byte are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionMark {
    /// The place of the byte in the datagram.
    pub at: usize,
    /// The bits.
    pub bits: u8,
}

/// Datagrams in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    waiting: VecDeque<Waiting>,
    /// When the wait has been too long for an interval.
    above_until: Option<Instant>,
    /// While datagrams are dropped: when the next one is.
    drop_next: Option<Instant>,
    /// The drops since that began, and when it ended last.
    count: u32,
    ended: Option<Instant>,
}

#[derive(Debug)]
struct Waiting {
    came: Instant,
    datagram: Vec<u8>,
    mark: Option<CongestionMark>,
}

impl Datagrams {
    /// Whether one more may wait.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn push(&mut self, datagram: Vec<u8>, mark: Option<CongestionMark>, now: Instant) {
        self.waiting.push_back(Waiting { came: now, datagram, mark });
    }

    /// The next one to leave. Those before it are dropped whose turn that is, unless they can be marked.
    pub(super) fn pop(&mut self, now: Instant) -> Option<Bytes> {
        loop {
            let Waiting { came, mut datagram, mark } = self.waiting.pop_front()?;
            if !self.is_to_drop(now, now.saturating_duration_since(came)) {
                return Some(datagram.into());
            }
            if let Some(mark) = mark
                && let Some(byte) = datagram.get_mut(mark.at)
            {
                *byte |= mark.bits;
                return Some(datagram.into());
            }
        }
    }

    /// Whether CoDel drops the head, which waited this long [RFC8289 §5].
    fn is_to_drop(&mut self, now: Instant, waited: Duration) -> bool {
        if waited < TARGET || self.waiting.is_empty() {
            self.above_until = None;
            if self.drop_next.take().is_some() {
                self.ended = Some(now);
            }
            return false;
        }
        match self.drop_next {
            Some(next) if now < next => return false,
            Some(next) => {
                self.count += 1;
                self.drop_next = Some(control_law(next, self.count));
            }
            None if now < *self.above_until.get_or_insert(now + INTERVAL) => return false,
            None => {
                // Where the queue was long a short time ago, the drops go on about as dense as they were.
                let is_recent = self.ended.is_some_and(|ended| now < ended + 16 * INTERVAL);
                self.count = if is_recent && self.count > 2 { self.count - 2 } else { 1 };
                self.drop_next = Some(control_law(now, self.count));
            }
        }
        true
    }
}

// [RFC8289 §5]
//
//     t + INTERVAL / sqrt(count)
fn control_law(from: Instant, count: u32) -> Instant {
    from + INTERVAL.div_f64(f64::from(count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Runs `millis` milliseconds in which datagrams come `each` apart and leave one a millisecond.
    /// Returns how many of those that found room were dropped, and the longest wait in the second
    /// half.
    fn run(each: Duration, millis: u32) -> (usize, Duration) {
        let (dropped, _, longest) = run_with(each, millis, None);
        (dropped, longest)
    }

    /// The same for datagrams that can be marked there, and how many were.
    fn run_with(each: Duration, millis: u32, mark: Option<CongestionMark>) -> (usize, usize, Duration) {
        let (mut datagrams, begun) = (Datagrams::default(), Instant::now());
        let (mut came, mut left, mut marked, mut next) = (0, 0, 0, begun);
        let mut longest = Duration::ZERO;
        for now in (0..millis).map(|at| begun + at * MS) {
            while next <= now {
                if datagrams.has_room() {
                    let at = u32::try_from((next - begun).as_micros()).unwrap();
                    datagrams.push([&at.to_be_bytes()[..], &[0]].concat(), mark, next);
                    came += 1;
                }
                next += each;
            }
            if let Some(datagram) = datagrams.pop(now) {
                left += 1;
                marked += usize::from(datagram[4] == 0b11);
                let at = u32::from_be_bytes(datagram[..4].try_into().unwrap());
                if now - begun > millis / 2 * MS {
                    longest = longest.max(now - begun - Duration::from_micros(at.into()));
                }
            }
        }
        (came - left - datagrams.waiting.len(), marked, longest)
    }

    #[test]
    fn what_leaves_as_fast_as_it_comes_is_never_dropped() {
        assert_eq!(run(MS, 5_000), (0, Duration::ZERO));
    }

    #[test]
    fn a_queue_that_stands_is_kept_short() {
        // A tenth more comes than leaves. Without drops 256 wait, which takes 256 ms.
        let (dropped, longest) = run(MS * 10 / 11, 20_000);
        assert!(dropped > 1_000, "{dropped}");
        assert!(longest < 100 * MS, "{longest:?}");
    }

    #[test]
    fn a_burst_that_is_gone_within_the_interval_is_left_alone() {
        let (mut datagrams, begun) = (Datagrams::default(), Instant::now());
        for _ in 0..10 {
            (0..90).for_each(|_| datagrams.push(b"burst".to_vec(), None, begun));
            assert!((0..90_u32).all(|at| datagrams.pop(begun + at * MS).is_some()));
            assert_eq!(datagrams.pop(begun + 90 * MS), None);
        }
    }

    #[test]
    fn what_can_be_marked_is_marked_instead_of_dropped() {
        let mark = Some(CongestionMark { at: 4, bits: 0b11 });
        let (dropped, marked, _) = run_with(MS * 10 / 11, 20_000, mark);
        assert!(dropped == 0 && marked > 1_000, "{dropped} {marked}");
        assert_eq!(run_with(MS, 5_000, mark).1, 0, "there is no congestion");
        // A place that the datagram does not have marks nothing.
        let (dropped, ..) = run_with(MS * 10 / 11, 20_000, Some(CongestionMark { at: 5, bits: 1 }));
        assert!(dropped > 1_000, "{dropped}");
    }
}
