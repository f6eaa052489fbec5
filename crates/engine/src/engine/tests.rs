//! The engine by hand.

use fairpath_cc::Phase;

use super::*;
use crate::config::{Coupling, EngineConfig};

pub(super) const MTU: ByteCount = ByteCount::new(1200);

pub(super) fn engine(scheduler: &str, coupling: Coupling) -> Engine {
    let config = EngineConfig { scheduler: scheduler.into(), coupling, ..EngineConfig::default() };
    let mut engine = config.build().unwrap();
    for path in [path(0), path(1)] {
        engine.on_path_opened(path, MTU, Timestamp::ZERO);
        engine.set_use(path, PathUse::Open);
    }
    engine
}

pub(super) fn path(id: u32) -> PathId {
    PathId::new(id)
}

pub(super) fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// A packet is sent and acknowledged after `rtt_ms`, so that the path has a round-trip time.
pub(super) fn warm_up(engine: &mut Engine, id: u32, rtt_ms: u64) {
    engine.on_sent(path(id), 0, MTU, ms(0));
    engine.on_ack(path(id), 0, ms(rtt_ms));
    engine.on_ack_end(path(id), Duration::ZERO, ms(rtt_ms));
}

#[test]
fn coupling_puts_the_paths_in_one_group_or_each_in_its_own() {
    assert!(engine("min_rtt", Coupling::Always).groups().together(path(0), path(1)));
    assert!(!engine("min_rtt", Coupling::Never).groups().together(path(0), path(1)));
}

#[test]
fn a_path_that_the_connection_keeps_data_from_is_shown_as_fast_as_it_was() {
    let shown = |is_blocked: bool| {
        let mut engine = engine("min_rtt", Coupling::Never);
        // One packet takes 10 ms, the next one 40 ms.
        for (number, from, to) in [(0, 0, 10), (1, 20, 60)] {
            if is_blocked && number == 1 {
                engine.on_window_blocked(ms(from));
            }
            engine.on_sent(path(0), number, MTU, ms(from));
            engine.on_ack(path(0), number, ms(to));
            engine.on_ack_end(path(0), Duration::ZERO, ms(to));
        }
        engine.look(ms(60));
        engine.views[0].delivery_rate
    };
    assert_eq!(shown(false), Some(Bitrate::from_kbps(240)));
    assert_eq!(shown(true), Some(Bitrate::from_kbps(960)));
}

#[test]
fn losses_are_counted_once_and_reduce_the_window_once() {
    let mut engine = engine("min_rtt", Coupling::Never);
    warm_up(&mut engine, 0, 20);
    for number in 1..=8 {
        engine.on_sent(path(0), number, MTU, ms(100));
    }
    let before = engine.verdict(path(0), ms(0)).window;
    for number in 1..=3 {
        engine.on_lost(path(0), number, ms(120));
    }
    engine.on_congestion(path(0), CongestionSignal::Loss, ms(100), false, ms(120));
    let after = engine.verdict(path(0), ms(0)).window;
    assert!(after < before);
    engine.on_lost(path(0), 4, ms(121));
    engine.on_lost(path(0), 4, ms(121));
    engine.on_congestion(path(0), CongestionSignal::Loss, ms(100), false, ms(121));
    assert_eq!(engine.verdict(path(0), ms(0)).window, after, "the same episode");
    let snapshot = engine.snapshot(path(0), ms(121)).unwrap();
    assert_eq!(snapshot.lost, MTU * 4);
    assert_eq!(snapshot.in_flight, MTU * 4);
}

#[test]
fn losses_that_turn_out_to_be_none_give_the_window_back() {
    let mut engine = engine("min_rtt", Coupling::Never);
    warm_up(&mut engine, 0, 20);
    (1..=8).for_each(|number| engine.on_sent(path(0), number, MTU, ms(100)));
    let before = engine.verdict(path(0), ms(100)).window;
    engine.on_lost(path(0), 1, ms(120));
    engine.on_congestion(path(0), CongestionSignal::Loss, ms(100), false, ms(120));
    assert!(engine.verdict(path(0), ms(120)).window < before);
    engine.on_spurious_congestion(path(1), ms(125));
    engine.on_spurious_congestion(path(2), ms(125));
    assert!(engine.verdict(path(0), ms(125)).window < before, "another path");
    engine.on_spurious_congestion(path(0), ms(130));
    assert_eq!(engine.verdict(path(0), ms(130)).window, before);
}

#[test]
fn a_window_that_is_never_full_does_not_grow() {
    let mut engine = engine("min_rtt", Coupling::Never);
    let before = engine.verdict(path(0), ms(0)).window;
    for number in 0..100 {
        let sent = ms(100 * number);
        engine.on_sent(path(0), number, MTU, sent);
        engine.on_ack(path(0), number, sent + Duration::from_millis(20));
        engine.on_ack_end(path(0), Duration::ZERO, sent + Duration::from_millis(20));
    }
    assert_eq!(engine.verdict(path(0), ms(0)).window, before);
}

fn rate_based(congestion: &str) -> Engine {
    let config = EngineConfig { congestion: congestion.into(), coupling: Coupling::Never, ..EngineConfig::default() };
    let mut engine = config.build().unwrap();
    engine.on_path_opened(path(0), MTU, Timestamp::ZERO);
    engine.set_use(path(0), PathUse::Open);
    engine
}

/// Sends a packet each `gap_ms` from `start` on, answered after 20 ms. Returns the next number.
fn trickle(engine: &mut Engine, id: u32, first: u64, start: u64, gap_ms: u64, packets: u64) -> u64 {
    for at in 0..packets * gap_ms + 20 {
        let now = ms(start + at);
        if at >= 20 && (at - 20) % gap_ms == 0 {
            engine.on_ack(path(id), first + (at - 20) / gap_ms, now);
            engine.on_ack_end(path(id), Duration::ZERO, now);
        }
        if at % gap_ms == 0 && at / gap_ms < packets {
            engine.on_sent(path(id), first + at / gap_ms, MTU, now);
        }
    }
    first + packets
}

#[test]
fn a_window_that_pacing_kept_from_being_full_grows_if_half_of_it_was_used() {
    for (packets, fully_used, grows) in [(5, false, false), (5, true, true), (4, true, false)] {
        let mut engine = engine("min_rtt", Coupling::Never);
        let before = engine.verdict(path(0), ms(0)).window;
        (0..packets).for_each(|number| engine.on_sent(path(0), number, MTU, ms(0)));
        if fully_used {
            engine.on_fully_used(path(0), ms(20));
        }
        engine.on_ack(path(0), 0, ms(20));
        engine.on_ack_end(path(0), Duration::ZERO, ms(20));
        assert_eq!(engine.verdict(path(0), ms(20)).window > before, grows, "{packets} of ten packets");
    }
}

#[test]
fn a_path_that_is_opened_later_and_hardly_used_paces_by_its_first_round_trip_time() {
    for (congestion, gain) in [("bbr", 2.885), ("bbr3", 2.77)] {
        let mut engine = rate_based(congestion);
        trickle(&mut engine, 0, 0, 0, 1, 1000);
        engine.on_path_opened(path(1), MTU, ms(2000));
        engine.set_use(path(1), PathUse::Open);
        assert_eq!(engine.verdict(path(1), ms(0)).pacing_rate, None, "nothing is known of it");
        // gain · 12,000 B / 20 ms, from the first acknowledgement on.
        let expected = ByteCount::new(12_000).per(Duration::from_millis(20)).unwrap().scaled(gain);
        let next = trickle(&mut engine, 1, 0, 2000, 100, 1);
        assert_eq!(engine.verdict(path(1), ms(0)).pacing_rate, Some(expected), "{congestion}");
        trickle(&mut engine, 1, next, 3000, 100, 50);
        assert_eq!(engine.verdict(path(1), ms(0)).pacing_rate, Some(expected), "{congestion}");
    }
}

#[test]
fn a_path_that_others_are_preferred_to_does_not_seem_slow() {
    for congestion in ["bbr", "bbr3"] {
        let mut engine = rate_based(congestion);
        // 1,200 B each millisecond are 9.6 Mbit/s; then 50 rounds with one packet in 100 ms.
        let next = trickle(&mut engine, 0, 0, 0, 1, 2000);
        trickle(&mut engine, 0, next, 3000, 100, 50);
        let rate = engine.verdict(path(0), ms(0)).pacing_rate.unwrap().as_mbps_f64();
        assert!(rate > 0.75 * 0.99 * 9.6, "{congestion}: {rate}");
    }
}

#[test]
fn a_rate_based_controller_is_told_of_each_loss() {
    let mut engine = rate_based("bbr3");
    let phase = |engine: &Engine| engine.snapshot(path(0), ms(0)).unwrap().phase;
    // Six scattered losses of 60 are more than 2 %: after the round they end Startup.
    (0..60).for_each(|number| engine.on_sent(path(0), number, MTU, ms(0)));
    for number in (0..60).filter(|number| number % 10 != 5) {
        engine.on_ack(path(0), number, ms(20));
    }
    engine.on_ack_end(path(0), Duration::ZERO, ms(20));
    (0..6).for_each(|tenth| engine.on_lost(path(0), 10 * tenth + 5, ms(20)));
    engine.on_congestion(path(0), CongestionSignal::Loss, ms(0), false, ms(20));
    assert_eq!(phase(&engine), Phase::SlowStart);
    // The packets of the next round see only losses after they were sent.
    (60..120).for_each(|number| engine.on_sent(path(0), number, MTU, ms(21)));
    for tenth in 6..12 {
        engine.on_lost(path(0), 10 * tenth + 5, ms(30));
    }
    engine.on_congestion(path(0), CongestionSignal::Loss, ms(21), false, ms(30));
    engine.on_ack(path(0), 119, ms(41));
    engine.on_ack_end(path(0), Duration::ZERO, ms(41));
    assert_eq!(phase(&engine), Phase::CongestionAvoidance);
}
