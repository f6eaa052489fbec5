//! The limit of a path: the network, its window, or the application.
//!
//! Detection, congestion control and the measurement of rates ask the same question and get the same answer.

use fairpath_core::{RttEstimator, Timestamp};

use crate::steady::Steadiness;

/// A path that may send and does not for this long lacks data, or the scheduler keeps data off it.
/// Timers of hosts and their bursts make gaps that are shorter. In nanoseconds: 5 ms.
const STARVED_NS: u64 = 5_000_000;

/// How much of its allowance a path uses.
#[derive(Debug)]
pub(crate) struct Usage {
    /// When the window was last full.
    full_at: Option<Timestamp>,
    /// When the path last used all that it was allowed.
    used_at: Option<Timestamp>,
    /// When the path was last found to have used less than that for a while.
    slack_at: Timestamp,
    /// How steadily it is sent on.
    pub(crate) steadiness: Steadiness,
}

impl Usage {
    /// For a path that was opened now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { full_at: None, used_at: None, slack_at: now, steadiness: Steadiness::default() }
    }

    /// Called before anything is taken off the bytes in flight, while no datagram has room in the
    /// window. The path carries all it may, even if nothing left since `unchanged_since`: losses
    /// may keep a window full for many round trips.
    pub(crate) fn on_found_full(&mut self, unchanged_since: Timestamp, rtt: &RttEstimator, now: Timestamp) {
        if self.used_at.is_none_or(|used_at| used_at < unchanged_since) && !within_a_round(self.used_at, rtt, now) {
            self.slack_at = now;
        }
        self.used_at = Some(now);
    }

    /// Called like [`on_found_full`](Self::on_found_full), while there has been room since
    /// `free_since`. Returns whether the path has carried less than it could for a while, so that
    /// its rate now tells nothing of its capacity [BBRv3 §4.1.2.4].
    pub(crate) fn on_found_free(&mut self, free_since: Timestamp, now: Timestamp) -> bool {
        // A busy host reads several acknowledgements before it can send; room from the first is no
        // slack yet.
        let may_send_since = free_since.max(self.used_at.unwrap_or_default());
        let is_starved = now.nanos_since(may_send_since) > STARVED_NS;
        if is_starved {
            self.slack_at = now;
        }
        is_starved
    }

    /// A packet left: whether it filled the window, and whether another may not follow it.
    pub(crate) fn on_filled(&mut self, window: bool, all_used: bool, rtt: &RttEstimator, now: Timestamp) {
        if window {
            self.full_at = Some(now);
        }
        if all_used {
            self.steadiness.on_full();
            if !within_a_round(self.used_at, rtt, now) {
                self.slack_at = now;
            }
            self.used_at = Some(now);
        }
    }

    /// Whether a delay measured now tells of the network and not of the application.
    ///
    /// The path must have used all it was allowed, or been sent on at a steady rate far below that,
    /// while the packet and those ahead of it left. An application that pauses lets the queues of
    /// all paths fall at once, and fills them again, shared or not.
    pub(crate) fn tells_of_the_network(&self, rtt: &RttEstimator, now: Timestamp) -> bool {
        self.is_network_limited(rtt, now) || self.steadiness.is_steady(now)
    }

    /// Whether the path used all it was allowed during that time.
    pub(crate) fn is_network_limited(&self, rtt: &RttEstimator, now: Timestamp) -> bool {
        within_a_round(self.used_at, rtt, now) && now.nanos_since(self.slack_at) > 2 * rtt.smoothed_nanos()
    }

    /// Whether the window was full at some time since a packet sent at `sent_at` left: in the round
    /// trip of its acknowledgement, whatever the smoothed one is. If the window is a single burst,
    /// that is the moment of the burst itself.
    pub(crate) fn window_was_full(&self, sent_at: Timestamp) -> bool {
        self.full_at.is_some_and(|full_at| full_at >= sent_at)
    }
}

fn within_a_round(at: Option<Timestamp>, rtt: &RttEstimator, now: Timestamp) -> bool {
    at.is_some_and(|at| now.nanos_since(at) <= rtt.smoothed_nanos())
}
