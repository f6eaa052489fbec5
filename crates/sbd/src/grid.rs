//! Delays on a common grid of time: of each step of the grid the least delay, and a straight line
//! over steps without a sample.
//!
//! Whatever comes on top of the queue of a bottleneck only adds to a delay: acknowledgements that
//! wait, retransmissions of a radio link. So the least delay of a step says most about the queue.

use core::time::Duration;

use fairpath_core::{DelaySample, Timestamp};

/// A delay: of the way there, where that is known, as the way back says nothing of the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Delay {
    ms: f64,
    one_way: bool,
}

impl Delay {
    pub(crate) fn of(sample: &DelaySample) -> Self {
        Self { ms: millis(sample.one_way.unwrap_or(sample.rtt)), one_way: sample.one_way.is_some() }
    }
}

/// The newest points of one path, at most `N` of them.
///
/// A point is known once a later step has a sample. After a silence longer than `gap_max` the
/// points begin anew: what lies between is not invented.
#[derive(Clone, Debug)]
pub(crate) struct Grid<const N: usize> {
    step_ns: u64,
    /// The longest run of steps without a sample that is bridged.
    gap_max: u64,
    points: [f64; N],
    /// The known points that hang together: from the first of these steps, up to before the second.
    first: u64,
    end: u64,
    /// The step under way and its least delay.
    current: Option<(u64, f64)>,
    one_way: bool,
}

impl<const N: usize> Grid<N> {
    /// No points yet.
    pub(crate) fn new(step: Duration, gap_max: u64) -> Self {
        let step_ns = u64::try_from(step.as_nanos()).unwrap_or(u64::MAX).max(1);
        Self { step_ns, gap_max, points: [0.0; N], first: 0, end: 0, current: None, one_way: false }
    }

    /// The step that holds `now`.
    pub(crate) fn step_of(&self, now: Timestamp) -> u64 {
        now.as_nanos() / self.step_ns
    }

    /// Takes a sample. True: there are new points.
    pub(crate) fn add(&mut self, sample: &DelaySample) -> bool {
        self.add_delay(sample.now, Delay::of(sample)).is_some()
    }

    /// Takes a delay that was measured at this time; gives the newest point that is known since, and when its step
    /// began.
    pub(crate) fn add_delay(&mut self, now: Timestamp, delay: Delay) -> Option<(Timestamp, Delay)> {
        let step = self.step_of(now);
        if core::mem::replace(&mut self.one_way, delay.one_way) != delay.one_way {
            self.current = None;
            self.first = self.end;
        }
        match &mut self.current {
            Some((current, least)) if step <= *current => {
                *least = least.min(delay.ms);
                None
            }
            current => {
                let (at, ms) = current.replace((step, delay.ms))?;
                self.finish(at, ms);
                Some((Timestamp::from_nanos(at * self.step_ns), Delay { ms, ..delay }))
            }
        }
    }

    /// The point of a step; `None`: it is not known, or no longer.
    pub(crate) fn get(&self, step: u64) -> Option<f64> {
        self.known().contains(&step).then(|| self.points[slot::<N>(step)])
    }

    /// The steps whose points are known and hang together.
    pub(crate) fn known(&self) -> core::ops::Range<u64> {
        self.first.max(self.end.saturating_sub(N as u64))..self.end
    }

    /// Sets the point of the step `at`, and those between it and the last one.
    fn finish(&mut self, at: u64, least: f64) {
        let gap = at.saturating_sub(self.end);
        if self.known().is_empty() || gap > self.gap_max {
            self.first = at;
        } else {
            let last = self.points[slot::<N>(self.end - 1)];
            for n in 1..=gap {
                self.points[slot::<N>(self.end + n - 1)] = last + (least - last) * n as f64 / (gap + 1) as f64;
            }
        }
        self.points[slot::<N>(at)] = least;
        self.end = at + 1;
    }
}

fn slot<const N: usize>(step: u64) -> usize {
    (step % N as u64) as usize
}

/// A time in milliseconds.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid<8> {
        Grid::new(Duration::from_millis(100), 2)
    }

    fn sample(now_ms: u64, rtt_ms: u64) -> DelaySample {
        DelaySample { now: Timestamp::from_millis(now_ms), rtt: Duration::from_millis(rtt_ms), one_way: None }
    }

    #[test]
    fn a_step_has_its_least_delay_once_the_next_has_begun() {
        let mut grid = grid();
        assert!(!grid.add(&sample(110, 30)) && !grid.add(&sample(150, 20)) && !grid.add(&sample(199, 40)));
        assert_eq!(grid.get(1), None);
        assert!(grid.add(&sample(200, 50)));
        assert_eq!((grid.get(1), grid.known()), (Some(20.0), 1..2));
    }

    #[test]
    fn a_short_silence_is_bridged_by_a_line() {
        let mut grid = grid();
        for (at, rtt) in [(0, 10), (300, 40), (400, 0)] {
            grid.add(&sample(at, rtt));
        }
        // From 10 in step 0 to 40 in step 3.
        assert_eq!([0, 1, 2, 3].map(|step| grid.get(step)), [10.0, 20.0, 30.0, 40.0].map(Some));
    }

    #[test]
    fn a_long_silence_is_a_new_beginning() {
        let mut grid = grid();
        for (at, rtt) in [(0, 10), (100, 10), (500, 40), (600, 0)] {
            grid.add(&sample(at, rtt));
        }
        assert_eq!(grid.known(), 5..6, "steps 2, 3 and 4 had no sample");
        assert_eq!(grid.get(1), None);
    }

    #[test]
    fn only_the_newest_points_are_kept() {
        let mut grid = grid();
        (0..20).for_each(|step| {
            grid.add(&sample(step * 100, step));
        });
        assert_eq!(grid.known(), 11..19);
        assert_eq!((grid.get(10), grid.get(11), grid.get(18)), (None, Some(11.0), Some(18.0)));
    }

    #[test]
    fn round_trips_and_one_way_delays_do_not_mix() {
        let mut grid = grid();
        (0..4).for_each(|step| {
            grid.add(&sample(step * 100, 80));
        });
        grid.add(&DelaySample { one_way: Some(Duration::from_millis(7)), ..sample(400, 80) });
        grid.add(&DelaySample { one_way: Some(Duration::from_millis(8)), ..sample(500, 80) });
        assert_eq!((grid.known(), grid.get(4)), (4..5, Some(7.0)));
    }
}
