//! The clamp of bloated windows: a path whose queue makes its round trips longer than λ times the least keeps only as
//! much in flight as makes them λ times as long.
//!
//! # Source
//! [Ferlin2014]; as shown in [Luebben2019, slide 9].
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | λ | `lambda` | 1 |
//! | sRTT, RTT_min | the smoothed and the least round-trip time | time |
//! | CWND | `window` | bytes |
//!
//! # Deviations
//! The source clamps at each acknowledgement. Here a window is clamped once in a smoothed
//! round-trip time: a cut shows in the round-trip times only a round trip later, and each
//! acknowledgement until then would cut again. The slow-start threshold follows, or slow start
//! would take the window back. A rule is not told of the cut, so state beside its window stays as
//! it is, such as the plateau of CUBIC.

use fairpath_core::{ByteCount, PathId, PathMap, Rtt, Timestamp};

#[derive(Debug)]
pub(super) struct BloatClamp {
    lambda: f64,
    /// When each path was last clamped.
    clamped_at: PathMap<Timestamp>,
}

impl BloatClamp {
    pub(super) fn new(lambda: f64) -> Self {
        Self { lambda, clamped_at: PathMap::new() }
    }

    /// After an acknowledgement: the window that the path is left with, where that is less.
    pub(super) fn on_ack(&mut self, path: PathId, rtt: &Rtt, window: ByteCount, now: Timestamp) -> Option<ByteCount> {
        if self.clamped_at.get(path).is_some_and(|at| now.since(*at) < rtt.smoothed) {
            return None;
        }
        let clamped = clamped(self.lambda, rtt, window.as_f64())?;
        self.clamped_at.insert(path, now);
        Some(ByteCount::from_f64(clamped))
    }
}

// [Ferlin2014]
//            RTT_min                  sRTT
// CWND <- λ ───────── CWND     if   ───────── ≥ λ
//             sRTT                   RTT_min
fn clamped(lambda: f64, rtt: &Rtt, window: f64) -> Option<f64> {
    let (smoothed, least) = (rtt.smoothed.as_secs_f64(), rtt.min.as_secs_f64());
    (least > 0.0 && smoothed >= lambda * least).then(|| lambda * least / smoothed * window)
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    fn rtt(smoothed_ms: u64, least_ms: u64) -> Rtt {
        let [smoothed, min] = [smoothed_ms, least_ms].map(Duration::from_millis);
        Rtt { min, windowed_min: min, ..Rtt::steady(smoothed) }
    }

    #[test]
    fn a_round_trip_of_twice_the_least_leaves_three_quarters_with_a_lambda_of_three_halves() {
        let near =
            |clamped: Option<f64>, expected: f64| assert!((clamped.unwrap() - expected).abs() < 1e-6, "{clamped:?}");
        // 3/2 · 100/200 = 3/4; 3 · 100/600 = 1/2
        near(clamped(1.5, &rtt(200, 100), 1_000.0), 750.0);
        near(clamped(3.0, &rtt(600, 100), 1_000.0), 500.0);
        assert_eq!(clamped(3.0, &rtt(299, 100), 1_000.0), None);
        assert_eq!(clamped(1.5, &rtt(0, 0), 1_000.0), None, "a clock that saw no time pass");
    }
}
