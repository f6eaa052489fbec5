//! What the two ends of a measurement say to each other, on one bidirectional stream: the client
//! proves the ticket's secret and says who sends (33 bytes), the server answers with one byte; the
//! data flows over lanes; the client says stop (1 byte), the server tells what it received (16 bytes).

use std::time::Duration;

use anyhow::{Context as _, bail};
use fairpath_core::Bytes;
use fairpath_transfer::{Secret, proof};
use noq::{RecvStream, SendStream};

const STOP: u8 = 0x53;
const ADMITTED: u8 = 0x41;
const REFUSED: u32 = 3;

/// Who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The client.
    Upload,
    /// The server.
    Download,
}

/// What the client wants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) direction: Direction,
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
pub(super) async fn ask(quic: &noq::Connection, secret: &Secret, request: Request) -> anyhow::Result<Control> {
    let (mut send, mut receive) = quic.open_bi().await?;
    send.write_all(&proof(quic, secret)?).await?;
    send.write_all(&[u8::from(request.direction == Direction::Download)]).await?;
    let mut answer = [0];
    match receive.read_exact(&mut answer).await {
        Ok(()) if answer[0] == ADMITTED => Ok(Control { send, receive }),
        Ok(()) => bail!("the server answered {:#04x}, which means nothing; are both ends of one version?", answer[0]),
        Err(error) => match quic.close_reason() {
            Some(noq::ConnectionError::ApplicationClosed(close)) => {
                bail!("the server refused: {}", String::from_utf8_lossy(&close.reason))
            }
            _ => Err(error).context("the server did not answer"),
        },
    }
}

/// The server's side of the beginning.
pub(super) async fn accept(quic: &noq::Connection, secret: &Secret) -> anyhow::Result<(Control, Request)> {
    let (mut send, mut receive) = quic.accept_bi().await?;
    let mut shown = [0; 32];
    receive.read_exact(&mut shown).await?;
    // `blake3::Hash` compares in constant time.
    if blake3::Hash::from(shown) != blake3::Hash::from(proof(quic, secret)?) {
        quic.close(REFUSED.into(), b"wrong secret; use the ticket that this server printed");
        bail!("a client came with a wrong secret");
    }
    let mut direction = [0];
    receive.read_exact(&mut direction).await?;
    let direction = match direction[0] {
        0 => Direction::Upload,
        1 => Direction::Download,
        other => bail!("a client asked for direction {other}, which does not exist"),
    };
    send.write_all(&[ADMITTED]).await?;
    Ok((Control { send, receive }, Request { direction }))
}

impl Control {
    /// The client: says stop, and learns what arrived.
    pub(super) async fn stop(&mut self) -> anyhow::Result<Total> {
        self.send.write_all(&[STOP]).await?;
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
