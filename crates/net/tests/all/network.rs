//! Networks: routes, shared links, determinism, and real traces.

use core::time::Duration;
use std::path::Path;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    CoDelConfig, Delivery, LinkConfig, LinkId, LossConfig, MahimahiTrace, Network, Offered, QueueConfig, Rate,
    RedConfig, RouteId, TopologyError,
};
use proptest::prelude::*;

const PACKET: ByteCount = ByteCount::new(1_500);

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn mbps(rate: u64) -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(rate))
}

fn drain(network: &mut Network<u64>) -> Vec<Delivery<u64>> {
    let mut delivered = Vec::new();
    while let Some(now) = network.next_event() {
        delivered.extend(core::iter::from_fn(|| network.poll(now)));
    }
    delivered
}

#[test]
fn a_chain_adds_up_its_links() {
    let mut network = Network::new(1);
    let first = network.add_link("first", &mbps(12).delay(Duration::from_millis(10))).unwrap();
    let second = network.add_link("second", &mbps(6).delay(Duration::from_millis(20))).unwrap();
    let path = network.add_path(&[first, second], &[second]).unwrap();
    assert_eq!(network.send(ms(0), path.forward, 1, PACKET), Offered::Queued);
    assert_eq!(network.send(ms(0), path.backward, 2, PACKET), Offered::Queued);
    // Forward 1 + 10 + 2 + 20 ms, backward 2 + 20 ms.
    let at: Vec<_> = drain(&mut network).iter().map(|d| (d.route, d.packet, d.at)).collect();
    assert_eq!(at, [(path.backward, 2, ms(22)), (path.forward, 1, ms(33))]);
}

#[test]
fn routes_that_share_a_link_share_its_rate() {
    let mut network = Network::new(1);
    let access: Vec<LinkId> = ["a", "b"].map(|name| network.add_link(name, &mbps(1_000)).unwrap()).into();
    let shared = network.add_link("shared", &mbps(12).queue(QueueConfig::unlimited())).unwrap();
    let routes: Vec<_> = access.iter().map(|link| network.add_route(&[*link, shared]).unwrap()).collect();
    for number in 0..100 {
        for route in &routes {
            let _ = network.send(ms(0), *route, number, PACKET);
        }
    }
    // Access takes 12 µs; then 1 ms for each packet of either route.
    let delivered = drain(&mut network);
    assert_eq!(delivered.last().unwrap().at, Timestamp::from_micros(200_012));
    assert_eq!(delivered.iter().filter(|delivery| delivery.route == routes[0]).count(), 100);
    assert!(network.stats(shared).is_conserved());
}

#[test]
fn a_host_that_asks_far_ahead_may_still_answer_at_the_time_of_arrival() {
    let mut network = Network::new(1);
    let first = network.add_link("first", &mbps(12).delay(Duration::from_millis(10))).unwrap();
    let second = network.add_link("second", &mbps(6).delay(Duration::from_millis(10))).unwrap();
    let [near, far, answer] =
        [&[first][..], &[first, second], &[second]].map(|chain| network.add_route(chain).unwrap());
    let _ = network.send(ms(0), near, 1, PACKET);
    let _ = network.send(ms(0), far, 2, PACKET);
    let mut arrivals = Vec::new();
    while let Some(arrival) = network.poll(ms(100)) {
        arrivals.push((arrival.packet, arrival.at));
        if arrival.packet == 1 {
            assert_eq!(network.send(arrival.at, answer, 3, PACKET), Offered::Queued);
        }
    }
    // The answer is on the second link from 11 to 13 ms, and 2, which comes there at 12, until 15.
    assert_eq!(arrivals, [(1, ms(11)), (3, ms(23)), (2, ms(25))]);
}

#[test]
fn an_empty_route_delivers_at_once() {
    let mut network = Network::new(1);
    let route = network.add_route(&[]).unwrap();
    let _ = network.send(ms(3), route, 9, PACKET);
    assert_eq!(network.next_event(), Some(ms(3)));
    assert_eq!(network.poll(ms(3)), Some(Delivery { route, at: ms(3), size: PACKET, packet: 9 }));
    assert_eq!(network.next_event(), None);
}

#[test]
fn a_route_knows_its_links_and_how_long_it_takes_unloaded() {
    let mut network = Network::<u64>::new(1);
    let config = mbps(12).delay(Duration::from_millis(10)).jitter(Duration::from_millis(5));
    let first = network.add_link("first", &config).unwrap();
    let second = network.add_link("second", &LinkConfig::pure_delay(Duration::from_millis(3))).unwrap();
    let path = network.add_path(&[first, second, second], &[second]).unwrap();
    assert_eq!(network.route(path.forward).collect::<Vec<_>>(), [first, second, second]);
    assert_eq!(network.route(path.backward).collect::<Vec<_>>(), [second]);
    assert_eq!((network.rate(first), network.rate(second)), (Some(Bitrate::from_mbps(12)), None));
    assert_eq!(network.delay(first), Duration::from_millis(10));
    // 1500 B at 12 Mbit/s take 1 ms: 1 + 10 + 3 + 3.
    assert_eq!(network.unloaded_delay(path.forward, PACKET), Duration::from_millis(17));
    network.set_link_rate(first, &Rate::Fixed(Bitrate::from_mbps(6)), ms(1));
    assert_eq!(network.unloaded_delay(path.forward, PACKET), Duration::from_millis(18));
}

#[test]
fn what_waits_is_known_at_any_time() {
    // 1 ms each, the first goes at once; at 3.5 ms the fourth has begun. Nothing has arrived yet.
    let mut network = Network::new(1);
    let link = network.add_link("link", &mbps(12).delay(Duration::from_millis(100))).unwrap();
    let route = network.add_route(&[link]).unwrap();
    (0..10).for_each(|number| assert_eq!(network.send(ms(0), route, number, PACKET), Offered::Queued));
    assert_eq!(network.queued(link, ms(0)).packets, 9);
    assert_eq!(network.queued(link, Timestamp::from_micros(3_500)).packets, 6);
    assert_eq!(network.queued(link, Timestamp::from_micros(3_500)).bytes, PACKET * 6);
    assert_eq!(network.queued(link, ms(20)).packets, 0);
}

#[test]
fn what_is_due_at_one_instant_comes_in_the_order_in_which_it_was_sent() {
    let mut network = Network::new(1);
    let names = ["a", "b", "c", "d", "e"];
    let links = names.map(|name| network.add_link(name, &mbps(12)).unwrap());
    let routes = links.map(|link| network.add_route(&[link]).unwrap());
    for number in [3, 1, 4, 0, 2] {
        let _ = network.send(ms(0), routes[number], number as u64, PACKET);
    }
    assert_eq!(drain(&mut network).iter().map(|delivery| delivery.packet).collect::<Vec<_>>(), [3, 1, 4, 0, 2]);
}

#[test]
fn names_are_taken_once_and_routes_go_over_links_that_exist() {
    let mut large = Network::<u64>::new(1);
    large.add_link("a", &mbps(1)).unwrap();
    let foreign = large.add_link("b", &mbps(1)).unwrap();
    assert_eq!(large.add_link("a", &mbps(2)), Err(TopologyError::DuplicateLink { name: "a".into() }));
    let mut small = Network::<u64>::new(1);
    assert_eq!(small.add_route(&[foreign]), Err(TopologyError::UnknownLink { link: foreign, links: 0 }));
}

/// Sends 2,000 packets over a link with every kind of randomness, after adding `others` first.
fn lossy_run(seed: u64, others: &[&str]) -> Vec<(u64, Timestamp)> {
    let mut network = Network::new(seed);
    let config = mbps(20)
        .delay(Duration::from_millis(5))
        .jitter(Duration::from_millis(1))
        .loss(LossConfig::Random { probability: 0.1 });
    let others: Vec<_> = others.iter().map(|name| network.add_link(name, &config).unwrap()).collect();
    let link = network.add_link("observed", &config).unwrap();
    let route = network.add_route(&[link]).unwrap();
    let detour = network.add_route(&others).unwrap();
    for number in 0..2_000 {
        let now = Timestamp::from_micros(700 * number);
        let _ = network.send(now, detour, number, PACKET);
        let _ = network.send(now, route, number, PACKET);
    }
    let observed = |delivery: &Delivery<u64>| (delivery.route == route).then_some((delivery.packet, delivery.at));
    drain(&mut network).iter().filter_map(observed).collect()
}

#[test]
fn the_same_seed_gives_the_same_deliveries_and_another_does_not() {
    assert_eq!(lossy_run(1, &[]), lossy_run(1, &[]));
    assert_ne!(lossy_run(1, &[]), lossy_run(2, &[]));
}

#[test]
fn adding_an_element_changes_no_other() {
    assert_eq!(lossy_run(1, &[]), lossy_run(1, &["x"]));
    assert_eq!(lossy_run(1, &[]), lossy_run(1, &["a", "b", "c"]));
}

/// The traces recorded on cellular networks are not part of this project; where they lie beside it
/// they are read. Their sizes are known: lines and last millisecond.
#[test]
fn real_traces_are_read_and_have_the_rate_their_lines_say() {
    const TRACES: [(&str, u64, u64); 3] = [
        ("ATT-LTE-driving-2016.down", 45_604, 120_002),
        ("TMobile-LTE-short.up", 155_381, 140_000),
        ("Verizon-LTE-short.down", 58_655, 140_000),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    for (name, lines, period_ms) in TRACES {
        let Ok(text) = std::fs::read_to_string(folder.join(name)) else {
            println!("skipped: {name} is not in {}", folder.display());
            continue;
        };
        let trace = MahimahiTrace::parse(&text).unwrap();
        assert_eq!(trace.at_ms().len() as u64, lines);
        assert_eq!(trace.period(), Duration::from_millis(period_ms));
        let expected = 1504.0 * 8.0 * lines as f64 / (period_ms as f64 / 1e3);
        let mean = trace.mean().as_bps() as f64;
        assert!((mean - expected).abs() < 1.0, "{name}: {mean} bit/s, not {expected}");
        carries_its_mean(trace, lines, period_ms);
    }
}

/// A link of `trace` that always has something to send is done with one period's worth at its end.
fn carries_its_mean(trace: MahimahiTrace, lines: u64, period_ms: u64) {
    let at_zero = trace.at_ms().iter().filter(|at| **at == 0).count() as u64;
    let mut network = Network::new(1);
    let link = network.add_link("lte", &LinkConfig::new(trace).queue(QueueConfig::unlimited())).unwrap();
    let route = network.add_route(&[link]).unwrap();
    for number in 0..lines {
        let _ = network.send(ms(0), route, number, ByteCount::new(1504));
    }
    // A packet at 0 is too late for the opportunities at 0, which come again with the next period.
    let inside = drain(&mut network).iter().filter(|delivery| delivery.at <= ms(period_ms)).count() as u64;
    assert!((lines - at_zero..=lines).contains(&inside), "{inside} of {lines}");
}

/// Three access links, a managed bottleneck and a way out; a route that uses a link twice. Times
/// are multiples of a millisecond, so that many events are due at one instant.
fn crossroads(queue: QueueConfig) -> (Network<u64>, Vec<LinkId>, Vec<RouteId>) {
    let mut network = Network::new(1);
    let delayed = |rate: u64, millis: u64| mbps(rate).delay(Duration::from_millis(millis));
    let configs = [
        delayed(12, 1),
        delayed(12, 1).loss(LossConfig::Random { probability: 0.1 }),
        delayed(24, 2).jitter(Duration::from_millis(1)),
        delayed(12, 3).queue(queue),
        delayed(120, 0),
    ];
    let add = |(number, config)| network.add_link(&format!("link {number}"), config).unwrap();
    let links: Vec<LinkId> = configs.iter().enumerate().map(add).collect();
    let chains = [&[0, 3, 4][..], &[1, 3, 4], &[2, 3], &[3, 0, 3]];
    let mut route = |chain: &&[usize]| {
        let chain: Vec<LinkId> = chain.iter().map(|link| links[*link]).collect();
        network.add_route(&chain).unwrap()
    };
    let routes = chains.iter().map(&mut route).collect();
    (network, links, routes)
}

proptest! {
    /// The packets that arrive, and when, do not depend on how often the host looks, nor on whether
    /// it asks for the queues.
    #[test]
    fn a_late_or_curious_host_changes_no_result(
        queue in prop_oneof![
            Just(QueueConfig::packets(4)),
            Just(CoDelConfig { interval: Duration::from_millis(5), ..CoDelConfig::default() }.into()),
            Just(RedConfig::olia_testbed(ByteCount::new(100)).weight(0.1).into()),
        ],
        sends in proptest::collection::vec((0u64..4, 0usize..4, 1u64..4), 1..150),
    ) {
        let run = |punctual: bool, curious: bool| {
            let (mut network, links, routes) = crossroads(queue.clone());
            let mut delivered = Vec::new();
            let mut now = Timestamp::ZERO;
            for (number, (wait, route, thirds)) in sends.iter().enumerate() {
                let next = now + Duration::from_millis(*wait);
                while punctual && network.next_event().is_some_and(|at| at <= next) {
                    let at = network.next_event().unwrap();
                    delivered.extend(network.poll(at));
                }
                now = next;
                if curious {
                    links.iter().for_each(|link| _ = network.queued(*link, now));
                }
                let _ = network.send(now, routes[*route], number as u64, ByteCount::new(500 * thirds));
            }
            delivered.extend(drain(&mut network));
            let stats: Vec<_> = links.iter().map(|link| network.stats(*link)).collect();
            assert!(stats.iter().all(|stats| stats.is_conserved()));
            (delivered, stats)
        };
        let late = run(false, false);
        prop_assert_eq!(&run(true, false), &late);
        prop_assert_eq!(&run(false, true), &late);
        prop_assert_eq!(&run(true, true), &late);
    }
}
