//! When a window may grow: where it was full at the time of the packet that is acknowledged, whatever the
//! round-trip times are.

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, Timestamp};
use fairpath_engine::{CongestionSignal, Coupling, Engine, EngineConfig, PathUse};
use proptest::prelude::*;

const MTU: ByteCount = ByteCount::new(1200);
const PATH: PathId = PathId::new(0);

fn reno() -> Engine {
    let config = EngineConfig { congestion: "reno".into(), coupling: Coupling::Never, ..EngineConfig::default() };
    let mut engine = config.build().unwrap().unpaced();
    engine.on_path_opened(PATH, MTU, Timestamp::ZERO);
    engine.set_use(PATH, PathUse::Open);
    engine
}

/// Sends a burst of this many packets at `now`, all of which are acknowledged `rtt` later, one by one or
/// with one acknowledgement. Gives the time then.
fn burst(
    engine: &mut Engine,
    next: &mut u64,
    packets: u64,
    now: Timestamp,
    rtt: Duration,
    together: bool,
) -> Timestamp {
    let numbers = *next..*next + packets;
    *next += packets;
    numbers.clone().for_each(|number| engine.on_sent(PATH, number, MTU, now));
    let acked = now + rtt;
    for number in numbers.clone() {
        engine.on_ack(PATH, number, acked);
        if !together || number + 1 == numbers.end {
            engine.on_ack_end(PATH, Duration::ZERO, acked);
        }
    }
    acked
}

fn room(engine: &Engine, now: Timestamp) -> u64 {
    engine.verdict(PATH, now).window / MTU
}

#[test]
fn a_burst_that_filled_the_window_grows_it_though_its_round_trip_was_longer_than_the_smoothed_one() {
    let mut engine = reno();
    let (mut next, start) = (0, Timestamp::from_secs(1));
    let now = burst(&mut engine, &mut next, 1, start, Duration::from_millis(20), true);
    let packets = room(&engine, now);
    burst(&mut engine, &mut next, packets, now, Duration::from_millis(30), true);
    assert_eq!(engine.verdict(PATH, now).window, MTU * (2 * packets));
}

#[test]
fn a_packet_that_left_after_the_window_was_last_full_grows_nothing_though_that_was_less_than_a_round_trip_ago() {
    let mut engine = reno();
    let (mut next, start) = (0, Timestamp::from_secs(1));
    let now = burst(&mut engine, &mut next, 1, start, Duration::from_millis(100), true);
    let packets = room(&engine, now);
    let now = burst(&mut engine, &mut next, packets, now, Duration::from_millis(30), true);
    let before = engine.verdict(PATH, now).window;
    // Full 35 ms ago, of about 90 smoothed; what is acknowledged now left later, and alone.
    burst(&mut engine, &mut next, 1, now, Duration::from_millis(5), true);
    assert_eq!(engine.verdict(PATH, now).window, before);
}

proptest! {
    /// A sender that has no end of data and may not pace fills its window whenever it may send: every
    /// acknowledgement of a packet that left after the last reduction grows it.
    #[test]
    fn a_greedy_sender_grows_with_every_acknowledgement(
        rtts in prop::collection::vec(1u64..400, 1..40),
        together in any::<bool>(),
        cut in 0usize..40,
    ) {
        let mut engine = reno();
        let (mut next, mut now) = (0, Timestamp::from_secs(1));
        for (round, rtt) in rtts.into_iter().enumerate() {
            if round == cut {
                // Down to two packets, the least there are: what is lost was sent just before.
                for _ in 0..5 {
                    now = now + Duration::from_millis(1);
                    engine.on_congestion(PATH, CongestionSignal::Loss, now, false, now);
                }
                now = now + Duration::from_millis(1);
            }
            let (before, packets) = (engine.verdict(PATH, now).window, room(&engine, now));
            if packets > 5_000 {
                break;
            }
            now = burst(&mut engine, &mut next, packets, now, Duration::from_millis(rtt), together);
            let grown = engine.verdict(PATH, now).window - before;
            // In congestion avoidance each packet adds a datagram over the window, which is less than two
            // datagrams larger than the burst [RFC9002 §7.3.3].
            prop_assert!(grown * (packets + 2) >= MTU * packets, "round {round}: {before} grew by {grown} for {packets} packets");
        }
    }
}
