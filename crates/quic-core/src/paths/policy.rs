//! The policy keeps a slot for each pair of addresses and tells the engine's [`health`] what is seen of
//! the paths. It carries out the decisions of `health` through [`Paths`]. It finds out by itself which
//! paths to open.
//!
//! It has no clock and no sockets: it is told what time it is and what happened. So it runs alike on a connection in
//! real time and in virtual time.

mod accepted;
mod ports;
mod request;
mod ways;

use std::collections::BTreeSet;
use std::net::IpAddr;
use web_time::{Duration, Instant};

use fairpath_engine::health::{self, Action, HealthParameters, PathHealth, Traffic};
use fairpath_engine::{BackupReason, Bitrate, Engine, PathId as EnginePath, PathUse, ShutReason};
use noq_proto::{FourTuple, PathAbandonReason, PathError, PathEvent, PathId, PathStats, PathStatus};

use super::name::{Ends, names};
use super::notice::PathNotice;
use super::slot::{Seen, Slot};
use crate::adapter::ConnectionEngine;
use crate::address::{mapped, own_address, unmapped};
use crate::pairs::{Candidates, Pair};
use crate::tls::Application;
use crate::transport::PATH_KEEP_ALIVE;
use accepted::accepted_slot;
use ports::Ports;
use ways::Ways;

/// The code of a path that is closed for good: the end that opens paths does not open it again.
const FOR_GOOD: u32 = 0x1f1;

/// The use of a path that was closed.
const LOST: PathUse = PathUse::Shut(ShutReason::Lost);

/// The paths of a connection, as the policy acts on them.
pub(crate) trait Paths {
    /// The counters of a path; `None` for one that is gone.
    fn stats(&mut self, id: PathId) -> Option<PathStats>;
    /// All paths of the stack, those included that it is about to forget.
    fn ids(&mut self) -> Vec<PathId>;
    /// Where the path begins and ends at present.
    fn network_path(&mut self, id: PathId) -> Option<FourTuple>;
    /// The engine's name of the path at present.
    fn engine_path(&mut self, id: PathId) -> Option<EnginePath>;
    /// When it was last heard from the peer that more had come to it on the path; `None`: never.
    fn arrived_at(&self, id: PathId) -> Option<Instant>;
    /// Asks the peer for a sign of life on the path.
    fn ping(&mut self, id: PathId);
    /// Whether packets with deadlines are carried.
    fn has_flows(&self) -> bool;
    /// Sends again, elsewhere, what is in flight on the path.
    fn resend(&mut self, path: EnginePath);
    /// Whether data and acknowledgements leave on the path only where no other is available.
    fn set_backup(&mut self, id: PathId, backup: bool);
    /// Closes the path, and tells the peer this code. False where it is the last one, which stays: without it there
    /// would be no connection.
    fn close_with(&mut self, id: PathId, code: u32) -> bool;
    /// The same with a code that means nothing.
    fn close(&mut self, id: PathId) -> bool {
        self.close_with(id, 0)
    }
    /// Opens a path, as a backup or not.
    fn open(&mut self, network_path: FourTuple, backup: bool) -> Result<PathId, PathError>;
    /// The interface and the address here that carry what has this local address, or that carry what
    /// has none.
    fn interface(&self, local: Option<IpAddr>) -> Option<(String, IpAddr)>;
}

/// The role of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// It opens them.
    Opener,
    /// It takes what the peer opens.
    Acceptor,
}

/// The policy of one end of a connection.
pub(crate) struct Policy {
    engine: ConnectionEngine,
    side: Side,
    application: Application,
    health: HealthParameters,
    slots: Vec<Slot>,
    traffic: Traffic,
    notices: Vec<PathNotice>,
    ways: Ways,
    ports: Ports,
    /// How many paths the stack had when the engine's names for them were asked for last.
    built: u32,
    /// The paths that the stack had when it was asked last.
    known: BTreeSet<PathId>,
}

impl Policy {
    /// The policy of the end that connected on the pair `first` and is to open paths on others.
    pub(crate) fn opener(
        engine: ConnectionEngine,
        candidates: Candidates,
        first: &Pair,
        paths: &mut dyn Paths,
        now: Instant,
    ) -> Self {
        let mut policy = Self::new(engine, Side::Opener, candidates, now);
        let at = policy.engine.at(now);
        let mut slot = Slot::of_pair(first, PathHealth::new(&policy.health, at));
        slot.opened(PathId::ZERO, at);
        policy.slots.push(slot);
        policy.ways.succeeded(first.local.local(), first.remote);
        policy.look(paths, now);
        policy
    }

    /// The policy of the end that was connected to.
    pub(crate) fn acceptor(engine: ConnectionEngine, paths: &mut dyn Paths, now: Instant) -> Self {
        let mut policy = Self::new(engine, Side::Acceptor, Candidates::none(), now);
        let at = policy.engine.at(now);
        if let Some(mut slot) = accepted_slot(paths, PathId::ZERO, PathHealth::new(&policy.health, at)) {
            slot.opened(PathId::ZERO, at);
            policy.slots.push(slot);
        }
        policy.look(paths, now);
        policy
    }

    fn new(engine: ConnectionEngine, side: Side, candidates: Candidates, now: Instant) -> Self {
        let health = engine.with(now, |engine, _| *engine.health());
        let (traffic, ways) = (Traffic::new(&health), Ways::new(candidates));
        let application = Application::Fairpath;
        let (slots, notices, ports, known) = (Vec::new(), Vec::new(), Ports::default(), BTreeSet::from([PathId::ZERO]));
        Self { engine, side, application, health, slots, traffic, notices, ways, ports, built: 0, known }
    }

    /// The policy towards a peer that speaks this.
    pub(crate) fn speaking(self, application: Application) -> Self {
        Self { application, ..self }
    }

    /// Every interface pair, in the order of first use.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The open paths, by the names of the stack and of the engine.
    pub(crate) fn open_paths(&self) -> impl Iterator<Item = (PathId, Option<EnginePath>)> {
        let open = self.slots.iter().filter(|slot| slot.is_open());
        open.filter_map(|slot| Some((slot.id()?, slot.engine_path())))
    }

    /// The paths that are open, by the names of the stack, with the second ones of their pairs.
    #[cfg(feature = "simulation")]
    pub(crate) fn watched_paths(&self) -> impl Iterator<Item = PathId> {
        let open = self.slots.iter().filter(|slot| slot.is_open());
        open.flat_map(|slot| slot.id().into_iter().chain(slot.spare))
    }

    /// How long an answer of the peer takes on the slowest of the paths.
    pub(crate) fn slowest_answer(&self) -> Duration {
        self.slots.iter().filter_map(Slot::answer_takes).max().unwrap_or(health::ANSWER_MIN).max(health::ANSWER_MIN)
    }

    /// Takes the notices since the last call.
    pub(crate) fn take_notices(&mut self) -> Vec<PathNotice> {
        std::mem::take(&mut self.notices)
    }

    /// Takes in an event of the stack about a path.
    pub(crate) fn on_event(&mut self, paths: &mut dyn Paths, event: &PathEvent, now: Instant) {
        match event {
            PathEvent::Established { id, .. } => {
                self.on_established(paths, *id, now);
                // Before a packet leaves on it, the path has its name and with it its terms: at the rate of loopback a cap
                // that came with the next look would be megabytes late.
                self.measure(paths, now);
            }
            PathEvent::Abandoned { id, reason, .. } => {
                self.set_use(paths, *id, LOST, now);
                if let Some(path) = paths.engine_path(*id) {
                    paths.resend(path);
                }
                let is_for_good = matches!(reason, PathAbandonReason::RemoteAbandoned { error_code } if *error_code == FOR_GOOD.into());
                if is_for_good && self.application.is_fairpath() {
                    self.on_shut(paths, *id, now);
                }
                self.on_abandoned(*id, now);
            }
            // A peer of Fairpath says so of a path that it takes for sick, which this end judges for itself.
            PathEvent::RemoteStatus { id, status, .. } if !self.application.is_fairpath() => {
                let is_backup = *status == PathStatus::Backup;
                self.slots
                    .iter_mut()
                    .filter(|slot| slot.id() == Some(*id))
                    .for_each(|slot| slot.health.keep_off(BackupReason::Declined, is_backup));
                self.measure(paths, now);
            }
            PathEvent::Discarded { id, path_stats, .. } => {
                if let Some(slot) = self.slots.iter_mut().find(|slot| slot.draining == Some(*id)) {
                    slot.discarded(path_stats);
                }
            }
            _ => {}
        }
    }

    fn on_established(&mut self, paths: &mut dyn Paths, id: PathId, now: Instant) {
        let at = self.engine.at(now);
        self.set_use(paths, id, PathUse::Open, now);
        if let Some(index) = self.slots.iter().position(|slot| slot.spare == Some(id)) {
            return self.use_spare(paths, index, id, now);
        }
        if !self.slots.iter().any(|slot| slot.id() == Some(id)) {
            if self.side == Side::Opener {
                return;
            }
            if self.application.is_fairpath() {
                paths.set_backup(id, false);
            }
            // The peer opens a pair again, or a new one.
            let Some(mut slot) = accepted_slot(paths, id, PathHealth::new(&self.health, at)) else { return };
            let is_same = |known: &&mut Slot| known.is_open() && known.is_pair(slot.local(), slot.remote());
            if let Some(known) = self.slots.iter_mut().find(is_same) {
                // The peer closes one of the two.
                known.spare = Some(id);
                return;
            }
            match self.slots.iter_mut().find(|known| known.same_pair(&slot) && known.id().is_none()) {
                Some(known) => known.opened(id, at),
                None => {
                    slot.opened(id, at);
                    self.slots.push(slot);
                }
            }
        }
        if let Some(index) = self.slots.iter().position(|slot| slot.id() == Some(id)) {
            self.note_open(index, now);
        }
    }

    /// The second path of a pair is validated: it takes the place of the first, which had been ill for long.
    ///
    /// That the first answers again says nothing of what the peer may send on it. Where the peer's stack keeps data off
    /// it, for good, the second is the only one that carries any.
    fn use_spare(&mut self, paths: &mut dyn Paths, at: usize, spare: PathId, now: Instant) {
        let slot = &mut self.slots[at];
        slot.spare = None;
        let Some(former) = slot.id() else { return };
        tracing::debug!(interface = slot.name(), "path renewed");
        let was_open = slot.is_open();
        slot.succeed(spare, self.engine.at(now));
        paths.set_backup(spare, false);
        paths.close(former);
        self.set_use(paths, former, LOST, now);
        if !was_open {
            self.note_open(at, now);
        }
    }

    /// The path of slot `at` is validated, and there was none.
    fn note_open(&mut self, at: usize, now: Instant) {
        let again = self.slots[at].health.on_established(self.engine.at(now));
        self.ways.succeeded(self.slots[at].local(), self.slots[at].remote());
        let interface = self.name(at);
        self.notices.push(match again {
            true => PathNotice::Reopened { interface },
            false => PathNotice::Opened { interface },
        });
    }

    fn on_abandoned(&mut self, id: PathId, now: Instant) {
        if let Some(slot) = self.slots.iter_mut().find(|slot| slot.spare == Some(id)) {
            slot.spare = None;
        }
        let Some(at) = self.slots.iter().position(|slot| slot.id() == Some(id)) else { return };
        if !self.fall_back(at, now) {
            self.note_closed(at, "the peer closed it", now);
        }
    }

    /// Whether the second path of a pair takes the place of the first, which is closed. At the end that
    /// opens paths it is not validated yet.
    fn fall_back(&mut self, at: usize, now: Instant) -> bool {
        let Some(spare) = self.slots[at].spare.take() else { return false };
        match self.side {
            Side::Acceptor => self.slots[at].succeed(spare, self.engine.at(now)),
            Side::Opener => {
                self.note_closed(at, "another is being opened in its place", now);
                self.slots[at].opened(spare, self.engine.at(now));
                // Until it is validated and looked at.
                self.slots[at].health.keep_off(BackupReason::Unwell, true);
            }
        }
        true
    }

    /// Tells the engine the use that is made of a path.
    fn set_use(&self, paths: &mut dyn Paths, id: PathId, path_use: PathUse, now: Instant) {
        self.tell_engine(paths, id, now, |engine, path| engine.set_use(path, path_use));
    }

    /// Tells the engine something about a path.
    fn tell_engine(&self, paths: &mut dyn Paths, id: PathId, now: Instant, what: impl FnOnce(&mut Engine, EnginePath)) {
        if let Some(path) = paths.engine_path(id) {
            self.engine.with(now, |engine, _| what(engine, path));
        }
    }

    /// Whether data flows, or a path is not well: then both ends say what came.
    pub(crate) fn is_alert(&self, now: Instant) -> bool {
        self.traffic.is_busy(self.engine.at(now)) || self.slots.iter().any(|slot| slot.is_open() && !slot.answers())
    }

    /// One look at everything.
    pub(crate) fn look(&mut self, paths: &mut dyn Paths, now: Instant) {
        self.measure(paths, now);
        self.treat_paths(paths, now);
        if self.side == Side::Opener {
            self.ways.is_lost = !self.slots.iter().any(Slot::answers);
            self.try_ports(paths, now);
            self.find_ways(paths, now);
            self.open_due(paths, now);
        }
    }

    /// The stack keeps data off a path that is open: the peer's address has changed, and is not validated yet.
    pub(crate) fn on_refused(&mut self, path: EnginePath, now: Instant) {
        let at = self.engine.at(now);
        self.engine.with(now, |engine, _| engine.set_use(path, PathUse::Shut(ShutReason::Moved)));
        let refused = self.slots.iter_mut().filter(|slot| slot.engine_path() == Some(path));
        refused.for_each(|slot| slot.health.on_refused(at));
    }

    /// Takes the state of every path from the engine and its counters from the stack.
    pub(crate) fn measure(&mut self, paths: &mut dyn Paths, now: Instant) {
        let at = self.engine.at(now);
        let signs_every = match self.application {
            Application::Other(_) => None,
            Application::Fairpath | Application::Named(_) if self.traffic.is_busy(at) => {
                Some(self.health.signs_every())
            }
            Application::Fairpath | Application::Named(_) => Some(PATH_KEEP_ALIVE),
        };
        // The stack gives a path a new controller where the peer's address has changed, and says nothing.
        let built = self.engine.paths_built();
        let renewed = std::mem::replace(&mut self.built, built) != built;
        let mut datagrams = 0;
        for slot in &mut self.slots {
            let Some(id) = slot.id() else { continue };
            if renewed || slot.engine_path().is_none() {
                let remote = paths.network_path(id).map(|way| unmapped(way.remote()));
                slot.set_engine_path(paths.engine_path(id), remote);
                if let Some(path) = slot.engine_path() {
                    self.engine.with(now, |engine, _| {
                        request::name_path(engine, path, slot);
                        engine.set_peer_terms(path, slot.peer_terms);
                    });
                }
            }
            let stats = paths.stats(id);
            let path = slot.engine_path();
            let snapshot = path.and_then(|path| self.engine.with(now, |engine, at| engine.snapshot(path, at)));
            let arrived_at = paths.arrived_at(id).map(|arrived| self.engine.at(arrived));
            slot.measure(Seen { stats: stats.as_ref(), snapshot, arrived_at }, signs_every, at);
            // The stack may know better (`on_refused`): it is asked anew.
            if let Some(path) = path.filter(|_| slot.is_open()) {
                self.engine.with(now, |engine, _| engine.set_use(path, slot.health.path_use()));
            }
            datagrams += slot.health.datagrams();
        }
        self.traffic.update(datagrams, at);
    }

    /// Does about each path what its health asks for.
    fn treat_paths(&mut self, paths: &mut dyn Paths, now: Instant) {
        let at = self.engine.at(now);
        let is_busy = self.traffic.is_busy(at);
        if self.application.is_fairpath() {
            // Streams are few packets, and what is said of them back is not to wait for another path's mean.
            let listens = is_busy && !paths.has_flows() && self.listens();
            let doubts = !self.engine.with(now, |engine, _| engine.without()).doubts;
            health::relieve(self.slots.iter_mut().map(|slot| &mut slot.health), listens, doubts, at);
        }
        let best = health::best_rank(self.slots.iter().map(|slot| &slot.health));
        for index in 0..self.slots.len() {
            if !self.slots[index].is_open() && !self.application.is_fairpath() {
                // Other stacks want the challenge first on a path.
                continue;
            }
            let all: Vec<&PathHealth<PathId>> = self.slots.iter().map(|slot| &slot.health).collect();
            for action in health::treatment(&all, index, best, is_busy, at) {
                if !self.is_kept(index, &action, now) {
                    self.carry_out(paths, index, action, now);
                }
            }
        }
    }

    /// Whether this end sends less than a tenth of what it gets.
    fn listens(&self) -> bool {
        let rates = || self.slots.iter().map(Slot::rates);
        let sent: Bitrate = rates().map(|(sent, _)| sent).sum();
        let got: Bitrate = rates().map(|(_, got)| got).sum();
        sent.scaled(10.0) < got
    }

    fn carry_out(&mut self, paths: &mut dyn Paths, at: usize, action: Action, now: Instant) {
        let Some(id) = self.slots[at].id() else { return };
        match action {
            Action::Close(reason) => self.close(paths, at, &reason.to_string(), now),
            Action::OpenBeside => self.renew(paths, at),
            Action::Probe => paths.ping(id),
            Action::SetBackup(backup) => {
                let slot = &mut self.slots[at];
                slot.health.keep_off(BackupReason::Unwell, backup);
                paths.set_backup(id, backup);
                self.set_use(paths, id, self.slots[at].health.path_use(), now);
            }
            Action::Resend => {
                if let Some(path) = self.slots[at].engine_path() {
                    paths.resend(path);
                }
            }
        }
    }

    /// Opens a second path beside a sick one, if this end opens paths and one more may be had.
    fn renew(&mut self, paths: &mut dyn Paths, at: usize) {
        let has_room = self.ids_spare() > 0;
        let slot = &mut self.slots[at];
        if self.side == Side::Opener && slot.spare.is_none() && has_room {
            // As a backup: where the pair is validated already, the stack would send data at once, and the
            // challenge would wait behind it.
            slot.spare = paths.open(FourTuple::new(mapped(slot.remote()), Some(slot.local())), true).ok();
        }
    }

    /// The open paths, other than slot `at`, that answer: what takes over from it.
    fn carriers(&self, at: usize) -> Vec<String> {
        let others = self.slots.iter().enumerate().filter(|(other, slot)| *other != at && slot.answers());
        others.map(|(other, _)| self.name(other)).collect()
    }

    /// The name of the path of slot `at`, among all that were ever open.
    fn name(&self, at: usize) -> String {
        let known = || self.slots.iter().enumerate().filter(|(other, one)| *other == at || one.was_ever_opened());
        let ends = known().map(|(_, one)| Ends {
            interface: one.name(),
            ours: Some(own_address(one.local())),
            theirs: one.remote(),
        });
        let place = known().position(|(other, _)| other == at).expect("it is known");
        names(&ends.collect::<Vec<_>>()).swap_remove(place)
    }

    fn close(&mut self, paths: &mut dyn Paths, at: usize, reason: &str, now: Instant) {
        self.close_with(paths, at, 0, reason, now);
    }

    fn close_with(&mut self, paths: &mut dyn Paths, at: usize, code: u32, reason: &str, now: Instant) {
        let Some(id) = self.slots[at].id() else { return };
        if paths.close_with(id, code) {
            self.set_use(paths, id, LOST, now);
            if !self.fall_back(at, now) {
                self.note_closed(at, reason, now);
            }
        }
    }

    fn note_closed(&mut self, at: usize, reason: &str, now: Instant) {
        let was_open = self.slots[at].is_open();
        let time = self.engine.at(now);
        self.slots[at].closed(time);
        self.ways.candidates.closed(self.slots[at].local(), self.slots[at].remote());
        if was_open {
            let notice = PathNotice::closed(self.name(at), reason, self.carriers(at));
            self.notices.push(notice);
        }
    }

    /// Whether the addresses here are still there: `absence` says why one is not. The paths of those
    /// that are gone are closed.
    pub(crate) fn on_addresses(
        &mut self,
        paths: &mut dyn Paths,
        absence: impl Fn(&str, IpAddr) -> Option<String>,
        now: Instant,
    ) {
        for at in 0..self.slots.len() {
            let absent = absence(self.slots[at].name(), self.slots[at].local());
            let another = self.slots.iter().enumerate().any(|(other, slot)| other != at && slot.is_open());
            if let Some(why) = absent.as_ref().filter(|_| self.slots[at].is_open() && another) {
                self.close(paths, at, why, now);
            }
            let time = self.engine.at(now);
            self.slots[at].health.set_present(absent.is_none(), time);
        }
    }

    /// Opens what is due. Of a pair that is being asked for the first time the answer is waited for.
    fn open_due(&mut self, paths: &mut dyn Paths, now: Instant) {
        let at = self.engine.at(now);
        for slot in &mut self.slots {
            let (local, remote) = (slot.local(), slot.remote());
            let is_asked = !slot.was_ever_opened() && self.ways.candidates.is_asking(local, remote);
            let is_due = slot.is_wanted && slot.health.is_due(at);
            if is_asked || !is_due || paths.interface(Some(local)).is_none() {
                continue;
            }
            match paths.open(FourTuple::new(mapped(remote), Some(local)), false) {
                Ok(id) => {
                    slot.opened(id, at);
                    self.ways.candidates.opening(local, remote);
                }
                // Right after the handshake, and while closed paths drain, the peer's connection ids for the next path
                // are still on their way: the next look tries again.
                Err(PathError::RemoteCidsExhausted | PathError::MaxPathIdReached) => {}
                Err(_) => slot.health.on_not_opened(at),
            }
        }
    }
}
