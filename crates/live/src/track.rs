//! How long a path takes for the packets of a stream, by the word of the peer.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::Timestamp;
use fairpath_rate::{Bound, Delays};

use crate::wire::PathReport;

#[derive(Clone, Copy, Debug)]
struct DelaySample {
    at: Timestamp,
    mean: f64,
    variance: f64,
}

/// The measured delays of a path.
#[derive(Debug, Default)]
pub(crate) struct Track {
    delays: VecDeque<DelaySample>,
}

impl Track {
    /// The peer reports.
    pub(crate) fn on_report(&mut self, report: &PathReport, now: Timestamp) {
        if (report.mean, report.deviation) != (0, 0) {
            let (mean, deviation) = (f64::from(report.mean) * 1e-6, f64::from(report.deviation) * 1e-6);
            self.delays.push_back(DelaySample { at: now, mean, variance: deviation * deviation });
        }
    }

    /// Forgets delays that are too old, whether newer ones came or not. Otherwise a path on which
    /// nothing was worth sending would stay as bad as it last was.
    pub(crate) fn forget(&mut self, delays_for: Duration, now: Timestamp) {
        while self.delays.front().is_some_and(|sample| now.since(sample.at) > delays_for) {
            self.delays.pop_front();
        }
    }

    /// How long packets take one way, in all or in the time `newest_for`; `None` before the first report.
    pub(crate) fn delays(&self, newest_for: Duration, now: Timestamp) -> Option<Delays> {
        let all = pooled(self.delays.iter())?;
        let newest = self.delays.iter().filter(|sample| now.since(sample.at) <= newest_for);
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
    pub(crate) fn late(&self, deadline: Duration, newest_for: Duration) -> f64 {
        let Some(last) = self.delays.back().map(|sample| sample.at) else { return 0.0 };
        let newest = || self.delays.iter().filter(|sample| last.since(sample.at) <= newest_for);
        let is_late = |sample: &DelaySample, grown: f64| {
            let [mean, deviation] = [sample.mean + grown, libm::sqrt(sample.variance)].map(Duration::from_secs_f64);
            Bound::Cantelli.late(0, &Delays { mean, deviation }, deadline)
        };
        let all = mean(self.delays.iter().map(|sample| is_late(sample, 0.0)));
        let is_recent = |sample: &&DelaySample| last.since(sample.at) <= newest_for / 2;
        let recent = mean(newest().filter(is_recent).map(|sample| sample.mean));
        let before = mean(newest().filter(|sample| !is_recent(sample)).map(|sample| sample.mean));
        let grown = recent.zip(before).map_or(0.0, |(recent, before)| (recent - before).max(0.0));
        let newest = mean(newest().map(|sample| is_late(sample, grown)));
        all.unwrap_or(0.0).max(newest.unwrap_or(0.0))
    }

    /// The usual deviation of delays; the growth of a filling queue does not count.
    pub(crate) fn usual_deviation(&self) -> Duration {
        pooled(self.delays.iter()).map_or(Duration::ZERO, |delays| delays.deviation)
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
    use crate::parameters::LiveParameters;

    const NEWEST: Duration = LiveParameters::DEFAULT.newest_for;

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn report(mean_ms: u32) -> PathReport {
        PathReport { path: 0, newest: 0, mean: mean_ms * 1_000, deviation: 1_000 }
    }

    #[test]
    fn a_path_on_which_nothing_is_sent_does_not_stay_bad() {
        let mut track = Track::default();
        (0..20).for_each(|at| track.on_report(&report(400), ms(25 * at)));
        track.forget(LiveParameters::DEFAULT.delays_for, ms(500));
        assert!(track.late(Duration::from_millis(300), NEWEST) > 0.9);
        track.forget(LiveParameters::DEFAULT.delays_for, ms(6_000));
        assert_eq!(track.late(Duration::from_millis(300), NEWEST), 0.0);
    }

    #[test]
    fn a_queue_that_comes_and_goes_below_the_deadline_makes_nothing_late_and_one_that_grows_past_it_does() {
        // 130 to 280 ms and back, in two seconds.
        let delay = |at: u32| 130 + if at % 80 < 40 { 15 * (at % 80) / 4 } else { 15 * (80 - at % 80) / 4 };
        let mut track = Track::default();
        (0..220).for_each(|at| track.on_report(&report(delay(at)), ms(25 * u64::from(at))));
        let pooled = track.delays(NEWEST, ms(5_500)).unwrap();
        let together = Bound::Cantelli.late(0, &pooled, Duration::from_millis(300));
        assert!(
            track.late(Duration::from_millis(300), NEWEST) < 0.01,
            "{}",
            track.late(Duration::from_millis(300), NEWEST)
        );
        assert!(together > 0.1, "by one mean and one deviation: {together}");
        assert!(track.late(Duration::from_millis(250), NEWEST) > 0.1);
        // In half a second it grows from 130 to 263 ms, and goes on.
        (220..240).for_each(|at| track.on_report(&report(130 + 7 * (at - 220)), ms(25 * u64::from(at))));
        let soon = track.late(Duration::from_millis(300), NEWEST);
        assert!(soon > 0.2, "{soon}");
    }

    #[test]
    fn a_queue_that_fills_is_seen_at_once_and_one_that_drains_later() {
        let mut track = Track::default();
        (0..100).for_each(|at| track.on_report(&report(20), ms(25 * at)));
        (100..125).for_each(|at| track.on_report(&report(200), ms(25 * at)));
        let delays = track.delays(NEWEST, ms(25 * 124)).unwrap();
        assert!(
            delays.mean > Duration::from_millis(190),
            "a tenth of what is known, and all of half a second: {delays:?}"
        );
        (125..170).for_each(|at| track.on_report(&report(20), ms(25 * at)));
        let delays = track.delays(NEWEST, ms(25 * 170)).unwrap();
        assert!(delays.mean < Duration::from_millis(60) && delays.deviation > Duration::from_millis(30), "{delays:?}");
    }
}
