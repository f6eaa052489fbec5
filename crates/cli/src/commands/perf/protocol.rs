//! What the two ends of a measurement say to each other, on one bidirectional stream, once the client
//! has shown the proof of the ticket's secret. The client says who sends (1 byte). The data flows over
//! lanes. The client says stop (1 byte), and the server tells what it received (16 bytes).

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use fairpath_core::Bytes;
use fairpath_transfer::{KnockError, Purpose, Refusal, Secret, SenderId, knock};
use noq::{RecvStream, SendStream};

const STOP: u8 = 0x53;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The client.
    Upload,
    /// The server.
    Download,
}

/// What was received, and in what time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Total {
    pub(super) bytes: Bytes,
    pub(super) elapsed: Duration,
}

/// The control stream of a measurement.
pub(super) struct Control {
    send: SendStream,
    receive: RecvStream,
}

/// The client's side of the beginning.
pub(super) async fn ask(quic: &noq::Connection, secret: &Secret, direction: Direction) -> anyhow::Result<Control> {
    let id = SenderId::generate().context("the system gives no randomness")?;
    let streams = knock(quic, secret, Purpose::Measurement, id).await.map_err(|error| match error {
        KnockError::Refused { refusal: Refusal::WrongPurpose, .. } => anyhow!(
            "this ticket is not from `fairpath perf server`; what `fairpath recv` prints is for `fairpath send`"
        ),
        KnockError::Refused { words, .. } => anyhow!("the server refused: {words}"),
        KnockError::Gone(error) => anyhow!("the server did not answer: {error}"),
    })?;
    let mut control = Control::new(streams);
    let direction = [u8::from(direction == Direction::Download)];
    control.send.write_all(&direction).await.context("the server is gone")?;
    Ok(control)
}

impl Control {
    /// The control stream on which the peer was let in.
    pub(super) fn new((send, receive): (SendStream, RecvStream)) -> Self {
        Self { send, receive }
    }

    /// The server: what the client wants.
    pub(super) async fn asked(&mut self) -> anyhow::Result<Direction> {
        let mut direction = [0];
        self.receive.read_exact(&mut direction).await.context("the client left without asking for anything")?;
        match direction[0] {
            0 => Ok(Direction::Upload),
            1 => Ok(Direction::Download),
            other => bail!("the client asked for direction {other}, which does not exist"),
        }
    }

    /// The client: says stop, and learns what arrived.
    pub(super) async fn stop(&mut self) -> anyhow::Result<Total> {
        self.send.write_all(&[STOP]).await.context("the server is gone")?;
        let mut total = [0; 16];
        self.receive.read_exact(&mut total).await.context("the server did not tell what it received")?;
        let (bytes, nanos) = total.split_at(8);
        Ok(Total {
            bytes: Bytes::new(u64::from_be_bytes(bytes.try_into()?)),
            elapsed: Duration::from_nanos(u64::from_be_bytes(nanos.try_into()?)),
        })
    }

    /// The server: waits until the client says stop.
    pub(super) async fn stopped(&mut self) -> anyhow::Result<()> {
        let mut stop = [0];
        self.receive.read_exact(&mut stop).await.context("the client left without saying stop")
    }

    /// The server: tells what it received.
    pub(super) async fn tell(&mut self, total: Total) -> anyhow::Result<()> {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&total.bytes.get().to_be_bytes());
        let nanos = u64::try_from(total.elapsed.as_nanos()).unwrap_or(u64::MAX);
        message[8..].copy_from_slice(&nanos.to_be_bytes());
        self.send.write_all(&message).await?;
        let _ = self.send.finish();
        Ok(())
    }
}
