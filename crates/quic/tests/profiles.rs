//! Pairs of links on which public bonds are slower than their better link, in real time over emulated links.
//!
//! The pairs are those of `scenarios/profiles/`, with normal jitter that reorders; FAIRPATH_PROFILES names those to run,
//! or `all`.

mod common;

use std::path::Path;
use std::time::{Duration, Instant};

use common::{Pair, receive, send};
use fairpath_emu::{Emulator, LinkConfig};
use fairpath_quic::EngineConfig;
use fairpath_scenario::{Scenario, ScenarioFile};

/// One transfer, as there.
const SIZE: usize = 20 << 20;

const PROFILES: [&str; 16] = [
    "baseline",
    "rtt_40",
    "rtt_70",
    "rtt_120",
    "rtt_320",
    "jit_5",
    "jit_20",
    "loss_05",
    "loss_2",
    "bw_4to1",
    "bw_10to1",
    "dual_lte",
    "fiber_lte",
    "lte_starlink",
    "lte_geo",
    "congested",
];

/// Those that are run where nobody names others: what a bond gains, and where one path alone is nearly everything.
const USUAL: &str = "baseline,rtt_70,rtt_320,bw_4to1,bw_10to1";

/// The scenario of that name.
fn scenario(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/profiles/{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = ScenarioFile::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    file.expand(Some(1)).unwrap_or_else(|error| panic!("{error}"))
}

/// Its two links.
fn links(scenario: &Scenario) -> [LinkConfig; 2] {
    let paths = &scenario.flows[0].paths;
    [0, 1].map(|path| scenario.links[paths[path].forward[0].0 as usize].config.clone())
}

/// Whether a profile is to be run.
fn is_wanted(name: &str) -> bool {
    let wanted = std::env::var("FAIRPATH_PROFILES").unwrap_or_else(|_| USUAL.into());
    wanted == "all" || wanted.split(',').any(|one| one == name)
}

/// How fast a transfer over these links is, in Mbit/s, once all of them are in use.
async fn goodput(scheduler: &str, links: &[LinkConfig], seed: u64) -> f64 {
    let mut emulator = None;
    let engine = EngineConfig { scheduler: scheduler.into(), ..EngineConfig::live() };
    let pair = Pair::with(engine, &["127.0.0.1"], |addresses| {
        let mut builder = Emulator::builder(seed);
        for (path, link) in links.iter().enumerate() {
            let there = builder.link(&format!("there {path}"), link).expect("a link");
            let back = builder.link(&format!("back {path}"), link).expect("a link");
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
    let mut slower = Vec::new();
    for name in PROFILES.into_iter().filter(|name| is_wanted(name)) {
        let links = links(&scenario(name));
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
