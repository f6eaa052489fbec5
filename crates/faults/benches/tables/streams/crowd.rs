//! Connections of one server at once, whose clients are another process: then the processors' time of each is its own.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fairpath_quic::{ConnectConfig, ListenConfig, Listener, StreamsConfig, connect};

use super::{Row, cpu_seconds, median, read, write};

/// How many connections there are beside one.
const COUNT: usize = 8;

/// The clients' process finds here what it is to do: the server's address and fingerprint, and how many connections.
const CLIENTS: &str = "FAIRPATH_STREAMS_CLIENTS";

/// The outcome of one run.
struct Measured {
    /// All that the connections carried together, in bytes per second.
    rate: f64,
    /// How many cores the server kept busy, and its clients, where the system says.
    cores: Option<[f64; 2]>,
}

/// Eight connections of one server, a stream on each, beside one: how many cores the server uses.
pub(super) fn rows(is_quick: bool) -> Vec<Row> {
    let (rounds, time) = if is_quick { (3, Duration::from_millis(1_000)) } else { (7, Duration::from_millis(2_000)) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (runs, count) in runs.iter_mut().zip([1, COUNT]) {
            runs.push(runtime.block_on(crowd(count, time)));
        }
    }
    let of = |runs: &[Measured], value: fn(&Measured) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| median(values))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::new();
    for (runs, count) in runs.iter().zip([1, COUNT]) {
        let connections = if count == 1 { "1 connection".into() } else { format!("{count} connections") };
        let mut add = |what: &str, value: Option<f64>, unit| {
            rows.extend(value.map(|value| Row::new(format!("{connections} of one server {what}"), value, unit, None)));
        };
        add("on loopback, real time", of(runs, |run| Some(run.rate * 8.0 / 1e9)), "Gbit/s");
        add(&format!("on {cores} cores: cores of the server"), of(runs, |run| Some(run.cores?[0])), "");
        add(&format!("on {cores} cores: cores of its clients"), of(runs, |run| Some(run.cores?[1])), "");
        add("processors' time of the server for a byte", of(runs, |run| Some(run.cores?[0] / run.rate * 1e9)), "ns");
    }
    rows
}

/// Does what a process of clients is there for, where this is one.
pub(super) fn be_clients() -> bool {
    let Ok(orders) = std::env::var(CLIENTS) else { return false };
    let [address, fingerprint, count] = orders.split(' ').collect::<Vec<_>>().try_into().expect("three orders");
    let (address, fingerprint) = (address.parse().expect("an address"), fingerprint.parse().expect("a fingerprint"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for _ in 0..count.parse().expect("a number") {
        runtime.spawn(async move {
            let via = vec!["127.0.1.1".to_owned()];
            let config = ConnectConfig { via, ..ConnectConfig::new(vec![address], fingerprint) };
            let connection = connect(config).await.expect("a connection");
            connection.begin_streams(StreamsConfig::default());
            write(connection).await;
        });
    }
    // The server's process closes it, whatever ends that.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    true
}

/// Another process with clients, which ends with this.
struct Clients(Child);

impl Clients {
    fn of(listener: &Listener, count: usize) -> Self {
        let address = listener.addresses()[0];
        let orders = format!("{address} {} {count}", listener.fingerprint());
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(std::env::args().skip(1)).env(CLIENTS, orders).stdin(Stdio::piped()).stdout(Stdio::null());
        Self(command.spawn().expect("this program runs"))
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn crowd(count: usize, time: Duration) -> Measured {
    let listen = ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new().expect("an identity") };
    let listener = Listener::bind(listen).expect("loopback");
    let clients = Clients::of(&listener, count);
    let received = Arc::new(AtomicU64::new(0));
    let (mut tasks, mut ends) = (tokio::task::JoinSet::new(), Vec::new());
    for _ in 0..count {
        let server = listener.accept().await.expect("a connection");
        server.begin_streams(StreamsConfig::default());
        tasks.spawn(read(server.clone(), received.clone()));
        ends.push(server);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let so_far = || (received.load(Ordering::Relaxed), cpu_seconds("self"), cpu_seconds(&clients.0.id().to_string()));
    let (before, begun) = (so_far(), tokio::time::Instant::now());
    tokio::time::sleep(time).await;
    let (after, took) = (so_far(), begun.elapsed().as_secs_f64());
    let busy = |before: Option<f64>, after: Option<f64>| Some((after? - before?) / took);
    let cores = busy(before.1, after.1).zip(busy(before.2, after.2));
    Measured { rate: (after.0 - before.0) as f64 / took, cores: cores.map(|(server, clients)| [server, clients]) }
}
