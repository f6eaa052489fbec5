//! Links against closed forms, and what must hold whatever is done to them.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    CoDelConfig, Delivered, DropCause, Filter, GilbertElliott, Link, LinkConfig, LossConfig, MahimahiTrace, Offered,
    Packet, Policer, QueueConfig, QueueLimit, Rate, RateTable, RateTableEnd, RedConfig, RedSpacing, Streams,
};
use proptest::prelude::*;

const PACKET: ByteCount = ByteCount::new(1_500);

fn link<P: Packet>(config: &LinkConfig) -> Link<P> {
    Link::new("link", config, &Streams::new(1))
}

/// A packet of which every other can be marked.
#[derive(Clone, Copy, Debug)]
struct Numbered {
    number: u64,
    marked: bool,
}

impl Packet for Numbered {
    fn is_ecn_capable(&self) -> bool {
        self.number.is_multiple_of(2)
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

fn mbps(rate: u64) -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(rate))
}

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Runs the link from event to event until it is empty.
fn drain(link: &mut Link<u64>) -> Vec<Delivered<u64>> {
    let mut delivered = Vec::new();
    while let Some(now) = link.next_event() {
        delivered.extend(core::iter::from_fn(|| link.poll(now)));
    }
    delivered
}

/// Offers `count` packets, `gap` apart, as a host that polls in between.
fn offer_steadily(link: &mut Link<u64>, count: u64, gap: Duration) -> Vec<Delivered<u64>> {
    let mut delivered = Vec::new();
    for number in 0..count {
        let now = Timestamp::ZERO + gap * number as u32;
        delivered.extend(core::iter::from_fn(|| link.poll(now)));
        let _ = link.offer(now, number, PACKET);
    }
    delivered.extend(drain(link));
    delivered
}

#[test]
fn a_packet_takes_its_transmission_and_the_propagation() {
    // 1500 · 8 / 10^7 = 1.2 ms, and 30 ms
    let mut link = link(&mbps(10).delay(Duration::from_millis(30)));
    assert_eq!(link.next_event(), None);
    assert_eq!(link.offer(ms(5), 7, PACKET), Offered::Queued);
    let due = Timestamp::from_micros(36_200);
    assert_eq!(link.next_event(), Some(due));
    assert_eq!(link.poll(Timestamp::from_micros(36_199)), None);
    assert_eq!(link.poll(ms(1_000)), Some(Delivered { at: due, size: PACKET, packet: 7 }));
    assert_eq!(link.next_event(), None);
}

#[test]
fn the_framing_of_a_link_takes_time_but_is_not_delivered() {
    // 1500 + 38 B at 10 Mbit/s: 1.2304 ms; Ethernet carries 1500 of 1538 B.
    let mut link = link(&mbps(10).overhead(ByteCount::new(38)));
    let _ = link.offer(ms(0), 0, PACKET);
    let _ = link.offer(ms(0), 1, PACKET);
    assert_eq!(link.stats().queued.bytes, PACKET);
    let delivered = drain(&mut link);
    assert_eq!((delivered[1].at, delivered[1].size), (Timestamp::from_nanos(2_460_800), PACKET));
    assert!(link.stats().is_conserved());
}

#[test]
fn a_full_pipe_holds_the_bandwidth_delay_product() {
    // 12 Mbit/s · 100 ms = 150,000 B = 100 packets, and one in transmission.
    let mut link = link(&mbps(12).delay(Duration::from_millis(100)).queue(QueueConfig::unlimited()));
    for number in 0..1_000 {
        let _ = link.offer(ms(0), number, PACKET);
    }
    while link.poll(Timestamp::from_micros(500_500)).is_some() {}
    assert_eq!(link.stats().in_flight.packets, 101);
    assert_eq!(link.stats().in_flight.bytes, PACKET * 101);
}

#[test]
fn a_burst_waits_for_what_is_before_it() {
    // 1 ms each: packet i waits i ms, the mean of 0 to 9 is 4.5 ms.
    let mut link = link(&mbps(12));
    for number in 0..10 {
        let _ = link.offer(ms(0), number, PACKET);
    }
    let at: Vec<u64> = drain(&mut link).iter().map(|delivered| delivered.at.as_nanos()).collect();
    assert_eq!(at, (1..=10).map(|i| i * 1_000_000).collect::<Vec<_>>());
    let stats = link.stats();
    assert_eq!(stats.queueing_delay_max, Duration::from_millis(9));
    assert_eq!(stats.queueing_delay_mean(), Some(Duration::from_micros(4_500)));
    assert_eq!(stats.queued_bytes_max, PACKET * 9);
}

#[test]
fn twice_the_rate_loses_half() {
    let mut link = link(&mbps(12).queue(QueueConfig::packets(10)));
    offer_steadily(&mut link, 100_000, Duration::from_micros(500));
    let stats = link.stats();
    let share = stats.overflowed.packets as f64 / stats.offered.packets as f64;
    assert!((share - 0.5).abs() < 0.001, "{share}");
    assert_eq!(stats.dropped(), stats.overflowed);
    // Ten packets of 1 ms each are before the last that fits, one of them partly sent.
    assert!(stats.queueing_delay_max <= Duration::from_millis(10));
}

#[test]
fn rates_are_carried_exactly() {
    for rate in [40, 1_000, 333, 7] {
        let mut link = link(&mbps(rate).queue(QueueConfig::packets(100)));
        // Twice as much as it carries: packets of 1500 B, 1 s long.
        let gap = PACKET / Bitrate::from_mbps(2 * rate);
        let packets = Duration::from_secs(1).as_nanos() / gap.as_nanos();
        let delivered = offer_steadily(&mut link, packets as u64, gap);
        let bytes: ByteCount = delivered.iter().filter(|packet| packet.at <= ms(1_000)).map(|packet| packet.size).sum();
        let carried = bytes.per(Duration::from_secs(1)).unwrap().as_mbps_f64();
        // Within the one packet that is partly sent at the end.
        let packet = PACKET.get() as f64 * 8.0 / 1e6;
        assert!(carried <= rate as f64 && carried >= rate as f64 - packet, "{carried} of {rate} Mbit/s");
    }
}

#[test]
fn a_queue_in_milliseconds_bounds_the_wait_at_any_fixed_rate() {
    for rate in [1, 10, 40, 1_000] {
        let mut link = link(&mbps(rate).queue(QueueConfig::sojourn(Duration::from_millis(100))));
        for number in 0..20_000 {
            let _ = link.offer(ms(0), number, PACKET);
        }
        drain(&mut link);
        let longest = link.stats().queueing_delay_max;
        let packet = PACKET / Bitrate::from_mbps(rate);
        assert!(longest <= Duration::from_millis(100), "{longest:?}");
        assert!(longest + packet * 2 > Duration::from_millis(100), "{longest:?}");
    }
}

#[test]
fn what_is_partly_sent_is_outside_the_limit_of_the_queue() {
    // Opportunities at 10, 20, 30 ms. Room for one packet. 2000 B take that at 10 and 496 B of
    // that at 20; from 10 ms on it is on the wire and another has room in the queue.
    let trace = MahimahiTrace::new(vec![10, 20, 30]).unwrap();
    let mut link = link(&LinkConfig::new(trace).queue(QueueConfig::packets(1)));
    let large = ByteCount::new(2_000);
    assert_eq!(link.offer(ms(1), 0, large), Offered::Queued);
    assert_eq!(link.offer(ms(9), 1, large), Offered::Dropped(DropCause::Overflow, 1));
    assert_eq!(link.offer(ms(11), 2, ByteCount::new(1_008)), Offered::Queued);
    let at: Vec<_> = drain(&mut link).iter().map(|delivered| (delivered.packet, delivered.at)).collect();
    assert_eq!(at, [(0, ms(20)), (2, ms(20))]);
}

#[test]
fn a_trace_saturated_with_full_packets_carries_its_mean_rate() {
    // 3 opportunities in 10 ms: 3 · 1504 · 8 / 0.01 = 3.6096 Mbit/s
    let trace = MahimahiTrace::new(vec![2, 2, 10]).unwrap();
    assert_eq!(trace.mean(), Bitrate::from_bps(3_609_600));
    // The header that Mahimahi's interface adds makes 1500 B exactly one opportunity.
    let config = LinkConfig::new(trace).overhead(ByteCount::new(4)).queue(QueueConfig::unlimited());
    let mut link = link(&config);
    for number in 0..300 {
        let _ = link.offer(ms(0), number, PACKET);
    }
    assert_eq!(drain(&mut link).last().unwrap().at, ms(1_000));
}

#[test]
fn jitter_stays_in_its_range_and_never_reorders() {
    let config = mbps(1_000).delay(Duration::from_millis(10)).jitter(Duration::from_millis(2));
    let mut link = link(&config);
    let gap = Duration::from_micros(500);
    let delivered = offer_steadily(&mut link, 10_000, gap);
    assert!(delivered.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].packet < pair[1].packet));
    let delays: Vec<Duration> = delivered.iter().map(|p| p.at.since(Timestamp::ZERO + gap * p.packet as u32)).collect();
    let fastest = Duration::from_micros(10_012);
    assert!(delays.iter().all(|delay| (fastest..=fastest + Duration::from_millis(2)).contains(delay)));
    assert!(*delays.iter().min().unwrap() < fastest + Duration::from_micros(200));
    assert!(*delays.iter().max().unwrap() > fastest + Duration::from_micros(1_900));
}

#[test]
fn a_link_that_goes_down_drops_its_queue_and_delivers_what_is_on_its_way() {
    // 1 ms each and 5 ms of delay. At 2.5 ms two are through, one is being sent, seven wait.
    let mut link = link(&mbps(12).delay(Duration::from_millis(5)));
    for number in 0..10 {
        let _ = link.offer(ms(0), number, PACKET);
    }
    link.set_up(false, Timestamp::from_micros(2_500));
    assert_eq!(link.stats().down.packets, 7);
    assert_eq!(link.offer(ms(3), 10, PACKET), Offered::Dropped(DropCause::Down, 10));
    link.set_up(true, ms(4));
    assert_eq!(link.offer(ms(4), 11, PACKET), Offered::Queued);
    let at: Vec<_> = drain(&mut link).iter().map(|delivered| (delivered.packet, delivered.at)).collect();
    assert_eq!(at, [(0, ms(6)), (1, ms(7)), (2, ms(8)), (11, ms(10))]);
    assert!(link.stats().is_conserved());
}

#[test]
fn a_changed_rate_holds_for_what_is_not_yet_being_sent() {
    let mut link = link(&mbps(12));
    (0..3).for_each(|number| assert_eq!(link.offer(ms(0), number, PACKET), Offered::Queued));
    link.set_rate(&Rate::Fixed(Bitrate::ZERO), Timestamp::from_micros(500));
    assert_eq!(link.poll(ms(1)).map(|delivered| delivered.packet), Some(0));
    assert_eq!(link.next_event(), None);
    link.set_rate(&Bitrate::from_mbps(6).into(), ms(10));
    let at: Vec<_> = drain(&mut link).iter().map(|delivered| delivered.at).collect();
    assert_eq!(at, [ms(12), ms(14)]);
}

#[test]
fn what_waited_for_a_rate_goes_when_it_comes_even_if_it_has_no_limit() {
    for queue in [QueueConfig::unlimited(), CoDelConfig::default().into()] {
        let mut link = link(&mbps(0).queue(queue));
        (0..3).for_each(|number| assert_eq!(link.offer(ms(number), number, PACKET), Offered::Queued));
        link.set_rate(&Rate::Unlimited, ms(4));
        let at: Vec<_> = drain(&mut link).iter().map(|delivered| delivered.at).collect();
        assert_eq!(at, [ms(4); 3]);
        assert_eq!(link.stats().queueing_delay_max, Duration::from_millis(4));
    }
}

#[test]
fn what_a_last_rate_of_zero_cuts_off_is_accounted_for_and_holds_up_nothing() {
    // 1.5 ms at 12 Mbit/s carry one packet and a half.
    let entries = vec![(ms(0), Bitrate::from_mbps(12)), (Timestamp::from_micros(1_500), Bitrate::ZERO)];
    let mut link = link(&LinkConfig::new(RateTable::new(entries, RateTableEnd::Hold).unwrap()));
    (0..3).for_each(|number| assert_eq!(link.offer(ms(0), number, PACKET), Offered::Queued));
    assert_eq!(drain(&mut link).len(), 1);
    let stats = link.stats();
    assert_eq!((stats.down.packets, stats.queued.packets), (1, 1));
    assert!(stats.is_conserved());
    link.set_rate(&Bitrate::from_mbps(12).into(), ms(10));
    let at: Vec<_> = drain(&mut link).iter().map(|delivered| (delivered.packet, delivered.at)).collect();
    assert_eq!(at, [(2, ms(11))]);
}

#[test]
fn a_late_host_learns_the_same_as_a_punctual_one() {
    let config = mbps(10).delay(Duration::from_millis(3)).jitter(Duration::from_millis(1));
    let red = RedConfig::olia_testbed(PACKET).weight(0.1);
    for queue in [QueueConfig::packets(50), red.into(), CoDelConfig::default().into()] {
        let config = config.clone().queue(queue);
        let punctual = offer_steadily(&mut link(&config), 2_000, Duration::from_micros(900));
        let mut late = link(&config);
        for number in 0..2_000_u64 {
            let _ = late.offer(Timestamp::from_micros(900 * number), number, PACKET);
        }
        let late: Vec<_> = core::iter::from_fn(|| late.poll(ms(10_000))).collect();
        assert_eq!(late, punctual);
        // A third more than fits: something was dropped.
        assert!(late.len() < 2_000);
    }
}

fn any_rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(Rate::Unlimited),
        (0u64..50_000_000).prop_map(|rate| Bitrate::from_bps(rate).into()),
        proptest::collection::vec(0u64..20, 1..6).prop_map(|rates| {
            let entry = |(index, rate): (usize, u64)| (ms(index as u64), Bitrate::from_mbps(rate));
            let mut entries: Vec<_> = rates.into_iter().enumerate().map(entry).collect();
            entries.push((ms(10), Bitrate::from_mbps(3)));
            RateTable::new(entries, RateTableEnd::Repeat(Duration::from_millis(13))).unwrap().into()
        }),
        proptest::collection::vec(0u64..12, 1..20).prop_map(|mut at| {
            at.push(12);
            at.sort_unstable();
            MahimahiTrace::new(at).unwrap().into()
        }),
    ]
}

fn any_limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (0usize..8).prop_map(QueueLimit::Packets),
        (0u64..9_000).prop_map(|bytes| QueueLimit::Bytes(ByteCount::new(bytes))),
        (0u64..20).prop_map(|time| QueueLimit::Sojourn(Duration::from_millis(time))),
        Just(QueueLimit::Unlimited),
    ]
}

fn any_queue() -> impl Strategy<Value = QueueConfig> {
    let millis = |millis: u64| QueueLimit::Sojourn(Duration::from_millis(millis));
    let profile = prop_oneof![
        (0usize..4, 0usize..4).prop_map(|(min, more)| {
            RedConfig::gentle(QueueLimit::Packets(min), QueueLimit::Packets(min + more), 0.5)
        }),
        (0u64..4, 0u64..4).prop_map(move |(min, more)| RedConfig::classic(millis(min), millis(min + more), 0.5)),
        Just(RedConfig::olia_testbed(ByteCount::new(100))),
    ];
    let spacing = prop_oneof![Just(RedSpacing::Geometric), Just(RedSpacing::Uniform)];
    let red = (profile, spacing, 1u32..=10, any_limit()).prop_map(|(profile, spacing, tenths, limit)| RedConfig {
        spacing,
        limit,
        ..profile.weight(f64::from(tenths) / 10.0)
    });
    let codel = (0u64..3, 1u64..10, any_limit()).prop_map(|(target, interval, limit)| CoDelConfig {
        target: Duration::from_millis(target),
        interval: Duration::from_millis(interval),
        limit,
    });
    prop_oneof![
        any_limit().prop_map(QueueConfig::DropTail),
        red.prop_map(QueueConfig::from),
        codel.prop_map(QueueConfig::from),
    ]
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let queue = any_queue();
    let loss = prop_oneof![
        Just(LossConfig::None),
        Just(LossConfig::Random { probability: 0.2 }),
        Just(LossConfig::GilbertElliott(GilbertElliott {
            good_to_bad: 0.1,
            bad_to_good: 0.3,
            loss_in_good: 0.0,
            loss_in_bad: 0.8
        })),
    ];
    (any_rate(), queue, loss, 0u64..10_000, 0u64..3_000, 0u64..50).prop_map(
        |(rate, queue, loss, delay, jitter, overhead)| {
            LinkConfig::new(rate)
                .queue(queue)
                .loss(loss)
                .delay(Duration::from_micros(delay))
                .jitter(Duration::from_micros(jitter))
                .overhead(ByteCount::new(overhead))
        },
    )
}

#[derive(Clone, Debug)]
enum Operation {
    Offer(u64),
    Poll,
    SetUp(bool),
    SetRate(Rate),
}

fn any_operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (0u64..4_000).prop_map(Operation::Offer),
        4 => Just(Operation::Poll),
        1 => any::<bool>().prop_map(Operation::SetUp),
        1 => any_rate().prop_map(Operation::SetRate),
    ]
}

proptest! {
    /// No packet is made, lost without account or delivered twice; they come in order and on time,
    /// and only those are marked that can be.
    #[test]
    fn packets_are_conserved_and_in_order(
        config in any_config(),
        operations in proptest::collection::vec((0u64..3_000, any_operation()), 1..200),
    ) {
        prop_assert_eq!(config.check(), Ok(()));
        let mut link = link(&config);
        let mut now = Timestamp::ZERO;
        let mut offered = 0;
        let mut last: Option<Delivered<Numbered>> = None;
        let mut marked = 0;
        for (wait, operation) in operations {
            now = now + Duration::from_micros(wait);
            match operation {
                Operation::Offer(size) => {
                    let packet = Numbered { number: offered, marked: false };
                    if let Offered::Dropped(_, packet) = link.offer(now, packet, ByteCount::new(size)) {
                        prop_assert_eq!((packet.number, packet.marked), (offered, false));
                    }
                    offered += 1;
                }
                Operation::Poll => while let Some(delivered) = link.poll(now) {
                    prop_assert!(delivered.at <= now);
                    if let Some(last) = last {
                        prop_assert!(last.at <= delivered.at && last.packet.number < delivered.packet.number);
                    }
                    prop_assert!(delivered.packet.is_ecn_capable() || !delivered.packet.marked);
                    marked += u64::from(delivered.packet.marked);
                    last = Some(delivered);
                },
                Operation::SetUp(up) => link.set_up(up, now),
                Operation::SetRate(rate) => link.set_rate(&rate, now),
            }
            let stats = link.stats();
            prop_assert!(stats.is_conserved(), "{stats:?}");
            prop_assert_eq!(stats.offered.packets, offered);
            // A marked packet may still be on its way, or was dropped when the link went down.
            let elsewhere = stats.queued.packets + stats.in_flight.packets + stats.down.packets;
            prop_assert!((marked..=marked + elsewhere).contains(&stats.marked.packets));
            prop_assert_eq!(link.queued(now).packets, link.stats().queued.packets);
        }
    }

    /// Whatever was accepted arrives, if the rate ever moves.
    #[test]
    fn a_link_left_alone_becomes_empty(config in any_config(), sizes in proptest::collection::vec(0u64..4_000, 1..50)) {
        let mut link = link::<u64>(&config);
        for (number, size) in sizes.iter().enumerate() {
            let _ = link.offer(ms(number as u64), number as u64, ByteCount::new(*size));
        }
        link.set_rate(&Bitrate::from_mbps(1).into(), ms(60));
        drain(&mut link);
        let stats = link.stats();
        prop_assert!(stats.is_conserved());
        prop_assert_eq!((stats.queued.packets, stats.in_flight.packets), (0, 0));
    }
}

#[test]
fn a_policer_drops_what_comes_too_fast_and_delays_nothing() {
    let policer = Policer { rate: Bitrate::from_mbps(12), burst: PACKET * 5 };
    let mut link: Link<u64> = Link::new("link", &mbps(120).policer(policer), &Streams::new(1));
    // Two come in the millisecond that one takes of its rate; one takes 0.1 ms of the link's.
    let mut passed = Vec::new();
    for number in 0..2000u64 {
        let now = Timestamp::from_nanos(500_000 * number);
        match link.offer(now, number, PACKET) {
            Offered::Queued => passed.push(number),
            Offered::Dropped(cause, dropped) => assert_eq!((cause, dropped), (DropCause::Policed, number)),
        }
        while link.poll(now).is_some() {}
    }
    assert!(passed.len().abs_diff(1000 + 5) <= 1, "{}", passed.len());
    let stats = link.stats();
    assert_eq!((stats.policed.packets, stats.queueing_delay_max), (2000 - passed.len() as u64, Duration::ZERO));
    assert!(stats.is_conserved());
    // A filter that is set and taken away leaves the policer where it is.
    link.set_filters(&[Filter::DropAll], Timestamp::from_secs(2));
    link.set_filters(&[], Timestamp::from_secs(2));
    let burst = (0..20).filter(|number| link.offer(Timestamp::from_secs(3), *number, PACKET) == Offered::Queued);
    assert_eq!(burst.count(), 5);
}
