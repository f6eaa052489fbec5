//! The use of a path: open, a backup, or shut, with the reason.
//!
//! One state machine follows the path of a pair of addresses from one opening to the next.
//! Scheduling, the host's policy of paths and the displays ask it whether a path carries data.
//! Health decides which paths become backups; that is one reason among others, like the peer's wish
//! or the application's.

use core::fmt;
use core::time::Duration;

use fairpath_core::Timestamp;

/// The use that is made of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// It may carry data as any other.
    Open,
    /// Data goes there only while no other path works.
    Backup(BackupReason),
    /// It carries nothing, or there is none.
    Shut(ShutReason),
}

/// The reason for keeping data off a path. If several hold, the first is reported.
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
    /// It is less healthy than another. A host also sets this for every path that it has made a
    /// backup, for whatever reason.
    Unwell,
}

/// The reason why a path carries nothing.
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
    /// The peer has a new address there, which is not validated yet.
    Moved,
    /// Its quota is used up.
    UsedUp,
}

/// The use of the path of a pair of addresses; there is at most one path at a time.
#[derive(Clone, Copy, Debug)]
pub struct UseState<P> {
    stage: Stage<P>,
    reasons: Reasons,
    /// How long a path waits before it is opened again.
    reopen_after: Duration,
    is_present: bool,
    is_shut: bool,
    /// Since when there has been no path.
    without_since: Timestamp,
}

/// Whether there is a path.
#[derive(Clone, Copy, Debug)]
enum Stage<P> {
    /// Not open; due to be opened at `until`, unless something prevents it.
    Waiting { until: Timestamp },
    /// Opened, not validated yet.
    Opening { path: P, since: Timestamp },
    /// Validated.
    Open { path: P },
}

/// All reasons that hold, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Reasons(u8);

impl<P: Copy> UseState<P> {
    /// A pair without a path, which may be opened at once.
    pub(crate) fn new(reopen_after: Duration, now: Timestamp) -> Self {
        Self {
            stage: Stage::Waiting { until: now },
            reasons: Reasons::default(),
            reopen_after,
            is_present: true,
            is_shut: false,
            without_since: now,
        }
    }

    /// The use that is made of the path, and why.
    pub fn path_use(&self) -> PathUse {
        match self.stage {
            Stage::Open { .. } => self.backup().map_or(PathUse::Open, PathUse::Backup),
            _ if self.is_shut => PathUse::Shut(ShutReason::OnPurpose),
            Stage::Opening { .. } => PathUse::Shut(ShutReason::Opening),
            Stage::Waiting { .. } if !self.is_present => PathUse::Shut(ShutReason::NoInterface),
            Stage::Waiting { .. } => PathUse::Shut(ShutReason::Lost),
        }
    }

    /// Why data is kept off the path while another is there; `None` if it is not.
    pub fn backup(&self) -> Option<BackupReason> {
        BackupReason::ALL.into_iter().find(|reason| self.holds(*reason))
    }

    /// Whether data is kept off it for this reason.
    pub fn holds(&self, reason: BackupReason) -> bool {
        self.reasons.0 & reason.bit() != 0
    }

    /// The path that is open, or being opened.
    pub fn path(&self) -> Option<P> {
        match self.stage {
            Stage::Waiting { .. } => None,
            Stage::Opening { path, .. } | Stage::Open { path } => Some(path),
        }
    }

    /// Whether the path is validated, and not closed.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. })
    }

    /// How long the path has been being opened; `None` if it is not.
    pub fn opening_for(&self, now: Timestamp) -> Option<Duration> {
        match self.stage {
            Stage::Opening { since, .. } => Some(now.since(since)),
            Stage::Waiting { .. } | Stage::Open { .. } => None,
        }
    }

    /// How long the interface has been there without an open path; `None` if there is a path, or
    /// should be none.
    pub fn waits_for(&self, now: Timestamp) -> Option<Duration> {
        (self.is_present && !self.is_shut && !self.is_open()).then(|| now.since(self.without_since))
    }

    /// Whether it is time to open a path.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let Stage::Waiting { until } = self.stage else { return false };
        self.is_present && !self.is_shut && now >= until
    }

    /// Sets or clears a reason for keeping data off the path. All reasons but the application's end
    /// with the path.
    pub fn keep_off(&mut self, reason: BackupReason, holds: bool) {
        match holds {
            true => self.reasons.0 |= reason.bit(),
            false => self.reasons.0 &= !reason.bit(),
        }
    }

    /// Whether the application has closed the path for good.
    pub fn set_shut(&mut self, is_shut: bool) {
        self.is_shut = is_shut;
    }

    /// Whether the interface is there. One that comes back is tried at once.
    pub fn set_present(&mut self, is_present: bool, now: Timestamp) {
        if is_present && !self.is_present {
            self.without_since = now;
            if matches!(self.stage, Stage::Waiting { .. }) {
                self.stage = Stage::Waiting { until: now };
            }
        }
        self.is_present = is_present;
    }

    /// The path could not be opened now.
    pub fn on_not_opened(&mut self, now: Timestamp) {
        self.stage = Stage::Waiting { until: now + self.reopen_after };
    }

    /// Replaces the path.
    pub(crate) fn begin(&mut self, path: P, is_validated: bool, now: Timestamp) {
        self.reasons.0 &= BackupReason::Asked.bit();
        self.stage = Stage::Opening { path, since: now };
        if is_validated {
            self.validated();
        }
    }

    /// The path is validated.
    pub(crate) fn validated(&mut self) {
        if let Some(path) = self.path() {
            self.stage = Stage::Open { path };
        }
    }

    pub(crate) fn closed(&mut self, now: Timestamp) {
        if self.is_open() {
            self.without_since = now;
        }
        self.stage = Stage::Waiting { until: now + self.reopen_after };
    }
}

impl BackupReason {
    const ALL: [Self; 5] = [Self::Declined, Self::Asked, Self::Slow, Self::BrokenOff, Self::Unwell];

    fn bit(self) -> u8 {
        1 << self as u8
    }
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
            Self::Moved => "the peer's new address is not confirmed yet",
            Self::UsedUp => "its quota is used up",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    const WAIT: Duration = Duration::from_millis(250);

    #[test]
    fn a_path_that_was_closed_waits_and_one_whose_interface_comes_back_does_not() {
        let mut state = UseState::<u8>::new(WAIT, ms(0));
        assert!(state.is_due(ms(0)), "it was never tried");
        state.begin(1, true, ms(0));
        state.closed(ms(5_000));
        assert!(!state.is_due(ms(5_249)) && state.is_due(ms(5_250)));
        state.on_not_opened(ms(5_250));
        assert!(!state.is_due(ms(5_499)) && state.is_due(ms(5_500)));
        state.set_present(false, ms(5_400));
        assert!(!state.is_due(ms(60_000)), "where would it begin");
        assert_eq!(state.waits_for(ms(60_000)), None);
        state.on_not_opened(ms(59_900));
        state.set_present(true, ms(60_000));
        assert!(state.is_due(ms(60_000)));
        assert_eq!(state.waits_for(ms(60_100)), Some(Duration::from_millis(100)));
    }

    #[test]
    fn a_path_is_shut_until_it_is_validated_and_a_backup_for_the_first_of_its_reasons() {
        let mut state = UseState::<u8>::new(WAIT, ms(0));
        assert_eq!(state.path_use(), PathUse::Shut(ShutReason::Lost));
        state.begin(1, false, ms(0));
        assert_eq!(state.path_use(), PathUse::Shut(ShutReason::Opening));
        state.validated();
        assert_eq!(state.path_use(), PathUse::Open);
        for reason in [BackupReason::Unwell, BackupReason::Slow, BackupReason::Asked, BackupReason::Declined] {
            state.keep_off(reason, true);
            assert_eq!(state.path_use(), PathUse::Backup(reason), "it stands before the others");
        }
        state.keep_off(BackupReason::Declined, false);
        state.begin(2, true, ms(2));
        assert_eq!(state.path_use(), PathUse::Backup(BackupReason::Asked), "the others ended with the path");
        state.closed(ms(3));
        state.set_present(false, ms(4));
        assert_eq!(state.path_use(), PathUse::Shut(ShutReason::NoInterface));
        state.set_shut(true);
        assert_eq!((state.path_use(), state.waits_for(ms(5))), (PathUse::Shut(ShutReason::OnPurpose), None));
    }
}
