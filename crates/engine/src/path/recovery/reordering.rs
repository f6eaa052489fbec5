//! How late a packet may be before it is taken for lost, where paths reorder: RACK's reordering window
//! [RFC8985 §6.2].
//!
//! A packet is taken for lost when three later ones have arrived, or when it is an eighth of a round trip late
//! [RFC9002 §6.1]. Where packets that were taken for lost arrive behind later ones after all, the path reorders.
//! Then later arrivals say nothing any more, and time alone tells, with a window as wide as packets have been late.
//! Thresholds that grow so are what [RFC9002 §6.1.1] proposes.
//!
//! # Deviations
//!
//! - RACK learns from a receiver's duplicates that it was wrong, and widens its window by a quarter of a round trip
//!   each time. Packet numbers are never used twice, so that here the acknowledgement itself says so, and by how much.
//! - RACK's window is at most a smoothed round-trip time [RFC8985 §6.2 step 4]. That is short where packets overtake each
//!   other by more: only the newest of all give samples, those that came soonest. So it is three probe timeouts, which
//!   follow how much round trips vary. Two paths of 50 Mbit/s with 20 ms of jitter carry 83 Mbit/s in the simulator, and 6
//!   with a round trip.
//! - RACK never goes back to counting packets. Here all is forgotten after 16 rounds with losses that were real, as its
//!   window is there.

use core::time::Duration;

use fairpath_core::{Rtt, Timestamp};

use super::PERSISTENT;

/// [RFC9002 §6.1.1, kPacketThreshold]
const PACKET_THRESHOLD: u64 = 3;
/// [RFC9002 §6.1.2, kGranularity]
const GRANULARITY: Duration = Duration::from_millis(1);
/// How many rounds with real losses pass before the window closes [RFC8985 §6.2, reo_wnd_persist].
const PERSIST_ROUNDS: u32 = 16;

/// The reordering of a path.
#[derive(Debug, Default)]
pub(super) struct Reordering {
    /// How much longer than a round trip overtaken packets took; zero: there were none.
    window: Duration,
    /// For how many rounds with losses the window stays.
    rounds_left: u32,
    /// A round with losses ends when this packet is acknowledged.
    round_end: u64,
}

impl Reordering {
    /// A packet that was taken for lost and had been sent at `sent_at` is acknowledged now, after later ones were.
    pub(super) fn on_late(&mut self, sent_at: Timestamp, rtt: Option<Rtt>, now: Timestamp) {
        let Some(rtt) = rtt else { return };
        let late_by = now.since(sent_at + rtt.smoothed);
        // A real loss has to be found some time: longer gaps are outages.
        self.window = self.window.max(late_by.max(GRANULARITY)).min(rtt.probe_timeout() * PERSISTENT);
        self.rounds_left = PERSIST_ROUNDS;
    }

    /// Packets are taken for lost, while `newest_acked` is the newest that has arrived and `next` the next to be sent.
    pub(super) fn on_lost(&mut self, newest_acked: u64, next: u64) {
        if newest_acked < self.round_end {
            return;
        }
        self.round_end = next;
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if self.rounds_left == 0 {
            self.window = Duration::ZERO;
        }
    }

    /// How many later packets must have arrived before one is taken for lost.
    pub(super) fn packet_threshold(&self) -> u64 {
        if self.window.is_zero() { PACKET_THRESHOLD } else { u64::MAX }
    }

    /// How long after it was sent a packet that others have overtaken is taken for lost: 9/8 of the longer of the
    /// smoothed and the latest round-trip time [RFC9002 §6.1.2], and the window.
    pub(super) fn patience(&self, rtt: Option<Rtt>) -> Duration {
        let round = rtt.map_or(Rtt::INITIAL, |rtt| (rtt.smoothed.max(rtt.latest) * 9 / 8).max(GRANULARITY));
        round + self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn rtt(millis: u64) -> Option<Rtt> {
        let rtt = ms(millis);
        Some(Rtt::steady(rtt))
    }

    #[test]
    fn the_window_is_as_wide_as_packets_were_late_and_no_wider_than_three_probe_timeouts() {
        let mut reordering = Reordering::default();
        assert_eq!((reordering.packet_threshold(), reordering.patience(rtt(80))), (3, ms(90)));
        // Sent at 100 ms, expected at 180 ms, there at 200 ms.
        reordering.on_late(Timestamp::from_millis(100), rtt(80), Timestamp::from_millis(200));
        assert_eq!((reordering.packet_threshold(), reordering.patience(rtt(80))), (u64::MAX, ms(110)));
        reordering.on_late(Timestamp::from_millis(300), rtt(80), Timestamp::from_millis(390));
        assert_eq!(reordering.patience(rtt(80)), ms(110), "less late than before");
        reordering.on_late(Timestamp::from_millis(300), rtt(80), Timestamp::from_millis(900));
        // Round trips of 80 ms that do not vary, but by what a timer does: 3 (80 + 1).
        assert_eq!(reordering.patience(rtt(80)), ms(90 + 243));
    }

    #[test]
    fn sixteen_rounds_of_real_losses_close_the_window() {
        let mut reordering = Reordering::default();
        reordering.on_late(Timestamp::ZERO, rtt(80), Timestamp::from_millis(100));
        for round in 1..=16 {
            assert_eq!(reordering.packet_threshold(), u64::MAX, "round {round}");
            // Several losses in one round count once.
            (0..3).for_each(|_| reordering.on_lost(10 * round, 10 * (round + 1)));
        }
        assert_eq!((reordering.packet_threshold(), reordering.patience(rtt(80))), (3, ms(90)));
    }
}
