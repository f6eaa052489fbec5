//! Fairpath's coupled congestion control for programs that use [`noq`](https://docs.rs/noq) or iroh themselves.
//!
//! The paths of a connection that share a bottleneck take together as much as one connection would; paths that share
//! none are each at full speed. It is found out from their delays which are which.
//!
//! ```
//! use fairpath_noq::Coupled;
//! use noq_proto::TransportConfig;
//!
//! // One for each connection: at the end that connects for `connect_with`, at the other for `accept_with`.
//! let coupled = Coupled::new();
//! let mut transport = TransportConfig::default();
//! transport.max_concurrent_multipath_paths(4);
//! coupled.install(&mut transport);
//! assert!(coupled.paths().is_empty(), "none yet");
//! ```
//!
//! # Limits
//!
//! - **One connection each.** noq makes the controllers of all connections by the one factory of their settings, and
//!   does not say for which. Connections that shared a [`Coupled`] would be coupled with each other.
//! - **noq chooses the paths**, the available one with the lowest number first. Of [`EngineConfig`] the scheduler,
//!   terms of paths other than caps, and the bound of all paths together have no effect.
//! - **Data that waits for a silent path** waits until noq gives that path up.
//! - **Only the sending end couples.**
//! - **Round trips**, not one-way delays, are what the detector sees: noq tells no others.

use std::time::Instant;

pub use fairpath_engine::{Coupling, EngineConfig, PairVerdict, PathSnapshot, UnknownName};
use fairpath_quic_core::Controllers;
use noq_proto::TransportConfig;

/// The congestion control of one connection, which sees all its paths. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Coupled(Controllers);

impl Default for Coupled {
    fn default() -> Self {
        Self::new()
    }
}

impl Coupled {
    /// The defaults for real networks: CUBIC, coupled where paths are found to share a bottleneck.
    pub fn new() -> Self {
        Self::with(&EngineConfig::live()).expect("the names of the defaults are known")
    }

    /// With another algorithm, detector or coupling.
    ///
    /// # Errors
    ///
    /// [`UnknownName`] where there is none of a name, with those that there are.
    pub fn with(config: &EngineConfig) -> Result<Self, UnknownName> {
        Controllers::new(config).map(Self)
    }

    /// Has the connection with these settings use it. Multipath is not turned on by this:
    /// `max_concurrent_multipath_paths` does that.
    pub fn install(&self, transport: &mut TransportConfig) {
        transport.congestion_controller_factory(self.0.factory());
    }

    /// The paths in the order in which noq made them, as they are now. Paths in the same group are coupled.
    pub fn paths(&self) -> Vec<PathSnapshot> {
        self.0.snapshots(now())
    }

    /// Pair by pair, how sure it is that paths share a bottleneck. None where the coupling is fixed.
    pub fn pairs(&self) -> Vec<PairVerdict> {
        self.0.verdicts(now())
    }
}

#[allow(clippy::disallowed_methods, reason = "noq's runtime reads this clock, too")]
fn now() -> Instant {
    Instant::now()
}
