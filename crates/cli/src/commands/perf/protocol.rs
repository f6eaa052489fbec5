//! What the two ends of a measurement say to each other, on one bidirectional stream. The client
//! greets: `FPM`, a version (1 byte), the proof of the ticket's secret (32 bytes), who sends (1 byte).
//! The server answers with one byte. The data flows over lanes. The client says stop (1 byte), and the
//! server tells what it received (16 bytes).
//!
//! The greeting has its proof where that of a transfer has it, and other letters before it, so that
//! each end knows a peer of the other kind at once.

use std::time::Duration;

use anyhow::{Context as _, bail};
use fairpath_core::Bytes;
use fairpath_transfer::{AdmissionError, Secret, proof};
use noq::{RecvStream, SendStream};

use crate::ends::{NO_FILES, closed_by_peer};

const MAGIC: &[u8; 3] = b"FPM";
const VERSION: u8 = 1;
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

/// Why a client was not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("a client came with a wrong secret")]
    WrongSecret,
    #[error("a client asked for nothing in time")]
    Silent,
    #[error("a peer wants no measurement: `fairpath send` needs the ticket of `fairpath recv`")]
    WrongKind,
    #[error("a client speaks version {0} of the protocol, this program version {VERSION}: update the older end")]
    Version(u8),
    #[error("a client asked for direction {0}, which does not exist")]
    Direction(u8),
    #[error("a client left before it was let in: {0}")]
    Gone(#[from] noq::ConnectionError),
    #[error("a client left before it was let in: {0}")]
    Unread(#[from] noq::ReadExactError),
    #[error("a client left before it was let in: {0}")]
    Unwritten(#[from] noq::WriteError),
    #[error(transparent)]
    Proof(#[from] AdmissionError),
}

impl Refused {
    /// With which words the client is sent away.
    fn answer(&self) -> &'static str {
        match self {
            Self::WrongSecret => "the secret in the ticket is wrong: use the ticket that the server shows",
            Self::WrongKind => NO_FILES,
            Self::Version(_) => "the two ends speak different versions: update the older one",
            _ => "the greeting could not be understood",
        }
    }
}

/// The client's side of the beginning.
pub(super) async fn ask(quic: &noq::Connection, secret: &Secret, request: Request) -> anyhow::Result<Control> {
    let (mut send, mut receive) = quic.open_bi().await?;
    // Before the lanes, which never run out of data. Fails only for a stream that is closed.
    let _ = send.set_priority(1);
    let mut greeting = [0; 37];
    greeting[..3].copy_from_slice(MAGIC);
    greeting[3] = VERSION;
    greeting[4..36].copy_from_slice(&proof(quic, secret)?);
    greeting[36] = u8::from(request.direction == Direction::Download);
    let mut answer = [0];
    let answered = match send.write_all(&greeting).await {
        Ok(()) => receive.read_exact(&mut answer).await.context("the server did not answer"),
        Err(error) => Err(error).context("the server did not listen"),
    };
    match answered {
        Ok(()) if answer[0] == ADMITTED => Ok(Control { send, receive }),
        // A receiver of files answers in its own way.
        Ok(()) => {
            quic.close(REFUSED.into(), b"this is `fairpath perf client`: it sends no files");
            bail!("this ticket is not from `fairpath perf server`; what `fairpath recv` prints is for `fairpath send`")
        }
        Err(error) => match closed_by_peer(quic) {
            Some(words) => bail!("the server refused: {words}"),
            None => Err(error),
        },
    }
}

/// The server's side of the beginning. Whom it does not let in it sends away with a reason.
pub(super) async fn accept(quic: &noq::Connection, secret: &Secret) -> Result<(Control, Request), Refused> {
    let accepted = greeted(quic, secret).await;
    if let Err(refused) = &accepted {
        quic.close(REFUSED.into(), refused.answer().as_bytes());
    }
    accepted
}

async fn greeted(quic: &noq::Connection, secret: &Secret) -> Result<(Control, Request), Refused> {
    let (mut send, mut receive) = quic.accept_bi().await?;
    let _ = send.set_priority(1);
    let (mut head, mut shown, mut direction) = ([0; 4], [0; 32], [0]);
    receive.read_exact(&mut head).await?;
    if &head[..3] != MAGIC {
        return Err(Refused::WrongKind);
    }
    if head[3] != VERSION {
        return Err(Refused::Version(head[3]));
    }
    receive.read_exact(&mut shown).await?;
    // `blake3::Hash` compares in constant time.
    if blake3::Hash::from(shown) != blake3::Hash::from(proof(quic, secret)?) {
        return Err(Refused::WrongSecret);
    }
    receive.read_exact(&mut direction).await?;
    let direction = match direction[0] {
        0 => Direction::Upload,
        1 => Direction::Download,
        other => return Err(Refused::Direction(other)),
    };
    send.write_all(&[ADMITTED]).await?;
    Ok((Control { send, receive }, Request { direction }))
}

impl Control {
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
