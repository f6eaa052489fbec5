//! A scenario from a seed: wires, traffic, and a schedule of faults. While faults last anything may be slow,
//! but nothing may break (safety); once they have ended, everything has to work again (liveness).

use std::fmt;
use std::time::Duration;

use fairpath_core::{Bitrate, Bytes, PathId};
use fairpath_net::{Impairments, Reorder};
use fairpath_quic_core::{EngineConfig, IDLE_TIMEOUT, PathSnapshot};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::end::{End, Host};
use crate::pinned::Cryptography;
use crate::world::{Impair, Wire, World};

/// In this time faults begin.
const FAULTY: Duration = Duration::from_secs(8);

/// A fault lasts no longer.
const FAULT_MAX: Duration = Duration::from_secs(6);

/// The least that each sending end sends.
const BYTES: u64 = 1_000_000;

/// A path that was closed is opened again at most so much later: the longest wait between attempts, the
/// longest between challenges, and round trips.
const REOPENED: Duration = Duration::from_secs(14);

/// So much arrives on a path that carries data, and not on one that only gives signs of life.
const CARRIED: Bytes = Bytes::new(30_000);

/// A handshake takes no longer where nothing is lost.
const CONNECTED: Duration = Duration::from_secs(5);

/// What goes wrong, or is mended, on one wire or at one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The direction to the server is cut (false) or mended.
    There(usize, bool),
    /// The direction to the client.
    Back(usize, bool),
    /// Both.
    Both(usize, bool),
    /// Every wire.
    All(bool),
    /// The translator gives the client another port there.
    Rebind(usize),
    /// On every wire.
    RebindAll,
    /// The old port still leads to the client for a while.
    RebindSoftly(usize),
    /// Somebody copies a packet and sends it from elsewhere.
    Copy,
    /// Packets of the wire are impaired; the default mends them.
    Impair(usize, Impair),
    /// The server's host stands still.
    StallServer(Duration),
    /// The client's.
    StallClient(Duration),
    /// An attacker sends what he has seen and what he made up.
    Attack,
}

/// A fault and when it comes, counted from the handshake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled {
    /// When.
    pub at: Duration,
    /// What.
    pub fault: Fault,
    /// Which fault this mends or is part of: faults are dropped as wholes.
    pub whole: usize,
}

/// What a seed stands for.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// The wires.
    pub wires: Vec<Wire>,
    /// What the client sends of bulk, in bytes.
    pub client_sends: u64,
    /// What the server does.
    pub server_sends: u64,
    /// Whether both ends send a message now and then.
    pub messages: bool,
    /// How the hosts keep time.
    pub host: Host,
    /// The share of packets that are lost before the connection is made.
    pub handshake_loss: f64,
    /// What protects packets.
    pub cryptography: Cryptography,
    /// What happens, in order.
    pub faults: Vec<Scheduled>,
}

/// What came of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// A digest of every datagram that left: when, on which end, and what.
    pub trace: blake3::Hash,
    /// How much time has passed in it.
    pub virtual_time: Duration,
    /// Whether the connection had to live to the end: where both directions were silent for too long it may die.
    pub had_to_live: bool,
}

/// What may not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let mut luck = ChaCha8Rng::seed_from_u64(seed);
        let count = luck.random_range(1..=4);
        let wires: Vec<Wire> = (0..count).map(|_| wire(&mut luck)).collect();
        let mut faults = Vec::new();
        for whole in 0..luck.random_range(1..=7) {
            draw(&mut luck, count, whole, &mut faults);
        }
        faults.sort_by_key(|scheduled| scheduled.at);
        let direction = luck.random_range(0..3);
        let bytes = BYTES * luck.random_range(1..=4);
        Self {
            seed,
            wires,
            client_sends: if direction != 0 { bytes } else { 0 },
            server_sends: if direction != 1 { bytes } else { 0 },
            messages: luck.random(),
            host: if luck.random() { Host::Late } else { Host::Prompt },
            handshake_loss: if luck.random_bool(0.2) { 0.2 } else { 0.0 },
            cryptography: Cryptography::default(),
            faults,
        }
    }

    /// Runs it.
    pub fn run(&self) -> Result<Outcome, Failure> {
        let mut wires = self.wires.clone();
        wires.iter_mut().for_each(|wire| wire.loss = wire.loss.max(self.handshake_loss));
        let mut world = World::protected_by(self.cryptography, &wires, &EngineConfig::live(), self.seed);
        (world.client.host, world.server.host) = (self.host, self.host);
        let connected = |world: &mut World| world.client.is_connected() && world.server.is_connected();
        if !world.run_until(CONNECTED, connected) {
            return match self.handshake_loss > 0.0 {
                true => Ok(self.outcome(&world, false)),
                false => Err(Failure(format!("not connected in {CONNECTED:?}"))),
            };
        }
        for (way, wire) in self.wires.iter().enumerate() {
            world.set_impair(way, Impair { loss: wire.loss, ..Impair::default() });
        }
        world.client.send(self.client_sends);
        world.server.send(self.server_sends);
        let begun = world.now;
        let mut messages = 0;
        for scheduled in &self.faults {
            world.run_for((begun + scheduled.at).saturating_duration_since(world.now));
            self.act(&mut world, scheduled.fault);
            if self.messages {
                messages += 1;
                world.client.send_message();
                world.server.send_message();
            }
            check_safety(&world)?;
        }
        for way in 0..self.wires.len() {
            world.set_up(way, true);
            world.mend(way);
        }
        // Probes come at growing intervals, so a connection may die a little earlier than it has to.
        let had_to_live = self.silence() <= IDLE_TIMEOUT - Duration::from_secs(3);
        if had_to_live {
            self.check_liveness(&mut world, messages)?;
            self.check_closing(&mut world)?;
        }
        check_safety(&world)?;
        Ok(self.outcome(&world, had_to_live))
    }

    fn outcome(&self, world: &World, had_to_live: bool) -> Outcome {
        Outcome { trace: world.trace(), virtual_time: world.elapsed(), had_to_live }
    }

    /// The same without those faults that it fails without as well, tried one by one.
    pub fn minimised(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut least = self.clone();
        let mut wholes: Vec<usize> = self.faults.iter().map(|scheduled| scheduled.whole).collect();
        wholes.sort_unstable();
        wholes.dedup();
        for whole in wholes {
            let mut without = least.clone();
            without.faults.retain(|scheduled| scheduled.whole != whole);
            if fails(&without) {
                least = without;
            }
        }
        for simpler in [|one: &mut Self| one.messages = false, |one: &mut Self| one.host = Host::Prompt] {
            let mut without = least.clone();
            simpler(&mut without);
            if fails(&without) {
                least = without;
            }
        }
        least
    }

    fn act(&self, world: &mut World, fault: Fault) {
        let all = 0..self.wires.len();
        match fault {
            Fault::There(way, up) => world.set_there(way, up),
            Fault::Back(way, up) => world.set_back(way, up),
            Fault::Both(way, up) => world.set_up(way, up),
            Fault::All(up) => all.for_each(|way| world.set_up(way, up)),
            Fault::Rebind(way) => {
                world.rebind(way);
            }
            Fault::RebindAll => all.for_each(|way| {
                world.rebind(way);
            }),
            Fault::RebindSoftly(way) => {
                world.rebind_softly(way);
            }
            Fault::Copy => world.copy_next_from("192.0.2.66:6666".parse().expect("an address")),
            Fault::Impair(way, impair) => world.set_impair(way, impair),
            Fault::StallServer(time) => world.stall_server(time),
            Fault::StallClient(time) => world.stall_client(time),
            Fault::Attack => world.attack(),
        }
    }

    /// The longest time in which nothing could arrive at one of the ends, or one of them stood still.
    fn silence(&self) -> Duration {
        let mut up = vec![[true; 2]; self.wires.len()];
        let mut silent_since = [None; 2];
        let mut longest = Duration::ZERO;
        for &Scheduled { at, fault, .. } in &self.faults {
            match fault {
                Fault::There(way, is_up) => up[way][0] = is_up,
                Fault::Back(way, is_up) => up[way][1] = is_up,
                Fault::Both(way, is_up) => up[way] = [is_up; 2],
                Fault::All(is_up) => up.fill([is_up; 2]),
                // A hole swallows all but the smallest packets, and a delay may be as bad.
                Fault::Impair(way, impair) => up[way] = [impair.mtu.is_none() && impair.delay < FAULT_MAX / 6; 2],
                Fault::StallServer(time) | Fault::StallClient(time) => longest = longest.max(time),
                Fault::Rebind(_) | Fault::RebindAll | Fault::RebindSoftly(_) | Fault::Copy | Fault::Attack => {}
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
    fn check_liveness(&self, world: &mut World, messages: u64) -> Result<(), Failure> {
        let slowest = self.wires.iter().map(|wire| wire.rate).min().expect("a wire");
        // Both directions at once, at half the rate of the slowest wire, after all have come back.
        let bytes = self.client_sends.max(self.server_sends);
        let bound = REOPENED + Bytes::new(bytes) / slowest.scaled(0.5);
        let (to_server, to_client) = (self.client_sends, self.server_sends);
        let all = |world: &mut World| {
            let whole = world.server.received == to_server && world.client.received == to_client;
            whole && world.client.messages == messages && world.server.messages == messages
        };
        if !world.run_until(bound, all) {
            let (server, client) = (&world.server, &world.client);
            let come = format!(
                "after {bound:?} {} of {to_server} bytes and {} of {messages} messages are at the server, {} of \
                 {to_client} and {} at the client",
                server.received, server.messages, client.received, client.messages
            );
            return Err(Failure(format!("{come}: {}", state(world))));
        }
        // And then every path carries data, both ways.
        world.client.send(u64::MAX);
        world.server.send(u64::MAX);
        let now = world.now;
        let before = [world.client.snapshots(now), world.server.snapshots(now)];
        let all = |world: &mut World| {
            let now = world.now;
            let after = [world.client.snapshots(now), world.server.snapshots(now)];
            let carry = after.iter().zip(&before).map(|(after, before)| carrying(after, before));
            carry.min() == Some(self.wires.len())
        };
        if !world.run_until(REOPENED, all) {
            return Err(Failure(format!("not all paths carry data again: {}", state(world))));
        }
        // What a person is told of the paths is so, at both ends.
        let World { client, server, .. } = world;
        match client.told_wrongly().or_else(|| server.told_wrongly()) {
            Some(wrong) => Err(Failure(format!("{wrong}: {}", state(world)))),
            None => Ok(()),
        }
    }

    /// The end is known to both within three probe timeouts, and then some.
    fn check_closing(&self, world: &mut World) -> Result<(), Failure> {
        let rtt = self.wires.iter().map(|wire| 2 * (wire.delay + wire.queue / wire.rate)).max().expect("a wire");
        world.client.close(world.now);
        let known = |world: &mut World| world.server.ended.is_some();
        match world.run_until(9 * rtt + Duration::from_secs(1), known) {
            true => Ok(()),
            false => Err(Failure(format!("the server does not know the end: {}", state(world)))),
        }
    }
}

/// How many paths have carried data since.
fn carrying(after: &[PathSnapshot], before: &[PathSnapshot]) -> usize {
    let delivered = |path: PathId| before.iter().find(|known| known.path == path).map(|known| known.delivered);
    let carries = |path: &&PathSnapshot| path.delivered > delivered(path.path).unwrap_or_default() + CARRIED;
    after.iter().filter(carries).count()
}

fn check_safety(world: &World) -> Result<(), Failure> {
    let violated = |name: &str, end: &End| end.violation.as_ref().map(|what| Failure(format!("at the {name}: {what}")));
    violated("client", &world.client).or_else(|| violated("server", &world.server)).map_or(Ok(()), Err)
}

fn state(world: &mut World) -> String {
    let mut lines = String::new();
    for (name, end) in [("client", &mut world.client), ("server", &mut world.server)] {
        lines += &format!("\n  {name}: {}", end.ended.as_deref().unwrap_or("open"));
        for path in end.paths() {
            let usable = path.snapshot.map(|snapshot| (snapshot.path.get(), snapshot.usable, snapshot.in_flight));
            lines += &format!(
                "\n    {} to {}: {}, opened {} times, {usable:?}",
                path.interface, path.remote, path.state, path.opened
            );
        }
    }
    lines
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, client_sends, server_sends, messages, host, handshake_loss, .. } = self;
        writeln!(
            f,
            "seed {seed}: client sends {client_sends} B, server {server_sends} B, messages: {messages}, {host:?}"
        )?;
        if *handshake_loss > 0.0 {
            writeln!(f, "  {handshake_loss} of the handshake is lost")?;
        }
        for (at, Wire { rate, delay, queue, loss }) in self.wires.iter().enumerate() {
            let queue = (*queue / *rate).as_millis();
            writeln!(f, "  wire {at}: {:.0} Mbit/s, {delay:?}, queue of {queue} ms, loss {loss}", rate.as_mbps_f64())?;
        }
        self.faults
            .iter()
            .try_for_each(|Scheduled { at, fault, .. }| writeln!(f, "  {:7.3} s  {fault:?}", at.as_secs_f64()))
    }
}

fn wire(luck: &mut ChaCha8Rng) -> Wire {
    let rate = Bitrate::from_mbps(luck.random_range(2..=20));
    let delay = Duration::from_millis(luck.random_range(2..=100));
    let queue = rate * Duration::from_millis(luck.random_range(40..=300));
    Wire { rate, delay, queue, loss: if luck.random_bool(0.3) { 0.01 } else { 0.0 } }
}

/// One fault, with what mends it, where it does not pass by itself.
fn draw(luck: &mut ChaCha8Rng, count: usize, whole: usize, faults: &mut Vec<Scheduled>) {
    let at = FAULTY.mul_f64(luck.random());
    let end = at + FAULT_MAX.mul_f64(luck.random());
    let way = luck.random_range(0..count);
    let mut add = |at: Duration, fault: Fault| faults.push(Scheduled { at, fault, whole });
    match luck.random_range(0..18) {
        0 | 1 => (add(at, Fault::There(way, false)), add(end, Fault::There(way, true))).1,
        2 | 3 => (add(at, Fault::Back(way, false)), add(end, Fault::Back(way, true))).1,
        4 | 5 => (add(at, Fault::Both(way, false)), add(end, Fault::Both(way, true))).1,
        6 => (add(at, Fault::All(false)), add(at + (end - at) / 2, Fault::All(true))).1,
        7 => {
            // A link that flaps.
            let pause = Duration::from_millis(luck.random_range(50..1_000));
            for turn in 0..6 {
                add(at + pause * turn, Fault::Both(way, turn % 2 == 1));
            }
        }
        8 => add(at, Fault::Rebind(way)),
        9 => add(at, Fault::RebindAll),
        10 => add(at, Fault::RebindSoftly(way)),
        11 => add(at, Fault::Copy),
        12 => add(at, Fault::StallServer((end - at) / 2)),
        13 => add(at, Fault::StallClient((end - at) / 2)),
        14 => add(at, Fault::Attack),
        kind => {
            let impair = match kind {
                15 => Impair { mtu: Some(Bytes::new(luck.random_range(1_250..1_400))), ..Impair::default() },
                16 => Impair { delay: Duration::from_millis(luck.random_range(20..500)), ..Impair::default() },
                _ => Impair {
                    loss: luck.random_range(0.0..0.1),
                    passing: Impairments {
                        duplicate: luck.random_range(0.0..0.1),
                        corrupt: luck.random_range(0.0..0.1),
                        reorder: Some(Reorder {
                            share: luck.random_range(0.0..0.2),
                            by: Duration::from_millis(luck.random_range(1..50)),
                        }),
                    },
                    ..Impair::default()
                },
            };
            add(at, Fault::Impair(way, impair));
            add(end, Fault::Impair(way, Impair::default()));
        }
    }
}
