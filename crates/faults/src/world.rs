//! Two ends, the wires between them, and time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, Bytes, Timestamp};
use fairpath_net::{Datagram, Filter, Impairments, LinkConfig, LinkId, Network, PathRoutes, QueueConfig};
use fairpath_quic_core::EngineConfig;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::end::{End, Leaving};
use crate::pinned::{self, Cryptography, Pinned};
use crate::trace::Trace;
use fairpath_quic_core::Identity;
use fairpath_quic_core::Interface;
use fairpath_quic_core::pairs::Pair;

/// The ends, as places in arrays.
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// What probes, challenges and signs of life may measure, in bytes of UDP payload.
const PROBE_MAX: usize = 1_200;

/// So many packets an eavesdropper keeps.
const SEEN_MAX: usize = 8;

/// What happens to packets of a wire beside its queue, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impair {
    /// The share that is lost.
    pub loss: f64,
    /// What every packet takes longer, one way.
    pub delay: Duration,
    /// The largest UDP payload that passes.
    pub mtu: Option<Bytes>,
    /// What befalls those that pass.
    pub passing: Impairments,
}

/// A wire between the ends, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// What it carries in a second.
    pub rate: Bitrate,
    /// How long a packet takes, one way.
    pub delay: Duration,
    /// What its queue holds.
    pub queue: Bytes,
    /// The share of packets that are lost at random, in each direction, until the wire is mended.
    pub loss: f64,
}

impl Wire {
    /// A queue of 100 ms.
    pub fn new(mbps: u64, delay_ms: u64) -> Self {
        let rate = Bitrate::from_mbps(mbps);
        Self { rate, delay: Duration::from_millis(delay_ms), queue: rate * Duration::from_millis(100), loss: 0.0 }
    }
}

/// One wire with the address translator at the client's side of it.
struct Way {
    there: LinkId,
    back: LinkId,
    routes: PathRoutes,
    client: SocketAddr,
    server: SocketAddr,
    /// The client as the server sees it.
    outside: SocketAddr,
    /// Where the server saw the client before, which still reaches it.
    lingering: Option<SocketAddr>,
    /// What every packet takes, one way, where nothing is wrong with the wire.
    delay: Duration,
    impair: Impair,
    /// When the last packet that is no small one was sent there: by the client, and by the server.
    data_at: [Option<Instant>; 2],
}

/// Two ends and the wires between them.
pub struct World {
    start: Instant,
    /// What time it is.
    pub now: Instant,
    network: Network<Datagram>,
    ways: Vec<Way>,
    /// The end that connects.
    pub client: End,
    /// The end that is connected to.
    pub server: End,
    /// The next datagram to the server is copied, and the copy arrives first, from this address.
    copied_from: Option<SocketAddr>,
    luck: ChaCha8Rng,
    /// Until when the hosts of client and server stand still, and what has come for them meanwhile.
    stalled_until: [Instant; 2],
    unread: [Vec<Datagram>; 2],
    /// Somebody who sees the first way keeps a packet now and then.
    seen: Vec<Datagram>,
    trace: Trace,
    identity: Identity,
    engine: EngineConfig,
    cryptography: Cryptography,
    seed: u64,
}

impl World {
    /// A connection over these wires, the first of which carries the handshake.
    pub fn new(wires: &[Wire], engine: &EngineConfig, seed: u64) -> Self {
        Self::protected_by(Cryptography::Tls, wires, engine, seed)
    }

    /// The same with the cryptography that is named.
    pub fn protected_by(cryptography: Cryptography, wires: &[Wire], engine: &EngineConfig, seed: u64) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
        let start = Instant::now();
        let mut network = Network::new(seed);
        let ways: Vec<Way> = wires.iter().enumerate().map(|(at, wire)| way(&mut network, at as u8, wire)).collect();
        let identity = pinned::identity();
        let fingerprint = identity.fingerprint();
        let name = |at: usize| format!("if{at}");
        let interface = |(at, way): (usize, &Way)| (name(at), way.server.ip());
        let server_interfaces = ways.iter().enumerate().map(interface).collect();
        let pair = |(at, way): (usize, &Way)| Pair {
            local: Interface { name: name(at), address: way.client.ip(), prefix_bits: 24, unusable: None },
            remote: way.server,
        };
        let pairs = ways.iter().enumerate().map(pair).collect();
        let losses = wires.iter().map(|wire| Impair { loss: wire.loss, ..Impair::default() });
        let [of_server, of_client] = [seed, !seed].map(|seed| Pinned::new(cryptography, seed));
        let server = End::server(identity.clone(), engine, server_interfaces, of_server, start);
        let client = End::client(fingerprint, engine, pairs, of_client, start);
        let mut world = Self {
            start,
            now: start,
            network,
            ways,
            client,
            server,
            copied_from: None,
            luck: ChaCha8Rng::seed_from_u64(seed),
            stalled_until: [start; 2],
            unread: [Vec::new(), Vec::new()],
            seen: Vec::new(),
            trace: Trace::default(),
            identity,
            engine: engine.clone(),
            cryptography,
            seed,
        };
        losses.enumerate().for_each(|(way, impair)| world.set_impair(way, impair));
        world
    }

    /// The same, run until all paths carry data.
    pub fn connected(wires: &[Wire], seed: u64) -> Self {
        Self::new(wires, &EngineConfig::live(), seed).opened()
    }

    /// This, run until all paths carry data.
    pub fn opened(mut self) -> Self {
        let count = self.ways.len();
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

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets time pass until something is so; false where it is not so after `patience`.
    pub fn run_until(&mut self, patience: Duration, done: impl Fn(&mut Self) -> bool) -> bool {
        let end = self.now + patience;
        loop {
            self.step();
            if done(self) {
                return true;
            }
            let events = [self.network.next_event().map(|at| self.start + at.since(Timestamp::ZERO))];
            let of_client = self.client.next_timeout(self.now).map(|at| at.max(self.stalled_until[CLIENT]));
            let of_server = self.server.next_timeout(self.now).map(|at| at.max(self.stalled_until[SERVER]));
            let next = events.into_iter().chain([of_client, of_server]).flatten().min().unwrap_or(end);
            // What is due at this very moment is done in the next step: time never goes backwards.
            let next = next.max(self.now);
            if next > end {
                self.now = end;
                return done(self);
            }
            self.now = next;
        }
    }

    /// How long it took until `bytes` more have arrived at the server (or the client); `None` where they have
    /// not within `patience`.
    pub fn time_to_receive(&mut self, at_client: bool, bytes: u64, patience: Duration) -> Option<Duration> {
        let received = |world: &Self| if at_client { world.client.received } else { world.server.received };
        let (begun, wanted) = (self.now, received(self) + bytes);
        self.run_until(patience, |world| received(world) >= wanted).then(|| self.now - begun)
    }

    /// Everything that is due now.
    fn step(&mut self) {
        while let Some(delivery) = self.network.poll(Timestamp::ZERO + (self.now - self.start)) {
            self.arrive(delivery.packet);
        }
        let (now, mut leaving) = (self.now, Vec::new());
        for side in [CLIENT, SERVER] {
            if now < self.stalled_until[side] {
                continue;
            }
            std::mem::take(&mut self.unread[side]).into_iter().for_each(|datagram| self.arrive(datagram));
            let end = if side == CLIENT { &mut self.client } else { &mut self.server };
            end.drive(now, &mut |one| leaving.push((side == CLIENT, one)));
        }
        for (from_client, one) in leaving {
            self.leave(from_client, one);
        }
    }

    fn leave(&mut self, from_client: bool, leaving: Leaving) {
        let Leaving { from, to, contents } = leaving;
        self.trace.note(self.elapsed(), from_client, &contents);
        let from = from.map(|ip| ip.to_canonical());
        let of_client = |way: &Way| from.map_or(way.server == to, |ip| way.client.ip() == ip);
        // Who sends to an address that is no longer the client's outside reaches nobody.
        let leads_back = |way: &Way| way.outside == to || way.lingering == Some(to);
        let to_client = |way: &Way| leads_back(way) && from.is_none_or(|ip| way.server.ip() == ip);
        let at = match from_client {
            true => self.ways.iter().position(of_client),
            false => self.ways.iter().position(to_client),
        };
        let Some(at) = at else { return };
        if contents.len() > PROBE_MAX {
            self.ways[at].data_at[if from_client { CLIENT } else { SERVER }] = Some(self.now);
        }
        let way = &self.ways[at];
        let datagram = match from_client {
            true => Datagram { from: way.outside, to: way.server, contents },
            false => Datagram { from: way.server, to: way.client, contents },
        };
        if from_client && let Some(foreign) = self.copied_from.take() {
            self.enter(from_client, at, Datagram { from: foreign, ..datagram.clone() });
        }
        if self.seen.len() < SEEN_MAX && self.luck.random_bool(0.01) {
            self.seen.push(datagram.clone());
        }
        self.enter(from_client, at, datagram);
    }

    fn enter(&mut self, from_client: bool, way: usize, datagram: Datagram) {
        let routes = self.ways[way].routes;
        let route = if from_client { routes.forward } else { routes.backward };
        let size = datagram.size();
        // What a filter or a queue refuses is lost.
        let _ = self.network.send(self.at(), route, datagram, size);
    }

    fn arrive(&mut self, datagram: Datagram) {
        let is_server = self.ways.iter().any(|way| way.server == datagram.to);
        let side = if is_server { SERVER } else { CLIENT };
        if self.now < self.stalled_until[side] {
            return self.unread[side].push(datagram);
        }
        let Datagram { from, to, contents } = datagram;
        let end = if is_server { &mut self.server } else { &mut self.client };
        for answer in end.receive(from, to.ip(), contents, self.now) {
            self.leave(!is_server, answer);
        }
    }

    /// A digest of everything that has left either end: when, on which end, and what.
    pub fn trace(&self) -> blake3::Hash {
        self.trace.digest()
    }

    /// How many datagrams have left.
    pub fn packets(&self) -> u64 {
        self.trace.packets()
    }

    /// What happens to the packets of a wire from now on.
    pub fn set_impair(&mut self, way: usize, impair: Impair) {
        let at = self.at();
        let Way { there, back, delay, server, .. } = self.ways[way];
        // A filter sees the headers too.
        let headers = Datagram { from: server, to: server, contents: Vec::new() }.size();
        let hole = impair.mtu.map_or(Filter::Pass, |mtu| Filter::DropLarger(mtu + headers));
        for link in [there, back] {
            self.network.set_filters(link, &[hole, Filter::DropShare(impair.loss)], at);
            self.network.set_link_delay(link, delay + impair.delay, at);
            self.network.set_impairments(link, &impair.passing, at);
        }
        self.ways[way].impair = impair;
    }

    /// What happens to them at present.
    pub fn impair(&self, way: usize) -> Impair {
        self.ways[way].impair
    }

    /// The server's process ends without a word, and another one begins.
    pub fn restart_server(&mut self) {
        let names = self.ways.iter().enumerate().map(|(at, way)| (format!("if{at}"), way.server.ip())).collect();
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let origin = Pinned::new(self.cryptography, self.seed);
        self.server = End::server(self.identity.clone(), &self.engine, names, origin, self.now);
    }

    /// Somebody sends to both ends what he has seen, cut, changed, or from elsewhere, and what he made up.
    pub fn attack(&mut self) {
        let foreign: SocketAddr = "192.0.2.77:7777".parse().expect("an address");
        let mut sent: Vec<Datagram> = Vec::new();
        for seen in std::mem::take(&mut self.seen) {
            let cut = self.luck.random_range(0..=seen.contents.len());
            let mut changed = seen.clone();
            let byte = self.luck.random_range(0..changed.contents.len());
            changed.contents[byte] ^= self.luck.random_range(1..=255u8);
            sent.push(Datagram { contents: seen.contents[..cut].to_vec(), ..seen.clone() });
            sent.push(changed);
            sent.push(Datagram { from: foreign, ..seen.clone() });
            sent.push(seen);
        }
        for at in 0..self.ways.len() {
            let (client, server, outside) = (self.ways[at].client, self.ways[at].server, self.ways[at].outside);
            for (from, to) in [(outside, server), (server, client), (foreign, server)] {
                let length = self.luck.random_range(0..1_500);
                let contents = (0..length).map(|_| self.luck.random()).collect();
                sent.push(Datagram { from, to, contents });
            }
        }
        sent.into_iter().for_each(|datagram| self.arrive(datagram));
    }

    /// Both directions of a wire are cut, or mended.
    pub fn set_up(&mut self, way: usize, up: bool) {
        self.set_there(way, up);
        self.set_back(way, up);
    }

    /// Nothing more is wrong with the packets of a wire.
    pub fn mend(&mut self, way: usize) {
        self.set_impair(way, Impair::default());
        self.ways[way].lingering = None;
    }

    /// The direction from the client to the server.
    pub fn set_there(&mut self, way: usize, up: bool) {
        self.network.set_link_up(self.ways[way].there, up, self.at());
    }

    /// The direction from the server to the client.
    pub fn set_back(&mut self, way: usize, up: bool) {
        self.network.set_link_up(self.ways[way].back, up, self.at());
    }

    /// What a wire carries in a second from now on, from the server to the client.
    pub fn set_rate_back(&mut self, way: usize, rate: Bitrate) {
        self.network.set_link_rate(self.ways[way].back, &rate.into(), self.at());
    }

    /// The server's host stands still for so long: what comes waits in its sockets.
    pub fn stall_server(&mut self, time: Duration) {
        self.stalled_until[SERVER] = self.stalled_until[SERVER].max(self.now + time);
    }

    /// The same for the client's.
    pub fn stall_client(&mut self, time: Duration) {
        self.stalled_until[CLIENT] = self.stalled_until[CLIENT].max(self.now + time);
    }

    /// The address translator forgets the client and gives it another port.
    pub fn rebind(&mut self, way: usize) -> SocketAddr {
        let outside = &mut self.ways[way].outside;
        outside.set_port(outside.port() + 1);
        *outside
    }

    /// The same, and what is sent to the old address still reaches the client for a while: until it is mended.
    pub fn rebind_softly(&mut self, way: usize) -> SocketAddr {
        self.ways[way].lingering = Some(self.ways[way].outside);
        self.rebind(way)
    }

    /// Somebody copies the next datagram to the server, and sends it from another address.
    pub fn copy_next_from(&mut self, foreign: SocketAddr) {
        self.copied_from = Some(foreign);
    }

    /// When an end last sent data on a way; `None`: never.
    pub fn data_left_at(&self, way: usize, from_client: bool) -> Option<Instant> {
        self.ways[way].data_at[if from_client { CLIENT } else { SERVER }]
    }

    /// How many packets the queue of a wire has dropped: there, and back.
    pub fn dropped(&self, way: usize) -> (u64, u64) {
        let full = |link| {
            let stats = self.network.stats(link);
            stats.overflowed.packets
        };
        (full(self.ways[way].there), full(self.ways[way].back))
    }
}

fn way(network: &mut Network<Datagram>, at: u8, wire: &Wire) -> Way {
    let queue = QueueConfig::bytes(wire.queue);
    let config = LinkConfig::new(wire.rate).delay(wire.delay).queue(queue);
    let there = network.add_link(&format!("there {at}"), &config).expect("a link");
    let back = network.add_link(&format!("back {at}"), &config).expect("a link");
    let routes = network.add_path(&[there], &[back]).expect("routes");
    let address = |host: u8, port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, at, host)), port);
    // The translator keeps the address: what the server sees differs by the port.
    let (client, server, outside) = (address(1, 1000), address(2, 4433), address(1, 50_000));
    Way { there, back, routes, client, server, outside, lingering: None, delay: wire.delay, impair: Impair::default(), data_at: [None; 2] }
}
