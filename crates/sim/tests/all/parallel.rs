//! One run over several cores: the same bytes for any number of threads, and the same as one core gives where nothing
//! comes to one place at one instant.

use core::fmt::Write as _;
use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};
use fairpath_net::{
    Filter, GilbertElliott, Impairments, Jitter, JitterDistribution, LinkConfig, LossConfig, QueueConfig, Rate, Reorder,
};
use fairpath_scenario::{Change, ChangeKind, PathRoute, Scenario, ScenarioFile, Traffic};
use fairpath_sim::{FlowIndex, Parallel, Recorder, SimError, Simulation, View};
use proptest::prelude::*;

use crate::common::{Net, ms};

/// All that a recorder is told, in words.
#[derive(Default, PartialEq)]
struct Told(String);

impl Recorder for Told {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        writeln!(self.0, "{now} sample").unwrap();
        for (flow, path) in view.paths() {
            writeln!(self.0, " {flow:?} {path:?}").unwrap();
        }
        for (link, stats) in view.links() {
            writeln!(self.0, " {} {stats:?}", link.name).unwrap();
        }
    }
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, path: PathId, rtt: Duration) {
        writeln!(self.0, "{now} {flow:?} {path} {rtt:?}").unwrap();
    }
    fn on_congestion(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        writeln!(self.0, "{now} {flow:?} {path} congestion").unwrap();
    }
    fn on_lost(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        writeln!(self.0, "{now} {flow:?} {path} lost").unwrap();
    }
    fn on_completion(&mut self, now: Timestamp, flow: FlowIndex, took: Duration) {
        writeln!(self.0, "{now} {flow:?} completion {took:?}").unwrap();
    }
    fn on_played(&mut self, now: Timestamp, flow: FlowIndex, took: Duration) {
        writeln!(self.0, "{now} {flow:?} played {took:?}").unwrap();
    }
}

/// Everything that a run says, of itself and to a recorder.
fn over(threads: usize, scenario: &Scenario) -> String {
    let mut told = Told::default();
    let mut run = Parallel::new(scenario, threads).unwrap();
    run.run(&mut told).unwrap();
    run.check().unwrap();
    assert!(run.threads() <= threads.max(1));
    told.0 + &format!("{:#?} {}", run.outcome(), run.events())
}

fn over_one_core(scenario: &Scenario) -> Simulation {
    let mut run = Simulation::new(scenario).unwrap();
    run.run(&mut ()).unwrap();
    run
}

/// The first line in which two texts differ.
fn difference<'a>(one: &'a str, other: &'a str) -> Option<(&'a str, &'a str)> {
    one.lines().zip(other.lines()).find(|(one, other)| one != other)
}

fn expand(text: &str) -> Scenario {
    ScenarioFile::parse(text, "test").unwrap().expand(None).unwrap()
}

/// A small data centre, where all links are alike and much comes at one instant.
fn data_centre() -> Scenario {
    expand(
        r#"
        duration = "250ms"
        warm_up = "100ms"
        sample_every = "30ms"
        [topology.fat_tree]
        k = 4
        link = { rate = "100Mbit/s", delay = "100us", queue = "20 packets" }
        [[flow]]
        name = "long"
        matrix = "permutation"
        share = "1/2"
        subflows = 4
        congestion = "olia"
        [[flow]]
        name = "short"
        matrix = "permutation"
        traffic = { short_flows = { size = "20kB", mean_interval = "10ms" } }
        congestion = "reno"
        "#,
    )
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let scenario = data_centre();
    let one = over(1, &scenario);
    assert!(one.contains("lost") && one.contains("completion"), "the network is too idle to show anything");
    for threads in [2, 3, 1_000] {
        assert_eq!(difference(&one, &over(threads, &scenario)), None, "{threads} threads");
    }
}

#[test]
fn it_does_not_matter_where_a_run_is_interrupted() {
    let scenario = data_centre();
    let whole = over(2, &scenario);
    let mut told = Told::default();
    let mut run = Parallel::new(&scenario, 2).unwrap();
    for millis in (1..=250).filter(|millis| millis % 7 == 0 || *millis == 250) {
        run.run_until(Timestamp::from_millis(millis), &mut told).unwrap();
        assert_eq!(run.now(), Timestamp::from_millis(millis));
    }
    let interrupted = told.0 + &format!("{:#?} {}", run.outcome(), run.events());
    assert_eq!(difference(&whole, &interrupted), None);
}

#[test]
fn a_recorder_changes_nothing() {
    let scenario = data_centre();
    let mut run = Parallel::new(&scenario, 2).unwrap();
    run.run(&mut ()).unwrap();
    let mut watched = Parallel::new(&scenario, 2).unwrap();
    watched.run(&mut Told::default()).unwrap();
    assert_eq!(run.outcome(), watched.outcome());
}

#[test]
fn where_nothing_comes_at_one_instant_one_core_gives_the_same() {
    // Access links of odd rates and delays: no two packets reach the bottleneck at one nanosecond.
    let mut net = Net::new(20, 3).warm_up(2);
    let bottleneck = net.link(
        LinkConfig::new(Bitrate::from_mbps(17)).delay(Duration::from_nanos(9_123_457)).queue(QueueConfig::packets(60)),
    );
    let back = net.link(LinkConfig::new(Bitrate::from_mbps(23)).delay(Duration::from_nanos(8_765_431)));
    for flow in 0..5_u64 {
        let mut access = |salt: u64| {
            let delay = Duration::from_nanos(1_000_003 + 97 * salt + 13_577 * flow);
            net.link(LinkConfig::new(Bitrate::from_bps(90_000_017 + 1_003 * flow + salt)).delay(delay))
        };
        let paths: Vec<PathRoute> = (0..2)
            .map(|path| PathRoute {
                forward: vec![access(path), bottleneck, access(path + 10)],
                backward: vec![access(path + 20), back, access(path + 30)],
            })
            .collect();
        let paths = if flow % 2 == 0 { &paths[..1] } else { &paths[..] };
        net.flow(&format!("flow {flow}"), if flow % 2 == 0 { "cubic" } else { "olia" }, paths).start =
            Duration::from_nanos(500_000_009 * flow + 17);
    }
    let one_core = over_one_core(&net.scenario).outcome();
    let mut run = Parallel::new(&net.scenario, 2).unwrap();
    run.run(&mut ()).unwrap();
    assert_eq!(run.outcome(), one_core);
    assert!(one_core.flows.iter().all(|flow| flow.paths[0].count.lost > 0), "nothing was ever lost");
}

#[test]
fn changes_of_links_come_at_their_time() {
    let mut net = Net::new(10, 5);
    // No multiples of one another, so that nothing comes at one instant.
    let paths = [(8_000_003, 15_000_017), (12_000_017, 13_999_993)].map(|(bps, ns)| {
        let delay = Duration::from_nanos(ns);
        let there = LinkConfig::new(Bitrate::from_bps(bps)).delay(delay).queue(QueueConfig::packets(50));
        PathRoute { forward: vec![net.link(there)], backward: vec![net.link(LinkConfig::pure_delay(delay))] }
    });
    let link = paths[0].forward[0];
    net.flow("both", "cubic", &paths);
    net.flow("other", "cubic", &paths[1..]).start = Duration::from_nanos(1_234_567);
    let change = |seconds, kind| Change { at: Duration::from_millis(seconds), link, kind };
    net.scenario.changes = vec![
        change(2_000, ChangeKind::Up(false)),
        change(4_000, ChangeKind::Up(true)),
        change(6_000, ChangeKind::Rate(Rate::Fixed(Bitrate::from_mbps(3)))),
        change(7_000, ChangeKind::Filter(Filter::DropShare(0.05))),
    ];
    let mut runs = [1, 2].map(|threads| Parallel::new(&net.scenario, threads).unwrap());
    let outcomes = runs.each_mut().map(|run| {
        run.run(&mut ()).unwrap();
        run.outcome()
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0], over_one_core(&net.scenario).outcome());
}

#[test]
fn a_link_without_delay_is_named() {
    let mut net = Net::new(1, 1);
    let route = |link| PathRoute { forward: vec![link], backward: vec![link] };
    let near = net.link(LinkConfig::new(Bitrate::from_mbps(10)));
    net.flow("near", "reno", &[route(near)]);
    let error = Parallel::new(&net.scenario, 2).unwrap_err();
    assert!(matches!(error, SimError::NoLookahead { .. }), "{error}");
    assert!(error.to_string().contains("delay"), "{error}");

    let mut net = Net::new(1, 1);
    let jitter = Jitter::new(JitterDistribution::Normal, ms(1));
    let shaky = net.link(LinkConfig::new(Bitrate::from_mbps(10)).delay(ms(50)).jitter(jitter));
    net.flow("shaky", "reno", &[route(shaky)]);
    assert!(matches!(Parallel::new(&net.scenario, 2), Err(SimError::NoLookahead { .. })));

    let mut net = Net::new(1, 1);
    let link = net.link(LinkConfig::new(Bitrate::from_mbps(10)).delay(ms(5)));
    net.flow("one way", "reno", &[PathRoute { forward: vec![link], backward: vec![] }]);
    let error = Parallel::new(&net.scenario, 2).unwrap_err();
    assert!(matches!(&error, SimError::NoLink { flow } if flow.starts_with("one way")), "{error}");
}

/// A link that may do anything that leaves it a delay.
fn any_link() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![
        (2_usize..80).prop_map(QueueConfig::packets),
        Just(fairpath_net::CoDelConfig::default().into()),
        Just(fairpath_net::FqCoDelConfig::default().into()),
    ];
    let jitter = prop_oneof![
        3 => Just(Jitter::default()),
        1 => (1_u64..3_000, any::<bool>()).prop_map(|(us, overtake)| Jitter {
            distribution: JitterDistribution::Exponential, scale: Duration::from_micros(us), overtake,
        }),
    ];
    let loss = prop_oneof![
        3 => Just(LossConfig::None),
        1 => Just(LossConfig::Random { probability: 0.01 }),
        1 => Just(LossConfig::GilbertElliott(GilbertElliott { good_to_bad: 0.01, bad_to_good: 0.3, loss_in_good: 0.0, loss_in_bad: 0.5 })),
    ];
    let impairments = prop_oneof![
        3 => Just(Impairments::default()),
        1 => Just(Impairments { reorder: Some(Reorder { share: 0.02, by: ms(3) }), duplicate: 0.01, corrupt: 0.01 }),
    ];
    (1_u64..40, 1_u64..20, queue, jitter, loss, impairments).prop_map(
        |(mbps, millis, queue, jitter, loss, impairments)| {
            let config =
                LinkConfig::new(Bitrate::from_mbps(mbps)).delay(ms(millis)).queue(queue).jitter(jitter).loss(loss);
            LinkConfig { impairments, ..config }
        },
    )
}

fn any_traffic() -> impl Strategy<Value = Traffic> {
    prop_oneof![
        4 => Just(Traffic::Bulk),
        1 => Just(Traffic::Finite { size: ByteCount::new(300_000) }),
        1 => Just(Traffic::ShortFlows { size: ByteCount::new(20_000), mean_interval: ms(40) }),
        1 => Just(Traffic::Unresponsive { rate: Bitrate::from_mbps(2) }),
        1 => Just(Traffic::Constant { rate: Bitrate::from_mbps(2) }),
    ]
}

/// A network of a few links, over any of which any flow may go.
fn any_scenario() -> impl Strategy<Value = Scenario> {
    let chain = || proptest::collection::vec(any::<prop::sample::Index>(), 1..4);
    let flow = (
        proptest::sample::select(vec!["cubic", "olia", "reno", "bbr3", "daimd"]),
        any_traffic(),
        proptest::collection::vec((chain(), chain()), 1..4),
        0_u64..400,
    );
    (proptest::collection::vec(any_link(), 2..8), proptest::collection::vec(flow, 1..6), any::<u64>()).prop_map(
        |(links, flows, seed)| {
            let mut net = Net::new(2, seed);
            let links: Vec<_> = links.into_iter().map(|config| net.link(config)).collect();
            for (index, (congestion, traffic, paths, start)) in flows.into_iter().enumerate() {
                let route = |chain: Vec<prop::sample::Index>| chain.into_iter().map(|at| *at.get(&links)).collect();
                let paths: Vec<_> = paths
                    .into_iter()
                    .map(|(there, back)| PathRoute { forward: route(there), backward: route(back) })
                    .collect();
                let flow = net.flow(&format!("flow {index}"), congestion, &paths);
                (flow.traffic, flow.start) = (traffic, ms(start));
            }
            net.scenario.sample_every = ms(170);
            net.scenario
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the network is.
    #[test]
    fn no_network_tells_how_many_threads_ran_it(scenario in any_scenario()) {
        let one = over(1, &scenario);
        for threads in [2, 4] {
            let several = over(threads, &scenario);
            prop_assert_eq!(difference(&one, &several), None, "{} threads", threads);
        }
    }
}
