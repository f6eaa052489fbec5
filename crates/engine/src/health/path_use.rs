//! The use that is made of a path: one answer, with its reason, for whoever asks and for people.

use core::fmt;

/// The use that is made of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// It may carry data as any other.
    Open,
    /// Data goes there only while no other path works.
    Backup(BackupReason),
    /// There is no path.
    Shut(ShutReason),
}

/// The reason for which data is kept off a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupReason {
    /// The peer wants it so.
    Declined,
    /// The application wants it so.
    Asked,
    /// Acknowledgements would wait on it.
    Slow,
    /// Data that came steadily broke off, and goes on coming on another path.
    BrokenOff,
    /// It is not as well as another.
    Unwell,
}

/// The reason for which there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutReason {
    /// The application closed it for good.
    OnPurpose,
    /// Its interface is not there.
    NoInterface,
    /// It is being validated.
    Opening,
    /// It was lost, or could not be opened: it is tried again.
    Lost,
}

impl fmt::Display for BackupReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declined => "the peer keeps data off it",
            Self::Asked => "data was to be kept off it",
            Self::Slow => "acknowledgements would wait on it",
            Self::BrokenOff => "what came on it broke off",
            Self::Unwell => "another one answers better",
        })
    }
}

impl fmt::Display for ShutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OnPurpose => "it was closed on purpose",
            Self::NoInterface => "its interface is not there",
            Self::Opening => "it is still being opened",
            Self::Lost => "it leads nowhere now, and is tried again",
        })
    }
}
