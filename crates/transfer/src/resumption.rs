//! When a sender goes on over another connection.

use std::time::Duration;

use fairpath_quic::Pauses;

/// When another connection is tried. `crates/faults/tests/all/pauses.rs` halves and doubles each of its times.
#[derive(Clone, Copy, Debug)]
pub struct Resumption {
    /// A connection on which nothing came in for this long is silent: at least once a second each path asks for a sign
    /// of life, and both ends do.
    pub silent: Duration,
    /// The pauses between tries.
    pub pauses: Pauses,
}

impl Resumption {
    /// That of all senders.
    pub const DEFAULT: Self = Self { silent: Duration::from_millis(2500), pauses: Pauses::DEFAULT };
}
