//! Tells a connection that opens paths about this machine: its interfaces, and the peer's addresses
//! that answer.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::connection::closed;
use crate::driver::{Link, Shared};
use crate::probe::Questions;

/// How often the interfaces are looked at.
const INTERFACES: Duration = Duration::from_millis(500);

/// How often it is looked for questions: as often as the paths are looked at.
const QUESTIONS: Duration = Duration::from_millis(50);

/// The interfaces and addresses that the application asked for.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The interfaces asked for.
    pub(crate) via: Vec<String>,
    /// The peer's addresses.
    pub(crate) remotes: Vec<SocketAddr>,
}

/// Watches until the connection ends. Watching it does not keep it open.
pub(crate) fn spawn(shared: &Arc<Shared>, link: &Arc<Link>, questions: Questions, plan: Plan) {
    let manager = Manager { shared: shared.clone(), link: link.clone(), questions, plan };
    tokio::spawn(manager.run());
}

struct Manager {
    shared: Arc<Shared>,
    link: Arc<Link>,
    questions: Questions,
    plan: Plan,
}

impl Manager {
    async fn run(mut self) {
        let link = self.link.clone();
        let closed = std::pin::pin!(closed(&link));
        let mut closed = closed;
        let [mut at_interfaces, mut at_questions] = [INTERFACES, QUESTIONS].map(tokio::time::interval);
        for interval in [&mut at_interfaces, &mut at_questions] {
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        }
        loop {
            // In order: the same in each run of a simulation.
            tokio::select! {
                biased;
                _ = &mut closed => return,
                _ = at_interfaces.tick() => self.look_at_interfaces(),
                _ = at_questions.tick() => {
                    let questions = self.link.core.with(|connection, now| connection.questions(now));
                    self.questions.ask(questions);
                }
                Some(((local, remote), answer)) = self.questions.answer() => {
                    self.link.core.with(|connection, _| connection.on_answer(local, remote, answer));
                }
            }
        }
    }

    /// Has the paths of interfaces closed that are gone, and binds sockets on those that are new.
    fn look_at_interfaces(&self) {
        let Plan { via, .. } = &self.plan;
        let remotes = self.link.core.with(|connection, _| connection.peer_addresses());
        let remotes = if remotes.is_empty() { &self.plan.remotes } else { &remotes };
        let sockets = &self.shared.sockets;
        let Ok(mut found) = sockets.machine().towards(via, remotes, &sockets.interfaces()) else { return };
        sockets.allowances().take_spent(&mut found);
        let mut is_changed = false;
        for interface in found.iter().filter(|interface| sockets.of(interface.local()).is_none()) {
            match sockets.add(interface) {
                Ok(()) => is_changed = true,
                Err(error) => tracing::debug!(interface = %interface.name, %error, "not bound yet"),
            }
        }
        if std::mem::take(&mut is_changed) {
            self.shared.sockets_changed();
        }
        // A socket that is broken is replaced by another at the next look.
        let fault = |local: IpAddr| sockets.of(local).and_then(|socket| socket.fault());
        let present = |local: IpAddr| found.iter().any(|one| one.local() == local) && fault(local).is_none();
        let absence = |name: &str, local| {
            let broken = || fault(local).map(|fault| format!("its socket cannot be read: {fault}"));
            (!present(local)).then(|| broken().unwrap_or_else(|| sockets.machine().lost(name, local, via)))
        };
        let locals = self.link.core.with(|connection, now| {
            connection.on_interfaces(&found, absence, now);
            connection.local_addresses()
        });
        for local in locals {
            if !present(local) && sockets.of(local).is_some() {
                // A device that comes back may be another one of the same name.
                sockets.remove(local);
                is_changed = true;
            }
        }
        if is_changed {
            self.shared.sockets_changed();
        }
        self.link.core.nudge();
    }
}
