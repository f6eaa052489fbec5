//! A sender's and a receiver's process, the wires between their machines, and time, which goes in steps.
//!
//! In each step what has arrived is put into the sockets, and then each process runs for a millisecond by itself:
//! nothing that leaves one arrives at the other sooner. A millisecond is also how exact tokio's timers are.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairpath_core::Timestamp;
use fairpath_net::Datagram;
use fairpath_quic::{Identity, Machine as Place};
use fairpath_transfer::{Lie, Received, Refusal, Resumption, SendError, SenderId, Sent, Skipped};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use super::ends::{self, Connections, PORT, Receiving, Sending, Unsent};
use super::machine::{Left, Machine, Seen, interface};
use super::nat::Translator;
use super::process::Process;
use super::tree::{self, Tree, Watch};
use crate::trace::{Teller, Trace};
use crate::wires::{Impair, Parcel, Wire, Wires};
use fairpath_quic_sim::Side;
use fairpath_quic_sim::{Cryptography, identity};

/// How long a step is.
const STEP: Duration = Duration::from_millis(1);

/// So often it is looked whether all is as it has to be.
const LOOK: Duration = Duration::from_millis(50);

/// How long after a failed start a sender is started again.
const AGAIN: Duration = Duration::from_secs(1);

/// A memory file system, where there is one.
const MEMORY: &str = "/dev/shm";

/// The result of a sender's process that sent all it had to.
#[derive(Clone, Debug)]
pub(super) enum Done {
    /// It sent everything.
    Sent(Sent),
    /// The receiver has everything, from one before it.
    Before,
}

type SenderProcess = Process<Result<Sent, Unsent>>;
type ReceiverProcess = Process<Result<(), fairpath_transfer::ReceiveError>>;

/// Two processes and what is between them.
pub(super) struct World {
    pub(super) now: Duration,
    wires: Wires,
    translators: Vec<Translator>,
    sender: Option<SenderProcess>,
    receiver: Option<ReceiverProcess>,
    /// When the next sender is started, where there is none.
    starts_at: Duration,
    /// Until when each machine stands still, and until when it sleeps: what comes then is lost.
    still_until: [Duration; 2],
    asleep_until: [Duration; 2],
    connections: [Connections; 2],
    /// The files received by each receiver's process.
    pub(super) received: Arc<Mutex<Vec<Received>>>,
    /// The sender's result, once it is done.
    pub(super) done: Option<Done>,
    /// The receiver's process has ended in success.
    is_received: bool,
    /// A receiver's process was ended from outside: what it knew is lost.
    has_forgotten: bool,
    /// Why senders ended in vain.
    endings: Vec<String>,
    /// How the sender ended that a receiver lied to.
    first_end: Option<Result<Sent, Unsent>>,
    /// The first violation of an invariant.
    violation: Option<String>,
    pub(super) tree: Tree,
    watch: Watch,
    looked: Duration,
    identity: Identity,
    /// The receiver's lie, if it lies.
    lie: Option<Lie>,
    /// A sender that is started again has the number of the one before it.
    is_same_sender: bool,
    id: Option<SenderId>,
    /// When senders try another connection.
    pub(super) resumption: Resumption,
    cryptography: Cryptography,
    luck: ChaCha8Rng,
    trace: Trace,
    disk: TempDir,
}

impl World {
    /// Both processes begin now.
    pub(super) fn new(
        wires: &[Wire],
        tree: Tree,
        cryptography: Cryptography,
        seed: u64,
        (lie, is_same_sender): (Option<Lie>, bool),
    ) -> std::io::Result<Self> {
        let disk = match std::path::Path::new(MEMORY).is_dir() {
            true => tempfile::tempdir_in(MEMORY)?,
            false => tempfile::tempdir()?,
        };
        tree::write(&tree, &disk.path().join("from"))?;
        let mut world = Self {
            now: Duration::ZERO,
            wires: Wires::new(wires, seed),
            translators: wires.iter().map(|_| Translator::new()).collect(),
            sender: None,
            receiver: None,
            starts_at: Duration::ZERO,
            still_until: [Duration::ZERO; 2],
            asleep_until: [Duration::ZERO; 2],
            connections: Default::default(),
            received: Arc::default(),
            done: None,
            is_received: false,
            has_forgotten: false,
            endings: Vec::new(),
            first_end: None,
            violation: None,
            tree,
            watch: Watch::default(),
            looked: Duration::ZERO,
            identity: identity(),
            lie,
            is_same_sender,
            id: None,
            resumption: Resumption::DEFAULT,
            cryptography,
            luck: ChaCha8Rng::seed_from_u64(seed),
            trace: Trace::default(),
            disk,
        };
        world.start(Side::Server);
        Ok(world)
    }

    fn machine(&mut self, side: Side) -> Arc<Machine> {
        let address = |way: &crate::wires::Way| match side {
            Side::Client => way.client.ip(),
            Side::Server => way.server.ip(),
        };
        let interfaces = self.wires.ways.iter().enumerate().map(|(at, way)| interface(format!("if{at}"), address(way)));
        Machine::new(interfaces.collect(), self.cryptography, self.luck.next_u64())
    }

    fn start(&mut self, side: Side) {
        let machine = self.machine(side);
        let place = Place::Simulated(Arc::new(Seen(machine.clone())));
        let connections = Connections::default();
        self.connections[side as usize] = connections.clone();
        match side {
            Side::Client => {
                let mut id = [0; 16];
                self.luck.fill_bytes(&mut id);
                let kept = self.id.filter(|_| self.is_same_sender);
                let id = *self.id.insert(kept.unwrap_or(SenderId::from_bytes(id)));
                let root = self.tree.keys().next().expect("a tree has a root");
                let sending = Sending {
                    machine: place,
                    remotes: self.wires.ways.iter().map(|way| SocketAddr::new(way.server.ip(), PORT)).collect(),
                    fingerprint: self.identity.fingerprint(),
                    files: self.disk.path().join("from").join(root),
                    id,
                    resumption: self.resumption,
                    connections,
                };
                self.sender = Some(Process::new(self.now, machine, ends::send(sending)));
            }
            Side::Server => {
                let receiving = Receiving {
                    machine: place,
                    identity: self.identity.clone(),
                    directory: self.to(),
                    connections,
                    received: self.received.clone(),
                    lie: self.lie,
                };
                self.receiver = Some(Process::new(self.now, machine, ends::receive(receiving)));
            }
        }
    }

    fn to(&self) -> std::path::PathBuf {
        self.disk.path().join("to")
    }

    /// Lets time pass until both ends are done, or until `end`, or until something is as it may never be.
    pub(super) fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while self.now < end && !self.is_done() {
            self.step();
            if self.now >= self.looked + LOOK {
                self.look();
            }
            if let Some(violation) = &self.violation {
                return Err(violation.clone());
            }
        }
        Ok(())
    }

    /// Whether the sender has done what it had to, and the receiver says the same, or has forgotten.
    pub(super) fn is_done(&self) -> bool {
        let last = || self.all_received().pop();
        match &self.done {
            None => false,
            Some(_) if self.has_forgotten => true,
            Some(Done::Before) => last().is_some(),
            Some(Done::Sent(sent)) => last().is_some_and(|received| self.agree(sent, &received)),
        }
    }

    /// Whether both ends say the same of what was received, and of what was left out.
    fn agree(&self, sent: &Sent, received: &Received) -> bool {
        let left_out = |skipped| self.names_of(skipped);
        (sent.files, sent.bytes) == (received.files, received.bytes)
            && left_out(&sent.skipped) == left_out(&received.skipped)
    }

    /// The names that are not in place, as reported by the end that is known to have reported.
    pub(super) fn left_out(&self) -> BTreeSet<String> {
        match (&self.done, self.all_received().pop()) {
            (Some(Done::Sent(sent)), _) => self.names_of(&sent.skipped),
            (_, Some(received)) => self.names_of(&received.skipped),
            (_, None) => BTreeSet::new(),
        }
    }

    /// Lets time pass until the first sender has ended, at most until `end`; how it did, if it has.
    pub(super) fn run_sender_until(&mut self, end: Duration) -> Result<Option<Result<Sent, Unsent>>, String> {
        while self.now < end {
            self.step();
            if let Some(ended) = self.first_end.take() {
                return Ok(Some(ended));
            }
            if let Some(violation) = &self.violation {
                return Err(violation.clone());
            }
        }
        Ok(None)
    }

    /// How many connections the sender has made.
    pub(super) fn senders_connections(&self) -> usize {
        self.connections[Side::Client as usize].count()
    }

    fn at(&self) -> Timestamp {
        Timestamp::ZERO + self.now
    }

    fn step(&mut self) {
        while let Some(parcel) = self.wires.poll(self.at()) {
            self.arrive(parcel);
        }
        if self.sender.is_none() && self.done.is_none() && self.now >= self.starts_at {
            self.start(Side::Client);
        }
        let next = self.now + STEP;
        let mut left: Vec<(Duration, Side, Left)> = Vec::new();
        if let Some(process) = self.sender.as_mut().filter(|_| self.now >= self.still_until[Side::Client as usize]) {
            process.run_from(self.now, next);
            left.extend(process.take_left().map(|(at, one)| (at, Side::Client, one)));
        }
        if let Some(process) = self.receiver.as_mut().filter(|_| self.now >= self.still_until[Side::Server as usize]) {
            process.run_from(self.now, next);
            left.extend(process.take_left().map(|(at, one)| (at, Side::Server, one)));
        }
        // The sort is stable, so simultaneous datagrams keep their order.
        left.sort_by_key(|(at, ..)| *at);
        for (at, side, one) in left {
            self.leave(at.clamp(self.now, next), side, one);
        }
        self.now = next;
        self.see_ends();
    }

    fn leave(&mut self, at: Duration, side: Side, left: Left) {
        let Left { mut from, to, contents, .. } = left;
        self.trace.note(at, side == Side::Client, &contents);
        if self.trace.is_told() {
            self.trace.say(at, format_args!("{side:?} sends {from} > {to}, {} bytes", contents.len()));
        }
        let own = |way: &crate::wires::Way| match side {
            Side::Client => (way.client.ip(), way.server.ip()),
            Side::Server => (way.server.ip(), way.client.ip()),
        };
        let Some(way) = self.wires.ways.iter().position(|way| own(way) == (from.ip(), to.ip())) else { return };
        if side == Side::Client {
            from.set_port(self.translators[way].outward(from.port()));
        }
        let parcel = Parcel { datagram: Datagram { from, to, contents }, sent_to: to, left: None };
        self.wires.send(way, side, parcel, Timestamp::ZERO + at);
    }

    fn arrive(&mut self, parcel: Parcel) {
        let Datagram { from, mut to, contents } = parcel.datagram;
        let is = |ip: IpAddr| move |way: &crate::wires::Way| way.client.ip() == ip;
        let side = match self.wires.ways.iter().position(is(to.ip())) {
            Some(way) => {
                let Some(port) = self.translators[way].inward(to.port()) else { return };
                to.set_port(port);
                Side::Client
            }
            None => Side::Server,
        };
        if self.now < self.asleep_until[side as usize] {
            return;
        }
        let machine = match side {
            Side::Client => self.sender.as_ref().map(|process| &process.machine),
            Side::Server => self.receiver.as_ref().map(|process| &process.machine),
        };
        if self.trace.is_told() {
            let at = self.now;
            self.trace.say(at, format_args!("{side:?} hears {from}, {} bytes", contents.len()));
        }
        if let Some(machine) = machine {
            machine.arrive(from, to, contents);
        }
    }

    /// Takes the ends of processes.
    fn see_ends(&mut self) {
        if let Some(end) = self.sender.as_mut().and_then(Process::take_end) {
            self.sender = None;
            if self.lie.is_some() {
                self.first_end = Some(end);
                return;
            }
            self.starts_at = self.now + AGAIN;
            match end {
                Ok(sent) => self.done = Some(Done::Sent(sent)),
                // A sender before this one has sent everything, and was ended before it heard of that.
                Err(Unsent::Send(SendError::Refused { refusal: Refusal::Used, .. } | SendError::OtherFiles)) => {
                    self.done = Some(Done::Before);
                }
                Err(Unsent::Send(
                    error @ (SendError::Refused { refusal: Refusal::Taken, .. } | SendError::PeerGone(_)),
                )) => {
                    self.endings.push(error.to_string());
                }
                // The one before it was heard to know that everything is in place, and the receiver went.
                Err(Unsent::Connect(_)) if self.is_received => self.done = Some(Done::Before),
                Err(Unsent::Connect(error)) => self.endings.push(error.to_string()),
                Err(Unsent::Send(error)) => self.violated(format!("the sender: {error}")),
            }
        }
        if let Some(end) = self.receiver.as_mut().and_then(Process::take_end) {
            self.receiver = None;
            match end {
                Ok(()) => self.is_received = true,
                Err(error) => self.violated(format!("the receiver: {error}")),
            }
        }
    }

    fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Looks whether all is as it has to be at any time.
    pub(super) fn look(&mut self) {
        self.looked = self.now;
        let to = self.to();
        if let Some(wrong) = self.watch.unwhole(&self.tree, &to) {
            self.violated(format!("at {:?}: {wrong}", self.now));
        }
        let of_sender = self.sender.as_ref().and_then(|process| process.look(|| self.connections[0].excess()));
        let of_receiver = self.receiver.as_ref().and_then(|process| process.look(|| self.connections[1].excess()));
        if let Some(held) = of_sender.or(of_receiver) {
            self.violated(format!("at {:?}: {held:?} is held", self.now));
        }
    }

    /// The names of what a sender left out.
    fn names_of(&self, skipped: &[Skipped]) -> BTreeSet<String> {
        let from = self.disk.path().join("from");
        let name = |one: &Skipped| one.path.strip_prefix(&from).unwrap_or(&one.path).to_string_lossy().into_owned();
        skipped.iter().map(name).collect()
    }

    /// How far both ends are, in words.
    pub(super) fn state(&self) -> String {
        let (done, received, endings) = (&self.done, self.all_received(), self.endings.join("; "));
        format!("the sender {done:?}, the receiver {received:?}, senders that ended in vain [{endings}]")
    }

    /// The difference at the end, if there is one.
    pub(super) fn difference(&self, left_out: &BTreeSet<String>) -> Option<String> {
        tree::difference(&self.tree, left_out, &self.to())
    }

    /// The files received, one entry for each process.
    fn all_received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells everything from now on.
    pub(super) fn tell(&mut self, teller: Option<Teller>) {
        self.trace.tell(teller);
    }

    /// Says `what` to whoever is told everything.
    pub(super) fn say(&mut self, what: impl Display) {
        self.trace.say(self.now, what);
    }

    /// How many packets have left both machines.
    pub(super) fn packets(&self) -> u64 {
        self.trace.packets()
    }

    /// A digest of all that has left either machine.
    pub(super) fn trace(&self) -> blake3::Hash {
        self.trace.digest()
    }
}

/// Events.
impl World {
    pub(super) fn set_impair(&mut self, way: usize, impair: Impair) {
        self.wires.set_impair(way, impair, self.at());
    }

    pub(super) fn mend(&mut self, way: usize) {
        self.wires.mend(way, self.at());
        self.translators[way].mend();
        [Side::Client, Side::Server].into_iter().for_each(|side| self.set_up(way, side, true));
    }

    /// Cuts or mends the direction in which `side` sends.
    pub(super) fn set_up(&mut self, way: usize, side: Side, up: bool) {
        self.wires.set_up(way, side, up, self.at());
    }

    pub(super) fn rebind(&mut self, way: usize, lingers: bool) {
        self.translators[way].rebind(lingers);
    }

    /// Stalls a machine: datagrams wait in its sockets, and its clock goes on. Returns by how much
    /// this prolongs an earlier stall.
    pub(super) fn stall(&mut self, side: Side, time: Duration) -> Duration {
        let until = &mut self.still_until[side as usize];
        let before = (*until).max(self.now);
        *until = before.max(self.now + time);
        *until - before
    }

    /// Puts a machine to sleep: datagrams are lost, and its clock stands still.
    pub(super) fn sleep(&mut self, side: Side, time: Duration) {
        let longer = self.stall(side, time);
        self.asleep_until[side as usize] = self.asleep_until[side as usize].max(self.now + time);
        match side {
            Side::Client => self.sender.iter_mut().for_each(|process| process.slept(longer)),
            Side::Server => self.receiver.iter_mut().for_each(|process| process.slept(longer)),
        }
    }

    /// A machine's clock jumps ahead.
    pub(super) fn jump(&mut self, side: Side, by: Duration) {
        match side {
            Side::Client => self.sender.iter_mut().for_each(|process| process.jump(by)),
            Side::Server => self.receiver.iter_mut().for_each(|process| process.jump(by)),
        }
    }

    /// A file is written to at the sender.
    pub(super) fn rewrite(&mut self, number: usize) {
        let from = self.disk.path().join("from");
        if let Err(error) = tree::rewrite(&mut self.tree, number, &from, &mut self.luck) {
            self.violated(format!("a file cannot be written to: {error}"));
        }
    }

    /// The receiver's process ends without a word, what it has of a file that is not whole changes, and another
    /// process begins. Where nothing is begun, only the process changes.
    pub(super) fn spoil(&mut self, number: usize) {
        let Some(receiver) = self.receiver.take() else { return };
        drop(receiver);
        if let Err(error) = tree::spoil(&self.to(), number) {
            self.violated(format!("the disk cannot be spoiled: {error}"));
        }
        self.has_forgotten = true;
        self.start(Side::Server);
    }

    /// A process ends without a word, and another begins on the same machine. One that had ended is not begun again.
    pub(super) fn restart(&mut self, side: Side) {
        match side {
            Side::Client => {
                if self.sender.take().is_some() {
                    self.starts_at = self.now;
                }
            }
            Side::Server => {
                if self.receiver.take().is_some() {
                    self.has_forgotten = true;
                    self.start(side);
                }
            }
        }
    }
}
