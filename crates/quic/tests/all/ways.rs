//! The choice of the peer's addresses for paths, when some lead nowhere.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use fairpath_quic::{ConnectConfig, Connection, Error, ListenConfig, Listener, Outcome, PathState, WhyNot, connect};

/// A busy machine may take a while; a way that is not tried is not found in any time.
const PATIENCE: Duration = Duration::from_secs(20);

/// Listens on these addresses of loopback.
fn listen(addresses: &[&str]) -> Listener {
    let via = addresses.iter().map(|address| (*address).to_owned()).collect();
    Listener::bind(ListenConfig { via, ..ListenConfig::new().expect("an identity") }).expect("loopback")
}

/// An address on which packets disappear, as long as the socket lives.
fn mute(address: &str) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind((address, 0)).expect("loopback");
    let address = socket.local_addr().expect("an address");
    (socket, address)
}

/// Connects from these addresses; connections that the listener accepts stay until it is dropped.
async fn connected(listener: &Listener, via: &[&str], remotes: Vec<SocketAddr>) -> (Connection, Connection) {
    let via = via.iter().map(|name| (*name).to_owned()).collect();
    let config = ConnectConfig { via, ..ConnectConfig::new(remotes, listener.fingerprint()) };
    let (client, server) = tokio::join!(connect(config), listener.accept());
    (client.expect("a connection"), server.expect("a connection"))
}

fn outcome(connection: &Connection, remote: SocketAddr) -> Vec<Outcome> {
    connection.tried().into_iter().filter(|one| one.remote == remote).map(|one| one.outcome).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_was_paired_with_a_dead_address_finds_the_one_that_works() {
    let listener = listen(&["127.0.0.1"]);
    let works = listener.addresses()[0];
    let (_socket, silent) = mute("127.0.9.1");
    let via = ["127.0.1.1", "127.0.2.1"];
    for remotes in [vec![works, silent], vec![silent, works]] {
        let (client, _server) = connected(&listener, &via, remotes).await;
        assert!(client.paths_open(2, PATIENCE).await, "{:#?} {:#?}", client.paths(), client.tried());
        let begun = Instant::now();
        while outcome(&client, silent) != [Outcome::Failed(WhyNot::Silent); 2] {
            assert!(begun.elapsed() < PATIENCE, "{:#?}", client.tried());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(outcome(&client, works), [Outcome::Works; 2]);
        assert!(client.paths().iter().all(|path| path.state == PathState::Open && path.remote == works));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_that_are_dead_delay_the_handshake_little() {
    let listener = listen(&["127.0.0.1"]);
    let dead: Vec<_> = (1..5).map(|at| mute(&format!("127.0.9.{at}"))).collect();
    let mut remotes: Vec<SocketAddr> = dead.iter().map(|(_, address)| *address).collect();
    remotes.extend(listener.addresses());
    let begun = Instant::now();
    let (client, _server) = connected(&listener, &["127.0.1.1"], remotes).await;
    // Each of them had a quarter of a second before the next was tried.
    assert!(begun.elapsed() < Duration::from_millis(300), "{:?}", begun.elapsed());
    assert_eq!(client.paths()[0].remote, listener.addresses()[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_somebody_else_answers_too_the_right_one_is_found() {
    let (other, right) = (listen(&["127.0.8.1"]), listen(&["127.0.0.1"]));
    let remotes = vec![other.addresses()[0], right.addresses()[0]];
    let (client, _server) = connected(&right, &["127.0.1.1", "127.0.2.1"], remotes).await;
    assert!(client.paths_open(2, PATIENCE).await, "{:#?} {:#?}", client.paths(), client.tried());
    assert!(client.paths().iter().all(|path| path.remote == right.addresses()[0]), "{:#?}", client.paths());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_that_was_tried_is_told_once_with_the_reason() {
    let (_socket, silent) = mute("127.0.9.1");
    let refusing = mute("127.0.9.2").1;
    let listener = listen(&["127.0.0.1"]);
    let via = vec!["127.0.1.1".into(), "127.0.2.1".into()];
    let config = ConnectConfig { via, ..ConnectConfig::new(vec![silent, refusing], listener.fingerprint()) };
    let error = connect(config).await.expect_err("nobody is there");
    let said = error.to_string();
    let expected = format!("no connection to {silent} (no answer), {refusing} (refused);");
    assert!(said.starts_with(&expected), "{said}");
    let Error::Unreachable { tried } = error else { panic!("{said}") };
    assert_eq!(tried.len(), 4, "from each interface: {tried:?}");
}
