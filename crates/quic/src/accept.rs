//! The accepting side of a listener: does what `guests.rs` decides.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq::{Endpoint, Incoming};
use tokio::sync::{mpsc, oneshot};

use crate::adapter::ConnectionEngine;
use crate::connection::Connection;
use crate::datagram::search;
use crate::endpoint::ListenConfig;
use crate::guests::{Arrival, GUESTS_MAX, Guests, Source, Verdict};
use crate::path_manager::Role;
use crate::socket::{Sockets, unmapped};
use crate::transport::{Trust, transport};

/// The code with which a guest is sent away when its place is needed.
pub const CROWDED: u32 = 0x1f0;

/// How long a peer may take over its handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How many first packets wait for a decision, which is made at once; what goes beyond is dropped.
const INCOMING_MAX: usize = 256;

/// What may wait behind one of them, in bytes: the rest of a client's first flight.
const INCOMING_BYTES: u64 = 8_000;

/// How often a listener was asked in vain, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Knocks {
    /// Refused for load, or because all connections were taken.
    pub refused: u64,
    /// Handshakes that failed or were not finished in time, and peers that had to make room for newer ones
    /// before they had proved themselves.
    pub unfinished: u64,
    /// First packets that were answered by asking to show the address. Most honest peers that are asked
    /// come back, so this is no number of attempts in vain.
    pub asked_again: u64,
}

/// The guest list, and what is counted at the door.
#[derive(Debug)]
pub(crate) struct House {
    guests: Mutex<Guests>,
    /// Dropped, it tells the guest to leave.
    leave: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
    refused: AtomicU64,
    unfinished: AtomicU64,
    asked_again: AtomicU64,
}

impl House {
    pub(crate) fn new(connections_max: usize) -> Arc<Self> {
        Arc::new(Self {
            guests: Mutex::new(Guests::new(connections_max, Instant::now())),
            leave: Mutex::default(),
            refused: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
            asked_again: AtomicU64::new(0),
        })
    }

    pub(crate) fn knocks(&self) -> Knocks {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Knocks {
            refused: read(&self.refused),
            unfinished: read(&self.unfinished),
            asked_again: read(&self.asked_again),
        }
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leaving(&self) -> MutexGuard<'_, BTreeMap<u64, oneshot::Sender<()>>> {
        self.leave.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's place, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    house: Arc<House>,
    number: u64,
    is_resident: AtomicBool,
}

impl Place {
    /// The peer has proved itself. False where it had to leave before.
    pub(crate) fn welcome(&self) -> bool {
        let welcome = self.house.guests().welcome(self.number);
        if welcome {
            self.is_resident.store(true, Ordering::Release);
        }
        welcome
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.house.guests().leave(self.number, self.is_resident.load(Ordering::Acquire));
        self.house.leaving().remove(&self.number);
    }
}

/// The settings that bound what is held for first packets that nothing was decided about yet.
pub(crate) fn bounded(mut server: noq::ServerConfig) -> noq::ServerConfig {
    // Tokens for later connections would be accepted without a Retry; nobody comes back with one.
    let mut tokens = noq::ValidationTokenConfig::default();
    tokens.sent(0);
    server
        .validation_token_config(tokens)
        .max_incoming(INCOMING_MAX)
        .incoming_buffer_size(INCOMING_BYTES)
        .incoming_buffer_size_total(INCOMING_MAX as u64 * INCOMING_BYTES);
    server
}

/// Whoever connects.
pub(crate) struct Acceptor {
    pub(crate) endpoint: Endpoint,
    pub(crate) sockets: Sockets,
    pub(crate) server: noq::ServerConfig,
    pub(crate) config: ListenConfig,
    pub(crate) house: Arc<House>,
    pub(crate) accepted: mpsc::Sender<Connection>,
}

impl Acceptor {
    /// Lets peers in until the endpoint is closed.
    pub(crate) async fn run(self) {
        while let Some(incoming) = self.endpoint.accept().await {
            let is_invited = self.config.knock.as_ref().is_some_and(|key| key.is_on(&incoming.orig_dst_cid()));
            let arrival = Arrival {
                source: Source::from(incoming.remote_address().ip()),
                is_validated: incoming.remote_address_validated(),
                is_invited,
            };
            let (verdict, leaving) = self.house.guests().arrive(arrival, Instant::now());
            if let Some(leaving) = leaving {
                self.house.leaving().remove(&leaving);
            }
            match verdict {
                Verdict::Accept(number) => self.let_in(incoming, number),
                Verdict::Retry => {
                    self.house.asked_again.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = incoming.retry() {
                        error.into_incoming().ignore();
                    }
                }
                Verdict::Refuse => {
                    self.house.refused.fetch_add(1, Ordering::Relaxed);
                    incoming.refuse();
                }
            }
        }
    }

    fn let_in(&self, incoming: Incoming, number: u64) {
        let (leave, mut told_to_leave) = oneshot::channel();
        self.house.leaving().insert(number, leave);
        let house = self.house.clone();
        let place = Arc::new(Place { house: house.clone(), number, is_resident: false.into() });
        let Ok(engine) = self.config.engine.build().map(ConnectionEngine::new) else { return };
        let mut server = self.server.clone();
        let trust = if self.config.knock.is_some() { Trust::Guest } else { Trust::Full };
        server.transport_config(transport(&engine, search(way(&incoming), self.config.datagram_max), trust));
        let (accepted, sockets) = (self.accepted.clone(), self.sockets.clone());
        tokio::spawn(async move {
            let Ok(connecting) = incoming.accept_with(Arc::new(server)) else { return };
            let quic = tokio::select! {
                quic = tokio::time::timeout(HANDSHAKE, connecting) => match quic {
                    Ok(Ok(quic)) => quic,
                    failed => {
                        tracing::debug!(?failed, "no handshake");
                        house.unfinished.fetch_add(1, Ordering::Relaxed);
                        return;
                    }
                },
                _ = &mut told_to_leave => {
                    house.unfinished.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            };
            house.guests().validated(number);
            if trust == Trust::Full {
                place.welcome();
            }
            let (over, handle) = (quic.on_closed(), quic.weak_handle());
            let connection = Connection::new(quic, engine, sockets, Role::Acceptor).with_place(&place);
            // There is a slot for every connection there may be.
            if accepted.try_send(connection).is_err() {
                return;
            }
            tokio::select! {
                _ = over => {}
                _ = &mut told_to_leave => {
                    house.unfinished.fetch_add(1, Ordering::Relaxed);
                    if let Some(quic) = handle.upgrade() {
                        quic.close(CROWDED.into(), b"too many peers at once have not proved themselves, try again");
                    }
                }
            }
            drop(place);
        });
    }
}

/// The first hop of the connection, where it is known.
fn way(incoming: &Incoming) -> Option<(IpAddr, SocketAddr)> {
    incoming.local_ip().map(|local| (local.to_canonical(), unmapped(incoming.remote_address())))
}

/// How many accepted connections may wait for the application.
pub(crate) fn waiting_max(connections_max: usize) -> usize {
    connections_max.max(GUESTS_MAX)
}
