//! Two ends, the wires between them, and time.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, Bytes, Timestamp};
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, LinkId, Network, Packet, PathRoutes, QueueConfig};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::end::{End, Leaving};
use crate::interfaces::Interface;
use crate::pairs::Pair;
use crate::tls::Identity;

/// IPv4 and UDP headers.
const HEADERS: u64 = 28;

/// A wire between the ends, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) rate: Bitrate,
    pub(super) delay: Duration,
    pub(super) queue: Bytes,
    /// The share of packets that are lost at random, in each direction, until the wire is mended.
    pub(super) loss: f64,
}

impl Wire {
    /// A queue of 100 ms.
    pub(super) fn new(mbps: u64, delay_ms: u64) -> Self {
        let rate = Bitrate::from_mbps(mbps);
        Self { rate, delay: Duration::from_millis(delay_ms), queue: rate * Duration::from_millis(100), loss: 0.0 }
    }
}

/// A datagram on its way.
#[derive(Clone)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    contents: Vec<u8>,
}

impl Packet for Datagram {}

/// One wire with the address translator at the client's side of it.
struct Way {
    there: LinkId,
    back: LinkId,
    routes: PathRoutes,
    client: SocketAddr,
    server: SocketAddr,
    /// The client as the server sees it.
    outside: SocketAddr,
    loss: f64,
}

/// Two ends and the wires between them.
pub(super) struct World {
    start: Instant,
    pub(super) now: Instant,
    network: Network<Datagram>,
    ways: Vec<Way>,
    pub(super) client: End,
    pub(super) server: End,
    /// The next datagram to the server is copied, and the copy arrives first, from this address.
    copied_from: Option<SocketAddr>,
    luck: ChaCha8Rng,
    /// Until when the server's host stands still, and what has come for it meanwhile.
    stalled_until: Instant,
    unread: Vec<Datagram>,
}

impl World {
    /// A connection over these wires, the first of which carries the handshake.
    pub(super) fn new(wires: &[Wire], engine: &EngineConfig, seed: u64) -> Self {
        let start = Instant::now();
        let mut network = Network::new(seed);
        let ways: Vec<Way> = wires.iter().enumerate().map(|(at, wire)| way(&mut network, at as u8, wire)).collect();
        let identity = Identity::generate().expect("a key");
        let name = |at: usize| format!("if{at}");
        let interface = |(at, way): (usize, &Way)| (name(at), way.server.ip());
        let server_interfaces = ways.iter().enumerate().map(interface).collect();
        let pair = |(at, way): (usize, &Way)| Pair {
            local: Interface { name: name(at), address: way.client.ip(), prefix_bits: 24, unusable: None },
            remote: way.server,
        };
        let pairs = ways.iter().enumerate().map(pair).collect();
        let server = End::server(&identity, engine, server_interfaces, seed, start);
        let client = End::client(identity.fingerprint(), engine, pairs, seed ^ 1, start);
        Self {
            start,
            now: start,
            network,
            ways,
            client,
            server,
            copied_from: None,
            luck: ChaCha8Rng::seed_from_u64(seed),
            stalled_until: start,
            unread: Vec::new(),
        }
    }

    /// The same, run until all paths carry data.
    pub(super) fn connected(wires: &[Wire], seed: u64) -> Self {
        let mut world = Self::new(wires, &EngineConfig::live(), seed);
        let count = wires.len();
        let open = |world: &Self| {
            let usable = |end: &End| end.snapshots(world.now).iter().filter(|path| path.usable).count();
            world.client.is_connected() && usable(&world.client) == count && usable(&world.server) == count
        };
        assert!(world.run_until(Duration::from_secs(5), open), "seed {seed}: not all paths opened in 5 s");
        world
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    fn at(&self) -> Timestamp {
        Timestamp::ZERO + self.elapsed()
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, time: Duration) {
        self.run_until(time, |_| false);
    }

    /// Lets time pass until something is so; false where it is not so after `patience`.
    pub(super) fn run_until(&mut self, patience: Duration, done: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + patience;
        loop {
            self.step();
            if done(self) {
                return true;
            }
            let events = [self.network.next_event().map(|at| self.start + at.since(Timestamp::ZERO))];
            let of_server = self.server.next_timeout().map(|at| at.max(self.stalled_until));
            let timeouts = [self.client.next_timeout(), of_server];
            let next = events.into_iter().chain(timeouts).flatten().min().unwrap_or(end);
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
    pub(super) fn time_to_receive(&mut self, at_client: bool, bytes: u64, patience: Duration) -> Option<Duration> {
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
        self.client.drive(now, &mut |one| leaving.push((true, one)));
        if now >= self.stalled_until {
            std::mem::take(&mut self.unread).into_iter().for_each(|datagram| self.arrive(datagram));
            self.server.drive(now, &mut |one| leaving.push((false, one)));
        }
        for (from_client, one) in leaving {
            self.leave(from_client, one);
        }
    }

    fn leave(&mut self, from_client: bool, leaving: Leaving) {
        let Leaving { from, to, contents } = leaving;
        let at = self.at();
        let from = from.map(|ip| ip.to_canonical());
        let of_client = |way: &&Way| from.map_or(way.server == to, |ip| way.client.ip() == ip);
        // Who sends to an address that is no longer the client's outside reaches nobody.
        let to_client = |way: &&Way| way.outside == to && from.is_none_or(|ip| way.server.ip() == ip);
        let way = match from_client {
            true => self.ways.iter().find(of_client),
            false => self.ways.iter().find(to_client),
        };
        let Some(way) = way else { return };
        if way.loss > 0.0 && self.luck.random_bool(way.loss) {
            return;
        }
        let size = Bytes::new(contents.len() as u64 + HEADERS);
        let (route, datagram) = match from_client {
            true => (way.routes.forward, Datagram { from: way.outside, to: way.server, contents }),
            false => (way.routes.backward, Datagram { from: way.server, to: way.client, contents }),
        };
        if from_client && let Some(foreign) = self.copied_from.take() {
            let copy = Datagram { from: foreign, to: datagram.to, contents: datagram.contents.clone() };
            let _ = self.network.send(at, route, copy, size);
        }
        // What a queue refuses is lost.
        let _ = self.network.send(at, route, datagram, size);
    }

    fn arrive(&mut self, datagram: Datagram) {
        let is_server = self.ways.iter().any(|way| way.server == datagram.to);
        if is_server && self.now < self.stalled_until {
            return self.unread.push(datagram);
        }
        let Datagram { from, to, contents } = datagram;
        let end = if is_server { &mut self.server } else { &mut self.client };
        for answer in end.receive(from, to.ip(), &contents, self.now) {
            self.leave(!is_server, answer);
        }
    }

    /// Both directions of a wire are cut, or mended.
    pub(super) fn set_up(&mut self, way: usize, up: bool) {
        self.set_there(way, up);
        self.set_back(way, up);
    }

    /// A wire loses nothing at random any more.
    pub(super) fn mend(&mut self, way: usize) {
        self.ways[way].loss = 0.0;
    }

    /// The direction from the client to the server.
    pub(super) fn set_there(&mut self, way: usize, up: bool) {
        self.network.set_link_up(self.ways[way].there, up, self.at());
    }

    /// The direction from the server to the client.
    pub(super) fn set_back(&mut self, way: usize, up: bool) {
        self.network.set_link_up(self.ways[way].back, up, self.at());
    }

    /// The server's host stands still for so long: what comes waits in its sockets.
    pub(super) fn stall_server(&mut self, time: Duration) {
        self.stalled_until = self.now + time;
    }

    /// The address translator forgets the client and gives it another port.
    pub(super) fn rebind(&mut self, way: usize) -> SocketAddr {
        let outside = &mut self.ways[way].outside;
        outside.set_port(outside.port() + 1);
        *outside
    }

    /// Somebody copies the next datagram to the server, and sends it from another address.
    pub(super) fn copy_next_from(&mut self, foreign: SocketAddr) {
        self.copied_from = Some(foreign);
    }

    /// How many packets the queue of a wire has dropped: there, and back.
    pub(super) fn dropped(&self, way: usize) -> (u64, u64) {
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
    Way { there, back, routes, client, server, outside, loss: wire.loss }
}
