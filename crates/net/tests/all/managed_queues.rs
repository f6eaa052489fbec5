//! Links whose queues signal congestion early: what a flow through them gets to see.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    CoDelConfig, DropCause, FqCoDelConfig, Link, LinkConfig, LinkStats, Network, Offered, Packet, QueueConfig,
    QueueLimit, RedConfig, RedSpacing, RouteId, Streams,
};

const PACKET: ByteCount = ByteCount::new(1_500);

/// A packet that says whether it can be marked, and whether it was.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Numbered {
    number: u64,
    capable: bool,
    marked: bool,
}

impl Packet for Numbered {
    fn is_ecn_capable(&self) -> bool {
        self.capable
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

/// The senders.
#[derive(Clone, Copy)]
struct Source {
    packets: u64,
    gap: Duration,
    capable: bool,
}

/// The fates of a source's packets.
#[derive(Debug, PartialEq)]
struct Outcome {
    marked: Vec<u64>,
    dropped: Vec<u64>,
    /// When it was delivered and how long it waited, for each packet.
    waits: Vec<(Timestamp, Duration)>,
    stats: LinkStats,
}

/// Sends at a steady rate into a link of 12 Mbit/s: a packet takes 1 ms.
fn send(queue: impl Into<QueueConfig>, source: Source) -> Outcome {
    let config = LinkConfig::new(Bitrate::from_mbps(12)).queue(queue);
    let mut link = Link::new("link", &config, &Streams::new(1));
    let sent = |number: u64| Timestamp::ZERO + source.gap * number as u32;
    let mut arrived = Vec::new();
    for number in 0..source.packets {
        let packet = Numbered { number, capable: source.capable, marked: false };
        if let Offered::Dropped(cause, _) = link.offer(sent(number), packet, PACKET) {
            assert_ne!(cause, DropCause::Lost);
        }
        arrived.extend(core::iter::from_fn(|| link.poll(sent(number))));
    }
    arrived.extend(core::iter::from_fn(|| link.poll(Timestamp::from_secs(1_000))));
    let numbers: Vec<u64> = arrived.iter().map(|delivered| delivered.packet.number).collect();
    let transmission = Duration::from_millis(1);
    Outcome {
        marked: arrived.iter().filter(|d| d.packet.marked).map(|d| d.packet.number).collect(),
        dropped: (0..source.packets).filter(|number| numbers.binary_search(number).is_err()).collect(),
        waits: arrived.iter().map(|d| (d.at, d.at.since(sent(d.packet.number)) - transmission)).collect(),
        stats: link.stats(),
    }
}

/// Twice what the link carries.
const OVERLOAD: Source = Source { packets: 700, gap: Duration::from_micros(500), capable: false };

#[test]
fn codel_drops_from_the_head_after_an_interval_and_then_by_its_law() {
    // Packet k comes at k / 2 ms and is the k-th to go, at k ms: it waits k / 2 ms, and 5 ms are
    // reached at 10 ms. So the first is dropped at 110 ms; it is number 110. After it the head at
    // t ms is number t + 1, then t + 2, and so on. The next is due at 210 ms, then at 210 + 70.7,
    // then at 280.7 + 57.7 ms.
    assert_eq!(send(CoDelConfig::default(), OVERLOAD).dropped[..4], [110, 211, 283, 342]);
}

#[test]
fn codel_marks_where_it_would_drop_if_it_can() {
    // As above, but no mark frees any room: the head at t ms stays number t.
    let outcome = send(CoDelConfig::default(), Source { capable: true, ..OVERLOAD });
    assert_eq!(outcome.marked[..4], [110, 210, 281, 339]);
    assert_eq!(outcome.dropped, []);
    assert_eq!(outcome.stats.marked.packets, outcome.marked.len() as u64);
    assert_eq!(outcome.stats.early.packets, 0);
}

#[test]
fn codel_leaves_a_burst_alone_that_is_gone_within_its_interval() {
    // 100 packets at once: the last waits 99 ms, and the queue is above 5 ms from 5 to 98 ms.
    let burst = Source { packets: 100, gap: Duration::ZERO, capable: false };
    assert_eq!(send(CoDelConfig::default(), burst).dropped, []);
    // One of 200 is above it from 5 ms for longer than 100.
    assert_eq!(send(CoDelConfig::default(), Source { packets: 200, ..burst }).dropped[0], 105);
}

/// The time that the last queue on the way of four flows holds on average, after 10 of 60 s. They
/// fill it as Reno does: a packet more each round trip, half the window after a gap. The base
/// round-trip time is 81 ms, the pipe holds 81 packets.
fn mean_wait_of_reno(queue: impl Into<QueueConfig>) -> Duration {
    const FLOWS: usize = 4;
    let mut network = Network::new(1);
    let delay = Duration::from_millis(40);
    let config = LinkConfig::new(Bitrate::from_mbps(12)).delay(delay).queue(queue);
    let there = network.add_link("there", &config).unwrap();
    let back = network.add_link("back", &LinkConfig::pure_delay(delay)).unwrap();
    let loop_way: Vec<RouteId> = (0..FLOWS).map(|_| network.add_route(&[there, back]).unwrap()).collect();
    // Each flow's window, the next number to send, the next to be acknowledged, the end of recovery.
    let mut flows = [(2.0, 0u64, 0u64, 0u64); FLOWS];
    let (mut now, mut waits) = (Timestamp::ZERO, Vec::new());
    while now < Timestamp::from_secs(60) {
        for (flow, (window, next, acknowledged, _)) in flows.iter_mut().enumerate() {
            while *next < *acknowledged + *window as u64 {
                let packet = Numbered { number: *next, capable: false, marked: false };
                let _ = network.send(now, loop_way[flow], packet, PACKET);
                *next += 1;
            }
        }
        now = network.next_event().unwrap();
        while let Some(delivery) = network.poll(now) {
            let (window, next, acknowledged, recovered) = &mut flows[delivery.route.index()];
            let number = delivery.packet.number;
            if number > *acknowledged && number >= *recovered {
                (*window, *recovered) = ((*window / 2.0f64).max(2.0), *next);
            }
            *window += 1.0 / *window;
            *acknowledged = number + 1;
        }
        if now > Timestamp::from_secs(10) {
            waits.push(network.queued(there, now).packets);
        }
    }
    assert!(network.stats(there).is_conserved());
    // A packet takes 1 ms.
    Duration::from_millis(1).mul_f64(waits.iter().sum::<u64>() as f64 / waits.len() as f64)
}

#[test]
fn codel_brings_a_standing_queue_near_its_target() {
    let codel = mean_wait_of_reno(CoDelConfig::default());
    assert!((Duration::from_millis(2)..Duration::from_millis(10)).contains(&codel), "{codel:?}");
    // The same flows fill a queue that only has a limit.
    let drop_tail = mean_wait_of_reno(QueueConfig::packets(200));
    assert!(drop_tail > Duration::from_millis(100), "{drop_tail:?}");
}

#[test]
fn codel_keeps_its_limit() {
    let config = CoDelConfig { limit: QueueLimit::Packets(40), ..CoDelConfig::default() };
    let stats = send(config, OVERLOAD).stats;
    assert_eq!(stats.queued_bytes_max, PACKET * 40);
    assert!(stats.overflowed.packets > 0 && stats.early.packets > 0);
    assert!(stats.is_conserved());
}

/// One probability, however long the queue is.
fn plateau(probability: f64) -> RedConfig {
    let points = vec![(QueueLimit::Packets(0), probability)];
    RedConfig { spacing: RedSpacing::Geometric, ..RedConfig::new(points) }
}

#[test]
fn red_drops_the_share_that_its_profile_says() {
    // 100,000 at 3 %: a deviation of sqrt(100,000 · 0.03 · 0.97) = 54; four of them.
    let source = Source { packets: 100_000, gap: Duration::from_millis(1), capable: false };
    let stats = send(plateau(0.03), source).stats;
    assert!(stats.early.packets.abs_diff(3_000) < 216, "{}", stats.early.packets);
    assert_eq!(stats.dropped(), stats.early);
}

#[test]
fn red_marks_the_same_packets_that_it_would_drop() {
    // The probability does not depend on the queue here, so dropping changes no later decision.
    let source = Source { packets: 10_000, gap: Duration::from_millis(1), capable: false };
    let dropped = send(plateau(0.03), source);
    let marked = send(plateau(0.03), Source { capable: true, ..source });
    assert_eq!(marked.marked, dropped.dropped);
    assert_eq!(marked.stats.marked.packets, dropped.stats.early.packets);
    assert_eq!((marked.stats.dropped().packets, dropped.stats.marked.packets), (0, 0));
}

#[test]
fn red_drops_what_could_be_marked_where_the_average_is_too_long() {
    let profile = RedConfig::classic(QueueLimit::Packets(5), QueueLimit::Packets(15), 0.1).weight(0.1);
    let stats = send(profile, Source { packets: 10_000, capable: true, ..OVERLOAD }).stats;
    // Twice the rate, half of it dropped: all of that above 15 packets, where marks do not help.
    assert!(stats.early.packets > 4_900 && stats.marked.packets > 0, "{stats:?}");
    assert!(stats.queued_bytes_max < PACKET * 40);
}

#[test]
fn red_holds_an_overload_where_its_profile_drops_what_is_too_much() {
    // The excess is a tenth of 1100 packets per second, so 1 / 11 = 0.0909 must be dropped. The
    // testbed's profile does so at 25 + 25 · 0.909 = 47.7 packets of 10 Mbit/s; here it is 12/10 of
    // that, 57.3.
    let source = Source { packets: 110_000, gap: Duration::from_nanos(909_091), capable: false };
    let outcome = send(RedConfig::olia_testbed(PACKET), source);
    let late: Vec<f64> = outcome.waits[20_000..].iter().map(|(_, wait)| wait.as_secs_f64() * 1e3).collect();
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    // A packet waits 1 ms for each before it; the packet in transmission is half through on average.
    assert!((mean - 57.3).abs() < 2.0, "{mean} ms");
}

#[test]
fn red_keeps_its_limit() {
    let stats = send(plateau(0.01).limit(QueueLimit::Sojourn(Duration::from_millis(30))), OVERLOAD).stats;
    assert_eq!(stats.queued_bytes_max, PACKET * 30);
    assert!(stats.overflowed.packets > 0 && stats.early.packets > 0);
}

#[test]
fn red_lets_a_packet_pass_a_limit_of_nothing_if_the_link_is_idle() {
    let source = Source { packets: 100, gap: Duration::from_millis(2), capable: false };
    assert_eq!(send(plateau(0.0).limit(QueueLimit::Packets(0)), source).dropped, []);
}

#[test]
fn the_same_seed_drops_the_same_packets() {
    let queue = || RedConfig::gentle(QueueLimit::Packets(5), QueueLimit::Packets(15), 0.1).weight(0.02);
    let source = Source { packets: 20_000, ..OVERLOAD };
    assert_eq!(send(queue(), source), send(queue(), source));
}

/// How long the packets of a flow of a tenth of the rate wait at most, and how many of 1,000 are lost, beside another
/// flow that offers twice what the link carries.
fn beside_a_flood(queue: impl Into<QueueConfig>) -> (Duration, usize) {
    let mut network = Network::new(1);
    let link = network.add_link("link", &LinkConfig::new(Bitrate::from_mbps(12)).queue(queue)).unwrap();
    let [quiet, flood] = [(); 2].map(|()| network.add_route(&[link]).unwrap());
    let (mut longest, mut arrived) = (Duration::ZERO, 0);
    let sent = |number: u64| Timestamp::from_millis(10 * number);
    for half_ms in 0..20_000u64 {
        let now = Timestamp::from_nanos(500_000 * half_ms);
        let _ = network.send(now, flood, Numbered { number: half_ms, capable: false, marked: false }, PACKET);
        if half_ms % 20 == 0 {
            let _ = network.send(now, quiet, Numbered { number: half_ms / 20, capable: false, marked: false }, PACKET);
        }
        while let Some(delivery) = network.poll(now) {
            if delivery.route == quiet {
                longest = longest.max(delivery.at.since(sent(delivery.packet.number)));
                arrived += 1;
            }
        }
    }
    assert!(network.stats(link).is_conserved());
    (longest, 1000 - arrived)
}

#[test]
fn fq_codel_spares_a_flow_what_another_does() {
    // A packet of its own takes 1 ms, and at most one of the other is under way, and one has its turn.
    let (longest, lost) = beside_a_flood(FqCoDelConfig::default());
    assert!(longest <= Duration::from_millis(3) && lost == 0, "{longest:?}, {lost} lost");
    let (longest, _) = beside_a_flood(CoDelConfig::default());
    assert!(longest > Duration::from_millis(50), "{longest:?}");
}

#[test]
fn fq_codel_keeps_its_limit_and_loses_track_of_nothing() {
    let codel = CoDelConfig { limit: QueueLimit::Packets(40), ..CoDelConfig::default() };
    let stats = send(FqCoDelConfig { codel, ..FqCoDelConfig::default() }, OVERLOAD).stats;
    assert_eq!(stats.queued_bytes_max, PACKET * 40);
    assert!(stats.overflowed.packets > 0 && stats.early.packets > 0);
    assert!(stats.is_conserved());
}
