//! The wires between the ends, with the address translator at the client's side of each.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, ByteCount, Timestamp};
use fairpath_net::{
    Datagram, Filter, Impairments, Jitter, LinkConfig, LinkId, Network, Packet, PathRoutes, QueueConfig, RouteId,
};

use fairpath_quic_core::Interface;
use fairpath_quic_core::pairs::Pair;
use fairpath_quic_sim::Side;

/// The impairments of a wire beside its queue, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Impair {
    /// The share that is lost.
    pub loss: f64,
    /// The extra delay of every packet, one way.
    pub delay: Duration,
    /// The largest UDP payload that passes.
    pub mtu: Option<ByteCount>,
    /// The impairments of packets that pass.
    pub passing: Impairments,
}

/// A wire between the ends, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Its rate.
    pub rate: Bitrate,
    /// How long a packet takes, one way.
    pub delay: Duration,
    /// The size of its queue.
    pub queue: ByteCount,
    /// The share of packets that are lost at random, in each direction, until the wire is mended.
    pub loss: f64,
    /// How its delays spread, in each direction.
    pub jitter: Jitter,
}

impl Wire {
    /// A queue of 100 ms.
    pub fn new(mbps: u64, delay_ms: u64) -> Self {
        let rate = Bitrate::from_mbps(mbps);
        let (delay, queue) = (Duration::from_millis(delay_ms), rate * Duration::from_millis(100));
        Self { rate, delay, queue, loss: 0.0, jitter: Jitter::default() }
    }
}

/// A datagram on its way.
#[derive(Clone)]
pub(crate) struct Parcel {
    pub(crate) datagram: Datagram,
    /// Where its sender sent it to, which translators may change.
    pub(crate) sent_to: SocketAddr,
    /// When the peer sent it; `None`: it is somebody else's.
    pub(crate) left: Option<Instant>,
}

impl Packet for Parcel {
    fn corrupt(&mut self, random: u64) {
        self.datagram.corrupt(random);
    }
}

/// One wire.
pub(crate) struct Way {
    /// The number of its wire.
    pub(crate) wire: usize,
    there: LinkId,
    back: LinkId,
    routes: PathRoutes,
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
    /// The client as the server sees it.
    pub(crate) outside: SocketAddr,
    /// Where the server saw the client before, which still reaches it.
    lingering: Option<SocketAddr>,
    /// The one-way delay of the wire without impairments.
    delay: Duration,
    impair: Impair,
    /// Whether the server's address, and not only the client's, says that it is this way.
    is_port: bool,
}

impl Way {
    /// The way of one port of a server that has one address on all wires. Each port has a wire of its own before the one
    /// that they share, which does nothing until something befalls it.
    fn of_port(network: &mut Network<Parcel>, (at, port): (u8, u16), shared: (LinkId, LinkId)) -> Self {
        let free = LinkConfig::new(Bitrate::from_mbps(10_000)).queue(QueueConfig::bytes(ByteCount::new(64_000)));
        let there = network.add_link(&format!("there {at} port {port}"), &free).expect("a link");
        let back = network.add_link(&format!("back {at} port {port}"), &free).expect("a link");
        let routes = network.add_path(&[there, shared.0], &[back, shared.1]).expect("routes");
        let client = SocketAddr::from(([10, 0, at, 1], 1000));
        let server = SocketAddr::from(([10, 9, 9, 9], 4433 + port));
        let outside = SocketAddr::from(([10, 0, at, 1], 50_000 + 1_000 * port));
        let (delay, impair) = (Duration::ZERO, Impair::default());
        let (wire, lingering) = (at.into(), None);
        Self { wire, there, back, routes, client, server, outside, lingering, delay, impair, is_port: true }
    }

    fn new(network: &mut Network<Parcel>, at: u8, wire: &Wire) -> Self {
        let queue = QueueConfig::bytes(wire.queue);
        let config = LinkConfig::new(wire.rate).delay(wire.delay).queue(queue).jitter(wire.jitter);
        let there = network.add_link(&format!("there {at}"), &config).expect("a link");
        let back = network.add_link(&format!("back {at}"), &config).expect("a link");
        let routes = network.add_path(&[there], &[back]).expect("routes");
        let address = |host: u8, port: u16| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, at, host)), port);
        // The translator keeps the address: what the server sees differs by the port.
        let (client, server, outside) = (address(1, 1000), address(2, 4433), address(1, 50_000));
        let (delay, impair, lingering) = (wire.delay, Impair::default(), None);
        let wire = at.into();
        Self { wire, there, back, routes, client, server, outside, lingering, delay, impair, is_port: false }
    }

    /// Whether it is the way of what an end sends from its address `from`, where it names one, to `to`.
    fn carries(&self, side: Side, from: Option<IpAddr>, to: SocketAddr) -> bool {
        match side {
            Side::Client if self.is_port => self.server == to && from.is_none_or(|ip| self.client.ip() == ip),
            Side::Client => from.map_or(self.server == to, |ip| self.client.ip() == ip),
            // Packets to an address that is no longer the client's outside address reach nobody.
            Side::Server => {
                let leads_back = self.outside == to || self.lingering == Some(to);
                leads_back && from.is_none_or(|ip| self.server.ip() == ip)
            }
        }
    }

    fn route(&self, side: Side) -> RouteId {
        match side {
            Side::Client => self.routes.forward,
            Side::Server => self.routes.backward,
        }
    }

    fn link(&self, side: Side) -> LinkId {
        match side {
            Side::Client => self.there,
            Side::Server => self.back,
        }
    }
}

/// All wires. Times are those of the network.
pub(crate) struct Wires {
    network: Network<Parcel>,
    pub(crate) ways: Vec<Way>,
}

impl Wires {
    pub(crate) fn new(wires: &[Wire], seed: u64) -> Self {
        let mut network = Network::new(seed);
        let ways = wires.iter().enumerate().map(|(at, wire)| Way::new(&mut network, at as u8, wire)).collect();
        let mut all = Self { network, ways };
        for (way, wire) in wires.iter().enumerate() {
            all.set_impair(way, Impair { loss: wire.loss, ..Impair::default() }, Timestamp::ZERO);
        }
        all
    }

    /// Wires to one address of the server with so many ports: the ways are those of the first wire's ports, then those of
    /// the second's.
    pub(crate) fn with_ports(wires: &[Wire], ports: u16, seed: u64) -> Self {
        let mut network = Network::new(seed);
        let mut ways = Vec::new();
        for (at, wire) in wires.iter().enumerate() {
            let config = LinkConfig::new(wire.rate).delay(wire.delay).queue(QueueConfig::bytes(wire.queue));
            let shared =
                ["there", "back"].map(|name| network.add_link(&format!("{name} {at}"), &config).expect("a link"));
            let of_port = |port| Way::of_port(&mut network, (at as u8, port), (shared[0], shared[1]));
            ways.extend((0..ports).map(of_port));
        }
        Self { network, ways }
    }

    pub(crate) fn next_event(&self) -> Option<Timestamp> {
        self.network.next_event()
    }

    pub(crate) fn poll(&mut self, now: Timestamp) -> Option<Parcel> {
        Some(self.network.poll(now)?.packet)
    }

    /// On which wire what an end sends goes, if on any.
    pub(crate) fn way_of(&self, side: Side, from: Option<IpAddr>, to: SocketAddr) -> Option<usize> {
        self.ways.iter().position(|way| way.carries(side, from, to))
    }

    /// The ends of a wire as a datagram of `side` names them where it arrives.
    pub(crate) fn addresses(&self, way: usize, side: Side) -> (SocketAddr, SocketAddr) {
        let Way { client, server, outside, .. } = self.ways[way];
        match side {
            Side::Client => (outside, server),
            Side::Server => (server, client),
        }
    }

    pub(crate) fn send(&mut self, way: usize, side: Side, parcel: Parcel, now: Timestamp) {
        let size = parcel.datagram.size();
        // Packets that a filter or a queue refuses are lost.
        let _ = self.network.send(now, self.ways[way].route(side), parcel, size);
    }

    pub(crate) fn set_impair(&mut self, way: usize, impair: Impair, now: Timestamp) {
        let Way { there, back, delay, server, .. } = self.ways[way];
        // A filter sees the headers too.
        let headers = Datagram { from: server, to: server, contents: Vec::new() }.size();
        let hole = impair.mtu.map_or(Filter::Pass, |mtu| Filter::DropLarger(mtu + headers));
        for link in [there, back] {
            self.network.set_filters(link, &[hole, Filter::DropShare(impair.loss)], now);
            self.network.set_link_delay(link, delay + impair.delay, now);
            self.network.set_impairments(link, &impair.passing, now);
        }
        self.ways[way].impair = impair;
    }

    pub(crate) fn impair(&self, way: usize) -> Impair {
        self.ways[way].impair
    }

    pub(crate) fn mend(&mut self, way: usize, now: Timestamp) {
        self.set_impair(way, Impair::default(), now);
        self.ways[way].lingering = None;
    }

    /// Cuts or mends the direction in which `side` sends.
    pub(crate) fn set_up(&mut self, way: usize, side: Side, up: bool, now: Timestamp) {
        self.network.set_link_up(self.ways[way].link(side), up, now);
    }

    pub(crate) fn set_rate(&mut self, way: usize, side: Side, rate: Bitrate, now: Timestamp) {
        self.network.set_link_rate(self.ways[way].link(side), &rate.into(), now);
    }

    /// The translator gives the client another port, and what is sent to the old one reaches it for a while, or
    /// does not.
    pub(crate) fn rebind(&mut self, way: usize, lingers: bool) -> SocketAddr {
        let way = &mut self.ways[way];
        if lingers {
            way.lingering = Some(way.outside);
        }
        way.outside.set_port(way.outside.port() + 1);
        way.outside
    }

    /// The client has other sockets.
    pub(crate) fn replace_sockets(&mut self) {
        for way in &mut self.ways {
            way.lingering = None;
            way.outside.set_port(way.outside.port() + 1);
        }
    }

    /// How many packets the queue of a wire has dropped of what `side` sent.
    pub(crate) fn dropped(&self, way: usize, side: Side) -> u64 {
        self.network.stats(self.ways[way].link(side)).overflowed.packets
    }
}

fn name(at: usize) -> String {
    format!("if{at}")
}

/// The interfaces of the server.
pub(crate) fn interfaces(wires: &Wires) -> Vec<(String, IpAddr)> {
    wires.ways.iter().enumerate().map(|(at, way)| (name(at), way.server.ip())).collect()
}

/// The pairs of addresses that are ways.
pub(crate) fn pairs(wires: &Wires) -> Vec<Pair> {
    let pair = |way: &Way| {
        let Way { client, server, .. } = way;
        let local = Interface { name: name(way.wire), address: client.ip(), twin: 0, prefix_bits: 24, unusable: None };
        Pair { local, remote: *server }
    };
    wires.ways.iter().map(pair).collect()
}
