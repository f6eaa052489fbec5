//! How well a path seems.

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
