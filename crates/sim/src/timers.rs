//! The timers of the hosts.
//!
//! A timer that is moved again and again, as each acknowledgement moves a retransmission timer, is
//! not moved here: its owner keeps the true deadline and lets the old entry come up, see [`Lazy`].

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use fairpath_core::Timestamp;

/// The owner of a timer, and its purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The application of a flow has something to do.
    Source { flow: u32 },
    /// A connection's path may have lost something.
    Recovery { connection: u32, generation: u32, path: u32 },
    /// A path may be sent on again.
    Pacing { connection: u32, generation: u32 },
    /// A path may be due to be probed.
    Probe { connection: u32, generation: u32 },
    /// An acknowledgement has waited long enough.
    Ack { connection: u32, generation: u32, path: u32 },
    /// A live stream has something to do.
    Live { connection: u32, generation: u32 },
    /// A link changes.
    Change,
    /// Summaries begin.
    WarmUp,
    /// The recorder takes a sample.
    Sample,
}

/// Timers in order of time; equal times in the order in which they were set.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Timestamp, u64, Timer)>>,
    set: u64,
}

impl Timers {
    /// Sets a timer.
    pub(crate) fn set(&mut self, at: Timestamp, timer: Timer) {
        self.heap.push(Reverse((at, self.set, timer)));
        self.set += 1;
    }

    /// When the next one is due; [`Timestamp::MAX`] where there is none.
    pub(crate) fn next(&self) -> Timestamp {
        self.heap.peek().map_or(Timestamp::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes out the next one that is due by `end`.
    pub(crate) fn pop_by(&mut self, end: Timestamp) -> Option<(Timestamp, Timer)> {
        if self.next() > end {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, timer))| (at, timer))
    }
}

/// A deadline that moves often. One entry among the timers stands for it, at or before its time;
/// when that comes up too early it is set again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lazy {
    armed: Timestamp,
}

impl Default for Lazy {
    fn default() -> Self {
        Self { armed: Timestamp::MAX }
    }
}

impl Lazy {
    /// Whether an entry stands for it.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed < Timestamp::MAX
    }

    /// Makes sure that `timer` comes up by `deadline`.
    pub(crate) fn arm(&mut self, deadline: Timestamp, timer: Timer, timers: &mut Timers) {
        if deadline < self.armed {
            self.armed = deadline;
            timers.set(deadline, timer);
        }
    }

    /// The entry set for `at` came up: whether it is the one that counts. It is set anew where the
    /// deadline is later, and then nothing is due.
    pub(crate) fn is_due(&mut self, at: Timestamp, deadline: Timestamp, timer: Timer, timers: &mut Timers) -> bool {
        if at != self.armed {
            return false;
        }
        self.armed = Timestamp::MAX;
        if deadline > at {
            if deadline < Timestamp::MAX {
                self.arm(deadline, timer, timers);
            }
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_up_in_the_order_in_which_they_were_set() {
        let mut timers = Timers::default();
        let at = Timestamp::from_millis(5);
        timers.set(at, Timer::Sample);
        timers.set(at, Timer::Change);
        timers.set(Timestamp::from_millis(4), Timer::WarmUp);
        let order: Vec<_> = std::iter::from_fn(|| timers.pop_by(Timestamp::MAX)).map(|(_, timer)| timer).collect();
        assert_eq!(order, [Timer::WarmUp, Timer::Sample, Timer::Change]);
        assert_eq!(timers.next(), Timestamp::MAX);
    }

    #[test]
    fn a_deadline_that_moved_away_is_not_due_when_its_first_entry_comes_up() {
        let (mut timers, mut lazy) = (Timers::default(), Lazy::default());
        let ms = Timestamp::from_millis;
        lazy.arm(ms(10), Timer::Sample, &mut timers);
        lazy.arm(ms(20), Timer::Sample, &mut timers);
        let (at, timer) = timers.pop_by(Timestamp::MAX).unwrap();
        assert!(!lazy.is_due(at, ms(20), timer, &mut timers));
        let (at, timer) = timers.pop_by(Timestamp::MAX).unwrap();
        assert_eq!(at, ms(20));
        assert!(lazy.is_due(at, ms(20), timer, &mut timers));
        assert_eq!(timers.next(), Timestamp::MAX);
    }

    #[test]
    fn a_deadline_that_came_nearer_is_due_then_and_only_once() {
        let (mut timers, mut lazy) = (Timers::default(), Lazy::default());
        let ms = Timestamp::from_millis;
        lazy.arm(ms(20), Timer::Sample, &mut timers);
        lazy.arm(ms(10), Timer::Sample, &mut timers);
        let (at, timer) = timers.pop_by(Timestamp::MAX).unwrap();
        assert!(lazy.is_due(at, ms(10), timer, &mut timers));
        let (at, timer) = timers.pop_by(Timestamp::MAX).unwrap();
        assert!(!lazy.is_due(at, Timestamp::MAX, timer, &mut timers), "what is left of the first");
    }
}
