//! The protocol of a measurement, in messages, once the client has proved that it knows the ticket's
//! secret. The client says who sends (1 byte). The data are records. The client says stop (1 byte), and
//! the server tells how much it received and in what time (16 bytes).

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use fairpath_core::ByteCount;
use fairpath_quic::Connection;
use fairpath_transfer::{AuthenticationError, ProtocolError, Purpose, Refusal, Secret, SenderId, authenticate};

const STOP: u8 = 0x53;

/// The end that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The client.
    Upload,
    /// The server.
    Download,
}

/// The bytes received, and the time they took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub(super) bytes: ByteCount,
    pub(super) elapsed: Duration,
}

/// The conversation of a measurement.
pub(super) struct Control(Connection);

/// The client's side of the beginning.
pub(super) async fn ask(connection: &Connection, secret: &Secret, direction: Direction) -> anyhow::Result<Control> {
    let id = SenderId::generate().context("the system gives no randomness")?;
    authenticate(connection, secret, Purpose::Measurement, id).await.map_err(|error| match error {
        AuthenticationError::Refused { refusal: Refusal::WrongPurpose, .. } => anyhow!(
            "this ticket is not from `fairpath perf server`; what `fairpath recv` prints is for `fairpath send`"
        ),
        AuthenticationError::Refused { words, .. } => anyhow!("the server refused: {words}"),
        AuthenticationError::Gone(error) => anyhow!("the server did not answer: {error}"),
    })?;
    let control = Control::new(connection);
    control.say(&[u8::from(direction == Direction::Download)]).await.context("the server is gone")?;
    Ok(control)
}

impl Control {
    /// The conversation on a connection whose peer was let in.
    pub(super) fn new(connection: &Connection) -> Self {
        Self(connection.clone())
    }

    /// The server: what the client wants.
    pub(super) async fn asked(&self) -> anyhow::Result<Direction> {
        match self.hear().await.context("the client left without asking for anything")? {
            [0] => Ok(Direction::Upload),
            [1] => Ok(Direction::Download),
            [other] => bail!("the client asked for direction {other}, which does not exist"),
        }
    }

    /// The client: says stop, and learns what arrived.
    pub(super) async fn stop(&self) -> anyhow::Result<Total> {
        self.say(&[STOP]).await.context("the server is gone")?;
        let total: [u8; 16] = self.hear().await.context("the server did not tell what it received")?;
        let (bytes, nanos) = total.split_at(8);
        Ok(Total {
            bytes: ByteCount::new(u64::from_be_bytes(bytes.try_into()?)),
            elapsed: Duration::from_nanos(u64::from_be_bytes(nanos.try_into()?)),
        })
    }

    /// The server: waits until the client says stop.
    pub(super) async fn stopped(&self) -> anyhow::Result<()> {
        match self.hear().await.context("the client left without saying stop")? {
            [STOP] => Ok(()),
            [other] => bail!("the client said {other} where it could only say stop"),
        }
    }

    /// The server: tells what it received.
    pub(super) async fn tell(&self, total: Total) -> anyhow::Result<()> {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&total.bytes.get().to_be_bytes());
        let nanos = u64::try_from(total.elapsed.as_nanos()).unwrap_or(u64::MAX);
        message[8..].copy_from_slice(&nanos.to_be_bytes());
        Ok(self.say(&message).await?)
    }

    async fn say(&self, message: &[u8]) -> Result<(), ProtocolError> {
        Ok(self.0.send_message(message.to_vec().into()).await?)
    }

    /// The next message, which has to be so long.
    async fn hear<const LENGTH: usize>(&self) -> Result<[u8; LENGTH], ProtocolError> {
        let message = self.0.recv_message().await?;
        <[u8; LENGTH]>::try_from(&*message).map_err(|_| ProtocolError::Malformed)
    }
}
