//! The losses of a path of late.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::Timestamp;

/// How the losses of late are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossMemory {
    /// Losses and arrivals are counted in slices of this length.
    pub slice: Duration,
    /// Losses are judged by this many slices: two seconds, in which a link turns bad or good.
    pub slices: u32,
    /// Minimum sample size; smaller samples are padded with packets that arrived.
    pub judged_min: f64,
    /// This many lost of the newest `judged_min` say that a path has turned bad: of one that loses a hundredth that is
    /// C(20, 3) · 0.01³, one time in a thousand.
    pub lost_min: f64,
}

impl LossMemory {
    pub(crate) const DEFAULT: Self =
        Self { slice: Duration::from_millis(100), slices: 20, judged_min: 20.0, lost_min: 3.0 };

    /// The least share of losses that the smallest sample shows. A larger one keeps back what follows: on a path that
    /// carries copies only, a few in a second, that is all that tells.
    pub(crate) fn least_seen(&self) -> f64 {
        1.0 / self.judged_min
    }
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    begun: Timestamp,
    arrived: u32,
    lost: u32,
}

impl Slice {
    /// How many packets were judged, and how many of them lost, with those before.
    fn add_to(&self, (judged, lost): (f64, f64)) -> (f64, f64) {
        (judged + f64::from(self.arrived) + f64::from(self.lost), lost + f64::from(self.lost))
    }
}

/// The losses of a path in the last two seconds.
#[derive(Clone, Debug)]
pub(crate) struct RecentLosses {
    memory: LossMemory,
    slices: VecDeque<Slice>,
}

impl RecentLosses {
    pub(crate) fn new(memory: LossMemory) -> Self {
        Self { memory, slices: VecDeque::new() }
    }

    pub(crate) fn on_arrived(&mut self, packets: u32, now: Timestamp) {
        self.slice(now).arrived += packets;
    }

    pub(crate) fn on_lost(&mut self, now: Timestamp) {
        self.slice(now).lost += 1;
    }

    /// A packet that was taken for lost has arrived: others had overtaken it.
    pub(crate) fn on_spurious(&mut self, now: Timestamp) {
        // It was counted not long ago: mostly in a slice that still counts.
        if let Some(slice) = self.slices.iter_mut().rev().find(|slice| slice.lost > 0) {
            slice.lost -= 1;
        }
        self.slice(now).arrived += 1;
    }

    fn slice(&mut self, now: Timestamp) -> &mut Slice {
        while self.slices.front().is_some_and(|slice| !self.counts(slice, now)) {
            self.slices.pop_front();
        }
        if self.slices.back().is_none_or(|slice| now.since(slice.begun) >= self.memory.slice) {
            self.slices.push_back(Slice { begun: now, arrived: 0, lost: 0 });
        }
        self.slices.back_mut().expect("one was put there")
    }

    /// Those that count. A path on which nothing was worth sending does not stay as bad as it last was.
    fn counted(&self, now: Timestamp) -> impl DoubleEndedIterator<Item = &Slice> {
        self.slices.iter().filter(move |slice| self.counts(slice, now))
    }

    /// The share of packets that are lost: of two seconds, or of the newest alone where that is more than bad luck.
    pub(crate) fn share(&self, now: Timestamp) -> f64 {
        let LossMemory { judged_min, lost_min, .. } = self.memory;
        let until_enough = |sum: (f64, f64), one: &Slice| if sum.0 < judged_min { one.add_to(sum) } else { sum };
        let newest = self.counted(now).rev().fold((0.0, 0.0), until_enough);
        let all = self.lasting(now);
        if newest.1 >= lost_min { all.max(newest.1 / f64::max(newest.0, judged_min)) } else { all }
    }

    fn lasting(&self, now: Timestamp) -> f64 {
        let (judged, lost) = self.counted(now).fold((0.0, 0.0), |sum, one| one.add_to(sum));
        lost / f64::max(judged, self.memory.judged_min)
    }

    /// Whether losses keep back what follows: a twentieth is lost, or some in more than half of the slices. It takes about
    /// a slice until a loss is known and sent again.
    pub(crate) fn keep_back(&self, now: Timestamp) -> bool {
        let with_losses = self.counted(now).filter(|slice| slice.lost > 0).count();
        with_losses > self.memory.slices as usize / 2 || self.lasting(now) > self.memory.least_seen()
    }

    fn counts(&self, slice: &Slice, now: Timestamp) -> bool {
        now.since(slice.begun) <= self.memory.slice * self.memory.slices
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn losses_keep_back_what_follows_where_they_are_spread_over_the_time_and_not_where_they_come_together() {
        let keep_back = |every: u64, together: u64| {
            let mut losses = RecentLosses::new(LossMemory::DEFAULT);
            for at in (0..2_000).step_by(5) {
                match at % every < together * 5 {
                    true => losses.on_lost(ms(at)),
                    false => losses.on_arrived(1, ms(at)),
                }
            }
            losses.keep_back(ms(2_000))
        };
        assert!(keep_back(100, 1), "one in twenty");
        assert!(!keep_back(500, 1), "one in a hundred");
        assert!(!keep_back(1_000, 8), "one in 25, all of them together");
        assert!(keep_back(1_000, 20), "one in ten, whenever they come");
    }

    #[test]
    fn losses_are_those_of_the_last_two_seconds() {
        let mut losses = RecentLosses::new(LossMemory::DEFAULT);
        for at in 0..100 {
            match at % 5 {
                0 => losses.on_lost(ms(10 * at)),
                _ => losses.on_arrived(1, ms(10 * at)),
            }
        }
        let share = losses.share(ms(1_000));
        assert!((share - 0.2).abs() < 1e-9, "{share}");
        losses.on_spurious(ms(1_000));
        assert!(losses.share(ms(1_000)) < share, "one was none");
        assert_eq!(losses.share(ms(4_000)), 0.0, "a path on which nothing is sent does not stay bad");
        (100..400).for_each(|at| losses.on_arrived(1, ms(10 * at)));
        assert_eq!(losses.share(ms(4_000)), 0.0);
    }

    #[test]
    fn packets_that_others_overtook_are_no_losses() {
        let mut losses = RecentLosses::new(LossMemory::DEFAULT);
        for at in 0..400 {
            let sent_at = ms(10 * at);
            match at % 4 {
                0 => {
                    losses.on_lost(sent_at);
                    losses.on_spurious(ms(10 * at + 5));
                }
                _ => losses.on_arrived(1, sent_at),
            }
        }
        assert_eq!(losses.share(ms(4_000)), 0.0);
    }

    #[test]
    fn a_path_that_turns_bad_is_seen_in_twenty_packets_and_one_loss_says_nothing() {
        let mut losses = RecentLosses::new(LossMemory::DEFAULT);
        (0..200).for_each(|at| losses.on_arrived(1, ms(10 * at)));
        losses.on_lost(ms(2_000));
        (1..20).for_each(|at| losses.on_arrived(1, ms(2_000 + 5 * at)));
        let share = losses.share(ms(2_100));
        assert!(share < 0.006, "{share}");
        for at in 20..40 {
            match at % 3 {
                0 => losses.on_lost(ms(2_000 + 5 * at)),
                _ => losses.on_arrived(1, ms(2_000 + 5 * at)),
            }
        }
        // Six or seven of the newest packets were lost.
        let share = losses.share(ms(2_200));
        assert!(share > 0.25, "{share}");
    }
}
