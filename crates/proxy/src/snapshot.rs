//! Both ends at one moment: what is carried, for whom, and over which paths.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use fairpath::{Bitrate, Connection, Path, PathState};
use serde::{Deserialize, Serialize};

use crate::relay::Meter;

/// The most connections that a snapshot names: those that began last.
const CONNECTIONS_MAX: usize = 1_000;

/// An end at one moment. The control socket gives it, `top` and metrics show it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The end.
    pub end: End,
    /// When this was so, in milliseconds since 1970.
    pub time_unix_ms: u64,
    /// At the near end the far end, at the far end each connection of a device.
    pub peers: Vec<Peer>,
    /// The interface or address whose paths go first, where a person has said so.
    pub preferred: Option<String>,
    /// The connections and associations of programs, those that began first before others; at most 1,000.
    pub connections: Vec<Carried>,
    /// How many there are.
    pub connections_open: u64,
    /// How many there were since this end began.
    pub connections_total: u64,
    /// The bytes that programs sent since this end began.
    pub up_bytes: u64,
    /// The bytes that came to programs.
    pub down_bytes: u64,
}

/// A kind of end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The far end.
    Serve,
    /// The near end.
    Proxy,
    /// A sender of files.
    Send,
    /// A receiver of files.
    Recv,
    /// An end of live flows.
    Stream,
}

/// A peer and the paths to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// The device's name at the far end.
    pub name: String,
    /// How the connection is doing, in words.
    pub state: String,
    /// The paths.
    pub paths: Vec<PathNow>,
}

/// A path at this moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathNow {
    /// Its name.
    pub name: String,
    /// The interface here.
    pub interface: String,
    /// The address here.
    pub local: Option<String>,
    /// The peer's address.
    pub remote: String,
    /// Whether it carries data.
    pub is_open: bool,
    /// How it is doing, in words.
    pub state: String,
    /// Why it carries no data, or only while no other path works; `None`: it carries data.
    pub reason: Option<String>,
    /// Whether either end keeps data off it while another path works, as it was begun or as a person has said since.
    pub is_backup: bool,
    /// Whether a person has said so here while it runs.
    pub is_parked: bool,
    /// The cost of using it, as the two ends say together.
    pub cost: u32,
    /// The most that may be sent on it in a second, as the two ends say together.
    pub cap_bps: Option<u64>,
    /// The smoothed round trip.
    pub rtt_ms: Option<f64>,
    /// How fast data leaves.
    pub send_rate_bps: u64,
    /// How fast data comes in.
    pub receive_rate_bps: u64,
    /// Data that was sent and acknowledged.
    pub acked_bytes: u64,
    /// Data that was sent and lost.
    pub lost_bytes: u64,
    /// Data that came.
    pub received_bytes: u64,
}

/// A connection or an association of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Carried {
    /// A number that no other of this end has.
    pub id: u64,
    /// At the far end the device's name, otherwise empty.
    pub device: String,
    /// Its target.
    pub target: String,
    /// How the program asked for it.
    pub kind: Kind,
    /// How long ago it began, in milliseconds.
    pub age_ms: u64,
    /// The bytes that the program sent.
    pub up_bytes: u64,
    /// The bytes that came to it.
    pub down_bytes: u64,
}

/// How a program asks to be carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// SOCKS5 or HTTP, or what came of it at the far end.
    Tcp,
    /// Packets.
    Udp,
    /// A port here that leads to one target.
    Forward,
    /// A port of the far end.
    Reverse,
    /// Not at all: rules of the system led it here.
    Transparent,
}

/// The connections of programs at this moment.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Pages>);

#[derive(Debug, Default)]
struct Pages {
    next: u64,
    open: BTreeMap<u64, Arc<Tally>>,
    /// The bytes of those that have ended.
    ended: (u64, u64),
}

/// The account of a connection.
#[derive(Debug)]
pub(crate) struct Tally {
    device: String,
    target: String,
    kind: Kind,
    begun_unix_ms: u64,
    up: AtomicU64,
    down: AtomicU64,
}

/// A connection that is open: it is taken out of the ledger when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    id: u64,
    tally: Arc<Tally>,
}

impl Ledger {
    /// Notes a connection of a device.
    pub(crate) fn enter(self: &Arc<Self>, device: &str, target: impl ToString, kind: Kind) -> Entry {
        let tally = Arc::new(Tally {
            device: device.to_owned(),
            target: target.to_string(),
            kind,
            begun_unix_ms: unix_ms(),
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
        });
        let mut pages = self.pages();
        let id = pages.next;
        pages.next += 1;
        pages.open.insert(id, tally.clone());
        Entry { ledger: self.clone(), id, tally }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot with these peers.
    pub(crate) fn snapshot(&self, end: End, peers: Vec<Peer>) -> Snapshot {
        let now = unix_ms();
        let pages = self.pages();
        let carried = |(id, tally): (&u64, &Arc<Tally>)| Carried {
            id: *id,
            device: tally.device.clone(),
            target: tally.target.clone(),
            kind: tally.kind,
            age_ms: now.saturating_sub(tally.begun_unix_ms),
            up_bytes: tally.up.load(Ordering::Relaxed),
            down_bytes: tally.down.load(Ordering::Relaxed),
        };
        let sum = |of: fn(&Tally) -> &AtomicU64| {
            pages.open.values().map(|tally| of(tally).load(Ordering::Relaxed)).sum::<u64>()
        };
        let mut connections: Vec<Carried> = pages.open.iter().rev().take(CONNECTIONS_MAX).map(carried).collect();
        connections.reverse();
        Snapshot {
            end,
            time_unix_ms: now,
            peers,
            preferred: None,
            connections,
            connections_open: pages.open.len() as u64,
            connections_total: pages.next,
            up_bytes: pages.ended.0 + sum(|tally| &tally.up),
            down_bytes: pages.ended.1 + sum(|tally| &tally.down),
        }
    }
}

impl Entry {
    /// Counts bytes in each direction, without a cap.
    pub(crate) fn count(&self, up: usize, down: usize) {
        self.tally.up.fetch_add(up as u64, Ordering::Relaxed);
        self.tally.down.fetch_add(down as u64, Ordering::Relaxed);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut pages = self.ledger.pages();
        pages.open.remove(&self.id);
        pages.ended.0 += self.tally.up.load(Ordering::Relaxed);
        pages.ended.1 += self.tally.down.load(Ordering::Relaxed);
    }
}

impl Meter for Entry {
    async fn up(&self, bytes: usize) {
        self.count(bytes, 0);
    }

    async fn down(&self, bytes: usize) {
        self.count(0, bytes);
    }
}

/// Both count.
impl<A: Meter + Sync, B: Meter + Sync> Meter for (&A, &B) {
    async fn up(&self, bytes: usize) {
        self.0.up(bytes).await;
        self.1.up(bytes).await;
    }

    async fn down(&self, bytes: usize) {
        self.0.down(bytes).await;
        self.1.down(bytes).await;
    }
}

impl Peer {
    /// A peer with the paths of this connection.
    pub(crate) fn of(name: String, connection: &Connection) -> Self {
        let paths = connection.paths();
        let state = match () {
            () if connection.is_interrupted() => "interrupted: no path answers, connecting again",
            () if connection.close_reason().is_some() => "ended",
            () => "connected",
        };
        Self::with_paths(name, state, &paths)
    }

    /// One with these paths.
    pub fn with_paths(name: String, state: &str, paths: &[Path]) -> Self {
        let now = paths.iter().map(|path| PathNow::of(path, paths)).collect();
        Self { name, state: state.to_owned(), paths: now }
    }

    /// One that is not connected.
    pub(crate) fn without_paths(name: String, state: &str) -> Self {
        Self { name, state: state.to_owned(), paths: Vec::new() }
    }
}

impl Snapshot {
    /// One of an end that carries no programs' connections: what the paths have carried is all there is to count.
    pub fn of_paths(end: End, peers: Vec<Peer>) -> Self {
        let mut snapshot = Ledger::default().snapshot(end, peers);
        let paths = || snapshot.peers.iter().flat_map(|peer| &peer.paths);
        let (up, down) = (paths().map(|path| path.acked_bytes).sum(), paths().map(|path| path.received_bytes).sum());
        (snapshot.up_bytes, snapshot.down_bytes) = (up, down);
        snapshot
    }
}

impl PathNow {
    /// Whether it begins at this interface or address.
    pub fn begins_at(&self, of: &str) -> bool {
        self.interface == of || self.local.as_deref() == Some(of)
    }

    fn of(path: &Path, all: &[Path]) -> Self {
        Self {
            name: path.name.clone(),
            interface: path.interface.clone(),
            local: path.local.map(|local| local.to_string()),
            remote: path.remote.to_string(),
            is_open: path.state == PathState::Open,
            state: words(path, all),
            reason: path.reason.clone(),
            is_backup: path.terms.is_backup(),
            is_parked: false,
            cost: path.terms.cost_set(),
            cap_bps: path.terms.cap_set().map(Bitrate::as_bps),
            rtt_ms: path.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
            send_rate_bps: path.send_rate.as_bps(),
            receive_rate_bps: path.receive_rate.as_bps(),
            acked_bytes: path.acked.get(),
            lost_bytes: path.lost.get(),
            received_bytes: path.received.get(),
        }
    }
}

/// How a path is doing.
fn words(path: &Path, all: &[Path]) -> String {
    let others = all
        .iter()
        .filter(|other| other.name != path.name && other.state == PathState::Open && other.group == path.group);
    let coupled: Vec<&str> = others.filter(|_| path.group.is_some()).map(|other| other.name.as_str()).collect();
    path_words(path.state, path.reason.as_deref(), &coupled)
}

/// How a path in this state is doing. Data is kept off it for a `reason`, and it shares its bottleneck with those that are
/// `coupled`.
pub(crate) fn path_words(state: PathState, reason: Option<&str>, coupled: &[&str]) -> String {
    match (state, reason) {
        (PathState::Opening, _) => "being opened: no answer yet".to_owned(),
        (PathState::Suspected, _) => "silent: nothing new is sent on it while another works".to_owned(),
        (PathState::Closed, Some(reason)) => format!("closed: {reason}"),
        (PathState::Closed, None) => "closed: its connection is gone".to_owned(),
        (_, Some(reason)) => format!("a backup: {reason}"),
        _ if coupled.is_empty() => "open".to_owned(),
        _ => format!("open, together as one with {}", coupled.join(" and ")),
    }
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_millis().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_stays_in_the_sums_and_the_newest_are_named() {
        let ledger = Arc::new(Ledger::default());
        let first = ledger.enter("van", "example.com:80", Kind::Tcp);
        first.count(3, 4);
        drop(first);
        let entries: Vec<Entry> = (0..=CONNECTIONS_MAX).map(|_| ledger.enter("van", "a:1", Kind::Udp)).collect();
        entries[1].count(10, 20);
        let snapshot = ledger.snapshot(End::Serve, Vec::new());
        assert_eq!((snapshot.up_bytes, snapshot.down_bytes), (13, 24));
        assert_eq!((snapshot.connections_open, snapshot.connections_total), (1_001, 1_002));
        assert_eq!((snapshot.connections.len(), snapshot.connections[0].id), (CONNECTIONS_MAX, 2));
        assert_eq!((snapshot.connections[0].up_bytes, snapshot.connections[0].down_bytes), (10, 20));
        let line = serde_json::to_string(&snapshot).unwrap();
        let read: Snapshot = serde_json::from_str(&line).unwrap();
        assert_eq!(read.connections.len(), snapshot.connections.len());
    }
}
