//! Delivery-rate estimation: how fast data arrives, measured from acknowledgements
//! [BBRv3 §4.1; DeliveryRate].
//!
//! Each packet carries away the state at its sending; its acknowledgement compares it with the
//! state then. The rate is the delivered amount over the longer of the time it took to send it
//! and the time it took to be acknowledged, so that neither a burst nor compressed
//! acknowledgements inflate it.
//!
//! Where a window or a buffer of the connection keeps data back, what a path delivers is what it was given. Such a
//! measurement yields to a larger one that is not much older, or a scheduler that goes by rates would give the path
//! less for having had little.

use core::time::Duration;

use crate::units::{Bitrate, ByteCount, Timestamp, duration};

/// A measurement of what was kept back yields to a larger one for so many of its own intervals: about round trips.
const KEPT_INTERVALS: u64 = 8;

/// A packet's state from its sending to its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct SentState {
    delivered: ByteCount,
    delivered_at: Timestamp,
    first_sent_at: Timestamp,
    sent_at: Timestamp,
    app_limited: bool,
    /// Whether the connection kept data back from the path.
    blocked: bool,
    /// The bytes in flight before it.
    in_flight: ByteCount,
    lost: ByteCount,
}

impl SentState {
    /// When the packet left.
    #[inline]
    pub fn sent_at(&self) -> Timestamp {
        self.sent_at
    }
}

/// One measurement of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// How fast data arrived.
    pub rate: Bitrate,
    /// How much arrived in `interval`.
    pub delivered: ByteCount,
    /// How long that took.
    pub interval: Duration,
    /// How much had been delivered on the path when the packet was sent: rounds are counted by it.
    pub prior_delivered: ByteCount,
    /// Whether the application, not the network, bounded what was sent. The path may be faster.
    pub app_limited: bool,
    /// The bytes in flight right after the packet had been sent, the packet included.
    pub tx_in_flight: ByteCount,
    /// How much was found lost on the path between the sending of the packet and now.
    pub lost: ByteCount,
}

/// The loss of a packet, as a sample of the path: what was tried, and what it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossSample {
    /// Whether the application, not the network, bounded what was sent then.
    pub app_limited: bool,
    /// The bytes in flight right after the packet had been sent, the packet included.
    pub tx_in_flight: ByteCount,
    /// How much was found lost on the path since the packet was sent, the packet included.
    pub lost: ByteCount,
}

/// Estimates the delivery rate of one path.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: ByteCount,
    delivered_at: Timestamp,
    first_sent_at: Timestamp,
    lost: ByteCount,
    /// The application ran dry: samples are marked until this much has been delivered.
    app_limited_until: Option<ByteCount>,
    /// The connection kept data back: likewise.
    blocked_until: Option<ByteCount>,
    last: Option<LastRate>,
    last_at: Timestamp,
}

/// The newest measurement. The rate itself is worked out where it is asked for, as seldom it is.
#[derive(Clone, Copy, Debug)]
struct LastRate {
    delivered: ByteCount,
    /// In nanoseconds: a [`Duration`] takes longer to make, and this is every packet.
    nanos: u64,
}

impl DeliveryRate {
    /// An estimator that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that a packet leaves. `in_flight` is what was in flight before it.
    #[inline]
    pub fn on_sent(&mut self, now: Timestamp, in_flight: ByteCount) -> SentState {
        if in_flight == ByteCount::ZERO {
            // After idleness the clock starts anew, or the pause would count as slowness.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SentState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            sent_at: now,
            app_limited: self.app_limited_until.is_some(),
            blocked: self.blocked_until.is_some(),
            in_flight,
            lost: self.lost,
        }
    }

    /// Notes that the sender had nothing more to send though the window had room; `in_flight` is
    /// what is in flight then.
    pub fn on_app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = Some(self.delivered + in_flight.max(ByteCount::new(1)));
    }

    /// Notes that a window or a buffer of the connection keeps data back though the path has room; `in_flight` is what
    /// is in flight then.
    pub fn on_blocked(&mut self, in_flight: ByteCount) {
        self.blocked_until = Some(self.delivered + in_flight.max(ByteCount::new(1)));
    }

    /// Notes that a packet of `bytes` arrived and gives the rate it shows. `None` where no time
    /// has passed to measure over.
    pub fn on_ack(&mut self, now: Timestamp, bytes: ByteCount, packet: &SentState) -> Option<RateSample> {
        let (delivered, nanos) = self.note_delivered(now, bytes, packet);
        let interval = duration(nanos);
        Some(RateSample {
            rate: delivered.per(interval)?,
            delivered,
            interval,
            prior_delivered: packet.delivered,
            app_limited: packet.app_limited,
            tx_in_flight: packet.in_flight + bytes,
            lost: self.lost - packet.lost,
        })
    }

    /// The same for one who does not read the measurement.
    #[inline]
    pub fn on_ack_unread(&mut self, now: Timestamp, bytes: ByteCount, packet: &SentState) {
        self.note_delivered(now, bytes, packet);
    }

    /// How much arrived, and how long that took, in nanoseconds.
    #[inline]
    fn note_delivered(&mut self, now: Timestamp, bytes: ByteCount, packet: &SentState) -> (ByteCount, u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        self.first_sent_at = self.first_sent_at.max(packet.sent_at);
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if self.blocked_until.is_some_and(|until| self.delivered > until) {
            self.blocked_until = None;
        }
        let send_elapsed = packet.sent_at.nanos_since(packet.first_sent_at);
        let ack_elapsed = now.nanos_since(packet.delivered_at);
        let nanos = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - packet.delivered;
        if nanos > 0 && !(packet.blocked && self.yields_to_last(now, delivered, nanos)) {
            (self.last, self.last_at) = (Some(LastRate { delivered, nanos }), now);
        }
        (delivered, nanos)
    }

    /// Whether the newest measurement is larger than this one, and not too old.
    fn yields_to_last(&self, now: Timestamp, delivered: ByteCount, nanos: u64) -> bool {
        let Some(LastRate { delivered: before, nanos: took }) = self.last else { return false };
        let is_smaller = u128::from(delivered.get()) * u128::from(took) < u128::from(before.get()) * u128::from(nanos);
        is_smaller && now.nanos_since(self.last_at) <= nanos.saturating_mul(KEPT_INTERVALS)
    }

    /// Notes that a packet of `bytes` was lost and gives what that shows.
    pub fn on_lost(&mut self, bytes: ByteCount, packet: &SentState) -> LossSample {
        self.lost += bytes;
        LossSample {
            app_limited: packet.app_limited,
            tx_in_flight: packet.in_flight + bytes,
            lost: self.lost - packet.lost,
        }
    }

    /// How much has been delivered in all.
    pub fn delivered(&self) -> ByteCount {
        self.delivered
    }

    /// The newest rate that was measured.
    pub fn last(&self) -> Option<Bitrate> {
        let LastRate { delivered, nanos } = self.last?;
        delivered.per(duration(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: ByteCount = ByteCount::new(1250);

    fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// A packet each `gap_ms`, acknowledged `rtt_ms` later.
    fn steady(gap_ms: u64, rtt_ms: u64, packets: u64) -> RateSample {
        let mut rate = DeliveryRate::new();
        let mut sent = std::collections::VecDeque::new();
        let mut last = None;
        for tick in 0..packets * gap_ms + rtt_ms {
            if sent.front().is_some_and(|(at, _)| at + rtt_ms == tick) {
                let (_, state) = sent.pop_front().unwrap();
                last = rate.on_ack(ms(tick), PACKET, &state);
            }
            if tick % gap_ms == 0 && tick / gap_ms < packets {
                let in_flight = PACKET * sent.len() as u64;
                sent.push_back((tick, rate.on_sent(ms(tick), in_flight)));
            }
        }
        last.unwrap()
    }

    #[test]
    fn a_packet_of_1250_bytes_each_millisecond_is_10_megabits() {
        let sample = steady(1, 20, 200);
        let mbps = sample.rate.as_mbps_f64();
        assert!((9.5..=10.6).contains(&mbps), "{mbps}");
        assert!(!sample.app_limited);
    }

    #[test]
    fn compressed_acknowledgements_do_not_inflate_the_rate() {
        // Ten packets sent over 10 ms, all acknowledged at 30 ms: 12,500 B over 30 ms, not over 0.
        let mut rate = DeliveryRate::new();
        let states: Vec<_> = (0..10).map(|i| rate.on_sent(ms(i), PACKET * i)).collect();
        let last = states.iter().filter_map(|state| rate.on_ack(ms(30), PACKET, state)).last().unwrap();
        assert_eq!(last.delivered, PACKET * 10);
        assert_eq!(last.interval, Duration::from_millis(30));
    }

    #[test]
    fn samples_are_marked_until_the_dry_spell_has_been_delivered() {
        let mut rate = DeliveryRate::new();
        let first = rate.on_sent(ms(0), ByteCount::ZERO);
        rate.on_app_limited(PACKET);
        let marked = rate.on_sent(ms(1), PACKET);
        assert!(!rate.on_ack(ms(10), PACKET, &first).unwrap().app_limited);
        assert!(rate.on_ack(ms(11), PACKET, &marked).unwrap().app_limited);
        let after = rate.on_sent(ms(12), ByteCount::ZERO);
        assert!(!rate.on_ack(ms(22), PACKET, &after).unwrap().app_limited);
    }

    #[test]
    fn what_was_kept_back_yields_to_a_larger_measurement_for_a_while() {
        /// Packets of which each is sent when the one before it has arrived, from a time on in milliseconds.
        fn after(packets: u64, gap_ms: u64, from: u64, rate: &mut DeliveryRate) -> f64 {
            for sent in (0..packets).map(|n| from + n * gap_ms) {
                let state = rate.on_sent(ms(sent), ByteCount::ZERO);
                rate.on_ack(ms(sent + gap_ms), PACKET, &state);
            }
            rate.last().unwrap().as_mbps_f64()
        }
        let mut rate = DeliveryRate::new();
        assert_eq!(after(10, 1, 0, &mut rate), 10.0);
        assert_eq!(after(1, 2, 10, &mut rate.clone()), 5.0, "nothing was kept back");
        rate.on_blocked(PACKET * 100);
        assert_eq!(after(8, 2, 10, &mut rate.clone()), 10.0, "for eight intervals of 2 ms");
        assert_eq!(after(9, 2, 10, &mut rate.clone()), 5.0, "and no longer");
        let mut slow = rate.clone();
        assert_eq!(after(9, 2, 10, &mut slow), 5.0);
        assert_eq!(after(1, 1, 28, &mut slow), 10.0, "a larger one counts at once");
    }

    #[test]
    fn losses_count_from_the_sending_of_each_packet() {
        let mut rate = DeliveryRate::new();
        let packets: Vec<_> = (0..3).map(|i| rate.on_sent(ms(i), PACKET * i)).collect();
        let first = rate.on_lost(PACKET, &packets[0]);
        assert_eq!((first.tx_in_flight, first.lost), (PACKET, PACKET));
        // Sent after that loss was found: it does not count for this one.
        let late = rate.on_sent(ms(10), PACKET * 2);
        let second = rate.on_lost(PACKET, &packets[1]);
        assert_eq!((second.tx_in_flight, second.lost), (PACKET * 2, PACKET * 2));
        let third = rate.on_ack(ms(20), PACKET, &packets[2]).unwrap();
        assert_eq!((third.tx_in_flight, third.lost), (PACKET * 3, PACKET * 2));
        let late = rate.on_ack(ms(30), PACKET, &late).unwrap();
        assert_eq!((late.tx_in_flight, late.lost), (PACKET * 3, PACKET));
    }

    #[test]
    fn idleness_does_not_count_as_slowness() {
        let mut rate = DeliveryRate::new();
        let first = rate.on_sent(ms(0), ByteCount::ZERO);
        rate.on_ack(ms(10), PACKET, &first);
        let late = rate.on_sent(ms(5_000), ByteCount::ZERO);
        let sample = rate.on_ack(ms(5_010), PACKET, &late).unwrap();
        assert_eq!(sample.interval, Duration::from_millis(10));
    }
}
