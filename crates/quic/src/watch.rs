//! The reaction of an end that listens when its addresses change: it binds sockets to new ones, and tells its peers.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::driver::Shared;
use crate::interfaces::Interface;

/// How often the interfaces are looked at.
const EVERY: Duration = Duration::from_millis(500);

/// The addresses and interfaces that were asked for.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The interfaces asked for.
    pub(crate) via: Vec<String>,
    /// Whether every address of the machine is listened on.
    pub(crate) is_everywhere: bool,
    /// Addresses that peers are told of before the machine's own.
    pub(crate) advertise: Vec<SocketAddr>,
}

impl Plan {
    /// The addresses that peers are told of.
    pub(crate) fn told(&self, shared: &Shared) -> Vec<SocketAddr> {
        let sockets = shared.sockets.all();
        let own = sockets.iter().filter(|socket| socket.is_told).map(|socket| socket.local);
        let mut told = self.advertise.clone();
        told.extend(own.filter(|address| !self.advertise.contains(address)));
        told
    }
}

/// Watches until nobody has the endpoint any more. The addresses that peers are told of go to `told` when they change.
pub(crate) fn spawn(shared: &Arc<Shared>, plan: Plan, told: watch::Sender<Vec<SocketAddr>>) {
    let shared = Arc::downgrade(shared);
    tokio::spawn(Watch { shared, plan, told }.run());
}

struct Watch {
    shared: Weak<Shared>,
    plan: Plan,
    told: watch::Sender<Vec<SocketAddr>>,
}

impl Watch {
    async fn run(self) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(shared) = self.shared.upgrade() else { return };
            self.look(&shared);
        }
    }

    fn look(&self, shared: &Arc<Shared>) {
        let (machine, known) = (shared.sockets.machine(), shared.sockets.interfaces());
        let found = match self.plan.is_everywhere {
            true => machine.everywhere(&known),
            false => machine.usable(&self.plan.via, &known),
        };
        let Ok(mut found) = found else { return };
        shared.sockets.allowances().take_spent(&mut found);
        let is_new = self.bind(shared, &found);
        let is_lost = self.leave(shared);
        if !is_new && !is_lost {
            return;
        }
        shared.sockets_changed();
        let told = self.plan.told(shared);
        let is_changed = self.told.send_if_modified(|before| std::mem::replace(before, told.clone()) != told);
        shared.with_all(|connection, now| {
            let absence = |name: &str, local: IpAddr| {
                shared.sockets.of(local).is_none().then(|| machine.lost(name, local, &self.plan.via))
            };
            connection.on_interfaces(&found, absence, now);
            if is_changed {
                connection.announce(&told, now);
            }
        });
    }

    /// Binds sockets to addresses that have none. Says whether there were any.
    fn bind(&self, shared: &Shared, found: &[Interface]) -> bool {
        let mut is_new = false;
        for interface in found.iter().filter(|interface| shared.sockets.of(interface.local()).is_none()) {
            match shared.sockets.add(interface) {
                Ok(()) => is_new = true,
                Err(error) => tracing::debug!(interface = %interface.name, %error, "not bound yet"),
            }
        }
        is_new
    }

    /// Gives up the sockets of addresses that are gone, and those that are broken, which get another at the next look. An
    /// interface that is down keeps its addresses, and may come back. Says whether there were any.
    fn leave(&self, shared: &Shared) -> bool {
        let Ok(present) = shared.sockets.machine().addresses() else { return false };
        let mut is_lost = false;
        for socket in &*shared.sockets.all() {
            let is_there = |one: &(String, IpAddr)| one.0 == socket.interface && one.1 == socket.local.ip();
            // Loopback has more addresses than are listed.
            let is_present = socket.local.ip().is_loopback() || present.iter().any(is_there);
            if !is_present || socket.fault().is_some() {
                shared.sockets.retire(socket);
                is_lost = true;
            }
        }
        is_lost
    }
}
