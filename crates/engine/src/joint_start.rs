//! How the slow starts of paths end of which nothing is known yet: as that of one flow does, until they prove separate.
//!
//! A detector needs seconds. What two slow starts take of a link in their first second, a deep queue keeps for them
//! for longer than that, so what holds before there is evidence matters. The end of slow start is the first time that
//! a path sees its queue, and all paths of one queue see the same: the paths that wait as long as the one whose slow
//! start ends are one flow until the detector has had its time, and one that waits for less, or more, goes on by
//! itself. While all of them double, there is nothing to couple: the sum doubles, as the window of one flow does.

use core::time::Duration;

use fairpath_core::{Groups, PathId, Rtt, Timestamp};

/// What a wait must be to be a queue's: that by which HyStart++ tells one [RFC9406 §4.3, MIN_RTT_THRESH,
/// MAX_RTT_THRESH, MIN_RTT_DIVISOR].
const QUEUE_MIN: Duration = Duration::from_millis(4);
const QUEUE_MAX: Duration = Duration::from_millis(16);
const QUEUE_DIVISOR: u32 = 8;

/// Two waits are those of one queue if they differ by no more than this part of the longer one: the newest samples of
/// two paths are some milliseconds apart, in which slow start adds a part of a round trip to a queue.
const SAME_PART: u32 = 4;

/// So long the detector has after slow start, or so many round trips without a queue if they take longer: with a deep
/// queue they would be half a minute, in which paths that are separate after all get less.
const EVIDENCE: Duration = Duration::from_secs(5);
const EVIDENCE_ROUNDS: u32 = 20;

/// The detector is asked so often whether paths are surely separate.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// The paths of which nothing is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct JointStart {
    /// In order of their opening.
    members: Vec<PathId>,
    /// When they are free in any case; `None` while all of them are in their first slow start, and not coupled.
    until: Option<Timestamp>,
    asked_at: Timestamp,
    /// Whether the partition that follows is another one than before.
    news: bool,
}

impl JointStart {
    /// A path was opened. It starts with the others if none of them has seen the end of its first slow start.
    pub(crate) fn on_path_opened(&mut self, path: PathId) {
        if self.until.is_none() && !self.members.contains(&path) {
            self.members.push(path);
        }
    }

    pub(crate) fn on_path_closed(&mut self, path: PathId) {
        self.keep(|member| member != path);
    }

    /// Paths of which nothing is heard go on by themselves: silent while others are not, they are hardly on their way.
    /// As a part of one flow with them they would come back with a window that the losses of the others have taken down,
    /// and with a part of the growth of one. Where all of them are silent, it is the way that they share.
    pub(crate) fn on_silent(&mut self, is_silent: impl Fn(PathId) -> bool) {
        if self.until.is_some() && self.members.iter().any(|member| !is_silent(*member)) {
            self.keep(|member| !is_silent(member));
        }
    }

    /// The paths whose first slow start goes on, where the end of one of them is to be told.
    pub(crate) fn starting(&self) -> &[PathId] {
        if self.until.is_none() { &self.members } else { &[] }
    }

    /// The first slow start of a path ends. Paths without a queue of this length are free from now on.
    pub(crate) fn on_end(&mut self, path: PathId, now: Timestamp, rtt: impl Fn(PathId) -> Option<Rtt>) {
        if self.until.is_some() || !self.members.contains(&path) {
            return;
        }
        let own = rtt(path);
        self.members.retain(|member| *member == path || share(own, rtt(*member)));
        self.news = self.members.len() > 1;
        let round = own.map_or(Duration::ZERO, |rtt| rtt.min);
        self.until = Some(now + EVIDENCE.max(round * EVIDENCE_ROUNDS));
    }

    /// Time passes. `separate` says whether the detector is sure that some of these paths are.
    pub(crate) fn update(&mut self, now: Timestamp, separate: impl FnOnce(&[PathId]) -> bool) {
        if self.until.is_none() || self.members.len() < 2 || now.since(self.asked_at) < ASKED_EVERY {
            return;
        }
        self.asked_at = now;
        if self.until.is_some_and(|until| now >= until) || separate(&self.members) {
            self.keep(|_| false);
        }
    }

    /// The partition that windows follow where the detector has `found` this one.
    pub(crate) fn joined(&mut self, found: &Groups) -> Groups {
        self.news = false;
        if self.until.is_none() {
            return found.clone();
        }
        let has_member = |group: &Vec<PathId>| group.iter().any(|path| self.members.contains(path));
        let (with_members, mut groups): (Vec<_>, Vec<_>) = found.members().into_iter().partition(has_member);
        groups.push(with_members.into_iter().flatten().collect());
        Groups::from_members(groups)
    }

    /// Whether [`joined`](Self::joined) says something else than when it was last asked.
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    fn keep(&mut self, stays: impl Fn(PathId) -> bool) {
        let before = self.members.len();
        self.members.retain(|member| stays(*member));
        self.news |= self.until.is_some() && self.members.len() < before;
    }
}

/// Whether what both wait for may be one queue.
fn share(one: Option<Rtt>, other: Option<Rtt>) -> bool {
    let (Some(one), Some(other)) = (wait(one), wait(other)) else { return false };
    one.abs_diff(other) <= QUEUE_MIN.max(one.max(other) / SAME_PART)
}

/// How long the newest packet waited; `None` where that is no queue.
fn wait(rtt: Option<Rtt>) -> Option<Duration> {
    let Rtt { latest, min, .. } = rtt?;
    let wait = latest.saturating_sub(min);
    (wait >= (min / QUEUE_DIVISOR).clamp(QUEUE_MIN, QUEUE_MAX)).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u32) -> PathId {
        PathId::new(id)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A round trip whose newest packet waited for so long.
    fn rtt(min_ms: u64, wait_ms: u64) -> Rtt {
        let [latest, min] = [ms(min_ms + wait_ms), ms(min_ms)];
        Rtt { variance: ms(1), min, windowed_min: min, ..Rtt::steady(latest) }
    }

    /// Three paths with a round trip of 40 ms, of which the newest packets waited for so long.
    fn after_the_first_ends(waits_ms: [u64; 3]) -> (JointStart, Groups) {
        let mut start = JointStart::default();
        (0..3).for_each(|id| start.on_path_opened(path(id)));
        let all = Groups::singletons((0..3).map(path));
        assert_eq!(start.joined(&all), all, "while all of them double");
        start.on_end(path(0), Timestamp::from_secs(1), |of| Some(rtt(40, waits_ms[of.get() as usize])));
        let groups = start.joined(&all);
        (start, groups)
    }

    #[test]
    fn paths_that_wait_as_long_stay_one_flow_and_others_are_free() {
        let (_, groups) = after_the_first_ends([50, 42, 30]);
        assert_eq!(groups.members(), [vec![path(0), path(1)], vec![path(2)]]);
    }

    #[test]
    fn a_path_without_a_queue_is_free_whatever_ended_the_slow_start_of_the_other() {
        for waits in [[50, 0, 4], [0, 0, 0]] {
            assert_eq!(after_the_first_ends(waits).1, Groups::singletons((0..3).map(path)), "{waits:?}");
        }
    }

    #[test]
    fn the_detector_has_five_seconds_or_twenty_round_trips() {
        for (min_ms, until_ms) in [(40, 6_000), (460, 10_200)] {
            let mut start = JointStart::default();
            (0..2).for_each(|id| start.on_path_opened(path(id)));
            start.on_end(path(0), Timestamp::from_secs(1), |_| Some(rtt(min_ms, 2_000)));
            assert_eq!(start.joined(&Groups::singletons([0, 1].map(path))), Groups::one([0, 1].map(path)));
            let mut free = |at_ms| {
                start.update(Timestamp::from_millis(at_ms), |_| false);
                start.has_news()
            };
            assert_eq!([free(until_ms - 1), free(until_ms + 100)], [false, true], "{min_ms}");
        }
    }

    #[test]
    fn who_is_surely_separate_is_free_and_a_path_that_opens_later_starts_by_itself() {
        let (mut start, _) = after_the_first_ends([50; 3]);
        start.on_path_opened(path(3));
        let all = Groups::singletons((0..4).map(path));
        assert!(!start.has_news());
        assert_eq!(start.joined(&all).members(), [vec![path(0), path(1), path(2)], vec![path(3)]]);
        start.update(Timestamp::from_secs(2), |members| members.len() == 3);
        assert!(start.has_news());
        assert_eq!(start.joined(&all), all);
    }

    #[test]
    fn a_path_that_falls_silent_is_free_and_the_others_stay_one_flow() {
        let (mut start, _) = after_the_first_ends([50; 3]);
        start.on_silent(|_| true);
        assert!(!start.has_news(), "all of them are: it is the way that they share");
        start.on_silent(|member| member == path(1));
        assert!(start.has_news());
        let all = Groups::singletons((0..3).map(path));
        assert_eq!(start.joined(&all).members(), [vec![path(0), path(2)], vec![path(1)]]);
    }

    #[test]
    fn what_the_detector_has_found_is_joined_with_what_is_not_known() {
        let mut start = JointStart::default();
        (1..3).for_each(|id| start.on_path_opened(path(id)));
        start.on_end(path(1), Timestamp::ZERO, |_| Some(rtt(40, 50)));
        let found = Groups::from_members([vec![path(0), path(1)], vec![path(2)], vec![path(3)]]);
        assert_eq!(start.joined(&found).members(), [vec![path(0), path(1), path(2)], vec![path(3)]]);
    }
}
