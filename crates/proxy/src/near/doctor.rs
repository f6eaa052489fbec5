//! An examination: what each interface brings alone, what all bring together, and what that means.

mod bottlenecks;
mod ports;
mod words;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairpath::{Amount, Bitrate, Connection, Endpoint};
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::state::{JoinError, Joined, NearState, enter};
use super::{NearError, NearStateError};
use crate::far::ALPN;
use crate::greeting;
use crate::key::DeviceKey;
use crate::refusal::Refusal;
use crate::target::Target;
use crate::wire::{self, Direction, Purpose};
pub use bottlenecks::Shared;
use bottlenecks::Watched;
use ports::{ASKED, PORTS_MAX, further_ports};

/// How long an interface may take to reach the far end.
const REACHED: Duration = Duration::from_secs(8);

/// The paths of a connection over all interfaces, at most. One interface alone has one path: where the far end has several
/// addresses, it could answer over other links to them.
const PATHS: usize = 8;

/// How long a connection rests before its round trip is looked at.
const REST: Duration = Duration::from_millis(400);

/// The share of a measurement that is left out: rates grow at first.
const GROWTH: f64 = 0.4;

/// Together they add up from this share of the sum on, and bring nothing up to this multiple of the best.
const ADDS_UP: f64 = 0.75;
const BRINGS_NOTHING: f64 = 1.15;

/// A queue that is worth a word, and a loss that is.
const LONG_QUEUE: Duration = Duration::from_millis(150);
const HIGH_LOSS: f64 = 0.05;

/// A port is throttled that brings less than this share of another one of the same host over the same link.
const THROTTLED: f64 = 0.5;

/// The other port counts for this rate at most. The far end itself passes on what comes to a port after its first, which
/// takes a processor's time and bounds the rate.
const PASSED_ON: Bitrate = Bitrate::from_mbps(200);

/// The settings of an examination.
#[derive(Clone, Debug)]
pub struct ExamineConfig {
    /// The state directory of the near end.
    pub state: PathBuf,
    /// The interfaces or addresses to examine; empty: all usable ones.
    pub via: Vec<String>,
    /// How long each measurement takes.
    pub time: Duration,
}

/// The findings.
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// The interfaces that were examined.
    pub interfaces: Vec<Finding>,
    /// Those that are not used, each with the reason in words.
    pub unused: Vec<(String, String)>,
    /// All together, where several reach the far end.
    pub together: Option<Together>,
}

/// The findings about an interface.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Its name.
    pub name: String,
    /// Its address.
    pub local: Option<IpAddr>,
    /// The address from which the far end sees it.
    pub seen: Option<SocketAddr>,
    /// Why it does not reach the far end, in words; `None`: it does.
    pub unreached: Option<String>,
    /// The round trip at rest.
    pub rtt_idle: Option<Duration>,
    /// The round trip while data is sent.
    pub rtt_loaded: Option<Duration>,
    /// The share of what was sent that was lost.
    pub loss: Option<f64>,
    /// The rate that comes in.
    pub down: Option<Bitrate>,
    /// The rate that goes out.
    pub up: Option<Bitrate>,
    /// Each address of the far end, and how long it took to answer from here; `None`: it did not.
    pub answers: Vec<(SocketAddr, Option<Duration>)>,
    /// The largest packet that was found to pass, in bytes with its headers.
    pub mtu: Option<u16>,
    /// The rates that come in from other ports of the same host, each alone.
    pub ports: Vec<(SocketAddr, Bitrate)>,
    /// Whether the far end's addresses see it at one address and port: programs reach it there, too. `None` where that is not
    /// known.
    pub is_one_mapping: Option<bool>,
}

/// The findings about all interfaces together.
#[derive(Clone, Debug, Default)]
pub struct Together {
    /// The rate that comes in.
    pub down: Bitrate,
    /// The rate that goes out.
    pub up: Bitrate,
    /// The links that share a bottleneck on the way out, as the connection found.
    pub shared: Vec<Shared>,
}

/// The longest examination of this many interfaces, if all of them reach the far end and answer
/// late. Its hosts have this many ports beside the first.
pub fn examination_max(interfaces: usize, ports: usize, time: Duration) -> Duration {
    let each = ASKED + REACHED + REST + time * 2 + (REACHED + time) * ports.min(PORTS_MAX) as u32;
    each * u32::try_from(interfaces).unwrap_or(u32::MAX) + REACHED * 3 / 2 + time * 2
}

/// Examines the interfaces of this machine against the far end that it has joined. `progress` is told each step. Takes
/// [`examination_max`] at most. Must be called within a tokio runtime.
///
/// # Errors
///
/// Where this device has joined no far end, or an interface that is named does not exist.
pub async fn examine(config: ExamineConfig, mut progress: impl FnMut(String)) -> Result<Examination, NearError> {
    let state = NearState::open(&config.state)?;
    let examiner = Examiner { key: Arc::new(state.key()?), joined: state.joined()?, time: config.time };
    let mut examination = Examination::default();
    let mut names = config.via;
    if names.is_empty() {
        let all = fairpath::interfaces().map_err(fairpath::Error::from)?;
        for interface in all {
            match interface.unused {
                None if !names.contains(&interface.name) => names.push(interface.name),
                None => {}
                Some(why) => examination.unused.push((format!("{} {}", interface.name, interface.address), why)),
            }
        }
    }
    let ports =
        examiner.joined.addresses.iter().map(|address| further_ports(&examiner.joined.addresses, *address).len());
    let longest = examination_max(names.len(), ports.max().unwrap_or(0), config.time);
    let links = if names.len() == 1 { "link" } else { "links" };
    progress(format!("{} {links}, {} s at most", names.len(), longest.as_secs()));
    for name in &names {
        progress(format!("{name} alone"));
        examination.interfaces.push(examiner.alone(name).await?);
    }
    let reached = || examination.interfaces.iter().filter(|one| one.unreached.is_none());
    if reached().count() > 1 {
        progress("all together".to_owned());
        let names = reached().map(|one| one.name.clone()).collect();
        examination.together = examiner.together(names).await?;
    }
    Ok(examination)
}

struct Examiner {
    key: Arc<DeviceKey>,
    joined: Joined,
    time: Duration,
}

impl Examiner {
    async fn alone(&self, name: &str) -> Result<Finding, NearError> {
        let (answers, is_one_mapping) = self.asked(name).await?;
        let finding = Finding { name: name.to_owned(), answers, is_one_mapping, ..Finding::default() };
        let (connection, seen) = match self.connect(vec![name.to_owned()], 1, &self.joined.addresses).await? {
            Ok(connected) => connected,
            Err(why) => return Ok(Finding { unreached: Some(why), ..finding }),
        };
        sleep(REST).await;
        let rest = connection.stats().await;
        let down = self.measure(&connection, Direction::Down).await;
        let before = connection.stats().await;
        let up = self.measure(&connection, Direction::Up).await;
        let after = connection.stats().await;
        let mtu = connection.datagram_max();
        connection.close(0, "examined").await;
        let path = rest.paths.first();
        let difference = |of: fn(&fairpath::Stats) -> Amount| of(&after).get().saturating_sub(of(&before).get()) as f64;
        let (lost, acked) = (difference(|stats| stats.lost), difference(|stats| stats.acked));
        let answering: Vec<SocketAddr> =
            finding.answers.iter().filter(|(_, took)| took.is_some()).map(|(address, _)| *address).collect();
        let remote = path.map(|path| path.remote);
        let ports = match remote {
            Some(remote) => self.rates_of_ports(name, &further_ports(&answering, remote)).await?,
            None => Vec::new(),
        };
        let headers = if remote.is_some_and(|remote| remote.is_ipv4()) { 20 + 8 } else { 40 + 8 };
        Ok(Finding {
            mtu: Some(mtu.saturating_add(headers)),
            ports,
            local: path.and_then(|path| path.local),
            seen,
            rtt_idle: path.and_then(|path| path.rtt),
            rtt_loaded: after.paths.iter().filter_map(|path| path.rtt).max(),
            loss: (lost + acked > 0.0).then(|| lost / (lost + acked)),
            down: down.ok(),
            up: up.ok(),
            ..finding
        })
    }

    async fn together(&self, names: Vec<String>) -> Result<Option<Together>, NearError> {
        let count = names.len();
        let Ok((connection, _)) = self.connect(names, PATHS, &self.joined.addresses).await? else { return Ok(None) };
        connection.paths_open(count, REACHED / 2).await;
        let down = self.measure(&connection, Direction::Down).await;
        let begun = Instant::now();
        let (up, watched) = Watched::during(&connection, self.measure(&connection, Direction::Up)).await;
        let shared = watched.shared(begun.elapsed());
        connection.close(0, "examined").await;
        Ok(Some(Together { down: down.unwrap_or_default(), up: up.unwrap_or_default(), shared }))
    }

    /// A connection of so many paths over these interfaces, and the address from which the far end sees it. The inner error: it is not
    /// reached, with the reason in words.
    async fn connect(
        &self,
        via: Vec<String>,
        paths: usize,
        addresses: &[SocketAddr],
    ) -> Result<Result<(Connection, Option<SocketAddr>), String>, NearError> {
        let fingerprint = self.joined.fingerprint()?;
        let endpoint =
            Endpoint::builder().alpn(ALPN).guard(self.joined.guard_key()?).via(via).paths_max(paths).bind()?;
        let attempt = async {
            let connection = endpoint.connect(addresses.to_vec(), fingerprint).await?;
            let greeting = greeting::greet(&connection, &self.key, None);
            let admitted = enter(&connection, greeting).await?;
            Ok::<_, JoinError>((connection, admitted.seen))
        };
        Ok(match timeout(REACHED, attempt).await {
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(JoinError::State(error))) => return Err(error.into()),
            Ok(Err(JoinError::Connect(error @ fairpath::Error::UnknownInterface { .. }))) => return Err(error.into()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s: UDP may be blocked there", REACHED.as_secs())),
        })
    }

    /// The rate in a direction, while nothing else is sent.
    async fn measure(&self, connection: &Connection, direction: Direction) -> Result<Bitrate, NearStateError> {
        let measured = match direction {
            Direction::Down => self.measure_down(connection).await,
            Direction::Up => self.measure_up(connection).await,
        };
        measured.map_err(|_| NearStateError::NotJoined)
    }

    async fn measure_down(&self, connection: &Connection) -> Result<Bitrate, Refusal> {
        let (_send, mut recv) = open(connection, Direction::Down).await?;
        let begun = Instant::now();
        let counted_from = begun + self.time.mul_f64(GROWTH);
        let mut bytes = 0;
        while let Ok(Ok(Some(chunk))) = timeout_at(begun + self.time, recv.read_chunk(256 << 10)).await {
            if Instant::now() >= counted_from {
                bytes += chunk.len() as u64;
            }
        }
        recv.stop(0);
        Ok(rate(bytes, self.time.mul_f64(1.0 - GROWTH)))
    }

    async fn measure_up(&self, connection: &Connection) -> Result<Bitrate, Refusal> {
        let (mut send, _recv) = open(connection, Direction::Up).await?;
        let begun = Instant::now();
        let zeros = vec![0; 64 << 10];
        let mut counted_from = None;
        while begun.elapsed() < self.time {
            // A write that waits is given up in time to look at the clock.
            let _ = timeout(Duration::from_millis(50), send.write(&zeros)).await;
            if counted_from.is_none() && begun.elapsed() >= self.time.mul_f64(GROWTH) {
                counted_from = Some((Instant::now(), connection.stats().await.acked));
            }
        }
        let (at, before) = counted_from.unwrap_or((begun, Amount::ZERO));
        let acked = connection.stats().await.acked.get().saturating_sub(before.get());
        let elapsed = at.elapsed();
        send.reset(0);
        Ok(rate(acked, elapsed))
    }
}

async fn open(
    connection: &Connection,
    direction: Direction,
) -> Result<(fairpath::SendStream, fairpath::RecvStream), Refusal> {
    let target = Target::from(SocketAddr::from(([0, 0, 0, 0], 0)));
    let mut stream = super::link::Link::open_on(connection, Purpose::Measure, &target, Some(direction as u32)).await?;
    wire::read_answer(&mut stream.1).await?;
    Ok(stream)
}

fn rate(bytes: u64, time: Duration) -> Bitrate {
    Bitrate::from_bps((bytes as f64 * 8.0 / time.as_secs_f64().max(0.001)) as u64)
}

impl Finding {
    /// Whether something on the way translates addresses; `None` where that is not known.
    pub fn is_translated(&self) -> Option<bool> {
        Some(self.local? != self.seen?.ip().to_canonical())
    }
}
