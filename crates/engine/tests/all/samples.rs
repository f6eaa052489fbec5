//! The controller's round-trip sample is that of the acknowledgement being read [RFC9002 §A.7], not
//! of the one before.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use fairpath_cc::{ControlState, Controller};
use fairpath_core::{Ack, ByteCount, Congestion, PathId, Rtt, Timestamp};
use fairpath_engine::Engine;
use proptest::prelude::*;

const MTU: ByteCount = ByteCount::new(1200);
const PATH: PathId = PathId::new(0);

/// Remembers what it was told, and whether the acknowledgement was whole by then.
#[derive(Debug, Default)]
struct Listener(Arc<Mutex<Vec<Option<Rtt>>>>);

impl Controller for Listener {
    fn on_path_opened(&mut self, _: PathId, _: ByteCount, _: Timestamp) {}
    fn on_path_closed(&mut self, _: PathId) {}
    fn on_max_datagram(&mut self, _: PathId, _: ByteCount) {}
    fn on_ack(&mut self, _: PathId, ack: &Ack) {
        self.0.lock().unwrap().push(ack.rtt);
    }
    fn on_congestion(&mut self, _: PathId, _: &Congestion) {}
    fn window(&self, _: PathId) -> ByteCount {
        MTU * 1000
    }
    fn state(&self, _: PathId) -> Option<ControlState> {
        None
    }
}

proptest! {
    #[test]
    fn every_packet_of_an_acknowledgement_is_told_with_the_round_trip_of_its_newest(
        frames in prop::collection::vec((1u64..6, 1u64..300, 0u64..20), 1..20),
    ) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = Box::new(Listener(Arc::clone(&heard)));
        let mut engine = Engine::new(listener, Box::new(fairpath_sbd::Never::default()), Box::new(fairpath_sched::MinRtt));
        engine.on_path_opened(PATH, MTU, Timestamp::ZERO);
        let (mut number, mut now) = (0, Timestamp::from_secs(1));
        for (packets, rtt_ms, delay_ms) in frames {
            let numbers = number..number + packets;
            number += packets;
            // The newest leaves last: the others have been on their way for longer.
            for number in numbers.clone() {
                now = now + Duration::from_millis(1);
                engine.on_sent(PATH, number, MTU, now);
            }
            let rtt = Duration::from_millis(rtt_ms);
            now = now + rtt;
            numbers.for_each(|number| engine.on_ack(PATH, number, now));
            engine.on_ack_end(PATH, Duration::from_millis(delay_ms), now);
            let told: Vec<Option<Rtt>> = heard.lock().unwrap().drain(..).collect();
            prop_assert_eq!(told.len() as u64, packets);
            prop_assert!(told.iter().all(|told| told.is_some_and(|told| told.latest == rtt)), "{told:?} in a round of {rtt:?}");
            prop_assert!(told.iter().all(|told| *told == engine.rtt(PATH)), "{told:?} beside {:?}", engine.rtt(PATH));
        }
    }
}
