//! An end of a proxy in numbers for Prometheus.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fairpath_proxy::Snapshot;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use tokio::task::JoinSet;

use crate::metrics::{Exporter, Growth};

/// The numbers are brought up to date once in this time.
const PERIOD: Duration = Duration::from_secs(1);

type Number = Gauge<f64, AtomicU64>;
type Labels = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
struct Numbers {
    peers: Gauge,
    connections_open: Gauge,
    connections: Counter,
    carried: Family<Labels, Counter>,
    path_open: Family<Labels, Gauge>,
    path_rtt: Family<Labels, Number>,
    path_send_rate: Family<Labels, Number>,
    path_receive_rate: Family<Labels, Number>,
}

/// The counts as they were passed on.
#[derive(Debug, Default)]
struct Counted {
    connections: Growth,
    up: Growth,
    down: Growth,
}

/// Shows an end, of which `now` makes snapshots, at an address of this machine. It ends when what is returned is dropped.
pub(crate) async fn show(
    address: SocketAddr,
    now: impl Fn() -> Snapshot + Send + 'static,
) -> anyhow::Result<JoinSet<()>> {
    let numbers = Numbers::default();
    let exporter = Exporter::at(address, numbers.registry()).await?;
    let mut task = JoinSet::new();
    task.spawn(async move {
        let mut counted = Counted::default();
        loop {
            let snapshot = now();
            exporter.change(|| numbers.set(&snapshot, &mut counted));
            tokio::time::sleep(PERIOD).await;
        }
    });
    Ok(task)
}

impl Numbers {
    fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("fairpath_proxy");
        let to = &mut registry;
        let bits = || Unit::Other("bits_per_second".into());
        to.register("peers", "Connections to the other end, or of devices", self.peers.clone());
        let help = "Connections and associations of programs that are open";
        to.register("connections_open", help, self.connections_open.clone());
        let help = "Connections and associations of programs since the start";
        to.register("connections", help, self.connections.clone());
        let help = "Data of programs, from them (up) and to them (down)";
        to.register_with_unit("carried", help, Unit::Bytes, self.carried.clone());
        to.register("path_open", "Whether the path carries data", self.path_open.clone());
        to.register_with_unit("path_rtt", "Smoothed round trip of the path", Unit::Seconds, self.path_rtt.clone());
        let help = "How fast data leaves on the path";
        to.register_with_unit("path_send_rate", help, bits(), self.path_send_rate.clone());
        let help = "How fast data comes in on the path";
        to.register_with_unit("path_receive_rate", help, bits(), self.path_receive_rate.clone());
        registry
    }

    fn set(&self, snapshot: &Snapshot, counted: &mut Counted) {
        self.peers.set(snapshot.peers.iter().filter(|peer| !peer.paths.is_empty()).count() as i64);
        self.connections_open.set(snapshot.connections_open as i64);
        counted.connections.pass_on(snapshot.connections_total, &self.connections);
        let carried = |direction: &str| self.carried.get_or_create(&vec![("direction", direction.to_owned())]).clone();
        counted.up.pass_on(snapshot.up_bytes, &carried("up"));
        counted.down.pass_on(snapshot.down_bytes, &carried("down"));
        // A path that is gone has no rate and no delay.
        [&self.path_rtt, &self.path_send_rate, &self.path_receive_rate].into_iter().for_each(Family::clear);
        self.path_open.clear();
        for peer in &snapshot.peers {
            for path in &peer.paths {
                let labels = vec![("peer", peer.name.clone()), ("path", path.name.clone())];
                self.path_open.get_or_create(&labels).set(path.is_open.into());
                if let Some(rtt) = path.rtt_ms {
                    self.path_rtt.get_or_create(&labels).set(rtt / 1e3);
                }
                self.path_send_rate.get_or_create(&labels).set(path.send_rate_bps as f64);
                self.path_receive_rate.get_or_create(&labels).set(path.receive_rate_bps as f64);
            }
        }
    }
}

/// The numbers as Prometheus reads them, with one of each, for the reference.
#[cfg(test)]
pub(crate) fn exposed() -> String {
    let numbers = Numbers::default();
    drop(numbers.carried.get_or_create(&Labels::new()));
    drop(numbers.path_open.get_or_create(&Labels::new()));
    for family in [&numbers.path_rtt, &numbers.path_send_rate, &numbers.path_receive_rate] {
        drop(family.get_or_create(&Labels::new()));
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &numbers.registry()).expect("text in memory");
    text
}
