//! The parameters of a [`Budget`](super::Budget). Nobody sets them but `fairpath lab run default/budget`, which halves and
//! doubles each.

use core::time::Duration;

use fairpath_core::Bitrate;

/// The parameters of a [`Budget`](super::Budget).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetParameters {
    /// The time over which the mean room is taken.
    pub mean_of: Duration,
    /// The longest wait of a packet, whatever the deadline.
    pub wait_max: Duration,
    /// Packets wait for a moment with each picture, and longer with a large one. A wait of this
    /// length means that the paths are overloaded.
    pub stands: Duration,
    /// The part of the room that the budget falls to while packets would wait for too long.
    pub drained: f64,
    /// The largest rise in a second, relative to the room. A rise from nothing to all takes 20 s,
    /// in which an encoder makes a few key pictures.
    pub rises: f64,
    /// The part of the room that it takes. A tenth is left free for larger pictures.
    pub used: f64,
    /// The rate that may be tried, relative to the rate that arrived. A link at its capacity loses
    /// a third of it, for about as long as a loss takes to be seen.
    pub tries: f64,
    /// How long an arrived rate is remembered: an encoder may return to it after a still picture.
    pub passed_for: Duration,
    /// The rate that may be tried before anything has arrived: enough for a small picture.
    pub first_try: Bitrate,
}

impl BudgetParameters {
    const DEFAULT: Self = Self {
        mean_of: Duration::from_secs(2),
        wait_max: Duration::from_millis(500),
        stands: Duration::from_millis(250),
        drained: 0.5,
        rises: 0.05,
        used: 0.9,
        tries: 1.5,
        passed_for: Duration::from_secs(10),
        first_try: Bitrate::from_kbps(500),
    };
}

impl Default for BudgetParameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}
