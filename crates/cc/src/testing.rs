//! Means of the tests: events with everything ordinary filled in.

use core::time::Duration;

use fairpath_core::{Ack, ByteCount, Congestion, CongestionSignal, PathId, Rtt, Timestamp};

use crate::{Aimd, AimdConfig, Controller, Losses, Rule, SlowStart};

/// A datagram of a million bytes: a change of the window by 0.000001 packets is visible in whole bytes.
pub(crate) const PACKET: ByteCount = ByteCount::new(1_000_000);

/// Windows down to one packet, as the worked examples have them.
pub(crate) const IN_PACKETS: AimdConfig = AimdConfig {
    initial_window_datagrams: 1,
    initial_window_cap: ByteCount::MAX,
    min_window_datagrams: 1,
    min_ssthresh_datagrams: 1,
    slow_start: SlowStart::Standard,
    losses: Losses::Congestion,
    pacing_gain_slow_start: 2.0,
    pacing_gain: 1.25,
};

pub(crate) fn path(id: u32) -> PathId {
    PathId::new(id)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn rtt(time: Duration) -> Rtt {
    Rtt::first(time)
}

/// An acknowledgement at `now_ms` of `bytes` sent one round trip ago, with the window in full use.
pub(crate) fn ack(now_ms: u64, bytes: ByteCount, rtt_ms: u64) -> Ack {
    let now = Timestamp::from_millis(now_ms);
    Ack {
        now,
        sent_at: now - ms(rtt_ms),
        bytes,
        in_flight: bytes,
        window_limited: true,
        rtt: Some(rtt(ms(rtt_ms))),
        rate: None,
    }
}

/// A loss found at `now_ms` of a packet that had just been sent.
pub(crate) fn loss(now_ms: u64) -> Congestion {
    let now = Timestamp::from_millis(now_ms);
    Congestion { now, sent_at: now, signal: CongestionSignal::Loss, lost: PACKET, in_flight: PACKET, persistent: false }
}

/// A controller that counts in packets, with each path in congestion avoidance with this
/// (window, round-trip time in ms). The paths are numbered from 0, and it is 10 s.
pub(crate) fn in_avoidance<R: Rule>(rule: R, paths: &[(u64, u64)]) -> Aimd<R> {
    let mut controller = Aimd::new(rule, IN_PACKETS);
    for (id, (packets, rtt_ms)) in (0..).zip(paths) {
        controller.on_path_opened(path(id), PACKET, Timestamp::ZERO);
        // Slow start to twice the window, half of it after a loss, recovery over; the last
        // acknowledgement does not grow the window. It brings the first round-trip sample: until
        // then the path is not coupled.
        controller.on_ack(path(id), &Ack { rtt: None, ..ack(1_000, PACKET * (2 * packets - 1), *rtt_ms) });
        controller.on_congestion(path(id), &loss(2_000));
        controller.on_ack(path(id), &Ack { window_limited: false, ..ack(10_000, ByteCount::ZERO, *rtt_ms) });
        assert_eq!(controller.window(path(id)), PACKET * *packets);
    }
    controller
}

/// By how many packets the window of `id` changes when one packet is acknowledged.
pub(crate) fn growth(controller: &mut dyn Controller, id: u32, rtt_ms: u64) -> f64 {
    let before = controller.window(path(id)).as_f64();
    controller.on_ack(path(id), &ack(10_001, PACKET, rtt_ms));
    (controller.window(path(id)).as_f64() - before) / PACKET.as_f64()
}

/// Equal to within the byte that `window()` cuts off.
pub(crate) fn assert_near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 2e-6, "{actual} is not {expected}");
}
