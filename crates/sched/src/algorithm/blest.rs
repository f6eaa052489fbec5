//! BLEST: no packet goes on a slower path if it would hold the connection's window for so long that
//! the faster path could not be used meanwhile.
//!
//! # Source
//! [BLEST §III]; as in Linux MPTCP 0.95 (`mptcp_blest`), by description.
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | s, f | the path of min-RTT among those with room; among all | |
//! | T | `linger`, how long a packet stays on s | time |
//! | N | `rounds`, how many round trips f makes in that time | 1 |
//! | X · MSS | `sent_in`, what f could send in that time | bytes |
//! | λ | `lambda`, the correction factor of that estimate | 1 |
//! | W | [`ConnectionView::window`] | bytes |
//!
//! # Deviations
//! Where the host knows no window of the connection nothing can be blocked, and this is min-RTT. λ follows events of
//! the connection in place of retransmissions: it grows where a window held new data back since its last change.

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, Timestamp};

use crate::extremes::Extremes;
use crate::scheduler::{Choice, ConnectionView, PathView, Scheduler, active, candidates};

/// λ at the beginning, and its bounds [BLEST §III], Linux MPTCP 0.95.
const LAMBDA: (f64, f64, f64) = (1.2, 1.0, 1.3);

/// Steps of λ: up if the window blocked, down if it did not (Linux MPTCP 0.95).
const LAMBDA_UP: f64 = 0.04;
const LAMBDA_DOWN: f64 = 0.01;

/// In slow start a window doubles no more often than this for the estimate (Linux MPTCP 0.95).
const DOUBLINGS_MAX: u32 = 16;

/// Sends on the fastest path with room, unless that would block a faster one.
#[derive(Debug)]
pub struct Blest {
    lambda: f64,
    /// Whether the window has blocked since λ changed, and when that was.
    has_blocked: bool,
    changed_at: Timestamp,
    extremes: Extremes,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda: LAMBDA.0, has_blocked: false, changed_at: Timestamp::ZERO, extremes: Extremes::default() }
    }
}

impl Blest {
    /// How long a packet that is sent on the path now stays there.
    fn linger(&self, path: &PathView) -> Option<Duration> {
        let (least, greatest) = self.extremes.of(path)?;
        let (in_flight, window) = (in_packets(path, path.in_flight) + 1, in_packets(path, path.window).max(1));
        let filled = if in_flight >= window { 1.0 } else { in_flight as f64 / window as f64 };
        let estimate = least + (greatest - least).mul_f64(filled);
        Some(estimate.max(path.smoothed()?))
    }

    /// How much the path could send in that time.
    fn sent_in(&self, path: &PathView, time: Duration) -> ByteCount {
        let average = self.extremes.of(path).map_or(Duration::ZERO, |(least, greatest)| (least + greatest) / 2);
        let rounds = if average.is_zero() { 1 } else { 1 + (time.as_nanos() / average.as_nanos()) as u64 };
        let window = in_packets(path, path.window);
        let packets = match path.ssthresh {
            None => window.saturating_mul((1 << rounds.min(DOUBLINGS_MAX.into())) - 1),
            Some(ssthresh) => {
                let window = window.max(in_packets(path, ssthresh) + 1);
                (window + (rounds - 1) / 2).saturating_mul(rounds)
            }
        };
        ByteCount::new((packets as f64 * path.max_datagram.get() as f64 * self.lambda) as u64)
    }
}

fn in_packets(path: &PathView, bytes: ByteCount) -> u64 {
    bytes.get() / path.max_datagram.get().max(1)
}

impl Scheduler for Blest {
    fn pick(&self, connection: &ConnectionView, paths: &[PathView], _now: Timestamp) -> Choice {
        let by_time = |path: &&PathView| (path.smoothed(), path.id);
        let Some(slow) = candidates(paths).min_by_key(by_time) else { return Choice::Wait };
        let Some(fast) = active(paths).min_by_key(by_time) else { return Choice::Wait };
        let (Some(window), Some(linger)) = (connection.window, self.linger(slow)) else { return Choice::Send(slow.id) };
        // Nothing is heard of a path with nothing in flight: nobody would ask again.
        if fast.id == slow.id || fast.in_flight == ByteCount::ZERO {
            return Choice::Send(slow.id);
        }
        let held = slow.in_flight + slow.max_datagram;
        match self.sent_in(fast, linger) > window.saturating_sub(held) {
            true => Choice::WaitFor(fast.id),
            false => Choice::Send(slow.id),
        }
    }

    fn hears_acks(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &PathView, _bytes: ByteCount, now: Timestamp) {
        self.extremes.note(path);
        // Once for each least round-trip time.
        let Some((least, _)) = self.extremes.of(path) else { return };
        if now.since(self.changed_at) >= least {
            let step = if core::mem::take(&mut self.has_blocked) { LAMBDA_UP } else { -LAMBDA_DOWN };
            self.lambda = (self.lambda + step).clamp(LAMBDA.1, LAMBDA.2);
            self.changed_at = now;
        }
    }

    fn on_window_blocked(&mut self, _now: Timestamp) {
        self.has_blocked = true;
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.extremes.forget(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{path, view};

    fn window(bytes: u64) -> ConnectionView {
        ConnectionView { window: Some(ByteCount::new(bytes)), ..ConnectionView::default() }
    }

    /// A fast path of 20 ms that is full, and a slow one of 100 ms with room; both know their slow-start threshold.
    fn paths() -> [PathView; 2] {
        let mut paths = [view(0, 20), view(1, 100)];
        paths[0].in_flight = paths[0].window;
        for path in &mut paths {
            path.ssthresh = Some(ByteCount::new(1_200));
        }
        paths
    }

    fn choice(blest: &Blest, connection: &ConnectionView, paths: &[PathView]) -> Choice {
        blest.pick(connection, paths, Timestamp::ZERO)
    }

    #[test]
    fn a_slow_path_is_left_alone_where_its_packet_would_block_the_fast_one() {
        // T = 100 ms, N = 6, X = (10 + 2) · 6 = 72 packets, with λ = 1.2 103,680 bytes; 1,200 go on s.
        let (paths, blest) = (paths(), Blest::default());
        assert_eq!(choice(&blest, &window(104_879), &paths), Choice::WaitFor(path(0)));
        assert_eq!(choice(&blest, &window(104_880), &paths), Choice::Send(path(1)));
    }

    #[test]
    fn in_slow_start_the_fast_path_is_taken_to_double() {
        // 10 · (2⁶ − 1) = 630 packets, 907,200 bytes with λ.
        let (mut paths, blest) = (paths(), Blest::default());
        paths[0].ssthresh = None;
        assert_eq!(choice(&blest, &window(908_399), &paths), Choice::WaitFor(path(0)));
        assert_eq!(choice(&blest, &window(908_400), &paths), Choice::Send(path(1)));
    }

    #[test]
    fn without_a_window_or_with_room_on_the_fast_path_it_is_min_rtt() {
        let (mut paths, blest) = (paths(), Blest::default());
        assert_eq!(choice(&blest, &ConnectionView::default(), &paths), Choice::Send(path(1)));
        paths[0].in_flight = ByteCount::ZERO;
        assert_eq!(choice(&blest, &window(0), &paths), Choice::Send(path(0)));
        paths[0].window = ByteCount::ZERO;
        assert_eq!(choice(&blest, &window(0), &paths), Choice::Send(path(1)), "nothing would be heard of path 0");
    }

    #[test]
    fn lambda_rises_where_the_window_blocked_and_falls_where_it_did_not() {
        let (paths, mut blest) = (paths(), Blest::default());
        let mut now = Timestamp::ZERO;
        let mut step = |blest: &mut Blest, times: u32| {
            for _ in 0..times {
                now = now + Duration::from_millis(20);
                blest.on_ack(&paths[0], ByteCount::new(1_200), now);
            }
            blest.lambda
        };
        assert!((step(&mut blest, 3) - 1.17).abs() < 1e-9);
        assert_eq!(step(&mut blest, 100), 1.0);
        blest.on_window_blocked(Timestamp::ZERO);
        assert!((step(&mut blest, 1) - 1.04).abs() < 1e-9, "once for all blocks since");
        assert!((step(&mut blest, 1) - 1.03).abs() < 1e-9);
    }
}
