//! A rate from a counter that is read now and then.

use std::time::Duration;

use fairpath_engine::{Bitrate, ByteCount, Timestamp};

/// The time constant of the smoothing: long enough to read, short enough to notice a change.
const SMOOTHING: Duration = Duration::from_millis(500);

/// Turns a rising counter into a smoothed rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    last: Option<(Timestamp, ByteCount)>,
    rate: Bitrate,
}

impl Meter {
    /// Takes the counter at `now`.
    pub(super) fn update(&mut self, now: Timestamp, total: ByteCount) {
        let Some((then, before)) = self.last else {
            self.last = Some((now, total));
            return;
        };
        let elapsed = now.since(then);
        if elapsed < SMOOTHING / 10 {
            return;
        }
        self.last = Some((now, total));
        let Some(rate) = total.saturating_sub(before).per(elapsed) else { return };
        let weight = 1.0 - (-elapsed.as_secs_f64() / SMOOTHING.as_secs_f64()).exp();
        self.rate = self.rate.scaled(1.0 - weight) + rate.scaled(weight);
    }

    /// The rate.
    pub(super) fn rate(&self) -> Bitrate {
        self.rate
    }

    /// Forgets: the counter starts anew.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_counter_gives_its_rate() {
        let mut meter = Meter::default();
        let start = Timestamp::ZERO;
        for step in 0..50u64 {
            meter.update(start + Duration::from_millis(100 * step), ByteCount::new(125_000 * step));
        }
        // 125,000 B each 100 ms is 10 Mbit/s.
        assert!((9.9..=10.0).contains(&meter.rate().as_mbps_f64()), "{}", meter.rate());
    }
}
