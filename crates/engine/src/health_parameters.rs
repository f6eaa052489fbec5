//! The parameters of the health of paths. Nobody sets them but the table `health` of the benches of `fairpath-faults`, which
//! halves and doubles each.

use core::time::Duration;

/// The parameters of the health of paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HealthParameters {
    /// A path on which nothing came in for this long is deaf, where data is flowing.
    pub deaf: Duration,
    /// A path is deaf that was silent for this many of the times between two signs of life: three of them are missing, and
    /// a queue may have grown by most of one meanwhile.
    pub signs: u32,
    /// Data is flowing where the connection moves this many datagrams in a second.
    pub busy_datagrams: u64,
    /// And it is still meant to flow for this long after: a dead path may have stopped it.
    pub busy_for: Duration,
    /// Between two changes of a path round trips are measured anew: so long takes a mean of eight samples, of which there
    /// is one in 150 ms.
    pub settled: Duration,
    /// A path is closed after it has been sick for this long, while another is well. Only then does a stack send again,
    /// elsewhere, what of streams the path held.
    pub dead_after: Duration,
    /// The other path must have been seen to work this long after the first fell ill. Where each direction has a path of its
    /// own, both ends fall silent one after the other: a path that seems well at first is not a moment later.
    pub outlived: Duration,
    /// A path that has been sick for this long, where nothing arrives on any other, gets a second one beside it on the same
    /// pair. A stack may give up validating an address for good; and both ends may be well again only in part.
    pub renew_after: Duration,
    /// A path whose new address is not validated after this long never will be: QUIC stacks ask three times, for good.
    pub unvalidated: Duration,
    /// How often something is said on a path that is being opened: QUIC stacks ask whether it works at intervals that grow
    /// to two seconds, each time with a packet of full size.
    pub probe_opening: Duration,
    /// A packet that comes this soon after a path was opened is no answer to the first question.
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
    /// How often something is said on a path at least, while data flows.
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
