//! Two ends, the wires between them, and time.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, Timestamp};
use fairpath_net::Datagram;
use fairpath_quic_core::{EngineConfig, Identity, PathReport, PathState};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::idle::Idle;
use crate::proof::{PROBE_MAX, Proofs};
use crate::trace::{Teller, Trace};
use crate::wires::{Impair, Parcel, Way, Wire, Wires, interfaces, pairs};
use fairpath_quic_sim::Side;
use fairpath_quic_sim::{Clock, Skew};
use fairpath_quic_sim::{Cryptography, Pinned, identity};
use fairpath_quic_sim::{End, Leaving, Process};

/// How many packets an eavesdropper keeps.
const SEEN_MAX: usize = 8;

/// How long a client gives a handshake before it begins another, on the next wire, as `quic` does.
const ATTEMPT: Duration = Duration::from_secs(4);

/// A client that lost its connection makes the next one no sooner after it began that one.
const REDIAL_PAUSE: Duration = Duration::from_millis(250);

/// A host of one of the ends.
struct Machine {
    /// Until when it stands still.
    stalled_until: Instant,
    /// Until when it sleeps: what comes is lost.
    asleep_until: Instant,
    /// Datagrams that came while it stood still.
    unread: Vec<Parcel>,
    /// Its proofs of addresses.
    proofs: Proofs,
    /// For each wire, when the end last sent data on it, and not only signs of life.
    data_at: Vec<Option<Instant>>,
    /// Whether it does nothing though it could.
    idle: Idle,
}

/// Two ends and the wires between them.
pub struct World {
    start: Instant,
    /// The current time.
    pub now: Instant,
    wires: Wires,
    /// The end that connects.
    pub client: End,
    /// The end that is connected to.
    pub server: End,
    machines: [Machine; 2],
    /// Whether the client makes another connection when its connection is lost or not made in time.
    pub redials: bool,
    dialled_at: Instant,
    /// Why connections ended that the client has given up, in order.
    pub endings: Vec<String>,
    dials: usize,
    /// The next datagram to the server is copied, and the copy arrives first, from this address.
    copied_from: Option<SocketAddr>,
    luck: ChaCha8Rng,
    /// Somebody who sees the first way keeps a packet now and then.
    seen: Vec<Parcel>,
    /// A datagram that an end sent where it may not.
    astray: Option<String>,
    trace: Trace,
    identity: Identity,
    engine: EngineConfig,
    cryptography: Cryptography,
    seed: u64,
}

fn seed_shift() -> u64 {
    let shift = std::env::var("FAIRPATH_SEED_SHIFT").unwrap_or_else(|_| "0".into());
    shift.parse().unwrap_or_else(|_| panic!("FAIRPATH_SEED_SHIFT is {shift:?}, and has to be a whole number"))
}

impl World {
    /// A connection over these wires, the first of which carries the handshake.
    pub fn new(wires: &[Wire], engine: &EngineConfig, seed: u64) -> Self {
        Self::protected_by(Cryptography::Tls, wires, engine, seed)
    }

    /// The same with the cryptography that is named.
    ///
    /// `FAIRPATH_SEED_SHIFT` in the environment, a whole number, is added to the seed. It shows
    /// whether a test passes only thanks to its seed.
    ///
    /// # Panics
    ///
    /// If that is no whole number.
    pub fn protected_by(cryptography: Cryptography, wires: &[Wire], engine: &EngineConfig, seed: u64) -> Self {
        let seed = seed.wrapping_add(seed_shift());
        Self::with_clocks([Skew::default(); 2], cryptography, wires, engine, seed)
    }

    /// The same between hosts, of client and server, whose clocks are off.
    pub fn with_clocks(
        clocks: [Skew; 2],
        cryptography: Cryptography,
        wires: &[Wire],
        engine: &EngineConfig,
        seed: u64,
    ) -> Self {
        Self::over(Wires::new(wires, seed), clocks, cryptography, engine, seed)
    }

    /// A connection over these wires to a server with one address and `ports` ports. The ways are
    /// those of the first wire's ports, then those of the second's; the very first carries the
    /// handshake.
    pub fn with_ports(wires: &[Wire], ports: u16, seed: u64) -> Self {
        let wires = Wires::with_ports(wires, ports, seed);
        Self::over(wires, [Skew::default(); 2], Cryptography::Tls, &EngineConfig::live(), seed)
    }

    fn over(wires: Wires, clocks: [Skew; 2], cryptography: Cryptography, engine: &EngineConfig, seed: u64) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
        let start = Instant::now();
        let identity = identity();
        let process = |side: Side, seed| {
            let origin = Pinned::new(cryptography, seed);
            Process { origin, clock: Clock::new(start, clocks[side as usize]), now: start }
        };
        let (of_server, of_client) = (process(Side::Server, seed), process(Side::Client, !seed));
        let server = End::server(identity.clone(), engine, interfaces(&wires), of_server);
        let client = End::client(identity.fingerprint(), engine, pairs(&wires), of_client);
        let machine = |side| Machine {
            stalled_until: start,
            asleep_until: start,
            unread: Vec::new(),
            proofs: Proofs::new(side),
            data_at: vec![None; wires.ways.len()],
            idle: Idle::default(),
        };
        Self {
            start,
            now: start,
            machines: Side::ALL.map(machine),
            wires,
            client,
            server,
            redials: false,
            dialled_at: start,
            endings: Vec::new(),
            dials: 1,
            copied_from: None,
            luck: ChaCha8Rng::seed_from_u64(seed),
            seen: Vec::new(),
            astray: None,
            trace: Trace::default(),
            identity,
            engine: engine.clone(),
            cryptography,
            seed,
        }
    }

    /// The same, run until all paths carry data.
    pub fn connected(wires: &[Wire], seed: u64) -> Self {
        Self::new(wires, &EngineConfig::live(), seed).opened()
    }

    /// This, run until all paths carry data.
    pub fn opened(mut self) -> Self {
        let count = self.wires.ways.len();
        let open = |world: &mut Self| {
            let now = world.now;
            let usable = |end: &mut End| end.snapshots(now).iter().filter(|path| path.usable).count();
            world.client.is_connected() && usable(&mut world.client) == count && usable(&mut world.server) == count
        };
        assert!(self.run_until(Duration::from_secs(5), open), "seed {}: not all paths opened in 5 s", self.seed);
        self
    }

    /// How much time has passed.
    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    fn at(&self) -> Timestamp {
        Timestamp::ZERO + self.elapsed()
    }

    /// One of the ends.
    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    fn machine(&mut self, side: Side) -> &mut Machine {
        &mut self.machines[side as usize]
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets time pass until no host stands still.
    pub(crate) fn run_until_awake(&mut self) {
        let until = self.machines.iter().map(|machine| machine.stalled_until).max();
        self.run_for(until.map_or(Duration::ZERO, |until| until.saturating_duration_since(self.now)));
    }

    /// Lets time pass until something is so; false where it is not so after `patience`.
    pub fn run_until(&mut self, patience: Duration, done: impl Fn(&mut Self) -> bool) -> bool {
        let end = self.now + patience;
        loop {
            self.step();
            if done(self) {
                return true;
            }
            let arrival = self.wires.next_event().map(|at| self.start + at.since(Timestamp::ZERO));
            let [of_client, of_server] = [&self.client, &self.server].map(|end| end.next_timeout(self.now));
            let [client, server] = &self.machines;
            let of_client = of_client.map(|at| at.max(client.stalled_until));
            let of_server = of_server.map(|at| at.max(server.stalled_until));
            let redial = self.redial_at();
            let next = [arrival, of_client, of_server, redial].into_iter().flatten().min();
            // Anything due at this moment is done in the next step: time never goes backwards.
            match next.map(|at| at.max(self.now)).filter(|at| *at <= end) {
                Some(next) => self.now = next,
                None => {
                    self.now = end;
                    return done(self);
                }
            }
        }
    }

    /// How long it took until `bytes` more have arrived at the server (or the client); `None` where they have
    /// not within `patience`.
    pub fn time_to_receive(&mut self, at_client: bool, bytes: u64, patience: Duration) -> Option<Duration> {
        let received = |world: &Self| if at_client { world.client.received() } else { world.server.received() };
        let (begun, wanted) = (self.now, received(self) + bytes);
        self.run_until(patience, |world| received(world) >= wanted).then(|| self.now - begun)
    }

    /// Everything that is due now.
    fn step(&mut self) {
        while let Some(parcel) = self.wires.poll(self.at()) {
            self.arrive(parcel);
        }
        let (now, mut leaving) = (self.now, Vec::new());
        for side in Side::ALL {
            if now < self.machine(side).stalled_until {
                continue;
            }
            std::mem::take(&mut self.machine(side).unread).into_iter().for_each(|parcel| self.arrive(parcel));
            if side == Side::Client && self.redial_at().is_some_and(|at| at <= now) {
                self.redial();
            }
            self.end(side).drive(now, &mut |one| leaving.push((side, one)));
        }
        for (side, one) in leaving {
            self.leave(side, one);
        }
        Side::ALL.into_iter().for_each(|side| self.watch_idle(side));
        self.say_state();
    }

    /// A host that stands still or sleeps is asked again when it is back.
    fn watch_idle(&mut self, side: Side) {
        let now = self.now;
        let machine = &self.machines[side as usize];
        if !machine.idle.is_due(now) {
            return;
        }
        let is_awake = now >= machine.stalled_until.max(machine.asleep_until);
        let sent_at = machine.data_at.iter().flatten().max().copied();
        let could_send = is_awake && self.end(side).could_send(now);
        if let Some(idle) = self.machine(side).idle.look(could_send, sent_at, now) {
            let what = format!("stood still for {idle:?} with data and a path that has room{}", self.state());
            self.say(format_args!("{side:?} {what}"));
            self.end(side).violation.get_or_insert(what);
        }
    }

    fn leave(&mut self, side: Side, leaving: Leaving) {
        let Leaving { from, to, contents } = leaving;
        self.trace.note(self.elapsed(), side == Side::Client, &contents);
        if self.trace.is_told() {
            let from = from.map(|ip| format!("{} ", ip.to_canonical())).unwrap_or_default();
            self.say(format_args!("{side:?} sends {from}> {to}, {} bytes", contents.len()));
        }
        let now = self.now;
        let shown = self.end(side).clock.at(now);
        let astray = self.machine(side).proofs.on_departure(to, contents.len(), shown);
        self.astray = self.astray.take().or_else(|| Some(format!("from the {side:?}: {}", astray?)));
        let from = from.map(|ip| ip.to_canonical());
        let Some(way) = self.wires.way_of(side, from, to) else { return };
        // A small packet is a sign of life or an acknowledgement, one of exactly that size a challenge.
        if contents.len() > PROBE_MAX / 2 && contents.len() != PROBE_MAX {
            self.machine(side).data_at[way] = Some(self.now);
        }
        let addresses = self.wires.addresses(way, side);
        let datagram = Datagram { from: addresses.0, to: addresses.1, contents };
        let parcel = Parcel { datagram, sent_to: to, left: Some(self.now) };
        if side == Side::Client
            && let Some(from) = self.copied_from.take()
        {
            let mut copy = parcel.clone();
            copy.datagram.from = from;
            self.wires.send(way, side, copy, self.at());
        }
        if self.seen.len() < SEEN_MAX && self.luck.random_bool(0.01) {
            self.seen.push(parcel.clone());
        }
        self.wires.send(way, side, parcel, self.at());
    }

    fn arrive(&mut self, parcel: Parcel) {
        let is_server = self.wires.ways.iter().any(|way| way.server == parcel.datagram.to);
        let side = if is_server { Side::Server } else { Side::Client };
        let now = self.now;
        let machine = self.machine(side);
        if now < machine.asleep_until {
            return;
        }
        if now < machine.stalled_until {
            return machine.unread.push(parcel);
        }
        let Parcel { datagram: Datagram { from, to, contents }, sent_to, left } = parcel;
        machine.proofs.on_arrival(from, contents.len(), left);
        if left.is_some() {
            self.machine(side.other()).proofs.on_reached(sent_to, now);
        }
        if self.trace.is_told() {
            self.say(format_args!("{side:?} hears {from}, {} bytes", contents.len()));
        }
        for answer in self.end(side).receive(from, to.ip(), contents, now) {
            self.leave(side, answer);
        }
    }

    /// Tells everything from now on.
    pub fn tell(&mut self, teller: Option<Teller>) {
        self.trace.tell(teller);
    }

    /// Says `what` to whoever is told everything.
    pub(crate) fn say(&mut self, what: impl Display) {
        let at = self.elapsed();
        self.trace.say(at, what);
    }

    fn say_state(&mut self) {
        if self.trace.is_told() {
            let (at, state) = (self.elapsed(), self.state());
            self.trace.say_state(at, state);
        }
    }

    /// How the ends and their paths stand.
    pub(crate) fn state(&mut self) -> String {
        let mut lines = String::new();
        for (name, end) in [("client", &mut self.client), ("server", &mut self.server)] {
            lines += &format!("\n  {name}: {}", end.ended().unwrap_or("open"));
            for path in end.paths() {
                let usable = path.snapshot.map(|snapshot| (snapshot.path.get(), snapshot.usable));
                lines += &format!(
                    "\n    {} to {}: {}, opened {} times, {usable:?}",
                    path.interface, path.remote, path.state, path.opened
                );
            }
        }
        lines
    }

    /// From now on packets are counted only: the digest costs time, and not everybody asks for it.
    pub fn without_trace(mut self) -> Self {
        self.trace.only_count();
        self
    }

    /// A digest of everything that has left either end: when, on which end, and what.
    pub fn trace(&self) -> blake3::Hash {
        self.trace.digest()
    }

    /// How many datagrams have left.
    pub fn packets(&self) -> u64 {
        self.trace.packets()
    }

    /// The first violation of an invariant, if there is one.
    pub fn violation(&self) -> Option<String> {
        let of = |name: &str, end: &End| end.violation.as_ref().map(|what| format!("at the {name}: {what}"));
        of("client", &self.client).or_else(|| of("server", &self.server)).or_else(|| self.astray.clone())
    }

    /// On which ways both ends have a path that works.
    pub fn opened_ways(&mut self) -> Vec<bool> {
        let mut has_path = |way: &Way| {
            let is_open = |path: &PathReport| path.state == PathState::Open;
            let ends = |path: &PathReport| path.remote == way.server && path.local == Some(way.client.ip());
            let client = self.client.paths().iter().any(|path| is_open(path) && ends(path));
            client && self.server.paths().iter().any(|path| is_open(path) && path.local == Some(way.server.ip()))
        };
        self.wires.ways.iter().map(&mut has_path).collect()
    }

    /// When an end last sent data on a way; `None`: never.
    pub fn data_left_at(&self, way: usize, from_client: bool) -> Option<Instant> {
        let side = if from_client { Side::Client } else { Side::Server };
        self.machines[side as usize].data_at[way]
    }

    /// How many packets the queue of a wire has dropped: there, and back.
    pub fn dropped(&self, way: usize) -> (u64, u64) {
        (self.wires.dropped(way, Side::Client), self.wires.dropped(way, Side::Server))
    }
}

/// Events.
impl World {
    /// Sets the impairments of a wire from now on.
    pub fn set_impair(&mut self, way: usize, impair: Impair) {
        self.wires.set_impair(way, impair, self.at());
    }

    /// The current impairments of a wire.
    pub fn impair(&self, way: usize) -> Impair {
        self.wires.impair(way)
    }

    /// Nothing more is wrong with the packets of a wire.
    pub fn mend(&mut self, way: usize) {
        self.wires.mend(way, self.at());
    }

    /// Both directions of a wire are cut, or mended.
    pub fn set_up(&mut self, way: usize, up: bool) {
        self.set_there(way, up);
        self.set_back(way, up);
    }

    /// The direction from the client to the server.
    pub fn set_there(&mut self, way: usize, up: bool) {
        self.wires.set_up(way, Side::Client, up, self.at());
    }

    /// The direction from the server to the client.
    pub fn set_back(&mut self, way: usize, up: bool) {
        self.wires.set_up(way, Side::Server, up, self.at());
    }

    /// Sets the rate of a wire from the server to the client from now on.
    pub fn set_rate_back(&mut self, way: usize, rate: Bitrate) {
        self.wires.set_rate(way, Side::Server, rate, self.at());
    }

    /// Stalls a host: datagrams wait in its sockets, and its clock goes on.
    pub fn stall(&mut self, side: Side, time: Duration) {
        let until = self.now + time;
        let machine = self.machine(side);
        machine.stalled_until = machine.stalled_until.max(until);
    }

    /// Puts a host to sleep: datagrams are lost, and its clock stands still.
    pub fn sleep(&mut self, side: Side, time: Duration) {
        self.stall(side, time);
        let (now, until) = (self.now, self.now + time);
        let machine = self.machine(side);
        machine.asleep_until = machine.asleep_until.max(until);
        self.end(side).clock.stand_still(now, time);
    }

    /// A host's clock jumps ahead.
    pub fn jump(&mut self, side: Side, by: Duration) {
        let now = self.now;
        self.end(side).clock.jump(now, by);
    }

    /// A process ends without a word, and another one begins: a client with sockets of its own, or with the
    /// addresses of the one before.
    pub fn restart(&mut self, side: Side, keeps_ports: bool) {
        self.machine(side).unread.clear();
        self.machine(side).proofs = Proofs::new(side);
        match side {
            Side::Server => {
                let process = self.process(side);
                let server = End::server(self.identity.clone(), &self.engine, interfaces(&self.wires), process);
                self.replace(side, server);
            }
            Side::Client => {
                if !keeps_ports {
                    self.wires.replace_sockets();
                }
                self.dial(0);
            }
        }
    }

    /// When the client begins another connection, if nothing comes of this one.
    fn redial_at(&self) -> Option<Instant> {
        let after = match (self.client.ended(), self.client.is_connected()) {
            (Some(_), _) => REDIAL_PAUSE,
            (None, false) => ATTEMPT,
            (None, true) => return None,
        };
        let [client, _] = &self.machines;
        self.redials.then(|| (self.dialled_at + after).max(client.stalled_until))
    }

    /// The client gives its connection up and makes another, on the next wire.
    fn redial(&mut self) {
        let ended = self.client.ended().unwrap_or("not made in time").to_owned();
        self.endings.push(ended);
        self.wires.replace_sockets();
        let old = self.dial(self.dials);
        let now = self.now;
        self.client.inherit_streams(old, now);
    }

    /// The client begins again, on the wire of this number. The end that was before.
    fn dial(&mut self, first: usize) -> End {
        self.dials += 1;
        self.dialled_at = self.now;
        let mut pairs = pairs(&self.wires);
        let count = pairs.len();
        pairs.rotate_left(first % count);
        let process = self.process(Side::Client);
        let client = End::client(self.identity.fingerprint(), &self.engine, pairs, process);
        self.replace(Side::Client, client)
    }

    fn process(&mut self, side: Side) -> Process {
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let origin = Pinned::new(self.cryptography, self.seed);
        Process { origin, clock: self.end(side).clock, now: self.now }
    }

    fn replace(&mut self, side: Side, by: End) -> End {
        let end = self.end(side);
        let mut old = std::mem::replace(end, by);
        (end.host, end.greeting, end.violation) = (old.host, old.greeting, old.violation.take());
        old.plan_of_streams().into_iter().for_each(|plan| end.begin_streams(plan));
        old
    }

    /// The address translator forgets the client and gives it another port.
    pub fn rebind(&mut self, way: usize) -> SocketAddr {
        self.wires.rebind(way, false)
    }

    /// The same, and what is sent to the old address still reaches the client for a while: until it is mended.
    pub fn rebind_softly(&mut self, way: usize) -> SocketAddr {
        self.wires.rebind(way, true)
    }

    /// Somebody copies the next datagram to the server, and sends it from another address.
    pub fn copy_next_from(&mut self, foreign: SocketAddr) {
        self.copied_from = Some(foreign);
    }

    /// Somebody sends to both ends what he has seen, cut, changed, or from elsewhere, and what he made up.
    pub fn attack(&mut self) {
        let foreign: SocketAddr = "192.0.2.77:7777".parse().expect("an address");
        let mut sent: Vec<Parcel> = Vec::new();
        for seen in std::mem::take(&mut self.seen) {
            let [mut short, mut changed, mut copied] = [(); 3].map(|()| seen.clone());
            let length = seen.datagram.contents.len();
            short.datagram.contents.truncate(self.luck.random_range(0..=length));
            let byte = self.luck.random_range(0..length);
            changed.datagram.contents[byte] ^= self.luck.random_range(1..=255u8);
            copied.datagram.from = foreign;
            sent.extend([short, changed, copied, seen]);
        }
        for at in 0..self.wires.ways.len() {
            let way = &self.wires.ways[at];
            let (client, server, outside) = (way.client, way.server, way.outside);
            for (from, to) in [(outside, server), (server, client), (foreign, server)] {
                let length = self.luck.random_range(0..1_500);
                let contents = (0..length).map(|_| self.luck.random()).collect();
                sent.push(Parcel { datagram: Datagram { from, to, contents }, sent_to: to, left: None });
            }
        }
        sent.into_iter().for_each(|parcel| self.arrive(parcel));
    }
}
