//! Opens a path per interface pair, watches them, closes the dead, and opens them again: the policy in real
//! time.
//!
//! Only the end that connected opens paths; both close them. Both tell the engine which paths can carry
//! data, and nobody closes a path while no other works.
//!
//! # What tells that a path is dead
//!
//! That its packets are not acknowledged is not enough: noq sends the acknowledgements of all paths
//! on the available path of the lowest id, so when that one dies, every path falls silent at both
//! ends, and each waits for the other. What comes *in* on a path is free of that. While data flows
//! both ends therefore say something on every path, and a path on which nothing comes in is deaf. A path
//! that is worse than another gets the status of a backup, which takes acknowledgements and data off it at
//! once. It is closed only while another works both ways: what works in one direction may be needed, where
//! each of two paths does, and could not be validated again.
//!
//! What is on its way on a path that is not closed stays there until the path works again: noq sends it
//! elsewhere only once the path is gone.

mod meter;
mod notice;
pub(crate) mod policy;
mod slot;
mod traffic;
mod ways;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fairpath_engine::PathId as EnginePath;
use noq::{FourTuple, PathError, PathId, PathStats, PathStatus};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::adapter::{ConnectionEngine, PathHandle};
use crate::connection::{PathReport, PathState};
use crate::endpoint::{bind_late, is_bound};
use crate::interfaces;
use crate::pairs::{Candidates, Pair, Tried};
use crate::probe::Questions;
use crate::socket::Sockets;

pub use notice::PathNotice;
use policy::{Paths, Policy, Side};

/// How often the paths are looked at.
const TICK: Duration = Duration::from_millis(50);

/// How often the interfaces are looked at.
const INTERFACES: Duration = Duration::from_millis(500);

/// What this end does about paths.
#[derive(Debug)]
pub(crate) enum Role {
    /// It opens and closes them.
    Opener(Box<Opener>),
    /// It takes what the peer opens.
    Acceptor,
}

/// What the end knows that opens paths.
#[derive(Debug)]
pub(crate) struct Opener {
    /// The pairs to choose from.
    pub(crate) candidates: Candidates,
    /// What is being asked about them.
    pub(crate) questions: Questions,
    /// The pair the connection was made on.
    pub(crate) first: Pair,
    /// The interfaces asked for.
    pub(crate) via: Vec<String>,
    /// The peer's addresses.
    pub(crate) remotes: Vec<SocketAddr>,
}

/// What others may know of the paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// What became of every pair that has carried a path.
    pub(crate) paths: Arc<Mutex<Vec<PathReport>>>,
    /// What was tried to reach the peer.
    pub(crate) tried: Arc<Mutex<Vec<Tried>>>,
}

/// Starts watching. The task ends with the connection.
pub(crate) fn spawn(
    quic: &noq::Connection,
    engine: &ConnectionEngine,
    sockets: Sockets,
    role: Role,
    published: Published,
    notices: broadcast::Sender<PathNotice>,
    asked: mpsc::Receiver<oneshot::Sender<()>>,
) -> tokio::task::JoinHandle<()> {
    let events = quic.path_events();
    let now = Instant::now();
    let mut live = Live { quic, sockets: &sockets };
    let (policy, questions, via, remotes) = match role {
        Role::Opener(opener) => {
            let Opener { candidates, questions, first, via, remotes } = *opener;
            (Policy::opener(engine.clone(), candidates, &first, &mut live, now), questions, via, remotes)
        }
        Role::Acceptor => {
            (Policy::acceptor(engine.clone(), &mut live, now), Questions::default(), Vec::new(), Vec::new())
        }
    };
    let mut manager = Manager {
        quic: quic.weak_handle(),
        sockets,
        questions,
        via,
        remotes,
        policy,
        published,
        notices,
        asked,
        interfaces_at: now,
    };
    manager.publish();
    tokio::spawn(manager.run(quic.on_closed(), events))
}

/// The policy in real time: woken by events and by the clock.
struct Manager {
    /// Weak: watching a connection must not keep it open.
    quic: noq::WeakConnectionHandle,
    sockets: Sockets,
    questions: Questions,
    via: Vec<String>,
    remotes: Vec<SocketAddr>,
    policy: Policy,
    published: Published,
    notices: broadcast::Sender<PathNotice>,
    /// Who wants the reports brought up to date, and waits until they are.
    asked: mpsc::Receiver<oneshot::Sender<()>>,
    interfaces_at: Instant,
}

impl Manager {
    async fn run(mut self, closed: noq::OnClosed, mut events: noq::PathEvents) {
        use futures_util::StreamExt as _;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(closed);
        loop {
            let event = tokio::select! {
                _ = &mut closed => {
                    self.measure();
                    break;
                }
                Some(asking) = self.asked.recv() => {
                    self.measure();
                    // Nobody has to wait for it.
                    let _ = asking.send(());
                    None
                }
                event = events.next() => match event {
                    Some(Ok(event)) => Some(event),
                    Some(Err(lagged)) => {
                        tracing::warn!(%lagged, "path events were missed");
                        None
                    }
                    None => break,
                },
                _ = tick.tick() => None,
            };
            let Some(quic) = self.quic.upgrade() else { break };
            let now = Instant::now();
            let mut live = Live { quic: &quic, sockets: &self.sockets };
            if let Some(event) = event {
                self.policy.on_event(&mut live, &event, now);
            }
            while let Some(((local, remote), answer)) = self.questions.answer_now() {
                self.policy.on_answer(local, remote, answer);
            }
            self.policy.look(&mut live, now);
            if self.policy.side() == Side::Opener && now >= self.interfaces_at {
                self.interfaces_at = now + INTERFACES;
                self.look_at_interfaces(&quic, now);
            }
            self.questions.ask(self.policy.questions(now));
            self.publish();
        }
    }

    /// Brings the reports up to date, and does nothing else.
    fn measure(&mut self) {
        if let Some(quic) = self.quic.upgrade() {
            self.policy.measure(&mut Live { quic: &quic, sockets: &self.sockets }, Instant::now());
            self.publish();
        }
    }

    /// Closes the paths of interfaces that are gone, and adds those that are new.
    fn look_at_interfaces(&mut self, quic: &noq::Connection, now: Instant) {
        let via = &self.via;
        let Ok(found) = interfaces::towards(via, &self.remotes) else { return };
        // A socket that is broken is replaced by another at the next look.
        let fault = |local: IpAddr| self.sockets.of(local).and_then(|socket| socket.fault());
        let present = |local: IpAddr| found.iter().any(|one| one.address == local) && fault(local).is_none();
        let absence = |name: &str, local| {
            let broken = || fault(local).map(|fault| format!("its socket cannot be read: {fault}"));
            let lost = || interfaces::Lost::look(name, local, via).to_string();
            (!present(local)).then(|| broken().unwrap_or_else(lost))
        };
        self.policy.on_addresses(&mut Live { quic, sockets: &self.sockets }, absence, now);
        for slot in self.policy.slots() {
            if !present(slot.local()) {
                // A device that comes back may be another one of the same name.
                self.sockets.remove(slot.local());
            }
        }
        for interface in &found {
            if !is_bound(interface.address, &self.sockets)
                && let Err(error) = bind_late(interface, &self.sockets)
            {
                tracing::debug!(interface = %interface.name, %error, "not bound yet");
            }
        }
        self.policy.on_interfaces(&found, now);
    }

    fn publish(&mut self) {
        for notice in self.policy.take_notices() {
            tracing::info!(%notice, "path");
            // Nobody has to listen.
            let _ = self.notices.send(notice);
        }
        let binding = |local| self.sockets.of(local).map(|socket| socket.binding);
        let opened = self.policy.slots().iter().filter(|slot| slot.was_ever_opened());
        let reports = opened.map(|slot| slot.report(binding(slot.local())));
        let mut published = self.published.paths.lock().unwrap_or_else(PoisonError::into_inner);
        published.clear();
        published.extend(reports);
        drop(published);
        let mut tried = self.published.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if *tried != self.policy.tried() {
            *tried = self.policy.tried().to_vec();
        }
    }
}

/// A connection of noq with its sockets.
struct Live<'a> {
    quic: &'a noq::Connection,
    sockets: &'a Sockets,
}

/// The calls on a path fail only where it is closed already; the event is then on its way.
impl Paths for Live<'_> {
    fn stats(&mut self, id: PathId) -> Option<PathStats> {
        self.quic.path_stats(id)
    }

    fn network_path(&mut self, id: PathId) -> Option<FourTuple> {
        self.quic.path(id)?.network_path().ok()
    }

    fn engine_path(&mut self, id: PathId) -> Option<EnginePath> {
        self.quic.congestion_state(id).and_then(PathHandle::of)
    }

    fn ping(&mut self, id: PathId) {
        if let Some(path) = self.quic.path(id) {
            let _ = path.ping();
        }
    }

    fn set_backup(&mut self, id: PathId, backup: bool) {
        if let Some(path) = self.quic.path(id) {
            let _ = path.set_status(if backup { PathStatus::Backup } else { PathStatus::Available });
        }
    }

    fn close(&mut self, id: PathId) -> bool {
        self.quic.path(id).is_some_and(|path| path.close().is_ok())
    }

    fn open(&mut self, network_path: FourTuple, backup: bool) -> Result<PathId, PathError> {
        let status = if backup { PathStatus::Backup } else { PathStatus::Available };
        let opening = self.quic.open_path(network_path, status);
        match opening.path_id() {
            Some(id) => Ok(id),
            // Without an id it has been refused already.
            None => Err(match futures_util::FutureExt::now_or_never(opening) {
                Some(Err(error)) => error,
                _ => PathError::ValidationFailed,
            }),
        }
    }

    fn interface(&self, local: Option<IpAddr>) -> Option<(String, IpAddr)> {
        let socket = match local {
            Some(local) => self.sockets.of(local),
            None => self.sockets.primary(),
        }?;
        Some((socket.interface.clone(), socket.local.ip()))
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
