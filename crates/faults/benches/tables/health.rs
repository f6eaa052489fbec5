//! The constants of the health of paths: what links that fail cost with each of them halved and doubled, over the real stack
//! in virtual time.
//!
//! `FAIRPATH_HEALTH=quick` takes fewer seeds. `FAIRPATH_HEALTH_OF=WORD` takes only the networks that have this word in their
//! name. `FAIRPATH_HEALTH_JSON=FILE` writes the table there, too.

use std::collections::BTreeMap;
use std::time::Duration;

use fairpath_core::{Bitrate, Estimate};
use fairpath_faults::{Cryptography, Impair, Side, Wire, World};
use fairpath_quic_core::streams::StreamsConfig;
use fairpath_quic_core::{EngineConfig, HealthParameters};
use rayon::prelude::*;

use crate::bulk::Bulk;

/// A constant, and how to scale it by a factor.
type Constant = (&'static str, fn(&mut HealthParameters, f64));

const CONSTANTS: &[Constant] = &[
    ("deaf", |all, times| all.deaf = all.deaf.mul_f64(times)),
    ("signs", |all, times| all.signs = (f64::from(all.signs) * times) as u32),
    ("busy datagrams", |all, times| all.busy_datagrams = (all.busy_datagrams as f64 * times) as u64),
    ("busy for", |all, times| all.busy_for = all.busy_for.mul_f64(times)),
    ("settled", |all, times| all.settled = all.settled.mul_f64(times)),
    ("dead after", |all, times| all.dead_after = all.dead_after.mul_f64(times)),
    ("outlived", |all, times| all.outlived = all.outlived.mul_f64(times)),
    ("renew after", |all, times| all.renew_after = all.renew_after.mul_f64(times)),
    ("unvalidated", |all, times| all.unvalidated = all.unvalidated.mul_f64(times)),
    ("probe opening", |all, times| all.probe_opening = all.probe_opening.mul_f64(times)),
    ("first words", |all, times| all.first_words = all.first_words.mul_f64(times)),
    ("reopen after", |all, times| all.reopen_after = all.reopen_after.mul_f64(times)),
];

const TIMES: [(f64, &str); 2] = [(0.5, "half"), (2.0, "twice")];

/// A network, and its cost.
type Network = (&'static str, fn(&EngineConfig, u64) -> f64);

/// Networks where little is sent, and the packets of both ends.
const AT_REST: &[Network] = &[
    ("at rest for 30 s after 1 MB", |engine, seed| packets(engine, seed, 0)),
    ("15 messages a second for 30 s after 1 MB", |engine, seed| packets(engine, seed, 15)),
];

/// Networks with links that fail, and what that costs in seconds.
const NETWORKS: &[Network] = &[
    ("the path of acknowledgements goes dark: 16 streams stand still", |engine, seed| {
        still(engine, seed, |world| world.set_up(0, false))
    }),
    ("the other path goes dark: the same", |engine, seed| still(engine, seed, |world| world.set_up(1, false))),
    ("each direction keeps one path: the same", |engine, seed| {
        still(engine, seed, |world| {
            world.set_there(0, false);
            world.set_back(1, false);
        })
    }),
    ("both paths get another port at a translator: the same", |engine, seed| {
        still(engine, seed, |world| (0..2).for_each(|way| _ = world.rebind(way)))
    }),
    ("a path dark for 1 s in every 3, for 18 s: what is lacking", flapping),
    ("a path dark for 2 s in every 8, for 16 s: what is lacking", twice),
    ("both paths dark for 2 s: 5 MB from then on", both),
    ("a path dark for 20 s: until it carries data again", back),
    ("a path that works for 0.5 s in every 2, for 20 s: what is lacking", flickers),
    ("both paths get another port and are dark a moment later, for 3 s: until both carry data again", rebound),
    ("a path dark while nothing is sent: 1 MB a moment later", |engine, seed| idle(engine, seed, 2)),
    ("a path dark for 20 s while nothing is sent: 1 MB then", |engine, seed| idle(engine, seed, 20)),
    ("the server's host stands still for 0.7 s in every 3, for 15 s: what is lacking", stalls),
    ("delays rise by 0.5 s for 1 s in every 4, for 16 s: what is lacking", late),
    ("30 % lost on the second link: until both paths are open", opening),
    ("300 kbit/s back on the path of acknowledgements: 20 MB", thin_way_back),
];

/// A difference that is noticed, in seconds and in packets.
const NOTICED: f64 = 0.05;
const NOTICED_PACKETS: f64 = 50.0;

const PATIENCE: Duration = Duration::from_secs(60);

/// The rate of a link.
const RATE: Bitrate = Bitrate::from_mbps(20);

pub(crate) fn table() {
    let is_quick = std::env::var("FAIRPATH_HEALTH").is_ok_and(|form| form == "quick");
    let word = std::env::var("FAIRPATH_HEALTH_OF").unwrap_or_default();
    let seeds: Vec<u64> = (1..=if is_quick { 2 } else { 4 }).collect();
    println!(
        "Seconds that links cost which fail, and packets at rest; with another value, how many more, where they are at least \
         {NOTICED} s and {NOTICED_PACKETS} packets"
    );
    let changed: Vec<HealthParameters> = variants().map(|(_, _, parameters)| parameters).collect();
    let mut lines = Vec::new();
    let mut changes: BTreeMap<&str, u32> = CONSTANTS.iter().map(|(name, _)| (*name, 0)).collect();
    let all = [(NETWORKS, "s", NOTICED), (AT_REST, "packets", NOTICED_PACKETS)];
    let all = all.iter().flat_map(|(networks, unit, noticed)| networks.iter().map(move |one| (one, *unit, *noticed)));
    for ((network, cost), unit, noticed) in all.filter(|((name, _), ..)| name.contains(&word)) {
        let run = |health: HealthParameters, seed| cost(&EngineConfig { health, ..EngineConfig::live() }, seed);
        let runs: Vec<(f64, Vec<f64>)> = seeds
            .par_iter()
            .map(|seed| {
                let default = run(HealthParameters::default(), *seed);
                (default, changed.par_iter().map(|parameters| run(*parameters, *seed) - default).collect())
            })
            .collect();
        let mut add = |what: String, samples: Vec<f64>| {
            let Some(Estimate { mean, half_width, .. }) = Estimate::of(samples.iter().copied()) else { return };
            println!("  {what:<100} {mean:.3} ± {:.3} {unit}", half_width.unwrap_or(f64::INFINITY));
            lines.push(serde_json::json!({ "what": what, "unit": unit, "samples": samples }));
        };
        add((*network).to_owned(), runs.iter().map(|(default, _)| *default).collect());
        for (at, (constant, times, _)) in variants().enumerate() {
            let samples: Vec<f64> = runs.iter().map(|(_, changed)| changed[at]).collect();
            let Some(Estimate { mean, half_width, .. }) = Estimate::of(samples.iter().copied()) else { continue };
            if mean.abs() >= noticed.max(half_width.unwrap_or(f64::INFINITY)) {
                *changes.entry(constant).or_default() += 1;
                add(format!("{constant}, {times}: more, {network}"), samples);
            }
        }
    }
    for (constant, count) in changes {
        println!("  {constant}: {count} of its rows show something");
        lines.push(
            serde_json::json!({ "what": format!("{constant}: rows that show something"), "unit": "", "value": count }),
        );
    }
    if let Some(file) = std::env::var_os("FAIRPATH_HEALTH_JSON") {
        let text = serde_json::to_string_pretty(&lines).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

fn variants() -> impl Iterator<Item = (&'static str, &'static str, HealthParameters)> {
    CONSTANTS.iter().flat_map(|(constant, change)| {
        TIMES.map(|(factor, times)| {
            let mut parameters = HealthParameters::default();
            change(&mut parameters, factor);
            (*constant, times, parameters)
        })
    })
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Two ends over two wires alike.
fn world(engine: &EngineConfig, seed: u64) -> World {
    World::protected_by(Cryptography::Null, &[Wire::new(20, 20); 2], engine, seed).without_trace().opened()
}

/// The same, where the client has always sent for a while.
fn sending(engine: &EngineConfig, seed: u64) -> World {
    let mut world = world(engine, seed);
    world.redials = true;
    world.client.send(u64::MAX);
    world.run_for(ms(2_000 + 173 * seed));
    world
}

fn seconds(time: Option<Duration>) -> f64 {
    time.unwrap_or(PATIENCE).as_secs_f64()
}

/// The longest that one of 16 streams stands still after something failed.
fn still(engine: &EngineConfig, seed: u64, fail: impl FnOnce(&mut World)) -> f64 {
    let mut world = world(engine, seed);
    for end in [&mut world.client, &mut world.server] {
        end.connection().expect("it is there").begin_streams(StreamsConfig::default());
    }
    world.run_for(ms(300));
    let mut bulk = Bulk::open(&mut world, 16);
    bulk.look_for(&mut world, ms(3_000 + 173 * seed));
    fail(&mut world);
    let (failed_at, mut had_at, mut longest) = (world.now, BTreeMap::new(), Duration::ZERO);
    while world.now < failed_at + ms(6_000) {
        let now = world.now;
        bulk.look(&mut world).into_iter().for_each(|id| _ = had_at.insert(id, now));
        let stood = bulk.ids.iter().map(|id| now - *had_at.get(id).unwrap_or(&failed_at));
        longest = longest.max(stood.max().unwrap_or_default());
    }
    longest.as_secs_f64()
}

/// The seconds that both links would need for what did not come, while something happens again and again.
fn lacks(engine: &EngineConfig, seed: u64, rounds: u32, happens: impl Fn(&mut World)) -> f64 {
    let mut world = sending(engine, seed);
    let (begun, before) = (world.now, world.server.received());
    (0..rounds).for_each(|_| happens(&mut world));
    let came = (world.server.received() - before) as f64;
    (world.now - begun).as_secs_f64() - 8.0 * came / (2.0 * RATE.as_bps() as f64)
}

fn flapping(engine: &EngineConfig, seed: u64) -> f64 {
    lacks(engine, seed, 6, |world| {
        world.set_up(1, false);
        world.run_for(ms(1_000));
        world.set_up(1, true);
        world.run_for(ms(2_000));
    })
}

fn twice(engine: &EngineConfig, seed: u64) -> f64 {
    lacks(engine, seed, 2, |world| {
        world.set_up(1, false);
        world.run_for(ms(2_000));
        world.set_up(1, true);
        world.run_for(ms(6_000));
    })
}

fn both(engine: &EngineConfig, seed: u64) -> f64 {
    let mut world = sending(engine, seed);
    (0..2).for_each(|path| world.set_up(path, false));
    world.run_for(ms(2_000));
    (0..2).for_each(|path| world.set_up(path, true));
    seconds(world.time_to_receive(false, 5_000_000, PATIENCE))
}

fn flickers(engine: &EngineConfig, seed: u64) -> f64 {
    lacks(engine, seed, 10, |world| {
        world.set_up(1, false);
        world.run_for(ms(1_500));
        world.set_up(1, true);
        world.run_for(ms(500));
    })
}

fn rebound(engine: &EngineConfig, seed: u64) -> f64 {
    let mut world = world(engine, seed);
    world.server.send(u64::MAX);
    world.run_for(ms(2_000 + 173 * seed));
    (0..2).for_each(|way| _ = world.rebind(way));
    world.run_for(ms(60));
    (0..2).for_each(|way| world.set_up(way, false));
    world.run_for(ms(3_000));
    (0..2).for_each(|way| world.set_up(way, true));
    let returned = world.now;
    world.run_until(PATIENCE, |world| (0..2).all(|way| world.data_left_at(way, false).is_some_and(|at| at > returned)));
    (world.now - returned).as_secs_f64()
}

fn back(engine: &EngineConfig, seed: u64) -> f64 {
    let mut world = sending(engine, seed);
    world.set_up(1, false);
    world.run_for(ms(20_000));
    world.set_up(1, true);
    let returned = world.now;
    world.run_until(PATIENCE, |world| world.data_left_at(1, true).is_some_and(|at| at > returned));
    (world.now - returned).as_secs_f64()
}

fn idle(engine: &EngineConfig, seed: u64, dark_s: u64) -> f64 {
    let mut world = world(engine, seed);
    world.redials = true;
    world.run_for(ms(15_000 + 173 * seed));
    world.set_up(0, false);
    world.run_for(ms(1_000 * dark_s));
    world.client.send(1_000_000);
    seconds(world.time_to_receive(false, 1_000_000, PATIENCE))
}

/// The packets of both ends in 30 s of so many messages a second, after 1 MB was sent.
fn packets(engine: &EngineConfig, seed: u64, messages: u32) -> f64 {
    let mut world = world(engine, seed);
    world.client.send(1_000_000);
    world.run_for(ms(3_000 + 173 * seed));
    let before = world.packets();
    for _ in 0..30 * messages.max(1) {
        if messages > 0 {
            world.client.send_message();
        }
        world.run_for(Duration::from_secs(1) / messages.max(1));
    }
    (world.packets() - before) as f64
}

fn stalls(engine: &EngineConfig, seed: u64) -> f64 {
    lacks(engine, seed, 5, |world| {
        world.stall(Side::Server, ms(700));
        world.run_for(ms(3_000));
    })
}

fn late(engine: &EngineConfig, seed: u64) -> f64 {
    lacks(engine, seed, 4, |world| {
        world.set_impair(1, Impair { delay: ms(500), ..Impair::default() });
        world.run_for(ms(1_000));
        world.mend(1);
        world.run_for(ms(3_000));
    })
}

fn opening(engine: &EngineConfig, seed: u64) -> f64 {
    let wires = [Wire::new(20, 20), Wire { loss: 0.3, ..Wire::new(20, 40) }];
    let mut world = World::protected_by(Cryptography::Null, &wires, engine, seed).without_trace();
    let begun = world.now;
    world.run_until(PATIENCE, |world| world.opened_ways().iter().all(|is_open| *is_open));
    (world.now - begun).as_secs_f64()
}

fn thin_way_back(engine: &EngineConfig, seed: u64) -> f64 {
    let mut world = world(engine, seed);
    world.set_rate_back(0, Bitrate::from_kbps(300));
    world.client.send(u64::MAX);
    seconds(world.time_to_receive(false, 20_000_000, PATIENCE))
}
