//! The ablation of the default over the real stack, in virtual time: what each mechanism brings where policies of paths,
//! receipts and acknowledgements are those of the product. That of the simulator is `fairpath lab run default/ablation`.
//!
//! It stands here, and not in the lab: faults are, and Python's package, which has the lab, would take in a stack of TLS.
//!
//! `FAIRPATH_ABLATION=quick` takes fewer seeds. `FAIRPATH_ABLATION_OF=WORD` takes only what has this word in its name, a
//! network or a mechanism. `FAIRPATH_ABLATION_JSON=FILE` writes the samples there, too.

use std::collections::BTreeMap;
use std::time::Duration;

use fairpath_core::{Bitrate, Estimate};
use fairpath_faults::{Crowd, Cryptography, Wire, World};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_quic_core::streams::StreamsConfig;
use fairpath_quic_core::{Coupling, EngineConfig};
use rayon::prelude::*;

use crate::bulk::Bulk;
use crate::cells::{LOOK, flow};

/// A mechanism, and how it is taken out.
type Mechanism = (&'static str, fn(&mut EngineConfig));

const MECHANISMS: &[Mechanism] = &[
    ("coupling", |engine| engine.coupling = Coupling::Never),
    ("arrival", |engine| engine.scheduler = "min_rtt".into()),
    ("losses by queue", |engine| engine.parameters.aimd.losses = Default::default()),
    ("HyStart++", |engine| engine.parameters.aimd.slow_start = Default::default()),
    ("dips", |engine| engine.dips = false),
    ("steady rates", |engine| engine.without.steady_rates = true),
    ("doubts", |engine| engine.without.doubts = true),
];

/// A network, and the cost of the default in it: the less, the better.
type Network = (&'static str, fn(&EngineConfig, u64) -> f64);

const NETWORKS: &[Network] = &[
    ("two links: seconds for 10 MB at the rate of 8 s", separate),
    ("a shared link beside CUBIC: unfairness", shared),
    ("a fifth of a shared link, beside CUBIC: 1 and the time not found", |engine, seed| light(engine, true, seed)),
    ("a fifth of two links, beside CUBIC: 1 and the time taken for one", |engine, seed| light(engine, false, seed)),
    ("the path of acknowledgements goes dark: seconds that streams stand still", |engine, seed| dark(engine, 0, seed)),
    ("the other path goes dark: the same", |engine, seed| dark(engine, 1, seed)),
    ("both are dark for 2 s: seconds for 5 MB from then on", |engine, seed| outage(engine, false, seed)),
    ("the same, while somebody copies packets and passes them on", |engine, seed| outage(engine, true, seed)),
];

const LINK: Bitrate = Bitrate::from_mbps(20);

pub(crate) fn table() {
    let is_quick = std::env::var("FAIRPATH_ABLATION").is_ok_and(|form| form == "quick");
    let seeds = 1..=if is_quick { 3 } else { 10 };
    println!(
        "The cost with all, and in parts of it the cost without: above 1 the mechanism helps; means and 95 % intervals"
    );
    let mut lines = Vec::new();
    let word = std::env::var("FAIRPATH_ABLATION_OF").unwrap_or_default();
    let is_meant = |name: &str| name.contains(&word);
    let is_mechanism = MECHANISMS.iter().any(|(name, _)| is_meant(name) && !word.is_empty());
    let mechanisms: Vec<&Mechanism> = MECHANISMS.iter().filter(|(name, _)| !is_mechanism || is_meant(name)).collect();
    for (network, cost) in NETWORKS.iter().filter(|(name, _)| is_mechanism || is_meant(name)) {
        let runs: Vec<(f64, Vec<f64>)> = seeds
            .clone()
            .into_par_iter()
            .map(|seed| {
                let all = cost(&EngineConfig::live(), seed);
                let without = mechanisms.par_iter().map(|(_, take_out)| {
                    let mut engine = EngineConfig::live();
                    take_out(&mut engine);
                    cost(&engine, seed) / all
                });
                (all, without.collect())
            })
            .collect();
        let mut add = |what: &str, samples: Vec<f64>| {
            let Some(Estimate { mean, half_width, .. }) = Estimate::of(samples.iter().copied()) else { return };
            println!("  {what:<24} {mean:.3} ± {:.3}", half_width.unwrap_or(f64::INFINITY));
            let what = format!("{network}, {what}");
            lines.push(serde_json::json!({ "what": what, "unit": "", "samples": samples }));
        };
        println!("{network}");
        add("with all", runs.iter().map(|(all, _)| *all).collect());
        for (at, (name, _)) in mechanisms.iter().enumerate() {
            add(&format!("without {name}"), runs.iter().map(|(_, without)| without[at]).collect());
        }
    }
    if let Some(file) = std::env::var_os("FAIRPATH_ABLATION_JSON") {
        let text = serde_json::to_string_pretty(&lines).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The scene of the demo with two links for one connection.
fn separate(engine: &EngineConfig, seed: u64) -> f64 {
    let mut crowd = Crowd::new(seed);
    let paths = ["link 1", "link 2"].map(|name| (link(&mut crowd, name, 50), Duration::from_millis(20)));
    let ours = crowd.join(engine, &paths);
    let [bytes, _] = received(&mut crowd, [ours, ours], [4, 8]);
    8.0 * 10e6 / bytes
}

/// The scene of the demo with one link for both paths and somebody else's CUBIC.
fn shared(engine: &EngineConfig, seed: u64) -> f64 {
    let mut crowd = Crowd::new(seed);
    let path = (link(&mut crowd, "link", 50), Duration::from_millis(20));
    let theirs = crowd.join(&flow("cubic"), &[path]);
    crowd.run_for(Duration::from_millis(1_000 + 173 * seed));
    let ours = crowd.join(engine, &[path, path]);
    let [ours, theirs] = received(&mut crowd, [ours, theirs], [6, 20]);
    (ours / theirs).max(theirs / ours)
}

/// An application that sends a steady fifth of what its links carry, on both paths, beside a CUBIC on each link.
fn light(engine: &EngineConfig, is_shared: bool, seed: u64) -> f64 {
    const TICK: Duration = Duration::from_millis(20);
    let mut crowd = Crowd::new(seed);
    let first = link(&mut crowd, "link 1", 100);
    let links = if is_shared { vec![first] } else { vec![first, link(&mut crowd, "link 2", 100)] };
    let round_trip = Duration::from_millis(40);
    links.iter().for_each(|link| _ = crowd.join(&flow("cubic"), &[(*link, round_trip)]));
    crowd.run_for(Duration::from_millis(1_000 + 173 * seed));
    // Both paths carry their part, however long their queues are.
    let engine = EngineConfig { scheduler: "round_robin".into(), ..engine.clone() };
    let ours = crowd.join_silent(&engine, &[(first, round_trip), (links[links.len() - 1], round_trip)]);
    let rate = LINK.scaled(0.2 * links.len() as f64);
    let (mut together, mut looks) = (0_u32, 0_u32);
    let end = crowd.elapsed() + Duration::from_secs(40);
    while crowd.elapsed() < end {
        crowd.send(ours, (rate * TICK).get());
        crowd.run_for(TICK);
        together += u32::from(crowd.is_together(ours));
        looks += 1;
    }
    let together = f64::from(together) / f64::from(looks);
    1.0 + if is_shared { 1.0 - together } else { together }
}

/// The longest standstill of 16 streams, in seconds, when this path of two goes dark.
fn dark(engine: &EngineConfig, path: usize, seed: u64) -> f64 {
    let mut world = world(engine, seed);
    for end in [&mut world.client, &mut world.server] {
        end.connection().expect("it is there").begin_streams(StreamsConfig::default());
    }
    world.run_for(Duration::from_millis(300));
    let mut bulk = Bulk::open(&mut world, 16);
    bulk.look_for(&mut world, Duration::from_millis(4_000 + 173 * seed));
    world.set_up(path, false);
    let (dark_at, mut had_at, mut longest) = (world.now, BTreeMap::new(), Duration::ZERO);
    while world.now < dark_at + Duration::from_secs(4) {
        let now = world.now;
        bulk.look(&mut world).into_iter().for_each(|id| _ = had_at.insert(id, now));
        let stood = bulk.ids.iter().map(|id| now - *had_at.get(id).unwrap_or(&dark_at));
        longest = longest.max(stood.max().unwrap_or_default());
    }
    longest.as_secs_f64()
}

/// The seconds until 5 MB have arrived after both paths were dark, in which somebody copies packets, or not.
fn outage(engine: &EngineConfig, is_copied: bool, seed: u64) -> f64 {
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut world = world(engine, seed);
    world.redials = true;
    world.client.send(u64::MAX);
    world.run_for(Duration::from_millis(3_000 + 173 * seed));
    (0..2).for_each(|path| world.set_up(path, false));
    for _ in 0..4 {
        world.run_for(Duration::from_millis(500));
        if is_copied {
            world.attack();
        }
    }
    (0..2).for_each(|path| world.set_up(path, true));
    world.time_to_receive(false, 5_000_000, PATIENCE).unwrap_or(PATIENCE).as_secs_f64()
}

/// Two ends over two wires alike.
fn world(engine: &EngineConfig, seed: u64) -> World {
    World::protected_by(Cryptography::Null, &[Wire::new(20, 20); 2], engine, seed).without_trace().opened()
}

fn link(crowd: &mut Crowd, name: &str, queue_ms: u64) -> fairpath_net::LinkId {
    crowd.link(name, &LinkConfig::new(LINK).queue(QueueConfig::sojourn(Duration::from_millis(queue_ms))))
}

/// The bytes of two connections that arrived in the second of two times, given in seconds.
fn received(crowd: &mut Crowd, members: [usize; 2], [start_up, measured]: [u64; 2]) -> [f64; 2] {
    let pass = |crowd: &mut Crowd, seconds: u64| {
        let end = crowd.elapsed() + Duration::from_secs(seconds);
        while crowd.elapsed() < end {
            crowd.run_for(LOOK);
        }
        members.map(|member| crowd.received(member))
    };
    let before = pass(crowd, start_up);
    let after = pass(crowd, measured);
    assert_eq!(crowd.violation(), None);
    [0, 1].map(|at| (after[at] - before[at]) as f64)
}
