//! The addresses in tickets, and the search for paths that work, between two network namespaces.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use fairpath_transfer::Ticket;
use serde_json::Value;

use crate::network;
use crate::network::{End, Family, LINKS, Network};

const FAIRPATH: &str = env!("CARGO_BIN_EXE_fairpath");

/// `fairpath perf server` at the receiver's end, killed when it is dropped.
struct Server {
    child: Child,
    ticket: Ticket,
}

impl Server {
    fn start(network: &Network, options: &[&str]) -> Self {
        let mut child = network
            .command(End::Receiver, FAIRPATH)
            .args(["perf", "server"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut printed).unwrap();
        let ticket = printed.trim().parse().unwrap_or_else(|error| panic!("{error}: {printed}"));
        Self { child, ticket }
    }

    fn addresses(&self) -> Vec<String> {
        self.ticket.addresses.iter().map(|address| address.ip().to_string()).collect()
    }

    fn port(&self) -> u16 {
        self.ticket.addresses[0].port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `fairpath perf client` at the sender's end.
fn client(network: &Network, ticket: &Ticket, options: &[&str]) -> Output {
    let ticket = ticket.to_string();
    let arguments = [&["perf", "client", &ticket][..], options].concat();
    network.command(End::Sender, FAIRPATH).args(arguments).output().unwrap()
}

/// Measures, and returns the result as JSON.
fn measured(network: &Network, ticket: &Ticket) -> Value {
    let output = client(network, ticket, &["--json", "--seconds", "3"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The interfaces that carried data, with the addresses they carried it to.
fn carriers(result: &Value) -> Vec<String> {
    let paths = result["paths"].as_array().unwrap().iter();
    let carried = paths.filter(|path| path["bytes"].as_u64().unwrap() > 100_000);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let ip = |path: &Value| text(&path["remote"]).parse::<SocketAddr>().unwrap().ip();
    let mut carriers: Vec<String> =
        carried.map(|path| format!("{} to {}", text(&path["interface"]), ip(path))).collect();
    carriers.sort();
    carriers
}

/// The outcomes of the tries to reach an address.
fn results(result: &Value, address: &str) -> Vec<String> {
    let tried = result["tried"].as_array().unwrap().iter();
    let there = tried.filter(|one| one["remote"].as_str().unwrap().starts_with(address));
    there.map(|one| one["result"].as_str().unwrap().to_owned()).collect()
}

/// An address that both links lead to, as routers have one.
fn add_anycast(network: &Network) {
    network.ip(End::Receiver, "link set lo up");
    network.ip(End::Receiver, "address add 10.9.9.9/32 dev lo");
    network.ip(End::Sender, "route add 10.9.9.9/32 via 10.77.1.2 dev slow");
    network.ip(End::Sender, "route add 10.9.9.9/32 via 10.77.2.2 dev fast metric 10");
    // Its answers come in by both, and the best route leads by one.
    let write = "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter";
    assert!(network.command(End::Sender, "sh").args(["-c", write]).status().unwrap().success());
}

/// The outcomes when nobody answers, or the system knows no route. Timing decides which it is.
const NOBODY: [&str; 2] = ["no answer", "no route"];

#[test]
fn an_address_of_the_loopback_interface_that_is_routed_from_outside_answers() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    add_anycast(&network);
    let server = Server::start(&network, &["--listen", "10.9.9.9:4433"]);
    assert_eq!(server.addresses(), ["10.9.9.9"]);
    let result = measured(&network, &server.ticket);
    assert_eq!(carriers(&result), ["fast to 10.9.9.9", "slow to 10.9.9.9"], "{result:#}");
}

#[test]
fn an_address_that_leads_nowhere_takes_no_interface_out_of_use() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    add_anycast(&network);
    // Packets for it reach the other end, which does not know what to do with them.
    network.ip(End::Sender, "route add 172.17.0.0/16 via 10.77.1.2 dev slow");
    network.ip(End::Sender, "route add 172.17.0.0/16 via 10.77.2.2 dev fast metric 10");
    let server = Server::start(&network, &["--listen", "10.9.9.9:0"]);
    for at in [0, 1] {
        let mut ticket = server.ticket.clone();
        ticket.addresses.insert(at, SocketAddr::new("172.17.0.1".parse().unwrap(), server.port()));
        let result = measured(&network, &ticket);
        assert_eq!(carriers(&result), ["fast to 10.9.9.9", "slow to 10.9.9.9"], "{result:#}");
        assert_eq!(results(&result, "10.9.9.9"), ["works"; 2], "{result:#}");
        assert_eq!(results(&result, "172.17.0.1"), ["no answer"; 2], "{result:#}");
        let shown = client(&network, &ticket, &["--seconds", "3"]).stdout;
        let expected = format!("172.17.0.1:{} was not reached from slow (no answer), fast (no answer)", server.port());
        assert!(String::from_utf8_lossy(&shown).contains(&expected), "{}", String::from_utf8_lossy(&shown));
    }
}

#[test]
fn each_interface_finds_the_one_address_that_it_reaches() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    network.ip(End::Receiver, "link set lo up");
    network.ip(End::Receiver, "address add 10.9.9.9/32 dev lo");
    for (link, subnet) in [("slow", 1), ("fast", 2)] {
        network.ip(End::Receiver, &format!("address add 10.8{subnet}.0.1/32 dev {link}"));
        network.ip(End::Sender, &format!("route add 10.8{subnet}.0.1/32 via 10.77.{subnet}.2 dev {link}"));
    }
    let via = ["10.9.9.9", "10.81.0.1", "10.82.0.1"].map(|address| ["--via", address]).concat();
    let server = Server::start(&network, &via);
    assert_eq!(server.addresses(), ["10.9.9.9", "10.81.0.1", "10.82.0.1"]);
    let result = measured(&network, &server.ticket);
    assert_eq!(carriers(&result), ["fast to 10.82.0.1", "slow to 10.81.0.1"], "{result:#}");
    let lo = results(&result, "10.9.9.9");
    assert!(lo.len() == 2 && lo.iter().all(|result| NOBODY.contains(&result.as_str())), "{result:#}");
}

#[test]
fn an_interface_without_a_way_to_the_peer_is_told_with_the_reasons() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    let server = Server::start(&network, &["--via", "slow"]);
    let peer = format!("10.77.1.2:{}", server.port());
    // Two seconds until a path that does not open is doubted, and two and a half until nobody answered.
    let shown = client(&network, &server.ticket, &["--seconds", "8"]);
    assert!(shown.status.success(), "{shown:?}");
    let (printed, said) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    let any = |text: &str, sentence: &dyn Fn(&str) -> String| NOBODY.iter().any(|why| text.contains(&sentence(why)));
    assert!(any(&printed, &|why| format!("fast found no way to the peer: {peer} {why}")), "{printed}");
    assert!(any(&said, &|why| format!("fast: no way to the peer: {peer} ({why})")), "{said}");

    let ticket = server.ticket.clone();
    drop(server);
    let failed = client(&network, &ticket, &[]);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(said.matches(&peer).count(), 1, "the address is named once: {said}");
    assert!(any(&said, &|why| format!("({why}, refused)")) || any(&said, &|why| format!("(refused, {why})")), "{said}");
}

#[test]
fn interfaces_that_lead_nowhere_are_left_out_of_tickets_unless_they_are_named() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    network.ip(End::Receiver, "link set lo up");
    network.ip(End::Receiver, "address add 10.9.9.9/32 dev lo");
    network.ip(End::Receiver, "link add empty type bridge");
    network.ip(End::Receiver, "link add guests type bridge");
    network.ip(End::Receiver, "link add inside type veth peer name guest");
    network.ip(End::Receiver, "link set guest master guests");
    for (name, address) in [("empty", "172.17.0.1/16"), ("guests", "172.18.0.1/16"), ("inside", "172.18.0.2/16")] {
        network.ip(End::Receiver, &format!("address add {address} dev {name}"));
    }
    for name in ["guest", "inside", "guests", "empty"] {
        network.ip(End::Receiver, &format!("link set {name} up"));
    }
    let look = || {
        let shown = network.command(End::Receiver, FAIRPATH).args(["paths", "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&shown.stdout).unwrap()
    };
    // The kernel looks at changed carriers once a second only.
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_down = |one: &Value| one["reason"].as_str().is_some_and(|reason| reason.contains("carrier"));
    while look().as_array().unwrap().iter().any(is_down) {
        assert!(Instant::now() < deadline, "{:#}", look());
        std::thread::sleep(Duration::from_millis(50));
    }
    let shown = look();
    let of = |address: &str| shown.as_array().unwrap().iter().find(|one| one["address"] == address).unwrap();
    for (address, reason) in [
        ("10.9.9.9", "the loopback interface"),
        ("172.17.0.1", "a bridge without ports"),
        ("172.18.0.1", "a bridge to containers or virtual machines"),
    ] {
        assert!(of(address)["reason"].as_str().unwrap().starts_with(reason), "{shown:#}");
        assert_eq!((&of(address)["used"], &of(address)["in_ticket"]), (&false.into(), &false.into()), "{shown:#}");
    }
    assert_eq!(of("10.77.1.2")["in_ticket"], true, "{shown:#}");

    let addresses = Server::start(&network, &[]).addresses();
    assert!(addresses.contains(&"10.77.1.2".into()) && addresses.contains(&"10.77.2.2".into()), "{addresses:?}");
    assert!(!addresses.iter().any(|one| ["10.9.9.9", "172.17.0.1", "172.18.0.1"].contains(&one.as_str())));
    let named = Server::start(&network, &["--via", "guests", "--via", "empty"]).addresses();
    assert_eq!(named.len(), 2, "{named:?}");
}
