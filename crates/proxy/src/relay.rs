//! The way of a program's bytes between a TCP connection and a stream.
//!
//! Each direction ends by itself. A reset on one side becomes a reset on the other. A connection of which one direction
//! has ended, and on the other of which nothing has moved for an hour, is reset; others may be still for ever.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fairpath::{RecvStream, SendStream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use crate::pace::Pace;
use crate::wire::RESET;

/// How long a connection that is closed in one direction may be still in the other.
const HALF_CLOSED: Duration = Duration::from_secs(60 * 60);

/// The bytes that are read of a TCP connection at once.
const CHUNK: usize = 32 << 10;

/// Caps and counters of what is carried, of the far end for a device.
pub(crate) trait Meter {
    /// Waits until bytes that the program sends may pass, and counts them.
    fn up(&self, bytes: usize) -> impl Future<Output = ()> + Send;
    /// The same of bytes that come to the program.
    fn down(&self, bytes: usize) -> impl Future<Output = ()> + Send;
}

/// Caps in each direction.
impl Meter for (Pace, Pace) {
    async fn up(&self, bytes: usize) {
        self.0.take(bytes).await;
    }

    async fn down(&self, bytes: usize) {
        self.1.take(bytes).await;
    }
}

/// The direction of the bytes that are read of the TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// They come from the program that asked for the connection.
    Program,
    /// They come from its target.
    Target,
}

impl Side {
    /// The other one.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Program => Self::Target,
            Self::Target => Self::Program,
        }
    }
}

/// How a connection is still.
struct Stillness {
    begun: Instant,
    /// When bytes last moved, in milliseconds from then.
    moved_ms: AtomicU64,
    /// Whether one direction has ended.
    is_half: AtomicBool,
}

/// Carries both directions until both have ended, or one of them is reset. `first` was read of the TCP connection before.
pub(crate) async fn relay(
    tcp: TcpStream,
    first: Bytes,
    stream: (SendStream, RecvStream),
    side: Side,
    meter: &impl Meter,
) {
    // Small answers must not wait for others.
    let _ = tcp.set_nodelay(true);
    let (mut read, mut write) = tcp.into_split();
    let (mut send, mut recv) = stream;
    let stillness = Stillness::new(Instant::now());
    let both = async {
        tokio::try_join!(
            outward(&mut read, first, &mut send, side, meter, &stillness),
            inward(&mut recv, &mut write, side, meter, &stillness),
        )
        .is_ok()
    };
    let is_whole = tokio::select! {
        is_whole = both => is_whole,
        () = stillness.is_too_long() => false,
    };
    if !is_whole {
        send.reset(RESET);
        recv.stop(RESET);
        reset(read, write);
    }
}

/// Ends a TCP connection so that its peer knows that not all has come.
fn reset(read: OwnedReadHalf, write: OwnedWriteHalf) {
    // Without lingering the system sends RST. Dropped as usual, the half would say the end of the data before.
    let _ = socket2::SockRef::from(read.as_ref()).set_linger(Some(Duration::ZERO));
    write.forget();
}

/// Resets a TCP connection before anything was carried.
pub(crate) fn reset_whole(tcp: TcpStream) {
    let (read, write) = tcp.into_split();
    reset(read, write);
}

/// Carries what comes from the TCP connection.
async fn outward(
    read: &mut OwnedReadHalf,
    first: Bytes,
    send: &mut SendStream,
    side: Side,
    meter: &impl Meter,
    stillness: &Stillness,
) -> io::Result<()> {
    pass(meter, side, first.len()).await;
    send.write_chunk(first).await?;
    let mut chunk = Vec::new();
    loop {
        read.readable().await?;
        chunk.reserve(CHUNK);
        let length = match read.try_read_buf(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // A connection on which nothing comes holds no memory.
                chunk = Vec::new();
                continue;
            }
            read => read?,
        };
        stillness.note(Instant::now());
        if length == 0 {
            stillness.is_half.store(true, Ordering::Relaxed);
            send.finish()?;
            return Ok(());
        }
        pass(meter, side, length).await;
        send.write_all(&chunk).await?;
        chunk.clear();
    }
}

/// Carries what comes from the stream.
async fn inward(
    recv: &mut RecvStream,
    write: &mut OwnedWriteHalf,
    side: Side,
    meter: &impl Meter,
    stillness: &Stillness,
) -> io::Result<()> {
    while let Some(chunk) = recv.read_chunk(4 * CHUNK).await? {
        stillness.note(Instant::now());
        pass(meter, side.other(), chunk.len()).await;
        write.write_all(&chunk).await?;
    }
    stillness.is_half.store(true, Ordering::Relaxed);
    write.shutdown().await
}

/// Waits until bytes that come from a side may pass, and counts them.
pub(crate) async fn pass(meter: &impl Meter, from: Side, bytes: usize) {
    match from {
        Side::Program => meter.up(bytes).await,
        Side::Target => meter.down(bytes).await,
    }
}

impl Stillness {
    fn new(now: Instant) -> Self {
        Self { begun: now, moved_ms: AtomicU64::new(0), is_half: AtomicBool::new(false) }
    }

    /// Bytes have moved.
    fn note(&self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.begun).as_millis();
        self.moved_ms.store(elapsed.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Waits until the connection has been half closed and still for too long.
    async fn is_too_long(&self) {
        while let Some(pause) = self.left(Instant::now()) {
            tokio::time::sleep(pause).await;
        }
    }

    /// How long to wait before another look; `None` where it has been still for too long.
    fn left(&self, now: Instant) -> Option<Duration> {
        let moved = self.begun + Duration::from_millis(self.moved_ms.load(Ordering::Relaxed));
        let left = HALF_CLOSED.saturating_sub(now.saturating_duration_since(moved));
        match self.is_half.load(Ordering::Relaxed) {
            true if left.is_zero() => None,
            true => Some(left),
            // There is nothing to be late for. When one direction ends, the next look finds it.
            false => Some(HALF_CLOSED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_half_closed_and_still_for_an_hour_is_ended() {
        let begun = Instant::now();
        let stillness = Stillness::new(begun);
        let day = begun + Duration::from_secs(24 * 60 * 60);
        assert!(stillness.left(day).is_some(), "both directions are open");
        stillness.is_half.store(true, Ordering::Relaxed);
        assert_eq!(stillness.left(begun + HALF_CLOSED / 2), Some(HALF_CLOSED / 2));
        assert_eq!(stillness.left(begun + HALF_CLOSED), None);
        stillness.note(begun + HALF_CLOSED);
        assert_eq!(stillness.left(begun + HALF_CLOSED), Some(HALF_CLOSED), "a byte begins the hour anew");
    }
}
