//! The protocol of a stream, in messages, once the sender has proved that it knows the ticket's secret.
//! The sender tells the number of flows (1 byte) and the deadline in ms (2 bytes, big-endian). The
//! receiver says go (1 byte), or closes the connection with a reason. Later the sender tells new
//! deadlines (2 bytes).

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use fairpath_quic::{Connection, ConnectionError};
use fairpath_transfer::{AuthenticationError, Purpose, Refusal, Secret, SenderId, authenticate, printable};

/// The code with which a receiver closes a connection whose flows are not as many as its own.
const NOT_AS_MANY: u32 = 3;

const GO: &[u8] = b"G";

/// Why the sender's side did not begin.
pub(super) enum NotBegun {
    /// It will not begin the next time either.
    Refused(anyhow::Error),
    /// The connection was lost.
    Lost(anyhow::Error),
}

/// The sender's side of the beginning.
pub(super) async fn ask(
    connection: &Connection,
    secret: &Secret,
    id: SenderId,
    flows: usize,
    deadline: Duration,
) -> Result<(), NotBegun> {
    authenticate(connection, secret, Purpose::Stream, id).await.map_err(|error| match error {
        AuthenticationError::Refused { refusal: Refusal::WrongPurpose, .. } => NotBegun::Refused(anyhow!(
            "this ticket is not from `fairpath stream recv`; what `fairpath recv` prints is for `fairpath send`"
        )),
        // A connection of this sender that was lost may not have ended there yet.
        AuthenticationError::Refused { refusal: Refusal::Used, words } => {
            NotBegun::Lost(anyhow!("the receiver refused: {words}"))
        }
        AuthenticationError::Refused { words, .. } => NotBegun::Refused(anyhow!("the receiver refused: {words}")),
        AuthenticationError::Gone(error) => NotBegun::Lost(anyhow!("the receiver did not answer: {error}")),
    })?;
    let [high, low] = millis(deadline);
    connection.send_message(vec![flows as u8, high, low].into()).await.map_err(|error| NotBegun::Lost(error.into()))?;
    match connection.recv_message().await {
        Ok(message) if &*message == GO => Ok(()),
        Ok(_) => Err(NotBegun::Refused(anyhow!("the receiver does not speak this version: update the older end"))),
        Err(ConnectionError::ApplicationClosed(close)) if close.error_code == NOT_AS_MANY.into() => {
            Err(NotBegun::Refused(anyhow!("{}", printable(&String::from_utf8_lossy(&close.reason)))))
        }
        Err(error) => Err(NotBegun::Lost(error.into())),
    }
}

/// The receiver's side: the deadline of a sender that has as many flows.
pub(super) async fn answer(connection: &Connection, flows: usize) -> anyhow::Result<Duration> {
    let hello = connection.recv_message().await.context("the sender left without a word")?;
    let [theirs, high, low] = *hello else { bail!("the sender does not speak this version: update the older end") };
    if usize::from(theirs) != flows {
        let words = format!("the sender has {theirs} flows, and the receiver {flows}: give as many --from as --to");
        connection.end(NOT_AS_MANY, &words).await;
        bail!("{words}");
    }
    connection.send_message(GO.into()).await.context("the sender is gone")?;
    Ok(time([high, low]))
}

/// Tells the receiver of a new deadline.
pub(super) async fn tell(connection: &Connection, deadline: Duration) {
    // A peer that is gone needs no deadline.
    let _ = connection.send_message(millis(deadline).to_vec().into()).await;
}

/// The next deadline of the sender. May be given up at any time.
pub(super) async fn told(connection: &Connection) -> Option<Duration> {
    let message = connection.recv_message().await.ok()?;
    Some(time((&*message).try_into().ok()?))
}

fn millis(deadline: Duration) -> [u8; 2] {
    u16::try_from(deadline.as_millis()).unwrap_or(u16::MAX).to_be_bytes()
}

fn time(millis: [u8; 2]) -> Duration {
    Duration::from_millis(u16::from_be_bytes(millis).into())
}
