//! What is said of a path beside what is measured.

use fairpath_core::Bitrate;

/// What a person or the host says of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTerms {
    /// It carries the stream only where no other can.
    pub backup: bool,
    /// What using it costs: it carries only what those that cost less have no room for.
    pub cost: u32,
    /// No more is sent on it.
    pub cap: Option<Bitrate>,
}

impl PathTerms {
    /// Of two paths that serve, the one that carries the stream has the lower price.
    pub(crate) fn price(&self) -> (bool, u32) {
        (self.backup, self.cost)
    }
}
