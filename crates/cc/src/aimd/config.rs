//! The parameters that all AIMD rules share.

use fairpath_core::ByteCount;

use super::Losses;
use crate::slow_start::SlowStart;

/// The parameters that all AIMD rules share. The defaults are those of QUIC, but for HyStart++,
/// which QUIC leaves open and published measurements of these rules do not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AimdConfig {
    /// The window of a new path, in datagrams: 10 [RFC6928 §2; RFC9002 §7.2].
    pub initial_window_datagrams: u32,
    /// The window of a new path is at most this, or two datagrams where they are larger: 14,720 B
    /// [RFC9002 §7.2]. [`ByteCount::MAX`] leaves the number of datagrams alone.
    pub initial_window_cap: ByteCount,
    /// No window falls below this, in datagrams: 2 [RFC9002 §7.2]. Published measurements of OLIA
    /// and BALIA, where an unused path costs one packet per round trip, need 1: a timeout then leaves
    /// one datagram, and a loss at least the least threshold.
    pub min_window_datagrams: u32,
    /// The least slow-start threshold, in datagrams: 2 [RFC5681 §3.1 eq. 4]. A rule may go lower
    /// where paths are coupled.
    pub min_ssthresh_datagrams: u32,
    /// How slow start finds its end.
    pub slow_start: SlowStart,
    /// The losses that are taken for congestion.
    pub losses: Losses,
    /// How much faster than window per round trip a path paces in slow start: 2, because the window
    /// doubles within the round trip.
    pub pacing_gain_slow_start: f64,
    /// How much faster than window per round trip it paces later: 1.25 [RFC9002 §7.7].
    pub pacing_gain: f64,
}

impl Default for AimdConfig {
    fn default() -> Self {
        Self {
            initial_window_datagrams: 10,
            initial_window_cap: ByteCount::new(14_720),
            min_window_datagrams: 2,
            min_ssthresh_datagrams: 2,
            slow_start: SlowStart::Standard,
            losses: Losses::Congestion,
            pacing_gain_slow_start: 2.0,
            pacing_gain: 1.25,
        }
    }
}

impl AimdConfig {
    /// The parameters of TCP: a timeout leaves one segment [RFC5681 §3.1], and the first window is at
    /// most 14,600 B [RFC6928 §2].
    pub fn tcp() -> Self {
        Self { initial_window_cap: ByteCount::new(14_600), min_window_datagrams: 1, ..Self::default() }
    }
}
