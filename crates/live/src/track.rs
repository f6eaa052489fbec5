//! What a path does to the packets of a stream: loss, delay, silence.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::Timestamp;
use fairpath_rate::{Bound, Delays};

use crate::wire::PathReport;

/// Losses and arrivals are counted in slices of so long.
const SLICE: Duration = Duration::from_millis(100);

/// What is lost is judged by so many slices: two seconds, in which a link turns bad or good.
const SLICES: usize = 20;

/// Round-trip times count for so long, by the specification of the paper's controller: a sliding window of 5 s.
const DELAYS_FOR: Duration = Duration::from_secs(5);

/// What came in so long alone may say that a path has become late: the long window hides for seconds that a queue has
/// filled.
const NEWEST_FOR: Duration = Duration::from_millis(500);

/// How often the peer reports, and a report that is lost.
const REPORTS: Duration = Duration::from_millis(2 * 25);

/// The shortest and the longest time after which a path is silent: what queues of hosts do is no silence, and a second is
/// what nobody is to wait.
const SILENT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(900));

/// Losses in a row that come by chance so seldom mean that a path is silent, or late.
const BY_CHANCE: f64 = 1e-4;

/// Where more is lost it is taken to be no more than this: four packets in a row say that a path is silent.
const LOSS_MAX: f64 = 0.1;

/// How many departures are kept that the peer has not reported.
const DEPARTURES_MAX: usize = 4_096;

/// So many packets and more that were judged say what the share of losses is; fewer are taken together with none lost.
const JUDGED_MIN: f64 = 20.0;

/// So many lost of the newest [`JUDGED_MIN`] say that a path has turned bad: of one that loses a hundredth that is
/// C(20, 3) · 0.01³, one time in a thousand.
const LOST_MIN: f64 = 3.0;

/// Where a larger share is lost over the two seconds, a path keeps back what follows. On one that carries copies only, a
/// few in a second, that is all that tells.
const LOST_MOST: f64 = 0.05;

#[derive(Clone, Copy, Debug)]
struct Slice {
    begun: Timestamp,
    acked: u32,
    lost: u32,
}

impl Slice {
    /// What was judged, and what of that was lost, with what came before.
    fn add_to(&self, (judged, lost): (f64, f64)) -> (f64, f64) {
        (judged + f64::from(self.acked) + f64::from(self.lost), lost + f64::from(self.lost))
    }
}

#[derive(Clone, Copy, Debug)]
struct DelaySample {
    at: Timestamp,
    mean: f64,
    variance: f64,
}

/// What is known of a path from what was sent on it.
#[derive(Debug, Default)]
pub(crate) struct Track {
    slices: VecDeque<Slice>,
    delays: VecDeque<DelaySample>,
    /// When what left that has not been reported, in order.
    departures: VecDeque<Timestamp>,
    /// When the peer last reported that more had come.
    heard_at: Option<Timestamp>,
}

impl Track {
    pub(crate) fn on_sent(&mut self, now: Timestamp) {
        if self.departures.len() < DEPARTURES_MAX {
            self.departures.push_back(now);
        }
    }

    pub(crate) fn on_acked(&mut self, now: Timestamp) {
        self.slice(now).acked += 1;
    }

    /// A packet that was taken for lost has arrived: other packets had overtaken it.
    pub(crate) fn on_late(&mut self, now: Timestamp) {
        // It was counted not long ago: mostly in a slice that still counts.
        if let Some(slice) = self.slices.iter_mut().rev().find(|slice| slice.lost > 0) {
            slice.lost -= 1;
        }
        self.slice(now).acked += 1;
    }

    /// A packet was lost.
    pub(crate) fn on_lost(&mut self, now: Timestamp) {
        self.slice(now).lost += 1;
    }

    fn slice(&mut self, now: Timestamp) -> &mut Slice {
        if self.slices.back().is_none_or(|slice| now.since(slice.begun) >= SLICE) {
            self.slices.push_back(Slice { begun: now, acked: 0, lost: 0 });
        }
        self.slices.back_mut().expect("one was put there")
    }

    /// The peer reports; `newest` is when the newest left that has come.
    pub(crate) fn on_report(&mut self, report: &PathReport, newest: Timestamp, now: Timestamp) {
        let before = self.departures.len();
        while self.departures.front().is_some_and(|left| *left <= newest) {
            self.departures.pop_front();
        }
        if self.departures.len() < before {
            self.heard_at = Some(now);
        }
        if (report.mean, report.deviation) != (0, 0) {
            let (mean, deviation) = (f64::from(report.mean) * 1e-6, f64::from(report.deviation) * 1e-6);
            self.delays.push_back(DelaySample { at: now, mean, variance: deviation * deviation });
        }
    }

    /// What is older than what counts is forgotten, whether anything came since or not: a path on which nothing was worth
    /// sending would else stay as bad as it last was.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        while self.delays.front().is_some_and(|sample| now.since(sample.at) > DELAYS_FOR) {
            self.delays.pop_front();
        }
        while self.slices.front().is_some_and(|slice| now.since(slice.begun) > SLICE * SLICES as u32) {
            self.slices.pop_front();
        }
    }

    /// The share of packets that are lost: of two seconds, or of the newest alone where that is more than bad luck.
    pub(crate) fn loss(&self) -> f64 {
        let until_enough = |sum: (f64, f64), one: &Slice| if sum.0 < JUDGED_MIN { one.add_to(sum) } else { sum };
        let newest = self.slices.iter().rev().fold((0.0, 0.0), until_enough);
        let all = self.lasting_loss();
        if newest.1 >= LOST_MIN { all.max(newest.1 / f64::max(newest.0, JUDGED_MIN)) } else { all }
    }

    fn lasting_loss(&self) -> f64 {
        let (judged, lost) = self.slices.iter().fold((0.0, 0.0), |sum, one| one.add_to(sum));
        lost / f64::max(judged, JUDGED_MIN)
    }

    /// Whether so many are lost that they keep back what follows: a twentieth, or some in more than half of the slices. It
    /// takes about a slice until a loss is known and sent again.
    pub(crate) fn keeps_back(&self) -> bool {
        let with_losses = self.slices.iter().filter(|slice| slice.lost > 0).count();
        with_losses > SLICES / 2 || self.lasting_loss() > LOST_MOST
    }

    /// How long packets take one way; `None` before the first report.
    pub(crate) fn delays(&self, now: Timestamp) -> Option<Delays> {
        let all = pooled(self.delays.iter())?;
        let newest = self.delays.iter().filter(|sample| now.since(sample.at) <= NEWEST_FOR);
        // The worse of the two counts.
        let worse =
            |newest: Delays| if newest.mean + newest.deviation > all.mean + all.deviation { newest } else { all };
        Some(pooled(newest).map_or(all, worse))
    }

    /// The share of packets that take longer than `deadline`: of each report by Cantelli's inequality, and of several
    /// the mean, of five seconds or of the newest half of one, whichever is worse. By one mean and one deviation of them
    /// all, a queue that fills and empties below the deadline would make many late.
    ///
    /// A delay that grows goes on growing: by as much again as it has in a quarter of a second.
    pub(crate) fn late(&self, deadline: Duration) -> f64 {
        let Some(last) = self.delays.back().map(|sample| sample.at) else { return 0.0 };
        let newest = || self.delays.iter().filter(|sample| last.since(sample.at) <= NEWEST_FOR);
        let is_late = |sample: &DelaySample, grown: f64| {
            let [mean, deviation] = [sample.mean + grown, libm::sqrt(sample.variance)].map(Duration::from_secs_f64);
            Bound::Cantelli.late(0, &Delays { mean, deviation }, deadline)
        };
        let all = mean(self.delays.iter().map(|sample| is_late(sample, 0.0)));
        let is_recent = |sample: &&DelaySample| last.since(sample.at) <= NEWEST_FOR / 2;
        let recent = mean(newest().filter(is_recent).map(|sample| sample.mean));
        let before = mean(newest().filter(|sample| !is_recent(sample)).map(|sample| sample.mean));
        let grown = recent.zip(before).map_or(0.0, |(recent, before)| (recent - before).max(0.0));
        let newest = mean(newest().map(|sample| is_late(sample, grown)));
        all.unwrap_or(0.0).max(newest.unwrap_or(0.0))
    }

    /// By how much delays vary as a rule: what a queue that has just filled adds is none of it.
    pub(crate) fn usual_deviation(&self) -> Duration {
        pooled(self.delays.iter()).map_or(Duration::ZERO, |delays| delays.deviation)
    }

    /// How many packets in a row are lost by chance so seldom that something else is the matter; at least one.
    pub(crate) fn seldom_lost(&self) -> usize {
        libm::ceil(libm::log(BY_CHANCE) / libm::log(self.loss().min(LOSS_MAX))).max(1.0) as usize
    }

    /// Whether the peer had the time to report packets that left, and has not: as many as are seldom lost in a row.
    pub(crate) fn is_silent(&self, rtt: Duration, now: Timestamp) -> bool {
        let Some(first) = self.departures.get(self.seldom_lost() - 1) else { return false };
        let deviation = self.delays(now).map_or(Duration::ZERO, |delays| delays.deviation);
        let patience = (rtt + REPORTS + 4 * deviation).clamp(SILENT.0, SILENT.1);
        now.since(*first) > patience
    }

    /// Whether the peer has reported something of it of late, so that its silence means something.
    pub(crate) fn was_heard(&self) -> bool {
        self.heard_at.is_some()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Mean and deviation of all: the mean of the variances, and the variance of the means.
fn pooled<'a>(samples: impl Iterator<Item = &'a DelaySample> + Clone) -> Option<Delays> {
    let count = samples.clone().count() as f64;
    if count == 0.0 {
        return None;
    }
    let mean = samples.clone().map(|sample| sample.mean).sum::<f64>() / count;
    let squares = samples.map(|one| one.variance + (one.mean - mean) * (one.mean - mean)).sum::<f64>() / count;
    Some(Delays { mean: Duration::from_secs_f64(mean), deviation: Duration::from_secs_f64(libm::sqrt(squares)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn report(mean_ms: u32) -> PathReport {
        PathReport { path: 0, newest: 0, mean: mean_ms * 1_000, deviation: 1_000 }
    }

    #[test]
    fn a_path_of_which_nothing_new_is_reported_is_silent_in_less_than_a_second() {
        let mut track = Track::default();
        for at in (0..1_000).step_by(10) {
            track.on_sent(ms(at));
            track.on_report(&report(20), ms(at), ms(at + 30));
            assert!(!track.is_silent(RTT, ms(at + 30)));
        }
        (1_000..1_900).step_by(10).for_each(|at| track.on_sent(ms(at)));
        assert!(!track.is_silent(RTT, ms(1_090)), "a round trip, and two reports");
        assert!(track.is_silent(RTT, ms(1_150)));
        assert!(track.is_silent(Duration::from_secs(5), ms(1_901)), "however long its round trips are");
        track.on_report(&report(20), ms(1_890), ms(1_910));
        assert!(!track.is_silent(RTT, ms(1_910)), "it was heard");
        assert!(!Track::default().is_silent(RTT, ms(9_000)), "nothing was sent");
    }

    #[test]
    fn losses_keep_back_what_follows_where_they_are_spread_over_the_time_and_not_where_they_come_together() {
        let keeps_back = |every: u64, together: u64| {
            let mut track = Track::default();
            for at in (0..2_000).step_by(5) {
                match at % every < together * 5 {
                    true => track.on_lost(ms(at)),
                    false => track.on_acked(ms(at)),
                }
            }
            track.keeps_back()
        };
        assert!(keeps_back(100, 1), "one in twenty");
        assert!(!keeps_back(500, 1), "one in a hundred");
        assert!(!keeps_back(1_000, 8), "one in 25, all of them together");
        assert!(keeps_back(1_000, 20), "one in ten, whenever they come");
    }

    #[test]
    fn on_a_path_that_loses_many_one_packet_without_a_report_is_no_silence() {
        let mut track = Track::default();
        for at in (0..1_000).step_by(10) {
            match at % 100 {
                0 => track.on_lost(ms(at)),
                _ => track.on_acked(ms(at)),
            }
        }
        track.on_report(&report(20), ms(990), ms(1_000));
        [1_000, 1_100, 1_200, 1_300].into_iter().for_each(|at| track.on_sent(ms(at)));
        assert!(!track.is_silent(RTT, ms(1_390)), "three are lost in one of a thousand cases");
        assert!(track.is_silent(RTT, ms(1_410)), "and four in one of ten thousand");
    }

    #[test]
    fn losses_are_those_of_the_last_two_seconds() {
        let mut track = Track::default();
        for at in 0..100 {
            match at % 5 {
                0 => track.on_lost(ms(10 * at)),
                _ => track.on_acked(ms(10 * at)),
            }
        }
        assert!((track.loss() - 0.2).abs() < 1e-9, "{}", track.loss());
        (100..400).for_each(|at| track.on_acked(ms(10 * at)));
        track.forget(ms(4_000));
        assert_eq!(track.loss(), 0.0);
    }

    #[test]
    fn a_path_on_which_nothing_is_sent_does_not_stay_bad() {
        let mut track = Track::default();
        (0..50).for_each(|at| track.on_lost(ms(10 * at)));
        (0..20).for_each(|at| track.on_report(&report(400), ms(0), ms(25 * at)));
        track.forget(ms(500));
        assert!(track.loss() > 0.9 && track.late(Duration::from_millis(300)) > 0.9);
        track.forget(ms(6_000));
        assert_eq!((track.loss(), track.late(Duration::from_millis(300))), (0.0, 0.0));
    }

    #[test]
    fn a_queue_that_comes_and_goes_below_the_deadline_makes_nothing_late_and_one_that_grows_past_it_does() {
        // 130 to 280 ms and back, in two seconds.
        let delay = |at: u32| 130 + if at % 80 < 40 { 15 * (at % 80) / 4 } else { 15 * (80 - at % 80) / 4 };
        let mut track = Track::default();
        (0..220).for_each(|at| track.on_report(&report(delay(at)), ms(0), ms(25 * u64::from(at))));
        let pooled = track.delays(ms(5_500)).unwrap();
        let together = Bound::Cantelli.late(0, &pooled, Duration::from_millis(300));
        assert!(track.late(Duration::from_millis(300)) < 0.01, "{}", track.late(Duration::from_millis(300)));
        assert!(together > 0.1, "by one mean and one deviation: {together}");
        assert!(track.late(Duration::from_millis(250)) > 0.1);
        // In half a second it grows from 130 to 263 ms, and goes on.
        (220..240).for_each(|at| track.on_report(&report(130 + 7 * (at - 220)), ms(0), ms(25 * u64::from(at))));
        let soon = track.late(Duration::from_millis(300));
        assert!(soon > 0.2, "{soon}");
    }

    #[test]
    fn packets_that_others_overtook_are_no_losses() {
        let mut track = Track::default();
        for at in 0..400 {
            let sent_at = ms(10 * at);
            match at % 4 {
                0 => {
                    track.on_lost(sent_at);
                    track.on_late(ms(10 * at + 5));
                }
                _ => track.on_acked(sent_at),
            }
        }
        assert_eq!(track.loss(), 0.0);
    }

    #[test]
    fn a_path_that_turns_bad_is_seen_in_twenty_packets_and_one_loss_says_nothing() {
        let mut track = Track::default();
        (0..200).for_each(|at| track.on_acked(ms(10 * at)));
        track.on_lost(ms(2_000));
        (1..20).for_each(|at| track.on_acked(ms(2_000 + 5 * at)));
        assert!(track.loss() < 0.006, "{}", track.loss());
        for at in 20..40 {
            match at % 3 {
                0 => track.on_lost(ms(2_000 + 5 * at)),
                _ => track.on_acked(ms(2_000 + 5 * at)),
            }
        }
        // Six or seven of them.
        assert!(track.loss() > 0.25, "{}", track.loss());
    }

    #[test]
    fn a_queue_that_fills_is_seen_at_once_and_one_that_drains_later() {
        let mut track = Track::default();
        (0..100).for_each(|at| track.on_report(&report(20), ms(0), ms(25 * at)));
        (100..125).for_each(|at| track.on_report(&report(200), ms(0), ms(25 * at)));
        let delays = track.delays(ms(25 * 124)).unwrap();
        assert!(
            delays.mean > Duration::from_millis(190),
            "a tenth of what is known, and all of half a second: {delays:?}"
        );
        (125..170).for_each(|at| track.on_report(&report(20), ms(0), ms(25 * at)));
        let delays = track.delays(ms(25 * 170)).unwrap();
        assert!(delays.mean < Duration::from_millis(60) && delays.deviation > Duration::from_millis(30), "{delays:?}");
    }
}
