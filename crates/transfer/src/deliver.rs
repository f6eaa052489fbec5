//! One transfer over as many connections as it takes.
//!
//! A connection dies with its last link, or with a process; the transfer need not. What the receiver has
//! it keeps, and it knows the sender again, so a new connection goes on where the old one stopped.
//!
//! # Beside, not after
//!
//! QUIC probes a silent peer at growing intervals, up to several seconds apart after ten seconds of
//! silence. So a connection whose links are back may lie still for as long again. For this reason
//! new connections are tried beside one that is silent, and the first that hears the receiver goes
//! on. An older one is given up before that only if it is declared dead.

use std::time::Duration;

use fairpath_core::ByteCount;
use fairpath_quic::{ConnectConfig, Connection, ConnectionError, Pauses, connect};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::admission::Refusal;
use crate::error::SendError;
use crate::progress::Phase;
use crate::send::{Sender, Sent};

/// With this code a receiver closes a connection that ends for now, and will be there again with the same ticket.
pub const COMES_BACK: u32 = 0x1f1;

/// How long a sender tries to go on by default, and how long a receiver that has everything waits for a
/// sender that does not know it yet. The two are one, so that a sender that goes on trying is answered.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

/// How often it is looked whether anything came in.
const LOOK: Duration = Duration::from_millis(100);

/// When a sender that reconnects never gives up on a connection that is alive, but moves nothing.
const STUCK: Duration = Duration::from_secs(60);

/// An event of the connection of a delivery.
#[derive(Debug)]
pub enum DeliveryEvent {
    /// The connection ended before its time.
    Lost {
        /// Why, in words that follow "connection lost".
        why: String,
    },
    /// Another connection goes on.
    Connected(Connection),
    /// The receiver serves another sender; it is asked again until it has time. Told once.
    Busy,
}

impl Sender {
    /// Sends everything, first over `first`, and over new connections to the same receiver when that is
    /// lost, until everything is in place or nothing has moved for `give_up_after`. Zero: over `first` only.
    ///
    /// Events are told to `events`; nobody has to listen.
    ///
    /// # Errors
    ///
    /// As for [`Sender::send`]; and [`SendError::GivenUp`] and [`SendError::Stuck`].
    pub async fn deliver(
        &self,
        first: Connection,
        redial: &ConnectConfig,
        give_up_after: Duration,
        events: &mpsc::UnboundedSender<DeliveryEvent>,
    ) -> Result<Sent, SendError> {
        let patience = if give_up_after.is_zero() { STUCK } else { give_up_after };
        let delivery = Delivery { sender: self, redial, give_up_after, events };
        let start = Instant::now();
        let delivered = tokio::select! {
            biased;
            delivered = delivery.run(first) => delivered.map(|sent| Sent { elapsed: start.elapsed().saturating_sub(self.waited()), ..sent }),
            () = self.stuck(patience) => Err(SendError::Stuck { patience }),
        };
        delivered.map_err(|error| match error {
            SendError::PeerGone(_) | SendError::GivenUp { .. } if self.selection().streams() > 0 => {
                SendError::BrokeOff(why(&error))
            }
            error => error,
        })
    }

    /// Waits until a connected transfer has not moved for `patience`; a person's decision may take
    /// any time.
    async fn stuck(&self, patience: Duration) {
        let progress = self.progress();
        let mut last = (progress.snapshot(), Instant::now());
        loop {
            tokio::time::sleep(LOOK.min(patience)).await;
            let now = progress.snapshot();
            if now != last.0 || matches!(now.phase, Phase::Waiting | Phase::Asking) || now.is_patient {
                last = (now, Instant::now());
            } else if last.1.elapsed() >= patience {
                return;
            }
        }
    }
}

/// Why the last connection ended.
fn why(error: &SendError) -> String {
    match error {
        SendError::PeerGone(why) | SendError::GivenUp { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

struct Delivery<'a> {
    sender: &'a Sender,
    redial: &'a ConnectConfig,
    give_up_after: Duration,
    events: &'a mpsc::UnboundedSender<DeliveryEvent>,
}

impl Delivery<'_> {
    async fn run(&self, first: Connection) -> Result<Sent, SendError> {
        let mut connection = first;
        let mut reconnections = 0;
        // Since when it has been tried in vain, and how much was in place then: a connection that brings
        // nothing is no reason to begin counting anew.
        let mut in_vain: Option<(Instant, ByteCount)> = None;
        let mut pause = None;
        let mut is_busy_told = false;
        loop {
            let began = Instant::now();
            let next = tokio::select! {
                biased;
                ended = self.sender.send(&connection) => match ended {
                    Ok(sent) => return Ok(Sent { reconnections, ..sent }),
                    Err(SendError::Refused { refusal: Refusal::Busy, .. }) if !self.give_up_after.is_zero() => {
                        if !std::mem::replace(&mut is_busy_told, true) {
                            self.tell(DeliveryEvent::Busy);
                        }
                        let since = Instant::now();
                        let next = self.turn(&connection).await?;
                        self.sender.has_waited_since(since);
                        self.tell(DeliveryEvent::Connected(next.clone()));
                        connection = next;
                        continue;
                    }
                    Err(error) if self.give_up_after.is_zero() || !is_worth_another(&error, &connection) => return Err(error),
                    Err(error) => {
                        let done = self.sender.progress().snapshot().bytes_done;
                        if in_vain.is_none_or(|(_, before)| done > before) {
                            in_vain = Some((Instant::now(), done));
                        }
                        let since = in_vain.map_or_else(Instant::now, |(since, _)| since);
                        pause = pause_after(began.elapsed(), pause, &self.sender.resumption.pauses);
                        self.instead(&error, since, (&connection, pause.unwrap_or_default())).await?
                    }
                },
                next = self.successor(&connection), if !self.give_up_after.is_zero() => {
                    connection.close(1, "the sender goes on over a newer connection");
                    next
                }
            };
            reconnections += 1;
            connection = next;
            self.tell(DeliveryEvent::Connected(connection.clone()));
        }
    }

    /// A connection to a receiver that serves another sender: it may have time now, and says if it has not. Nobody
    /// gives up on a receiver that answers.
    async fn turn(&self, refused: &Connection) -> Result<Connection, SendError> {
        self.sender.progress().enter(Phase::Waiting);
        tokio::time::sleep(self.sender.resumption.pauses.first).await;
        let dialled = tokio::time::timeout(self.give_up_after, self.dial(refused)).await;
        match dialled {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(never)) => Err(SendError::NoOther { why: "the receiver was busy".into(), never: Box::new(never) }),
            Err(_) => {
                let (after, left) = (self.give_up_after, self.sender.progress().snapshot().bytes_total);
                Err(SendError::GivenUp { after, why: "the receiver was busy, and then no longer there".into(), left })
            }
        }
    }

    /// A connection in place of one that has ended, tried after a pause; `since` then it has been tried in vain.
    async fn instead(
        &self,
        error: &SendError,
        since: Instant,
        (ended, pause): (&Connection, Duration),
    ) -> Result<Connection, SendError> {
        self.sender.progress().enter(Phase::Waiting);
        let why = why(error);
        self.tell(DeliveryEvent::Lost { why: why.clone() });
        let patience = self.give_up_after.saturating_sub(since.elapsed());
        let dialled = async {
            tokio::time::sleep(pause).await;
            self.dial(ended).await
        };
        let connected = match tokio::time::timeout(patience, dialled).await {
            Ok(Err(never)) => return Err(SendError::NoOther { why, never: Box::new(never) }),
            Ok(Ok(connection)) => Ok(connection),
            Err(late) => Err(late),
        };
        let progress = self.sender.progress().snapshot();
        let left = progress.bytes_total.saturating_sub(progress.bytes_done);
        connected.map_err(|_| SendError::GivenUp { after: self.give_up_after, why, left })
    }

    /// Waits until `connection` is silent, and makes another one, unless it is heard again before.
    async fn successor(&self, connection: &Connection) -> Connection {
        loop {
            silence(connection, self.sender.resumption.silent).await;
            if connection.close_reason().is_some() {
                // The conversation on it learns of the end by itself, and says what becomes of it.
                return std::future::pending().await;
            }
            let next = tokio::select! {
                biased;
                () = sound(connection) => continue,
                next = self.dial(connection) => match next {
                    Ok(next) => next,
                    // The one that is silent may be heard again.
                    Err(_) => return std::future::pending().await,
                },
            };
            if self.sender.progress().snapshot().phase == Phase::Done {
                // The receiver may have ended: it would tell another connection nothing of what it told this one.
                return std::future::pending().await;
            }
            return next;
        }
    }

    /// Tries until one gets through or none ever will, also at the addresses that the receiver told of over the
    /// connection before.
    async fn dial(&self, before: &Connection) -> Result<Connection, fairpath_quic::Error> {
        let attempt = || {
            let mut config = self.redial.clone();
            config.remotes.extend(before.peer_addresses());
            async move {
                match connect(config).await {
                    Err(error) if !error.is_lasting() => {
                        tracing::debug!(%error, "a try at a new connection failed");
                        None
                    }
                    settled => Some(settled),
                }
            }
        };
        self.sender.resumption.pauses.until(attempt).await
    }

    fn tell(&self, event: DeliveryEvent) {
        // Nobody has to listen.
        let _ = self.events.send(event);
    }
}

/// The pause after a connection that lasted for `lived`, where `before` came before it. A connection that lasted no
/// longer than the longest pause is no reason to begin anew: what ended it may end the next one as soon. After the first
/// such one there is none, as most outages are over with one.
fn pause_after(lived: Duration, before: Option<Duration>, pauses: &Pauses) -> Option<Duration> {
    (lived < pauses.longest).then(|| before.map_or(Duration::ZERO, |before| pauses.after(before)))
}

/// Whether another connection may bring what this one did not. What the receiver decided stands, but for what it did
/// not hear in time: a host that stood still, or a link that did.
fn is_worth_another(error: &SendError, connection: &Connection) -> bool {
    if matches!(error, SendError::Refused { refusal: Refusal::Late, .. }) {
        return true;
    }
    let by_network = match connection.close_reason() {
        Some(ConnectionError::TimedOut | ConnectionError::Reset | ConnectionError::TransportError(_)) => true,
        // This end has closed it, since it could not be used any more.
        None | Some(ConnectionError::LocallyClosed) => true,
        Some(ConnectionError::ApplicationClosed(close)) => close.error_code == COMES_BACK.into(),
        Some(_) => false,
    };
    by_network && matches!(error, SendError::PeerGone(_))
}

/// Waits until nothing has come in for `long`.
async fn silence(connection: &Connection, long: Duration) {
    let mut last = (connection.datagrams_received(), Instant::now());
    while last.1.elapsed() < long {
        tokio::time::sleep(LOOK).await;
        let now = connection.datagrams_received();
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
}

/// Waits until something comes in.
async fn sound(connection: &Connection) {
    let before = connection.datagrams_received();
    while connection.datagrams_received() == before {
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_loses_one_short_connection_after_another_tries_ever_less_often() {
        let pauses = Pauses { first: Duration::from_millis(500), growth: 1.0, longest: Duration::from_secs(5) };
        let mut pause = None;
        let mut after = |lived| {
            pause = pause_after(Duration::from_secs(lived), pause, &pauses);
            pause.unwrap_or_default().as_secs_f64()
        };
        assert_eq!([(); 7].map(|()| after(1)), [0.0, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]);
        assert_eq!([after(6), after(1), after(1)], [0.0, 0.0, 0.5]);
    }
}
