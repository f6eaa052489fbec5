//! The parameters by which the order of arrivals is judged.

use core::time::Duration;

/// The parameters by which the order of arrivals is judged. Nobody sets them but a test of
/// `fairpath-faults`, which halves and doubles each over the table of short queues.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrderParameters {
    /// The order of arrivals closer than this is unknown, in ms: a host without arrival timestamps
    /// reads one socket after the other.
    pub at_once_ms: f64,
    /// Packets of a path that left within this time are one train, with one time of departure.
    pub train: Duration,
    /// The distance of the remembered delays.
    pub past_every: Duration,
    /// The number of the remembered delays: those of a second.
    pub past: usize,
    /// The broken orders expected by chance that make a piece of evidence.
    pub piece: f64,
    /// The share of orders that two queues preserve while their hosts stand still, as both drain
    /// then. With 0.3 two of sixteen pairs of starved hosts were taken for one for a while.
    pub two_queues: f64,
    /// Orders broken by less, in ms, are put down to the timestamps of hosts.
    pub known_ms: f64,
}

impl OrderParameters {
    pub(super) const DEFAULT: Self = Self {
        at_once_ms: 0.1,
        train: Duration::from_micros(2),
        past_every: Duration::from_millis(25),
        past: 40,
        piece: 3.0,
        two_queues: 0.5,
        known_ms: 0.2,
    };
}

impl Default for OrderParameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}
