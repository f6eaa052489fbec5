//! Coupling that follows what is detected.

use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig, Rate, RateTable, RateTableEnd};
use fairpath_scenario::{Distribution, PathRoute, Traffic};
use fairpath_sim::{FlowIndex, Recorder, View, run};

use crate::common::{Net, ms};
use crate::rivals::beside;

/// How long the two paths of the first flow are in one group, in parts of the run.
#[derive(Default)]
struct Together {
    samples: u32,
    together: u32,
}

impl Recorder for Together {
    fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
        let Some(groups) = view.groups(FlowIndex(0)) else { return };
        self.samples += 1;
        self.together += u32::from(groups.together(PathId::new(0), PathId::new(1)));
    }
}

#[test]
fn automatic_coupling_couples_paths_of_one_bottleneck_and_no_others() {
    let coupled = |shared: bool| {
        let mut net = Net::new(100, 1);
        net.scenario.sample_every = ms(100);
        let paths = if shared {
            let bottleneck = net.path(20, ms(5), QueueConfig::sojourn(ms(60)));
            [10, 20].map(|one_way| {
                let there = net.link(LinkConfig::pure_delay(ms(one_way)));
                let back = net.link(LinkConfig::pure_delay(ms(one_way)));
                let mut path = bottleneck.clone();
                path.forward.insert(0, there);
                path.backward.push(back);
                path
            })
        } else {
            [(10, 15), (10, 25)].map(|(mbps, one_way)| net.path(mbps, ms(one_way), QueueConfig::sojourn(ms(60))))
        };
        net.flow("multipath", "lia", &paths).engine.coupling = Coupling::Auto;
        for path in &paths {
            net.flow("single", "reno", std::slice::from_ref(path)).start_jitter = ms(1000);
        }
        let mut together = Together::default();
        run(&net.scenario, &mut together).unwrap();
        f64::from(together.together) / f64::from(together.samples)
    };
    let (shared, separate) = (coupled(true), coupled(false));
    assert!(shared > 0.7, "coupled for {shared:.2} of the time on one bottleneck");
    assert!(separate < 0.1, "coupled for {separate:.2} of the time on two");
}

/// An application sends a fifth of a link over two paths, beside transfers of 100 kB that come to a third of it; the
/// connection is paced as those over real networks are. Its packets leave one by one, which must not be taken for a path
/// that carries all it may.
#[test]
fn paths_of_an_application_that_sends_little_are_found_where_they_share() {
    let coupled = |seed: u64| {
        let mut net = Net::new(120, seed);
        net.scenario.sample_every = ms(100);
        let bottleneck = net.path(12, ms(5), QueueConfig::sojourn(ms(100)));
        let paths = [8, 14].map(|one_way| {
            let there = net.link(LinkConfig::pure_delay(ms(one_way)));
            let mut path = bottleneck.clone();
            path.forward.insert(0, there);
            path
        });
        let engine = EngineConfig { scheduler: "round_robin".into(), ..EngineConfig::live() };
        net.flow("session", "reno", &paths).as_live(engine).traffic =
            Traffic::Constant { rate: Bitrate::from_bps(2_400_000) };
        let transfers = Traffic::ShortFlows { size: ByteCount::new(100_000), mean_interval: ms(200) };
        net.flow("others", "reno", std::slice::from_ref(&bottleneck)).traffic = transfers;
        let mut together = Together::default();
        run(&net.scenario, &mut together).unwrap();
        f64::from(together.together) / f64::from(together.samples)
    };
    let parts: Vec<f64> = (1..=4).map(coupled).collect();
    assert!(parts.iter().all(|part| *part > 0.4), "coupled for {parts:.2?} of the time");
}

/// Nothing but the flow is on the two links, and they are alike: without disturbance their queues fill
/// and drain in step for ever.
#[test]
fn two_links_alike_in_all_respects_are_found_to_be_two() {
    for (mbps, one_way, queue) in [(20, 10, 20), (20, 10, 60), (5, 30, 100), (50, 5, 50)] {
        let mut net = Net::new(60, 1);
        net.scenario.sample_every = ms(100);
        let paths = [(); 2].map(|()| net.path(mbps, ms(one_way), QueueConfig::sojourn(ms(queue))));
        let engine = &mut net.flow("multipath", "olia", &paths).engine;
        (engine.coupling, engine.dips) = (Coupling::Auto, true);
        let mut together = Together::default();
        let outcome = run(&net.scenario, &mut together).unwrap();
        let part = f64::from(together.together) / f64::from(together.samples);
        // Without dips 0.89 to 0.97; with them 0.00 to 0.03.
        assert!(part < 0.1, "{mbps} Mbit/s, queue of {queue} ms: coupled for {part:.2} of the time");
        let possible = 2.0 * mbps as f64 * 1448.0 / 1500.0;
        assert!(outcome.flows[0].goodput.as_mbps_f64() > 0.97 * possible, "{}", outcome.flows[0].goodput);
    }
}

/// For how long the partition of the first flow is the true one, in parts of the run.
struct Right {
    truth: Vec<Vec<PathId>>,
    samples: u32,
    right: u32,
}

impl Recorder for Right {
    fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
        self.samples += 1;
        self.right += u32::from(view.groups(FlowIndex(0)).unwrap().members() == self.truth);
    }
}

/// Four paths over two bottlenecks of 20 Mbit/s, each shared with two single-path flows.
/// `over` is the bottleneck of each path. The answer is the share of time for which the partition
/// is right, and the flow's goodput on each bottleneck over the mean of the others there. Without
/// jitter the drops of a drop-tail queue would fall into step with some of the round-trip times,
/// and a single flow might get five times another.
fn four_paths(over: [usize; 4]) -> (f64, [f64; 2]) {
    let mut net = Net::new(120, 1).warm_up(20);
    net.scenario.sample_every = ms(100);
    let bottlenecks = [ms(5), ms(12)].map(|one_way| net.path(20, one_way, QueueConfig::sojourn(ms(60))));
    let paths: Vec<PathRoute> = over
        .iter()
        .zip([10, 20, 15, 25])
        .map(|(bottleneck, one_way)| {
            let there = net.link(LinkConfig::pure_delay(ms(one_way)).jitter(ms(2)));
            let mut path = bottlenecks[*bottleneck].clone();
            path.forward.insert(0, there);
            path
        })
        .collect();
    let engine = &mut net.flow("multipath", "lia", &paths).engine;
    (engine.coupling, engine.dips) = (Coupling::Auto, true);
    for (bottleneck, class) in bottlenecks.iter().zip(["first", "second"]) {
        for one_way in [10, 20] {
            let there = net.link(LinkConfig::pure_delay(ms(one_way)).jitter(ms(2)));
            let mut path = bottleneck.clone();
            path.forward.insert(0, there);
            net.flow(class, "reno", &[path]).start_jitter = ms(1000);
        }
    }
    let members = |bottleneck| (0..4).filter(|at| over[*at as usize] == bottleneck).map(PathId::new).collect();
    let mut right = Right { truth: vec![members(0), members(1)], samples: 0, right: 0 };
    let outcome = run(&net.scenario, &mut right).unwrap();
    let took = |bottleneck: usize, class| {
        let paths = outcome.flows[0].paths.iter().zip(over).filter(|(_, over)| *over == bottleneck);
        let bytes: f64 = paths.map(|(path, _)| path.count.delivered.as_f64()).sum();
        let others: f64 = outcome.class(class).map(|flow| flow.paths[0].count.delivered.as_f64()).sum();
        bytes / (others / 2.0)
    };
    (f64::from(right.right) / f64::from(right.samples), [took(0, "first"), took(1, "second")])
}

#[test]
fn four_paths_are_two_groups_each_as_fair_as_one_flow() {
    for over in [[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 1]] {
        let (right, shares) = four_paths(over);
        // Uncoupled it takes as many times a flow's share as it has paths there. Five seeds of each
        // gave 0.95 to 0.98 of the time, and shares of 0.88 to 1.40.
        assert!(right > 0.9, "{over:?}: right for {right:.2} of the time");
        assert!(shares.iter().all(|share| (0.75..1.5).contains(share)), "{over:?}: takes {shares:?}");
    }
}

/// For how long both paths of a flow are one group, in parts of the run: on two links that are alike,
/// or on one, with a single flow besides.
fn coupled_for(traffic: Traffic, shared: bool) -> f64 {
    let mut net = Net::new(120, 1);
    net.scenario.sample_every = ms(100);
    let link = |net: &mut Net| net.path(20, ms(20), QueueConfig::sojourn(ms(100)));
    let paths = if shared {
        let bottleneck = link(&mut net);
        [bottleneck.clone(), bottleneck]
    } else {
        [link(&mut net), link(&mut net)]
    };
    let flow = net.flow("multipath", "lia", &paths);
    flow.traffic = traffic;
    (flow.engine.coupling, flow.engine.dips) = (Coupling::Auto, true);
    if shared {
        net.flow("single", "reno", &paths[..1]).start_jitter = ms(1000);
    }
    let mut together = Together::default();
    run(&net.scenario, &mut together).unwrap();
    f64::from(together.together) / f64::from(together.samples)
}

/// All queues fall when an application pauses, and fill when it goes on.
#[test]
fn an_application_that_pauses_does_not_make_two_links_one() {
    let paused = |on, off| Traffic::OnOff { on: ms(on), off: ms(off), distribution: Distribution::Fixed };
    let media = |mbps| Traffic::Media {
        rate: Bitrate::from_mbps(mbps),
        frames_per_second: 30,
        key_frame_every: 60,
        key_frame_ratio: 5.0,
    };
    for traffic in [paused(1_000, 300), paused(3_000, 200), paused(440, 60), media(38), media(30)] {
        let (separate, shared) = (coupled_for(traffic, false), coupled_for(traffic, true));
        // If all delays were taken, two links would be coupled for 0.45 to 0.85 of the time with
        // pauses, and for 0.68 with pictures of 38 Mbit/s. If only delays after a long silence of
        // the path were left out, it would be 0.15 with pauses.
        assert!(separate < 0.02, "{traffic:?}: two links are one for {separate:.2} of the time");
        // Where there is a pause every half second, half of all evidence is left out.
        let found = if traffic == paused(440, 60) { 0.3 } else { 0.9 };
        assert!(shared > found, "{traffic:?}: one link is one for {shared:.2} of the time");
    }
}

/// A link into the network that stands still for 20 to 80 ms, every 2 s on average, as a busy host does.
fn busy_host(seconds: f64, seed: u64) -> LinkConfig {
    let (mut state, mut at) = (seed, 0.0);
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let mut entries = vec![(Timestamp::ZERO, Bitrate::from_mbps(1000))];
    while at < seconds {
        at += 1.0 + 2.0 * draw();
        let until = at + 0.02 + 0.06 * draw();
        let time = |seconds: f64| Timestamp::ZERO + core::time::Duration::from_secs_f64(seconds);
        entries.extend([(time(at), Bitrate::ZERO), (time(until), Bitrate::from_mbps(1000))]);
        at = until;
    }
    let table = RateTable::new(entries, RateTableEnd::Hold).expect("times rise");
    LinkConfig::new(Rate::from(table)).queue(QueueConfig::packets(10_000))
}

/// While a host stands still, all queues of its paths fall; then it sends all at once, and they overflow
/// together.
#[test]
fn a_host_that_stands_still_does_not_make_two_links_one() {
    let coupled = |shared: bool, seed: u64| {
        let mut net = Net::new(60, seed);
        net.scenario.sample_every = ms(100);
        let host = net.link(busy_host(60.0, seed));
        let link = |net: &mut Net| net.path(20, ms(20), QueueConfig::sojourn(ms(60)));
        let first = link(&mut net);
        let second = if shared { first.clone() } else { link(&mut net) };
        let others = [first, second];
        let paths = others.clone().map(|mut path| {
            path.forward.insert(0, host);
            path
        });
        let engine = &mut net.flow("multipath", "lia", &paths).engine;
        (engine.coupling, engine.dips) = (Coupling::Auto, true);
        for path in &others[..if shared { 1 } else { 2 }] {
            net.flow("single", "reno", core::slice::from_ref(path)).start_jitter = ms(1000);
        }
        let mut together = Together::default();
        run(&net.scenario, &mut together).unwrap();
        f64::from(together.together) / f64::from(together.samples)
    };
    let seeds = 1..=12;
    let mean = |shared| seeds.clone().map(|seed| coupled(shared, seed)).sum::<f64>() / seeds.clone().count() as f64;
    let (separate, shared) = (mean(false), mean(true));
    println!("separate {separate:.3}, shared {shared:.3}");
    // If the time after silences counted, 0.036. What is left are links that go on in step for a while.
    assert!(separate < 0.03, "two links are one for {separate:.2} of the time");
    assert!(shared > 0.8, "one link is one for {shared:.2} of the time");
}

/// A constant rate moves no queue: what its delays say, the network says. Short transfers of others, 30 % of a
/// link, are all that fills the queues.
#[test]
fn one_bottleneck_is_found_by_a_session_that_is_far_from_filling_it() {
    let coupled = |shared: bool| {
        let mut net = Net::new(60, 1);
        net.scenario.sample_every = ms(100);
        let link = |net: &mut Net| net.path(20, ms(20), QueueConfig::sojourn(ms(100)));
        let first = link(&mut net);
        let second = if shared { first.clone() } else { link(&mut net) };
        let paths = [first, second];
        let flow = net.flow("multipath", "lia", &paths);
        flow.traffic = Traffic::Constant { rate: Bitrate::from_mbps(4) };
        flow.engine.scheduler = "round_robin".into();
        (flow.engine.coupling, flow.engine.dips) = (Coupling::Auto, true);
        for path in &paths {
            // 800 kbit in 133 ms on average is 6 Mbit/s, on the shared link from each of two.
            let mean_interval = ms(if shared { 267 } else { 133 });
            let others = net.flow("short", "reno", core::slice::from_ref(path));
            others.traffic = Traffic::ShortFlows { size: ByteCount::new(100_000), mean_interval };
        }
        let mut together = Together::default();
        run(&net.scenario, &mut together).unwrap();
        f64::from(together.together) / f64::from(together.samples)
    };
    let (shared, separate) = (coupled(true), coupled(false));
    assert!(shared > 0.6, "one link is one for {shared:.2} of the time");
    assert!(separate < 0.05, "two links are one for {separate:.2} of the time");
}

/// A sender that is paced and hardly ever fills its window is limited by the network all the same.
#[test]
fn one_bottleneck_is_found_whatever_controls_the_congestion() {
    for congestion in ["lia", "wvegas", "daimd", "bbr3", "coupled_bbr", "coupled_bbr3"] {
        let mut net = Net::new(60, 1);
        net.scenario.sample_every = ms(100);
        let bottleneck = net.path(20, ms(20), QueueConfig::sojourn(ms(100)));
        let paths = [bottleneck.clone(), bottleneck];
        let engine = &mut net.flow("multipath", congestion, &paths).engine;
        (engine.coupling, engine.dips) = (Coupling::Auto, true);
        net.flow("single", "cubic", &paths[..1]).start_jitter = ms(1000);
        let mut together = Together::default();
        run(&net.scenario, &mut together).unwrap();
        let part = f64::from(together.together) / f64::from(together.samples);
        // Samples after silences of both paths are left out, at most half of them: this delays the
        // verdict by seconds.
        assert!(part > 0.85, "{congestion}: one for {part:.2} of the time");
    }
}

#[test]
fn paths_that_are_coupled_as_one_bbr3_flow_take_what_one_takes() {
    // Half of what four paths have beside a flow of their kind is less than they need to keep their data flowing: the
    // search for the least round-trip time has to end all the same.
    for (rival, queue, paths) in
        [("reno", 100, 2), ("cubic", 50, 2), ("cubic", 200, 2), ("bbr3", 50, 2), ("bbr3", 1_000, 2), ("bbr3", 20, 4)]
    {
        let queue = ms(queue);
        let one = beside(rival, queue, "bbr3", 1, 90);
        let coupled = beside(rival, queue, "coupled_bbr3", paths, 90) / one;
        println!("{paths} paths beside {rival}, {queue:?} of queue: {coupled:.2} of one flow's {one:.2}");
        assert!((0.8..1.25).contains(&coupled), "{paths} paths beside {rival}, {queue:?} of queue: {coupled:.2}");
    }
}

/// Links like those of the demo, whose queues oscillate several times between two dips. Two thirds
/// and a quarter of such runs coupled them, when the evidence of a dip counted as much as all else.
#[test]
fn two_links_alike_are_not_one_for_as_long_as_they_are_in_step() {
    for (queue_ms, congestion) in [(12, "lia"), (20, "coupled_cubic")] {
        for seed in 1..=6 {
            let mut net = Net::new(40, seed);
            net.scenario.sample_every = ms(100);
            let paths = [(); 2].map(|()| net.path(20, ms(queue_ms) / 2, QueueConfig::sojourn(ms(queue_ms))));
            let flow = net.flow("multipath", congestion, &paths);
            flow.as_live(EngineConfig { congestion: congestion.into(), ..EngineConfig::live() });
            flow.start_jitter = ms(1000);
            let mut together = Together::default();
            run(&net.scenario, &mut together).unwrap();
            assert_eq!(together.together, 0, "{congestion}, {queue_ms} ms, seed {seed}: of {}", together.samples);
        }
    }
}
