//! Paths over links of their own, which deliver at a constant rate whatever is sent.

use std::collections::VecDeque;

use fairpath_core::DeliveryRate;

use super::*;
use crate::algorithm::Bbr3;
use crate::model::testing::DATAGRAM;
use crate::testing::{loss, ms, path, rtt};

/// A path with a constant number of datagrams in flight, one of which arrives each `every_ms`.
struct Link {
    every_ms: u64,
    rtt_ms: u64,
    rate: DeliveryRate,
    sent: VecDeque<(Timestamp, SentState)>,
}

impl Link {
    fn new(every_ms: u64, rtt_ms: u64) -> Self {
        Self { every_ms, rtt_ms, rate: DeliveryRate::new(), sent: VecDeque::new() }
    }

    fn in_flight(&self) -> ByteCount {
        DATAGRAM * self.sent.len() as u64
    }

    /// The events of this millisecond.
    fn tick(&mut self, controller: &mut impl Controller, id: u32, now_ms: u64) {
        if !now_ms.is_multiple_of(self.every_ms) {
            return;
        }
        let (now, before) = (Timestamp::from_millis(now_ms), self.in_flight());
        if let Some((sent_at, state)) = self.sent.front().copied().filter(|(at, _)| now.since(*at) >= ms(self.rtt_ms)) {
            self.sent.pop_front();
            let rate = self.rate.on_ack(now, DATAGRAM, &state);
            let (bytes, rtt) = (DATAGRAM, Some(rtt(ms(self.rtt_ms))));
            let ack = Ack { now, sent_at, bytes, in_flight: before, window_limited: true, rtt, rate };
            controller.on_ack(path(id), &ack);
            controller.on_ack_end(path(id), now);
        }
        self.sent.push_back((now, self.rate.on_sent(now, self.in_flight())));
        controller.on_sent(path(id), &Sent { now, bytes: DATAGRAM, in_flight: self.in_flight() });
    }
}

/// 10 and 5 Mbit/s with round trips of 40 and 80 ms: 40 datagrams in flight on each.
fn links() -> [Link; 2] {
    [Link::new(1, 40), Link::new(2, 80)]
}

fn opened(paths: u32) -> CoupledBbr3 {
    let mut controller = CoupledBbr3::new(BbrConfig::default());
    (0..paths).for_each(|id| controller.on_path_opened(path(id), DATAGRAM, Timestamp::ZERO));
    controller
}

/// The links deliver until this time.
fn run(controller: &mut impl Controller, links: &mut [Link], span_ms: core::ops::Range<u64>) {
    for now_ms in span_ms {
        for (id, link) in (0..).zip(links.iter_mut()) {
            link.tick(controller, id, now_ms);
        }
    }
}

fn pacing(controller: &impl Controller, id: u32) -> f64 {
    controller.pacing_rate(path(id)).unwrap().as_mbps_f64()
}

#[test]
fn a_path_alone_is_bbr3_to_the_bit() {
    let (mut coupled, mut single) = (opened(1), Bbr3::new(BbrConfig::default()));
    single.on_path_opened(path(0), DATAGRAM, Timestamp::ZERO);
    let (mut one, mut other) = (Link::new(1, 40), Link::new(1, 40));
    for now_ms in 0..12_000 {
        one.tick(&mut coupled, 0, now_ms);
        other.tick(&mut single, 0, now_ms);
        assert_eq!(coupled.window(path(0)), single.window(path(0)), "{now_ms} ms");
        assert_eq!(coupled.pacing_rate(path(0)), single.pacing_rate(path(0)), "{now_ms} ms");
        assert_eq!(coupled.state(path(0)), single.state(path(0)), "{now_ms} ms");
    }
}

#[test]
fn a_flow_has_the_sum_of_rates_and_each_path_what_it_delivers() {
    let mut coupled = opened(2);
    run(&mut coupled, &mut links(), 0..4_000);
    // 10 and 5 Mbit/s at one gain between those of probing down and up, 0.9 and 1.25, less the margin of 1 %.
    let [first, second] = [0, 1].map(|id| pacing(&coupled, id));
    assert!((first / second - 2.0).abs() < 0.1, "{first} and {second} Mbit/s");
    assert!((0.89 * 15.0..1.25 * 15.0).contains(&(first + second)), "{first} and {second} Mbit/s");
    // Rate times round trip is 40 datagrams on both, though one delivers twice what the other does.
    let [first, second] = [0, 1].map(|id| coupled.window(path(id)).as_f64() / DATAGRAM.as_f64());
    assert!((first / second - 1.0).abs() < 0.1, "{first} and {second} datagrams");
}

#[test]
fn a_flow_that_parts_leaves_each_path_its_share() {
    let (mut coupled, mut links) = (opened(2), links());
    run(&mut coupled, &mut links, 0..4_000);
    let together = [0, 1].map(|id| coupled.window(path(id)).as_f64());
    coupled.on_groups(&Groups::singletons([path(0), path(1)]));
    run(&mut coupled, &mut links, 4_000..4_010);
    for (id, before) in (0..).zip(together) {
        let after = coupled.window(path(id)).as_f64();
        // Nothing is learnt in 10 ms, so a window moves only with the part of the probing cycle it is found in.
        assert!((0.6..1.6).contains(&(after / before)), "path {id}: {before} and {after} bytes");
    }
    run(&mut coupled, &mut links, 4_010..8_000);
    let [first, second] = [0, 1].map(|id| pacing(&coupled, id));
    assert!((8.9..12.5).contains(&first) && (4.4..6.3).contains(&second), "{first} and {second} Mbit/s");
}

#[test]
fn persistent_congestion_takes_the_window_of_its_own_path_only() {
    let (mut coupled, mut links) = (opened(2), links());
    run(&mut coupled, &mut links, 0..4_000);
    let [first, second] = [0, 1].map(|id| coupled.window(path(id)));
    coupled.on_congestion(path(0), &Congestion { persistent: true, ..loss(4_000) });
    assert!(coupled.window(path(0)) < first && coupled.window(path(0)) <= DATAGRAM * 4);
    assert_eq!(coupled.window(path(1)), second);
    // It is over with the first packet that arrives and left later.
    run(&mut coupled, &mut links, 4_000..4_200);
    assert!(coupled.window(path(0)) > DATAGRAM * 20, "{:?}", coupled.window(path(0)));
}

#[test]
fn a_path_that_closes_leaves_the_other_with_a_flow_of_its_own() {
    let (mut coupled, mut links) = (opened(2), links());
    run(&mut coupled, &mut links, 0..4_000);
    coupled.on_path_closed(path(1));
    assert_eq!(coupled.window(path(1)), ByteCount::ZERO);
    run(&mut coupled, &mut links[..1], 4_000..8_000);
    assert!((8.9..12.5).contains(&pacing(&coupled, 0)), "{}", pacing(&coupled, 0));
}
