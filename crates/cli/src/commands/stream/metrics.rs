//! A stream in numbers for Prometheus.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;

use fairpath_core::Bitrate;
use fairpath_quic::flows::{Counts, PathStatus, Status};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::metrics::{Exporter, Growth};

type Number = Gauge<f64, AtomicU64>;

/// The names of labels and their values.
type Labels = Vec<(&'static str, String)>;

/// The metrics that are exported.
#[derive(Debug, Default)]
struct Numbers {
    connected: Gauge,
    deadline: Number,
    budget: Number,
    budget_variation: Number,
    beside: Number,
    path_rate: Family<Labels, Number>,
    path_allowed: Family<Labels, Number>,
    path_delay: Family<Labels, Number>,
    path_deviation: Family<Labels, Number>,
    path_loss: Family<Labels, Number>,
    path_silent: Family<Labels, Gauge>,
    path_usable: Family<Labels, Gauge>,
    path_sent: Family<Labels, Counter>,
    packets: Family<Labels, Counter>,
    sent: Family<Labels, Counter>,
    received: Family<Labels, Counter>,
}

/// A path, as it is shown.
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) status: &'a PathStatus,
    /// The rate of the last second.
    pub(super) rate: Bitrate,
}

/// The numbers of one end, where Prometheus can ask for them.
#[derive(Debug)]
pub(super) struct Metrics {
    numbers: Numbers,
    exporter: Exporter,
    /// The counters' states on this connection, by their labels.
    counted: BTreeMap<String, Growth>,
}

impl Metrics {
    /// At an address of this machine.
    pub(super) async fn at(address: SocketAddr) -> anyhow::Result<Self> {
        let numbers = Numbers::default();
        let mut registry = Registry::with_prefix("fairpath_stream");
        numbers.register(&mut registry);
        Ok(Self { numbers, exporter: Exporter::at(address, registry).await?, counted: BTreeMap::new() })
    }

    /// A connection is there, and counts from nothing.
    pub(super) fn connected(&mut self) {
        self.counted.clear();
        self.numbers.connected.set(1);
    }

    /// It is there no more: what was true of it is true of nothing.
    pub(super) fn gone(&mut self) {
        let Self { numbers, exporter, .. } = self;
        exporter.change(|| {
            numbers.connected.set(0);
            numbers.forget_paths();
            [&numbers.budget, &numbers.beside].into_iter().for_each(|number| _ = number.set(0.0));
        });
    }

    /// How it is now.
    pub(super) fn show(&mut self, status: &Status, received: &Counts, paths: &[Row<'_>]) {
        let Self { numbers, exporter, counted } = self;
        exporter.change(|| {
            numbers.deadline.set(status.deadline.as_secs_f64());
            numbers.budget.set(status.budget.as_bps() as f64);
            numbers.budget_variation.set(status.budget_variation);
            numbers.beside.set(status.beside);
            numbers.forget_paths();
            paths.iter().for_each(|path| numbers.show_path(path, counted));
            let mut count = |family: &Family<Labels, Counter>, labels: Labels, count: u64| {
                // The values of one label are no others': they name the count.
                let name: Vec<&str> = labels.iter().map(|(_, value)| value.as_str()).collect();
                let growth = counted.entry(name.join(" ")).or_default();
                growth.pass_on(count, &family.get_or_create(&labels));
            };
            for (kind, pieces) in [
                ("new", status.pieces),
                ("again", status.again),
                ("copy", status.copies),
                ("repair", status.repair),
                ("dropped", status.dropped),
            ] {
                count(&numbers.sent, vec![("kind", kind.into())], pieces);
            }
            count(&numbers.packets, vec![("direction", "sent".into())], status.packets);
            count(&numbers.packets, vec![("direction", "received".into())], received.delivered);
            for (end, counts) in [("here", Some(*received)), ("there", status.peer)] {
                let Some(Counts { received, recovered, late, duplicate, lost, repair, .. }) = counts else { continue };
                for (outcome, pieces) in [
                    ("in_time", received),
                    ("recovered", recovered),
                    ("late", late),
                    ("duplicate", duplicate),
                    ("lost", lost),
                    ("repair", repair),
                ] {
                    count(&numbers.received, vec![("end", end.into()), ("outcome", outcome.into())], pieces);
                }
            }
        });
    }
}

/// The numbers as Prometheus reads them, with one path and one count of each kind, for the reference.
#[cfg(test)]
pub(crate) fn exposed() -> String {
    let numbers = Numbers::default();
    let Numbers { path_rate, path_allowed, path_delay, path_deviation, path_loss, .. } = &numbers;
    for family in [path_rate, path_allowed, path_delay, path_deviation, path_loss] {
        drop(family.get_or_create(&Labels::new()));
    }
    for family in [&numbers.path_silent, &numbers.path_usable] {
        drop(family.get_or_create(&Labels::new()));
    }
    for family in [&numbers.path_sent, &numbers.packets, &numbers.sent, &numbers.received] {
        drop(family.get_or_create(&Labels::new()));
    }
    let mut registry = Registry::with_prefix("fairpath_stream");
    numbers.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text in memory");
    text
}

impl Numbers {
    fn register(&self, to: &mut Registry) {
        to.register("connected", "Whether a peer is there", self.connected.clone());
        to.register_with_unit("deadline", "How long a packet may take", Unit::Seconds, self.deadline.clone());
        let ratio = || Unit::Other("ratio".into());
        let bits = || Unit::Other("bits_per_second".into());
        to.register_with_unit("budget", "What an encoder may send", bits(), self.budget.clone());
        let help = "Deviation of the budget in the last half minute, in parts of its mean";
        to.register_with_unit("budget_variation", help, ratio(), self.budget_variation.clone());
        let help =
            "Share of what is sent that is no new data: repair, copies of marked packets, and what is sent again";
        to.register_with_unit("beside", help, ratio(), self.beside.clone());
        let help = "What was sent on the path in the last second, repair and copies included";
        to.register_with_unit("path_rate", help, bits(), self.path_rate.clone());
        let help = "What the path may carry, in time and in fairness to others";
        to.register_with_unit("path_allowed", help, bits(), self.path_allowed.clone());
        let help = "How long packets take on the path, one way";
        to.register_with_unit("path_delay", help, Unit::Seconds, self.path_delay.clone());
        let help = "Standard deviation of how long packets take on the path";
        to.register_with_unit("path_delay_deviation", help, Unit::Seconds, self.path_deviation.clone());
        let help = "Share of the packets of the path that was lost in the last two seconds";
        to.register_with_unit("path_loss", help, ratio(), self.path_loss.clone());
        let help = "Whether the peer hears nothing of the path, so that it carries copies only";
        to.register("path_silent", help, self.path_silent.clone());
        to.register("path_usable", "Whether the path may carry data", self.path_usable.clone());
        let help = "What was sent on the path, repair and copies included";
        to.register_with_unit("path_sent", help, Unit::Bytes, self.path_sent.clone());
        to.register("packets", "Packets of the application, taken in here and handed out here", self.packets.clone());
        let help = "Pieces by why they left; dropped ones never left, because no path took them before their deadline";
        to.register("sent_pieces", help, self.sent.clone());
        let help = "Pieces by what became of them: of the peer's flows (here), and of this end's (there)";
        to.register("received_pieces", help, self.received.clone());
    }

    /// A path that is gone has no rate and no delay. What was sent on it stays counted.
    fn forget_paths(&self) {
        let Self { path_rate, path_allowed, path_delay, path_deviation, path_loss, .. } = self;
        [path_rate, path_allowed, path_delay, path_deviation, path_loss].into_iter().for_each(Family::clear);
        [&self.path_silent, &self.path_usable].into_iter().for_each(Family::clear);
    }

    fn show_path(&self, path: &Row<'_>, counted: &mut BTreeMap<String, Growth>) {
        let Row { name, status, rate } = *path;
        let labels = vec![("path", name.to_owned())];
        let set = |family: &Family<Labels, Number>, value: f64| _ = family.get_or_create(&labels).set(value);
        set(&self.path_rate, rate.as_bps() as f64);
        set(&self.path_allowed, status.rate.as_bps() as f64);
        set(&self.path_loss, status.loss);
        status.delay.into_iter().for_each(|delay| set(&self.path_delay, delay.as_secs_f64()));
        status.delay_deviation.into_iter().for_each(|deviation| set(&self.path_deviation, deviation.as_secs_f64()));
        self.path_silent.get_or_create(&labels).set(status.is_silent.into());
        self.path_usable.get_or_create(&labels).set(status.is_usable.into());
        // An interface whose path was made anew counts from nothing, and its number says so.
        let key = format!("path {name} {}", status.path.get());
        counted.entry(key).or_default().pass_on(status.sent.get(), &self.path_sent.get_or_create(&labels));
    }
}
