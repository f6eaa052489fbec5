//! The points of a queue that builds up, as the sums that their regression line needs.

/// Points of time and delay, in order of time. Times are in milliseconds since the round began, so
/// that the sums stay small; delays are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    points: u32,
    first_ms: f64,
    last_ms: f64,
    last_delay: f64,
    sum_t: f64,
    sum_s: f64,
    sum_tt: f64,
    sum_ts: f64,
}

impl Line {
    /// A line that begins with this point.
    pub(super) fn new(at_ms: f64, delay: f64) -> Self {
        Self {
            points: 1,
            first_ms: at_ms,
            last_ms: at_ms,
            last_delay: delay,
            sum_t: at_ms,
            sum_s: delay,
            sum_tt: at_ms * at_ms,
            sum_ts: at_ms * delay,
        }
    }

    /// Adds the points of `later` behind the own ones.
    pub(super) fn append(&mut self, later: &Self) {
        self.points += later.points;
        self.last_ms = later.last_ms;
        self.last_delay = later.last_delay;
        self.sum_t += later.sum_t;
        self.sum_s += later.sum_s;
        self.sum_tt += later.sum_tt;
        self.sum_ts += later.sum_ts;
    }

    /// How many points.
    pub(super) fn points(&self) -> u32 {
        self.points
    }

    /// The time of the first point.
    pub(super) fn first_ms(&self) -> f64 {
        self.first_ms
    }

    /// The time of the last point.
    pub(super) fn last_ms(&self) -> f64 {
        self.last_ms
    }

    /// The delay of the last point.
    pub(super) fn last_delay(&self) -> f64 {
        self.last_delay
    }

    /// The mean delay.
    pub(super) fn mean_delay(&self) -> f64 {
        self.sum_s / f64::from(self.points)
    }

    /// The delay of the regression line of this slope, in ms/s, at a time.
    pub(super) fn delay_at(&self, at_ms: f64, slope: f64) -> f64 {
        self.mean_delay() + slope * (at_ms - self.sum_t / f64::from(self.points)) / 1000.0
    }

    /// The slope in ms/s; `None` where all points are at one time.
    pub(super) fn slope(&self) -> Option<f64> {
        let m = f64::from(self.points);
        let spread = m * self.sum_tt - self.sum_t * self.sum_t;
        (spread > 0.0).then(|| slope(m, [self.sum_t, self.sum_s, self.sum_tt, self.sum_ts], spread))
    }
}

// [TR2018 eq. 17] with the factor that turns ms/ms into ms/s
//                m * sum(t s) - sum(t) * sum(s)
//     k = 1000 * ------------------------------
//                  m * sum(t t) - sum(t)^2
fn slope(m: f64, [sum_t, sum_s, _, sum_ts]: [f64; 4], spread: f64) -> f64 {
    1000.0 * (m * sum_ts - sum_t * sum_s) / spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_has_its_own_slope() {
        // 3 ms more every 10 ms: 300 ms/s.
        let mut line = Line::new(0.0, 100.0);
        for n in 1..5 {
            line.append(&Line::new(f64::from(n) * 10.0, 100.0 + 3.0 * f64::from(n)));
        }
        assert_eq!(line.slope(), Some(300.0));
        assert_eq!((line.points(), line.mean_delay(), line.last_delay()), (5, 106.0, 112.0));
        assert_eq!((line.delay_at(0.0, 300.0), line.delay_at(40.0, 300.0)), (100.0, 112.0));
    }

    #[test]
    fn points_at_one_time_have_no_slope() {
        let mut line = Line::new(7.0, 100.0);
        line.append(&Line::new(7.0, 101.0));
        assert_eq!(line.slope(), None);
    }
}
