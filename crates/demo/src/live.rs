//! A scene over real sockets: the same networks, emulated on this machine. A busy machine delays what it emulates, so
//! the emulator measures how late it was, and no verdict is given where that is too much.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fairpath_core::{Bitrate, ByteCount};
use fairpath_emu::{Emulator, LinkConfig, QueueConfig};
use fairpath_quic::bulk::{Sink, Source};
use fairpath_quic::{ConnectConfig, Connection, EngineConfig, ListenConfig, Listener, connect};
use fairpath_report::sharing::Sharing;
use serde::Serialize;

use super::scene::{LINK, Mode, Network, QUEUE, RTT};

/// An emulator that is later than this for one packet in a hundred moves delays by a tenth of a queue, which
/// detection takes for the network's.
const LATE_MAX: Duration = Duration::from_millis(5);

/// The time until slow start and the first losses are over.
const START_UP: Duration = Duration::from_secs(4);

/// The time that is measured: less than in virtual time, since people wait for it.
const MEASURED: Duration = Duration::from_secs(10);

/// The time that a live scene takes.
pub(crate) const TIME: Duration = START_UP.saturating_add(MEASURED);

/// Paths are open within this time, or something is wrong.
const OPEN_WITHIN: Duration = Duration::from_secs(5);

/// The result of a live scene.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Live {
    pub(crate) network: Network,
    pub(crate) mode: Mode,
    pub(crate) seconds: f64,
    #[serde(rename = "goodput_mbps", serialize_with = "as_mbps")]
    pub(crate) goodput: Bitrate,
    #[serde(rename = "competitor_mbps", serialize_with = "as_optional_mbps")]
    pub(crate) competitor: Option<Bitrate>,
    /// One packet in a hundred left the emulator later than this.
    pub(crate) late_ms: f64,
    /// Whether the machine was too busy to judge.
    pub(crate) too_busy: bool,
    pub(crate) sharing: Sharing,
}

fn as_mbps<S: serde::Serializer>(rate: &Bitrate, serializer: S) -> Result<S::Ok, S::Error> {
    rate.as_mbps_f64().serialize(serializer)
}

fn as_optional_mbps<S: serde::Serializer>(rate: &Option<Bitrate>, serializer: S) -> Result<S::Ok, S::Error> {
    rate.map(|rate| rate.as_mbps_f64()).serialize(serializer)
}

impl Live {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let network = match self.network {
            Network::Separate => "two separate links",
            Network::Shared => "one shared link",
        };
        let beside = self.competitor.map_or(String::new(), |rate| format!(", the other {:.1}", rate.as_mbps_f64()));
        let found = match (self.mode, self.too_busy, self.sharing.sentences()) {
            (_, true, _) => {
                format!("this machine was too busy to judge: the emulator was late by {:.0} ms", self.late_ms)
            }
            (Mode::Fairpath, _, said) if !said.is_empty() => said.join("; "),
            _ => format!("the emulator was late by {:.1} ms at most, but for one packet in a hundred", self.late_ms),
        };
        format!("{network}, {}: {:.1} Mbit/s{beside}; {found}", self.mode.name(), self.goodput.as_mbps_f64())
    }
}

/// Both ends of a connection with data on its way.
struct Flow {
    client: Connection,
    sink: Sink,
    _source: Source,
    _server: Connection,
    _listener: Listener,
}

impl Flow {
    async fn start(engine: EngineConfig, listener: Listener, relays: &[std::net::SocketAddr]) -> anyhow::Result<Self> {
        let config = ConnectConfig { engine, ..ConnectConfig::new(relays.to_vec(), listener.fingerprint()) };
        let (client, server) = tokio::join!(connect(config), listener.accept());
        let (client, server) = (client?, server.context("the listener ended")?);
        ensure!(
            client.paths_open(relays.len(), OPEN_WITHIN).await,
            "only {} of {} paths opened within {} s",
            client.paths().len(),
            relays.len(),
            OPEN_WITHIN.as_secs()
        );
        let sink = Sink::start(&server);
        let source = Source::start(&client);
        Ok(Self { client, sink, _source: source, _server: server, _listener: listener })
    }
}

/// Runs one mode over one network, in real time.
pub(crate) async fn run(network: Network, mode: Mode) -> anyhow::Result<Live> {
    let engine = mode.engine();
    let listener = listen(&engine)?;
    let competitor_engine = Mode::OnePath.engine();
    let competitor_listener = listen(&competitor_engine)?;
    let emulator = emulate(network, mode.paths(), &listener, &competitor_listener)?;
    let (relays, competitor_relays) = emulator.relays().split_at(mode.paths());
    let competitor = match network {
        Network::Separate => None,
        Network::Shared => Some(Flow::start(competitor_engine, competitor_listener, competitor_relays).await?),
    };
    let ours = Flow::start(engine, listener, relays).await?;
    tokio::time::sleep(START_UP).await;
    emulator.reset_timing();
    let received = || (ours.sink.received(), competitor.as_ref().map(|flow| flow.sink.received()));
    let (begun, from) = (Instant::now(), received());
    tokio::time::sleep(MEASURED).await;
    let (time, to) = (begun.elapsed(), received());
    let late = emulator.stats().timing.p99;
    for flow in [Some(&ours), competitor.as_ref()].into_iter().flatten() {
        ensure!(flow.client.close_reason().is_none(), "a connection ended before its time");
    }
    let live = Live {
        network,
        mode,
        seconds: time.as_secs_f64(),
        goodput: rate(from.0, to.0, time),
        competitor: from.1.zip(to.1).map(|(from, to)| rate(from, to, time)),
        late_ms: late.as_secs_f64() * 1e3,
        too_busy: late > LATE_MAX,
        sharing: sharing(&ours),
    };
    [Some(ours), competitor].into_iter().flatten().for_each(|flow| flow.client.close(0, "done"));
    Ok(live)
}

fn listen(engine: &EngineConfig) -> anyhow::Result<Listener> {
    let config = ListenConfig { via: vec!["127.0.0.1".into()], engine: engine.clone(), ..ListenConfig::new()? };
    Ok(Listener::bind(config)?)
}

/// The network: links towards the receiver, and a way back that never fills.
fn emulate(network: Network, paths: usize, ours: &Listener, competitor: &Listener) -> anyhow::Result<Emulator> {
    let mut builder = Emulator::builder(1);
    let config = LinkConfig::new(LINK).delay(RTT / 2).queue(QueueConfig::sojourn(QUEUE));
    let back = builder.link("back", &LinkConfig::new(Bitrate::from_mbps(1000)).delay(RTT / 2))?;
    match network {
        Network::Separate => {
            for path in 0..paths {
                let there = builder.link(&format!("link {path}"), &config)?;
                builder.path(&[there], &[back], ours.addresses()[0])?;
            }
        }
        Network::Shared => {
            let there = builder.link("link", &config)?;
            for _ in 0..paths {
                builder.path(&[there], &[back], ours.addresses()[0])?;
            }
            builder.path(&[there], &[back], competitor.addresses()[0])?;
        }
    }
    Ok(builder.start()?)
}

fn sharing(flow: &Flow) -> Sharing {
    let names: Vec<String> = (1..=flow.client.paths().len()).map(|number| format!("path {number}")).collect();
    Sharing::of(&flow.client, &names)
}

fn rate(from: ByteCount, to: ByteCount, time: Duration) -> Bitrate {
    to.saturating_sub(from).per(time).unwrap_or(Bitrate::ZERO)
}
