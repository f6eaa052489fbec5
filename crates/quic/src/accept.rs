//! The accepting side of a listener: does what `fairpath_quic_core::guests` decides.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairpath_engine::EngineConfig;
use fairpath_quic_core::guests::{Arrival, GUESTS_MAX, Guests, IncomingAction, Source};
use fairpath_quic_core::{AdmissionKey, Trust, own_address, unmapped};
use noq_proto::{ConnectionHandle, Incoming};
use tokio::sync::mpsc;

use crate::clock;
use crate::machine::Machine;

/// The code with which a guest is sent away when its place is needed.
pub const CROWDED: u32 = 0x1f0;

/// How long a peer may take over its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Attempts to connect to a listener that failed, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptStats {
    /// Refused for load, or because all connections were taken.
    pub refused: u64,
    /// Handshakes of the uninvited that failed or were not finished in time, and uninvited peers that had to make room for
    /// newer ones before they had proved themselves.
    pub unfinished: u64,
    /// First packets that were answered by asking to show the address. Most honest peers that are asked
    /// come back, so this does not count failed attempts.
    pub asked_again: u64,
}

/// The part of a listener's configuration that concerns its connections.
#[derive(Debug)]
pub(crate) struct AcceptConfig {
    pub(crate) admission_key: Option<AdmissionKey>,
    pub(crate) engine: EngineConfig,
    pub(crate) datagram_max: u16,
    pub(crate) machine: Machine,
}

impl AcceptConfig {
    /// How much of a peer's data is held at first.
    pub(crate) fn trust(&self) -> Trust {
        if self.admission_key.is_some() { Trust::Guest } else { Trust::Full }
    }
}

/// A connection's place among the guests or residents.
#[derive(Debug)]
struct Place {
    number: u64,
    /// When the handshake must be over; `None`: it is.
    until: Option<Instant>,
    is_resident: bool,
    /// Its first packet had the mark of a holder of the ticket: a sender that tries several paths
    /// at a time, and drops those that it does not need.
    is_invited: bool,
}

/// The guest list, and the counters of admission. The driver carries out its decisions.
#[derive(Debug)]
pub(crate) struct AdmissionControl<Connection> {
    pub(crate) config: Arc<AcceptConfig>,
    guests: Guests,
    places: BTreeMap<ConnectionHandle, Place>,
    /// `None` once nobody is let in any more.
    accepted: Option<mpsc::Sender<Connection>>,
    stats: AcceptStats,
}

/// The decision about a new peer.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) action: IncomingAction,
    /// The guest that has to leave for it.
    pub(crate) leaves: Option<ConnectionHandle>,
    /// Whether it was invited.
    pub(crate) is_invited: bool,
}

impl<Connection> AdmissionControl<Connection> {
    /// Admission with room for this many connections, and the channel of those that were let in.
    pub(crate) fn new(config: AcceptConfig, connections_max: usize) -> (Self, mpsc::Receiver<Connection>) {
        // There is a slot for every connection there may be.
        let (sender, accepted) = mpsc::channel(connections_max.max(GUESTS_MAX));
        let guests = Guests::new(connections_max, clock::now());
        let (config, stats) = (Arc::new(config), AcceptStats::default());
        (Self { config, guests, places: BTreeMap::new(), accepted: Some(sender), stats }, accepted)
    }

    pub(crate) fn accept_stats(&self) -> AcceptStats {
        self.stats
    }

    /// Nobody is let in from now on.
    pub(crate) fn shut(&mut self) {
        self.accepted = None;
    }

    /// Where those go whose handshake is complete.
    pub(crate) fn accepted(&self) -> Option<mpsc::Sender<Connection>> {
        self.accepted.clone()
    }

    /// A peer wants in.
    pub(crate) fn decide(&mut self, incoming: &Incoming, now: Instant) -> Decision {
        if self.accepted.is_none() {
            return Decision { action: IncomingAction::Refuse, leaves: None, is_invited: false };
        }
        let arrival = Arrival {
            source: Source::from(incoming.remote_address().ip()),
            is_validated: incoming.remote_address_validated(),
            is_invited: self.config.admission_key.as_ref().is_some_and(|key| key.is_on(&incoming.orig_dst_cid())),
        };
        let is_invited = arrival.is_invited;
        let (action, leaving) = self.guests.arrive(arrival, now);
        match action {
            IncomingAction::Accept(_) => {}
            IncomingAction::Retry => self.stats.asked_again += 1,
            IncomingAction::Refuse => self.stats.refused += 1,
        }
        let leaves = leaving.and_then(|number| self.evict(number));
        Decision { action, leaves, is_invited }
    }

    /// The connection of a guest that is not on the list any more.
    fn evict(&mut self, number: u64) -> Option<ConnectionHandle> {
        let handle = self.places.iter().find(|(_, place)| place.number == number).map(|(handle, _)| *handle)?;
        let place = self.places.remove(&handle)?;
        self.stats.unfinished += u64::from(!place.is_invited);
        Some(handle)
    }

    /// The guest of this number is the connection `handle`, whose handshake begins.
    pub(crate) fn entered(&mut self, number: u64, handle: ConnectionHandle, is_invited: bool, now: Instant) {
        self.places.insert(handle, Place { number, until: Some(now + HANDSHAKE), is_resident: false, is_invited });
    }

    /// The guest of this number did not become a connection.
    pub(crate) fn failed(&mut self, number: u64) {
        self.guests.leave(number, false);
    }

    /// A handshake is complete. False where the guest had to leave before.
    pub(crate) fn connected(&mut self, handle: ConnectionHandle) -> bool {
        let Some(place) = self.places.get_mut(&handle) else { return false };
        place.until = None;
        self.guests.validated(place.number);
        if self.config.trust() == Trust::Full {
            self.welcome(handle);
        }
        true
    }

    /// A peer has proved itself. False where it is no guest.
    pub(crate) fn welcome(&mut self, handle: ConnectionHandle) -> bool {
        let Some(place) = self.places.get_mut(&handle).filter(|place| !place.is_resident) else { return false };
        place.is_resident = self.guests.welcome(place.number);
        place.is_resident
    }

    /// A connection is over: its place is free.
    pub(crate) fn left(&mut self, handle: ConnectionHandle) {
        if let Some(place) = self.places.remove(&handle) {
            self.stats.unfinished += u64::from(place.until.is_some() && !place.is_invited);
            self.guests.leave(place.number, place.is_resident);
        }
    }

    /// When the next handshake has taken too long.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.places.values().filter_map(|place| place.until).min()
    }

    /// Takes the places of those whose handshake has taken too long.
    pub(crate) fn late(&mut self, now: Instant) -> Vec<ConnectionHandle> {
        let is_late = |place: &Place| place.until.is_some_and(|until| until <= now);
        let late: Vec<_> = self.places.iter().filter(|(_, place)| is_late(place)).map(|(handle, _)| *handle).collect();
        late.iter().for_each(|handle| self.left(*handle));
        late
    }
}

/// The first hop of the connection, where it is known.
pub(crate) fn way(incoming: &Incoming) -> Option<(IpAddr, SocketAddr)> {
    incoming.local_ip().map(|local| (own_address(local.to_canonical()), unmapped(incoming.remote_address())))
}
