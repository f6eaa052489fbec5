//! Errors of descriptions that cannot be meant.

/// A description of a link that cannot be meant. The fault is the description's.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkConfigError {
    /// A probability is not one.
    #[error("{field} is {value}, which is no probability: it must be from 0 to 1")]
    NotAProbability {
        /// Which.
        field: &'static str,
        /// The value.
        value: f64,
    },
    /// The weight of an average is not above 0 and at most 1.
    #[error("queue.weight is {value}, and it must be above 0 and at most 1")]
    NotAWeight {
        /// The value.
        value: f64,
    },
    /// The profile of a managed queue has no points.
    #[error("queue.points is empty, so nothing would ever be dropped early")]
    NoPoints,
    /// The thresholds of a managed queue are not amounts of one unit that do not fall.
    #[error("queue.points: threshold {number} must be of the unit of the first, and not below the one before")]
    BadThreshold {
        /// The point's number, from 1.
        number: usize,
    },
    /// An interval has no length.
    #[error("queue.interval is 0, so the drops would have no distance")]
    NoInterval,
    /// There are no queues for the flows.
    #[error("queue.queues is 0, and flows need at least one queue")]
    NoQueues,
    /// A turn has no length.
    #[error("queue.quantum is 0, and a turn must let at least a byte pass")]
    NoQuantum,
    /// A policer's bucket holds nothing.
    #[error("policer.burst is 0, so that nothing would ever pass")]
    NoBurst,
}

impl LinkConfigError {
    /// Refuses a probability that is none.
    pub(crate) fn check_probability(field: &'static str, value: f64) -> Result<(), Self> {
        if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(Self::NotAProbability { field, value }) }
    }
}
