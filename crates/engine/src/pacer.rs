//! When a path may send its next packet at a given rate: a bucket of tokens that are worth time
//! [RFC9002 §7.7].

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

/// How much sending time may be saved up: packets leave in bursts of this length at most, plus
/// one packet. Timers of hosts are about this exact.
const BURST: Duration = Duration::from_millis(2);

/// Datagrams that may leave at once in real time [RFC9002 §7.7].
pub(crate) const BURST_DATAGRAMS: u64 = 10;

/// The delay of timers for which a host that waits for the pacer may make up. It covers the worst
/// timers, those of an overloaded machine.
const LATE_MAX: Duration = Duration::from_millis(20);

/// Spaces the packets of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// When everything sent so far would have been sent at the rate.
    paid_until: Timestamp,
    /// The same without saved-up time: later than now while packets left in a burst.
    burst_until: Timestamp,
    /// The least burst, whatever the rate.
    burst: ByteCount,
    /// Whether the host waits for it, with something to send.
    is_waited_for: bool,
}

impl Pacer {
    /// A pacer that allows bursts of `burst`, even above [`BURST`] of sending time: for hosts whose
    /// timers may be late. Without it a small window would lose sending time for good, and would
    /// not grow.
    pub(crate) fn with_burst(burst: ByteCount) -> Self {
        Self { burst, ..Self::default() }
    }

    /// How much sending time may be saved up at this rate.
    fn saved_max(&self, rate: Bitrate) -> Duration {
        let saved = BURST.max(self.burst / rate);
        if self.is_waited_for { saved.max(LATE_MAX) } else { saved }
    }

    /// Says whether the host has something to send, and waits only for this.
    pub(crate) fn set_waited_for(&mut self, is_waited_for: bool) {
        self.is_waited_for = is_waited_for;
    }

    /// Notes that a packet of `bytes` left.
    pub(crate) fn on_sent(&mut self, now: Timestamp, bytes: ByteCount, rate: Bitrate) {
        let takes = bytes / rate;
        self.paid_until = self.paid_until.max(now - self.saved_max(rate)) + takes;
        self.burst_until = self.burst_until.max(now) + takes;
    }

    /// When the next packet may leave.
    pub(crate) fn free_at(&self) -> Timestamp {
        self.paid_until
    }

    /// When the packets sent so far would have left, evenly spaced.
    pub(crate) fn burst_until(&self) -> Timestamp {
        self.burst_until
    }

    /// How much may leave at `now` before the next packet has to wait, at this rate.
    pub(crate) fn allowance(&self, now: Timestamp, rate: Bitrate) -> ByteCount {
        rate * now.since(self.paid_until.max(now - self.saved_max(rate)))
    }

    /// Whether a packet may leave at `now`.
    pub(crate) fn may_send(&self, now: Timestamp) -> bool {
        self.paid_until <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_as_long_as_it_would_have_taken_evenly() {
        // A millisecond for each.
        let (rate, packet) = (Bitrate::from_mbps(10), ByteCount::new(1250));
        let mut pacer = Pacer::with_burst(packet * 10);
        (0..10).for_each(|_| pacer.on_sent(Timestamp::from_millis(100), packet, rate));
        assert!(pacer.may_send(Timestamp::from_millis(100)));
        assert_eq!(pacer.burst_until(), Timestamp::from_millis(110));
        (200..300).for_each(|at| pacer.on_sent(Timestamp::from_millis(at), packet, rate));
        assert_eq!(pacer.burst_until(), Timestamp::from_millis(300), "no burst");
    }

    #[test]
    fn over_a_second_the_rate_is_held_to_one_burst() {
        let rate = Bitrate::from_mbps(10);
        let packet = ByteCount::new(1250);
        let mut pacer = Pacer::default();
        let mut sent = ByteCount::ZERO;
        for micros in (1_000_000..2_000_000).step_by(50) {
            let now = Timestamp::from_micros(micros);
            while pacer.may_send(now) {
                pacer.on_sent(now, packet, rate);
                sent += packet;
            }
        }
        // 10 Mbit/s · 1 s = 1.25 MB, and at most 2 ms and one packet more.
        let allowed = rate * Duration::from_secs(1);
        assert!(sent >= allowed && sent <= allowed + (rate * BURST) + packet, "{sent:?}");
    }

    /// A host that looks every 20 ms.
    #[test]
    fn a_late_host_still_sends_at_the_rate_where_it_may_burst_or_waits_for_the_pacer() {
        let packet = ByteCount::new(1250);
        let waited_for = Pacer { is_waited_for: true, ..Pacer::default() };
        // At 1 Mbit/s a packet takes 10 ms, and two of them are due at each look; at 100 Mbit/s 2 ms are a tenth.
        for (mut pacer, mbps, share) in [
            (Pacer::default(), 1, 0.5),
            (Pacer::with_burst(packet * 10), 1, 1.0),
            (Pacer::with_burst(packet * 10), 100, 0.1),
            (waited_for, 100, 1.0),
        ] {
            let rate = Bitrate::from_mbps(mbps);
            let mut sent = ByteCount::ZERO;
            for millis in (1_000..11_000).step_by(20) {
                let now = Timestamp::from_millis(millis);
                while pacer.may_send(now) {
                    pacer.on_sent(now, packet, rate);
                    sent += packet;
                }
            }
            let allowed = rate * Duration::from_secs(10);
            // The first burst comes on top.
            let (least, most) = (share - 0.01, share + 0.03);
            let of_allowed = sent.get() as f64 / allowed.get() as f64;
            assert!((least..=most).contains(&of_allowed), "{of_allowed} of the rate, expected {share}");
        }
    }
}
