//! The simulator against what is known in closed form.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};
use fairpath_net::{LinkConfig, LossConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Traffic};
use fairpath_sim::{FlowIndex, Outcome, Recorder, View, run};

use crate::common::{Net, ms, packets};

fn outcome(net: &Net) -> Outcome {
    run(&net.scenario, &mut ()).unwrap()
}

/// Round-trip times and congestion of all flows, in order.
#[derive(Default)]
struct Rtts {
    samples: Vec<(f64, f64)>,
    episodes: Vec<f64>,
}

impl Recorder for Rtts {
    fn on_rtt(&mut self, now: Timestamp, _flow: FlowIndex, _path: PathId, rtt: Duration) {
        self.samples.push((now.as_secs_f64(), rtt.as_secs_f64()));
    }
    fn on_congestion(&mut self, now: Timestamp, _flow: FlowIndex, _path: PathId) {
        self.episodes.push(now.as_secs_f64());
    }
}

/// Windows of the first flow's first path.
#[derive(Default)]
struct Windows {
    samples: Vec<(f64, f64)>,
    episodes: Vec<f64>,
}

impl Recorder for Windows {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        if let Some((_, path)) = view.paths().next() {
            self.samples.push((now.as_secs_f64(), path.window.as_f64() / 1500.0));
        }
    }
    fn on_congestion(&mut self, now: Timestamp, _flow: FlowIndex, _path: PathId) {
        self.episodes.push(now.as_secs_f64());
    }
}

#[test]
fn one_packet_takes_its_transmission_and_the_delay() {
    let mut net = Net::new(1, 1);
    let path = net.path(12, ms(30), QueueConfig::packets(10));
    net.flow("one", "reno", &[path]).traffic = Traffic::Finite { size: ByteCount::new(1448) };
    // 1500 B at 12 Mbit/s are 1 ms.
    assert_eq!(outcome(&net).flows[0].completions, [ms(31)]);
}

#[test]
fn ten_packets_in_the_first_window_come_one_transmission_apart() {
    let mut net = Net::new(1, 1);
    let path = net.path(12, ms(30), QueueConfig::packets(10));
    net.flow("ten", "reno", &[path]).traffic = Traffic::Finite { size: ByteCount::new(1448 * 9) };
    // The first window is 14,720 B, nine packets: 9 ms and 30 ms.
    assert_eq!(outcome(&net).flows[0].completions, [ms(39)]);
}

#[test]
fn a_steady_stream_at_twice_the_rate_loses_half() {
    let mut net = Net::new(20, 1);
    let path = net.path(10, ms(10), QueueConfig::sojourn(ms(50)));
    net.flow("flood", "reno", &[path]).traffic = Traffic::Unresponsive { rate: Bitrate::from_mbps(20) };
    let outcome = outcome(&net);
    let link = &outcome.links[0];
    // One half, but for the 50 ms that the queue takes in.
    assert!((link.drop_share() - 0.5).abs() < 0.002, "{}", link.drop_share());
    assert!((outcome.flows[0].goodput.as_mbps_f64() - 10.0).abs() < 0.03, "{}", outcome.flows[0].goodput);
    // The queue stays full: whatever gets in waits for 50 ms less one transmission of 1.2 ms at most.
    assert!(link.mean_wait > ms(48) && link.mean_wait <= ms(50), "{:?}", link.mean_wait);
}

/// [Padhye1998] A Reno flow under independent losses of probability p has a window of
/// about 1.3/sqrt(p) packets; with evenly spaced ones, sqrt(3/2p) = 1.22/sqrt(p).
#[test]
fn reno_follows_the_square_root_law() {
    for (probability, seconds) in [(0.01, 400), (0.001, 1000), (0.0002, 2000)] {
        let mut net = Net::new(seconds, 3).warm_up(20);
        let lossy = LossConfig::Random { probability };
        let config = LinkConfig::new(Bitrate::from_mbps(1000)).delay(ms(50)).loss(lossy);
        let there = net.link(config.queue(QueueConfig::unlimited()));
        let back = net.link(LinkConfig::pure_delay(ms(50)));
        net.flow("reno", "reno", &[PathRoute { forward: vec![there], backward: vec![back] }]);
        let rate = outcome(&net).flows[0].goodput.as_bps() as f64;
        let constant = rate / 8.0 / 1448.0 * 0.1 * f64::sqrt(probability);
        assert!((1.18..1.42).contains(&constant), "p = {probability}: {constant:.3}");
    }
}

/// The queue of n Reno flows grows as r² = r0² + 2 (n/C) (t − t0), because each adds a packet per
/// round trip.
#[test]
fn round_trip_times_grow_with_the_root_of_time() {
    let mut net = Net::new(120, 1);
    let path = net.path(1, ms(50), QueueConfig::packets(30));
    net.flow("reno", "reno", &[path]);
    let mut rtts = Rtts::default();
    run(&net.scenario, &mut rtts).unwrap();
    let per_second = 1e6 / 8.0 / 1500.0;
    let mut checked = 0;
    // Between the episodes of congestion after slow start, from a second after each.
    for pair in rtts.episodes.windows(2).skip(1) {
        let between = |(at, _): &&(f64, f64)| *at > pair[0] + 1.0 && *at < pair[1] - 0.5;
        let growing: Vec<_> = rtts.samples.iter().filter(between).collect();
        let ((t0, r0), (t1, r1)) = (growing[0], growing[growing.len() - 1]);
        assert!(t1 - t0 > 5.0, "a build-up of {} s", t1 - t0);
        let predicted = f64::sqrt(r0 * r0 + 2.0 / per_second * (t1 - t0));
        assert!((r1 / predicted - 1.0).abs() < 0.015, "{r1:.3} s, and {predicted:.3} s predicted");
        checked += 1;
    }
    assert!(checked >= 5, "{checked} build-ups");
}

#[test]
fn equal_flows_share_equally() {
    let mut net = Net::new(330, 5).warm_up(30);
    let path = net.path(40, ms(20), QueueConfig::sojourn(ms(100)));
    for _ in 0..8 {
        net.flow("reno", "reno", std::slice::from_ref(&path)).start_jitter = ms(500);
    }
    let outcome = outcome(&net);
    let mean = outcome.mean_goodput("reno").as_mbps_f64();
    for flow in &outcome.flows {
        let share = flow.goodput.as_mbps_f64() / mean;
        assert!((share - 1.0).abs() < 0.05, "{}: {share:.3} of the mean", flow.name);
    }
}

/// Two flows over one link whose base round-trip times are 40 and 120 ms. With independent losses
/// their rates are as 1/rtt; where they lose together, their windows grow by one packet per round
/// trip between the same events, and the rates are as 1/rtt².
#[test]
fn the_longer_round_trip_gets_less_by_the_right_factor() {
    let two = |queue, loss| {
        let mut net = Net::new(600, 2).warm_up(50);
        let shared = net.link(LinkConfig::new(Bitrate::from_mbps(20)).delay(ms(10)).queue(queue).loss(loss));
        for one_way in [10, 50] {
            // A packet's transmission of jitter: without it a full queue always meets the packets of
            // the same flow, as they come in step with those that leave [Floyd1992].
            let there = net.link(LinkConfig::pure_delay(ms(one_way)).jitter(Duration::from_micros(600)));
            let back = net.link(LinkConfig::pure_delay(ms(one_way + 10)));
            net.flow("reno", "reno", &[PathRoute { forward: vec![there, shared], backward: vec![back] }]);
        }
        let outcome = outcome(&net);
        let rtt = |at: usize| outcome.flows[at].paths[0].count.mean_rtt().unwrap().as_secs_f64();
        let rate = |at: usize| outcome.flows[at].goodput.as_mbps_f64();
        (rate(0) / rate(1), rtt(1) / rtt(0))
    };
    let (rates, rtts) = two(QueueConfig::unlimited(), LossConfig::Random { probability: 0.004 });
    assert!((rates / rtts - 1.0).abs() < 0.1, "independent losses: {rates:.2} for {rtts:.2}");
    let (rates, rtts) = two(QueueConfig::sojourn(ms(20)), LossConfig::None);
    assert!(rates > rtts && rates < rtts * rtts * 1.1, "one queue: {rates:.2} for {rtts:.2}");
}

#[test]
fn one_flow_with_a_queue_of_one_bandwidth_delay_product_fills_the_link() {
    for congestion in ["reno", "cubic"] {
        let mut net = Net::new(120, 1).warm_up(20);
        let path = net.path(20, ms(25), QueueConfig::packets(packets(20, ms(50))));
        net.flow("one", congestion, &[path]);
        let utilisation = outcome(&net).links[0].utilisation.unwrap();
        assert!(utilisation >= 0.97, "{congestion}: {utilisation:.3}");
    }
}

/// [RFC9438 §4.2 eq. 1] W(t) = 0.4 (t − K)³ + Wmax, from 0.7 of the window at the loss. Wmax is that
/// window, or 0.85 of it where it was lower than the maximum before [RFC9438 §4.7]; maxima that are
/// equal but for a packet make both of them right here.
#[test]
fn cubic_follows_its_function() {
    let mut net = Net::new(120, 1);
    net.scenario.sample_every = ms(50);
    let path = net.path(100, ms(50), QueueConfig::packets(packets(100, ms(100))));
    net.flow("cubic", "cubic", &[path]);
    let mut windows = Windows::default();
    run(&net.scenario, &mut windows).unwrap();
    let mut checked = 0;
    // Without the episodes in which the losses of slow start are worked off.
    for pair in windows.episodes.windows(2).filter(|pair| pair[1] - pair[0] > 2.0) {
        let prior = windows.samples.iter().rfind(|(at, _)| *at <= pair[0]).unwrap().1;
        let avoiding = || windows.samples.iter().filter(|(at, _)| *at > pair[0] + 0.8 && *at < pair[1] - 0.2);
        let error = |w_max: f64| {
            let k = f64::cbrt((w_max - 0.7 * prior) / 0.4);
            // The epoch begins when the recovery ends, a round trip of 0.2 s after the loss was found.
            let ideal = |at: f64| 0.4 * (at - pair[0] - 0.2 - k).powi(3) + w_max;
            avoiding().map(|(at, window)| (window / ideal(*at) - 1.0).abs()).fold(0.0, f64::max)
        };
        let error = error(prior).min(error(0.85 * prior));
        assert!(error < 0.01, "from {:.1} s on the window is off by {error:.4}", pair[0]);
        checked += avoiding().count();
    }
    assert!(checked > 1000, "{checked} samples");
}

#[test]
fn a_receive_buffer_bounds_the_rate_to_itself_per_round_trip() {
    let mut net = Net::new(30, 1).warm_up(5);
    let path = net.path(100, ms(50), QueueConfig::packets(1000));
    let flow = net.flow("one", "reno", &[path]);
    flow.transport.receive_buffer = Some(ByteCount::new(144_800));
    let goodput = outcome(&net).flows[0].goodput.as_mbps_f64();
    // 144,800 B · 8 / (100 ms + 0.12 ms of transmission) = 11.57 Mbit/s
    assert!((goodput - 11.57).abs() < 0.02, "{goodput}");
}

#[test]
fn a_send_buffer_bounds_the_rate_to_itself_per_round_trip() {
    let mut net = Net::new(30, 1).warm_up(5);
    let path = net.path(100, ms(50), QueueConfig::packets(1000));
    net.flow("one", "reno", &[path]).transport.send_buffer = Some(ByteCount::new(144_800));
    let goodput = outcome(&net).flows[0].goodput.as_mbps_f64();
    assert!((goodput - 11.57).abs() < 0.02, "{goodput}");
}
