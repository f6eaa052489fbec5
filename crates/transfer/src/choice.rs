//! Wishes of the sender's user about the content of directories.

/// How symbolic links inside directories are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// They are left out.
    Skip,
    /// They are sent as links where they stay inside what is sent; others are left out and named.
    #[default]
    Keep,
    /// Their targets are sent in their place.
    Follow,
}

/// Selects among the content of the named directories.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Symbolic links inside directories.
    pub links: Links,
}
