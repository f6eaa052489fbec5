//! The condition of a path.

/// The condition of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It works.
    Healthy,
    /// Nothing comes in on it, though the peer was asked for signs of life. Its packets are still
    /// acknowledged, by way of another path.
    Deaf,
    /// Nothing comes in on it, and it is unknown whether anything arrives.
    Silent,
    /// Datagrams come in on it, but its packets are not acknowledged. Acknowledgements may travel
    /// on another path, so the fault may be there.
    Unacknowledged,
    /// Nothing comes in on it, and its packets are not acknowledged.
    Dead,
}

impl Condition {
    /// How strongly the condition speaks against sending on the path; 0 is best. Silence alone is
    /// no reason if packets arrive: each end chooses where it sends, and each direction may have a
    /// path of its own.
    pub fn rank(self) -> u8 {
        match self {
            Self::Healthy | Self::Deaf => 0,
            Self::Silent => 1,
            Self::Unacknowledged => 2,
            Self::Dead => 3,
        }
    }
}
