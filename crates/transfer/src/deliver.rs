//! One transfer over as many connections as it takes.
//!
//! A connection dies with its last link, or with a process; the transfer need not. What the receiver has
//! it keeps, and it knows the sender again, so a new connection goes on where the old one stopped.
//!
//! # Beside, not after
//!
//! QUIC asks a silent peer for a sign of life at growing intervals, up to several seconds apart after ten
//! seconds of silence, so a connection whose links are back may lie still for as long again. A handshake
//! takes one round trip. So new connections are tried beside one that is silent, and whichever hears the
//! receiver first goes on; only when a connection is declared dead is it given up before.
//!
//! # Anew on the same connection
//!
//! Where one path works there and another one back, no new connection can be made: a handshake needs one
//! path both ways. The connection lives on, but what was on its way when the other directions failed stays
//! where it is: QUIC sends it again only once its path is closed, and that path is needed. So where nothing
//! has moved for a while though the receiver is heard, and a path is ill, the conversation begins anew over
//! new streams, and the receiver says what is missing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairpath_core::Bytes;
use fairpath_quic::{ConnectConfig, Connection, PathState, connect};
use noq::ConnectionError;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::error::SendError;
use crate::progress::Phase;
use crate::send::{Sender, Sent};

/// How long a sender tries to go on by default, and how long a receiver that has everything waits for a
/// sender that does not know it yet. The two are one, so that a sender that goes on trying is answered.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

/// A connection on which nothing came in for this long is silent: at least once a second each path asks
/// for a sign of life, and both ends do.
const SILENT: Duration = Duration::from_millis(2500);

/// How often it is looked whether anything came in.
const LOOK: Duration = Duration::from_millis(100);

/// The shortest and the longest time between two tries at a connection.
const TRY_EVERY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));

/// A try follows the last after this part of the time that has been lost so far: what an outage costs is
/// lengthened by a twentieth at most, and an hour of it costs few packets.
const TRY_SHARE: u32 = 20;

/// How long one try may take at least: two round trips of the slowest links there are.
const TRY_FOR: Duration = Duration::from_secs(3);

/// Nothing moves on a connection that is alive for this long before the conversation begins anew on it, and
/// twice as long each further time. A path is known to be ill after a second.
const STALLED: Duration = Duration::from_secs(4);

/// How often a conversation may begin anew on one connection. The streams of those before may never end.
pub(crate) const RESTARTS_MAX: u32 = 8;

/// When a sender that reconnects never gives up on a connection that is alive, but moves nothing.
const STUCK: Duration = Duration::from_secs(60);

/// What happens to the connection of a delivery.
#[derive(Debug)]
pub enum DeliveryEvent {
    /// The connection ended before its time.
    Lost {
        /// Why, in words that follow "connection lost".
        why: String,
    },
    /// Another connection goes on.
    Connected(Arc<Connection>),
    /// Nothing had moved for a while though the receiver was heard: it goes on over new streams of the same
    /// connection.
    Restarted,
}

impl Sender {
    /// Sends everything, first over `first`, and over new connections to the same receiver when that is
    /// lost, until everything is in place or nothing has moved for `give_up_after`. Zero: over `first` only.
    ///
    /// What happens meanwhile is told to `events`; nobody has to listen.
    ///
    /// # Errors
    ///
    /// As for [`Sender::send`]; and [`SendError::GivenUp`] and [`SendError::Stuck`].
    pub async fn deliver(
        &self,
        first: Arc<Connection>,
        redial: &ConnectConfig,
        give_up_after: Duration,
        events: &mpsc::UnboundedSender<DeliveryEvent>,
    ) -> Result<Sent, SendError> {
        let patience = if give_up_after.is_zero() { STUCK } else { give_up_after };
        let delivery = Delivery { sender: self, redial, give_up_after, events };
        let start = Instant::now();
        tokio::select! {
            delivered = delivery.run(first) => delivered.map(|sent| Sent { elapsed: start.elapsed(), ..sent }),
            () = self.stuck(patience) => Err(SendError::Stuck { patience }),
        }
    }

    /// Waits until nothing has moved for so long while a connection is there.
    async fn stuck(&self, patience: Duration) {
        let progress = self.progress();
        let mut last = (progress.snapshot(), Instant::now());
        loop {
            tokio::time::sleep(LOOK.min(patience)).await;
            let now = progress.snapshot();
            if now != last.0 || now.phase == Phase::Waiting {
                last = (now, Instant::now());
            } else if last.1.elapsed() >= patience {
                return;
            }
        }
    }
}

struct Delivery<'a> {
    sender: &'a Sender,
    redial: &'a ConnectConfig,
    give_up_after: Duration,
    events: &'a mpsc::UnboundedSender<DeliveryEvent>,
}

impl Delivery<'_> {
    async fn run(&self, first: Arc<Connection>) -> Result<Sent, SendError> {
        let mut connection = first;
        let mut reconnections = 0;
        // Since when it has been tried in vain, and how much was in place then: a connection that brings
        // nothing is no reason to begin counting anew.
        let mut in_vain: Option<(Instant, Bytes)> = None;
        let mut restarts = 0;
        loop {
            let next = tokio::select! {
                biased;
                ended = self.sender.send(connection.quic()) => match ended {
                    Ok(sent) => return Ok(Sent { reconnections, ..sent }),
                    Err(error) if self.give_up_after.is_zero() || !is_worth_another(&error, &connection) => return Err(error),
                    Err(error) => {
                        let done = self.sender.progress().snapshot().bytes_done;
                        if in_vain.is_none_or(|(_, before)| done > before) {
                            in_vain = Some((Instant::now(), done));
                        }
                        let since = in_vain.map_or_else(Instant::now, |(since, _)| since);
                        self.instead(&error, since).await?
                    }
                },
                next = self.successor(&connection), if !self.give_up_after.is_zero() => {
                    connection.close(1, "the sender goes on over a newer connection");
                    next
                }
                () = self.stalled(&connection, STALLED * (1 + restarts.min(1))), if restarts < RESTARTS_MAX => {
                    restarts += 1;
                    self.tell(DeliveryEvent::Restarted);
                    continue;
                }
            };
            restarts = 0;
            reconnections += 1;
            connection = Arc::new(next);
            self.tell(DeliveryEvent::Connected(connection.clone()));
        }
    }

    /// A connection in place of one that has ended; `since` then it has been tried in vain.
    async fn instead(&self, error: &SendError, since: Instant) -> Result<Connection, SendError> {
        self.sender.progress().enter(Phase::Waiting);
        let why = match error {
            SendError::PeerGone(why) => why.clone(),
            other => other.to_string(),
        };
        self.tell(DeliveryEvent::Lost { why: why.clone() });
        let patience = self.give_up_after.saturating_sub(since.elapsed());
        let connected = tokio::time::timeout(patience, self.dial(Instant::now())).await;
        let progress = self.sender.progress().snapshot();
        let left = progress.bytes_total.saturating_sub(progress.bytes_done);
        connected.map_err(|_| SendError::GivenUp { after: self.give_up_after, why, left })
    }

    /// Waits until nothing has moved for `long` on a connection whose peer is heard, while one of its paths is
    /// ill. A receiver that is busy with its disk is left in peace.
    async fn stalled(&self, connection: &Connection, long: Duration) {
        let progress = self.sender.progress();
        let moved = || (progress.snapshot().bytes_done, progress.snapshot().phase);
        let mut last = (moved(), heard(connection), Instant::now());
        loop {
            tokio::time::sleep(LOOK).await;
            let is_ill = connection.paths().iter().any(|path| path.state == PathState::Suspected);
            if moved() != last.0 || !is_ill {
                last = (moved(), heard(connection), Instant::now());
            } else if last.2.elapsed() >= long && heard(connection) > last.1 {
                return;
            }
        }
    }

    /// Waits until `connection` is silent, and makes another one, unless it is heard again before.
    async fn successor(&self, connection: &Connection) -> Connection {
        loop {
            let since = silence(connection, SILENT).await;
            tokio::select! {
                next = self.dial(since) => return next,
                () = sound(connection) => {}
            }
        }
    }

    /// Tries again and again, each try beside the ones before, until one gets through.
    async fn dial(&self, lost_since: Instant) -> Connection {
        let mut tries = JoinSet::new();
        loop {
            let wait = (lost_since.elapsed() / TRY_SHARE).clamp(TRY_EVERY.0, TRY_EVERY.1);
            let config = self.redial.clone();
            tries.spawn(tokio::time::timeout(TRY_FOR.max(2 * wait), connect(config)));
            let turn = tokio::time::sleep(wait);
            tokio::pin!(turn);
            loop {
                tokio::select! {
                    () = &mut turn => break,
                    Some(ended) = tries.join_next() => match ended {
                        Ok(Ok(Ok(connection))) => return connection,
                        Ok(Ok(Err(error))) => tracing::debug!(%error, "a try at a new connection failed"),
                        Ok(Err(_)) | Err(_) => {}
                    },
                }
            }
        }
    }

    fn tell(&self, event: DeliveryEvent) {
        // Nobody has to listen.
        let _ = self.events.send(event);
    }
}

/// Whether another connection may bring what this one did not. What the receiver decided stands.
fn is_worth_another(error: &SendError, connection: &Connection) -> bool {
    let by_network = match connection.quic().close_reason() {
        Some(ConnectionError::TimedOut | ConnectionError::Reset | ConnectionError::TransportError(_)) => true,
        // This end has closed it, since it could not be used any more.
        None | Some(ConnectionError::LocallyClosed) => true,
        Some(_) => false,
    };
    by_network && matches!(error, SendError::PeerGone(_))
}

/// Waits until nothing has come in for `long`; since when that is so.
async fn silence(connection: &Connection, long: Duration) -> Instant {
    let mut last = (heard(connection), Instant::now());
    while last.1.elapsed() < long {
        tokio::time::sleep(LOOK).await;
        let now = heard(connection);
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    last.1
}

/// Waits until something comes in.
async fn sound(connection: &Connection) {
    let before = heard(connection);
    while heard(connection) == before {
        tokio::time::sleep(LOOK).await;
    }
}

/// How many datagrams have come in.
fn heard(connection: &Connection) -> u64 {
    connection.quic().stats().udp_rx.datagrams
}
