//! The delivery of one acknowledgement, put together from its packets [BBRv3 §4.1.2.3].

use core::time::Duration;

use fairpath_core::{Ack, Bitrate, ByteCount, RateSample, Timestamp};

/// The delivery of one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// When it came.
    pub(crate) now: Timestamp,
    /// How much it acknowledged.
    pub(crate) newly_acked: ByteCount,
    /// The bytes in flight before it.
    pub(crate) prior_in_flight: ByteCount,
    /// The bytes in flight after it.
    pub(crate) in_flight: ByteCount,
    /// How much has been delivered on the path in all.
    pub(crate) delivered: ByteCount,
    /// When the newest packet that it acknowledged had been sent.
    pub(crate) sent_at: Timestamp,
    /// Whether the window, not a lack of data, bounded what was sent in the last round.
    pub(crate) window_limited: bool,
    /// The delivery rate, by its newest packet.
    pub(crate) rate: Option<Rate>,
}

impl Delivery {
    /// The round-trip time of the newest packet: the least queued of them.
    pub(crate) fn rtt(&self) -> Duration {
        self.now.since(self.sent_at)
    }
}

/// The delivery rate, by the newest packet of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// How fast data arrived.
    pub(crate) bandwidth: Bitrate,
    /// How much arrived since the packet was sent.
    pub(crate) delivered: ByteCount,
    /// How much had been delivered on the path when the packet was sent.
    pub(crate) prior_delivered: ByteCount,
    /// Whether the application bounded what was sent.
    pub(crate) app_limited: bool,
    /// The bytes in flight right after the packet had been sent.
    pub(crate) tx_in_flight: ByteCount,
    /// How much was found lost between its sending and now.
    pub(crate) lost: ByteCount,
}

/// The packets of the acknowledgement that is being read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    delivered: ByteCount,
    pending: Option<Pending>,
}

#[derive(Clone, Debug)]
struct Pending {
    acked: ByteCount,
    prior_in_flight: ByteCount,
    in_flight: ByteCount,
    sent_at: Timestamp,
    window_limited: bool,
    newest: Option<RateSample>,
}

impl Gathered {
    /// Notes one packet.
    pub(crate) fn add(&mut self, ack: &Ack) {
        self.delivered = match ack.rate {
            Some(sample) => self.delivered.max(sample.prior_delivered + sample.delivered),
            None => self.delivered + ack.bytes,
        };
        let pending = self.pending.get_or_insert(Pending {
            acked: ByteCount::ZERO,
            prior_in_flight: ack.in_flight,
            in_flight: ack.in_flight,
            sent_at: ack.sent_at,
            window_limited: false,
            newest: None,
        });
        pending.acked += ack.bytes;
        pending.in_flight = ack.in_flight.saturating_sub(ack.bytes);
        pending.window_limited |= ack.window_limited;
        if ack.sent_at >= pending.sent_at {
            pending.sent_at = ack.sent_at;
            pending.newest = ack.rate;
        }
    }

    /// The acknowledgement as a whole; `None` where it acknowledged nothing.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<Delivery> {
        let pending = self.pending.take()?;
        let delivered = self.delivered;
        // Packets of the same acknowledgement that were reported after the newest count as well.
        let rate = pending.newest.and_then(|sample| {
            let arrived = delivered.saturating_sub(sample.prior_delivered);
            Some(Rate {
                bandwidth: arrived.per(sample.interval).filter(|bandwidth| *bandwidth > Bitrate::ZERO)?,
                delivered: arrived,
                prior_delivered: sample.prior_delivered,
                app_limited: sample.app_limited,
                tx_in_flight: sample.tx_in_flight,
                lost: sample.lost,
            })
        });
        Some(Delivery {
            now,
            newly_acked: pending.acked,
            prior_in_flight: pending.prior_in_flight,
            in_flight: pending.in_flight,
            delivered,
            sent_at: pending.sent_at,
            window_limited: pending.window_limited,
            rate,
        })
    }
}

/// The span of deliveries for which the algorithm itself holds the rate down, to look for the
/// round-trip time: rate samples from it say nothing of the bandwidth.
///
/// The sources have the algorithm mark the connection as limited by the application; here nothing
/// calls back, so the algorithm remembers which packets would carry the mark.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnLimit {
    /// The deliveries after which the first and the last packet were sent that carry the mark.
    span: Option<(ByteCount, ByteCount)>,
}

impl OwnLimit {
    /// The limit begins after `delivered`.
    pub(crate) fn begin(&mut self, delivered: ByteCount) {
        self.span = Some((delivered, delivered));
    }

    /// The limit still holds, with this in flight.
    pub(crate) fn extend(&mut self, delivered: ByteCount, in_flight: ByteCount) {
        if let Some((_, last)) = &mut self.span {
            *last = delivered + in_flight;
        }
    }

    /// Marks the rate where its packet was sent under the limit.
    pub(crate) fn mark(&self, rate: Rate) -> Rate {
        let limited = self.span.is_some_and(|(first, last)| (first..=last).contains(&rate.prior_delivered));
        Rate { app_limited: rate.app_limited || limited, ..rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    const PACKET: ByteCount = ByteCount::new(1_250);

    fn ack(sent_ms: u64, in_flight: u64, rate: Option<RateSample>) -> Ack {
        Ack {
            now: Timestamp::from_millis(100),
            sent_at: Timestamp::from_millis(sent_ms),
            bytes: PACKET,
            in_flight: PACKET * in_flight,
            window_limited: false,
            rtt: None,
            rate,
        }
    }

    fn sample(prior: u64, delivered: u64) -> Option<RateSample> {
        Some(RateSample {
            rate: Bitrate::from_mbps(1),
            delivered: PACKET * delivered,
            interval: ms(50),
            prior_delivered: PACKET * prior,
            app_limited: false,
            tx_in_flight: PACKET * 9,
            lost: ByteCount::ZERO,
        })
    }

    #[test]
    fn an_acknowledgement_of_several_packets_is_one_delivery_told_by_the_newest() {
        let mut gathered = Gathered::default();
        // The newest first, as QUIC lists them.
        gathered.add(&ack(60, 8, sample(20, 10)));
        gathered.add(&ack(58, 7, sample(19, 12)));
        gathered.add(&ack(56, 6, sample(18, 14)));
        let delivery = gathered.take(Timestamp::from_millis(100)).unwrap();
        assert_eq!((delivery.newly_acked, delivery.rtt()), (PACKET * 3, ms(40)));
        assert_eq!((delivery.prior_in_flight, delivery.in_flight), (PACKET * 8, PACKET * 5));
        let rate = delivery.rate.unwrap();
        // 32 packets in all, 20 of them before: 12 · 1,250 B in 50 ms = 2.4 Mbit/s
        assert_eq!((rate.delivered, rate.bandwidth), (PACKET * 12, Bitrate::from_kbps(2_400)));
        assert!(gathered.take(Timestamp::from_millis(100)).is_none());
    }

    #[test]
    fn packets_sent_under_the_algorithms_own_limit_are_marked_and_no_others() {
        let mut limit = OwnLimit::default();
        let mut gathered = Gathered::default();
        gathered.add(&ack(60, 8, sample(20, 10)));
        let rate = gathered.take(Timestamp::from_millis(100)).unwrap().rate.unwrap();
        let marked =
            |limit: &OwnLimit, prior: u64| limit.mark(Rate { prior_delivered: PACKET * prior, ..rate }).app_limited;
        assert!(!marked(&limit, 20));
        limit.begin(PACKET * 20);
        limit.extend(PACKET * 22, PACKET * 4);
        assert_eq!([19, 20, 26, 27].map(|prior| marked(&limit, prior)), [false, true, true, false]);
    }
}
