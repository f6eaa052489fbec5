//! One interface pair, over all the times its path is opened and closed.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use fairpath_engine::{Bitrate, Bytes, PathSnapshot};
use noq::{Path, PathId, PathStats};

use super::meter::Meter;
use super::state;
use crate::connection::PathReport;
use crate::pairs::Pair;
use crate::socket::Sockets;

/// The first wait before a path is opened again; it doubles up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(250);

/// The longest wait before a path is opened again.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// A path that stayed open this long has earned a short wait next time.
const STABLE: Duration = Duration::from_secs(5);

/// How long until the peer's connection ids for another path can be there.
const SOON: Duration = Duration::from_millis(50);

#[derive(Debug)]
enum Life {
    /// Not open; to be opened at this time, if the interface is there.
    Waiting(Instant),
    /// Opened, not validated yet.
    Opening { path: Path, since: Instant },
    /// Carrying data.
    Open { path: Path, since: Instant },
}

/// One interface pair.
#[derive(Debug)]
pub(super) struct Slot {
    interface: String,
    local: IpAddr,
    remote: SocketAddr,
    life: Life,
    present: bool,
    backoff: Duration,
    opened: u32,
    /// The path that was closed last, until noq has forgotten it.
    pub(super) draining: Option<PathId>,
    /// Counters of the paths that are gone.
    before: Totals,
    current: Totals,
    sending: Meter,
    receiving: Meter,
    snapshot: Option<PathSnapshot>,
    silent_since: Option<Instant>,
    probed_at: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    acked: Bytes,
    lost: Bytes,
    received: Bytes,
}

impl Totals {
    fn plus(self, other: Self) -> Self {
        Self { acked: self.acked + other.acked, lost: self.lost + other.lost, received: self.received + other.received }
    }
}

impl Slot {
    fn new(interface: String, local: IpAddr, remote: SocketAddr) -> Self {
        Self {
            interface,
            local,
            remote,
            life: Life::Waiting(Instant::now()),
            present: true,
            backoff: BACKOFF,
            opened: 0,
            draining: None,
            before: Totals::default(),
            current: Totals::default(),
            sending: Meter::default(),
            receiving: Meter::default(),
            snapshot: None,
            silent_since: None,
            probed_at: None,
        }
    }

    /// A pair that this end opens.
    pub(super) fn of_pair(pair: &Pair) -> Self {
        Self::new(pair.local.name.clone(), pair.local.address, pair.remote)
    }

    /// A pair that the peer opened.
    pub(super) fn accepted(interface: String, local: IpAddr, remote: SocketAddr) -> Self {
        Self::new(interface, local, remote)
    }

    pub(super) fn same_pair(&self, other: &Self) -> bool {
        self.local == other.local && self.remote.ip() == other.remote.ip()
    }

    pub(super) fn name(&self) -> &str {
        &self.interface
    }

    pub(super) fn local(&self) -> IpAddr {
        self.local
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(super) fn path(&self) -> Option<&Path> {
        match &self.life {
            Life::Waiting(_) => None,
            Life::Opening { path, .. } | Life::Open { path, .. } => Some(path),
        }
    }

    pub(super) fn id(&self) -> Option<PathId> {
        self.path().map(Path::id)
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.life, Life::Open { .. })
    }

    /// Whether the path is open and not silent.
    pub(super) fn answers(&self) -> bool {
        self.is_open() && self.silent_since.is_none()
    }

    pub(super) fn was_ever_opened(&self) -> bool {
        self.opened > 0
    }

    pub(super) fn opening_for(&self, now: Instant) -> Option<Duration> {
        match self.life {
            Life::Opening { since, .. } => Some(now.saturating_duration_since(since)),
            _ => None,
        }
    }

    /// Whether it is time to open the path.
    pub(super) fn due(&self, now: Instant) -> bool {
        self.present && matches!(self.life, Life::Waiting(at) if now >= at)
    }

    /// The path was opened; the one of the handshake is validated already.
    pub(super) fn opened(&mut self, path: Option<Path>, now: Instant) {
        let Some(path) = path else { return };
        let first_of_connection = path.id() == PathId::ZERO;
        self.life = match first_of_connection {
            true => Life::Open { path, since: now },
            false => Life::Opening { path, since: now },
        };
        if first_of_connection {
            self.opened = 1;
        }
    }

    /// The path is validated. True where it is not the first time.
    pub(super) fn established(&mut self, now: Instant) -> bool {
        if let Life::Opening { path, .. } | Life::Open { path, .. } = &self.life {
            self.life = Life::Open { path: path.clone(), since: now };
            self.opened += 1;
        }
        self.opened > 1
    }

    /// It could not be opened now.
    pub(super) fn not_opened(&mut self, now: Instant, soon: bool) {
        let wait = if soon { SOON } else { self.next_backoff() };
        self.life = Life::Waiting(now + wait);
    }

    /// The path is closed.
    pub(super) fn closed(&mut self, now: Instant) {
        self.draining = self.id();
        if let Life::Open { since, .. } = self.life
            && now.saturating_duration_since(since) > STABLE
        {
            self.backoff = BACKOFF;
        }
        self.before = self.before.plus(std::mem::take(&mut self.current));
        self.sending.reset();
        self.receiving.reset();
        self.snapshot = None;
        self.silent_since = None;
        self.life = Life::Waiting(now + self.next_backoff());
    }

    fn next_backoff(&mut self) -> Duration {
        let wait = self.backoff;
        self.backoff = (2 * self.backoff).min(BACKOFF_MAX);
        wait
    }

    /// noq has forgotten the closed path and gives its last counters.
    pub(super) fn discarded(&mut self, stats: &PathStats) {
        self.draining = None;
        tracing::debug!(interface = %self.interface, lost = stats.lost_bytes, "path forgotten");
    }

    /// Whether the interface is there. One that comes back is tried at once.
    pub(super) fn set_present(&mut self, present: bool, now: Instant) {
        if present && !self.present && matches!(self.life, Life::Waiting(_)) {
            self.backoff = BACKOFF;
            self.life = Life::Waiting(now);
        }
        self.present = present;
    }

    /// Takes the newest counters and the engine's view.
    pub(super) fn measure(&mut self, stats: Option<&PathStats>, snapshot: Option<PathSnapshot>, now: Instant) {
        if let Some(stats) = stats {
            self.current.received = Bytes::new(stats.udp_rx.bytes);
        }
        if let Some(snapshot) = snapshot {
            self.current.acked = snapshot.delivered;
            self.current.lost = snapshot.lost;
            match snapshot.suspected {
                true => self.silent_since = self.silent_since.or(Some(now)),
                false => self.silent_since = None,
            }
        }
        self.snapshot = snapshot;
        self.sending.update(now, self.current.acked);
        self.receiving.update(now, self.current.received);
    }

    /// For how long the path has been suspected.
    pub(super) fn silent_for(&self, now: Instant) -> Option<Duration> {
        self.silent_since.map(|since| now.saturating_duration_since(since))
    }

    pub(super) fn smoothed_rtt(&self) -> Duration {
        self.snapshot.and_then(|path| path.rtt).map_or(Duration::ZERO, |rtt| rtt.smoothed)
    }

    /// Whether to ask for a sign of life now; notes that it was done.
    pub(super) fn probe_due(&mut self, now: Instant, every: Duration) -> bool {
        let due = self.probed_at.is_none_or(|at| now.saturating_duration_since(at) >= every);
        if due {
            self.probed_at = Some(now);
        }
        due
    }

    pub(super) fn report(&self, sockets: &Sockets) -> PathReport {
        let totals = self.before.plus(self.current);
        let open = self.is_open();
        let opening = matches!(self.life, Life::Opening { .. });
        PathReport {
            interface: self.interface.clone(),
            local: Some(self.local),
            remote: self.remote,
            binding: sockets.of(self.local).map(|socket| socket.binding),
            state: state(open, opening, self.silent_since.is_some()),
            opened: self.opened,
            acked: totals.acked,
            lost: totals.lost,
            received: totals.received,
            send_rate: if open { self.sending.rate() } else { Bitrate::ZERO },
            receive_rate: if open { self.receiving.rate() } else { Bitrate::ZERO },
            snapshot: self.snapshot,
        }
    }
}
