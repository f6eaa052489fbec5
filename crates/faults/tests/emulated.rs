//! Three models of one network agree on throughput: the simulator, the real stack in virtual time, and the real stack
//! over real sockets and emulated links.

mod models;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use fairpath_emu::Emulator;
use fairpath_faults::Wire;
use fairpath_quic::{
    ChannelId, ConnectConfig, Connection, EngineConfig, ListenConfig, Listener, RECORD, Record, connect,
};
use models::{Window, as_scenario, link, simulated, stacked, wire};

/// The largest difference of any two of the three: packets, headers and timers are not the same.
const AGREE: f64 = 0.10;

/// After slow start.
const WINDOW: Window = Window { warm_up: Duration::from_secs(5), measured: Duration::from_secs(12) };

/// So slow that all of them at once are little work, whatever else the machine does. None loses packets at random: whether
/// a loss is congestion is told by delays, and those of timers on a busy machine are taken for a queue's.
fn networks() -> Vec<(&'static str, Vec<Wire>)> {
    vec![
        ("one path", vec![wire(8, 20, 100)]),
        ("a long path", vec![wire(6, 80, 200)]),
        ("two alike", vec![wire(6, 20, 60), wire(6, 20, 60)]),
        ("two rates", vec![wire(9, 15, 100), wire(3, 15, 100)]),
        ("two round trips", vec![wire(6, 10, 100), wire(6, 60, 100)]),
        ("ten to one", vec![wire(10, 20, 80), wire(1, 20, 200)]),
        ("a slow path far away", vec![wire(8, 10, 100), wire(2, 80, 200)]),
        ("a deep queue", vec![wire(6, 20, 400), wire(4, 30, 60)]),
        ("three paths", vec![wire(5, 10, 100), wire(4, 40, 100), wire(2, 25, 100)]),
    ]
}

/// Both ends of a connection over emulated wires.
struct Ends {
    client: Connection,
    server: Connection,
    _listener: Listener,
    _emulator: Emulator,
}

impl Ends {
    async fn over(wires: &[Wire], seed: u64) -> Self {
        let engine = EngineConfig::live();
        let via = vec!["127.0.0.1".to_owned()];
        let listen =
            ListenConfig { via: via.clone(), engine: engine.clone(), ..ListenConfig::new().expect("an identity") };
        let listener = Listener::bind(listen).expect("loopback");
        let emulator = emulator(wires, listener.addresses()[0], seed);
        let remotes = emulator.relays().to_vec();
        let config = ConnectConfig { via, engine, ..ConnectConfig::new(remotes, listener.fingerprint()) };
        let (client, server) = tokio::join!(connect(config), listener.accept());
        let (client, server) = (client.expect("a connection"), server.expect("a connection"));
        assert!(client.paths_open(wires.len(), Duration::from_secs(10)).await, "not all paths open");
        Self { client, server, _listener: listener, _emulator: emulator }
    }
}

fn emulator(wires: &[Wire], to: SocketAddr, seed: u64) -> Emulator {
    let mut builder = Emulator::builder(seed);
    for (at, wire) in wires.iter().enumerate() {
        let there = builder.link(&format!("there {at}"), &link(wire)).expect("a link");
        let back = builder.link(&format!("back {at}"), &link(wire)).expect("a link");
        builder.path(&[there], &[back], to).expect("a path");
    }
    builder.start().expect("an emulation")
}

/// The rate of real sockets over the same wires, in Mbit/s.
async fn emulated(wires: Vec<Wire>, seed: u64) -> f64 {
    let ends = Ends::over(&wires, seed).await;
    let sender = ends.client.clone();
    let sending = tokio::spawn(async move {
        let data = Bytes::from(vec![0; RECORD]);
        let record = |at: u64| Record { object: 1, offset: at * RECORD as u64, data: data.clone() };
        for at in 0.. {
            if sender.send_record(record(at)).await.is_err() {
                return;
            }
        }
    });
    let receiver = ends.server.clone();
    let receiving = tokio::spawn(async move { while receiver.recv_record().await.is_ok() {} });
    let received = || ends.server.received_bytes(ChannelId::Bulk).as_f64();
    tokio::time::sleep(WINDOW.warm_up).await;
    let (before, since) = (received(), tokio::time::Instant::now());
    tokio::time::sleep(WINDOW.measured).await;
    let mbps = (received() - before) * 8e-6 / since.elapsed().as_secs_f64();
    ends.client.close(0, "done");
    for task in [sending, receiving] {
        task.await.expect("no panic");
    }
    mbps
}

#[tokio::test(flavor = "multi_thread")]
async fn the_simulator_the_core_in_virtual_time_and_emulated_links_agree() {
    // Simulations use the processor and run first, so that the emulations do not wait for it.
    let models: Vec<_> = networks()
        .into_iter()
        .map(|(name, wires)| (name, simulated(as_scenario(&wires), WINDOW), stacked(&wires, 1, WINDOW), wires))
        .collect();
    let running: Vec<_> = models
        .into_iter()
        .map(|(name, simulated, stacked, wires)| (name, simulated, stacked, tokio::spawn(emulated(wires, 1))))
        .collect();
    assert!(running.len() >= 8);
    let mut apart = Vec::new();
    for (name, simulated, stacked, emulated) in running {
        let emulated = emulated.await.expect("no panic");
        let said = format!("{name}: {simulated:.2} simulated, {stacked:.2} in virtual time, {emulated:.2} emulated");
        println!("{said}");
        let all = [simulated, stacked, emulated];
        let least = all.into_iter().fold(f64::INFINITY, f64::min);
        let most = all.into_iter().fold(0.0, f64::max);
        if least < (1.0 - AGREE) * most {
            apart.push(said);
        }
    }
    assert!(apart.is_empty(), "more than {AGREE} apart, in Mbit/s: {apart:#?}");
}
