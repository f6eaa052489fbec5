//! Opens a path per interface pair, watches them, closes the dead, and opens them again.
//!
//! Only the end that connected opens and closes paths; the other end watches. Both tell the engine
//! which paths can carry data, and nobody closes a path while no other works.
//!
//! # What tells that a path is dead
//!
//! That its packets are not acknowledged is not enough: noq sends the acknowledgements of all paths
//! on the available path of the lowest id, so when that one dies, every path falls silent at both
//! ends, and each waits for the other. What comes *in* on a path is free of that. While data flows
//! both ends therefore say something on every path, [`PROBE`] apart, and a path on which nothing comes
//! in for [`DEAF`] is deaf. A path that is worse than another gets the status of a backup, which takes
//! acknowledgements and data off it at once; the end that opened it closes it after [`DEAD_AFTER`].

mod meter;
mod notice;
mod slot;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairpath_engine::{Engine, PathId as EnginePath};
use noq::{PathError, PathEvent, PathId, PathStatus};
use tokio::sync::broadcast;

use crate::adapter::{ConnectionEngine, PathHandle};
use crate::connection::{PathReport, PathState};
use crate::endpoint::{bind_late, is_bound};
use crate::interfaces;
use crate::pairs::{Pair, pairs};
use crate::socket::{Sockets, mapped, unmapped};
use crate::transport::PATHS_MAX;

pub use notice::PathNotice;
use slot::{Health, Slot};

/// How often the paths are looked at.
const TICK: Duration = Duration::from_millis(50);

/// How often the interfaces are looked at.
const INTERFACES: Duration = Duration::from_millis(500);

/// A path is closed after it has been sick for this long, while another is better. Only then does noq
/// send again, elsewhere, what the path held; lanes wait for that.
const DEAD_AFTER: Duration = Duration::from_millis(600);

/// A path on which nothing came in for this long is deaf, where data is flowing: three signs of life
/// are missing, and a queue may have grown by 100 ms meanwhile.
const DEAF: Duration = Duration::from_millis(600);

/// The same where hardly anything flows: only QUIC's keep-alive, once a second, is to be heard then.
const DEAF_WHEN_IDLE: Duration = Duration::from_millis(3500);

/// Data is flowing where the connection moves this many datagrams in a second.
const BUSY_DATAGRAMS: u64 = 40;

/// And it is still meant to flow for this long after: a dead path may have stopped it.
const BUSY_FOR: Duration = Duration::from_secs(10);

/// How often something is said on a path at least.
const PROBE: Duration = Duration::from_millis(150);

/// What this end does about paths.
#[derive(Debug)]
pub(crate) enum Role {
    /// It opens and closes them.
    Opener {
        /// The pairs to open.
        pairs: Vec<Pair>,
        /// The pair the connection was made on.
        first: Pair,
        /// The interfaces asked for.
        via: Vec<String>,
        /// The peer's addresses.
        remotes: Vec<SocketAddr>,
    },
    /// It takes what the peer opens.
    Acceptor,
}

/// Starts watching. The task ends with the connection.
pub(crate) fn spawn(
    quic: &noq::Connection,
    engine: &ConnectionEngine,
    sockets: Sockets,
    role: Role,
    reports: Arc<Mutex<Vec<PathReport>>>,
    notices: broadcast::Sender<PathNotice>,
) -> tokio::task::JoinHandle<()> {
    let events = quic.path_events();
    let mut manager = Manager {
        quic: quic.weak_handle(),
        engine: engine.clone(),
        sockets,
        role,
        slots: Vec::new(),
        reports,
        notices,
        interfaces_at: Instant::now(),
        traffic: Traffic::default(),
    };
    manager.adopt_first(quic);
    tokio::spawn(manager.run(quic.on_closed(), events))
}

struct Manager {
    /// Weak: watching a connection must not keep it open.
    quic: noq::WeakConnectionHandle,
    engine: ConnectionEngine,
    sockets: Sockets,
    role: Role,
    slots: Vec<Slot>,
    reports: Arc<Mutex<Vec<PathReport>>>,
    notices: broadcast::Sender<PathNotice>,
    interfaces_at: Instant,
    traffic: Traffic,
}

/// Whether data is flowing.
#[derive(Debug, Default)]
struct Traffic {
    /// When the datagrams were counted last, and how many there had been.
    counted: Option<(Instant, u64)>,
    busy_until: Option<Instant>,
}

impl Traffic {
    /// `datagrams` went over the open paths so far.
    fn update(&mut self, datagrams: u64, now: Instant) {
        let (at, before) = *self.counted.get_or_insert((now, datagrams));
        if now.saturating_duration_since(at) >= Duration::from_secs(1) {
            self.counted = Some((now, datagrams));
        }
        if datagrams.saturating_sub(before) >= BUSY_DATAGRAMS {
            self.busy_until = Some(now + BUSY_FOR);
        }
    }

    fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.is_some_and(|until| now < until)
    }
}

impl Manager {
    async fn run(mut self, closed: noq::OnClosed, mut events: noq::PathEvents) {
        use futures_util::StreamExt as _;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(closed);
        loop {
            tokio::select! {
                _ = &mut closed => break,
                event = events.next() => match event {
                    Some(Ok(event)) => self.on_event(event),
                    Some(Err(lagged)) => tracing::warn!(%lagged, "path events were missed"),
                    None => break,
                },
                _ = tick.tick() => {}
            }
            let Some(quic) = self.quic.upgrade() else { break };
            self.look(&quic, Instant::now());
        }
    }

    /// The path that the handshake ran on. noq reports no event for it.
    fn adopt_first(&mut self, quic: &noq::Connection) {
        let slot = match &self.role {
            Role::Opener { pairs, first, .. } => {
                self.slots.extend(pairs.iter().filter(|pair| *pair != first).map(Slot::of_pair));
                Some(Slot::of_pair(first))
            }
            Role::Acceptor => self.accepted_slot(quic, PathId::ZERO),
        };
        if let Some(mut slot) = slot {
            slot.opened(quic.path(PathId::ZERO), Instant::now());
            self.slots.insert(0, slot);
        }
        self.publish();
    }

    /// A slot for a path that the peer opened.
    fn accepted_slot(&self, quic: &noq::Connection, id: PathId) -> Option<Slot> {
        let path = quic.path(id)?;
        let remote = unmapped(path.remote_address().ok()?);
        let local = path.local_ip().ok().flatten().map(|ip| ip.to_canonical());
        let socket = local.and_then(|local| self.sockets.of(local)).or_else(|| self.sockets.primary())?;
        Some(Slot::accepted(socket.interface.clone(), socket.local.ip(), remote))
    }

    fn on_event(&mut self, event: PathEvent) {
        let Some(quic) = self.quic.upgrade() else { return };
        match event {
            PathEvent::Established { id, .. } => self.on_established(&quic, id),
            PathEvent::Abandoned { id, .. } => {
                self.tell_engine(&quic, id, |engine, path| engine.set_usable(path, false));
                self.on_abandoned(id);
            }
            PathEvent::Discarded { id, path_stats, .. } => {
                if let Some(slot) = self.slots.iter_mut().find(|slot| slot.draining == Some(id)) {
                    slot.discarded(&path_stats);
                }
            }
            PathEvent::RemoteStatus { .. } | PathEvent::ObservedAddr { .. } => {}
            _ => {}
        }
    }

    fn on_established(&mut self, quic: &noq::Connection, id: PathId) {
        self.tell_engine(quic, id, |engine, path| engine.set_usable(path, true));
        if !self.slots.iter().any(|slot| slot.id() == Some(id)) {
            if matches!(self.role, Role::Opener { .. }) {
                return;
            }
            // The peer opens a pair again, or a new one.
            let Some(slot) = self.accepted_slot(quic, id) else { return };
            match self.slots.iter_mut().find(|known| known.same_pair(&slot) && known.id().is_none()) {
                Some(known) => known.opened(quic.path(id), Instant::now()),
                None => {
                    let mut slot = slot;
                    slot.opened(quic.path(id), Instant::now());
                    self.slots.push(slot);
                }
            }
        }
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id() == Some(id)) {
            let again = slot.established(Instant::now());
            let notice = match again {
                true => PathNotice::reopened(slot),
                false => PathNotice::opened(slot),
            };
            self.notify(notice);
        }
    }

    fn on_abandoned(&mut self, id: PathId) {
        if let Some(at) = self.slots.iter().position(|slot| slot.id() == Some(id)) {
            let was_open = self.slots[at].is_open();
            self.slots[at].closed(Instant::now());
            if was_open {
                let notice = PathNotice::closed(&self.slots[at], "the peer closed it", &self.carriers(at));
                self.notify(notice);
            }
        }
    }

    /// Tells the engine something about a noq path.
    fn tell_engine(&self, quic: &noq::Connection, id: PathId, what: impl FnOnce(&mut Engine, EnginePath)) {
        // The connection is asked first and the engine after: never both locks at once.
        if let Some(path) = quic.congestion_state(id).and_then(PathHandle::of) {
            self.engine.with(Instant::now(), |engine, _| what(engine, path));
        }
    }

    /// One look at everything.
    fn look(&mut self, quic: &noq::Connection, now: Instant) {
        self.measure(quic, now);
        self.nurse(quic, now);
        if matches!(self.role, Role::Opener { .. }) {
            if now >= self.interfaces_at {
                self.interfaces_at = now + INTERFACES;
                self.look_at_interfaces(quic, now);
            }
            self.open_due(quic, now);
        }
        self.publish();
    }

    /// Takes the state of every path from the engine and its counters from noq.
    fn measure(&mut self, quic: &noq::Connection, now: Instant) {
        let deaf_after = if self.traffic.is_busy(now) { DEAF } else { DEAF_WHEN_IDLE };
        let mut datagrams = 0;
        for slot in &mut self.slots {
            let Some(id) = slot.id() else { continue };
            // Under load the connection is hardly ever free: it is asked once.
            let stats = quic.path_stats(id);
            let path = slot.engine_path(|| quic.congestion_state(id).and_then(PathHandle::of));
            let snapshot = path.and_then(|path| self.engine.with(now, |engine, at| engine.snapshot(path, at)));
            slot.measure(stats.as_ref(), snapshot, deaf_after, now);
            datagrams += slot.datagrams();
        }
        self.traffic.update(datagrams, now);
    }

    /// Asks unheard paths for a sign of life, takes the traffic off sick ones, and closes the dead.
    fn nurse(&mut self, quic: &noq::Connection, now: Instant) {
        let best = self.slots.iter().filter(|slot| slot.is_open()).map(Slot::health).min();
        for at in 0..self.slots.len() {
            if !self.slots[at].is_open() {
                continue;
            }
            let sick_for = self.slots[at].sick_for(now);
            let opener = matches!(self.role, Role::Opener { .. });
            let worse = best.is_some_and(|best| self.slots[at].health() > best);
            if opener && sick_for > DEAD_AFTER && worse {
                let reason = match self.slots[at].health() {
                    Health::Deaf => format!("no answer for {:.1} s", self.slots[at].unheard_for(now).as_secs_f64()),
                    _ => format!("nothing acknowledged for {:.1} s", sick_for.as_secs_f64()),
                };
                self.close(quic, at, &reason, now);
                continue;
            }
            let slot = &mut self.slots[at];
            let Some(path) = slot.path().cloned() else { continue };
            // Both calls fail only for a path that is closed already; its event is on the way.
            if slot.unsaid_for(now) > PROBE && (self.traffic.is_busy(now) || slot.health() != Health::Healthy) {
                let _ = path.ping();
                if let Some(path) = slot.engine_path(|| None) {
                    self.engine.give_turn(path);
                }
            }
            if worse != slot.is_backup {
                slot.is_backup = worse;
                let _ = path.set_status(if worse { PathStatus::Backup } else { PathStatus::Available });
                self.tell_engine(quic, path.id(), |engine, path| engine.set_backup(path, worse));
            }
        }
    }

    /// The open paths, other than slot `at`, that answer: what takes over from it.
    fn carriers(&self, at: usize) -> Vec<String> {
        let others = self.slots.iter().enumerate().filter(|(other, slot)| *other != at && slot.answers());
        others.map(|(_, slot)| slot.name().to_owned()).collect()
    }

    fn close(&mut self, quic: &noq::Connection, at: usize, reason: &str, now: Instant) {
        let Some(path) = self.slots[at].path() else { return };
        let id = path.id();
        if path.close().is_err() {
            // The last path stays: without it there would be no connection.
            return;
        }
        self.tell_engine(quic, id, |engine, path| engine.set_usable(path, false));
        let was_open = self.slots[at].is_open();
        self.slots[at].closed(now);
        if was_open {
            let notice = PathNotice::closed(&self.slots[at], reason, &self.carriers(at));
            self.notify(notice);
        }
    }

    /// Closes the paths of interfaces that are gone, and adds those that are new.
    fn look_at_interfaces(&mut self, quic: &noq::Connection, now: Instant) {
        let Role::Opener { via, remotes, .. } = &self.role else { return };
        let Ok(found) = interfaces::usable(via) else { return };
        let (via, remotes) = (via.clone(), remotes.clone());
        for at in 0..self.slots.len() {
            let present = found.iter().any(|one| one.address == self.slots[at].local());
            let another = self.slots.iter().enumerate().any(|(other, slot)| other != at && slot.is_open());
            if !present && self.slots[at].is_open() && another {
                let why = interfaces::Lost::look(self.slots[at].name(), self.slots[at].local(), &via);
                self.close(quic, at, &why.to_string(), now);
            }
            if !present {
                // A device that comes back may be another one of the same name.
                self.sockets.remove(self.slots[at].local());
            }
            self.slots[at].set_present(present, now);
        }
        for interface in &found {
            if !is_bound(interface.address, &self.sockets)
                && let Err(error) = bind_late(interface, &self.sockets)
            {
                tracing::debug!(interface = %interface.name, %error, "not bound yet");
            }
        }
        for pair in pairs(&found, &remotes, PATHS_MAX as usize) {
            let known = self.slots.iter().any(|slot| slot.local() == pair.local.address);
            if !known && self.slots.len() < PATHS_MAX as usize {
                self.slots.push(Slot::of_pair(&pair));
            }
        }
    }

    /// Opens what is due. A path that is being opened is never given up: noq asks for its validation
    /// again and again, at most two seconds apart, and a path that was closed before the peer ever saw
    /// it would use up one of the path ids the peer allows, for good.
    fn open_due(&mut self, quic: &noq::Connection, now: Instant) {
        let any_answers = self.slots.iter().any(Slot::answers);
        for at in 0..self.slots.len() {
            if !self.slots[at].due(now, any_answers) || self.sockets.of(self.slots[at].local()).is_none() {
                continue;
            }
            let four_tuple = noq::FourTuple::new(mapped(self.slots[at].remote()), Some(self.slots[at].local()));
            let opening = quic.open_path(four_tuple, PathStatus::Available);
            match opening.path_id().and_then(|id| quic.path(id)) {
                Some(path) => self.slots[at].opened(Some(path), now),
                None => {
                    // Right after the handshake, and while closed paths drain, the peer's connection
                    // ids for the next path are still on their way.
                    let soon = matches!(
                        futures_util::FutureExt::now_or_never(opening),
                        Some(Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached))
                    );
                    self.slots[at].not_opened(now, soon);
                }
            }
        }
    }

    fn notify(&self, notice: PathNotice) {
        tracing::info!(%notice, "path");
        // Nobody has to listen.
        let _ = self.notices.send(notice);
    }

    fn publish(&self) {
        let reports = self.slots.iter().filter(|slot| slot.was_ever_opened()).map(|slot| slot.report(&self.sockets));
        let mut published = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        published.clear();
        published.extend(reports);
    }
}

/// The state a person is shown.
fn state(open: bool, opening: bool, suspected: bool) -> PathState {
    match (open, opening, suspected) {
        (true, _, true) => PathState::Suspected,
        (true, _, false) => PathState::Open,
        (false, true, _) => PathState::Opening,
        (false, false, _) => PathState::Closed,
    }
}
