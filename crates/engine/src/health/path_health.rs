//! The health of one path.

use core::ops::{Deref, DerefMut};
use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

use super::condition::Condition;
use super::steadiness::Steadiness;
use crate::engine::PathSnapshot;
use crate::health_parameters::HealthParameters;
use crate::path::{BackupReason, Liveness, UseState};

/// Observations of an open path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signs {
    /// The datagrams that came in and left on it; `None` if unknown now.
    pub datagrams: Option<(u64, u64)>,
    /// The engine's view of it.
    pub snapshot: Option<PathSnapshot>,
    /// When the peer last reported new arrivals on the path; `None`: never.
    pub arrived_at: Option<Timestamp>,
}

/// The health of the paths on one pair of addresses, and their use.
#[derive(Clone, Copy, Debug)]
pub struct PathHealth<P> {
    pub(super) parameters: HealthParameters,
    state: UseState<P>,
    /// How often a path was opened.
    opened: u32,
    /// Since when the host finds that the path takes no data, and when it last did: the path leads
    /// to an unvalidated address of the peer.
    refused: Option<(Timestamp, Timestamp)>,
    /// When the newest datagram came in on the path, and how many had by then.
    heard_at: Timestamp,
    heard: u64,
    steadiness: Steadiness,
    /// How many datagrams this end had sent by then.
    said: u64,
    /// When this end last sent a packet on it that elicits an acknowledgement, and the engine's
    /// count by then. Acknowledgements alone prove nothing about the path.
    asked_at: Timestamp,
    asked: ByteCount,
    /// The age of the newest acknowledged packet, at the last look.
    proven: Option<Duration>,
    condition: Condition,
    /// Since when the path has not been healthy.
    sick_since: Option<Timestamp>,
    /// The smoothed round-trip time, and the bytes in flight, unless answers are late.
    seen: (Option<Duration>, ByteCount),
    /// When this end, which only receives, last began or ended keeping acknowledgements off the
    /// path as slow.
    relief_changed: Timestamp,
}

impl<P> Deref for PathHealth<P> {
    type Target = UseState<P>;

    fn deref(&self) -> &UseState<P> {
        &self.state
    }
}

impl<P> DerefMut for PathHealth<P> {
    fn deref_mut(&mut self) -> &mut UseState<P> {
        &mut self.state
    }
}

impl<P: Copy + PartialEq> PathHealth<P> {
    /// A pair without a path, which may be opened at once.
    pub fn new(parameters: &HealthParameters, now: Timestamp) -> Self {
        Self {
            parameters: *parameters,
            state: UseState::new(parameters.reopen_after, now),
            opened: 0,
            refused: None,
            heard_at: now,
            heard: 0,
            steadiness: Steadiness::new(now),
            said: 0,
            asked_at: now,
            asked: ByteCount::ZERO,
            proven: None,
            condition: Condition::Healthy,
            sick_since: None,
            seen: (None, ByteCount::ZERO),
            relief_changed: Timestamp::ZERO,
        }
    }

    // ---- what happened

    /// The path was opened; it is not validated yet.
    pub fn on_opening(&mut self, path: P, now: Timestamp) {
        self.begin(path, false, now);
    }

    /// The path was opened and is validated: that of the handshake.
    pub fn on_first(&mut self, path: P, now: Timestamp) {
        self.opened = 1;
        self.begin(path, true, now);
    }

    /// Another path of the pair, which is validated, takes the place of the path.
    pub fn on_succeeded(&mut self, path: P, now: Timestamp) {
        self.begin(path, true, now);
    }

    fn begin(&mut self, path: P, is_validated: bool, now: Timestamp) {
        self.state.begin(path, is_validated, now);
        self.refused = None;
        (self.heard_at, self.heard, self.said) = (now, 0, 0);
        self.steadiness = Steadiness::new(now);
        (self.asked_at, self.asked) = (now, ByteCount::ZERO);
        (self.condition, self.sick_since) = (Condition::Healthy, None);
        (self.seen, self.relief_changed) = ((None, ByteCount::ZERO), Timestamp::ZERO);
    }

    /// The path is validated. Returns true if it is not for the first time.
    pub fn on_established(&mut self, now: Timestamp) -> bool {
        if self.path().is_some() {
            self.state.validated();
            self.opened += 1;
            self.heard_at = now;
            (self.condition, self.sick_since) = (Condition::Healthy, None);
        }
        self.opened > 1
    }

    /// The path is closed.
    pub fn on_closed(&mut self, now: Timestamp) {
        self.proven = None;
        (self.condition, self.sick_since) = (Condition::Healthy, None);
        self.state.closed(now);
    }

    /// The host finds that the path takes no data. It tries again at each look, so refusals further
    /// apart than a path may be silent are unrelated.
    pub fn on_refused(&mut self, now: Timestamp) {
        let since = self.refused.filter(|(_, last)| *last + self.parameters.deaf > now).map_or(now, |(since, _)| since);
        self.refused = Some((since, now));
    }

    /// Takes the observations. The peer sends something on the path once in `signs_every`; `None`:
    /// it promises nothing, so that its silence is no illness.
    pub fn measure(&mut self, signs: &Signs, signs_every: Option<Duration>, now: Timestamp) {
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
        let alive = signs.snapshot.filter(|path| path.liveness == Liveness::Alive);
        self.seen = (rtt, alive.map_or(ByteCount::ZERO, |path| path.in_flight));
        let is_deaf = signs_every.is_some_and(|every| self.unheard_for(now) > self.parameters.signs * every);
        // Receipts prove arrival even if acknowledgements take a path that is cut.
        let is_receipted = |since: Timestamp| signs.arrived_at.is_some_and(|at| at > since);
        let recently = now - self.parameters.deaf;
        let is_unacknowledged = signs.snapshot.is_some_and(|path| path.is_silent()) && !is_receipted(recently);
        let since = self.heard_at + signs_every.unwrap_or_default();
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

    /// How often a path was opened.
    pub fn opened(&self) -> u32 {
        self.opened
    }

    /// The condition of the path.
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// Whether the path is open and healthy.
    pub fn answers(&self) -> bool {
        self.is_open() && self.condition == Condition::Healthy
    }

    /// Whether this end wants data off the path, however healthy it is.
    pub(super) fn is_unwanted(&self) -> bool {
        [BackupReason::Asked, BackupReason::Slow, BackupReason::BrokenOff].into_iter().any(|reason| self.holds(reason))
    }

    /// Whether anything has come in on the path.
    pub fn is_heard(&self) -> bool {
        self.heard > 0
    }

    /// How many datagrams the open path has carried both ways.
    pub fn datagrams(&self) -> u64 {
        self.heard + self.said
    }

    /// How long ago this end last sent a packet on the path that elicits an acknowledgement.
    pub fn unasked_for(&self, now: Timestamp) -> Duration {
        now.since(self.asked_at)
    }

    /// How long ago a datagram last came in on the path.
    pub(super) fn unheard_for(&self, now: Timestamp) -> Duration {
        now.since(self.heard_at)
    }

    /// How long the host has found that the path takes no data.
    pub(super) fn refused_for(&self, now: Timestamp) -> Duration {
        let going_on = self.refused.filter(|(_, last)| *last + self.parameters.deaf > now);
        going_on.map_or(Duration::ZERO, |(since, last)| last.since(since))
    }

    /// How long the path has not been healthy.
    pub(super) fn sick_for(&self, now: Timestamp) -> Duration {
        self.sick_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.seen.0
    }

    /// The bytes that this end has in flight on the path; zero if answers are late, since bytes
    /// that pile up without them do not tell how much is sent.
    pub(super) fn answered_in_flight(&self) -> ByteCount {
        self.seen.1
    }

    /// Whether acknowledgements are kept off the path because they would queue there.
    pub(super) fn set_relieved(&mut self, is_relieved: bool, now: Timestamp) {
        if is_relieved != self.holds(BackupReason::Slow) {
            self.keep_off(BackupReason::Slow, is_relieved);
            self.relief_changed = now;
        }
    }

    /// Whether the path carried data steadily until a moment ago, and nothing comes any more.
    pub(super) fn is_broken_off(&self, now: Timestamp) -> bool {
        self.is_open() && self.steadiness.is_broken_off(now)
    }

    /// How long ago the relief of the path last began or ended.
    pub(super) fn relief_lasts(&self, now: Timestamp) -> Duration {
        now.since(self.relief_changed)
    }

    /// Whether a packet that was sent on the path after `then` was acknowledged.
    fn is_proven_since(&self, then: Timestamp, now: Timestamp) -> bool {
        self.proven.is_some_and(|age| age < now.since(then))
    }

    /// Whether the path has been seen to work both ways when the other had been ill for `long`. An
    /// acknowledgement of an older packet proves nothing: it may have been under way, or have taken
    /// another path. A packet that came before may have waited in a host that stood still.
    pub(super) fn has_outlived(&self, other: &Self, long: Duration, now: Timestamp) -> bool {
        let ill = other.sick_since.map(|since| since + long);
        self.answers() && ill.is_some_and(|ill| self.heard_at > ill && self.is_proven_since(ill, now))
    }
}
