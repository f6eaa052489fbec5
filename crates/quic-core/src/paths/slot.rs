//! One interface pair, over all the times its path is opened and closed: where it begins and ends, what it has
//! carried, and how well it is.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use fairpath_engine::health::{PathHealth, Signs};
use fairpath_engine::{Bitrate, ByteCount, PathId as EnginePath, PathSnapshot, PathUse, Terms, Timestamp};
use noq_proto::{PathId, PathStats};

use super::meter::Meter;
use super::report::{PathReport, PathState};
use crate::pairs::Pair;

/// Limit on the numbers of former paths that are remembered, in case the peer still names them.
const NUMBERS_MAX: usize = 16;

/// One interface pair.
#[derive(Debug)]
pub(crate) struct Slot {
    interface: String,
    local: IpAddr,
    remote: SocketAddr,
    pub(super) health: PathHealth<PathId>,
    /// The engine's name of the open path.
    engine_path: Option<EnginePath>,
    /// Those that there were, the last of them.
    numbers: Vec<EnginePath>,
    /// The peer's terms of its paths.
    pub(super) peer_terms: Terms,
    /// A second path on the same pair, to take the place of one that may never work again.
    pub(super) spare: Option<PathId>,
    /// Whether a path on this pair is to be opened.
    pub(super) is_wanted: bool,
    /// The path that was closed last, until noq has forgotten it.
    pub(super) draining: Option<PathId>,
    /// Counters of the paths that are gone.
    before: Totals,
    current: Totals,
    sending: Meter,
    receiving: Meter,
    snapshot: Option<PathSnapshot>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    acked: ByteCount,
    lost: ByteCount,
    received: ByteCount,
}

impl Totals {
    fn plus(self, other: Self) -> Self {
        Self { acked: self.acked + other.acked, lost: self.lost + other.lost, received: self.received + other.received }
    }
}

/// An observation of the path of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen<'a> {
    pub(super) stats: Option<&'a PathStats>,
    pub(super) snapshot: Option<PathSnapshot>,
    /// When the peer said last that more had come to it.
    pub(super) arrived_at: Option<Timestamp>,
}

impl Slot {
    fn new(interface: String, local: IpAddr, remote: SocketAddr, health: PathHealth<PathId>) -> Self {
        Self {
            interface,
            local,
            remote,
            health,
            engine_path: None,
            numbers: Vec::new(),
            peer_terms: Terms::default(),
            spare: None,
            is_wanted: true,
            draining: None,
            before: Totals::default(),
            current: Totals::default(),
            sending: Meter::default(),
            receiving: Meter::default(),
            snapshot: None,
        }
    }

    /// A pair that this end opens.
    pub(super) fn of_pair(pair: &Pair, health: PathHealth<PathId>) -> Self {
        Self::new(pair.local.name.clone(), pair.local.local(), pair.remote, health)
    }

    /// A pair that the peer opened.
    pub(super) fn accepted(interface: String, local: IpAddr, remote: SocketAddr, health: PathHealth<PathId>) -> Self {
        Self::new(interface, local, remote, health)
    }

    pub(super) fn same_pair(&self, other: &Self) -> bool {
        self.local == other.local && self.remote.ip() == other.remote.ip()
    }

    /// Whether it begins and ends there.
    pub(super) fn is_pair(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.local == local && self.remote == remote
    }

    pub(crate) fn name(&self) -> &str {
        &self.interface
    }

    pub(crate) fn local(&self) -> IpAddr {
        self.local
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The path that is open, or being opened.
    pub(crate) fn id(&self) -> Option<PathId> {
        self.health.path()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.health.is_open()
    }

    /// Whether the path is open and well.
    pub(super) fn answers(&self) -> bool {
        self.health.answers()
    }

    pub(crate) fn was_ever_opened(&self) -> bool {
        self.health.opened() > 0
    }

    /// The engine's name of the path, if it is known.
    pub(super) fn engine_path(&self) -> Option<EnginePath> {
        self.engine_path
    }

    /// The engine's name of the path at present, and where the peer is. Where it is another than before,
    /// the path has moved: its counters begin anew.
    pub(super) fn set_engine_path(&mut self, path: Option<EnginePath>, remote: Option<SocketAddr>) {
        if self.engine_path.is_some() && self.engine_path != path {
            self.before.acked += std::mem::take(&mut self.current.acked);
            self.before.lost += std::mem::take(&mut self.current.lost);
            self.sending.reset();
        }
        if let Some(path) = path.filter(|_| path != self.engine_path) {
            self.numbers.retain(|number| *number != path);
            self.numbers.push(path);
            if self.numbers.len() > NUMBERS_MAX {
                self.numbers.remove(0);
            }
        }
        self.engine_path = path;
        self.remote = remote.unwrap_or(self.remote);
    }

    /// The path was opened; the one of the handshake is validated already.
    pub(super) fn opened(&mut self, path: PathId, now: Timestamp) {
        self.engine_path = None;
        match path == PathId::ZERO {
            true => self.health.on_first(path, now),
            false => self.health.on_opening(path, now),
        }
    }

    /// Another path of the pair, which is validated, takes the place of the path.
    pub(super) fn succeed(&mut self, path: PathId, now: Timestamp) {
        self.leave();
        self.engine_path = None;
        self.health.on_succeeded(path, now);
    }

    /// The path is closed.
    pub(super) fn closed(&mut self, now: Timestamp) {
        self.leave();
        self.snapshot = None;
        self.health.on_closed(now);
    }

    fn leave(&mut self) {
        self.draining = self.id();
        self.before = self.before.plus(std::mem::take(&mut self.current));
        self.sending.reset();
        self.receiving.reset();
    }

    /// noq has forgotten the closed path and gives its last counters.
    pub(super) fn discarded(&mut self, stats: &PathStats) {
        self.draining = None;
        tracing::debug!(interface = %self.interface, lost = stats.lost_bytes, "path forgotten");
    }

    /// Takes the newest counters, the engine's view, and what the peer said, which says something on the path that often.
    pub(super) fn measure(&mut self, seen: Seen<'_>, signs_every: Option<Duration>, now: Timestamp) {
        if let Some(stats) = seen.stats {
            self.current.received = ByteCount::new(stats.udp_rx.bytes);
        }
        if let Some(snapshot) = seen.snapshot {
            self.current.acked = snapshot.delivered;
            self.current.lost = snapshot.lost;
        }
        self.snapshot = seen.snapshot;
        let datagrams = seen.stats.map(|stats| (stats.udp_rx.datagrams, stats.udp_tx.datagrams));
        let signs = Signs { datagrams, snapshot: seen.snapshot, arrived_at: seen.arrived_at };
        self.health.measure(&signs, signs_every, now);
        self.sending.update(now, self.current.acked);
        self.receiving.update(now, self.current.received);
    }

    /// How long an answer takes on the open path, where that is known.
    pub(super) fn answer_takes(&self) -> Option<Duration> {
        self.snapshot.and_then(|path| path.rtt).map(|rtt| rtt.probe_timeout())
    }

    /// The rates of the open path: acknowledged data sent, and data received.
    pub(super) fn rates(&self) -> (Bitrate, Bitrate) {
        (self.sending.rate(), self.receiving.rate())
    }

    /// The bytes that the open path has carried, both ways.
    pub(super) fn carried(&self) -> ByteCount {
        self.current.acked + self.current.received
    }

    /// The report on the pair. The host adds how its socket is bound to the interface.
    pub(crate) fn report(&self) -> PathReport {
        let totals = self.before.plus(self.current);
        let open = self.is_open();
        // The engine knows what people at both ends have said.
        let said = self.snapshot.map(|snapshot| snapshot.path_use).filter(|said| matches!(said, PathUse::Backup(_)));
        let path_use = match self.health.path_use() {
            PathUse::Open => said.unwrap_or(PathUse::Open),
            by_health => by_health,
        };
        PathReport {
            interface: self.interface.clone(),
            local: Some(self.local),
            remote: self.remote,
            binding: None,
            state: PathState::of(self.health.path_use(), self.health.condition()),
            path_use,
            opened: self.health.opened(),
            acked: totals.acked,
            lost: totals.lost,
            received: totals.received,
            send_rate: if open { self.sending.rate() } else { Bitrate::ZERO },
            receive_rate: if open { self.receiving.rate() } else { Bitrate::ZERO },
            snapshot: self.snapshot,
            numbers: self.numbers.clone(),
        }
    }
}
