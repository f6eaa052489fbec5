//! Slow start: where a window begins, and how it doubles each round trip until the threshold.

mod hystart_plus_plus;

use fairpath_core::ByteCount;

pub(crate) use hystart_plus_plus::HyStartPlusPlus;

/// How slow start finds its end, where no loss does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlowStart {
    /// It does not: it doubles the window each round trip until a loss or the threshold
    /// [RFC5681 §3.1].
    #[default]
    Standard,
    /// The first slow start of a path also ends where the round-trip time grows [RFC9406 §4.2]. Later
    /// ones have a threshold. There is no limit to what one acknowledgement adds, as is right where
    /// the host paces [RFC9406 §4.3].
    HyStartPlusPlus,
}

/// The window of a new path, in bytes.
///
/// ```text
/// [RFC6928 §2] [RFC9002 §7.2]
///     min( datagrams * max_datagram, max( cap, 2 * max_datagram ) )
/// ```
pub(crate) fn initial_window(datagrams: u32, cap: ByteCount, max_datagram: ByteCount) -> f64 {
    let wanted = f64::from(datagrams) * max_datagram.as_f64();
    wanted.min(cap.as_f64().max(2.0 * max_datagram.as_f64()))
}

/// The window after `acked` bytes, in bytes: it grows by what was acknowledged [RFC9002 §7.3.1]. It
/// stops at the threshold, because from there on the rule decides.
pub(crate) fn grown(cwnd: f64, ssthresh: Option<f64>, acked: f64) -> f64 {
    let doubled = cwnd + acked;
    ssthresh.map_or(doubled, |limit| doubled.min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: ByteCount = ByteCount::new(14_720);

    #[test]
    fn the_first_window_is_ten_datagrams_capped_for_large_ones() {
        assert_eq!(initial_window(10, CAP, ByteCount::new(1200)), 12_000.0);
        assert_eq!(initial_window(10, CAP, ByteCount::new(1500)), 14_720.0);
        // Two jumbo datagrams are more than the cap: 2 · 9000
        assert_eq!(initial_window(10, CAP, ByteCount::new(9000)), 18_000.0);
    }

    #[test]
    fn growth_stops_at_the_threshold() {
        assert_eq!(grown(12_000.0, None, 1200.0), 13_200.0);
        assert_eq!(grown(12_000.0, Some(12_500.0), 1200.0), 12_500.0);
    }
}
