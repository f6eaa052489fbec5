//! Packets that differ on their way: jitter, impairments and filters, against closed forms and
//! against what must hold whatever is configured.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    Delivered, DropCause, Filter, Impairments, Jitter, JitterDistribution, Link, LinkConfig, LossConfig, Network,
    Offered, Packet, QueueConfig, Reorder, Streams,
};
use proptest::prelude::*;

const PACKET: ByteCount = ByteCount::new(1_500);

/// A packet that knows whether it was harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbered {
    number: u64,
    corrupted: bool,
}

impl Packet for Numbered {
    fn corrupt(&mut self, _random: u64) {
        self.corrupted = true;
    }
}

fn numbered(number: u64) -> Numbered {
    Numbered { number, corrupted: false }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A link of 12 Mbit/s, on which a packet takes 1 ms, and 20 ms of delay.
fn config() -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(12)).delay(ms(20)).queue(QueueConfig::unlimited())
}

fn link(config: &LinkConfig) -> Link<Numbered> {
    Link::new("link", config, &Streams::new(1))
}

fn drain(link: &mut Link<Numbered>) -> Vec<Delivered<Numbered>> {
    let mut delivered = Vec::new();
    while let Some(now) = link.next_event() {
        delivered.extend(core::iter::from_fn(|| link.poll(now)));
    }
    delivered
}

/// Offers `count` packets, one every millisecond, as a host that polls in between.
fn offer_steadily(link: &mut Link<Numbered>, count: u64) -> Vec<Delivered<Numbered>> {
    let mut delivered = Vec::new();
    for number in 0..count {
        let now = Timestamp::from_millis(number);
        delivered.extend(core::iter::from_fn(|| link.poll(now)));
        let _ = link.offer(now, numbered(number), PACKET);
    }
    delivered.extend(drain(link));
    delivered
}

/// How many packets come after one with a larger number [RFC4737 §3.3].
fn reordered(delivered: &[Delivered<Numbered>]) -> usize {
    let mut next = 0;
    delivered
        .iter()
        .filter(|packet| {
            let late = packet.packet.number < next;
            next = next.max(packet.packet.number + 1);
            late
        })
        .count()
}

/// The share of `count` in `packets` lies within 4 standard deviations of the true one, which but one
/// seed in 16,000 keeps: √(p (1 - p)/n) for independent draws.
fn assert_share(count: u64, packets: u64, share: f64) {
    let tolerance = 4.0 * (share * (1.0 - share) / packets as f64).sqrt();
    let found = count as f64 / packets as f64;
    assert!((found - share).abs() < tolerance, "{found} and not {share} ± {tolerance}");
}

#[test]
fn the_share_that_is_held_back_is_overtaken_and_comes_late_by_so_much() {
    let reorder = Some(Reorder { share: 0.05, by: Duration::from_micros(4_500) });
    let mut link = link(&config().impairments(Impairments { reorder, ..Impairments::default() }));
    let delivered = offer_steadily(&mut link, 20_000);
    assert_eq!(delivered.len(), 20_000);
    assert_share(link.stats().held_back.packets, 20_000, 0.05);
    let mut late = 0;
    for packet in &delivered {
        // 1 ms of transmission, 20 ms of delay.
        let on_time = Timestamp::from_millis(packet.packet.number + 21);
        let by = packet.at.since(on_time);
        assert!([Duration::ZERO, Duration::from_micros(4_500)].contains(&by), "{by:?}");
        late += u64::from(by > Duration::ZERO);
    }
    assert_eq!(late, link.stats().held_back.packets);
    // Four packets follow within 4.5 ms. One that is held back is reordered unless all four are as well.
    assert_share(reordered(&delivered) as u64, 20_000, 0.05 * (1.0 - 0.05_f64.powi(4)));
}

#[test]
fn a_packet_that_is_held_back_holds_up_no_other_that_still_waits() {
    // The second event of a link may come before the first packet that is under way arrives.
    let reorder = Some(Reorder { share: 1.0, by: ms(1_000) });
    let first_held = Impairments { reorder, ..Impairments::default() };
    let mut network = Network::new(1);
    let held = network.add_link("held", &config().impairments(first_held)).unwrap();
    let route = network.add_route(&[held]).unwrap();
    for number in 0..3 {
        assert_eq!(network.send(Timestamp::ZERO, route, number, PACKET), Offered::Queued);
    }
    assert_eq!(network.next_event(), Some(Timestamp::from_millis(1)), "the second transmission begins");
    let mut arrivals = Vec::new();
    while let Some(now) = network.next_event() {
        arrivals.extend(core::iter::from_fn(|| network.poll(now)).map(|arrival| (arrival.packet, arrival.at)));
    }
    let at = [1_021, 1_022, 1_023].map(Timestamp::from_millis);
    assert_eq!(arrivals, [(0_u64, at[0]), (1, at[1]), (2, at[2])]);
}

#[test]
fn copies_come_right_before_their_originals_and_take_nothing_of_the_rate() {
    let mut link = link(&config().impairments(Impairments { duplicate: 0.1, ..Impairments::default() }));
    let delivered = offer_steadily(&mut link, 20_000);
    let stats = link.stats();
    assert_share(stats.duplicated.packets, 20_000, 0.1);
    assert_eq!(delivered.len() as u64, 20_000 + stats.duplicated.packets);
    assert_eq!(reordered(&delivered), stats.duplicated.packets as usize, "the second of each pair");
    for packet in &delivered {
        assert_eq!(packet.at, Timestamp::from_millis(packet.packet.number + 21));
    }
    assert!(stats.is_conserved());
    assert_eq!(stats.queueing_delay_mean(), Some(Duration::ZERO));
}

#[test]
fn the_share_that_is_corrupted_arrives_and_says_so() {
    let mut link = link(&config().impairments(Impairments { corrupt: 0.02, ..Impairments::default() }));
    let delivered = offer_steadily(&mut link, 20_000);
    let corrupted = delivered.iter().filter(|packet| packet.packet.corrupted).count() as u64;
    assert_eq!(corrupted, link.stats().corrupted.packets);
    assert_share(corrupted, 20_000, 0.02);
    assert_eq!(delivered.len(), 20_000);
}

#[test]
fn a_corrupted_number_has_one_wrong_bit_and_not_always_the_same() {
    let config = config().impairments(Impairments { corrupt: 1.0, ..Impairments::default() });
    let mut link = Link::<u64>::new("link", &config, &Streams::new(1));
    let mut wrong = 0_u64;
    for number in 0..1_000 {
        let now = Timestamp::from_millis(100 * number);
        let _ = link.offer(now, number, PACKET);
        let found = link.poll(now + ms(50)).unwrap().packet;
        assert_eq!((found ^ number).count_ones(), 1);
        wrong |= found ^ number;
    }
    // A bit is left out 1,000 times in a row once in (64/63)^1000 = 7 million runs.
    assert_eq!(wrong, u64::MAX);
}

#[test]
fn overtaking_packets_take_the_mean_of_the_distribution_and_others_more() {
    // A packet every millisecond and delays that differ by 10 ms: those that keep their order wait for
    // the longest before them.
    for (distribution, mean_ms) in [
        (JitterDistribution::Uniform, 20.0 + 5.0),
        // 20 ms is two deviations: μ + σ φ(2)/Φ(2) = 20 + 10 · 0.05399/0.97725.
        (JitterDistribution::Normal, 20.552),
        (JitterDistribution::Exponential, 30.0),
    ] {
        let jitter = Jitter::new(distribution, ms(10));
        let run = |jitter: Jitter| {
            let delivered = offer_steadily(&mut link(&config().jitter(jitter)), 20_000);
            assert_eq!(delivered.len(), 20_000);
            let late = |packet: &Delivered<Numbered>| packet.at.since(Timestamp::from_millis(packet.packet.number + 1));
            let mean = delivered.iter().map(|packet| late(packet).as_secs_f64() * 1e3).sum::<f64>() / 20_000.0;
            (mean, reordered(&delivered))
        };
        let (mean, out_of_order) = run(jitter.overtaking());
        // No deviation is above 10 ms, so four standard errors are 4 · 10/√20,000 = 0.28 ms.
        assert!((mean - mean_ms).abs() < 0.29, "{distribution:?}: {mean} ms");
        assert!(out_of_order > 5_000, "{distribution:?}: {out_of_order}");
        let (mean, out_of_order) = run(jitter);
        assert!(mean > mean_ms + 1.0, "{distribution:?}: {mean} ms");
        assert_eq!(out_of_order, 0);
    }
}

#[test]
fn an_impairment_changes_nothing_that_is_drawn_elsewhere() {
    let lossy = config().loss(LossConfig::Random { probability: 0.1 }).jitter(ms(2));
    let delivered = |config: &LinkConfig| {
        let delivered = offer_steadily(&mut link(config), 2_000);
        delivered.iter().map(|packet| (packet.packet.number, packet.at)).collect::<Vec<_>>()
    };
    let corrupt = Impairments { corrupt: 0.5, ..Impairments::default() };
    assert_eq!(delivered(&lossy), delivered(&lossy.clone().impairments(corrupt)));
    let reorder = Some(Reorder { share: 0.5, by: ms(50) });
    let numbers = |config: &LinkConfig| {
        let mut numbers: Vec<u64> = delivered(config).iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers
    };
    let reordering = lossy.clone().impairments(Impairments { reorder, ..Impairments::default() });
    assert_eq!(numbers(&lossy), numbers(&reordering), "the same are lost");
}

#[test]
fn filters_drop_what_they_say_and_only_while_they_are_set() {
    /// The packets of ten, the third of which has 1,501 bytes, that get in.
    fn passed(filter: Filter) -> Vec<u64> {
        let mut link = link(&config());
        link.set_filters(&[filter], Timestamp::ZERO);
        let size = |number| if number == 3 { ByteCount::new(1_501) } else { PACKET };
        let offer = |link: &mut Link<Numbered>, number| link.offer(Timestamp::ZERO, numbered(number), size(number));
        let passed = (1..=10).filter(|number| match offer(&mut link, *number) {
            Offered::Queued => true,
            Offered::Dropped(cause, packet) => {
                assert_eq!((cause, packet.number), (DropCause::Filtered, *number));
                false
            }
        });
        let passed: Vec<u64> = passed.collect();
        let stats = link.stats();
        assert_eq!(stats.filtered.packets, 10 - passed.len() as u64);
        assert!(stats.is_conserved());
        link.set_filters(&[Filter::Pass], Timestamp::ZERO);
        assert_eq!(offer(&mut link, 3), Offered::Queued);
        passed
    }
    assert_eq!(passed(Filter::Pass).len(), 10);
    assert_eq!(passed(Filter::DropAll), []);
    assert_eq!(passed(Filter::DropLarger(PACKET)), [1, 2, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(passed(Filter::DropEvery(3)), [1, 2, 4, 5, 7, 8, 10]);
    assert_eq!(passed(Filter::DropEvery(0)).len(), 10);
    assert_eq!(passed(Filter::DropNext(4)), [5, 6, 7, 8, 9, 10]);
    assert_eq!(passed(Filter::DropShare(1.0)), []);
    assert_eq!(passed(Filter::DropShare(f64::NAN)).len(), 10);
}

#[test]
fn filters_stand_one_behind_the_other() {
    let mut link = link(&config());
    link.set_filters(&[Filter::DropLarger(PACKET), Filter::DropEvery(2), Filter::Pass], Timestamp::ZERO);
    let mut passed = |size: ByteCount| {
        let mut gets_in = |number| link.offer(Timestamp::ZERO, numbered(number), size) == Offered::Queued;
        (1..=4).filter(|number| gets_in(*number)).collect::<Vec<u64>>()
    };
    assert_eq!(passed(PACKET), [1, 3]);
    assert_eq!(passed(PACKET + ByteCount::new(1)), []);
    // With those of the first round and what has just been refused, every second one still.
    assert_eq!(passed(PACKET), [1, 3]);
    assert_eq!((link.stats().filtered.packets, link.stats().offered.packets), (8, 12));
}

#[test]
fn a_share_that_is_dropped_is_that_share_and_another_one_the_second_time() {
    let mut link = link(&config());
    let mut passed = |from: u64| {
        link.set_filters(&[Filter::DropShare(0.2)], Timestamp::ZERO);
        let mut gets_in = |number| link.offer(Timestamp::ZERO, numbered(number), PACKET) == Offered::Queued;
        (from..from + 10_000).map(&mut gets_in).collect::<Vec<bool>>()
    };
    let (one, two) = (passed(0), passed(10_000));
    for passed in [&one, &two] {
        assert_share(passed.iter().filter(|passed| !**passed).count() as u64, 10_000, 0.2);
    }
    assert_ne!(one, two);
}

#[test]
fn what_is_on_a_link_passes_its_filter_and_a_link_that_is_down_stays_so() {
    let mut network = Network::new(1);
    let first = network.add_link("link", &config()).unwrap();
    let route = network.add_route(&[first]).unwrap();
    for number in 0..2 {
        assert_eq!(network.send(Timestamp::ZERO, route, number, PACKET), Offered::Queued);
    }
    network.set_filters(first, &[Filter::DropAll], Timestamp::ZERO);
    assert_eq!(network.send(Timestamp::ZERO, route, 2, PACKET), Offered::Dropped(DropCause::Filtered, 2));
    network.set_link_up(first, false, Timestamp::from_millis(3));
    network.set_filters(first, &[Filter::Pass], Timestamp::from_millis(3));
    assert!(!network.is_link_up(first));
    assert_eq!(network.send(Timestamp::from_millis(3), route, 3, PACKET), Offered::Dropped(DropCause::Down, 3));
    let arrived: Vec<u64> = core::iter::from_fn(|| network.poll(Timestamp::from_secs(1))).map(|d| d.packet).collect();
    assert_eq!(arrived, [0, 1]);
}

#[test]
fn delay_and_impairments_change_for_what_is_not_yet_being_sent() {
    // 1 ms each and 20 ms. At 2.5 ms the third is being sent.
    let mut link = link(&config());
    for number in 0..6 {
        let _ = link.offer(Timestamp::ZERO, numbered(number), PACKET);
    }
    let at = Timestamp::from_micros(2_500);
    link.set_delay(ms(200), at);
    link.set_impairments(&Impairments { duplicate: 1.0, ..Impairments::default() }, at);
    assert_eq!((link.delay(), link.stats().duplicated.packets), (ms(200), 0));
    let at = Timestamp::from_micros(4_500);
    link.set_delay(ms(20), at);
    link.set_impairments(&Impairments::default(), at);
    let delivered: Vec<_> = drain(&mut link).iter().map(|packet| (packet.packet.number, packet.at)).collect();
    // The last one, of 20 ms again, does not arrive before those of 200 ms.
    let expected = [(0, 21), (1, 22), (2, 23), (3, 204), (3, 204), (4, 205), (4, 205), (5, 205)];
    assert_eq!(delivered, expected.map(|(number, at)| (number, Timestamp::from_millis(at))));
}

#[test]
fn impairments_that_come_back_befall_other_packets() {
    let mut link = link(&config());
    let mut late = |from: u64| {
        let reorder = Some(Reorder { share: 0.5, by: ms(5) });
        let start = Timestamp::from_millis(from);
        link.set_impairments(&Impairments { reorder, ..Impairments::default() }, start);
        (0..100).for_each(|number| _ = link.offer(start + ms(number), numbered(number), PACKET));
        let delivered = drain(&mut link);
        link.set_impairments(&Impairments::default(), start + ms(200));
        let mut late: Vec<u64> = Vec::new();
        for packet in &delivered {
            late.extend((packet.at > start + ms(packet.packet.number + 21)).then_some(packet.packet.number));
        }
        late.sort_unstable();
        late
    };
    let (one, two) = (late(0), late(1_000));
    assert!(one != two && one.len() > 20 && two.len() > 20, "{one:?} {two:?}");
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    let distribution = prop_oneof![
        Just(JitterDistribution::Uniform),
        Just(JitterDistribution::Normal),
        Just(JitterDistribution::Exponential),
    ];
    (distribution, 0u64..5_000, any::<bool>()).prop_map(|(distribution, scale, overtake)| Jitter {
        distribution,
        scale: Duration::from_micros(scale),
        overtake,
    })
}

fn any_impairments() -> impl Strategy<Value = Impairments> {
    let share = || prop_oneof![Just(0.0), Just(0.3), Just(1.0)];
    let reorder = proptest::option::of((share(), 0u64..5_000))
        .prop_map(|held| held.map(|(share, by)| Reorder { share, by: Duration::from_micros(by) }));
    (reorder, share(), share()).prop_map(|(reorder, duplicate, corrupt)| Impairments { reorder, duplicate, corrupt })
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    (any_jitter(), any_impairments(), 0u64..3_000, 1u64..30, 0usize..8).prop_map(
        |(jitter, impairments, delay, rate, packets)| {
            LinkConfig::new(Bitrate::from_mbps(rate))
                .delay(Duration::from_micros(delay))
                .queue(QueueConfig::packets(packets))
                .jitter(jitter)
                .impairments(impairments)
        },
    )
}

fn any_filter() -> impl Strategy<Value = Filter> {
    prop_oneof![
        4 => Just(Filter::Pass),
        1 => Just(Filter::DropAll),
        1 => (0u64..3_000).prop_map(|size| Filter::DropLarger(ByteCount::new(size))),
        1 => (0u64..4).prop_map(Filter::DropEvery),
        1 => Just(Filter::DropShare(0.4)),
        1 => (0u64..4).prop_map(Filter::DropNext),
    ]
}

#[derive(Clone, Debug)]
enum Operation {
    Offer(u64),
    Poll,
    SetUp(bool),
    SetFilter(Filter),
    SetDelay(u64),
    SetImpairments(Impairments),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (0u64..3_000).prop_map(Operation::Offer),
        4 => Just(Operation::Poll),
        1 => any::<bool>().prop_map(Operation::SetUp),
        1 => any_filter().prop_map(Operation::SetFilter),
        1 => (0u64..5_000).prop_map(Operation::SetDelay),
        1 => any_impairments().prop_map(Operation::SetImpairments),
    ]
}

/// Does the operations, polls where they say so if `punctual` at every event besides, and then waits
/// for all that is left.
fn play(
    link: &mut Link<Numbered>,
    operations: &[(u64, Operation)],
    punctual: bool,
    mut check: impl FnMut(&Link<Numbered>),
) -> Vec<Delivered<Numbered>> {
    let mut delivered = Vec::new();
    let mut now = Timestamp::ZERO;
    let mut offered = 0;
    for (wait, operation) in operations {
        now = now + Duration::from_micros(*wait);
        while let Some(at) = link.next_event().filter(|at| punctual && *at <= now) {
            let due = core::iter::from_fn(|| link.poll(at));
            delivered.extend(due.inspect(|packet| assert_eq!(packet.at, at, "learnt in time")));
        }
        match operation {
            Operation::Offer(size) => {
                if let Offered::Dropped(_, packet) = link.offer(now, numbered(offered), ByteCount::new(*size)) {
                    assert_eq!(packet, numbered(offered), "given back as it was");
                }
                offered += 1;
            }
            Operation::Poll => delivered.extend(core::iter::from_fn(|| link.poll(now))),
            Operation::SetUp(up) => link.set_up(*up, now),
            Operation::SetFilter(filter) => link.set_filters(&[*filter], now),
            Operation::SetDelay(micros) => link.set_delay(Duration::from_micros(*micros), now),
            Operation::SetImpairments(impairments) => link.set_impairments(impairments, now),
        }
        check(link);
    }
    delivered.extend(drain(link));
    check(link);
    delivered
}

proptest! {
    /// Every packet sent or duplicated is delivered, dropped or on the link; all come in order of
    /// time, and in the order of sending where nothing may overtake.
    #[test]
    fn packets_are_conserved_and_overtake_only_where_they_may(
        config in any_config(),
        operations in proptest::collection::vec((0u64..2_000, any_operation()), 1..150),
    ) {
        prop_assert_eq!(config.check(), Ok(()));
        let mut link = link(&config);
        let delivered = play(&mut link, &operations, false, |link| {
            let stats = link.stats();
            assert!(stats.is_conserved(), "{stats:?}");
        });
        let stats = link.stats();
        prop_assert_eq!((stats.queued.packets, stats.in_flight.packets), (0, 0));
        prop_assert_eq!(delivered.len() as u64, stats.offered.packets + stats.duplicated.packets - stats.dropped().packets);
        let corrupted = delivered.iter().filter(|packet| packet.packet.corrupted).count() as u64;
        prop_assert_eq!(corrupted, stats.corrupted.packets);
        prop_assert!(delivered.windows(2).all(|pair| pair[0].at <= pair[1].at));
        let mut times: Vec<u64> = delivered.iter().map(|packet| packet.packet.number).collect();
        let in_order = times.windows(2).all(|pair| pair[0] <= pair[1]);
        let reorders = |operation: &(_, Operation)| match operation.1 {
            Operation::SetImpairments(impairments) => impairments.reorder.is_some(),
            _ => false,
        };
        let may_overtake = config.impairments.reorder.is_some()
            || config.jitter.overtake
            || operations.iter().any(reorders);
        prop_assert!(in_order || may_overtake);
        times.sort_unstable();
        prop_assert!(times.windows(3).all(|triple| triple[0] != triple[2]), "nothing comes three times");
    }

    /// A host that is late learns the same as a punctual one, and the same seed gives the same.
    #[test]
    fn when_the_host_looks_changes_nothing(
        config in any_config(),
        operations in proptest::collection::vec((0u64..2_000, any_operation()), 1..150),
    ) {
        let play = |punctual| play(&mut link(&config), &operations, punctual, |_| {});
        prop_assert_eq!(play(true), play(false));
    }

    /// The same in a chain of links, where what leaves one in another order enters the next in it.
    #[test]
    fn when_the_host_looks_at_a_network_changes_nothing(
        configs in proptest::collection::vec(any_config(), 1..4),
        waits in proptest::collection::vec(0u64..2_000, 1..100),
    ) {
        let run = |punctual: bool| {
            let mut network = Network::new(1);
            let chain: Vec<_> = configs
                .iter()
                .enumerate()
                .map(|(number, config)| network.add_link(&number.to_string(), config).unwrap())
                .collect();
            let route = network.add_route(&chain).unwrap();
            let mut arrivals = Vec::new();
            let mut now = Timestamp::ZERO;
            for (number, wait) in waits.iter().enumerate() {
                now = now + Duration::from_micros(*wait);
                while let Some(at) = network.next_event().filter(|at| punctual && *at <= now) {
                    let due = core::iter::from_fn(|| network.poll(at));
                    arrivals.extend(due.inspect(|packet| assert_eq!(packet.at, at, "learnt in time")));
                }
                let _ = network.send(now, route, numbered(number as u64), PACKET);
            }
            arrivals.extend(core::iter::from_fn(|| network.poll(Timestamp::from_secs(1_000))));
            assert!(arrivals.windows(2).all(|pair| pair[0].at <= pair[1].at));
            assert!(chain.iter().all(|link| network.stats(*link).is_conserved()));
            arrivals
        };
        prop_assert_eq!(run(true), run(false));
    }
}
