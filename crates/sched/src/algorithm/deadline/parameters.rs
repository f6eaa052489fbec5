//! The parameters of [`Deadline`](super::Deadline). Only `fairpath lab run default/deadline` sets
//! them: it halves and doubles each.

use core::time::Duration;

use crate::losses::LossMemory;
use crate::scheduler::Due;

/// The parameters of [`Deadline`](super::Deadline).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeadlineParameters {
    /// Neither of two paths is better that differ by less in what comes in time: it is noise in a hundred packets.
    pub alike: f64,
    /// A path does not serve, whatever it costs, whose share in time is less than this part of the best one's. It would
    /// need about as much repair again as it lacks, and a burst is more than that.
    pub serves: f64,
    /// A quarter of the deadline may be given away. A path that takes longer than the quickest by that is slow: a packet
    /// lost there is seldom in time when it was sent again, and all wait for what it carries. A packet that waited that
    /// long takes any path that brings half in time, since it would be dropped otherwise, or be late with all behind it.
    /// For a better path it waits half as long.
    pub parts: u32,
    /// However long the deadline is, a path that takes longer than the quickest by this is slow.
    pub slow: Duration,
    /// However long the deadline is, a packet that waited for this takes any path that brings half in time.
    pub waits_longest: Duration,
    /// How losses are judged.
    pub losses: LossMemory,
}

impl DeadlineParameters {
    const DEFAULT: Self = Self {
        alike: 0.02,
        serves: 0.9,
        parts: 4,
        slow: Duration::from_millis(35),
        waits_longest: Duration::from_millis(100),
        losses: LossMemory::DEFAULT,
    };

    /// How long a packet with this deadline waits for a good path.
    pub(super) fn longest_wait(&self, deadline: Duration) -> Duration {
        (deadline / self.parts).min(self.waits_longest)
    }

    /// Whether the packet would be dropped before long, or waits for longer than anybody should.
    pub(super) fn is_old(&self, due: &Due) -> bool {
        due.deadline.saturating_sub(due.left) >= self.longest_wait(due.deadline)
    }
}

impl Default for DeadlineParameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}
