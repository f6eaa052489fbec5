//! Why an emulation does not start.

use std::io;

use fairpath_net::TopologyError;

/// Errors before an emulation runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The description cannot be meant.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The operating system refused something.
    #[error("cannot {action}: {source}")]
    Os {
        /// The action that failed.
        action: &'static str,
        /// The answer.
        source: io::Error,
    },
}

impl EmulatorError {
    /// Wraps the operating system's answer to `action`.
    pub(crate) fn os(action: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Os { action, source }
    }
}
