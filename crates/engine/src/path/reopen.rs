//! How long a path waits before it is opened again.

use core::time::Duration;

/// How long a path waits before it is opened again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReopenWaits {
    /// The first wait; each is twice as long as the one before.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// A path that stayed open this long has earned a short wait next time.
    pub stable: Duration,
}

impl ReopenWaits {
    pub(crate) const DEFAULT: Self =
        Self { first: Duration::from_millis(250), longest: Duration::from_secs(8), stable: Duration::from_secs(5) };
}

impl Default for ReopenWaits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
