//! The adapter's answers to noq, and its reports to the engine and the host.

use fairpath_engine::{EngineConfig, PathUse};

use super::*;

const MTU: u16 = 1200;

fn engine() -> ConnectionEngine {
    ConnectionEngine::new(EngineConfig::live().build().unwrap())
}

fn fates(engine: &ConnectionEngine) -> Vec<Fate> {
    let mut fates = Vec::new();
    engine.take_fates(&mut fates);
    fates
}

fn left(engine: &ConnectionEngine) -> Vec<Left> {
    let mut left = Vec::new();
    engine.take_left(&mut left);
    left
}

fn handle(engine: &ConnectionEngine, now: Instant) -> Box<PathHandle> {
    engine.factory().build(now, MTU).into_any().downcast().unwrap()
}

#[test]
fn only_the_path_whose_gate_is_open_has_room() {
    let (engine, now) = (engine(), Instant::now());
    let (first, second) = (handle(&engine, now), handle(&engine, now));
    engine.with(now, |engine, _| engine.set_use(PathId::new(1), PathUse::Open));
    for (gate, open) in
        [(Gate::Shut, [false, false]), (Gate::Only(PathId::new(1)), [false, true]), (Gate::Any, [true, true])]
    {
        engine.open_gate(gate);
        assert_eq!([first.window() > 0, second.window() > 0], open, "{gate:?}");
    }
}

#[test]
fn a_path_that_is_not_usable_keeps_to_its_window_whatever_the_gates() {
    let (engine, now) = (engine(), Instant::now());
    let (_first, second) = (handle(&engine, now), handle(&engine, now));
    let window = engine.with(now, |engine, at| engine.verdict(PathId::new(1), at).window).get();
    engine.open_gate(Gate::Only(PathId::new(0)));
    assert_eq!(second.window(), window, "challenges pass, and no more than that");
    engine.pin_data(true);
    assert_eq!(second.window(), 0, "data for the first path leaves on no other");
    engine.open_gate(Gate::Shut);
    assert_eq!(second.window(), window);
}

#[test]
fn the_host_learns_which_packet_left_and_what_became_of_it() {
    let (engine, sent) = (engine(), Instant::now());
    let mut path = handle(&engine, sent);
    let id = PathId::new(0);
    (0..3).for_each(|number| path.on_packet_sent(sent, MTU, number));
    assert_eq!(left(&engine), [0, 1, 2].map(|number| Left { path: id, number, bytes: MTU }));
    assert_eq!(left(&engine), [], "once");
    let came = sent + Duration::from_millis(20);
    // All that `on_ack` does; only noq can make the estimator it takes.
    path.acked.push((0, sent));
    path.on_end_acks(came, 0, false, Some(0));
    path.on_packet_lost(MTU, 1, came);
    assert_eq!(fates(&engine), [Fate::Acked(id, 0), Fate::Lost(id, 1)]);
    let snapshot = engine.with(came, |engine, at| engine.snapshot(id, at).unwrap());
    assert_eq!((snapshot.in_flight, snapshot.delivered), (ByteCount::new(MTU.into()), ByteCount::new(MTU.into())));
    assert_eq!(snapshot.rtt.unwrap().latest, Duration::from_millis(20));
    drop(path);
    assert_eq!(fates(&engine), [Fate::Discarded(id)]);
}

#[test]
fn what_went_to_a_former_address_is_forgotten_when_a_clone_sends() {
    let (engine, now) = (engine(), Instant::now());
    let mut path = handle(&engine, now);
    (0..3).for_each(|number| path.on_packet_sent(now, MTU, number));
    let mut moved = path.clone();
    drop(path);
    assert_eq!(fates(&engine), [], "the path is still there");
    moved.on_packet_sent(now, MTU, 3);
    assert_eq!(fates(&engine), [Fate::Discarded(PathId::new(0))]);
    let in_flight = engine.with(now, |engine, at| engine.verdict(PathId::new(0), at).in_flight);
    assert_eq!(in_flight, ByteCount::new(MTU.into()), "what the clone sent");
}

#[test]
fn a_probe_for_a_larger_datagram_is_not_counted() {
    let (engine, now) = (engine(), Instant::now());
    let mut path = handle(&engine, now);
    path.on_packet_sent(now, MTU + 100, 0);
    let in_flight = engine.with(now, |engine, at| engine.verdict(PathId::new(0), at).in_flight);
    assert_eq!((left(&engine), in_flight), (Vec::new(), ByteCount::ZERO));
}

#[test]
fn lost_questions_whether_a_path_works_are_no_congestion() {
    let (engine, now) = (engine(), Instant::now());
    let _first = handle(&engine, now);
    let mut second = handle(&engine, now);
    let id = PathId::new(1);
    let window = || engine.with(now, |engine, at| engine.verdict(id, at).window);
    let before = window();
    (0..3).for_each(|number| second.on_packet_sent(now, MTU, number));
    engine.with(now, |engine, _| engine.set_use(id, PathUse::Open));
    (3..14).for_each(|number| second.on_packet_sent(now, MTU, number));
    let later = now + Duration::from_millis(500);
    (0..3).for_each(|number| second.on_packet_lost(MTU, number, later));
    second.on_congestion_event(later, now, true, false, 3 * u64::from(MTU), 2);
    assert_eq!(window(), before);
    second.on_packet_lost(MTU, 3, later);
    second.on_congestion_event(later, now, false, false, MTU.into(), 3);
    assert_eq!(window(), before, "the answer to the peer's question");
    (4..14).for_each(|number| second.on_packet_lost(MTU, number, later));
    second.on_congestion_event(later, now, false, false, 10 * u64::from(MTU), 13);
    assert!(window() < before, "data all of which is lost is congestion");
}

#[test]
fn what_is_said_while_a_path_is_validated_is_no_measure_of_what_data_takes() {
    let (engine, now) = (engine(), Instant::now());
    let _first = handle(&engine, now);
    let mut second = handle(&engine, now);
    let id = PathId::new(1);
    second.on_packet_sent(now, MTU, 0);
    engine.with(now, |engine, _| engine.set_use(id, PathUse::Open));
    let answered = now + Duration::from_millis(20);
    (1..3).for_each(|number| second.on_packet_sent(answered, MTU, number));
    let snapshot = |at| engine.with(at, |engine, at| engine.snapshot(id, at).unwrap());
    for (number, sent) in [(0, now), (1, answered)] {
        let acked = sent + Duration::from_millis(20);
        second.acked.push((number, sent));
        second.on_end_acks(acked, 0, false, Some(number));
        assert_eq!(snapshot(acked).rtt, None);
    }
    assert_eq!(snapshot(answered).in_flight, ByteCount::new(MTU.into()));
    // The acknowledgement of data comes back on a path that takes longer.
    let acked = answered + Duration::from_millis(40);
    second.acked.push((2, answered));
    second.on_end_acks(acked, 0, false, Some(2));
    assert_eq!(snapshot(acked).rtt.unwrap().min, Duration::from_millis(40));
}
