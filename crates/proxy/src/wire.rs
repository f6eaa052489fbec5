//! The beginning of each stream: what it is for, and the answer.
//!
//! The end that opens a stream says a byte for the purpose and a target in SOCKS5's form. The other end answers with a
//! byte, 0 where the stream is joined to its target, or the number of a [`RefusalKind`], and a sentence with a byte for its
//! length. Then the bytes of the program's connection follow, in both directions.

use fairpath::{RecvStream, SendStream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::refusal::{Refusal, RefusalKind};
use crate::target::{BadTarget, TARGET_MAX, Target};

/// The purpose of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A TCP connection to the target.
    Connect = 1,
    /// Connections that come to a port of the far end are wanted at the near end.
    Reverse = 2,
    /// A connection that came to such a port; the target names its forward.
    Arrival = 3,
    /// Packets of UDP.
    Packets = 4,
    /// Bytes that mean nothing, to measure a rate.
    Measure = 5,
    /// Packets that come to a port of the far end are wanted at the near end.
    ReversePackets = 6,
    /// Packets of a host that sent to such a port; the target is the host, and two numbers follow: of the forward, and of the
    /// association.
    ArrivalPackets = 7,
}

/// The way of the bytes of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// To the device.
    Down = 0,
    /// From the device.
    Up = 1,
}

/// How long a last answer may take to arrive.
const ARRIVED: std::time::Duration = std::time::Duration::from_secs(10);

/// The code with which a stream is reset where the program's connection was.
pub(crate) const RESET: u64 = 1;

impl Purpose {
    fn from_code(code: u8) -> Option<Self> {
        let all = [
            Self::Connect,
            Self::Reverse,
            Self::Arrival,
            Self::Packets,
            Self::Measure,
            Self::ReversePackets,
            Self::ArrivalPackets,
        ];
        all.into_iter().find(|one| *one as u8 == code)
    }
}

/// The first bytes of a stream.
pub(crate) fn header(purpose: Purpose, target: &Target) -> Vec<u8> {
    let mut header = vec![purpose as u8];
    target.encode(&mut header);
    header
}

/// Reads the first bytes of a stream that the peer opened. `None` where it ended before, or says what is not understood.
pub(crate) async fn read_header(recv: &mut RecvStream) -> Option<Result<(Purpose, Target), BadTarget>> {
    let mut bytes = [0; 1 + TARGET_MAX];
    let mut length = 0;
    loop {
        // Byte after byte: what follows the header belongs to the program.
        recv.read_exact(&mut bytes[length..length + 1]).await.ok()?;
        length += 1;
        let purpose = Purpose::from_code(bytes[0])?;
        match Target::decode(&bytes[1..length]) {
            Ok(Some((target, _))) => return Some(Ok((purpose, target))),
            Ok(None) if length < bytes.len() => {}
            Ok(None) => return None,
            Err(bad) => return Some(Err(bad)),
        }
    }
}

/// Answers to a header.
pub(crate) async fn answer(send: &mut SendStream, answer: &Result<(), Refusal>) -> std::io::Result<()> {
    let (code, words) = match answer {
        Ok(()) => (0, ""),
        Err(Refusal { kind, words }) => (*kind as u8, words.as_str()),
    };
    let words = &words.as_bytes()[..words.floor_char_boundary_at(255)];
    send.write_all(&[&[code, words.len() as u8], words].concat()).await
}

/// Ends a stream after its answer, which is to arrive.
pub(crate) async fn finish(mut send: SendStream) {
    if send.finish().is_ok() {
        let _ = tokio::time::timeout(ARRIVED, send.arrived()).await;
    }
}

/// Reads the answer of the peer.
pub(crate) async fn read_answer(recv: &mut RecvStream) -> Result<(), Refusal> {
    let lost = |error: std::io::Error| Refusal::new(RefusalKind::NotConnected, format!("the far end is gone: {error}"));
    let mut head = [0; 2];
    recv.read_exact(&mut head).await.map_err(lost)?;
    let mut words = vec![0; head[1].into()];
    recv.read_exact(&mut words).await.map_err(lost)?;
    match head[0] {
        0 => Ok(()),
        code => {
            let words = fairpath_transfer::printable(&String::from_utf8_lossy(&words));
            Err(Refusal { kind: RefusalKind::from_code(code), words })
        }
    }
}

/// Cuts a text where a character ends.
trait Cut {
    /// The last end of a character that is not behind `most` bytes.
    fn floor_char_boundary_at(&self, most: usize) -> usize;
}

impl Cut for str {
    fn floor_char_boundary_at(&self, most: usize) -> usize {
        (0..=most.min(self.len())).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
}
