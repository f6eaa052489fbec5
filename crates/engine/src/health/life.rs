//! When a path is opened, and when again.

use core::time::Duration;

use fairpath_core::Timestamp;

/// The first wait before a path is opened again; it doubles up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(250);

/// The longest wait before a path is opened again.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// A path that stayed open this long has earned a short wait next time.
const STABLE: Duration = Duration::from_secs(5);

/// How long until what the peer has to grant for another path can be there.
const SOON: Duration = Duration::from_millis(50);

/// Whether there is a path.
#[derive(Clone, Copy, Debug)]
enum Stage<P> {
    /// Not open; to be opened at a time, if the interface is there.
    Waiting { since: Timestamp, until: Timestamp },
    /// Opened, not validated yet.
    Opening { path: P, since: Timestamp },
    /// Carrying data.
    Open { path: P, since: Timestamp },
}

/// The life of a path, from one opening to the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life<P> {
    stage: Stage<P>,
    backoff: Duration,
    /// Whether the interface is there.
    is_present: bool,
    /// Since when there has been no path.
    without_since: Timestamp,
}

impl<P: Copy> Life<P> {
    pub(super) fn new(now: Timestamp) -> Self {
        let stage = Stage::Waiting { since: now, until: now };
        Self { stage, backoff: BACKOFF, is_present: true, without_since: now }
    }

    /// The path that is open, or being opened.
    pub(super) fn path(&self) -> Option<P> {
        match self.stage {
            Stage::Waiting { .. } => None,
            Stage::Opening { path, .. } | Stage::Open { path, .. } => Some(path),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open { .. })
    }

    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }

    pub(super) fn opening_for(&self, now: Timestamp) -> Option<Duration> {
        match self.stage {
            Stage::Opening { since, .. } => Some(now.since(since)),
            Stage::Waiting { .. } | Stage::Open { .. } => None,
        }
    }

    /// For how long the interface has been there without an open path; `None` where there is one.
    pub(super) fn waits_for(&self, now: Timestamp) -> Option<Duration> {
        (self.is_present && !self.is_open()).then(|| now.since(self.without_since))
    }

    /// Whether it is time to open the path. Where no path answers, waiting long helps nobody.
    pub(super) fn is_due(&self, any_answers: bool, now: Timestamp) -> bool {
        match self.stage {
            Stage::Waiting { until, since } => {
                let until = if any_answers { until } else { until.min(since + 2 * BACKOFF) };
                self.is_present && now >= until
            }
            Stage::Opening { .. } | Stage::Open { .. } => false,
        }
    }

    pub(super) fn opening(&mut self, path: P, now: Timestamp) {
        self.stage = Stage::Opening { path, since: now };
    }

    pub(super) fn open(&mut self, path: P, now: Timestamp) {
        self.stage = Stage::Open { path, since: now };
    }

    /// The path could not be opened; `soon` where nothing but a grant of the peer is missing.
    pub(super) fn not_opened(&mut self, soon: bool, now: Timestamp) {
        let wait = if soon { SOON } else { self.next_backoff() };
        self.stage = Stage::Waiting { since: now, until: now + wait };
    }

    pub(super) fn closed(&mut self, now: Timestamp) {
        if let Stage::Open { since, .. } = self.stage {
            self.without_since = now;
            if now.since(since) > STABLE {
                self.backoff = BACKOFF;
            }
        }
        self.stage = Stage::Waiting { since: now, until: now + self.next_backoff() };
    }

    /// Whether the interface is there. One that comes back is tried at once.
    pub(super) fn set_present(&mut self, is_present: bool, now: Timestamp) {
        if is_present && !self.is_present {
            self.without_since = now;
            if matches!(self.stage, Stage::Waiting { .. }) {
                self.backoff = BACKOFF;
                self.stage = Stage::Waiting { since: now, until: now };
            }
        }
        self.is_present = is_present;
    }

    fn next_backoff(&mut self) -> Duration {
        let wait = self.backoff;
        self.backoff = (2 * self.backoff).min(BACKOFF_MAX);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// The first millisecond from `from` on at which the path is due.
    fn due(life: &Life<u8>, from: u64, any_answers: bool) -> u64 {
        (from..).find(|at| life.is_due(any_answers, ms(*at))).expect("some time")
    }

    #[test]
    fn a_path_that_fails_again_and_again_waits_twice_as_long_each_time_up_to_eight_seconds() {
        let (mut life, mut now) = (Life::<u8>::new(ms(0)), 0);
        let mut waits = Vec::new();
        for _ in 0..8 {
            life.not_opened(false, ms(now));
            let at = due(&life, now, true);
            waits.push(at - now);
            now = at;
        }
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        life.not_opened(true, ms(now));
        assert_eq!(due(&life, now, true) - now, 50, "only a grant was missing");
    }

    #[test]
    fn where_nothing_answers_no_wait_is_longer_than_half_a_second() {
        let mut life = Life::<u8>::new(ms(0));
        (0..8).for_each(|_| life.not_opened(false, ms(0)));
        assert_eq!((due(&life, 0, true), due(&life, 0, false)), (8_000, 500));
    }

    #[test]
    fn a_path_that_was_open_for_long_and_one_whose_interface_comes_back_wait_little() {
        for (open_for, wait) in [(5_000, 500), (5_001, 250)] {
            let mut life = Life::<u8>::new(ms(0));
            life.not_opened(false, ms(0));
            life.open(1, ms(0));
            life.closed(ms(open_for));
            assert_eq!(due(&life, open_for, true) - open_for, wait, "open for {open_for} ms");
        }
        let mut life = Life::<u8>::new(ms(0));
        (0..8).for_each(|_| life.not_opened(false, ms(0)));
        life.set_present(false, ms(1_000));
        assert!(!life.is_due(true, ms(60_000)), "where would it begin");
        assert_eq!(life.waits_for(ms(60_000)), None);
        life.set_present(true, ms(60_000));
        assert!(life.is_due(true, ms(60_000)));
        assert_eq!(life.waits_for(ms(60_100)), Some(Duration::from_millis(100)));
    }
}
