//! Streams of a connection, as tokio has them: reliable bytes in order, both ways.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fairpath_quic_core::Connection as Core;
use fairpath_quic_core::streams::{Read, StreamError, StreamId, StreamKind, Streams, StreamsConfig};
use noq_proto::ConnectionError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::{Connection, until};
use crate::driver::Handle;

/// The code of a half that was dropped before its end.
pub const DROPPED: u64 = 0;

/// No more is copied of a write at once, in bytes: a stream may have room for little of it.
const WRITE_MAX: usize = 256 << 10;

/// Why something cannot be done with a stream. Inside an [`io::Error`] it is found by `get_ref` and `downcast_ref`.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamFault {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// The stream ended.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

impl From<StreamFault> for io::Error {
    fn from(fault: StreamFault) -> Self {
        let kind = match &fault {
            StreamFault::Connection(_) => io::ErrorKind::NotConnected,
            StreamFault::Stream(StreamError::Reset(_) | StreamError::Stopped(_)) => io::ErrorKind::ConnectionReset,
            StreamFault::Stream(_) => io::ErrorKind::BrokenPipe,
        };
        Self::new(kind, fault)
    }
}

impl Connection {
    /// From now on the peer may open streams, and this end where the peer does the same.
    pub fn begin_streams(&self, config: StreamsConfig) {
        self.with(|connection, _| connection.begin_streams(config));
        self.shared().nudge();
    }

    /// Opens a stream that the peer sees as one of this kind. Waits while the peer allows no more, for ever where it never
    /// calls [`Connection::begin_streams`].
    ///
    /// Cancellation safety: no stream is opened where this is given up before it is ready.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    pub async fn open_bi(&self, kind: StreamKind) -> Result<(SendStream, RecvStream), ConnectionError> {
        let attempt = || self.attempt_streams(|streams| streams.open(kind));
        let id = until(self.shared(), &self.link().streams.may_open, attempt).await?;
        self.shared().nudge();
        Ok(self.halves(id))
    }

    /// The next stream that the peer opens, with its kind.
    ///
    /// Cancellation safety: no stream is lost where this is given up before it is ready.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    pub async fn accept_bi(&self) -> Result<(StreamKind, SendStream, RecvStream), ConnectionError> {
        let attempt = || self.attempt_streams(Streams::accept);
        let (id, kind) = until(self.shared(), &self.link().streams.opened, attempt).await?;
        let (send, recv) = self.halves(id);
        Ok((kind, send, recv))
    }

    fn attempt_streams<T>(&self, act: impl FnOnce(&mut Streams) -> Option<T>) -> Option<Result<T, ConnectionError>> {
        let done = self.with(|connection, now| match connection.close_reason() {
            Some(reason) => Some(Err(reason.clone())),
            None => act(connection.streams(now)).map(Ok),
        });
        done.unwrap_or_else(|| Some(Err(ConnectionError::LocallyClosed)))
    }

    fn halves(&self, id: StreamId) -> (SendStream, RecvStream) {
        let handle = self.handle().clone();
        handle.link.streams.note_writer(id);
        let recv = RecvStream { handle: handle.clone(), id, is_over: false };
        (SendStream { handle, id, is_over: false, is_reset: false }, recv)
    }
}

/// The half of a stream that is written to.
///
/// Written bytes leave by themselves; flushing does nothing. [`SendStream::finish`] or `shutdown` says that it was all.
/// Dropped before that, the half is reset with code [`DROPPED`]. As long as a half is there the connection stays open; when
/// the last of them and of the [`Connection`]s is dropped it is closed, and what did not arrive is lost: see
/// [`SendStream::arrived`].
///
/// Cancellation safety: `write` has written nothing where it is given up before it is ready. `write_all` may have written
/// a part of its data.
#[derive(Debug)]
pub struct SendStream {
    handle: Arc<Handle>,
    id: StreamId,
    /// Whether it was said how it ends.
    is_over: bool,
    is_reset: bool,
}

/// The half of a stream that is read from. Dropped before its end, the peer is asked to stop with code [`DROPPED`].
///
/// Cancellation safety: `read` has read nothing where it is given up before it is ready. `read_exact` and
/// `read_to_end` may have read a part.
#[derive(Debug)]
pub struct RecvStream {
    handle: Arc<Handle>,
    id: StreamId,
    is_over: bool,
}

/// Does something with the streams of a connection.
fn with<T>(
    handle: &Handle,
    act: impl FnOnce(&mut Core, std::time::Instant) -> Poll<Result<T, StreamFault>>,
) -> Poll<Result<T, StreamFault>> {
    let gone = || Poll::Ready(Err(ConnectionError::LocallyClosed.into()));
    handle.shared.with(&handle.link, act).unwrap_or_else(gone)
}

/// Why nothing can be sent any more.
fn closed(connection: &Core) -> Result<(), StreamFault> {
    connection.close_reason().map_or(Ok(()), |reason| Err(reason.clone().into()))
}

impl SendStream {
    /// The name of the stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// No more is written: the peer reads the end after all that was.
    ///
    /// # Errors
    ///
    /// Where the half or the connection has ended already.
    pub fn finish(&mut self) -> Result<(), StreamFault> {
        self.is_over = true;
        self.do_with(|streams, id| streams.finish(id))
    }

    /// Gives up: the peer's reader gets `code` in place of all that it has not read.
    pub fn reset(&mut self, code: u64) {
        (self.is_over, self.is_reset) = (true, true);
        // Where the connection ended, so has the stream.
        let _ = self.do_with(|streams, id| {
            streams.reset(id, code);
            Ok(())
        });
    }

    /// Waits until the peer has all that was written, and its end after [`SendStream::finish`]. That its program has
    /// read it, only an answer says.
    ///
    /// Cancellation safety: it may be given up at any time.
    ///
    /// # Errors
    ///
    /// Where the peer stopped reading, or the stream was reset or the connection ended before.
    pub async fn arrived(&mut self) -> Result<(), StreamFault> {
        let (id, wakers) = (self.id, &self.handle.link.streams);
        std::future::poll_fn(|cx| {
            with(&self.handle, |connection, now| {
                if wakers.is_finished(id) {
                    return Poll::Ready(Ok(()));
                }
                closed(connection)?;
                let streams = connection.streams(now);
                if let Err(stopped @ StreamError::Stopped(_)) = streams.write(id, Bytes::new()) {
                    return Poll::Ready(Err(stopped.into()));
                }
                if self.is_reset || !streams.contains(id) {
                    return Poll::Ready(Err(StreamError::Closed(id).into()));
                }
                wakers.wait_to_write(id, cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    fn do_with(&self, act: impl FnOnce(&mut Streams, StreamId) -> Result<(), StreamError>) -> Result<(), StreamFault> {
        let done = self.handle.shared.with(&self.handle.link, |connection, now| {
            closed(connection)?;
            Ok(act(connection.streams(now), self.id)?)
        });
        self.handle.shared.nudge();
        done.unwrap_or(Err(ConnectionError::LocallyClosed.into()))
    }
}

impl RecvStream {
    /// The name of the stream.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Wants no more: the peer's writer gets `code`.
    pub fn stop(&mut self, code: u64) {
        self.is_over = true;
        self.handle.shared.with(&self.handle.link, |connection, now| connection.streams(now).stop(self.id, code));
        self.handle.shared.nudge();
    }

    /// The next bytes, at most so many, without a copy where possible; `None` at the end. What came before the connection
    /// ended is handed out first.
    ///
    /// Cancellation safety: nothing is lost where it is given up before it is ready.
    ///
    /// # Errors
    ///
    /// Where the peer reset the stream, or the connection ended before its end.
    pub async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, StreamFault> {
        std::future::poll_fn(|cx| self.poll_chunk(most, cx)).await
    }

    fn poll_chunk(&mut self, most: usize, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamFault>> {
        let coop = ready!(tokio::task::coop::poll_proceed(cx));
        let (handle, id) = (&self.handle, self.id);
        let looked = with(handle, |connection, now| {
            let data = match connection.streams(now).read(id, most)? {
                Read::Data(data) => Some(data),
                Read::End => None,
                Read::Pending => {
                    closed(connection)?;
                    handle.link.streams.wait_to_read(id, cx.waker());
                    return Poll::Pending;
                }
            };
            Poll::Ready(Ok((data, connection.streams(now).is_due())))
        });
        let read = ready!(looked);
        coop.made_progress();
        if !matches!(read, Ok((Some(_), _))) {
            self.is_over = true;
        }
        let (data, is_credit_due) = read?;
        if is_credit_due {
            self.handle.shared.nudge();
        }
        Poll::Ready(Ok(data))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if to.remaining() > 0
            && let Some(data) = ready!(self.poll_chunk(to.remaining(), cx))?
        {
            to.put_slice(&data);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let coop = ready!(tokio::task::coop::poll_proceed(cx));
        let (handle, id) = (&self.handle, self.id);
        let looked = with(handle, |connection, now| {
            closed(connection)?;
            let streams = connection.streams(now);
            let is_idle = streams.unsent_bytes() == 0;
            match streams.write_slice(id, &data[..data.len().min(WRITE_MAX)])? {
                0 if !data.is_empty() => {
                    handle.link.streams.wait_to_write(id, cx.waker());
                    Poll::Pending
                }
                written => Poll::Ready(Ok((written, is_idle))),
            }
        });
        let written = ready!(looked);
        coop.made_progress();
        let (written, is_idle) = written?;
        // Where something waits already, the driver looks for more by itself.
        if is_idle {
            handle.shared.nudge();
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_over {
            self.finish()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.reset(DROPPED);
        }
        self.handle.link.streams.forget_writer(self.id);
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop(DROPPED);
        }
        self.handle.link.streams.forget_reader(self.id);
    }
}
