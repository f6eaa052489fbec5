//! Slow start: where a window begins, and how it doubles each round trip until the threshold.

use fairpath_core::Bytes;

/// The window of a new path, in bytes.
///
/// ```text
/// [RFC6928 §2] [RFC9002 §7.2]
///     min( datagrams * max_datagram, max( cap, 2 * max_datagram ) )
/// ```
pub(crate) fn initial_window(datagrams: u32, cap: Bytes, max_datagram: Bytes) -> f64 {
    let wanted = f64::from(datagrams) * max_datagram.as_f64();
    wanted.min(cap.as_f64().max(2.0 * max_datagram.as_f64()))
}

/// The window after `acked`, in bytes: it grows by what was acknowledged [RFC9002 §7.3.1]. It stops
/// at the threshold, because from there on the rule decides.
pub(crate) fn grown(cwnd: f64, ssthresh: Option<f64>, acked: Bytes) -> f64 {
    let doubled = cwnd + acked.as_f64();
    ssthresh.map_or(doubled, |limit| doubled.min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Bytes = Bytes::new(14_720);

    #[test]
    fn the_first_window_is_ten_datagrams_capped_for_large_ones() {
        assert_eq!(initial_window(10, CAP, Bytes::new(1200)), 12_000.0);
        assert_eq!(initial_window(10, CAP, Bytes::new(1500)), 14_720.0);
        // Two jumbo datagrams are more than the cap: 2 · 9000
        assert_eq!(initial_window(10, CAP, Bytes::new(9000)), 18_000.0);
    }

    #[test]
    fn growth_stops_at_the_threshold() {
        assert_eq!(grown(12_000.0, None, Bytes::new(1200)), 13_200.0);
        assert_eq!(grown(12_000.0, Some(12_500.0), Bytes::new(1200)), 12_500.0);
    }
}
