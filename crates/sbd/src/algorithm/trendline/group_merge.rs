//! Algorithm 2: the groups of one queue that builds up, cut apart by noise, are put together.

use super::regression::Line;

/// Merges groups from left to right and keeps the merged group with the most points.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupMerge {
    last: Option<Line>,
    longest: Option<Line>,
}

impl GroupMerge {
    /// Takes the next group. It goes on where the last one ended if it lies higher on the whole,
    /// and begins less than `gap_ms` later.
    // [TR2018 Algorithm 2]
    //     mean(g) > the last delay of M,  first time of g - last time of M < gap
    pub(super) fn push(&mut self, group: Line, gap_ms: f64) {
        match &mut self.last {
            Some(last) if group.mean_delay() > last.last_delay() && group.first_ms() - last.last_ms() < gap_ms => {
                last.append(&group);
            }
            last => {
                let complete = last.replace(group);
                self.keep(complete);
            }
        }
    }

    /// The merged group with the most points, at the end of a round; the first of several.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let last = self.last.take();
        self.keep(last);
        self.longest.take()
    }

    fn keep(&mut self, complete: Option<Line>) {
        let points = |line: Option<Line>| line.map_or(0, |line| line.points());
        if points(complete) > points(self.longest) {
            self.longest = complete;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::trendline::max_filter::MaxFilter;

    /// The groups of the curve, merged: delays in ms, one every 10 ms.
    fn longest(delays: &[f64], gap_ms: f64) -> Option<Line> {
        let (mut filter, mut merge) = (MaxFilter::default(), GroupMerge::default());
        for (n, delay) in (0..).zip(delays) {
            if let Some(group) = filter.push(f64::from(n) * 10.0, *delay, 2) {
                merge.push(group, gap_ms);
            }
        }
        if let Some(group) = filter.finish(2) {
            merge.push(group, gap_ms);
        }
        merge.finish()
    }

    #[test]
    fn a_dip_does_not_part_a_queue_that_builds_up() {
        // The groups are 100, 102, 105 and 104, 107, 110; 103, 101 and 100 are alone. The second
        // has the mean 107 > 105 and begins 10 ms after the first. With t = 0, 10, 20, 30, 40, 50
        // the slope follows from these sums.
        //
        //     m = 6, Σt = 150, Σs = 628, Σt² = 5500, Σts = 16020
        //
        //     k = 1000 · (6 · 16020 - 150 · 628) / (6 · 5500 - 150²) = 1000 · 1920 / 10500 = 182.857
        let line = longest(&[100.0, 102.0, 105.0, 104.0, 107.0, 110.0, 103.0, 101.0, 100.0], 50.0).unwrap();
        assert_eq!((line.points(), line.first_ms(), line.last_ms()), (6, 0.0, 50.0));
        assert!((line.slope().unwrap() - 182.857).abs() < 0.001, "{:?}", line.slope());
    }

    #[test]
    fn a_queue_that_builds_up_anew_is_another_group() {
        // The second group has the mean 101.5, below 105.
        let line = longest(&[100.0, 102.0, 105.0, 100.0, 103.0], 50.0).unwrap();
        assert_eq!((line.points(), line.last_ms()), (3, 20.0));
    }

    #[test]
    fn groups_that_are_far_apart_are_not_merged() {
        // The second group begins 10 ms after the first.
        let line = longest(&[100.0, 102.0, 105.0, 104.0, 107.0, 110.0], 10.0).unwrap();
        assert_eq!((line.points(), line.last_ms()), (3, 20.0), "the first of two with three points");
    }

    #[test]
    fn a_curve_that_only_falls_has_no_group() {
        assert_eq!(longest(&[5.0, 4.0, 3.0, 2.0], 50.0), None);
    }
}
