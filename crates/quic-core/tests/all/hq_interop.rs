//! The example of `hq-interop` against itself: each case in virtual time, over two links.

#[path = "../../examples/hq_interop/act.rs"]
mod act;
#[path = "../../examples/hq_interop/client.rs"]
mod client;
#[path = "../../examples/hq_interop/host.rs"]
mod host;
#[path = "../../examples/hq_interop/server.rs"]
#[expect(dead_code, reason = "the example uses all of it")]
mod server;

use std::io::{Cursor, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairpath_core::{Bitrate, Timestamp};
use fairpath_net::{Datagram, LinkConfig, Network, PathRoutes, QueueConfig};
use fairpath_quic_core::{
    BeginError, Connecting, DATAGRAM_ETHERNET, Endpoint, EndpointConfig, EngineConfig, Identity, PathReport, PathState,
    Verify, search,
};
use noq_proto::{FourTuple, PathStatus, TransportError, TransportErrorCode};

use act::Act;
use client::{Case, Client};
use host::{HQ, Host, Leaving};
use server::Server;

/// Two links of 20 Mbit/s carry this in two seconds.
const FILE: usize = 10_000_000;

fn contents(name: &str) -> Option<Bytes> {
    let length = match name {
        "/large" => FILE,
        "/small" => 3_000,
        "/empty" => 0,
        _ => return None,
    };
    Some((0..length).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect())
}

fn endpoint(identity: Option<Identity>, interfaces: Vec<(String, IpAddr)>) -> Endpoint {
    let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: HQ };
    let mut endpoint = Endpoint::new(config).expect("TLS");
    endpoint.set_interfaces(interfaces.into());
    endpoint
}

fn connecting<'a>(local: IpAddr, remote: SocketAddr, engine: &'a EngineConfig) -> Connecting<'a> {
    let (verify, datagrams) = (Verify::AnyCertificate, search([], DATAGRAM_ETHERNET));
    Connecting { local, remote, verify, admission_key: None, engine, datagrams }
}

/// Client and server, and a link between the server and each address of the client.
struct World {
    start: Instant,
    now: Instant,
    network: Network<Datagram>,
    routes: Vec<(SocketAddr, PathRoutes)>,
    remote: SocketAddr,
    /// The link that carries nothing.
    cut: Option<usize>,
    client: Host<Client>,
    server: Host<Server>,
}

impl World {
    fn new(case: Case, files: &[&str]) -> Self {
        Self::with_paths(case, files, 2)
    }

    /// A case whose client opens this many of the two paths.
    fn with_paths(case: Case, files: &[&str], paths: usize) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an instant to begin at: what follows is virtual")]
        let start = Instant::now();
        let remote: SocketAddr = "10.0.9.2:443".parse().expect("an address");
        let mut network = Network::new(1);
        let config = LinkConfig::new(Bitrate::from_mbps(20)).delay(Duration::from_millis(10));
        let config = config.queue(QueueConfig::bytes(Bitrate::from_mbps(20) * Duration::from_millis(100)));
        let mut routes = Vec::new();
        for at in ["10.0.0.1:1000", "10.0.1.1:1001"] {
            let there = network.add_link(&format!("{at} there"), &config).expect("a link");
            let back = network.add_link(&format!("{at} back"), &config).expect("a link");
            routes.push((at.parse().expect("an address"), network.add_path(&[there], &[back]).expect("routes")));
        }
        let locals: Vec<IpAddr> = routes.iter().take(paths).map(|(at, _): &(SocketAddr, _)| at.ip()).collect();
        let client = Client::new(case, &locals, remote, files.iter().map(ToString::to_string).collect());
        let mut end = endpoint(None, client.interfaces());
        end.connect(connecting(locals[0], remote, &EngineConfig::live()), start).expect("an address");
        let identity = Identity::generate().expect("a key");
        let server = endpoint(Some(identity), vec![("server".to_owned(), remote.ip())]);
        let find = |name: &str| contents(name).map(|contents| Box::new(Cursor::new(contents)) as server::File);
        let (client, server) = (Host::new(end, client), Host::new(server, Server::new(find)));
        Self { start, now: start, network, routes, remote, cut: None, client, server }
    }

    fn at(&self) -> Timestamp {
        Timestamp::ZERO + (self.now - self.start)
    }

    fn leave(&mut self, is_client: bool, Leaving { from, to, contents }: Leaving) {
        let from = from.map(|ip| ip.to_canonical());
        let is_way = |(client, _): &&(SocketAddr, _)| if is_client { from == Some(client.ip()) } else { to == *client };
        let at = self.routes.iter().position(|way| is_way(&way)).expect("every packet says where it leaves");
        if self.cut == Some(at) {
            return;
        }
        let (client, routes) = &self.routes[at];
        let (from, route) = if is_client { (*client, routes.forward) } else { (self.remote, routes.backward) };
        let datagram = Datagram { from, to, contents };
        let size = datagram.size();
        // A datagram that a queue refuses is lost.
        let _ = self.network.send(self.at(), route, datagram, size);
    }

    /// Everything that is due now.
    fn step(&mut self) {
        let mut left = Vec::new();
        while let Some(delivery) = self.network.poll(self.at()) {
            let Datagram { from, to, contents } = delivery.packet;
            let to_server = to == self.remote;
            let answer = match to_server {
                true => self.server.receive(from, to.ip(), &contents, self.now),
                false => self.client.receive(from, to.ip(), &contents, self.now),
            };
            left.extend(answer.map(|answer| (!to_server, answer)));
        }
        self.client.drive(self.now, &mut |one| left.push((true, one)));
        self.server.drive(self.now, &mut |one| left.push((false, one)));
        left.into_iter().for_each(|(is_client, one)| self.leave(is_client, one));
    }

    /// Lets time pass until something is so.
    fn run_until(&mut self, patience: Duration, is_so: impl Fn(&mut Self) -> bool) -> bool {
        let end = self.now + patience;
        loop {
            self.step();
            if is_so(self) {
                return true;
            }
            let arrival = self.network.next_event().map(|at| self.start + at.since(Timestamp::ZERO));
            let timeouts = [self.client.next_timeout(self.now), self.server.next_timeout(self.now), arrival];
            // Timeouts that are due already are handled in the next step: time never goes backwards.
            let next = timeouts.into_iter().flatten().min().unwrap_or(end).max(self.now);
            if next > end {
                return false;
            }
            self.now = next;
        }
    }

    /// The server's reports on the paths, that of the client's first address first.
    fn of_server(&mut self) -> Vec<PathReport> {
        let now = self.now;
        let Some((_, connection)) = self.server.endpoint.connections().next() else { return Vec::new() };
        connection.measure(now);
        let mut paths = connection.paths();
        paths.sort_by_key(|path| path.remote);
        paths
    }

    /// Runs the case to its end; gives what the server knew of the paths when the client had done what it does to
    /// one, half a second later, and at the end.
    fn run(&mut self) -> [Vec<PathReport>; 2] {
        let over = |world: &mut Self| world.client.role.verdict.is_some();
        let acted = |world: &mut Self| world.client.role.acted.is_some() || over(world);
        assert!(self.run_until(Duration::from_secs(20), acted), "the case goes on after 20 s");
        self.run_until(Duration::from_millis(500), over);
        let meanwhile = self.of_server();
        assert!(self.run_until(Duration::from_secs(20), over), "the case goes on after 20 s");
        assert_eq!(self.client.role.verdict, Some(Ok(())));
        for (name, data) in &self.client.role.files {
            assert!(contents(name).expect("one of ours") == data, "{name} came damaged");
        }
        [meanwhile, self.of_server()]
    }

    /// The client opens a path that its policy knows nothing of, so that it neither closes it nor opens it again.
    fn open_and_leave_alone(&mut self, at: usize) {
        let ip = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => IpAddr::V6(ip.to_ipv6_mapped()),
            IpAddr::V6(_) => ip,
        };
        let remote = SocketAddr::new(ip(self.remote.ip()), self.remote.port());
        let way = FourTuple::new(remote, Some(ip(self.routes[at].0.ip())));
        let (_, connection) = self.client.endpoint.connections().next().expect("a connection");
        connection.quic().open_path(way, PathStatus::Available, self.now).expect("the server takes another path");
    }

    fn has_datagrams(&mut self) -> bool {
        let ends = self.client.endpoint.connections().chain(self.server.endpoint.connections());
        ends.map(|(_, connection)| connection.quic().stats()).any(|stats| stats.frame_tx.datagram > 0)
    }
}

fn states(paths: &[PathReport]) -> Vec<PathState> {
    paths.iter().map(|path| path.state).collect()
}

#[test]
fn handshake_opens_a_path_from_each_address() {
    let mut world = World::new(Case::Handshake, &["/small", "/empty"]);
    let [_, paths] = world.run();
    assert_eq!(world.client.role.files.len(), 2);
    assert_eq!(states(&paths), [PathState::Open; 2], "at the server");
    assert_eq!(states(&world.client.role.paths), [PathState::Open; 2], "at the client");
}

#[test]
fn transfer_uses_both_paths() {
    let mut world = World::new(Case::Transfer, &["/large", "/small"]);
    let [_, paths] = world.run();
    assert_eq!(world.client.role.files.len(), 2);
    for path in &paths {
        assert!(path.acked.get() > FILE as u64 / 4, "{} of a half were sent to {}", path.acked, path.remote);
    }
}

#[test]
fn abandon_closes_a_path_at_both_ends_and_the_other_brings_the_rest() {
    let mut world = World::new(Case::Abandon, &["/large"]);
    let [meanwhile, paths] = world.run();
    assert_eq!(states(&meanwhile), [PathState::Closed, PathState::Open], "at the server, half a second later");
    assert_eq!(states(&paths), [PathState::Closed, PathState::Open], "at the server, when all had come");
    assert_eq!(states(&world.client.role.paths), [PathState::Closed, PathState::Open], "at the client");
    assert_eq!(world.client.role.paths[0].opened, 1, "it is not opened again");
}

#[test]
fn status_takes_data_off_a_path_that_stays_open() {
    let mut world = World::new(Case::Status, &["/large"]);
    let [meanwhile, paths] = world.run();
    assert_eq!(states(&paths), [PathState::Open; 2]);
    let sent = |at: usize| (paths[at].acked - meanwhile[at].acked).get();
    assert!(sent(1) > FILE as u64 / 4, "{} bytes on the path that is left", sent(1));
    assert!(sent(0) < sent(1) / 100, "{} bytes on the backup path, {} on the other", sent(0), sent(1));
}

/// A server that does this to the first path, while the client only fetches: what it says of that.
fn server_acts(act: Act) -> Vec<String> {
    let mut world = World::new(Case::Handshake, &["/large"]);
    let find = |name: &str| contents(name).map(|contents| Box::new(Cursor::new(contents)) as server::File);
    world.server.role = Server::new(find).acting(Some(act));
    let over = |world: &mut World| !world.server.role.verdicts.is_empty();
    assert!(world.run_until(Duration::from_secs(20), over), "it goes on after 20 s");
    assert_eq!(world.client.role.verdict, Some(Ok(())));
    assert!(world.client.role.files["/large"] == contents("/large").expect("one of ours"));
    world.server.role.verdicts
}

#[test]
fn a_server_closes_a_path_and_keeps_one_back_as_its_switch_says() {
    for (act, words) in [(Act::Abandon, "abandon: passed: "), (Act::Status, "status: passed: ")] {
        let verdicts = server_acts(act);
        assert!(verdicts.len() == 1 && verdicts[0].starts_with(words), "{verdicts:?}");
    }
}

/// A file without end, and how much of it was read.
struct Endless(Arc<AtomicU64>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        Ok(buffer.len())
    }
}

#[test]
fn a_large_file_is_read_as_it_is_sent() {
    let mut world = World::new(Case::Transfer, &["/endless"]);
    let read = Arc::new(AtomicU64::new(0));
    let counted = read.clone();
    world.server.role = Server::new(move |_| Some(Box::new(Endless(counted.clone())) as server::File));
    world.run_until(Duration::from_secs(3), |_| false);
    let read = read.load(Ordering::Relaxed);
    assert_eq!(world.client.role.verdict, None);
    // The stack's buffer of unacknowledged data, all that has arrived at 40 Mbit/s, and a piece.
    assert!((5_000_000..20_000_000 + 15_000_000 + 65_536).contains(&read), "{read} bytes");
}

/// A client of another stack may never open again what the server closed.
#[test]
fn a_server_keeps_a_path_over_an_outage_and_sends_on_it_again() {
    let mut world = World::with_paths(Case::Handshake, &["/endless"], 1);
    world.server.role = Server::new(|_| Some(Box::new(Endless(Arc::default())) as server::File));
    world.run_until(Duration::from_secs(1), |_| false);
    world.open_and_leave_alone(1);
    world.run_until(Duration::from_secs(1), |_| false);
    assert_eq!(states(&world.of_server()), [PathState::Open; 2]);
    world.cut = Some(1);
    world.run_until(Duration::from_secs(4), |_| false);
    world.cut = None;
    let before = world.of_server()[1].acked;
    world.run_until(Duration::from_secs(4), |_| false);
    let path = &world.of_server()[1];
    assert_eq!((path.state, path.opened), (PathState::Open, 1));
    // A probe may be up to 2 s away; what one second carries at the rate of the link is a fair share of the rest.
    assert!((path.acked - before).get() > 2_500_000, "{}", path.acked - before);
}

#[test]
fn a_path_that_cannot_be_opened_keeps_no_file_from_coming() {
    let mut world = World::new(Case::Transfer, &["/large"]);
    world.cut = Some(1);
    assert!(world.run_until(Duration::from_secs(20), |world| world.client.role.verdict.is_some()));
    assert_eq!(world.client.role.verdict, Some(Ok(())));
    assert_eq!(world.client.role.files.len(), 1);
    // 3 s for the path, and some 4 for the file over one link.
    assert!(world.now - world.start < Duration::from_secs(9), "{:?}", world.now - world.start);
    assert!(world.client.role.remarks[0].contains("going on over 1 path"), "{:?}", world.client.role.remarks);
}

#[test]
fn a_wrong_protocol_is_named() {
    let of = |code| HQ.words_for(&TransportError::new(code, String::new()).into());
    assert!(of(TransportErrorCode::crypto(120)).contains("'hq-interop' was offered (ALPN)"));
    assert!(!of(TransportErrorCode::crypto(40)).contains("ALPN"));
}

/// Peers that are not Fairpath know nothing of our datagrams, and may end a connection that brings some.
#[test]
fn no_datagram_frames_are_sent_to_peers_of_another_protocol() {
    let mut world = World::new(Case::Transfer, &["/large"]);
    let fetched = |world: &mut World| world.client.role.verdict.is_some() || world.has_datagrams();
    assert!(world.run_until(Duration::from_secs(20), fetched));
    assert!(!world.has_datagrams());
    assert_eq!(world.client.role.verdict, Some(Ok(())));
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let mut world = World::new(Case::Handshake, &["/missing"]);
    assert!(world.run_until(Duration::from_secs(20), |world| world.client.role.verdict.is_some()));
    let error = world.client.role.verdict.clone().and_then(Result::err).expect("it is not there");
    assert!(error.starts_with("/missing: "), "{error}");
}

#[test]
fn fairpath_itself_refuses_to_connect_to_any_certificate() {
    let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity: None, application: Default::default() };
    let mut endpoint = Endpoint::new(config).expect("TLS");
    let world = World::new(Case::Handshake, &[]);
    let engine = EngineConfig::live();
    let refused =
        endpoint.connect(connecting("10.0.0.1".parse().expect("an address"), world.remote, &engine), world.now);
    assert!(matches!(refused, Err(BeginError::Unverified)), "{refused:?}");
}
