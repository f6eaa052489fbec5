//! Live streams as traffic.

use core::time::Duration;

use fairpath_core::{Bitrate, PathId, Timestamp};
use fairpath_engine::{EngineConfig, Terms};
use fairpath_net::{GilbertElliott, Jitter, JitterDistribution, LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{Change, ChangeKind, Live, PathRoute, Scenario, Traffic};
use fairpath_sim::{FlowIndex, FlowOutcome, Recorder, Simulation, View};
use rayon::prelude::*;

use crate::common::{Net, ms};

const DEADLINE: Duration = Duration::from_millis(300);

fn live(rate: Option<Bitrate>) -> Traffic {
    Traffic::Live(Live { rate, ..Live::default() })
}

fn path(net: &mut Net, config: LinkConfig, back: Duration) -> PathRoute {
    let (there, back) = (net.link(config), net.link(LinkConfig::pure_delay(back)));
    PathRoute { forward: vec![there], backward: vec![back] }
}

fn link(mbps: u64, delay_ms: u64) -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(mbps)).delay(ms(delay_ms)).queue(QueueConfig::sojourn(ms(200)))
}

/// A stream over such links, whose ways back take as long.
fn stream(links: &[LinkConfig], rate: Option<Bitrate>, seconds: u64) -> Net {
    let mut net = Net::new(seconds, 1);
    let paths: Vec<PathRoute> = links.iter().map(|link| path(&mut net, link.clone(), link.delay)).collect();
    let flow = net.flow("picture", "lia", &paths);
    flow.as_live(EngineConfig::live()).traffic = live(rate);
    net
}

fn run(scenario: &Scenario) -> FlowOutcome {
    let mut simulation = Simulation::new(scenario).unwrap();
    simulation.run(&mut ()).unwrap();
    simulation.check().unwrap();
    simulation.outcome().flows.remove(0)
}

#[test]
fn over_links_that_lose_nothing_each_packet_is_played_once_and_soon() {
    let mut net = stream(&[link(10, 20), link(10, 30)], Some(Bitrate::from_mbps(4)), 20);
    // Not in the moment in which counting begins.
    net.scenario.flows[0].start = ms(1);
    net.scenario.flows[0].stop = Some(ms(19_001));
    let flow = run(&net.scenario);
    let live = flow.live.unwrap();
    // 4 Mbit/s in packets of 1,316 B for 19 s.
    assert!(live.queued.abs_diff(7_218) < 3, "{live:?}");
    assert_eq!((live.queued, live.queued), (live.played, live.in_time), "{live:?}");
    assert!(flow.frame_delays.iter().all(|took| *took <= ms(60)), "{:?}", flow.frame_delays.iter().max());
    assert!(flow.paths.iter().all(|path| path.count.sent > 2_000), "both carry: {flow:?}");
}

/// Before a round trip is known a path is taken to need 50 ms: what is to be there sooner must leave all the same.
#[test]
fn a_short_deadline_is_kept_from_the_beginning() {
    let mut net = stream(&[link(10, 20)], Some(Bitrate::from_mbps(1)), 10);
    let stream = fairpath_live::Config { deadline: ms(50), ..fairpath_live::Config::default() };
    let short = Live { rate: Some(Bitrate::from_mbps(1)), stream, ..Live::default() };
    net.scenario.flows[0].traffic = Traffic::Live(short);
    let live = run(&net.scenario).live.unwrap();
    assert!(live.on_time().unwrap() > 0.99, "{live:?}");
}

#[test]
fn the_same_seed_gives_the_same_stream() {
    let lossy = |mbps, delay| link(mbps, delay).loss(LossConfig::Random { probability: 0.02 }).jitter(ms(20));
    let net = stream(&[lossy(8, 20), lossy(4, 50)], None, 20);
    assert_eq!(run(&net.scenario), run(&net.scenario));
}

#[test]
fn bursts_of_losses_on_paths_that_reorder_are_made_up_for() {
    let bursts = GilbertElliott { good_to_bad: 0.005, bad_to_good: 0.25, loss_in_good: 0.0, loss_in_bad: 1.0 };
    let jitter = Jitter::new(JitterDistribution::Exponential, ms(15)).overtaking();
    let lossy = |delay| link(20, delay).loss(LossConfig::GilbertElliott(bursts)).jitter(jitter);
    let flow = run(&stream(&[lossy(10), lossy(20)], Some(Bitrate::from_kbps(700)), 60).scenario);
    let live = flow.live.unwrap();
    // 2 % are lost; most come again in time, and repair brings back others.
    assert!(live.on_time().unwrap() > 0.995, "{live:?}");
    assert!(live.repair > 0 && live.again > 0 && live.counts.recovered > 0, "{live:?}");
}

#[test]
fn an_encoder_that_follows_the_budget_is_played_and_takes_what_there_is() {
    let flow = run(&stream(&[link(6, 20), link(3, 30)], None, 60).warm_up(20).scenario);
    let live = flow.live.unwrap();
    // Windows fill queues of 200 ms, and each time a window is halved the budget falls a moment late.
    assert!(live.on_time().unwrap() > 0.96, "{live:?}");
    let (goodput, budget) = (flow.goodput.as_mbps_f64(), live.budget().as_mbps_f64());
    assert!((goodput / budget - 1.0).abs() < 0.05, "{goodput} of {budget} Mbit/s");
    assert!(goodput > 5.0, "{goodput} of 9 Mbit/s");
}

/// Hybrid CUBIC has short windows, and knows what a path carries once its queue has shown it.
///
/// The budget stays below that, so that packets wait for less than the few milliseconds that a transfer keeps there.
#[test]
fn an_encoder_fills_no_queue_where_congestion_control_knows_that_it_is_its_own() {
    let of = |congestion: &str| {
        let deep = LinkConfig::new(Bitrate::from_mbps(10)).delay(ms(20)).queue(QueueConfig::sojourn(ms(1_000)));
        let mut net = stream(&[deep], None, 60).warm_up(20);
        net.scenario.flows[0].engine.congestion = congestion.into();
        let mut flow = run(&net.scenario);
        flow.frame_delays.sort_unstable();
        let longest = flow.frame_delays[flow.frame_delays.len() * 99 / 100];
        println!("{congestion}: {}, 99 % within {longest:?}, {:?}", flow.goodput, flow.paths[0].count.mean_rtt());
        (flow.goodput.as_mbps_f64(), longest, flow.paths[0].count.mean_rtt().unwrap())
    };
    let (today, fills, _) = of("coupled_cubic");
    let (goodput, longest, round_trip) = of("hybrid_cubic");
    // A packet takes 20 ms on its way, and 37 ms in which one may wait for a window.
    assert!(longest < ms(110) && longest < fills / 2, "{longest:?}, {fills:?}");
    // 40 ms on their way and one for themselves.
    assert!(round_trip < ms(45), "{round_trip:?}");
    // A full queue makes packets late, and a budget counts what is in time.
    assert!(goodput > today, "{goodput} and {today} Mbit/s");
}

#[test]
fn a_link_that_is_cut_is_left_in_a_fraction_of_a_second() {
    /// The greatest time between two packets that were played.
    #[derive(Default)]
    struct Gaps {
        last: Option<Timestamp>,
        longest: Duration,
        was_silent: bool,
    }
    impl Recorder for Gaps {
        fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
            let Some((status, _)) = view.live(FlowIndex(0)) else { return };
            self.was_silent |= status.paths.iter().any(|path| path.path == PathId::new(0) && path.is_silent);
        }
        fn on_played(&mut self, now: Timestamp, _flow: FlowIndex, _took: Duration) {
            let last = self.last.replace(now).unwrap_or(now);
            self.longest = self.longest.max(now.since(last));
        }
    }
    let mut net = stream(&[link(10, 20), link(10, 30)], Some(Bitrate::from_mbps(2)), 20);
    let cut = net.scenario.flows[0].paths[0].clone();
    let change =
        |link: &fairpath_scenario::LinkIndex| Change { at: ms(8_000), link: *link, kind: ChangeKind::Up(false) };
    net.scenario.changes = cut.forward.iter().chain(&cut.backward).map(change).collect();
    net.scenario.flows[0].stop = Some(ms(19_000));
    let (mut simulation, mut gaps) = (Simulation::new(&net.scenario).unwrap(), Gaps::default());
    simulation.run(&mut gaps).unwrap();
    let live = simulation.outcome().flows[0].live.unwrap();
    assert!(gaps.was_silent, "the sender has noticed");
    assert!(gaps.longest <= DEADLINE, "{:?}", gaps.longest);
    assert!(live.on_time().unwrap() > 0.999, "{live:?}");
}

/// Path after path of the paper: a tenth, a fiftieth and a hundredth are lost, and delays are exponential
/// [Pluntke2011 §2].
fn loses(at: usize) -> LinkConfig {
    let (loss, mean) = [(0.10, 20), (0.02, 100), (0.01, 300)][at];
    let jitter = Jitter::new(JitterDistribution::Exponential, ms(mean)).overtaking();
    LinkConfig::new(fairpath_net::Rate::Unlimited).jitter(jitter).loss(LossConfig::Random { probability: loss })
}

#[test]
fn an_encoder_over_paths_that_lose_much_is_not_starved_by_repair_or_by_worse_paths() {
    let goodput = |paths: &[usize], seed: u64| {
        let links: Vec<LinkConfig> = paths.iter().map(|at| loses(*at)).collect();
        let mut net = stream(&links, None, 120).warm_up(20);
        net.scenario.seed = seed;
        let flow = run(&net.scenario);
        let live = flow.live.unwrap();
        let in_time = if paths.len() == 1 { 0.94 } else { 0.96 };
        assert!(live.on_time().unwrap() > in_time && live.beside() < 0.6, "seed {seed}: {live:?}");
        // Packets of 1,316 B.
        flow.goodput.as_bps() as f64 / 8.0 / 1_316.0
    };
    // Goodputs of two minutes vary by a sixteenth: the mean of four by a thirtieth.
    const SEEDS: u64 = 4;
    let of = |paths: &[usize]| (1..=SEEDS).into_par_iter().map(|seed| goodput(paths, seed)).sum::<f64>() / SEEDS as f64;
    let (alone, together) = (of(&[0]), of(&[0, 1, 2]));
    // A TCP with timeouts has 88 on the first path [RFC5348 §3.1].
    assert!(alone > 88.0 && together > alone, "{together} and {alone}");
}

/// All but a twentieth of what it brings is in time, and in two seconds that may be all; but it comes 180 ms later.
#[test]
fn a_stream_leaves_on_no_slow_path_what_the_quick_ones_have_room_for() {
    let lossy = |link: LinkConfig, probability: f64| link.jitter(ms(5)).loss(LossConfig::Random { probability });
    let links = [lossy(link(10, 20), 0.001), lossy(link(8, 30), 0.001), lossy(link(1, 200), 0.05)];
    for seed in 1..=4 {
        let mut net = stream(&links, Some(Bitrate::from_mbps(3)), 60).warm_up(10);
        net.scenario.seed = seed;
        let mut flow = run(&net.scenario);
        flow.frame_delays.sort_unstable();
        let slowest = flow.frame_delays[flow.frame_delays.len() * 99 / 100];
        // The slower of the two quick ones with its jitter, and once more where something was lost there.
        assert!(slowest < ms(100), "seed {seed}: {slowest:?}");
        assert!(flow.live.unwrap().on_time().unwrap() > 0.999, "seed {seed}: {:?}", flow.live);
    }
}

#[test]
fn what_is_said_of_paths_holds_for_streams() {
    let mut net = stream(&[link(10, 30), link(10, 20), link(10, 20)], Some(Bitrate::from_mbps(3)), 20);
    let (dear, capped) = (Terms { cost: 1, ..Terms::default() }, Some(Bitrate::from_kbps(500)));
    net.scenario.flows[0].terms = vec![Terms::default(), dear, Terms { cap: capped, ..Terms::default() }];
    let flow = run(&net.scenario);
    let bytes: Vec<f64> = flow.paths.iter().map(|path| path.count.delivered.as_f64()).collect();
    assert!(bytes[1] < 0.02 * bytes[0], "the dear one has next to nothing: {bytes:?}");
    assert!(bytes[2] * 8.0 / 20.0 < 1.1 * 500_000.0, "no more than its cap: {bytes:?}");
    assert!(flow.live.unwrap().on_time().unwrap() > 0.99, "{flow:?}");
}

#[test]
fn a_stream_that_follows_its_budget_has_a_share_beside_a_tcp() {
    let mut net = stream(&[link(8, 20).jitter(Duration::from_micros(1_500))], None, 120).warm_up(30);
    let paths = net.scenario.flows[0].paths.clone();
    net.flow("tcp", "reno", &paths);
    let outcome = fairpath_sim::run(&net.scenario, &mut ()).unwrap();
    let [stream, tcp] = [0, 1].map(|flow| outcome.flows[flow].goodput.as_mbps_f64());
    assert!(stream > 0.3 * tcp && stream < 1.1 * tcp, "{stream} and {tcp} Mbit/s");
}

/// Two ways to have packets: at a rate, and as the budget says.
const ENCODERS: [Option<Bitrate>; 2] = [Some(Bitrate::from_kbps(1_000)), None];

/// For half a minute everything is late behind a download, and nothing that is sent is worth it. Nobody says when that is
/// over but packets that are sent.
#[test]
fn a_stream_that_was_late_for_long_comes_back() {
    for rate in ENCODERS {
        let deep = LinkConfig::new(Bitrate::from_mbps(10)).delay(ms(20)).queue(QueueConfig::sojourn(ms(600)));
        let mut net = stream(&[deep], rate, 80).warm_up(60);
        let paths = net.scenario.flows[0].paths.clone();
        let download = net.flow("download", "cubic", &paths);
        (download.start, download.stop) = (ms(5_000), Some(ms(35_000)));
        // By then a budget that rises by a twentieth in a second has risen.
        let flow = run(&net.scenario);
        let live = flow.live.unwrap();
        let in_time = live.on_time().unwrap_or(0.0);
        // An encoder that takes what there is fills the queue itself, and with each window that is halved is late.
        let wanted = if rate.is_some() { 0.99 } else { 0.95 };
        assert!(in_time > wanted, "{rate:?}: {in_time} of {} packets in time", live.queued);
        assert!(flow.goodput.as_mbps_f64() > 0.95, "{rate:?}: {:?}", flow.goodput);
    }
}

/// Packets take up to 270 ms each time that the queue is full, and may take 300.
#[test]
fn a_queue_that_is_nearly_as_long_as_the_deadline_ends_no_stream() {
    for rate in ENCODERS {
        for rival in ["reno", "cubic"] {
            let deep = LinkConfig::new(Bitrate::from_mbps(10)).delay(ms(20)).queue(QueueConfig::sojourn(ms(250)));
            let mut net = stream(&[deep], rate, 120).warm_up(30);
            let paths = net.scenario.flows[0].paths.clone();
            net.flow("download", rival, &paths);
            let flow = run(&net.scenario);
            let (goodput, in_time) = (flow.goodput.as_mbps_f64(), flow.live.unwrap().on_time().unwrap_or(0.0));
            println!("{rate:?} beside {rival}: {goodput:.2} Mbit/s, {in_time:.3} in time");
            // By the equation a stream has little at round trips of 290 ms; without packets that only try it had none.
            let least = if rate.is_some() { 0.95 } else { 0.5 };
            assert!(goodput > least && in_time > 0.95, "{rate:?} beside {rival}: {goodput} Mbit/s, {in_time} in time");
        }
    }
}

/// The rate of a stream over three paths, relative to one TCP on the best of them, for some seeds.
/// Two TCP flows share each path; `links` gives the bottleneck of each path.
fn taken_beside_tcp(links: [usize; 3]) -> Vec<f64> {
    let taken = |seed| {
        let mut net = Net::new(80, seed).warm_up(20);
        let rate = |link: usize| 4 * links.iter().filter(|of| **of == link).count() as u64;
        let narrow = |link| LinkConfig::new(Bitrate::from_mbps(rate(link))).queue(QueueConfig::sojourn(ms(100)));
        let narrow: Vec<_> = (0..=links[2]).map(|link| net.link(narrow(link))).collect();
        let mut way = |(at, rtt): (usize, u64)| {
            // A packet's transmission of jitter: without it TCPs, whose packets come in step with those that leave a full
            // queue, find it full more often than the stream does [Floyd1992].
            let jitter = Duration::from_micros(12_000 / rate(links[at]));
            let there = net.link(LinkConfig::pure_delay(ms(rtt / 2)).jitter(jitter));
            let back = net.link(LinkConfig::pure_delay(ms(rtt / 2)));
            PathRoute { forward: vec![there, narrow[links[at]]], backward: vec![back] }
        };
        let paths: Vec<PathRoute> = [40, 60, 90].into_iter().enumerate().map(&mut way).collect();
        net.flow("stream", "lia", &paths).as_live(EngineConfig::live()).traffic = live(None);
        for path in paths.iter().flat_map(|path| [path, path]) {
            net.flow("tcp", "reno", core::slice::from_ref(path)).start_jitter = ms(1_000);
        }
        let outcome = fairpath_sim::run(&net.scenario, &mut ()).unwrap();
        let arrived = |flow: &FlowOutcome| flow.paths.iter().map(|path| path.count.delivered.as_f64()).sum::<f64>();
        let (stream, tcp) = outcome.flows.split_first().unwrap();
        let best = tcp.chunks(2).map(|two| two.iter().map(arrived).sum::<f64>() / 2.0).fold(0.0, f64::max);
        arrived(stream) / best
    };
    (1..=4).map(taken).collect()
}

/// The stream never fills its paths, and its rate on each varies with its budget. The detector has
/// to use its delays all the same.
#[test]
fn a_stream_whose_paths_share_a_link_with_tcp_takes_no_more_than_one_tcp() {
    let taken = taken_beside_tcp([0, 0, 0]);
    assert!(taken.iter().all(|taken| (0.6..=1.1).contains(taken)), "{taken:?}");
}

#[test]
fn a_stream_of_separate_links_has_more_than_any_of_them_gives_a_tcp() {
    let taken = taken_beside_tcp([0, 1, 2]);
    assert!(taken.iter().all(|taken| (2.0..=3.3).contains(taken)), "{taken:?}");
}
