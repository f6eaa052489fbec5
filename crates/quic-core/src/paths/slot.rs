//! One interface pair, over all the times its path is opened and closed.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use fairpath_engine::{Bitrate, Bytes, PathId as EnginePath, PathSnapshot};
use noq_proto::{PathId, PathStats};

use super::meter::Meter;
use super::report::{PathReport, PathState};
use crate::pairs::Pair;

/// The first wait before a path is opened again; it doubles up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(250);

/// The longest wait before a path is opened again.
const BACKOFF_MAX: Duration = Duration::from_secs(8);

/// A path that stayed open this long has earned a short wait next time.
const STABLE: Duration = Duration::from_secs(5);

/// A path on which data is refused is tried again at each look. So refusals that are further apart have
/// nothing to do with each other.
const REFUSALS_APART: Duration = Duration::from_millis(500);

/// A path on which nothing came in for this long is deaf, where data is flowing: three signs of life
/// are missing, and a queue may have grown by 100 ms meanwhile.
pub(super) const DEAF: Duration = Duration::from_millis(600);

/// How long until the peer's connection ids for another path can be there.
const SOON: Duration = Duration::from_millis(50);

#[derive(Debug)]
enum Life {
    /// Not open; to be opened at a time, if the interface is there.
    Waiting { since: Instant, until: Instant },
    /// Opened, not validated yet.
    Opening { path: PathId },
    /// Carrying data.
    Open { path: PathId, since: Instant },
}

/// One interface pair.
#[derive(Debug)]
pub(crate) struct Slot {
    interface: String,
    local: IpAddr,
    remote: SocketAddr,
    life: Life,
    /// The engine's name of the open path.
    engine_path: Option<EnginePath>,
    /// When the stack began to keep data off the path, and when it last did so: it leads to another address of
    /// the peer, which is not validated yet.
    refused: Option<(Instant, Instant)>,
    /// A second path on the same pair, to take the place of one that may never work again.
    pub(super) spare: Option<PathId>,
    present: bool,
    /// Whether a path on this pair is to be opened.
    pub(super) is_wanted: bool,
    /// Whether the application has closed the pair for good.
    pub(super) is_shut: bool,
    /// Whether the application wants data off the path.
    pub(super) is_kept_back: bool,
    /// Whether the peer does.
    pub(super) is_declined: bool,
    /// Since when there has been no path.
    without_since: Instant,
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
    /// When the newest packet came in on the path, and how many had by then.
    heard_at: Instant,
    heard: u64,
    /// How many we had sent by then.
    said: u64,
    /// When we last sent something on it that the peer has to answer, and what the engine had counted by
    /// then. Acknowledgements alone tell nobody whether the path works.
    asked_at: Instant,
    asked: Bytes,
    health: Health,
    /// Since when the path has not been healthy.
    sick_since: Option<Instant>,
    /// Whether noq has been told to use another path if it can.
    pub(super) is_backup: bool,
}

/// How well a path seems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It works.
    Healthy,
    /// Nothing comes in on it, though the peer asks for signs of life as we do. What is sent on it is still
    /// acknowledged, by way of another path.
    Deaf,
    /// Nothing comes in on it, and nobody knows whether anything arrives.
    Silent,
    /// Something comes in on it, but what is sent on it is not acknowledged. Acknowledgements may travel
    /// on another path, so the fault may be there.
    Unacknowledged,
    /// Nothing comes in on it, and what is sent on it is not acknowledged.
    Dead,
}

impl Health {
    /// What speaks against sending on the path, the least first. That nothing comes in is no reason where
    /// what is sent arrives: each end chooses where it sends, and each direction may have a path of its own.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Healthy | Self::Deaf => 0,
            Self::Silent => 1,
            Self::Unacknowledged => 2,
            Self::Dead => 3,
        }
    }
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
    fn new(interface: String, local: IpAddr, remote: SocketAddr, now: Instant) -> Self {
        Self {
            interface,
            local,
            remote,
            life: Life::Waiting { since: now, until: now },
            engine_path: None,
            refused: None,
            spare: None,
            present: true,
            is_wanted: true,
            is_shut: false,
            is_kept_back: false,
            is_declined: false,
            without_since: now,
            backoff: BACKOFF,
            opened: 0,
            draining: None,
            before: Totals::default(),
            current: Totals::default(),
            sending: Meter::default(),
            receiving: Meter::default(),
            snapshot: None,
            heard_at: now,
            heard: 0,
            said: 0,
            asked_at: now,
            asked: Bytes::ZERO,
            health: Health::Healthy,
            sick_since: None,
            is_backup: false,
        }
    }

    /// A pair that this end opens.
    pub(super) fn of_pair(pair: &Pair, now: Instant) -> Self {
        Self::new(pair.local.name.clone(), pair.local.address, pair.remote, now)
    }

    /// A pair that the peer opened.
    pub(super) fn accepted(interface: String, local: IpAddr, remote: SocketAddr, now: Instant) -> Self {
        Self::new(interface, local, remote, now)
    }

    pub(super) fn same_pair(&self, other: &Self) -> bool {
        self.local == other.local && self.remote.ip() == other.remote.ip()
    }

    /// Whether it begins and ends there.
    pub(super) fn is_pair(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.local == local && self.remote == remote
    }

    /// For how long the interface has been there without a path on this pair; `None` where there is one.
    pub(super) fn waits_for(&self, now: Instant) -> Option<Duration> {
        (self.present && !self.is_shut && !self.is_open()).then(|| now.saturating_duration_since(self.without_since))
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
        match self.life {
            Life::Waiting { .. } => None,
            Life::Opening { path, .. } | Life::Open { path, .. } => Some(path),
        }
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
        self.engine_path = path;
        self.remote = remote.unwrap_or(self.remote);
    }

    /// The stack keeps data off the path.
    pub(super) fn on_refused(&mut self, now: Instant) {
        let since = self.refused.filter(|(_, last)| *last + REFUSALS_APART > now).map_or(now, |(since, _)| since);
        self.refused = Some((since, now));
    }

    /// For how long the stack has kept data off the path, whenever there was some.
    pub(super) fn refused_for(&self, now: Instant) -> Duration {
        let going_on = self.refused.filter(|(_, last)| *last + REFUSALS_APART > now);
        going_on.map_or(Duration::ZERO, |(since, last)| last.saturating_duration_since(since))
    }

    /// How many datagrams the open path has carried both ways.
    pub(super) fn datagrams(&self) -> u64 {
        self.heard + self.said
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.life, Life::Open { .. })
    }

    /// How well the path seems.
    pub(crate) fn health(&self) -> Health {
        self.health
    }

    /// Whether the path is open and well.
    pub(super) fn answers(&self) -> bool {
        self.is_open() && self.health == Health::Healthy
    }

    pub(crate) fn was_ever_opened(&self) -> bool {
        self.opened > 0
    }

    /// Whether it is time to open the path. Where no path answers, waiting long helps nobody.
    pub(super) fn due(&self, now: Instant, any_answers: bool) -> bool {
        match self.life {
            Life::Waiting { until, since } => {
                let until = if any_answers { until } else { until.min(since + 2 * BACKOFF) };
                self.is_wanted && !self.is_shut && self.present && now >= until
            }
            Life::Opening { .. } | Life::Open { .. } => false,
        }
    }

    /// The path was opened; the one of the handshake is validated already.
    pub(super) fn opened(&mut self, path: PathId, now: Instant) {
        let first_of_connection = path == PathId::ZERO;
        self.life = match first_of_connection {
            true => Life::Open { path, since: now },
            false => Life::Opening { path },
        };
        if first_of_connection {
            self.opened = 1;
        }
        self.engine_path = None;
        self.refused = None;
        (self.heard_at, self.heard) = (now, 0);
        self.said = 0;
        (self.asked_at, self.asked) = (now, Bytes::ZERO);
        self.health = Health::Healthy;
        self.sick_since = None;
        self.is_backup = false;
        self.is_declined = false;
    }

    /// The path is validated. True where it is not the first time.
    pub(super) fn established(&mut self, now: Instant) -> bool {
        if let Life::Opening { path, .. } | Life::Open { path, .. } = self.life {
            self.life = Life::Open { path, since: now };
            self.opened += 1;
            self.heard_at = now;
            self.health = Health::Healthy;
            self.sick_since = None;
        }
        self.opened > 1
    }

    /// Another path of the pair, which is validated, takes the place of the path.
    pub(super) fn succeed(&mut self, path: PathId, now: Instant) {
        self.draining = self.id();
        self.before = self.before.plus(std::mem::take(&mut self.current));
        self.sending.reset();
        self.receiving.reset();
        self.opened(path, now);
        self.life = Life::Open { path, since: now };
    }

    /// It could not be opened now.
    pub(super) fn not_opened(&mut self, now: Instant, soon: bool) {
        let wait = if soon { SOON } else { self.next_backoff() };
        self.life = Life::Waiting { since: now, until: now + wait };
    }

    /// The path is closed.
    pub(super) fn closed(&mut self, now: Instant) {
        self.draining = self.id();
        if let Life::Open { since, .. } = self.life {
            self.without_since = now;
            if now.saturating_duration_since(since) > STABLE {
                self.backoff = BACKOFF;
            }
        }
        self.before = self.before.plus(std::mem::take(&mut self.current));
        self.sending.reset();
        self.receiving.reset();
        self.snapshot = None;
        self.health = Health::Healthy;
        self.sick_since = None;
        self.life = Life::Waiting { since: now, until: now + self.next_backoff() };
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
        if present && !self.present && matches!(self.life, Life::Waiting { .. }) {
            self.backoff = BACKOFF;
            self.life = Life::Waiting { since: now, until: now };
        }
        if present && !self.present {
            self.without_since = now;
        }
        self.present = present;
    }

    /// Takes the newest counters, the engine's view, and when the peer said last that more had come to it. A
    /// path is deaf after `deaf_after` without an incoming packet.
    pub(super) fn measure(
        &mut self,
        stats: Option<&PathStats>,
        snapshot: Option<PathSnapshot>,
        arrived_at: Option<Instant>,
        deaf_after: Duration,
        now: Instant,
    ) {
        if let Some(stats) = stats {
            self.current.received = Bytes::new(stats.udp_rx.bytes);
            if stats.udp_rx.datagrams != self.heard {
                (self.heard_at, self.heard) = (now, stats.udp_rx.datagrams);
            }
            self.said = stats.udp_tx.datagrams;
        }
        if let Some(snapshot) = snapshot {
            self.current.acked = snapshot.delivered;
            self.current.lost = snapshot.lost;
            let asked = snapshot.delivered + snapshot.lost + snapshot.in_flight;
            if asked != self.asked {
                (self.asked_at, self.asked) = (now, asked);
            }
        }
        self.snapshot = snapshot;
        let deaf = self.unheard_for(now) > deaf_after;
        // A receipt says so even where acknowledgements take a way that is cut.
        let is_receipted = |since: Instant| arrived_at.is_some_and(|at| at > since);
        let recently = now.checked_sub(DEAF).unwrap_or(now);
        let unacknowledged = snapshot.is_some_and(|path| path.suspected) && !is_receipted(recently);
        let since = self.heard_at + deaf_after / 4;
        let arrives = self.is_proven_since(since, now) || is_receipted(since.max(recently));
        self.health = match (self.is_open(), unacknowledged, deaf) {
            (false, _, _) | (true, false, false) => Health::Healthy,
            (true, false, true) if arrives => Health::Deaf,
            (true, false, true) => Health::Silent,
            (true, true, false) => Health::Unacknowledged,
            (true, true, true) => Health::Dead,
        };
        self.sick_since = match self.health {
            Health::Healthy => None,
            _ => self.sick_since.or(Some(now)),
        };
        self.sending.update(now, self.current.acked);
        self.receiving.update(now, self.current.received);
    }

    /// Whether something that was sent on the path after `then` was acknowledged.
    fn is_proven_since(&self, then: Instant, now: Instant) -> bool {
        let age = self.snapshot.and_then(|path| path.proven);
        age.is_some_and(|age| age < now.saturating_duration_since(then))
    }

    /// Whether the path has been seen to work both ways when the other had been ill for `long`. An
    /// acknowledgement of something older proves nothing: it may have been under way, or have taken another
    /// way back; and a packet that came before may have waited in a host that stood still.
    pub(super) fn has_outlived(&self, other: &Self, long: Duration, now: Instant) -> bool {
        let ill = other.sick_since.map(|since| since + long);
        self.answers() && ill.is_some_and(|ill| self.heard_at > ill && self.is_proven_since(ill, now))
    }

    /// For how long nothing has come in on the path.
    pub(super) fn unheard_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.heard_at)
    }

    /// How long an answer takes on the open path, where that is known.
    pub(super) fn answer_takes(&self) -> Option<Duration> {
        self.snapshot.and_then(|path| path.rtt).map(|rtt| rtt.probe_timeout())
    }

    /// For how long the path has not been well.
    pub(super) fn sick_for(&self, now: Instant) -> Duration {
        self.sick_since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// For how long we have sent nothing on the path that the peer has to answer.
    pub(super) fn unasked_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.asked_at)
    }

    /// What became of the pair. How its socket is tied to the interface, the host knows.
    pub(crate) fn report(&self) -> PathReport {
        let totals = self.before.plus(self.current);
        let open = self.is_open();
        let opening = matches!(self.life, Life::Opening { .. });
        PathReport {
            interface: self.interface.clone(),
            local: Some(self.local),
            remote: self.remote,
            binding: None,
            state: PathState::of(open, opening, self.health != Health::Healthy),
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
