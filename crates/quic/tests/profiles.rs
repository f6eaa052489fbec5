//! Pairs of links on which public bonds are slower than their better link, in real time over emulated links.
//!
//! The pairs are those of mqvpn's report of 2026-06-18 (§3.3), with normal jitter that reorders; FAIRPATH_PROFILES
//! names those to run, or `all`.

mod common;

use std::time::{Duration, Instant};

use common::{Pair, receive, send};
use fairpath_core::Bitrate;
use fairpath_emu::{Emulator, Jitter, JitterDistribution, LinkConfig, LossConfig, QueueConfig};
use fairpath_quic::EngineConfig;

/// One transfer, as there.
const SIZE: usize = 20 << 20;

/// netem's default.
const QUEUE_PACKETS: usize = 1_000;

/// A link: rate in Mbit/s, delay one way and its deviation in ms, share of packets lost.
#[derive(Clone, Copy)]
struct Link(u64, u64, u64, f64);

const PROFILES: [(&str, [Link; 2]); 16] = [
    ("baseline", [Link(50, 20, 0, 0.0), Link(50, 20, 0, 0.0)]),
    ("rtt_40", [Link(50, 20, 0, 0.0), Link(50, 40, 0, 0.0)]),
    ("rtt_70", [Link(50, 20, 0, 0.0), Link(50, 70, 0, 0.0)]),
    ("rtt_120", [Link(50, 20, 0, 0.0), Link(50, 120, 0, 0.0)]),
    ("rtt_320", [Link(50, 20, 0, 0.0), Link(50, 320, 0, 0.0)]),
    ("jit_5", [Link(50, 20, 5, 0.0), Link(50, 20, 5, 0.0)]),
    ("jit_20", [Link(50, 20, 20, 0.0), Link(50, 20, 20, 0.0)]),
    ("loss_05", [Link(50, 20, 0, 0.005), Link(50, 20, 0, 0.005)]),
    ("loss_2", [Link(50, 20, 0, 0.02), Link(50, 20, 0, 0.02)]),
    ("bw_4to1", [Link(50, 20, 0, 0.0), Link(12, 20, 0, 0.0)]),
    ("bw_10to1", [Link(100, 20, 0, 0.0), Link(10, 20, 0, 0.0)]),
    ("dual_lte", [Link(40, 30, 5, 0.005), Link(25, 45, 8, 0.005)]),
    ("fiber_lte", [Link(300, 8, 0, 0.0), Link(30, 40, 8, 0.005)]),
    ("lte_starlink", [Link(40, 35, 8, 0.0), Link(100, 50, 25, 0.01)]),
    ("lte_geo", [Link(40, 35, 0, 0.0), Link(20, 320, 20, 0.005)]),
    ("congested", [Link(20, 50, 20, 0.02), Link(15, 60, 25, 0.02)]),
];

/// Those that are run where nobody names others: what a bond gains, and where one path alone is nearly everything.
const USUAL: &str = "baseline,rtt_70,rtt_320,bw_4to1,bw_10to1";

fn config(Link(mbps, delay, deviation, loss): Link) -> LinkConfig {
    let ms = Duration::from_millis;
    let mut config =
        LinkConfig::new(Bitrate::from_mbps(mbps)).delay(ms(delay)).queue(QueueConfig::packets(QUEUE_PACKETS));
    if deviation > 0 {
        config = config.jitter(Jitter::new(JitterDistribution::Normal, ms(deviation)).overtaking());
    }
    if loss > 0.0 {
        config = config.loss(LossConfig::Random { probability: loss });
    }
    config
}

/// How fast a transfer over these links is, in Mbit/s, once all of them are in use.
async fn goodput(scheduler: &str, links: &[Link], seed: u64) -> f64 {
    let mut emulator = None;
    let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
    let pair = Pair::with(engine, &["127.0.0.1"], |addresses| {
        let mut builder = Emulator::builder(seed);
        for (path, link) in links.iter().enumerate() {
            let there = builder.link(&format!("there {path}"), &config(*link)).expect("a link");
            let back = builder.link(&format!("back {path}"), &config(*link)).expect("a link");
            builder.path(&[there], &[back], addresses[0]).expect("a path");
        }
        let started = builder.start().expect("an emulation");
        let relays = started.relays().to_vec();
        emulator = Some(started);
        relays
    })
    .await;
    assert!(pair.client.paths_open(links.len(), Duration::from_secs(10)).await);
    let begun = Instant::now();
    let receiving = tokio::spawn(receive(pair.server.clone(), SIZE));
    send(&pair.client, SIZE).await.expect("the data leaves");
    receiving.await.expect("no panic").expect("the data arrives, byte for byte");
    let took = begun.elapsed();
    pair.client.close(0, "done");
    SIZE as f64 * 8e-6 / took.as_secs_f64()
}

/// 20 MiB over each pair: each link alone, and both with each of the two schedulers that one would choose.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes of real time, in which nothing else may want the processors"]
async fn no_bond_is_slower_than_its_better_link_in_real_time() {
    let wanted = std::env::var("FAIRPATH_PROFILES").unwrap_or_else(|_| USUAL.into());
    let mut slower = Vec::new();
    for (name, links) in PROFILES {
        if wanted != "all" && wanted.split(',').all(|one| one != name) {
            continue;
        }
        let mut rates = Vec::new();
        for (scheduler, links) in
            [("arrival", &links[..1]), ("arrival", &links[1..]), ("min_rtt", &links[..]), ("arrival", &links[..])]
        {
            rates.push(goodput(scheduler, links, 1).await);
        }
        let single = rates[0].max(rates[1]);
        println!(
            "{name:12} A {:5.1}, B {:5.1}, min_rtt {:5.1} ({:.2}), arrival {:5.1} ({:.2}) Mbit/s",
            rates[0],
            rates[1],
            rates[2],
            rates[2] / single,
            rates[3],
            rates[3] / single
        );
        if rates[3] < 0.97 * single {
            slower.push(name);
        }
    }
    assert!(slower.is_empty(), "slower than the better link: {slower:?}");
}
