//! What noq is answered, and what the engine is told.

use super::*;
use fairpath_engine::EngineConfig;
use std::time::Duration;

const MTU: u16 = 1200;

fn engine() -> ConnectionEngine {
    ConnectionEngine::new(EngineConfig::live().build().unwrap())
}

/// A path whose window is small enough to leave unpaced.
fn steady_path(engine: &ConnectionEngine, now: Instant) -> Box<dyn Controller> {
    let mut path = engine.factory().build(now, MTU);
    path.on_packet_sent(now, MTU, 0);
    path.on_packet_lost(MTU, 0, now);
    path.on_congestion_event(now, now, false, false, MTU.into(), 0);
    assert!(path.metrics().pacing_rate.is_none());
    path
}

#[test]
fn whoever_looks_sees_every_packet_that_left() {
    let (engine, now) = (engine(), Instant::now());
    let mut path = steady_path(&engine, now);
    let id = PathId::new(0);
    for count in 1..=3 * UNHEARD_MAX as u64 {
        path.on_packet_sent(now, MTU, count);
        if count % 50 == 0 {
            let in_flight = engine.with(now, |engine, at| engine.snapshot(id, at).unwrap().in_flight);
            assert_eq!(in_flight, Bytes::new(count * u64::from(MTU)));
        }
    }
}

#[test]
fn what_left_before_it_was_told_is_acknowledged_like_all_else() {
    let (engine, sent) = (engine(), Instant::now());
    let mut path = steady_path(&engine, sent).into_any().downcast::<PathHandle>().unwrap();
    path.on_packet_sent(sent, MTU, 1);
    let came = sent + Duration::from_millis(20);
    // All that `on_ack` does; only noq can make the estimator it takes.
    path.acked.push((1, sent));
    path.on_end_acks(came, 0, false, Some(1));
    let snapshot = engine.with(came, |engine, at| engine.snapshot(PathId::new(0), at).unwrap());
    assert_eq!((snapshot.in_flight, snapshot.delivered), (Bytes::ZERO, Bytes::new(MTU.into())));
    assert_eq!(snapshot.rtt.unwrap().latest, Duration::from_millis(20));
}

#[test]
fn with_a_second_path_the_window_answers_to_every_packet() {
    let (engine, now) = (engine(), Instant::now());
    let mut first = steady_path(&engine, now);
    let second = engine.factory().build(now, MTU);
    engine.with(now, |engine, _| engine.set_usable(PathId::new(1), true));
    assert!(first.window() > 0, "nothing is in flight, and nobody knows a round-trip time");
    for number in 1..=first.window() / u64::from(MTU) {
        first.on_packet_sent(now, MTU, number);
    }
    assert_eq!((first.window(), second.window() > 0), (0, true), "the second one has room");
    drop(second);
    assert!(first.window() > 0, "no other is left to refuse it for");
}

#[test]
fn a_path_that_noq_never_comes_to_gets_a_turn_and_the_sender_goes_on() {
    let (engine, now) = (engine(), Instant::now());
    let mut first = engine.factory().build(now, MTU);
    let second = engine.factory().build(now, MTU);
    engine.with(now, |engine, _| engine.set_usable(PathId::new(1), true));
    let turn = u64::from(turns::TURN_DATAGRAMS);
    for number in 1..=2 * turn {
        first.on_packet_sent(now, MTU, number);
        // Acknowledged at once: no window is ever full.
        engine.with(now, |engine, at| engine.on_ack(PathId::new(0), number, at));
        assert_eq!(first.window() == 0, number % turn == 0);
        assert_eq!(second.window() > 0, number >= turn);
    }
}

#[test]
fn a_refused_path_may_send_one_packet_where_the_host_asks_for_it() {
    let (engine, now) = (engine(), Instant::now());
    let first = engine.factory().build(now, MTU);
    let mut second = engine.factory().build(now, MTU);
    engine.with(now, |engine, _| engine.set_usable(PathId::new(1), true));
    assert_eq!(second.window(), 0);
    engine.give_turn(PathId::new(1));
    assert!(first.window() > 0 && second.window() > 0);
    second.on_packet_sent(now, MTU, 0);
    assert_eq!(second.window(), 0);
}

#[test]
fn a_window_that_the_host_found_full_grows_unless_the_path_was_refused() {
    for refused in [false, true] {
        let (engine, sent) = (engine(), Instant::now());
        let mut path = engine.factory().build(sent, MTU).into_any().downcast::<PathHandle>().unwrap();
        let before = path.window();
        assert_eq!(path.initial_window(), before);
        (0..5).for_each(|number| path.on_packet_sent(sent, MTU, number));
        if refused {
            path.registration.answers.note_refused();
        }
        path.acked.push((0, sent));
        path.on_end_acks(sent + Duration::from_millis(20), 0, false, Some(0));
        // Five packets of ten in flight: by itself no reason to grow.
        assert_eq!(path.window() > before, !refused);
    }
}

#[test]
fn small_windows_leave_at_once_and_very_fast_ones_are_paced_by_noq() {
    let mut shared = Shared::new(EngineConfig::live().build().unwrap());
    let (path, now) = (PathId::new(0), Timestamp::from_secs(1));
    shared.engine.on_path_opened(path, Bytes::new(MTU.into()), now);
    shared.engine.set_usable(path, true);
    let answer = shared.answer(path, MTU.into());
    assert_eq!((answer.window, answer.paced_window), (10 * u64::from(MTU), UNPACED));
    let mut number = 0;
    let mut ask_after = |rtt: Duration, packets: u64| {
        let numbers = number..number + packets;
        number = numbers.end;
        for number in numbers.clone() {
            shared.engine.on_sent(path, number, Bytes::new(MTU.into()), now);
        }
        shared.engine.on_fully_used(path, now + rtt);
        for number in numbers {
            shared.engine.on_ack(path, number, now + rtt);
        }
        shared.engine.on_ack_end(path, Duration::ZERO, now + rtt);
        shared.answer(path, MTU.into())
    };
    ask_after(Duration::from_millis(20), 5);
    let answer = ask_after(Duration::from_millis(20), 1);
    assert!(answer.paced_window > 10 * u64::from(MTU));
    assert!(answer.pacing_rate.is_some());
    for _ in 0..200 {
        ask_after(Duration::from_micros(20), 1);
    }
    assert_eq!(ask_after(Duration::from_micros(20), 1).pacing_rate, None);
}
