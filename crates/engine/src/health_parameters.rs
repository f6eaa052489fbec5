//! The parameters of the health of paths. Only the table `health` of the benches of
//! `fairpath-faults` sets them: it halves and doubles each.

use core::time::Duration;

/// The parameters of the health of paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthParameters {
    /// A path on which nothing came in for this long is deaf, while data flows.
    pub deaf: Duration,
    /// A path is deaf after a silence of this many intervals between signs of life. Three signs are
    /// missing then, and a queue may have grown by most of one interval.
    pub signs: u32,
    /// Data flows if the connection carries this many datagrams in a second.
    pub busy_datagrams: u64,
    /// Data is still meant to flow for this long after: a dead path may have stopped it.
    pub busy_for: Duration,
    /// Minimum time between two changes of a path's relief. Round trips are measured anew
    /// meanwhile: a mean of eight samples, one in 150 ms, takes about as long.
    pub settled: Duration,
    /// A path is closed after it has been ill for this long, while another is healthy. Only then
    /// does a stack send the path's stream data again elsewhere.
    pub dead_after: Duration,
    /// The other path must have been seen to work this long after the first fell ill. If each
    /// direction has a path of its own, both ends fall silent one after the other, and the other
    /// path may seem healthy only at first.
    pub outlived: Duration,
    /// A path that has been ill for this long, while nothing arrives on any other, gets a second
    /// one beside it on the same pair. A stack may give up validating an address for good, and both
    /// ends may recover only in part.
    pub renew_after: Duration,
    /// A new address is not expected to be validated after this long: QUIC stacks ask only three
    /// times.
    pub unvalidated: Duration,
    /// How often this end sends on a path that is being opened. QUIC stacks probe it at intervals
    /// that grow to two seconds, each time with a packet of full size.
    pub probe_opening: Duration,
    /// A packet that comes this soon after a path was opened is no answer to the first probe.
    pub first_words: Duration,
    /// How long a path waits before it is opened again.
    pub reopen_after: Duration,
}

impl Default for HealthParameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl HealthParameters {
    /// The longest interval between signs of life on a path, while data flows.
    pub fn signs_every(&self) -> Duration {
        self.deaf / self.signs
    }

    const DEFAULT: Self = Self {
        deaf: Duration::from_millis(600),
        signs: 4,
        busy_datagrams: 40,
        busy_for: Duration::from_secs(10),
        settled: Duration::from_secs(2),
        dead_after: Duration::from_millis(600),
        outlived: Duration::from_millis(400),
        renew_after: Duration::from_secs(1),
        unvalidated: Duration::from_secs(2),
        probe_opening: Duration::from_millis(250),
        first_words: Duration::from_millis(500),
        reopen_after: Duration::from_millis(250),
    };
}
