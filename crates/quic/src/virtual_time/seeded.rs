//! Faults drawn from a seed: while they last, anything may be slow, but nothing may break; once they have
//! ended, everything has to work again.

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{Bytes, EngineConfig};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{End, Paced, Wire, World};
use crate::transport::IDLE_TIMEOUT;

/// The seeds that are tried, unless `FAIRPATH_SEEDS` names others, as `100..200`.
const SEEDS: std::ops::Range<u64> = 0..100;

/// In this time faults begin.
const FAULTY: Duration = Duration::from_secs(8);

/// A fault lasts no longer.
const FAULT_MAX: Duration = Duration::from_secs(6);

/// What each sending end sends.
const BYTES: usize = 3_000_000;

/// Packets leave in bursts of so much at most, beyond a window.
const BURST: Bytes = Bytes::new(16 * 1_472);

/// A path that was closed is opened again at most so much later: the longest wait between attempts, the
/// longest between challenges, and round trips.
const REOPENED: Duration = Duration::from_secs(14);

/// What goes wrong on one wire, or is mended.
#[derive(Clone, Copy, Debug)]
enum Fault {
    There(bool),
    Back(bool),
    Both(bool),
    Rebind,
    Copy,
}

/// What a seed stands for.
#[derive(Debug)]
struct Scenario {
    wires: Vec<Wire>,
    client_sends: bool,
    server_sends: bool,
    late: bool,
    /// When what happens to which wire, in order.
    faults: Vec<(Duration, usize, Fault)>,
}

impl Scenario {
    fn of(seed: u64) -> Self {
        let mut luck = ChaCha8Rng::seed_from_u64(seed);
        let count = luck.random_range(1..=3);
        let wires: Vec<Wire> = (0..count).map(|_| wire(&mut luck)).collect();
        let mut faults = Vec::new();
        for _ in 0..luck.random_range(1..=6) {
            let at = FAULTY.mul_f64(luck.random());
            let end = at + FAULT_MAX.mul_f64(luck.random());
            let way = luck.random_range(0..count);
            let (fault, mended) = match luck.random_range(0..8) {
                0 | 1 => (Fault::There(false), Some(Fault::There(true))),
                2 | 3 => (Fault::Back(false), Some(Fault::Back(true))),
                4 | 5 => (Fault::Both(false), Some(Fault::Both(true))),
                6 => (Fault::Rebind, None),
                _ => (Fault::Copy, None),
            };
            faults.push((at, way, fault));
            faults.extend(mended.map(|mended| (end, way, mended)));
        }
        faults.sort_by_key(|(at, ..)| *at);
        let direction = luck.random_range(0..3);
        Self { wires, client_sends: direction != 0, server_sends: direction != 1, late: luck.random(), faults }
    }

    fn run(&self, seed: u64) {
        let mut world = World::new(&self.wires, &EngineConfig::live(), seed);
        if self.late {
            (world.client.hears, world.server.hears) = (Paced::Late, Paced::Late);
        }
        let connected = |world: &World| world.client.is_connected() && world.server.is_connected();
        assert!(world.run_until(Duration::from_secs(5), connected), "not connected");
        if self.client_sends {
            world.client.send(BYTES);
        }
        if self.server_sends {
            world.server.send(BYTES);
        }
        let begun = world.now;
        for &(at, way, fault) in &self.faults {
            world.run_for((begun + at).saturating_duration_since(world.now));
            act(&mut world, way, fault);
        }
        for way in 0..self.wires.len() {
            world.set_up(way, true);
            world.mend(way);
        }
        // Probes come at growing intervals, so a connection may die a little earlier than it has to.
        let may_die = self.silence() > IDLE_TIMEOUT - Duration::from_secs(3);
        if !may_die {
            self.check_liveness(&mut world);
        }
        for (end, excess) in [("client", world.client.excess), ("server", world.server.excess)] {
            assert!(excess <= BURST, "the {end} had {excess:?} in flight beyond the window");
        }
    }

    /// The longest time in which nothing could arrive at one of the ends.
    fn silence(&self) -> Duration {
        let mut up = vec![[true; 2]; self.wires.len()];
        let mut silent_since = [None; 2];
        let mut longest = Duration::ZERO;
        for &(at, way, fault) in &self.faults {
            match fault {
                Fault::There(is_up) => up[way][0] = is_up,
                Fault::Back(is_up) => up[way][1] = is_up,
                Fault::Both(is_up) => up[way] = [is_up; 2],
                Fault::Rebind | Fault::Copy => {}
            }
            for direction in 0..2 {
                let silent = up.iter().all(|way| !way[direction]);
                let since = silent_since[direction].get_or_insert(at);
                longest = longest.max(at - *since);
                if !silent {
                    silent_since[direction] = None;
                }
            }
        }
        longest
    }

    /// Everything arrives, and every path comes back.
    fn check_liveness(&self, world: &mut World) {
        let slowest = self.wires.iter().map(|wire| wire.rate).min().expect("a wire");
        // Both directions at once, at half the rate of the slowest wire, after all have come back.
        let bound = REOPENED + Bytes::new(BYTES as u64) / slowest.scaled(0.5);
        let (to_server, to_client) = (self.client_sends, self.server_sends);
        let all = |world: &World| {
            let whole = |received: u64, sends: bool| !sends || received == BYTES as u64;
            whole(world.server.received, to_server) && whole(world.client.received, to_client)
        };
        // What a closed path held is sent again after three of its probe timeouts, and after an outage its
        // round-trip time may seem to be seconds.
        let arrived = world.run_until(bound, all) || world.run_until(world.client.drains.max(world.server.drains), all);
        let state = |world: &World| {
            let ends = [&world.client, &world.server];
            let slots = ends.map(|end| end.policy.as_ref().map(|policy| format!("{:#?}", policy.slots())));
            let ended = (&world.client.ended, &world.server.ended);
            format!("{ended:?} {}", slots.map(Option::unwrap_or_default).join("\n"))
        };
        let received = (world.server.received, world.client.received);
        assert!(arrived, "bytes at the server and at the client after {bound:?}: {received:?} {}", state(world));
        let count = self.wires.len();
        let usable = |world: &World| {
            let usable = |end: &End| end.snapshots(world.now).iter().filter(|path| path.usable).count();
            usable(&world.client) == count && usable(&world.server) == count
        };
        assert!(world.run_until(REOPENED, usable), "not all paths came back: {}", state(world));
    }
}

fn wire(luck: &mut ChaCha8Rng) -> Wire {
    let rate = Bitrate::from_mbps(luck.random_range(2..=10));
    let delay = Duration::from_millis(luck.random_range(2..=60));
    let queue = rate * Duration::from_millis(luck.random_range(40..=300));
    Wire { rate, delay, queue, loss: if luck.random_bool(0.3) { 0.01 } else { 0.0 } }
}

fn act(world: &mut World, way: usize, fault: Fault) {
    match fault {
        Fault::There(up) => world.set_there(way, up),
        Fault::Back(up) => world.set_back(way, up),
        Fault::Both(up) => world.set_up(way, up),
        Fault::Rebind => {
            world.rebind(way);
        }
        Fault::Copy => world.copy_next_from("192.0.2.66:6666".parse().expect("an address")),
    }
}

fn seeds() -> std::ops::Range<u64> {
    let Ok(named) = std::env::var("FAIRPATH_SEEDS") else { return SEEDS };
    let (first, last) = named.split_once("..").expect("FAIRPATH_SEEDS is like 100..200");
    first.parse().expect("a number")..last.parse().expect("a number")
}

#[test]
fn nothing_breaks_under_seeded_faults_and_everything_works_after() {
    let mut failed = Vec::new();
    for seed in seeds() {
        let scenario = Scenario::of(seed);
        if std::panic::catch_unwind(|| scenario.run(seed)).is_err() {
            let next = seed + 1;
            eprintln!("seed {seed}: {scenario:#?}");
            eprintln!("again: FAIRPATH_SEEDS={seed}..{next} cargo test -p fairpath-quic --lib seeded_faults");
            failed.push(seed);
        }
    }
    assert!(failed.is_empty(), "failed with seeds {failed:?}");
}
