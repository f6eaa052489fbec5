//! The rules that follow delay, over bottlenecks.

use core::time::Duration;

use fairpath_cc::{AimdConfig, Parameters, SlowStart, WVegas, by_name_with};
use fairpath_core::{Bitrate, Timestamp};

use crate::bottleneck::{Link, Network, PACKET};

/// Two paths of one sender over links with these (Mbit/s, round-trip time in ms) and queues of a
/// bandwidth-delay product, each beside a Reno or alone, for 300 s. Flows 0 and 1 are the paths, 2 and
/// 3 the Renos.
fn two_paths(name: &str, parameters: &Parameters, links: [(u64, u64); 2], beside_reno: bool) -> Network {
    let mut net = Network::default();
    let links = links.map(|(mbps, millis)| {
        let (rate, round_trip) = (Bitrate::from_mbps(mbps), Duration::from_millis(millis));
        net.add_link(Link { rate, round_trip, buffer: rate * round_trip, loss: 0.0 })
    });
    let sender = net.add_sender(by_name_with(name, parameters).unwrap());
    for (path, link) in (0..).zip(links) {
        net.add_flow(sender, path, link);
    }
    for link in links.into_iter().filter(|_| beside_reno) {
        let reno = net.add_sender(by_name_with("reno", &tcp()).unwrap());
        net.add_flow(reno, 0, link);
    }
    net.run_until(Timestamp::from_secs(300));
    net
}

fn tcp() -> Parameters {
    Parameters { aimd: AimdConfig::tcp(), ..Parameters::default() }
}

/// Mbit/s of each flow, but for the start.
fn goodputs(net: &Network) -> Vec<f64> {
    (0..net.flows.len()).map(|flow| net.goodput(flow, 10..300).as_mbps_f64()).collect()
}

/// The deepest factor by which the windows of a flow fall, but for the start.
fn deepest_cut(net: &Network, flow: usize) -> f64 {
    let control = net.flows[flow].control.iter().filter(|(at, ..)| *at >= Timestamp::from_secs(10));
    let windows: Vec<f64> = control.map(|(_, window, _)| window.as_f64()).collect();
    windows.windows(2).map(|pair| pair[1] / pair[0]).fold(1.0, f64::min)
}

#[test]
fn daimd_alone_keeps_its_links_full_and_loses_nothing() {
    // [DAIMD2016 Table I]: 9.4 and 4.2 Mbit/s on links of 10 and 5, and no loss after slow start.
    let net = two_paths("daimd", &tcp(), [(10, 100), (5, 100)], false);
    let goodputs = goodputs(&net);
    assert!(goodputs[0] > 9.5 && goodputs[1] > 4.75, "{goodputs:?}");
    // Cuts by delay leave 0.7, losses would leave 0.5.
    assert!(deepest_cut(&net, 0) > 0.65 && deepest_cut(&net, 1) > 0.65);
}

#[test]
fn daimd_beside_reno_takes_less_than_lia_and_does_not_starve() {
    // [DAIMD2016 Table II]: 3.4 + 1.0 = 4.4 and LIA 3.6 + 1.7 = 5.3, with Renos at 5.8 and 3.7. Within
    // a fifth of it: the round-trip times of that case, D0, W0 and T are assumed.
    let [daimd, lia] = ["daimd", "lia"].map(|name| goodputs(&two_paths(name, &tcp(), [(10, 100), (5, 100)], true)));
    let total = daimd[0] + daimd[1];
    assert!((total - 4.4).abs() < 0.2 * 4.4, "{daimd:?}");
    assert!(total < lia[0] + lia[1], "{daimd:?} {lia:?}");
    assert!(daimd[0] < daimd[2] && daimd[1] < daimd[3], "{daimd:?}");
}

#[test]
fn wvegas_keeps_ten_packets_queued_in_all_where_nothing_is_drained() {
    let wvegas = WVegas { drain_at: f64::INFINITY, ..WVegas::default() };
    let net = two_paths("wvegas", &Parameters { wvegas, ..tcp() }, [(10, 100), (5, 100)], false);
    let goodputs = goodputs(&net);
    assert!(goodputs[0] > 9.9 && goodputs[1] > 4.95, "{goodputs:?}");
    // Packets of 1250 B take 1 ms at 10 Mbit/s and 2 ms at 5.
    let backlog = [(0, 1e-3), (1, 2e-3)].map(|(flow, packet_s)| net.mean_queue(flow, 10..300).as_secs_f64() / packet_s);
    assert!((8.0..12.0).contains(&(backlog[0] + backlog[1])), "{backlog:?}");
}

#[test]
fn hystart_overflows_a_deep_queue_a_quarter_as_far() {
    let overflow = |slow_start| {
        let mut net = Network::default();
        let (rate, round_trip) = (Bitrate::from_mbps(20), Duration::from_millis(80));
        // The link holds 160 packets, its queue four times as many.
        let link = net.add_link(Link { rate, round_trip, buffer: PACKET * 640, loss: 0.0 });
        let aimd = AimdConfig { slow_start, ..AimdConfig::default() };
        let reno = net.add_sender(by_name_with("reno", &Parameters { aimd, ..Parameters::default() }).unwrap());
        let flow = net.add_flow(reno, 0, link);
        net.run_until(Timestamp::from_secs(3));
        let largest = net.flows[flow].control.iter().map(|(_, window, _)| *window).max().unwrap();
        (largest / PACKET) as f64 - 800.0
    };
    // In the round trip until the loss is found out the window grows by all that was acknowledged,
    // which is what both hold, or by a quarter of it.
    let (standard, hystart) = (overflow(SlowStart::Standard), overflow(SlowStart::HyStartPlusPlus));
    assert!((standard - 800.0).abs() < 8.0, "{standard}");
    assert!((hystart - 200.0).abs() < 8.0, "{hystart}");
}
