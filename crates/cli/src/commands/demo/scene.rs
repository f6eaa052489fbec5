//! One run: real QUIC over real sockets through an emulated network.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fairpath_core::{Bitrate, Bytes};
use fairpath_emu::{Emulator, LinkConfig, QueueConfig, QueueLimit};
use fairpath_quic::bulk::{Sink, Source};
use fairpath_quic::{ConnectConfig, Connection, Coupling, EngineConfig, ListenConfig, Listener, connect};
use fairpath_trace::Record;
use serde::Serialize;

use crate::recording::records;
use crate::sharing::Sharing;

/// What every bottleneck carries.
pub(super) const BOTTLENECK: Bitrate = Bitrate::from_mbps(20);

/// The round-trip time without queues.
pub(super) const RTT: Duration = Duration::from_millis(20);

/// The queue of a bottleneck: one bandwidth-delay product.
pub(super) const QUEUE: Duration = RTT;

/// How often the trace has a record.
const SAMPLE: Duration = Duration::from_millis(100);

/// Which network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Network {
    /// Two bottlenecks, one for each path.
    Separate,
    /// One bottleneck for both paths and a competing connection with one path.
    Shared,
}

/// What the connection under test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// One path, of Reno.
    Single,
    /// Two paths that know nothing of each other.
    Uncoupled,
    /// Two paths coupled by LIA.
    Lia,
    /// Two paths coupled by OLIA.
    Olia,
    /// One path of CUBIC: what the default is to be beside another one.
    Cubic,
    /// Two paths as the program runs them by default: coupled while they are found to share a
    /// bottleneck.
    Auto,
}

impl Mode {
    const ALL: [Self; 6] = [Self::Single, Self::Uncoupled, Self::Lia, Self::Olia, Self::Cubic, Self::Auto];

    /// All whose paths are coupled then, and the single paths to compare them with there.
    pub(super) fn with(coupling: Option<Coupling>, network: Network) -> Vec<Self> {
        let wanted = |mode: &Self| coupling.is_none_or(|coupling| mode.engine().coupling == coupling);
        let runs = |mode: &Self| match mode {
            Self::Single => true,
            Self::Cubic => network == Network::Shared && wanted(&Self::Auto),
            _ => wanted(mode),
        };
        Self::ALL.into_iter().filter(runs).collect()
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Single => "single path",
            Self::Uncoupled => "uncoupled",
            Self::Lia => "LIA",
            Self::Olia => "OLIA",
            Self::Cubic => "one CUBIC",
            Self::Auto => "auto",
        }
    }

    /// Whether it should be fair on a bottleneck that its paths share.
    pub(super) fn is_coupled(self) -> bool {
        matches!(self, Self::Lia | Self::Olia | Self::Auto)
    }

    /// The single path that it competes with on a shared bottleneck, and whose place it takes there: of the
    /// congestion control that it is made to be fair to.
    pub(super) fn rival(self) -> Self {
        match self {
            Self::Cubic | Self::Auto => Self::Cubic,
            Self::Single | Self::Uncoupled | Self::Lia | Self::Olia => Self::Single,
        }
    }

    fn paths(self) -> usize {
        if self.rival() == self { 1 } else { 2 }
    }

    pub(super) fn engine(self) -> EngineConfig {
        let (congestion, coupling) = match self {
            Self::Single | Self::Uncoupled => ("reno", Coupling::Never),
            Self::Lia => ("lia", Coupling::Always),
            Self::Olia => ("olia", Coupling::Always),
            Self::Cubic => ("cubic", Coupling::Never),
            Self::Auto => return EngineConfig::live(),
        };
        EngineConfig { congestion: congestion.into(), coupling, ..EngineConfig::live() }
    }
}

/// How long to wait before measuring, and how long to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start_up: Duration,
    pub(super) measured: Duration,
}

/// What came of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) network: Network,
    pub(super) mode: Mode,
    /// How long it was measured.
    pub(super) measured: Duration,
    /// Application data of the connection under test.
    pub(super) goodput: Bitrate,
    /// Application data of the competitor.
    pub(super) competitor: Option<Bitrate>,
    /// What the senders had acknowledged in each half second: its end in seconds, under test,
    /// competitor. (What the receivers hand on comes in larger pieces.)
    pub(super) over_time: Vec<(f64, Bitrate, Option<Bitrate>)>,
    pub(super) records: Vec<Record>,
    /// What was found out about the bottlenecks.
    pub(super) sharing: Sharing,
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
            client.paths_open(relays.len(), Duration::from_secs(5)).await,
            "only {} of {} paths opened within 5 s",
            client.paths().len(),
            relays.len()
        );
        let sink = Sink::start(&server);
        let source = Source::start(&client);
        Ok(Self { client, sink, _source: source, _server: server, _listener: listener })
    }

    /// What the receiver has acknowledged, with headers.
    fn acked(&self) -> Bytes {
        self.client.snapshots().1.iter().map(|path| path.delivered).sum()
    }
}

/// Runs one mode over one network.
pub(super) async fn run(network: Network, mode: Mode, span: Span) -> anyhow::Result<Outcome> {
    let engine = mode.engine();
    let main_listener = listen(&engine)?;
    let rival_engine = mode.rival().engine();
    let rival_listener = listen(&rival_engine)?;
    let emulator = emulate(network, mode.paths(), &main_listener, &rival_listener)?;
    let (main_relays, rival_relays) = emulator.relays().split_at(mode.paths());
    let rival = match network {
        Network::Separate => None,
        Network::Shared => Some(Flow::start(rival_engine, rival_listener, rival_relays).await?),
    };
    let main = Flow::start(engine, main_listener, main_relays).await?;
    let outcome = measure(network, mode, span, &main, rival.as_ref()).await;
    for flow in [Some(&main), rival.as_ref()].into_iter().flatten() {
        ensure!(flow.client.close_reason().is_none(), "a connection ended before its time");
        flow.client.close(0, "done");
    }
    Ok(outcome)
}

fn listen(engine: &EngineConfig) -> anyhow::Result<Listener> {
    let config = ListenConfig { via: vec!["127.0.0.1".into()], engine: engine.clone(), ..ListenConfig::new()? };
    Ok(Listener::bind(config)?)
}

/// The network: bottlenecks towards the receiver, and a way back that never fills.
fn emulate(network: Network, paths: usize, main: &Listener, rival: &Listener) -> anyhow::Result<Emulator> {
    let mut builder = Emulator::builder(1);
    let bottleneck =
        LinkConfig::new(BOTTLENECK).delay(RTT / 2).queue(QueueConfig::DropTail(QueueLimit::Sojourn(QUEUE)));
    let back = builder.link("back", &LinkConfig::new(Bitrate::from_mbps(1000)).delay(RTT / 2))?;
    match network {
        Network::Separate => {
            for path in 0..paths {
                let there = builder.link(&format!("bottleneck {path}"), &bottleneck)?;
                builder.path(&[there], &[back], main.addresses()[0])?;
            }
        }
        Network::Shared => {
            let there = builder.link("bottleneck", &bottleneck)?;
            for _ in 0..paths {
                builder.path(&[there], &[back], main.addresses()[0])?;
            }
            builder.path(&[there], &[back], rival.addresses()[0])?;
        }
    }
    Ok(builder.start()?)
}

async fn measure(network: Network, mode: Mode, span: Span, main: &Flow, rival: Option<&Flow>) -> Outcome {
    let run = format!("{}/{}", if network == Network::Separate { "separate" } else { "shared" }, mode.name());
    let totals = || (main.sink.received(), rival.map(|flow| flow.sink.received()));
    let begun = Instant::now();
    let mut started = None;
    let mut recorded = Vec::new();
    let mut over_time = Vec::new();
    let acked = || (main.acked(), rival.map(Flow::acked));
    let (mut then, mut before) = (begun, acked());
    let mut tick = tokio::time::interval(SAMPLE);
    loop {
        tick.tick().await;
        let now = Instant::now();
        for (flow, name) in [(Some(main), "main"), (rival, "competitor")] {
            recorded.extend(flow.into_iter().flat_map(|flow| records(&flow.client, Some(&run), Some(name))));
        }
        if now.duration_since(then) >= 5 * SAMPLE {
            let current = acked();
            let seconds = now.duration_since(begun).as_secs_f64();
            let elapsed = now.duration_since(then);
            over_time.push((seconds, rate(before.0, current.0, elapsed), both(before.1, current.1, elapsed)));
            (then, before) = (now, current);
        }
        match started {
            None if now.duration_since(begun) >= span.start_up => started = Some((now, totals())),
            Some((at, from)) if now.duration_since(at) >= span.measured => {
                let elapsed = now.duration_since(at);
                let to = totals();
                return Outcome {
                    network,
                    mode,
                    measured: elapsed,
                    goodput: rate(from.0, to.0, elapsed),
                    competitor: both(from.1, to.1, elapsed),
                    over_time,
                    records: recorded,
                    sharing: sharing(main),
                };
            }
            _ => {}
        }
    }
}

fn sharing(flow: &Flow) -> Sharing {
    let names: Vec<String> = (1..=flow.client.paths().len()).map(|number| format!("path {number}")).collect();
    Sharing::of(&flow.client, &names)
}

fn rate(from: Bytes, to: Bytes, elapsed: Duration) -> Bitrate {
    to.saturating_sub(from).per(elapsed).unwrap_or(Bitrate::ZERO)
}

fn both(from: Option<Bytes>, to: Option<Bytes>, elapsed: Duration) -> Option<Bitrate> {
    Some(rate(from?, to?, elapsed))
}
