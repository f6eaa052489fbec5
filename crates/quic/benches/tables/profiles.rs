//! Pairs of links on which public bonds are slower than their better link, in real time over emulated links.
//!
//! The pairs are those of `scenarios/profiles/`, with normal jitter that reorders; FAIRPATH_PROFILES names those to run,
//! or `all`.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Pair, receive, send};
use fairpath_emu::{Emulator, LinkConfig, LossConfig};
use fairpath_quic::EngineConfig;
use fairpath_scenario::{Scenario, ScenarioFile};

/// One transfer, as there.
const SIZE: usize = 20 << 20;

/// A transfer that is as long as that, whatever the links carry.
const MINUTE: Duration = Duration::from_secs(60);
const ENDLESS: usize = 100 << 30;

/// The goal of a transfer of a minute, as a share of the sum of both links alone: without and with
/// random losses.
const OF_THE_SUM: [f64; 2] = [0.90, 0.80];

const PROFILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/profiles");

/// Those that are run where nobody names others: what a bond gains, and where one path alone is nearly everything.
const USUAL: &str = "baseline,rtt_70,rtt_320,bw_4to1,bw_10to1";

/// The scenario of that name.
fn scenario(name: &str) -> Scenario {
    let path = Path::new(PROFILES).join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = ScenarioFile::parse(&text, name).unwrap_or_else(|error| panic!("{error}"));
    file.expand(Some(1)).unwrap_or_else(|error| panic!("{error}"))
}

/// Its two links.
fn links(scenario: &Scenario) -> [LinkConfig; 2] {
    let paths = &scenario.flows[0].paths;
    [0, 1].map(|path| scenario.links[paths[path].forward[0].0 as usize].config.clone())
}

/// The profiles to be run, in order.
fn wanted() -> Vec<String> {
    let wanted = std::env::var("FAIRPATH_PROFILES").unwrap_or_else(|_| USUAL.into());
    let files = std::fs::read_dir(PROFILES).expect(PROFILES).map(|file| file.expect(PROFILES).path());
    let names = files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> =
        names.filter(|name| wanted == "all" || wanted.split(',').any(|one| one == name)).collect();
    names.sort();
    assert!(!names.is_empty(), "FAIRPATH_PROFILES={wanted}: none is in {PROFILES}");
    names
}

/// A connection over these links, all of them in use.
async fn connected(scheduler: &str, links: &[LinkConfig], seed: u64) -> (Pair, Emulator) {
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
    (pair, emulator.expect("it was started"))
}

/// How fast a transfer over these links is, in Mbit/s, once all of them are in use.
async fn goodput(scheduler: &str, links: &[LinkConfig], seed: u64) -> f64 {
    let (pair, _emulator) = connected(scheduler, links, seed).await;
    let begun = Instant::now();
    let receiving = tokio::spawn(receive(pair.server.clone(), SIZE));
    send(&pair.client, SIZE).await.expect("the data leaves");
    receiving.await.expect("no panic").expect("the data arrives, byte for byte");
    let took = begun.elapsed();
    pair.client.close(0, "done");
    SIZE as f64 * 8e-6 / took.as_secs_f64()
}

/// How much of a transfer without end arrives in a minute over these links, in Mbit/s, with the default.
async fn minute(links: &[LinkConfig], seed: u64) -> f64 {
    let (pair, _emulator) = connected(&EngineConfig::live().scheduler, links, seed).await;
    let sender = pair.client.clone();
    let sending = tokio::spawn(async move { send(&sender, ENDLESS).await });
    let end = Instant::now() + MINUTE;
    let mut received = 0;
    while let Ok(record) = tokio::time::timeout_at(end.into(), pair.server.recv_record()).await {
        received += record.expect("the data arrives").data.len();
    }
    sending.abort();
    pair.client.close(0, "done");
    received as f64 * 8e-6 / MINUTE.as_secs_f64()
}

/// 20 MiB over each pair: each link alone, and both with each of the two schedulers that one would choose.
pub(crate) async fn better_link() {
    let mut slower = Vec::new();
    for name in wanted() {
        let links = links(&scenario(&name));
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

/// A minute over each pair, in parts of the sum of each link alone. The links alone are tried at the same time: both
/// together are what the bond takes.
pub(crate) async fn minute_of_the_sum() {
    let mut less = Vec::new();
    for name in wanted() {
        let links = links(&scenario(&name));
        let alone = tokio::join!(minute(&links[..1], 1), minute(&links[1..], 2));
        let both = minute(&links, 1).await;
        let of_the_sum = both / (alone.0 + alone.1);
        println!("{name:12} A {:5.1}, B {:5.1}, both {both:5.1} Mbit/s: {of_the_sum:.2} of the sum", alone.0, alone.1);
        let goal = OF_THE_SUM[usize::from(links.iter().any(|link| link.loss != LossConfig::None))];
        if of_the_sum < goal {
            less.push(name);
        }
    }
    assert!(less.is_empty(), "less of the sum than the goal: {less:?}");
}
