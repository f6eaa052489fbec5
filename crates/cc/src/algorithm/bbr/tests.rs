//! Each way from one phase to the next. The path of the driver delivers 10 Mbit/s in 40 ms, which is
//! 50,000 B or 40 datagrams of 1,250 B; three quanta of two datagrams are 6 more.

use core::time::Duration;

use fairpath_core::{Bitrate, CongestionSignal};

use super::*;
use crate::model::testing::{DATAGRAM, Driver};
use crate::testing::ms;

type Path = Driver<BbrPath>;

/// Startup is over and the queue drained; the cycle is at the beginning of a probe.
fn probing() -> Path {
    let mut path = Path::new();
    (0..4).for_each(|_| path.round(40));
    assert_eq!(path.model.phase, Phase::ProbeBw);
    while path.model.cycle.gain() != 1.25 {
        path.round(41);
    }
    path
}

fn near(actual: f64, expected: f64) {
    assert!((actual - expected).abs() < 1e-3 * expected, "{actual} is not {expected}");
}

#[test]
fn startup_paces_by_the_initial_window_until_it_has_measured_more() {
    let mut path = Path::new();
    assert_eq!((path.model.pacing_rate(), path.window()), (None, 10.0));
    path.bandwidth = Bitrate::from_kbps(100);
    path.app_limited = true;
    path.round(40);
    // 2.885 · 12,500 B · 8 / 40 ms = 7.2125 Mbit/s, not 2.885 · 0.99 · 0.1 Mbit/s
    near(path.pacing_mbps(), 7.2125);
    path.bandwidth = Bitrate::from_mbps(5);
    path.round(40);
    // 2.885 · 0.99 · 5 = 14.28 Mbit/s
    near(path.pacing_mbps(), 14.28075);
}

#[test]
fn three_rounds_without_growth_end_startup_and_a_pipe_without_queue_ends_drain() {
    let mut path = Path::new();
    path.in_flight = 49;
    (0..3).for_each(|_| path.round(40));
    assert_eq!(path.model.phase, Phase::Startup);
    path.round(40);
    assert_eq!(path.model.phase, Phase::Drain);
    // 0.99 · 10 / 2.885 = 3.4315 Mbit/s
    near(path.pacing_mbps(), 3.4315);
    // A quantum was a millisecond at 28.6 Mbit/s; now it is two datagrams again.
    path.in_flight = 47;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Drain, "47 datagrams are more than 40 + 6");
    path.in_flight = 46;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::ProbeBw);
}

#[test]
fn rounds_that_the_application_limits_do_not_end_startup() {
    let mut path = Path::new();
    path.app_limited = true;
    (0..20).for_each(|_| path.round(40));
    assert_eq!(path.model.phase, Phase::Startup);
}

#[test]
fn a_probe_lasts_until_the_extra_quarter_is_in_flight() {
    let mut path = probing();
    near(path.pacing_mbps(), 1.25 * 0.99 * 10.0);
    // 1.25 · 40 + 6 = 56 datagrams, and at least a round-trip time.
    path.in_flight = 54;
    path.round(41);
    assert_eq!(path.model.cycle.gain(), 1.25, "55 were in flight before");
    path.in_flight = 55;
    path.ack(1, 1);
    assert_eq!(path.model.cycle.gain(), 0.75);
    // The queue is gone when 46 are in flight, or after a round-trip time.
    path.in_flight = 46;
    path.ack(1, 1);
    assert_eq!(path.model.cycle.gain(), 0.75, "47 were in flight before");
    path.in_flight = 45;
    path.ack(1, 1);
    near(path.pacing_mbps(), 0.99 * 10.0);
    for _ in 0..5 {
        path.ack(41, 1);
        assert_eq!(path.model.cycle.gain(), 1.0);
    }
    path.ack(41, 1);
    assert_eq!(path.model.cycle.gain(), 1.25, "six phases have passed");
    // 2 · 40 + 6 datagrams
    (0..100).for_each(|_| path.ack(0, 1));
    assert_eq!(path.window(), 86.0);
}

#[test]
fn a_probe_that_meets_loss_is_over_after_a_round_trip_time() {
    let mut path = probing();
    path.congest(CongestionSignal::Loss, 1, false);
    path.ack(39, 1);
    assert_eq!(path.model.cycle.gain(), 1.25);
    path.congest(CongestionSignal::Loss, 1, false);
    path.ack(2, 1);
    assert_eq!(path.model.cycle.gain(), 0.75);
}

#[test]
fn ten_seconds_without_a_lower_round_trip_time_lead_to_a_probe_for_it() {
    let mut path = probing();
    (0..100).for_each(|_| path.ack(0, 1));
    let window = path.window();
    path.rtt_ms = 60;
    while path.model.phase != Phase::ProbeRtt {
        path.round(100);
        assert!(path.now.since(path.model.min_rtt_at) <= Duration::from_secs(10));
    }
    // The sample that found the old one expired replaces it.
    assert_eq!((path.window(), path.model.min_rtt), (4.0, Some(ms(60))));
    path.in_flight = 4;
    path.rtt_ms = 50;
    path.round(50);
    let began = path.now;
    assert_eq!(path.model.min_rtt, Some(ms(50)), "the queue is gone");
    // 200 ms and a round.
    path.ack(201, 1);
    assert_eq!(path.model.phase, Phase::ProbeRtt, "no round has passed");
    path.round(1);
    assert_eq!(path.model.phase, Phase::ProbeBw);
    assert_eq!(path.now.since(began), ms(202));
    // It is what it was, but no more than 2 · 10 Mbit/s · 50 ms = 100 datagrams and 6.
    assert_eq!(path.window(), window + 1.0);
    assert_eq!(path.model.min_rtt_at, path.now);
}

#[test]
fn what_is_delivered_while_the_window_is_held_down_lowers_no_estimate() {
    let mut path = probing();
    while path.model.phase != Phase::ProbeRtt {
        path.rtt_ms = 60;
        path.round(100);
    }
    path.in_flight = 4;
    path.bandwidth = Bitrate::from_mbps(1);
    (0..30).for_each(|_| path.round(1));
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(10));
}

#[test]
fn after_idleness_a_path_paces_at_its_bandwidth_and_does_not_probe() {
    let mut path = probing();
    path.send_after_idling(20_000);
    near(path.pacing_mbps(), 0.99 * 10.0);
    path.rtt_ms = 60;
    path.round(60);
    assert_eq!((path.model.phase, path.model.min_rtt), (Phase::ProbeBw, Some(ms(60))));
}

#[test]
fn a_bandwidth_is_forgotten_after_ten_rounds() {
    let mut path = probing();
    path.bandwidth = Bitrate::from_mbps(4);
    (0..10).for_each(|_| path.round(1));
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(10));
    path.round(1);
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(4));
}

#[test]
fn a_loss_keeps_for_a_round_what_is_in_flight_and_then_gives_the_window_back() {
    let mut path = probing();
    (0..100).for_each(|_| path.ack(0, 1));
    path.in_flight = 44;
    path.congest(CongestionSignal::Loss, 4, false);
    assert_eq!(path.window(), 41.0, "what is left, and one to repair with");
    path.in_flight = 39;
    path.ack(1, 2);
    assert_eq!(path.window(), 41.0, "39 in flight and 2 for those that arrived");
    path.congest(CongestionSignal::Loss, 3, false);
    assert_eq!(path.window(), 38.0);
    // A round later it grows again, by what is acknowledged.
    path.rtt_ms = 45;
    path.round(35);
    assert_eq!(path.window(), 39.0);
    path.ack(0, 5);
    assert_eq!(path.window(), 44.0);
    // A packet that was sent after the newest loss arrives: what was lost is repaired.
    path.rtt_ms = 30;
    path.ack(10, 1);
    assert_eq!(path.model.state().phase, RecordedPhase::CongestionAvoidance);
    // 2 · 10 Mbit/s · 30 ms = 60 datagrams and 6
    assert_eq!(path.window(), 66.0);
}

#[test]
fn when_everything_is_lost_two_datagrams_are_left() {
    let mut path = probing();
    path.congest(CongestionSignal::Loss, 40, true);
    assert_eq!(path.model.window(), DATAGRAM * 2);
    assert_eq!(path.model.state().phase, RecordedPhase::Recovery);
}
