//! A hold time for any detector: what was found together stays so for a while after the detector
//! has let go of it.

use core::time::Duration;

use fairpath_core::{DelaySample, Groups, Lost, PathId, Timestamp};

use crate::detector::{Detector, PairVerdict};
use crate::pairs::Pairs;

/// A detector whose groups stay together for a hold time.
///
/// A route that changes is unlearnt that much later, and a mistake lasts that much longer; in
/// return, a coupling does not come and go with the evidence.
#[derive(Debug)]
pub struct HoldTime {
    inner: Box<dyn Detector>,
    hold: Duration,
    /// The partition that the detector found.
    found: Groups,
    /// When each pair was last found together.
    pairs: Pairs<Option<Timestamp>>,
}

impl HoldTime {
    /// Holds what `inner` finds for `hold` longer than it does.
    pub fn new(inner: Box<dyn Detector>, hold: Duration) -> Self {
        Self { inner, hold, found: Groups::default(), pairs: Pairs::default() }
    }
}

impl Detector for HoldTime {
    fn on_path_opened(&mut self, path: PathId, now: Timestamp) {
        self.inner.on_path_opened(path, now);
        self.pairs.open(path, now, || None);
    }

    fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        self.inner.on_path_closed(path, now);
        self.pairs.close(path, now);
    }

    fn on_sample(&mut self, path: PathId, sample: &DelaySample) {
        self.inner.on_sample(path, sample);
    }

    fn on_saturated_sample(&mut self, path: PathId, sample: &DelaySample) {
        self.inner.on_saturated_sample(path, sample);
    }

    fn on_loss(&mut self, path: PathId, lost: &Lost) {
        self.inner.on_loss(path, lost);
    }

    fn on_dip(&mut self, path: PathId, from: Timestamp, until: Timestamp) {
        self.inner.on_dip(path, from, until);
    }

    fn observes(&self) -> bool {
        self.inner.observes()
    }

    fn poll(&mut self, now: Timestamp) -> Option<Groups> {
        if let Some(found) = self.inner.poll(now) {
            self.found = found;
        }
        let found = &self.found;
        self.pairs
            .iter_mut()
            .filter(|pair| found.together(pair.low, pair.high))
            .for_each(|pair| pair.state = Some(now));
        let hold = self.hold;
        self.pairs.link(now, |_, _, pair| pair.state.is_some_and(|last| now.since(last) <= hold));
        self.pairs.take_news()
    }

    /// The confidence is the detector's, the rest what is held.
    fn verdicts(&self) -> Vec<PairVerdict> {
        let inner = self.inner.verdicts();
        self.pairs.iter().zip(inner).map(|(pair, inner)| pair.verdict(inner.confidence)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    /// Says that two paths are together at some times.
    #[derive(Debug)]
    struct Told(core::ops::Range<u64>);

    impl Detector for Told {
        fn on_path_opened(&mut self, _: PathId, _: Timestamp) {}
        fn on_path_closed(&mut self, _: PathId, _: Timestamp) {}
        fn poll(&mut self, now: Timestamp) -> Option<Groups> {
            let together = self.0.contains(&(now.since(Timestamp::ZERO).as_secs()));
            let members = if together { vec![vec![path(0), path(1)]] } else { vec![vec![path(0)], vec![path(1)]] };
            Some(Groups::from_members(members))
        }
    }

    #[test]
    fn what_was_together_stays_so_for_the_hold_time() {
        let mut held = HoldTime::new(Box::new(Told(10..20)), Duration::from_secs(5));
        (0..2).for_each(|id| held.on_path_opened(path(id), Timestamp::ZERO));
        let mut changes = Vec::new();
        for second in 0..40 {
            if let Some(groups) = held.poll(Timestamp::from_secs(second)) {
                changes.push((second, groups.together(path(0), path(1))));
            }
        }
        // Last found at 19 s, held until 24 s.
        assert_eq!(changes, [(0, false), (10, true), (25, false)]);
    }

    #[test]
    fn what_is_found_again_in_time_is_never_let_go() {
        let mut held = HoldTime::new(crate::by_name("always").unwrap(), Duration::from_secs(5));
        (0..2).for_each(|id| held.on_path_opened(path(id), Timestamp::ZERO));
        let changes = (0..40).filter(|second| held.poll(Timestamp::from_secs(*second)).is_some()).count();
        assert_eq!(changes, 1);
    }
}
