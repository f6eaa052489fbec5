//! The pacing rate [BBRv3 §5.6.2].

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};

/// How far below the bandwidth a path paces, so that the queue drains rather than grows [BBRv3 §5.6.2].
const MARGIN: f64 = 0.01;

/// The pacing rate of one path; none before the first round-trip time.
///
/// The sources begin with a rate that takes the unknown round-trip time for 1 ms, and correct it by
/// the first sample. Rates only rise until the pipe is full, so a path whose application is the
/// limit would keep a rate that was never measured. Here there is none to keep.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacing {
    rate: Option<Bitrate>,
}

impl Pacing {
    // [BBRv3 §5.6.2, InitPacingRate]
    //     C.pacing_rate = BBR.StartupPacingGain * C.InitialCwnd / C.srtt
    /// Takes the first round-trip time.
    pub(crate) fn begin(&mut self, startup_gain: f64, initial_window: ByteCount, rtt: Duration) {
        if self.rate.is_none() {
            self.rate = initial_window.per(rtt).map(|nominal| nominal.scaled(startup_gain));
        }
    }

    // [BBRv3 §5.6.2, SetPacingRateWithGain]
    //     rate = pacing_gain * bw * (100 - BBR.PacingMarginPercent) / 100
    /// Follows the bandwidth. Until the pipe was once full the rate only rises: what the application
    /// limited says nothing against it.
    pub(crate) fn follow(&mut self, gain: f64, bandwidth: Bitrate, was_full: bool) {
        let rate = bandwidth.scaled(gain * (1.0 - MARGIN));
        if rate > Bitrate::ZERO && (was_full || self.rate.is_some_and(|old| rate > old)) {
            self.rate = Some(rate);
        }
    }

    /// Takes a rate that follows from what was measured elsewhere, if there is any.
    pub(crate) fn restore(&mut self, rate: Bitrate) {
        self.rate = (rate > Bitrate::ZERO).then_some(rate);
    }

    /// The rate.
    pub(crate) fn rate(&self) -> Option<Bitrate> {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rate_is_the_initial_window_over_the_first_round_trip_time() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.rate(), None);
        // 2.77 · 12,000 B · 8 / 40 ms = 6.648 Mbit/s
        pacing.begin(2.77, ByteCount::new(12_000), Duration::from_millis(40));
        assert_eq!(pacing.rate(), Some(Bitrate::from_kbps(6_648)));
        pacing.begin(2.77, ByteCount::new(12_000), Duration::from_millis(10));
        assert_eq!(pacing.rate(), Some(Bitrate::from_kbps(6_648)), "only the first");
    }

    #[test]
    fn the_rate_only_rises_until_the_pipe_was_full() {
        let mut pacing = Pacing::default();
        pacing.begin(2.0, ByteCount::new(12_500), Duration::from_millis(100));
        assert_eq!(pacing.rate(), Some(Bitrate::from_mbps(2)));
        pacing.follow(2.0, Bitrate::from_kbps(500), false);
        assert_eq!(pacing.rate(), Some(Bitrate::from_mbps(2)));
        // 2 · 5 Mbit/s · 0.99
        pacing.follow(2.0, Bitrate::from_mbps(5), false);
        assert_eq!(pacing.rate(), Some(Bitrate::from_kbps(9_900)));
        pacing.follow(1.0, Bitrate::from_mbps(1), true);
        assert_eq!(pacing.rate(), Some(Bitrate::from_kbps(990)));
    }
}
