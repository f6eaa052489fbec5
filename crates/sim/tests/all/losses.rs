//! Losses by the queue: links that lose packets at random are filled, and competitors keep what
//! CUBIC would leave them, whatever the queue of the link.

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{EngineConfig, Losses};
use fairpath_net::{
    CoDelConfig, Jitter, JitterDistribution, LinkConfig, LossConfig, Policer, QueueConfig, QueueLimit, RedConfig,
};
use fairpath_scenario::PathRoute;
use fairpath_sim::run;
use rayon::prelude::*;

use crate::common::{Net, ms};

const MBPS: u64 = 20;

/// The goodput in Mbit/s of a CUBIC with this reaction to losses, and the mean of the others beside
/// it.
fn got(losses: Losses, link: &LinkConfig, others: &[&str], seed: u64) -> [f64; 2] {
    let mut net = Net::new(60, seed).warm_up(10);
    let there = net.link(link.clone());
    let back = net.link(LinkConfig::pure_delay(ms(20)));
    let route = [PathRoute { forward: vec![there], backward: vec![back] }];
    let mut engine = EngineConfig { congestion: "cubic".into(), ..EngineConfig::live() };
    engine.parameters.aimd.losses = losses;
    net.flow("ours", "cubic", &route).as_live(engine);
    for other in others {
        net.flow("theirs", other, &route);
    }
    for flow in &mut net.scenario.flows {
        flow.start_jitter = ms(1000);
    }
    let outcome = run(&net.scenario, &mut ()).expect("it runs");
    [outcome.flows[0].goodput.as_mbps_f64(), outcome.mean_goodput("theirs").as_mbps_f64()]
}

fn link(queue: impl Into<QueueConfig>) -> LinkConfig {
    LinkConfig::new(Bitrate::from_mbps(MBPS)).delay(ms(20)).queue(queue.into())
}

/// A normal jitter under which packets overtake each other, as with netem and over radio links.
fn jitter(scale_ms: u64) -> Jitter {
    Jitter::new(JitterDistribution::Normal, ms(scale_ms)).overtaking()
}

#[test]
fn random_losses_leave_most_of_a_link() {
    for probability in [0.001, 0.005, 0.02] {
        let lossy = link(QueueConfig::sojourn(ms(50))).loss(LossConfig::Random { probability });
        let [ours, _] = got(Losses::ByQueue, &lossy, &[], 1);
        let [cubic, _] = got(Losses::Congestion, &lossy, &[], 1);
        assert!(ours > 0.75 * MBPS as f64, "{probability}: {ours:.1} Mbit/s, CUBIC {cubic:.1}");
    }
}

#[test]
fn random_losses_leave_most_of_a_link_whose_delays_vary_by_more_than_a_queue() {
    // In parts of the link: without packets that overtake each other it has 0.87 where 0.5 % are lost.
    for (jitter_ms, probability, part) in [(5, 0.005, 0.7), (20, 0.005, 0.6), (20, 0.0, 0.8)] {
        let lossy =
            link(QueueConfig::sojourn(ms(200))).jitter(jitter(jitter_ms)).loss(LossConfig::Random { probability });
        let seeds: Vec<u64> = (1..=4).collect();
        let sum: f64 = seeds.par_iter().map(|seed| got(Losses::ByQueue, &lossy, &[], *seed)[0]).sum();
        assert!(sum > part * 4.0 * MBPS as f64, "{jitter_ms} ms, {probability}: {:.1} Mbit/s", sum / 4.0);
    }
}

/// The goodput of competitors beside us, relative to beside CUBIC, over some seeds.
fn left(link: &LinkConfig, others: &[&str]) -> f64 {
    let seeds: Vec<u64> = (1..=4).collect();
    let kept = |losses| seeds.par_iter().map(|seed| got(losses, link, others, *seed)[1]).sum::<f64>();
    kept(Losses::ByQueue) / kept(Losses::Congestion)
}

#[test]
fn a_queue_that_overflows_is_yielded_to_as_cubic_yields() {
    let in_order = Jitter::new(JitterDistribution::Exponential, ms(5));
    let red = RedConfig::gentle(QueueLimit::Sojourn(ms(20)), QueueLimit::Sojourn(ms(60)), 0.1);
    let links = [
        ("12 ms", link(QueueConfig::sojourn(ms(12)))),
        ("2 ms", link(QueueConfig::sojourn(ms(2)))),
        ("100 ms", link(QueueConfig::sojourn(ms(100)))),
        ("CoDel", link(CoDelConfig::default())),
        ("RED", link(red)),
        ("12 ms and jitter of 5 ms", link(QueueConfig::sojourn(ms(12))).jitter(jitter(5))),
        ("50 ms and jitter of 20 ms", link(QueueConfig::sojourn(ms(50))).jitter(jitter(20))),
        ("12 ms, and a delay that varies in order", link(QueueConfig::sojourn(ms(12))).jitter(in_order)),
    ];
    for (name, link) in links {
        for others in [&["cubic"][..], &["reno"], &["cubic"; 4]] {
            let left = left(&link, others);
            assert!(left > 0.8, "{name}, beside {others:?}: {left:.2}");
        }
    }
}

/// A policer has no queue. What it drops shows in that less is lost when less is sent.
#[test]
fn a_policer_is_yielded_to_as_cubic_yields() {
    for burst in [50_000, 200_000] {
        let policer = Policer { rate: Bitrate::from_mbps(MBPS), burst: ByteCount::new(burst) };
        let policed = LinkConfig::new(Bitrate::from_mbps(100)).delay(ms(20)).policer(policer);
        for others in [&["cubic"][..], &["cubic"; 4]] {
            let left = left(&policed, others);
            assert!(left > 0.8, "{burst} bytes, beside {others:?}: {left:.2}");
        }
    }
}
