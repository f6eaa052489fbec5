//! The parameters of a [`Budget`](super::Budget). Nobody sets them but `fairpath lab run default/budget`, which halves and
//! doubles each.

use core::time::Duration;

use fairpath_core::Bitrate;

/// The parameters of a [`Budget`](super::Budget).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetParameters {
    /// The budget is a part of the mean of so long.
    pub mean_of: Duration,
    /// However long packets may take, none is to wait for longer than this.
    pub wait_max: Duration,
    /// Packets wait for a moment with each picture, and for longer with a large one. Those that have waited this long are
    /// more than the paths take.
    pub stands: Duration,
    /// Where packets would wait for too long, the budget is this part of what there is until they do not.
    pub drained: f64,
    /// The largest rise in a second, in parts of what there is: from nothing to all takes 20 s, in which an encoder makes a
    /// few pictures that begin anew.
    pub rises: f64,
    /// The part of the rates that it takes: a tenth is left free, so that a picture larger than others finds room.
    pub used: f64,
    /// The rate that may be tried, in parts of what has passed. A link that carries no more loses a third of it, for about
    /// as long as a loss takes to be seen.
    pub tries: f64,
    /// For how long it counts what has passed: an encoder whose picture stands still for a while may have what it had.
    pub passed_for: Duration,
    /// The rate that may be tried before anything has passed: a small picture takes it.
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
