//! Paths of one bottleneck, and their common knowledge.

use fairpath_core::Timestamp;

/// Why the queue is being drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It grew though the window shrank.
    Grew,
    /// It has not been emptied for long: what is taken for the least wait may hold a queue of others of ours.
    Refresh,
    /// Whether the others are still there.
    Again,
    /// The same, because another one seems to look.
    Joined,
}

/// The behaviour of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Keeps the queue short.
    Delay,
    /// Gives way for a moment, to see whether the queue empties.
    Drain(Why),
    /// Is CUBIC.
    Compete,
}

/// Seconds before the next test while competing; doubled by each repetition, up to `EVERY_MAX`.
const EVERY: f64 = 5.0;
const EVERY_MAX: f64 = 40.0;

/// The state of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) mode: Mode,
    /// Counts changes of the mode.
    pub(super) version: u64,
    /// The logarithm of what delays have left of windows since the group was formed.
    pub(super) cuts: f64,
    pub(super) cut_at: Timestamp,
    /// How often windows were cut since the queue is too long.
    pub(super) cuts_above: u32,
    /// When losses last made it smaller.
    pub(super) reduced: Timestamp,
    /// Since when the queue is too long all the time.
    pub(super) above_since: Option<Timestamp>,
    /// When the queue was last drained.
    pub(super) drained_at: Timestamp,
    /// The wait where a drain began.
    pub(super) wait: f64,
    /// The longest since the last test.
    pub(super) longest: f64,
    /// When the last test ended, and how long the next one waits.
    pub(super) tested: Timestamp,
    pub(super) every: f64,
    /// When a test last showed nobody.
    pub(super) left_at: Option<Timestamp>,
    /// The mean rate that the group delivered since it competes.
    pub(super) usual_rate: f64,
}

impl Group {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            mode: Mode::Delay,
            version: 0,
            cuts: 0.0,
            cut_at: Timestamp::ZERO,
            cuts_above: 0,
            reduced: now,
            above_since: None,
            drained_at: now,
            wait: 0.0,
            longest: 0.0,
            tested: now,
            every: EVERY,
            left_at: None,
            usual_rate: 0.0,
        }
    }

    pub(super) fn change(&mut self, mode: Mode) {
        self.mode = mode;
        self.version += 1;
        self.above_since = None;
    }

    /// A drain has shown what it can.
    pub(super) fn conclude(&mut self, is_empty: bool, now: Timestamp) {
        let Mode::Drain(why) = self.mode else { return };
        self.tested = now;
        self.longest = 0.0;
        self.cut_at = now;
        if is_empty || why == Why::Refresh {
            self.drained_at = now;
            if matches!(why, Why::Again | Why::Joined) {
                self.left_at = Some(now);
            }
            self.change(Mode::Delay);
        } else {
            self.every = match why {
                Why::Again => (self.every * 2.0).min(EVERY_MAX),
                Why::Joined => self.every,
                // The queue emptied lately, and a test finds it full: the competitor makes room for
                // tests.
                _ if self.left_at.is_some_and(|left| now.since(left).as_secs_f64() < 2.0 * self.every) => {
                    (self.every * 2.0).min(EVERY_MAX)
                }
                _ => EVERY,
            };
            self.change(Mode::Compete);
        }
    }

    /// Joins two groups. If either competes, both do, and the knowledge of either is that of both.
    pub(super) fn joined(self, other: Self, now: Timestamp) -> Self {
        let competes = |group: &Self| matches!(group.mode, Mode::Compete | Mode::Drain(Why::Again | Why::Joined));
        let mode = if competes(&self) || competes(&other) { Mode::Compete } else { Mode::Delay };
        Self {
            mode,
            version: self.version.max(other.version) + 1,
            cuts: 0.0,
            cut_at: self.cut_at.max(other.cut_at),
            cuts_above: 0,
            reduced: self.reduced.max(other.reduced),
            above_since: None,
            drained_at: self.drained_at.max(other.drained_at),
            wait: self.wait.max(other.wait),
            longest: self.longest.max(other.longest),
            tested: if competes(&self) == competes(&other) { self.tested.max(other.tested) } else { now },
            every: self.every.max(other.every),
            left_at: self.left_at.max(other.left_at),
            usual_rate: self.usual_rate + other.usual_rate,
        }
    }
}
