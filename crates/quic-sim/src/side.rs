//! The two ends.

/// One of the ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that connects.
    Client,
    /// The end that is connected to.
    Server,
}

impl Side {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Client, Self::Server];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}
