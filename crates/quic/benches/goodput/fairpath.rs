//! The transfer by this crate.

use std::net::SocketAddr;

use fairpath_quic::bulk::{Sink, Source};
use fairpath_quic::{ConnectConfig, EngineConfig, ListenConfig, Listener, connect};

use crate::{Moved, Span};

pub(crate) async fn goodput(
    congestion: &str,
    coupling: &str,
    datagram_max: u16,
    server: SocketAddr,
    relays: Vec<SocketAddr>,
    span: Span,
) -> Option<Moved> {
    let engine =
        EngineConfig { congestion: congestion.into(), coupling: coupling.parse().ok()?, ..EngineConfig::live() };
    let listen = ListenConfig { listen: Some(server), engine: engine.clone(), ..ListenConfig::new().ok()? };
    let listener = Listener::bind(listen).ok()?;
    // Relays that are the server itself: the paths differ by their source addresses.
    let direct = relays[0] == server;
    let via = match direct {
        true => (1..=relays.len()).map(|path| format!("127.0.{path}.1")).collect(),
        false => vec!["127.0.0.1".to_owned()],
    };
    let paths = relays.len();
    let remotes = if direct { vec![server] } else { relays };
    let config = ConnectConfig { via, engine, datagram_max, ..ConnectConfig::new(remotes, listener.fingerprint()) };
    let (client, accepted) = tokio::join!(connect(config), listener.accept());
    let (client, accepted) = (client.ok()?, accepted?);
    client.paths_open(paths, std::time::Duration::from_secs(3)).await;

    let sink = Sink::start(&accepted);
    let source = Source::start(&client);
    let rate = crate::measure(span, || sink.received().get()).await;
    if std::env::var_os("FAIRPATH_BENCH_PATHS").is_some() {
        for path in client.paths() {
            eprintln!("    {} acked {} lost {} {:?}", path.remote, path.acked, path.lost, path.snapshot);
        }
    }
    let alive = client.close_reason().is_none();
    drop((source, sink));
    client.close(0, "");
    listener.close(0, "").await;
    alive.then_some(rate)
}
