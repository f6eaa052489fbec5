//! Reno: one datagram more per round trip, half the window after congestion. It ignores the other
//! paths, and it is what every coupled rule does on a path that is alone.
//!
//! # Source
//!
//! [RFC5681] TCP Congestion Control; in the form that QUIC gives it, [RFC9002 §7].
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | cwnd | `cwnd` | bytes |
//! | SMSS, max_datagram_size | `max_datagram` | bytes |
//!
//! # Deviations
//!
//! None beyond those of the machine.

use fairpath_core::ByteCount;

use crate::aimd::{GroupView, PathWindow, Rule};

/// Reno, on each path by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl Rule for Reno {
    type Memory = ();
    type News = ();

    fn increase(&self, group: &impl GroupView<()>, acked: ByteCount) -> f64 {
        increase(group.own(), acked)
    }

    fn decrease(&self, group: &impl GroupView<()>) -> f64 {
        halved(group.own())
    }
}

// [RFC9002 §7.3.3]
//     congestion_window += max_datagram_size * acked_bytes / congestion_window
pub(super) fn increase(window: &PathWindow, acked: ByteCount) -> f64 {
    window.max_datagram() * acked.as_f64() / window.cwnd()
}

// [RFC9002 §7.3.2]
//     ssthresh = congestion_window * 1/2
pub(super) fn halved(window: &PathWindow) -> f64 {
    window.cwnd() / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::testing::*;

    #[test]
    fn a_window_of_packets_acknowledged_adds_one_packet() {
        // 1/20 for each of the 20 packets; a little less, because the window grows meanwhile.
        let mut reno = in_avoidance(Reno, &[(20, 100)]);
        assert_near(growth(&mut reno, 0, 100), 1.0 / 20.0);
        let total: f64 = (1..20).map(|_| growth(&mut reno, 0, 100)).sum();
        assert!((0.9..0.95).contains(&total), "{total}");
    }

    #[test]
    fn congestion_halves_the_window_and_other_paths_do_not_matter() {
        let mut reno = in_avoidance(Reno, &[(20, 100), (10, 50)]);
        assert_near(growth(&mut reno, 0, 100), 1.0 / 20.0);
        reno.on_congestion(path(1), &loss(11_000));
        assert_eq!(reno.window(path(1)), PACKET * 5);
    }
}
