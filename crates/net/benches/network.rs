//! The cost of moving packets: over one link, by queueing discipline and impairments, and through
//! networks of the two shapes that simulations have. An iteration is one packet; divide by the hops in the
//! name for the cost of a hop. The goals: 40 ns a hop in the dumbbell, 70 ns in the fat tree.

use core::time::Duration;
use std::hint::black_box;

use criterion::Criterion;
use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    CoDelConfig, Impairments, Jitter, JitterDistribution, Link, LinkConfig, LinkId, Network, QueueConfig, QueueLimit,
    RedConfig, Reorder, RouteId, Streams,
};

const PACKET: ByteCount = ByteCount::new(1_500);

fn link(mbps: u64, delay: Duration) -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(mbps)).delay(delay).queue(QueueConfig::unlimited())
}

/// Keeps a fixed number of packets on each route: where one arrives, the next is sent.
struct ClosedLoop {
    network: Network<u64>,
    now: Timestamp,
}

impl ClosedLoop {
    fn new(mut network: Network<u64>, routes: &[RouteId], window: u64) -> Self {
        for number in 0..window {
            for route in routes {
                let _ = network.send(Timestamp::ZERO, *route, number, PACKET);
            }
        }
        Self { network, now: Timestamp::ZERO }
    }

    /// Moves time on to the next arrival.
    fn deliver(&mut self) -> u64 {
        loop {
            if let Some(delivery) = self.network.poll(self.now) {
                let _ = self.network.send(self.now, delivery.route, delivery.packet + 1, delivery.size);
                return delivery.packet;
            }
            self.now = self.network.next_event().expect("the loop is closed");
        }
    }
}

/// 30 senders, each over an access link of its own, one bottleneck, 30 receivers likewise.
fn dumbbell() -> ClosedLoop {
    let mut network = Network::new(1);
    let access = link(1_000, Duration::from_millis(1));
    let bottleneck = network.add_link("bottleneck", &link(40, Duration::from_millis(20))).expect("a new name");
    let routes: Vec<RouteId> = (0..30)
        .map(|number| {
            let enter = network.add_link(&format!("in {number}"), &access).expect("a new name");
            let leave = network.add_link(&format!("out {number}"), &access).expect("a new name");
            network.add_route(&[enter, bottleneck, leave]).expect("links of this network")
        })
        .collect();
    // 330 packets: the pipe holds about 80, the rest waits.
    ClosedLoop::new(network, &routes, 11)
}

/// A fat tree of 8-port switches: 128 hosts, 768 links; each host sends to the one half way round,
/// over 8 paths by way of different cores.
fn fat_tree() -> ClosedLoop {
    let mut network = Network::new(1);
    let config = link(100, Duration::from_micros(100));
    let mut level = |name: &str| -> Vec<LinkId> {
        (0..128).map(|number| network.add_link(&format!("{name} {number}"), &config).expect("a new name")).collect()
    };
    // 32 edge switches of 4 hosts, in 8 pods of 4; 4 aggregation switches in each pod.
    let [host_up, edge_up, core_up, core_down, edge_down, host_down] =
        ["host up", "edge up", "core up", "core down", "edge down", "host down"].map(&mut level);
    let mut routes = Vec::new();
    for host in 0..128 {
        let peer = (host + 64 + 5 * (host % 7)) % 128;
        for subflow in 0..8 {
            let (aggregation, core) = (subflow % 4, (host + subflow / 4) % 4);
            let pod_link = |host: usize, port: usize| host / 16 * 16 + aggregation * 4 + port;
            let chain = [
                host_up[host],
                edge_up[host / 4 * 4 + aggregation],
                core_up[pod_link(host, core)],
                core_down[pod_link(peer, core)],
                edge_down[peer / 4 * 4 + aggregation],
                host_down[peer],
            ];
            routes.push(network.add_route(&chain).expect("links of this network"));
        }
    }
    ClosedLoop::new(network, &routes, 4)
}

/// A packet into a link and, mostly, one out of it: 2 % more come than fit, so that the queue is as
/// long as its discipline lets it become.
fn links(criterion: &mut Criterion) {
    let red = RedConfig::gentle(QueueLimit::Packets(20), QueueLimit::Packets(60), 0.1);
    let impairments = Impairments {
        reorder: Some(Reorder { share: 0.05, by: Duration::from_millis(20) }),
        duplicate: 0.01,
        corrupt: 0.001,
    };
    let jitter = Jitter::new(JitterDistribution::Normal, Duration::from_millis(3)).overtaking();
    let plain = || LinkConfig::new(Bitrate::from_mbps(12)).delay(Duration::from_millis(10));
    let configs = [
        ("drop-tail", plain().queue(QueueConfig::packets(100))),
        ("RED", plain().queue(red)),
        ("RED as in the testbed", plain().queue(RedConfig::olia_testbed(PACKET))),
        ("CoDel", plain().queue(CoDelConfig::default())),
        ("drop-tail and impaired", plain().queue(QueueConfig::packets(100)).impairments(impairments).jitter(jitter)),
    ];
    let mut group = criterion.benchmark_group("link");
    for (name, config) in configs {
        let mut link = Link::<u64>::new("link", &config, &Streams::new(1));
        let mut now = Timestamp::ZERO;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                now = now + Duration::from_micros(980);
                let _ = black_box(link.offer(now, 7, PACKET));
                while let Some(delivered) = link.poll(now) {
                    black_box(delivered);
                }
            });
        });
    }
    group.finish();
}

fn networks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("network");
    for (name, mut closed_loop) in
        [("dumbbell, 61 links, 3 hops", dumbbell()), ("fat tree, 768 links, 6 hops", fat_tree())]
    {
        // Past the start, when everything is sent at once.
        (0..100_000).for_each(|_| _ = closed_loop.deliver());
        group.bench_function(name, |bencher| bencher.iter(|| black_box(closed_loop.deliver())));
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    links(&mut criterion);
    networks(&mut criterion);
    criterion.final_summary();
}
