//! Each way from one phase to the next. The path of the driver delivers 10 Mbit/s in 40 ms, which is
//! 50,000 B or 40 datagrams of 1,250 B.

use fairpath_core::{Bitrate, CongestionSignal};

use super::*;
use crate::model::testing::{DATAGRAM, Driver};
use crate::testing::ms;

type Path = Driver<Bbr3Path>;

/// Startup and Drain are over, but the queue has not drained.
fn down() -> Path {
    let mut path = Path::new();
    path.in_flight = 60;
    (0..8).for_each(|_| path.round(40));
    assert_eq!(path.model.phase, Phase::Down);
    path
}

/// Startup is over, and the window has grown. There was no queue to drain, and no probe yet.
fn cruising() -> Path {
    let mut path = Path::new();
    (0..4).for_each(|_| path.round(40));
    fill(&mut path);
    assert_eq!(path.model.phase, Phase::Cruise);
    path
}

/// A datagram is acknowledged each millisecond, as the bandwidth has it, until the window can have
/// grown to what the model holds for right.
fn fill(path: &mut Path) {
    (0..100).for_each(|_| path.ack(1, 1));
}

/// The newest acknowledgement has begun a probe.
fn up() -> Path {
    let mut path = cruising();
    probe(&mut path);
    path
}

/// Short rounds, which soon are as many as Reno needs; then Refill, and the probe begins.
fn probe(path: &mut Path) {
    for _ in 0..64 {
        path.round(1);
        if path.model.phase == Phase::Refill {
            break;
        }
    }
    path.round(40);
    assert_eq!(path.model.phase, Phase::Up);
}

/// A probe has lost too much: no more than 50 datagrams in flight.
fn bounded() -> Path {
    let mut path = up();
    // The second loss is more than 2 % of 51; 0.02 · 50 − 1 = 0 of it could have been sent.
    path.lose(7, 1, 51);
    path.lose(8, 2, 51);
    assert_eq!((path.model.phase, path.model.long_term.in_flight), (Phase::Down, Some(DATAGRAM * 50)));
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
    // 2.77 · 12,500 B · 8 / 40 ms = 6.925 Mbit/s, not 2.77 · 0.99 · 0.1 Mbit/s
    near(path.pacing_mbps(), 6.925);
    path.bandwidth = Bitrate::from_mbps(5);
    path.round(40);
    // 2.77 · 0.99 · 5 = 13.71 Mbit/s
    near(path.pacing_mbps(), 13.7115);
}

#[test]
fn three_rounds_without_growth_end_startup() {
    let mut path = Path::new();
    path.in_flight = 60;
    (0..3).for_each(|_| path.round(40));
    assert_eq!(path.model.phase, Phase::Startup);
    path.round(40);
    assert_eq!(path.model.phase, Phase::Drain);
    // 0.5 · 0.99 · 10
    near(path.pacing_mbps(), 4.95);
}

#[test]
fn drain_ends_with_the_queue_or_after_three_rounds() {
    let mut path = Path::new();
    path.in_flight = 60;
    (0..4).for_each(|_| path.round(40));
    let mut stuck = path.clone();
    path.in_flight = 41;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Drain);
    path.in_flight = 40;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Cruise, "there is nothing for Down to do");

    (0..3).for_each(|_| stuck.round(40));
    assert_eq!(stuck.model.phase, Phase::Drain);
    stuck.round(40);
    assert_eq!(stuck.model.phase, Phase::Down);
    near(stuck.pacing_mbps(), 0.9 * 0.99 * 10.0);
}

#[test]
fn scattered_losses_of_more_than_two_percent_end_startup_and_one_burst_does_not() {
    for (numbers, ends) in [([10, 12, 14, 16, 18, 20], true), ([10, 11, 12, 13, 14, 15], false)] {
        let mut path = Path::new();
        path.app_limited = true;
        path.in_flight = 60;
        path.round(40);
        for (at, number) in (1..).zip(numbers) {
            path.lose(number, at, 60);
        }
        path.ack(1, 1);
        assert_eq!(path.model.phase, Phase::Startup, "no round has passed since the first loss");
        // 6 of 60 are 10 %.
        path.lost = 6;
        path.round(40);
        assert_eq!(path.model.phase == Phase::Drain, ends);
        // The arrivals of the round, 10 Mbit/s · 40 ms, and no less than the bandwidth-delay product.
        assert_eq!(path.model.long_term.in_flight, ends.then_some(DATAGRAM * 40));
    }
}

#[test]
fn down_leads_to_cruise_once_the_queue_is_gone_and_to_a_probe_once_it_is_time() {
    let mut path = down();
    path.in_flight = 41;
    path.round(1);
    assert_eq!(path.model.phase, Phase::Down);
    let mut stuck = path.clone();
    path.in_flight = 40;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Cruise);
    near(path.pacing_mbps(), 0.99 * 10.0);
    stuck.ack(3_001, 1);
    assert_eq!(stuck.model.phase, Phase::Refill);
}

#[test]
fn a_probe_waits_for_two_to_three_seconds_or_as_many_rounds_as_reno_needs() {
    let mut path = cruising();
    let wait = path.model.cycle.wait();
    assert!((ms(2_000)..ms(3_000)).contains(&wait), "{wait:?}");
    let mut impatient = path.clone();
    path.ack(1_999, 1);
    assert_eq!(path.model.phase, Phase::Cruise);
    path.ack(1_001, 1);
    assert_eq!(path.model.phase, Phase::Refill);
    // 40 datagrams fit on the path: Reno needs 40 rounds. One or two have been counted.
    (0..37).for_each(|_| impatient.round(1));
    assert_eq!(impatient.model.phase, Phase::Cruise);
    (0..3).for_each(|_| impatient.round(1));
    assert!(impatient.model.phase != Phase::Cruise);
}

#[test]
fn a_probe_refills_for_a_round_and_then_sends_a_quarter_more_until_no_more_arrives() {
    let mut path = up();
    near(path.pacing_mbps(), 1.25 * 0.99 * 10.0);
    fill(&mut path);
    // 2.25 · 40, 2 more in a probe, and the 1 that the newest acknowledgement brought.
    assert_eq!(path.window(), 93.0);
    (0..2).for_each(|_| path.round(40));
    assert_eq!(path.model.phase, Phase::Up);
    path.round(40);
    assert_eq!(path.model.phase, Phase::Down);
    assert_eq!(path.model.long_term.in_flight, None, "nothing was lost");
}

#[test]
fn a_probe_goes_on_while_more_arrives() {
    let mut path = up();
    for mbps in [13, 17, 22, 28] {
        path.bandwidth = Bitrate::from_mbps(mbps);
        path.round(40);
        assert_eq!(path.model.phase, Phase::Up);
    }
    near(path.pacing_mbps(), 1.25 * 0.99 * 28.0);
}

#[test]
fn a_probe_that_loses_too_much_sets_the_bound_once() {
    let mut path = bounded();
    // The bound holds whole in Down, and less 15 % in Cruise: 50 − 7.5 = 42.5.
    path.in_flight = 30;
    fill(&mut path);
    assert_eq!((path.model.phase, path.window()), (Phase::Cruise, 42.5));
    path.lose(9, 9, 60);
    assert_eq!(path.model.long_term.in_flight, Some(DATAGRAM * 50), "this probe has been answered");
}

#[test]
fn the_bound_is_no_less_than_seven_tenths_of_the_target() {
    let mut path = up();
    path.lose(7, 2, 10);
    // 0.7 · 40 datagrams; 9 were in flight.
    assert_eq!(path.model.long_term.in_flight, Some(DATAGRAM * 28));
}

#[test]
fn after_a_probe_that_went_too_high_the_next_stops_at_the_bound_and_one_more_follows() {
    let mut path = bounded();
    path.in_flight = 30;
    probe(&mut path);
    path.in_flight = 49;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Up);
    path.in_flight = 50;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Down, "the bound is reached");
    path.round(40);
    assert_eq!(path.model.phase, Phase::Refill, "and it did no harm");
    path.round(40);
    path.in_flight = 51;
    path.ack(1, 1);
    assert_eq!(path.model.phase, Phase::Up, "so this probe goes on");
}

#[test]
fn a_probe_that_fills_the_bound_raises_it() {
    let mut path = bounded();
    path.in_flight = 30;
    // Not too high the last time, so that the probe does not stop at the bound.
    path.model.long_term.was_too_high = false;
    probe(&mut path);
    fill(&mut path);
    assert_eq!((path.model.phase, path.window()), (Phase::Up, 50.0));
    path.window_limited = true;
    // A window of 43.5, as when the probe began, is acknowledged for each datagram of growth.
    (0..43).for_each(|_| path.ack(0, 1));
    assert_eq!(path.window(), 50.0);
    path.ack(0, 1);
    assert_eq!(path.model.long_term.in_flight, Some(DATAGRAM * 51));
    path.in_flight = 60;
    path.ack(0, 1);
    assert_eq!(path.model.long_term.in_flight, Some(DATAGRAM * 60), "as much was in flight and safe");
}

#[test]
fn a_lossy_round_lowers_what_is_sent_until_the_next_probe() {
    let mut path = cruising();
    fill(&mut path);
    path.lose(5, 1, 40);
    path.bandwidth = Bitrate::from_mbps(9);
    path.round(40);
    // The round with the loss had begun with 10 Mbit/s.
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(10));
    path.lose(9, 1, 40);
    path.round(40);
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(9));
    near(path.pacing_mbps(), 0.99 * 9.0);
    // 0.7 · 0.7 · 81 datagrams = 49,612 B; what arrived in the round, 9 Mbit/s · 40 ms, is less.
    assert_eq!(path.model.window(), ByteCount::new(49_612));
    path.ack(3_001, 1);
    assert_eq!((path.model.phase, path.model.bandwidth), (Phase::Refill, Bitrate::from_mbps(10)));
}

#[test]
fn losses_while_a_probe_fills_the_pipe_lower_nothing() {
    let mut path = cruising();
    path.ack(3_001, 1);
    path.lose(5, 1, 100);
    path.bandwidth = Bitrate::from_mbps(5);
    path.round(40);
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(10));
}

#[test]
fn five_seconds_without_a_lower_round_trip_time_lead_to_a_probe_for_it() {
    let mut path = cruising();
    fill(&mut path);
    let window = path.window();
    path.rtt_ms = 60;
    path.ack(5_001, 1);
    assert_eq!(path.model.phase, Phase::ProbeRtt);
    // Half of 40 datagrams; the least round-trip time is remembered for ten seconds.
    assert_eq!((path.window(), path.model.min_rtt.get()), (20.0, Some(ms(40))));
    path.in_flight = 20;
    path.ack(40, 1);
    let began = path.now;
    path.round(40);
    assert_eq!(path.model.phase, Phase::ProbeRtt, "a round has passed, but not 200 ms");
    path.ack(161, 1);
    assert_eq!(path.model.phase, Phase::Cruise);
    assert_eq!(path.now.since(began), ms(201));
    assert!(path.window() >= window, "it is what it was");
    // 15 s later the old one has expired.
    path.ack(5_001, 1);
    assert_eq!(path.model.min_rtt.get(), Some(ms(60)));
}

#[test]
fn after_the_rate_fell_a_probe_for_the_round_trip_time_leaves_less_than_the_path_holds_now() {
    let mut path = cruising();
    fill(&mut path);
    // A fifth of the rate, nothing lost, and all that was in flight waits in the queue.
    (path.bandwidth, path.rtt_ms) = (Bitrate::from_mbps(2), 200);
    (0..3).for_each(|_| path.round(200));
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(10), "the filter remembers");
    path.ack(5_001, 1);
    assert_eq!(path.model.phase, Phase::ProbeRtt);
    // 0.5 · 2 Mbit/s · 40 ms = 5,000 B, or 4 datagrams. Half of what was, 20, would be more than twice what the path holds.
    assert_eq!(path.window(), 4.0);
    path.in_flight = 4;
    path.bandwidth = Bitrate::from_mbps(1);
    path.round(40);
    assert_eq!(path.window(), 4.0, "what the probe itself holds down counts for nothing");
}

#[test]
fn a_probe_for_the_round_trip_time_ends_the_cycle_whose_probe_of_the_bandwidth_it_interrupts() {
    let mut path = up();
    path.bandwidth = Bitrate::from_mbps(4);
    for expected in [10, 4] {
        path.rtt_ms = 60;
        path.ack(5_001, 1);
        assert_eq!(path.model.phase, Phase::ProbeRtt);
        assert_eq!(path.model.max_bandwidth.get(), Bitrate::from_mbps(expected));
        path.in_flight = 4;
        path.ack(40, 1);
        path.round(40);
        path.ack(201, 1);
        assert_eq!(path.model.phase, Phase::Cruise);
        path.in_flight = 30;
        probe(&mut path);
    }
}

#[test]
fn a_probe_for_the_round_trip_time_before_the_pipe_was_full_leads_back_to_startup() {
    let mut path = Path::new();
    path.app_limited = true;
    path.round(40);
    path.rtt_ms = 60;
    path.in_flight = 4;
    path.round(5_001);
    assert_eq!(path.model.phase, Phase::ProbeRtt);
    path.round(201);
    assert_eq!(path.model.phase, Phase::Startup);
}

#[test]
fn what_is_delivered_while_the_window_is_held_down_advances_no_filter() {
    let mut path = cruising();
    path.rtt_ms = 60;
    path.ack(5_001, 1);
    path.in_flight = 20;
    path.bandwidth = Bitrate::from_mbps(1);
    (0..30).for_each(|_| path.round(5));
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(10));
}

#[test]
fn idleness_takes_the_place_of_a_probe_for_the_round_trip_time() {
    let mut path = cruising();
    path.send_after_idling(20_000);
    path.rtt_ms = 60;
    path.round(60);
    assert_eq!((path.model.phase, path.model.min_rtt.get()), (Phase::Refill, Some(ms(60))));
}

#[test]
fn a_probe_for_the_round_trip_time_can_end_in_idleness() {
    let mut path = cruising();
    path.rtt_ms = 60;
    path.ack(5_001, 1);
    path.in_flight = 20;
    path.ack(40, 1);
    path.send_after_idling(201);
    assert_eq!(path.model.phase, Phase::Cruise);
}

#[test]
fn a_bandwidth_is_forgotten_two_probes_later() {
    let mut path = up();
    path.bandwidth = Bitrate::from_mbps(4);
    for expected in [10, 4] {
        (0..3).for_each(|_| path.round(40));
        assert_eq!(path.model.phase, Phase::Down);
        // A round later all that the probe has shown is known.
        path.round(40);
        assert_eq!(path.model.bandwidth, Bitrate::from_mbps(expected));
        probe(&mut path);
    }
}

#[test]
fn acknowledgements_that_come_gathered_widen_the_window() {
    let mut path = cruising();
    // 20 datagrams at once every 20 ms, which is the bandwidth: on top of 2 · 40 come the 20.
    (0..5).for_each(|_| path.ack(20, 20));
    assert_eq!(path.window(), 100.0);
}

#[test]
fn a_mark_ends_startup_and_probes_and_counts_as_a_lossy_round_otherwise() {
    let mut path = Path::new();
    path.round(40);
    path.congest(CongestionSignal::Ecn, 0, false);
    assert_eq!(path.model.phase, Phase::Drain);

    let mut path = up();
    path.in_flight = 45;
    path.congest(CongestionSignal::Ecn, 0, false);
    assert_eq!((path.model.phase, path.model.long_term.in_flight), (Phase::Down, Some(DATAGRAM * 45)));

    let mut path = cruising();
    path.round(40);
    path.bandwidth = Bitrate::from_mbps(8);
    path.round(40);
    path.congest(CongestionSignal::Ecn, 0, false);
    path.round(40);
    assert_eq!(path.model.bandwidth, Bitrate::from_mbps(8));
}

#[test]
fn when_everything_is_lost_two_datagrams_are_left_until_one_arrives() {
    let mut path = cruising();
    fill(&mut path);
    let window = path.window();
    path.congest(CongestionSignal::Loss, 40, true);
    assert_eq!(path.window(), 2.0);
    assert_eq!(path.model.state().phase, RecordedPhase::Recovery);
    path.ack(39, 1);
    assert_eq!(path.window(), 4.0, "sent before");
    path.ack(2, 1);
    assert_eq!(path.window(), window);
}
