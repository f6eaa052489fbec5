//! The parameters of a [`Sender`](crate::Sender). Nobody sets them but `fairpath lab run default/live`, which halves and
//! doubles each.

use core::time::Duration;

use fairpath_rate::PROBING;

/// The parameters of a [`Sender`](crate::Sender).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveParameters {
    /// The part of the deadline in which a block fills. Its losses are then known and repaired
    /// while most of the deadline is left for the way.
    pub span_parts: u32,
    /// The share of sent data that may remain missing.
    pub residual: f64,
    /// A block of this many pieces has repair even if no loss is expected. That adds a sixth at
    /// most, and the first loss after a long time costs no round trip.
    pub protected_min: u32,
    /// How much may leave at once on a path, beside two packets: what its rate is in this time.
    pub burst: Duration,
    /// Answers that are missing in a row by chance this seldom mean that a path does not answer,
    /// or late.
    pub by_chance: f64,
    /// Where more is lost it is taken to be no more than this: four missing answers in a row say
    /// that a path is overdue.
    pub loss_max: f64,
    /// The least that answers are taken to vary by: what timers of hosts and the other packets of a
    /// picture do.
    pub varies: Duration,
    /// Rates are set anew no more often.
    pub solve_every: Duration,
    /// The queueing budget, as a fraction of the deadline. The rest is for the way and for one
    /// retransmission.
    pub waits: u32,
    /// The share of late packets from which on a path counts for nothing in the budget; below it,
    /// it counts in proportion.
    pub late_max: f64,
    /// The share of what the others carry that a path carries in copies, to be measured.
    pub probing: f64,
    /// A path that carries nothing carries a copy that often, while anything is sent.
    pub probe_every: Duration,
    /// The same for a path of higher cost: probing costs, and shows in a few seconds what the path
    /// is worth.
    pub dear_probe_every: Duration,
    /// How long delays count.
    pub delays_for: Duration,
    /// The window in which delays alone may show that a path has become late: the long window hides
    /// a filled queue for seconds.
    pub newest_for: Duration,
}

impl LiveParameters {
    pub(crate) const DEFAULT: Self = Self {
        span_parts: 4,
        residual: 1e-3,
        protected_min: 5,
        burst: Duration::from_millis(5),
        by_chance: 1e-4,
        loss_max: 0.1,
        varies: Duration::from_millis(5),
        solve_every: Duration::from_millis(100),
        waits: 6,
        late_max: 0.25,
        probing: PROBING,
        probe_every: Duration::from_millis(300),
        dear_probe_every: Duration::from_secs(1),
        delays_for: Duration::from_secs(5),
        newest_for: Duration::from_millis(500),
    };
}

impl Default for LiveParameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}
