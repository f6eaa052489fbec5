//! Means of the tests of the models: a path that is told of acknowledgements one by one.

use fairpath_core::{Bitrate, ByteCount, Congestion, CongestionSignal, LossSample, LostPacket, Timestamp};

use super::{BbrConfig, Delivery, Opening, PathModel, Random, Rate, Sizes};
use crate::testing::{ms, path};

/// 1 ms at 10 Mbit/s.
pub(crate) const DATAGRAM: ByteCount = ByteCount::new(1_250);

/// The control of a path, and what it was told.
#[derive(Clone, Debug)]
pub(crate) struct Driver<M> {
    pub(crate) model: M,
    pub(crate) now: Timestamp,
    pub(crate) delivered: ByteCount,
    /// The round-trip time of the next acknowledgements.
    pub(crate) rtt_ms: u64,
    pub(crate) bandwidth: Bitrate,
    pub(crate) app_limited: bool,
    pub(crate) window_limited: bool,
    /// In datagrams.
    pub(crate) in_flight: u64,
    pub(crate) lost: u64,
}

impl<M: PathModel> Driver<M> {
    /// A new path that will deliver 10 Mbit/s with round trips of 40 ms: 40 datagrams in flight.
    pub(crate) fn new() -> Self {
        let now = Timestamp::from_secs(1);
        let sizes = Sizes::new(&BbrConfig::default(), DATAGRAM);
        Self {
            model: M::new(Opening { now, sizes, random: Random::new(0, path(0)) }),
            now,
            delivered: ByteCount::ZERO,
            rtt_ms: 40,
            bandwidth: Bitrate::from_mbps(10),
            app_limited: false,
            window_limited: false,
            in_flight: 40,
            lost: 0,
        }
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now = self.now + ms(millis);
    }

    /// Waits, and then a datagram is acknowledged that was sent a round-trip time ago, when as much
    /// had been delivered as now: a new round.
    pub(crate) fn round(&mut self, millis: u64) {
        self.wait(millis);
        self.deliver(1, self.delivered);
    }

    /// Waits, and then `datagrams` are acknowledged that were sent before anything was delivered: no
    /// new round.
    pub(crate) fn ack(&mut self, millis: u64, datagrams: u64) {
        self.wait(millis);
        self.deliver(datagrams, ByteCount::ZERO);
    }

    fn deliver(&mut self, datagrams: u64, prior_delivered: ByteCount) {
        let newly_acked = DATAGRAM * datagrams;
        self.delivered += newly_acked;
        let in_flight = DATAGRAM * self.in_flight;
        self.model.on_delivery(&Delivery {
            now: self.now,
            newly_acked,
            prior_in_flight: in_flight + newly_acked,
            in_flight,
            delivered: self.delivered,
            sent_at: self.now - ms(self.rtt_ms),
            window_limited: self.window_limited,
            rate: Some(Rate {
                bandwidth: self.bandwidth,
                delivered: self.bandwidth * ms(self.rtt_ms),
                prior_delivered,
                app_limited: self.app_limited,
                tx_in_flight: in_flight,
                lost: DATAGRAM * self.lost,
            }),
        });
    }

    /// A packet is sent while nothing is in flight.
    pub(crate) fn send_after_idling(&mut self, millis: u64) {
        self.wait(millis);
        self.model.on_sent(self.now, true);
    }

    /// The packet `number` is lost, the `lost`-th since it was sent with `tx_in_flight` datagrams in
    /// flight.
    pub(crate) fn lose(&mut self, number: u64, lost: u64, tx_in_flight: u64) {
        self.model.on_lost(&LostPacket {
            now: self.now,
            sent_at: self.now - ms(self.rtt_ms),
            number,
            bytes: DATAGRAM,
            sample: LossSample {
                app_limited: self.app_limited,
                tx_in_flight: DATAGRAM * tx_in_flight,
                lost: DATAGRAM * lost,
            },
        });
    }

    /// Congestion is signalled; `lost` of the datagrams in flight are lost.
    pub(crate) fn congest(&mut self, signal: CongestionSignal, lost: u64, persistent: bool) {
        self.model.on_congestion(&Congestion {
            now: self.now,
            sent_at: self.now - ms(self.rtt_ms),
            signal,
            lost: DATAGRAM * lost,
            in_flight: DATAGRAM * self.in_flight,
            persistent,
        });
    }

    /// The window in datagrams.
    pub(crate) fn window(&self) -> f64 {
        self.model.window().as_f64() / DATAGRAM.as_f64()
    }

    /// The pacing rate in Mbit/s.
    pub(crate) fn pacing_mbps(&self) -> f64 {
        self.model.pacing_rate().map_or(0.0, Bitrate::as_mbps_f64)
    }
}
