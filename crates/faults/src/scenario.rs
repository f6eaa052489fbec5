//! A scenario from a seed: wires, traffic, and a schedule of faults. While faults last anything may be slow,
//! but nothing may break (safety); once they have ended, everything has to work again (liveness).

mod draw;

use std::fmt;
use std::time::Duration;

use fairpath_core::{ByteCount, PathId};
use fairpath_quic_core::{EngineConfig, IDLE_TIMEOUT, PathSnapshot};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::trace::Teller;
use crate::wires::{Impair, Wire};
use crate::world::World;
pub(crate) use draw::{draw, draw_of_host};
use draw::{skew, wire};
use fairpath_quic_sim::{Cryptography, Host, Plan, Side, Skew};

/// In this time faults begin.
pub(crate) const FAULTY: Duration = Duration::from_secs(8);

/// A fault lasts no longer.
const FAULT_MAX: Duration = Duration::from_secs(6);

/// The least that each sending end sends.
const BYTES: u64 = 1_000_000;

/// How long until a closed path is opened again, at most: the longest wait between attempts, the
/// longest between challenges, and round trips.
const REOPENED: Duration = Duration::from_secs(14);

/// A path that carries data receives more than this; one with signs of life only receives less.
const CARRIED: ByteCount = ByteCount::new(30_000);

/// A handshake takes no longer where nothing is lost.
const CONNECTED: Duration = Duration::from_secs(5);

/// How long after the last fault a connection is there again. Both ends find that the old one is
/// dead, which takes the idle timeout and a keep-alive. A handshake that had begun meanwhile is
/// given up, and another one succeeds.
const REDIALLED: Duration = IDLE_TIMEOUT.saturating_add(Duration::from_secs(3 + 4)).saturating_add(CONNECTED);

/// The permitted errors of a connection whose other end is gone, or could not be reached for long.
const CLEAR: [&str; 3] = ["timed out", "reset by peer", "not made in time"];

/// The faults of hosts are numbered from here on, beyond all those of wires.
const WHOLE_OF_HOSTS: usize = 100;

/// A fault, or its repair, on one wire or at one end.
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
    /// A host stands still, and its clock goes on.
    Stall(Side, Duration),
    /// An attacker sends what he has seen and what he made up.
    Attack,
    /// A host sleeps, and its clock stands still.
    Sleep(Side, Duration),
    /// A host's clock jumps ahead.
    Jump(Side, Duration),
    /// A process ends without a word, and another begins; a client with sockets of its own, or on the same ports.
    Restart {
        /// The side that restarts.
        side: Side,
        /// Whether it has the ports of the one before.
        keeps_ports: bool,
    },
    /// A file is written to at the sender; by its number, counted round and round.
    Rewrite(usize),
    /// The receiver's process ends without a word, what it has of a file that is not whole changes on the disk, and
    /// another process begins.
    Spoil(usize),
}

/// A fault and when it comes, counted from the handshake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheduled {
    /// When.
    pub at: Duration,
    /// What.
    pub fault: Fault,
    /// The fault that this one mends or is part of: faults are dropped as wholes.
    pub whole: usize,
}

/// A scenario that a seed stands for.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// The wires.
    pub wires: Vec<Wire>,
    /// The bulk data that the client sends, in bytes.
    pub client_sends: u64,
    /// The bulk data that the server sends, in bytes.
    pub server_sends: u64,
    /// Whether both ends send a message now and then.
    pub messages: bool,
    /// How the hosts keep time.
    pub host: Host,
    /// The share of packets that are lost before the connection is made.
    pub handshake_loss: f64,
    /// The protection of packets.
    pub cryptography: Cryptography,
    /// The clocks of the hosts of client and server.
    pub clocks: [Skew; 2],
    /// Streams beside that.
    pub streams: Option<Plan>,
    /// The faults, in order.
    pub faults: Vec<Scheduled>,
}

/// The outcome of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// A digest of every datagram that left: when, on which end, and what.
    pub trace: blake3::Hash,
    /// How much time has passed in it.
    pub virtual_time: Duration,
    /// How many packets have left both ends.
    pub packets: u64,
    /// Whether the connection had to live to the end: where both directions were silent for too long it may die.
    pub had_to_live: bool,
}

/// A violated invariant or expectation.
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
        let direction = luck.random_range(0..3);
        let bytes = BYTES * luck.random_range(1..=4);
        let messages = luck.random();
        let host = if luck.random() { Host::Late } else { Host::Prompt };
        let handshake_loss = if luck.random_bool(0.2) { 0.2 } else { 0.0 };
        // Draws added later use a stream of their own, so that older seeds keep their meaning.
        luck.set_stream(1);
        luck.set_word_pos(0);
        let host = if luck.random_bool(0.25) { Host::Uneven } else { host };
        let clocks = Side::ALL.map(|_| skew(&mut luck));
        for whole in WHOLE_OF_HOSTS..WHOLE_OF_HOSTS + luck.random_range(0..=2) {
            draw_of_host(&mut luck, whole, &mut faults);
        }
        faults.sort_by_key(|scheduled| scheduled.at);
        Self {
            seed,
            wires,
            client_sends: if direction != 0 { bytes } else { 0 },
            server_sends: if direction != 1 { bytes } else { 0 },
            messages,
            host,
            handshake_loss,
            cryptography: Cryptography::default(),
            clocks,
            streams: None,
            faults,
        }
    }

    /// The scenario of a seed with streams, and records beside them in a few.
    pub fn of_streams(seed: u64) -> Self {
        let mut scenario = Self::of(seed);
        let (plan, are_records_beside) = draw::streams(seed);
        scenario.streams = Some(plan);
        if !are_records_beside {
            (scenario.client_sends, scenario.server_sends) = (0, 0);
        }
        scenario
    }

    /// Runs it.
    pub fn run(&self) -> Result<Outcome, Failure> {
        self.run_told(None)
    }

    /// Runs it, and tells what happens.
    pub fn run_told(&self, teller: Option<Teller>) -> Result<Outcome, Failure> {
        let mut wires = self.wires.clone();
        wires.iter_mut().for_each(|wire| wire.loss = wire.loss.max(self.handshake_loss));
        let mut world = World::with_clocks(self.clocks, self.cryptography, &wires, &EngineConfig::live(), self.seed);
        (world.client.host, world.server.host) = (self.host, self.host);
        world.tell(teller);
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
        for (side, bytes) in [(Side::Client, self.client_sends), (Side::Server, self.server_sends)] {
            world.end(side).send(bytes);
            world.end(side).greeting = bytes;
        }
        if let Some(plan) = self.streams {
            Side::ALL.into_iter().for_each(|side| world.end(side).begin_streams(plan));
        }
        world.redials = true;
        let begun = world.now;
        let mut opened = vec![false; self.wires.len()];
        for (at, scheduled) in self.faults.iter().enumerate() {
            world.run_for((begun + scheduled.at).saturating_duration_since(world.now));
            if at == 0 {
                opened = world.opened_ways();
            }
            world.say(format_args!("FAULT {:?}", scheduled.fault));
            self.act(&mut world, scheduled.fault);
            if self.messages {
                world.client.send_message();
                world.server.send_message();
            }
            check_safety(&world)?;
        }
        for way in 0..self.wires.len() {
            world.set_up(way, true);
            world.mend(way);
        }
        world.say("all wires are mended");
        // Probes come at growing intervals, so a connection may die a little earlier than it has to. And a wire counts on
        // which there was a path before anything broke: where the peer's connection ids for more paths were lost on the
        // first, none can be opened on any other.
        let had_to_live = !self.restarts() && self.silence(&opened) <= IDLE_TIMEOUT - Duration::from_secs(3);
        let lived = self.check_connection(&mut world, had_to_live).and_then(|()| self.check_liveness(&mut world));
        let lived = lived.and_then(|()| self.check_closing(&mut world));
        // It says more than what came of it.
        check_safety(&world)?;
        lived?;
        Ok(self.outcome(&world, had_to_live))
    }

    fn outcome(&self, world: &World, had_to_live: bool) -> Outcome {
        Outcome { trace: world.trace(), virtual_time: world.elapsed(), packets: world.packets(), had_to_live }
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
        let simpler = [
            |one: &mut Self| one.messages = false,
            |one: &mut Self| one.host = Host::Prompt,
            |one: &mut Self| one.clocks = Default::default(),
        ];
        for simpler in simpler {
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
            Fault::Stall(side, time) => world.stall(side, time),
            Fault::Attack => world.attack(),
            Fault::Sleep(side, time) => world.sleep(side, time),
            Fault::Jump(side, by) => world.jump(side, by),
            Fault::Restart { side, keeps_ports } => world.restart(side, keeps_ports),
            // There are no files.
            Fault::Rewrite(_) | Fault::Spoil(_) => {}
        }
    }

    fn restarts(&self) -> bool {
        self.faults.iter().any(|scheduled| matches!(scheduled.fault, Fault::Restart { .. }))
    }

    /// The longest time in which nothing could arrive at one of the ends, or one of them stood still. To the clocks
    /// that jump it seems longer, and who sleeps may do so right after.
    fn silence(&self, opened: &[bool]) -> Duration {
        let mut up = vec![[true; 2]; self.wires.len()];
        let mut silent_since = [None; 2];
        let (mut longest, mut more) = (Duration::ZERO, Duration::ZERO);
        for &Scheduled { at, fault, .. } in &self.faults {
            match fault {
                Fault::There(way, is_up) => up[way][0] = is_up,
                Fault::Back(way, is_up) => up[way][1] = is_up,
                Fault::Both(way, is_up) => up[way] = [is_up; 2],
                Fault::All(is_up) => up.fill([is_up; 2]),
                // A hole swallows all but the smallest packets, and a delay may be as bad.
                Fault::Impair(way, impair) => up[way] = [impair.mtu.is_none() && impair.delay < FAULT_MAX / 6; 2],
                Fault::Stall(_, time) => longest = longest.max(time),
                Fault::Jump(_, time) | Fault::Sleep(_, time) => more += time,
                Fault::Rebind(_) | Fault::RebindAll | Fault::RebindSoftly(_) => {}
                Fault::Copy | Fault::Attack | Fault::Restart { .. } | Fault::Rewrite(_) | Fault::Spoil(_) => {}
            }
            for direction in 0..2 {
                let silent = up.iter().zip(opened).all(|(way, opened)| !way[direction] || !opened);
                let since = silent_since[direction].get_or_insert(at);
                longest = longest.max(at - *since);
                if !silent {
                    silent_since[direction] = None;
                }
            }
        }
        longest + more
    }

    /// The connection lives, or another has been made, and all others have ended for a reason that is clear.
    fn check_connection(&self, world: &mut World, had_to_live: bool) -> Result<(), Failure> {
        let sent = |world: &World| Some((world.client.sent()?, world.server.sent()?));
        // Both ends are of one connection, and that has not ended at either.
        let is_one = |world: &mut World| {
            let [client, server] = [world.client.ended(), world.server.ended()].map(|ended| ended.is_none());
            let is_same = sent(world).is_some_and(|(client, server)| client.secret == server.secret);
            client && server && is_same && world.server.has_left_others()
        };
        let bound = REDIALLED;
        if !world.run_until(bound, |world| is_one(world)) {
            return Err(Failure(format!("no connection {bound:?} after the last fault: {}", world.state())));
        }
        let unclear = world.endings.iter().find(|why| !CLEAR.contains(&why.as_str()));
        if let Some(why) = unclear {
            return Err(Failure(format!("the connection ended without a reason that is clear: {why}")));
        }
        match had_to_live && !world.endings.is_empty() {
            true => Err(Failure(format!("the connection ended: {}", world.endings[0]))),
            false => Ok(()),
        }
    }

    /// Everything arrives, and every path comes back.
    fn check_liveness(&self, world: &mut World) -> Result<(), Failure> {
        let slowest = self.wires.iter().map(|wire| wire.rate).min().expect("a wire");
        // Both directions at once, at half the rate of the slowest wire, after all have come back.
        let bytes = self.client_sends.max(self.server_sends) + self.bytes_of_streams();
        let bound = REOPENED + ByteCount::new(bytes) / slowest.scaled(0.5) + self.rounds_of_streams();
        let all = |world: &mut World| {
            let World { client, server, .. } = world;
            let are_streams_done = client.has_done_streams() && server.has_done_streams();
            let are_streams_done = are_streams_done && client.shares_streams_with(server);
            are_streams_done && client.sent() == server.came() && server.sent() == client.came()
        };
        if !world.run_until(bound, all) {
            let World { client, server, .. } = &*world;
            let come = format!(
                "after {bound:?} there came to the server {:?} of {:?}, and to the client {:?} of {:?}",
                server.came(),
                client.sent(),
                client.came(),
                server.sent()
            );
            let streams = [world.client.state_of_streams(), world.server.state_of_streams()].join("; at the server ");
            return Err(Failure(format!("{come}; of streams {streams}: {}", world.state())));
        }
        if self.streams.is_some() {
            return self.check_streams(world);
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
            return Err(Failure(format!("not all paths carry data again: {}", world.state())));
        }
        // The displayed state of the paths must be correct at both ends.
        let World { client, server, .. } = world;
        match client.told_wrongly().or_else(|| server.told_wrongly()) {
            Some(wrong) => Err(Failure(format!("{wrong}: {}", world.state()))),
            None => Ok(()),
        }
    }

    /// Each stream ended at its reader as its writer has said, and none was lost with a connection.
    fn check_streams(&self, world: &World) -> Result<(), Failure> {
        let World { client, server, .. } = world;
        if let Some(what) = client.streams_differ_from(server).or_else(|| server.streams_differ_from(client)) {
            return Err(Failure(what));
        }
        match client.streams_lost() {
            lost @ 1.. if !self.restarts() => Err(Failure(format!("all streams were lost {lost} times"))),
            _ => Ok(()),
        }
    }

    /// The most that streams carry, in one direction.
    fn bytes_of_streams(&self) -> u64 {
        self.streams.map_or(0, |plan| u64::from(plan.by_client + plan.by_server) * plan.longest)
    }

    /// How long the opening of streams may take where only some may be open at once, each for a few round trips and as
    /// long as its reader waits.
    fn rounds_of_streams(&self) -> Duration {
        let Some(Plan { by_client, by_server, open_max, .. }) = self.streams else { return Duration::ZERO };
        let rtt = self.wires.iter().map(|wire| 2 * wire.delay + wire.queue / wire.rate).max().expect("a wire");
        (Duration::from_secs(3) + 4 * rtt) * by_client.max(by_server).div_ceil(open_max)
    }

    /// The end is known to both within three probe timeouts, and then some.
    fn check_closing(&self, world: &mut World) -> Result<(), Failure> {
        let rtt = self.wires.iter().map(|wire| 2 * (wire.delay + wire.queue / wire.rate)).max().expect("a wire");
        world.redials = false;
        // All that streams carry may have come while a host still sleeps.
        world.run_until_awake();
        world.client.close(world.now);
        let known = |world: &mut World| world.server.ended().is_some();
        match world.run_until(9 * rtt + Duration::from_secs(1), known) {
            true => Ok(()),
            false => Err(Failure(format!("the server does not know the end: {}", world.state()))),
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
    world.violation().map_or(Ok(()), |what| Err(Failure(what)))
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, client_sends, server_sends, messages, host, handshake_loss, clocks, .. } = self;
        writeln!(
            f,
            "seed {seed}: client sends {client_sends} B, server {server_sends} B, messages: {messages}, {host:?}"
        )?;
        for (side, Skew { ahead, ppm }) in
            Side::ALL.into_iter().zip(clocks).filter(|(_, skew)| **skew != Skew::default())
        {
            writeln!(f, "  the clock of the {side:?} is ahead by {ahead:?}, and too fast by {ppm} ppm")?;
        }
        if *handshake_loss > 0.0 {
            writeln!(f, "  {handshake_loss} of the handshake is lost")?;
        }
        for (at, Wire { rate, delay, queue, loss, .. }) in self.wires.iter().enumerate() {
            let queue = (*queue / *rate).as_millis();
            writeln!(f, "  wire {at}: {:.0} Mbit/s, {delay:?}, queue of {queue} ms, loss {loss}", rate.as_mbps_f64())?;
        }
        if let Some(Plan { by_client, by_server, longest, open_max, .. }) = self.streams {
            writeln!(f, "  streams: {by_client} and {by_server}, {open_max} at once, {longest} B at most")?;
        }
        self.faults
            .iter()
            .try_for_each(|Scheduled { at, fault, .. }| writeln!(f, "  {:7.3} s  {fault:?}", at.as_secs_f64()))
    }
}
