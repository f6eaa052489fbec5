//! Several connections over shared links: their shares of a bottleneck, and the verdicts of their
//! engines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use fairpath_core::Timestamp;
use fairpath_net::{Datagram, LinkConfig, LinkId, Network, RouteId};
use fairpath_quic_core::pairs::Pair;
use fairpath_quic_core::{Connection, EngineConfig, Interface, PairVerdict, PathSnapshot};

use crate::clock::{Clock, Skew};
use crate::end::{End, Leaving, Process};
use crate::lateness::Host;
use crate::pinned::{self, Cryptography, Pinned};
use crate::side::Side;

/// Connections of which the clients send, each as much as it may, over links that they share.
pub struct Crowd {
    start: Instant,
    now: Instant,
    network: Network<Datagram>,
    members: Vec<Member>,
    cryptography: Cryptography,
    seed: u64,
}

/// A connection and its ways.
struct Member {
    client: End,
    server: End,
    ways: Vec<Way>,
}

struct Way {
    client: SocketAddr,
    server: SocketAddr,
    there: RouteId,
    back: RouteId,
}

impl Member {
    fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// The way of what leaves one of the ends, and from where to where it leads.
    fn way_of(&self, side: Side, from: Option<IpAddr>, to: SocketAddr) -> Option<(RouteId, SocketAddr, SocketAddr)> {
        self.ways.iter().find_map(|way| {
            let (route, here, there) = match side {
                Side::Client => (way.there, way.client, way.server),
                Side::Server => (way.back, way.server, way.client),
            };
            (there == to && from.is_none_or(|from| from == here.ip())).then_some((route, here, there))
        })
    }
}

impl Crowd {
    /// Nobody yet; packets will be protected by nothing, which takes less time.
    #[cfg(feature = "null")]
    pub fn new(seed: u64) -> Self {
        Self::protected_by(Cryptography::Null, seed)
    }

    /// Nobody yet; packets will be protected by this.
    pub fn protected_by(cryptography: Cryptography, seed: u64) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
        let start = Instant::now();
        Self { start, now: start, network: Network::new(seed), members: Vec::new(), cryptography, seed }
    }

    /// A link that connections may share on the way to their servers.
    ///
    /// # Panics
    ///
    /// Where the description cannot be meant, or the name is taken.
    pub fn link(&mut self, name: &str, config: &LinkConfig) -> LinkId {
        self.network.add_link(name, config).expect("a link")
    }

    /// Adds a connection that begins now, with a path over each of these links towards the server.
    /// The duration is the round trip without a queue. Its client sends without end. Returns the
    /// number of the connection.
    ///
    /// # Panics
    ///
    /// Where a link is not one of this network.
    pub fn join(&mut self, engine: &EngineConfig, paths: &[(LinkId, Duration)]) -> usize {
        let member = self.join_silent(engine, paths);
        self.members[member].client.greeting = u64::MAX;
        member
    }

    /// The same, but its client sends what it is told to by [`Crowd::send`].
    ///
    /// # Panics
    ///
    /// Where a link is not one of this network.
    pub fn join_silent(&mut self, engine: &EngineConfig, paths: &[(LinkId, Duration)]) -> usize {
        let member = self.members.len();
        let ways: Vec<Way> =
            paths.iter().enumerate().map(|(at, path)| self.way(member as u8, at as u8, *path)).collect();
        let process = |origin: u64| {
            let origin = Pinned::new(self.cryptography, origin);
            Process { origin, clock: Clock::new(self.start, Skew::default()), now: self.now }
        };
        let identity = pinned::identity();
        let seed = self.seed.wrapping_mul(1_000).wrapping_add(member as u64);
        let interfaces = ways.iter().enumerate().map(|(at, way)| (name(at), way.server.ip())).collect();
        let pairs = ways.iter().enumerate().map(|(at, way)| pair(at, way)).collect();
        let server = End::server(identity.clone(), engine, interfaces, process(seed));
        let client = End::client(identity.fingerprint(), engine, pairs, process(!seed));
        self.members.push(Member { client, server, ways });
        member
    }

    fn way(&mut self, member: u8, at: u8, (link, round_trip): (LinkId, Duration)) -> Way {
        let network = &mut self.network;
        let mut delay = |direction: &str| {
            let config = LinkConfig::pure_delay(round_trip / 2);
            network.add_link(&format!("{direction} {member} {at}"), &config).expect("a link")
        };
        let (access, back) = (delay("access"), delay("back"));
        let routes = network.add_path(&[access, link], &[back]).expect("the links are there");
        let address = |host: u8, port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, member, at, host)), port);
        Way { client: address(1, 1000), server: address(2, 4433), there: routes.forward, back: routes.backward }
    }

    /// The hosts of both ends of a connection keep time like this from now on.
    pub fn set_hosts(&mut self, member: usize, host: Host) {
        let Member { client, server, .. } = &mut self.members[member];
        (client.host, server.host) = (host, host);
    }

    /// The connection at both ends, to do something with it: the client's, and the server's.
    pub fn connections(&mut self, member: usize) -> [&mut Connection; 2] {
        let Member { client, server, .. } = &mut self.members[member];
        [client, server].map(|end| end.connection().expect("it was joined"))
    }

    /// The time, as connections are told it.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Gives the client of a connection this many more bytes to send.
    pub fn send(&mut self, member: usize, bytes: u64) {
        self.members[member].client.send(bytes);
    }

    /// How much time has passed.
    pub fn elapsed(&self) -> Duration {
        self.now - self.start
    }

    /// The bytes of bulk that the server of a connection has received.
    pub fn received(&self, member: usize) -> u64 {
        self.members[member].server.received()
    }

    /// Whether the engine of the client takes all paths of a connection for those of one bottleneck; false while there
    /// is but one.
    pub fn is_together(&mut self, member: usize) -> bool {
        let paths = self.members[member].client.snapshots(self.now);
        paths.len() > 1 && paths.iter().all(|path| path.group == paths[0].group)
    }

    /// The client engine's snapshots of the paths of a connection, with the reading of its clock.
    pub fn snapshots(&mut self, member: usize) -> (Timestamp, Vec<PathSnapshot>) {
        let now = self.now;
        let look = |connection: &mut Connection| {
            connection.with_engine(now, |engine, at| (at, engine.snapshots(at).collect()))
        };
        self.members[member].client.connection().map_or((Timestamp::ZERO, Vec::new()), look)
    }

    /// The client detector's verdicts on the pairs of paths of a connection; empty without a
    /// detector.
    pub fn verdicts(&mut self, member: usize) -> Vec<PairVerdict> {
        let now = self.now;
        let look = |connection: &mut Connection| connection.with_engine(now, |engine, _| engine.pair_verdicts());
        self.members[member].client.connection().map(look).unwrap_or_default()
    }

    /// How many paths of a connection are open at the client.
    pub fn paths(&mut self, member: usize) -> usize {
        self.members[member].client.snapshots(self.now).iter().filter(|path| path.usable).count()
    }

    /// The first broken invariant, if any.
    pub fn violation(&self) -> Option<&str> {
        let ends = self.members.iter().flat_map(|member| [&member.client, &member.server]);
        ends.filter_map(|end| end.violation.as_deref()).next()
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.step();
            let arrival = self.network.next_event().map(|at| self.start + at.since(Timestamp::ZERO));
            let ends = self.members.iter().flat_map(|member| [&member.client, &member.server]);
            let next = ends.filter_map(|end| end.next_timeout(self.now)).chain(arrival).min();
            match next.map(|at| at.max(self.now)).filter(|at| *at <= end) {
                Some(next) => self.now = next,
                None => break self.now = end,
            }
        }
    }

    fn step(&mut self) {
        let at = Timestamp::ZERO + self.elapsed();
        while let Some(arrived) = self.network.poll(at) {
            let Datagram { from, to, contents } = arrived.packet;
            let IpAddr::V4(address) = to.ip() else { continue };
            let [_, member, _, host] = address.octets();
            let side = if host == 2 { Side::Server } else { Side::Client };
            let answers = self.members[member as usize].end(side).receive(from, to.ip(), contents, self.now);
            answers.into_iter().for_each(|answer| self.leave(member as usize, side, answer));
        }
        let mut leaving = Vec::new();
        for (member, ends) in self.members.iter_mut().enumerate() {
            for side in Side::ALL {
                ends.end(side).drive(self.now, &mut |one| leaving.push((member, side, one)));
            }
        }
        leaving.into_iter().for_each(|(member, side, one)| self.leave(member, side, one));
    }

    fn leave(&mut self, member: usize, side: Side, leaving: Leaving) {
        let from = leaving.from.map(|ip| ip.to_canonical());
        let Some((route, from, to)) = self.members[member].way_of(side, from, leaving.to) else { return };
        let datagram = Datagram { from, to, contents: leaving.contents };
        let (size, at) = (datagram.size(), Timestamp::ZERO + self.elapsed());
        // A packet that a queue refuses is lost.
        let _ = self.network.send(at, route, datagram, size);
    }
}

fn name(at: usize) -> String {
    format!("if{at}")
}

fn pair(at: usize, way: &Way) -> Pair {
    let local = Interface { name: name(at), address: way.client.ip(), twin: 0, prefix_bits: 24, unusable: None };
    Pair { local, remote: way.server }
}
