//! A transfer of files from a seed: the files, the wires, and a schedule of faults.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::Jitter;
use fairpath_quic_core::IDLE_TIMEOUT;
use fairpath_transfer::{Lie, Resumption, SILENCE};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::ends::Unsent;
use super::tree::{self, Tree};
use super::world::{Done, World};
use crate::scenario::{FAULTY, Failure, Fault, Outcome, Scheduled, draw, draw_of_host};
use crate::trace::Teller;
use crate::wires::Wire;
use fairpath_quic_sim::Cryptography;
use fairpath_quic_sim::Side;

/// The longest outage of all links: more than twice as long as a connection lives.
const OUTAGE_MAX: Duration = Duration::from_secs(25);

/// Faults beyond those of wires and hosts are numbered from here on.
const WHOLE_OF_TRANSFERS: usize = 200;

/// When a transfer goes on at the latest after the last fault. An end that does not know yet that
/// its connection is dead finds out within the idle timeout and a probe. A restarted sender waits
/// until the one before it is known to be silent, which may take that again. Its next try begins 5
/// s after the last and takes 4.
const GOES_ON: Duration =
    IDLE_TIMEOUT.saturating_mul(2).saturating_add(SILENCE).saturating_add(Duration::from_secs(20));

/// How much later than that a path is opened again, at most.
const REOPENED: Duration = Duration::from_secs(14);

/// The outcome of a sender that a receiver lied to.
#[derive(Clone, Debug)]
pub struct LiedTo {
    /// How many files it says to be in place, where it says so.
    pub claimed: u64,
    /// How many it says to be left out.
    pub skipped: usize,
    /// Why it failed.
    pub error: Option<String>,
    /// How many connections it has made.
    pub connections: usize,
    /// When it ended.
    pub virtual_time: Duration,
}

/// A transfer that a seed stands for.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The seed.
    pub seed: u64,
    /// The wires.
    pub wires: Vec<Wire>,
    /// The seed of the files.
    pub files: u64,
    /// How many bytes the large ones have, about.
    pub bytes: u64,
    /// The protection of packets.
    pub cryptography: Cryptography,
    /// Whether a sender that is started again has the number of the one before it, as in the program.
    pub is_same_sender: bool,
    /// When the sender tries another connection.
    pub resumption: Resumption,
    /// The faults, in order.
    pub faults: Vec<Scheduled>,
}

impl Transfer {
    /// The transfer of a seed.
    pub fn of(seed: u64) -> Self {
        let mut luck = ChaCha8Rng::seed_from_u64(seed);
        let count = luck.random_range(1..=4);
        let wires: Vec<Wire> = (0..count).map(|_| wire(&mut luck)).collect();
        // Some are over after a few round trips: all is beginning and end.
        let most = if luck.random_bool(0.3) { 100_000 } else { 4_000_000 };
        let (files, bytes) = (luck.random(), luck.random_range(most / 20..most));
        let mut faults = Vec::new();
        for whole in 0..luck.random_range(0..=5) {
            draw(&mut luck, count, whole, &mut faults);
        }
        for whole in 100..100 + luck.random_range(0..=2) {
            draw_of_host(&mut luck, whole, &mut faults);
        }
        for whole in WHOLE_OF_TRANSFERS..WHOLE_OF_TRANSFERS + luck.random_range(0..=2) {
            draw_of_transfer(&mut luck, whole, &mut faults);
        }
        // Eavesdroppers are tested without files.
        faults.retain(|scheduled| !matches!(scheduled.fault, Fault::Copy | Fault::Attack));
        hurry(&mut faults, (ByteCount::new(bytes) / rate(&wires)).mul_f64(1.3) + Duration::from_millis(500));
        faults.sort_by_key(|scheduled| scheduled.at);
        let (cryptography, is_same_sender) = (Cryptography::default(), seed.is_multiple_of(2));
        let resumption = Resumption::DEFAULT;
        Self { seed, wires, files, bytes, cryptography, is_same_sender, resumption, faults }
    }

    fn tree(&self) -> Tree {
        tree::draw(self.files, self.bytes)
    }

    /// How many files and directories there are.
    pub fn entries(&self) -> usize {
        self.tree().len()
    }

    /// The size of all files together, in bytes.
    pub fn size(&self) -> u64 {
        tree::bytes(&self.tree())
    }

    /// Runs it.
    pub fn run(&self) -> Result<Outcome, Failure> {
        self.run_told(None)
    }

    /// Runs it, and tells what happens.
    pub fn run_told(&self, teller: Option<Teller>) -> Result<Outcome, Failure> {
        let mut world = World::new(&self.wires, self.tree(), self.cryptography, self.seed, (None, self.is_same_sender))
            .map_err(|error| Failure(format!("the files cannot be written: {error}")))?;
        world.resumption = self.resumption;
        world.tell(teller);
        for scheduled in &self.faults {
            world.run_until(scheduled.at).map_err(Failure)?;
            if world.is_done() {
                break;
            }
            world.say(format_args!("FAULT {:?}", scheduled.fault));
            self.act(&mut world, scheduled.fault);
            world.look();
        }
        for way in 0..self.wires.len() {
            world.mend(way);
        }
        world.say("all wires are mended");
        let mended = world.now;
        let slowest = self.wires.iter().map(|wire| wire.rate).min().expect("a wire");
        let bound = GOES_ON + REOPENED + ByteCount::new(tree::bytes(&world.tree)) / slowest.scaled(0.5);
        world.run_until(mended + bound).map_err(Failure)?;
        let Some(done) = world.done.clone().filter(|_| world.is_done()) else {
            return Err(Failure(format!("not done {bound:?} after the last fault: {}", world.state())));
        };
        world.look();
        let left_out = world.left_out();
        if matches!(done, Done::Before) && !left_out.is_empty() {
            return Err(Failure(format!("the ticket is used up, and not everything was received: {left_out:?}")));
        }
        if let Some(wrong) = world.difference(&left_out) {
            return Err(Failure(wrong));
        }
        let (trace, packets) = (world.trace(), world.packets());
        Ok(Outcome { trace, virtual_time: world.now, packets, had_to_live: self.faults.is_empty() })
    }

    /// Runs it with a lying receiver, for at most `patience`. Returns the sender's result, if there
    /// is one.
    pub fn run_lied_to(&self, lie: Lie, patience: Duration) -> Result<Option<LiedTo>, Failure> {
        let mut world = World::new(&self.wires, self.tree(), self.cryptography, self.seed, (Some(lie), true))
            .map_err(|error| Failure(format!("the files cannot be written: {error}")))?;
        let mut ended = None;
        for scheduled in &self.faults {
            ended = world.run_sender_until(scheduled.at).map_err(Failure)?;
            if ended.is_some() {
                break;
            }
            self.act(&mut world, scheduled.fault);
        }
        if ended.is_none() {
            ended = world.run_sender_until(patience).map_err(Failure)?;
        }
        let Some(ended) = ended else { return Ok(None) };
        let (claimed, skipped, error) = match ended {
            Ok(sent) => (sent.files, sent.skipped.len(), None),
            Err(Unsent::Connect(error)) => (0, 0, Some(error.to_string())),
            Err(Unsent::Send(error)) => (0, 0, Some(error.to_string())),
        };
        let connections = world.senders_connections();
        Ok(Some(LiedTo { claimed, skipped, error, connections, virtual_time: world.now }))
    }

    fn act(&self, world: &mut World, fault: Fault) {
        let all = 0..self.wires.len();
        match fault {
            Fault::There(way, up) => world.set_up(way, Side::Client, up),
            Fault::Back(way, up) => world.set_up(way, Side::Server, up),
            Fault::Both(way, up) => Side::ALL.into_iter().for_each(|side| world.set_up(way, side, up)),
            Fault::All(up) => {
                all.for_each(|way| Side::ALL.into_iter().for_each(|side| world.set_up(way, side, up)));
            }
            Fault::Rebind(way) => world.rebind(way, false),
            Fault::RebindAll => all.for_each(|way| world.rebind(way, false)),
            Fault::RebindSoftly(way) => world.rebind(way, true),
            Fault::Impair(way, impair) => world.set_impair(way, impair),
            Fault::Stall(side, time) => drop(world.stall(side, time)),
            Fault::Sleep(side, time) => world.sleep(side, time),
            Fault::Jump(side, by) => world.jump(side, by),
            Fault::Restart { side, .. } => world.restart(side),
            Fault::Rewrite(number) => world.rewrite(number),
            Fault::Spoil(number) => world.spoil(number),
            Fault::Copy | Fault::Attack => {}
        }
    }

    /// The same without those faults that it fails without as well, tried one by one.
    pub fn minimised(&self, fails: impl Fn(&Self) -> bool) -> Self {
        let wholes: BTreeSet<usize> = self.faults.iter().map(|scheduled| scheduled.whole).collect();
        let mut least = self.clone();
        for whole in wholes {
            let mut without = least.clone();
            without.faults.retain(|scheduled| scheduled.whole != whole);
            if fails(&without) {
                least = without;
            }
        }
        least
    }
}

/// The rate of all wires together.
fn rate(wires: &[Wire]) -> Bitrate {
    wires.iter().map(|wire| wire.rate).fold(Bitrate::ZERO, |sum, rate| sum + rate)
}

/// Slower ones than where nothing but packets is looked at: so files are on their way for some seconds.
fn wire(luck: &mut ChaCha8Rng) -> Wire {
    let rate = Bitrate::from_kbps(luck.random_range(1_000..=8_000));
    let delay = Duration::from_millis(luck.random_range(2..=100));
    let queue = rate * Duration::from_millis(luck.random_range(40..=300));
    let loss = if luck.random_bool(0.3) { 0.01 } else { 0.0 };
    Wire { rate, delay, queue, loss, jitter: Jitter::default() }
}

/// A fault that matters to transfers more than to connections.
fn draw_of_transfer(luck: &mut ChaCha8Rng, whole: usize, faults: &mut Vec<Scheduled>) {
    let at = FAULTY.mul_f64(luck.random());
    let end = at + OUTAGE_MAX.mul_f64(luck.random());
    let side = if luck.random() { Side::Server } else { Side::Client };
    let mut add = |at: Duration, fault: Fault| faults.push(Scheduled { at, fault, whole });
    match luck.random_range(0..5) {
        0 => add(at, Fault::Restart { side, keeps_ports: false }),
        1 => (add(at, Fault::All(false)), add(end, Fault::All(true))).1,
        2 => add(at, Fault::Rewrite(luck.random_range(0..1_000))),
        3 => add(at, Fault::Spoil(luck.random_range(0..1_000))),
        _ => add(at, Fault::Stall(side, (end - at) / 2)),
    }
}

/// Lets faults begin within `long`, and last as long as they do.
fn hurry(faults: &mut [Scheduled], long: Duration) {
    let wholes: BTreeSet<usize> = faults.iter().map(|scheduled| scheduled.whole).collect();
    for whole in wholes {
        let of_whole = || faults.iter().filter(|scheduled| scheduled.whole == whole);
        let Some(first) = of_whole().map(|scheduled| scheduled.at).min() else { continue };
        let share = first.as_secs_f64() / FAULTY.as_secs_f64();
        let earlier = first.saturating_sub(long.mul_f64(share));
        for scheduled in faults.iter_mut().filter(|scheduled| scheduled.whole == whole) {
            scheduled.at -= earlier;
        }
    }
}

impl fmt::Display for Transfer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tree = self.tree();
        let (entries, bytes) = (tree.len(), tree::bytes(&tree));
        writeln!(f, "seed {}: {entries} files and directories, {bytes} B", self.seed)?;
        for (at, Wire { rate, delay, queue, loss, .. }) in self.wires.iter().enumerate() {
            let queue = (*queue / *rate).as_millis();
            writeln!(f, "  wire {at}: {:.1} Mbit/s, {delay:?}, queue of {queue} ms, loss {loss}", rate.as_mbps_f64())?;
        }
        self.faults
            .iter()
            .try_for_each(|Scheduled { at, fault, .. }| writeln!(f, "  {:7.3} s  {fault:?}", at.as_secs_f64()))
    }
}
