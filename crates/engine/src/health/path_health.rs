//! What is known of one path's health.

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

use super::condition::{Condition, DEAF, Expected};
use super::life::Life;
use super::path_use::{BackupReason, PathUse, ShutReason};
use super::steadiness::Steadiness;
use crate::engine::PathSnapshot;

/// A path on which data is refused is tried again at each look. So refusals that are further apart have
/// nothing to do with each other.
const REFUSALS_APART: Duration = Duration::from_millis(500);

/// What was seen of an open path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signs {
    /// How many datagrams have come in on it and have left on it; `None` where that is not known now.
    pub datagrams: Option<(u64, u64)>,
    /// The engine's view of it.
    pub snapshot: Option<PathSnapshot>,
    /// When the peer said last that more had come to it on the path; `None`: never.
    pub arrived_at: Option<Timestamp>,
}

/// What is known of the health of the paths on one pair of addresses, of which there is one at a time.
#[derive(Clone, Copy, Debug)]
pub struct PathHealth<P> {
    life: Life<P>,
    /// How often a path was opened.
    opened: u32,
    /// When the host began to find that the path takes no data, and when it last did: it leads to another address
    /// of the peer, which is not validated yet.
    refused: Option<(Timestamp, Timestamp)>,
    is_shut: bool,
    is_kept_back: bool,
    is_declined: bool,
    /// When the newest packet came in on the path, and how many had by then.
    heard_at: Timestamp,
    heard: u64,
    steadiness: Steadiness,
    /// How many we had sent by then.
    said: u64,
    /// When we last sent something on it that the peer has to answer, and what the engine had counted by
    /// then. Acknowledgements alone tell nobody whether the path works.
    asked_at: Timestamp,
    asked: ByteCount,
    /// How long ago, when it was looked at, the newest packet had left that was acknowledged.
    proven: Option<Duration>,
    condition: Condition,
    /// Since when the path has not been healthy.
    sick_since: Option<Timestamp>,
    is_backup: bool,
    /// The smoothed round-trip time, and what is in flight.
    seen: (Option<Duration>, ByteCount),
    /// Whether this end, which only receives, says nothing on the path, and since when that is so or not so.
    relief: (bool, Timestamp),
    is_doubted: bool,
}

impl<P: Copy + PartialEq> PathHealth<P> {
    /// Of a pair without a path, which may be opened at once.
    pub fn new(now: Timestamp) -> Self {
        Self {
            life: Life::new(now),
            opened: 0,
            refused: None,
            is_shut: false,
            is_kept_back: false,
            is_declined: false,
            heard_at: now,
            heard: 0,
            steadiness: Steadiness::new(now),
            said: 0,
            asked_at: now,
            asked: ByteCount::ZERO,
            proven: None,
            condition: Condition::Healthy,
            sick_since: None,
            is_backup: false,
            seen: (None, ByteCount::ZERO),
            relief: (false, Timestamp::ZERO),
            is_doubted: false,
        }
    }

    // ---- what happened

    /// The path was opened; it is not validated yet.
    pub fn on_opening(&mut self, path: P, now: Timestamp) {
        self.begin(now);
        self.life.opening(path, now);
    }

    /// The path was opened and is validated: that of the handshake.
    pub fn on_first(&mut self, path: P, now: Timestamp) {
        self.begin(now);
        self.opened = 1;
        self.life.open(path, now);
    }

    /// Another path of the pair, which is validated, takes the place of the path.
    pub fn on_succeeded(&mut self, path: P, now: Timestamp) {
        self.begin(now);
        self.life.open(path, now);
    }

    fn begin(&mut self, now: Timestamp) {
        self.refused = None;
        (self.heard_at, self.heard, self.said) = (now, 0, 0);
        (self.steadiness, self.is_doubted) = (Steadiness::new(now), false);
        (self.asked_at, self.asked) = (now, ByteCount::ZERO);
        (self.condition, self.sick_since) = (Condition::Healthy, None);
        (self.is_backup, self.is_declined) = (false, false);
        (self.seen, self.relief) = ((None, ByteCount::ZERO), (false, Timestamp::ZERO));
    }

    /// The path is validated. True where it is not the first time.
    pub fn on_established(&mut self, now: Timestamp) -> bool {
        if let Some(path) = self.path() {
            self.life.open(path, now);
            self.opened += 1;
            self.heard_at = now;
            (self.condition, self.sick_since) = (Condition::Healthy, None);
        }
        self.opened > 1
    }

    /// The path could not be opened now; `soon` where nothing but a grant of the peer is missing, which is on its
    /// way.
    pub fn on_not_opened(&mut self, soon: bool, now: Timestamp) {
        self.life.not_opened(soon, now);
    }

    /// The path is closed.
    pub fn on_closed(&mut self, now: Timestamp) {
        self.proven = None;
        (self.condition, self.sick_since) = (Condition::Healthy, None);
        self.life.closed(now);
    }

    /// The host finds that the path takes no data.
    pub fn on_refused(&mut self, now: Timestamp) {
        let since = self.refused.filter(|(_, last)| *last + REFUSALS_APART > now).map_or(now, |(since, _)| since);
        self.refused = Some((since, now));
    }

    /// Whether the interface is there.
    pub fn set_present(&mut self, is_present: bool, now: Timestamp) {
        self.life.set_present(is_present, now);
    }

    /// Whether the application has closed the path for good.
    pub fn set_shut(&mut self, is_shut: bool) {
        self.is_shut = is_shut;
    }

    /// Whether the application wants data off the path.
    pub fn set_kept_back(&mut self, is_kept_back: bool) {
        self.is_kept_back = is_kept_back;
    }

    /// Whether the peer wants data off the path.
    pub fn set_declined(&mut self, is_declined: bool) {
        self.is_declined = is_declined;
    }

    /// Whether the host keeps data off the path, as [`Action::SetBackup`](super::Action::SetBackup) says.
    pub fn set_backup(&mut self, is_backup: bool) {
        self.is_backup = is_backup;
    }

    /// Takes what was seen. What is `expected` of the peer says how long silence is no sign of illness.
    pub fn measure(&mut self, signs: &Signs, expected: Expected, now: Timestamp) {
        if let Some((received, sent)) = signs.datagrams {
            if received != self.heard {
                (self.heard_at, self.heard) = (now, received);
                self.steadiness.on_heard(now);
            }
            self.said = sent;
        }
        if let Some(snapshot) = &signs.snapshot {
            let asked = snapshot.delivered + snapshot.lost + snapshot.in_flight;
            if asked != self.asked {
                (self.asked_at, self.asked) = (now, asked);
            }
        }
        self.proven = signs.snapshot.and_then(|path| path.proven);
        let rtt = signs.snapshot.and_then(|path| path.rtt).map(|rtt| rtt.smoothed);
        self.seen = (rtt, signs.snapshot.map_or(ByteCount::ZERO, |path| path.in_flight));
        let deaf_after = expected.deaf_after();
        let is_deaf = self.unheard_for(now) > deaf_after;
        // A receipt says so even where acknowledgements take a way that is cut.
        let is_receipted = |since: Timestamp| signs.arrived_at.is_some_and(|at| at > since);
        let recently = now - DEAF;
        let is_unacknowledged = signs.snapshot.is_some_and(|path| path.is_silent()) && !is_receipted(recently);
        let since = self.heard_at + deaf_after / 4;
        let arrives = self.is_proven_since(since, now) || is_receipted(since.max(recently));
        self.condition = match (self.is_open(), is_unacknowledged, is_deaf) {
            (false, _, _) | (true, false, false) => Condition::Healthy,
            (true, false, true) if arrives => Condition::Deaf,
            (true, false, true) => Condition::Silent,
            (true, true, false) => Condition::Unacknowledged,
            (true, true, true) => Condition::Dead,
        };
        self.sick_since = match self.condition {
            Condition::Healthy => None,
            _ => self.sick_since.or(Some(now)),
        };
    }

    // ---- what is known

    /// The path that is open, or being opened.
    pub fn path(&self) -> Option<P> {
        self.life.path()
    }

    /// Whether the path is validated, and not closed.
    pub fn is_open(&self) -> bool {
        self.life.is_open()
    }

    /// For how long the path has been being opened; `None` where it is not.
    pub fn opening_for(&self, now: Timestamp) -> Option<Duration> {
        self.life.opening_for(now)
    }

    /// How often a path was opened.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// How well the path seems.
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// Whether the path is open and well.
    pub fn answers(&self) -> bool {
        self.is_open() && self.condition == Condition::Healthy
    }

    /// The use that is made of the path, and why: of several reasons the first that holds.
    pub fn path_use(&self) -> PathUse {
        if self.is_open() {
            return self.backup().map_or(PathUse::Open, PathUse::Backup);
        }
        PathUse::Shut(match self.path() {
            _ if self.is_shut => ShutReason::OnPurpose,
            Some(_) => ShutReason::Opening,
            None if !self.life.is_present() => ShutReason::NoInterface,
            None => ShutReason::Lost,
        })
    }

    /// Why data is kept off the path by this end or the other as long as another is there; `None` where it is not.
    pub fn backup(&self) -> Option<BackupReason> {
        let unwell = self.is_backup.then_some(BackupReason::Unwell);
        let declined = self.is_declined.then_some(BackupReason::Declined);
        declined.or(self.is_backup.then(|| self.wanted_backup()).flatten()).or(unwell)
    }

    /// The reason for which the path is to be a backup, whatever its health.
    pub(super) fn wanted_backup(&self) -> Option<BackupReason> {
        match (self.is_kept_back, self.is_relieved(), self.is_doubted) {
            (true, _, _) => Some(BackupReason::Asked),
            (false, true, _) => Some(BackupReason::Slow),
            (false, false, true) => Some(BackupReason::BrokenOff),
            (false, false, false) => None,
        }
    }

    /// Whether anything has come in on the path.
    pub fn is_heard(&self) -> bool {
        self.heard > 0
    }

    /// How many datagrams the open path has carried both ways.
    pub fn datagrams(&self) -> u64 {
        self.heard + self.said
    }

    /// Whether it is time to open a path. Where no path answers, waiting long helps nobody.
    pub fn is_due(&self, any_answers: bool, now: Timestamp) -> bool {
        !self.is_shut && self.life.is_due(any_answers, now)
    }

    /// For how long the interface has been there without an open path; `None` where there is one, or should be
    /// none.
    pub fn waits_for(&self, now: Timestamp) -> Option<Duration> {
        self.life.waits_for(now).filter(|_| !self.is_shut)
    }

    /// For how long we have sent nothing on the path that the peer has to answer.
    pub fn unasked_for(&self, now: Timestamp) -> Duration {
        now.since(self.asked_at)
    }

    /// For how long nothing has come in on the path.
    pub(super) fn unheard_for(&self, now: Timestamp) -> Duration {
        now.since(self.heard_at)
    }

    /// For how long the path has taken no data, whenever there was some.
    pub(super) fn refused_for(&self, now: Timestamp) -> Duration {
        let going_on = self.refused.filter(|(_, last)| *last + REFUSALS_APART > now);
        going_on.map_or(Duration::ZERO, |(since, last)| last.since(since))
    }

    /// For how long the path has not been well.
    pub(super) fn sick_for(&self, now: Timestamp) -> Duration {
        self.sick_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether this end keeps data off the path, by what was done last.
    pub(super) fn is_made_backup(&self) -> bool {
        self.is_backup
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.seen.0
    }

    pub(super) fn in_flight(&self) -> ByteCount {
        self.seen.1
    }

    pub(super) fn is_relieved(&self) -> bool {
        self.relief.0
    }

    pub(super) fn set_relieved(&mut self, is_relieved: bool, now: Timestamp) {
        if is_relieved != self.relief.0 {
            self.relief = (is_relieved, now);
        }
    }

    /// Whether the path carried steadily until a moment ago, and nothing comes any more.
    pub(super) fn is_broken_off(&self, now: Timestamp) -> bool {
        self.is_open() && self.steadiness.is_broken_off(now)
    }

    /// Whether acknowledgements are kept off the path until something comes on it again, or it is known to be deaf.
    pub(super) fn set_doubted(&mut self, is_doubted: bool) {
        self.is_doubted = is_doubted;
    }

    /// For how long the path has been relieved, or not.
    pub(super) fn relief_lasts(&self, now: Timestamp) -> Duration {
        now.since(self.relief.1)
    }

    /// Whether something that was sent on the path after `then` was acknowledged.
    fn is_proven_since(&self, then: Timestamp, now: Timestamp) -> bool {
        self.proven.is_some_and(|age| age < now.since(then))
    }

    /// Whether the path has been seen to work both ways when the other had been ill for `long`. An
    /// acknowledgement of something older proves nothing: it may have been under way, or have taken another
    /// way back; and a packet that came before may have waited in a host that stood still.
    pub(super) fn has_outlived(&self, other: &Self, long: Duration, now: Timestamp) -> bool {
        let ill = other.sick_since.map(|since| since + long);
        self.answers() && ill.is_some_and(|ill| self.heard_at > ill && self.is_proven_since(ill, now))
    }
}
