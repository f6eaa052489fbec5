//! Behaviour of hosts, and invariants that hold whatever they do.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{Change, ChangeKind, Distribution, Live, PathRoute, Scenario, Sharing, StreamConfig, Traffic};
use fairpath_sim::{Outcome, Recorder, Simulation, View, run};
use proptest::prelude::*;

use crate::common::{Net, ms};

/// Runs and checks at every sample and at the end.
fn checked(scenario: &Scenario) -> Outcome {
    struct Check;
    impl Recorder for Check {
        fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
            assert!(view.links().all(|(_, stats)| stats.is_conserved()));
        }
    }
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run(&mut Check).unwrap();
    simulation.check().unwrap();
    simulation.outcome()
}

fn two_paths(seconds: u64, congestion: &str) -> Net {
    let mut net = Net::new(seconds, 1);
    let paths = [10, 10].map(|mbps| net.path(mbps, ms(25), QueueConfig::sojourn(ms(50))));
    net.flow("multipath", congestion, &paths);
    net
}

#[test]
fn two_paths_carry_the_sum() {
    for congestion in ["lia", "olia", "uncoupled reno", "uncoupled cubic"] {
        let outcome = checked(&two_paths(60, congestion).warm_up(10).scenario);
        let goodput = outcome.flows[0].goodput.as_mbps_f64();
        // 20 Mbit/s · 1448/1500 = 19.3
        assert!(goodput > 0.95 * 19.3, "{congestion}: {goodput}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_watching_changes_nothing() {
    struct Watch(usize);
    impl Recorder for Watch {
        fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
            self.0 += view.paths().count();
        }
    }
    let mut scenario = two_paths(20, "lia").scenario;
    for link in &mut scenario.links {
        link.config.loss = LossConfig::Random { probability: 0.001 };
    }
    let one = run(&scenario, &mut ()).unwrap();
    let mut watch = Watch(0);
    let two = run(&scenario, &mut watch).unwrap();
    assert_eq!(one, two);
    assert_eq!(watch.0, 40);
    scenario.sample_every = Duration::ZERO;
    assert_eq!(one, run(&scenario, &mut ()).unwrap());
    scenario.seed = 2;
    assert_ne!(one, run(&scenario, &mut ()).unwrap());
}

#[test]
fn a_path_that_is_cut_stops_neither_the_data_nor_itself_for_good() {
    let mut net = two_paths(60, "lia");
    let link = net.scenario.flows[0].paths[0].forward[0];
    for (at, up) in [(20, false), (30, true)] {
        net.scenario.changes.push(Change { at: Duration::from_secs(at), link, kind: ChangeKind::Up(up) });
    }
    let part = |from: u64, to: u64| {
        let mut scenario = net.scenario.clone();
        (scenario.warm_up, scenario.duration) = (Duration::from_secs(from), Duration::from_secs(to));
        checked(&scenario).flows[0].goodput.as_mbps_f64()
    };
    let (during, after) = (part(21, 30), part(45, 60));
    assert!(during > 9.0, "one link is left: {during}");
    assert!(after > 18.0, "both are back: {after}");
}

/// The mean wait of packets at a link, from `from` to `to`.
/// The rate of the link cycles through these, `each` for this long; its queue holds 3,000 packets.
fn mean_wait(congestion: &str, rates_kbps: &[u64], each: Duration, from: u64, to: u64) -> Duration {
    let mut net = Net::new(to, 1).warm_up(from);
    let path = net.path(30, ms(20), QueueConfig::packets(3_000));
    let link = path.forward[0];
    net.flow("single", congestion, &[path]);
    let times = (0..).map(|at| each * at).take_while(|at| *at < Duration::from_secs(to));
    for (at, kbps) in times.zip(rates_kbps.iter().cycle()) {
        net.scenario.changes.push(Change { at, link, kind: ChangeKind::Rate(Bitrate::from_kbps(*kbps).into()) });
    }
    checked(&net.scenario).links[0].mean_wait
}

#[test]
fn fifteen_seconds_after_the_rate_fell_bbr3_keeps_no_longer_queue_than_before() {
    for congestion in ["bbr", "bbr3"] {
        let wait = mean_wait(congestion, &[30_000, 5_000], Duration::from_secs(30), 45, 60);
        // Half of what the path takes without a queue.
        assert!(wait < ms(20), "{congestion}: {wait:?}");
    }
}

#[test]
fn what_is_finite_arrives_whole_however_much_is_lost() {
    let mut net = Net::new(600, 4);
    let lossy = LossConfig::Random { probability: 0.2 };
    let paths = [20, 60].map(|one_way| {
        let config = LinkConfig::new(Bitrate::from_mbps(5)).delay(ms(one_way)).loss(lossy);
        let (there, back) = (net.link(config.clone()), net.link(config));
        PathRoute { forward: vec![there], backward: vec![back] }
    });
    net.flow("finite", "lia", &paths).traffic = Traffic::Finite { size: ByteCount::new(1_000_000) };
    let outcome = checked(&net.scenario);
    assert_eq!((outcome.flows[0].delivered, outcome.flows[0].completions.len()), (ByteCount::new(1_000_000), 1));
}

#[test]
fn a_constant_rate_that_fits_arrives_as_it_is() {
    let mut net = two_paths(30, "olia").warm_up(5);
    net.scenario.flows[0].traffic = Traffic::Constant { rate: Bitrate::from_mbps(12) };
    let goodput = checked(&net.scenario).flows[0].goodput.as_mbps_f64();
    assert!((goodput - 12.0).abs() < 0.05, "{goodput}");
}

#[test]
fn frames_come_in_time_where_there_is_room_for_them() {
    let mut net = two_paths(30, "olia").warm_up(5);
    let rate = Bitrate::from_mbps(6);
    net.scenario.flows[0].traffic =
        Traffic::Media { rate, frames_per_second: 30, key_frame_every: 60, key_frame_ratio: 4.0 };
    let outcome = checked(&net.scenario);
    let delays = &outcome.flows[0].frame_delays;
    assert!(delays.len().abs_diff(750) <= 2, "{}", delays.len());
    let mut delays = delays.clone();
    delays.sort();
    // A frame of 24 kB takes 10 ms at 20 Mbit/s, and 25 ms to get there. A key frame of 95 kB is
    // four times the size to which the windows have grown, and a window that is not used does not
    // grow. Hence it takes four round trips of 50 ms, and the queue it makes.
    assert!(delays[delays.len() / 2] < ms(45), "{:?}", delays[delays.len() / 2]);
    assert!(delays[delays.len() - 1] < ms(300), "{:?}", delays[delays.len() - 1]);
}

#[test]
fn short_transfers_end_and_leave_no_connections_behind() {
    let mut net = Net::new(60, 1);
    let path = net.path(100, ms(10), QueueConfig::sojourn(ms(50)));
    net.flow("short", "reno", &[path]).traffic =
        Traffic::ShortFlows { size: ByteCount::new(70_000), mean_interval: ms(50) };
    struct MostOpen(usize);
    impl Recorder for MostOpen {
        fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
            self.0 = self.0.max(view.paths().count());
        }
    }
    let mut open = MostOpen(0);
    let outcome = run(&net.scenario, &mut open).unwrap();
    let flow = &outcome.flows[0];
    assert!((1000..1400).contains(&flow.begun), "{}", flow.begun);
    assert!(flow.begun - flow.completions.len() as u64 <= 5);
    // 49 packets: ten, twenty, and the rest: three round trips of 20 ms less one way, and some ms
    // of transmission.
    let mean = flow.completions.iter().sum::<Duration>() / flow.completions.len() as u32;
    assert!(mean > ms(50) && mean < ms(75), "{mean:?}");
    assert!(open.0 <= 10, "{}", open.0);
}

#[test]
fn on_and_off_sends_in_its_share_of_the_time() {
    let mut net = Net::new(100, 1);
    let path = net.path(10, ms(10), QueueConfig::sojourn(ms(50)));
    let (on, off) = (Duration::from_secs(3), Duration::from_secs(2));
    net.flow("talk", "cubic", &[path]).traffic = Traffic::OnOff { on, off, distribution: Distribution::Fixed };
    let goodput = checked(&net.scenario).flows[0].goodput.as_mbps_f64();
    // 0.6 · 9.65 = 5.79, less the first round trips of each burst, and at most the 50 ms of the queue
    // more: · 3.05/3 = 5.89.
    assert!((5.4..5.89).contains(&goodput), "{goodput}");
}

#[test]
fn a_small_receive_buffer_costs_less_with_reinjection() {
    let goodput = |reinjection| {
        let mut net = Net::new(60, 1).warm_up(10);
        let paths =
            [(20, 10), (20, 100)].map(|(mbps, one_way)| net.path(mbps, ms(one_way), QueueConfig::sojourn(ms(50))));
        let flow = net.flow("multipath", "lia", &paths);
        flow.transport.receive_buffer = Some(ByteCount::new(200_000));
        flow.transport.reinjection = reinjection;
        checked(&net.scenario).flows[0].goodput.as_mbps_f64()
    };
    let (without, with) = (goodput(false), goodput(true));
    assert!(with > 1.1 * without, "{without} and {with}");
}

#[test]
fn what_is_about_to_arrive_is_not_sent_again() {
    // The buffer is less than either queue. A path that fills it keeps new data off the other path,
    // which has room.
    let mut net = Net::new(60, 1).warm_up(20);
    let paths = [20, 20].map(|mbps| net.path(mbps, ms(15), QueueConfig::sojourn(ms(360))));
    let flow = net.flow("multipath", "cubic", &paths);
    flow.engine.scheduler = "arrival".into();
    (flow.transport.send_buffer, flow.transport.receive_buffer) =
        (Some(ByteCount::new(500_000)), Some(ByteCount::new(500_000)));
    flow.transport.reinjection = true;
    let outcome = checked(&net.scenario);
    let carried: f64 = [0, 2].map(|link| outcome.links[link].rate.as_mbps_f64()).iter().sum();
    let goodput = outcome.flows[0].goodput.as_mbps_f64();
    assert!(goodput > 37.0, "{goodput} Mbit/s of {carried}");
}

#[test]
fn delayed_acknowledgements_halve_their_number_and_keep_the_rate() {
    let run = |ack_every| {
        let mut net = Net::new(60, 1).warm_up(10);
        let path = net.path(10, ms(20), QueueConfig::sojourn(ms(50)));
        net.flow("one", "reno", &[path]).transport.ack_every = ack_every;
        let outcome = checked(&net.scenario);
        (outcome.flows[0].goodput.as_mbps_f64(), outcome.links[1].offered)
    };
    let ((every, many), (second, few)) = (run(1), run(2));
    assert!((many as f64 / few as f64 - 2.0).abs() < 0.05, "{many} and {few}");
    assert!((second / every - 1.0).abs() < 0.02, "{every} and {second}");
}

/// [RFC8289] CoDel marks packets that can carry a mark instead of dropping them: the flow slows
/// down and nothing is lost.
#[test]
fn marks_slow_a_flow_down_as_drops_do_and_nothing_is_lost() {
    let run = |ecn| {
        let mut net = Net::new(60, 1).warm_up(10);
        let codel = QueueConfig::CoDel(fairpath_net::CoDelConfig::default());
        let path = net.path(10, ms(20), codel);
        net.flow("one", "reno", &[path]).transport.ecn = ecn;
        let outcome = checked(&net.scenario);
        let path = outcome.flows[0].paths[0].count;
        (outcome.flows[0].goodput.as_mbps_f64(), path.lost, path.episodes)
    };
    let ((dropped_rate, dropped, _), (marked_rate, lost, episodes)) = (run(false), run(true));
    assert!(dropped > 10 && lost == 0 && episodes > 10, "{dropped} dropped; {lost} lost, {episodes} episodes");
    assert!((marked_rate / dropped_rate - 1.0).abs() < 0.05, "{marked_rate} and {dropped_rate}");
}

fn any_traffic() -> impl Strategy<Value = Traffic> {
    prop_oneof![
        Just(Traffic::Bulk),
        (1_u64..300_000).prop_map(|size| Traffic::Finite { size: ByteCount::new(size) }),
        (1_u64..100_000, 10_u64..500).prop_map(|(size, interval)| Traffic::ShortFlows {
            size: ByteCount::new(size),
            mean_interval: ms(interval)
        }),
        (10_u64..2000, 10_u64..2000, any::<bool>()).prop_map(|(on, off, fixed)| Traffic::OnOff {
            on: ms(on),
            off: ms(off),
            distribution: if fixed { Distribution::Fixed } else { Distribution::Exponential }
        }),
        (10_u64..20_000).prop_map(|kbps| Traffic::Constant { rate: Bitrate::from_kbps(kbps) }),
        (10_u64..20_000).prop_map(|kbps| Traffic::Unresponsive { rate: Bitrate::from_kbps(kbps) }),
        (100_u64..8_000, 1_u32..60, 1_u32..100).prop_map(|(kbps, fps, every)| Traffic::Media {
            rate: Bitrate::from_kbps(kbps),
            frames_per_second: fps,
            key_frame_every: every,
            key_frame_ratio: 3.0
        }),
        (prop::option::of(10_u64..20_000), 16_u64..3_000, 10_u64..1_000, any::<bool>(), 0_usize..3).prop_map(
            |(kbps, packet, deadline, repair, sharing)| Traffic::Live(Live {
                rate: kbps.map(Bitrate::from_kbps),
                packet: ByteCount::new(packet),
                stream: StreamConfig { deadline: ms(deadline), repair, ..StreamConfig::default() },
                sharing: [Sharing::Best, Sharing::Coupled, Sharing::Equal][sharing],
                ..Live::default()
            })
        ),
    ]
}

prop_compose! {
    fn any_scenario()(
        links in prop::collection::vec((1_u64..50, 0_u64..80, 1_usize..200, 0.0..0.1_f64), 1..5),
        flows in prop::collection::vec(
            (prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4), any_traffic(),
             prop::sample::select(vec!["lia", "olia", "reno", "cubic", "uncoupled lia"]),
             any::<bool>(), 1_u32..4, prop::option::of(2_000_u64..200_000), 0_u64..3_000),
            1..5,
        ),
        cut in prop::option::of((any::<prop::sample::Index>(), 500_u64..3_000)),
        seed: u64,
    ) -> Scenario {
        let mut net = Net::new(4, seed);
        net.scenario.sample_every = ms(100);
        let links: Vec<_> = links.into_iter().map(|(mbps, delay, queue, probability)| {
            let config = LinkConfig::new(Bitrate::from_mbps(mbps)).delay(ms(delay)).queue(QueueConfig::packets(queue));
            net.link(config.loss(LossConfig::Random { probability }))
        }).collect();
        for (paths, traffic, congestion, reinjection, ack_every, buffer, start) in flows {
            let paths: Vec<_> = paths.iter().map(|(there, back)| PathRoute {
                forward: vec![*there.get(&links)],
                backward: vec![*back.get(&links)],
            }).collect();
            let flow = net.flow("flow", congestion, &paths);
            flow.traffic = traffic;
            flow.start = ms(start);
            flow.transport.reinjection = reinjection;
            flow.transport.ack_every = ack_every;
            flow.transport.receive_buffer = buffer.map(ByteCount::new);
        }
        if let Some((link, at)) = cut {
            let link = *link.get(&links);
            net.scenario.changes = vec![
                Change { at: ms(at), link, kind: ChangeKind::Up(false) },
                Change { at: ms(at + 500), link, kind: ChangeKind::Up(true) },
            ];
        }
        net.scenario
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn packets_are_conserved_and_data_is_delivered_once_in_any_scenario(scenario in any_scenario()) {
        let one = checked(&scenario);
        for flow in &one.flows {
            let arrived: u64 = flow.paths.iter().map(|path| path.count.delivered.get()).sum();
            prop_assert!(flow.delivered.get() <= arrived);
        }
        prop_assert_eq!(one, checked(&scenario));
    }
}
