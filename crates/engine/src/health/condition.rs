//! How well a path seems.

use core::time::Duration;

/// A path on which nothing came in for this long is deaf, where data is flowing: three signs of life
/// are missing, and a queue may have grown by 100 ms meanwhile.
pub(super) const DEAF: Duration = Duration::from_millis(600);

/// The same where hardly anything flows: only a keep-alive, once a second, is to be heard then.
const DEAF_WHEN_IDLE: Duration = Duration::from_millis(3500);

/// The same of a peer that promises no signs of life on paths that carry nothing of its own: longer than a
/// connection lives without a word.
const NEVER_DEAF: Duration = Duration::from_secs(3600);

/// What is to be heard of the peer on a path that works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Data, or signs of life in its place.
    Signs,
    /// Hardly anything flows: a keep-alive once a second.
    KeepAlives,
    /// The peer promises nothing.
    Nothing,
}

impl Expected {
    /// How long a path may be silent that works.
    pub(super) fn deaf_after(self) -> Duration {
        match self {
            Self::Signs => DEAF,
            Self::KeepAlives => DEAF_WHEN_IDLE,
            Self::Nothing => NEVER_DEAF,
        }
    }
}

/// How well a path seems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It works.
    Healthy,
    /// Nothing comes in on it, though the peer asks for signs of life as we do. What is sent on it is still
    /// acknowledged, by way of another path.
    Deaf,
    /// Nothing comes in on it, and nobody knows whether anything arrives.
    Silent,
    /// Something comes in on it, but what is sent on it is not acknowledged. Acknowledgements may travel
    /// on another path, so the fault may be there.
    Unacknowledged,
    /// Nothing comes in on it, and what is sent on it is not acknowledged.
    Dead,
}

impl Condition {
    /// What speaks against sending on the path, the least first. That nothing comes in is no reason where
    /// what is sent arrives: each end chooses where it sends, and each direction may have a path of its own.
    pub fn rank(self) -> u8 {
        match self {
            Self::Healthy | Self::Deaf => 0,
            Self::Silent => 1,
            Self::Unacknowledged => 2,
            Self::Dead => 3,
        }
    }
}
