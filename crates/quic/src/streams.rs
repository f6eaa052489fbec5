//! Streams of a connection, as tokio has them: reliable bytes in order, both ways.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use fairpath_quic_core::Connection as Core;
use fairpath_quic_core::streams::{Read, StreamError, StreamId, StreamKind, Streams, StreamsConfig};
use noq_proto::ConnectionError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connection::{Connection, until};
use crate::driver::Home;
use crate::stream_fault::{ResumeError, StreamFault};

/// The code of a half that was dropped before its end.
pub const DROPPED: u64 = 0;

/// No more is copied of a write at once, in bytes: a stream may have room for little of it.
const WRITE_MAX: usize = 256 << 10;

/// A number of the streams of one end of a connection, in this process. They have it on every connection that they go
/// on on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamsNumber(u64);

impl Connection {
    /// From now on the peer may open streams, and this end where the peer does the same.
    pub fn begin_streams(&self, config: StreamsConfig) {
        self.link().home().set_time_kept(config.kept);
        self.with(|connection, _| connection.begin_streams(config));
        self.nudge();
    }

    /// Goes on with the streams of `lost`, an earlier connection of this end to the same peer, on this one, which was just
    /// made. Whoever has halves of them goes on as if nothing had happened: every byte arrives once. The end that was
    /// connected to has nothing to call; its halves go on, too, and [`Connection::accept_bi`] of its new connection has
    /// what was opened meanwhile.
    ///
    /// Streams outlive a connection that was lost, not one that was closed, for [`StreamsConfig::kept`]. Meanwhile reading
    /// and writing waits. A `lost` that is still open is closed. Where the peer does not know the streams any more, their
    /// halves get [`StreamFault::Lost`].
    ///
    /// To be called before [`Connection::begin_streams`], which is not needed then.
    ///
    /// # Errors
    ///
    /// The streams stay where they are.
    pub fn resume_streams(&self, lost: &Self) -> Result<(), ResumeError> {
        self.handle().resume(lost.handle())
    }

    /// The number of the streams that are on the connection now.
    pub fn streams_number(&self) -> StreamsNumber {
        StreamsNumber(self.link().home().number())
    }

    /// Waits until both ends know which streams are on the connection: those of an earlier one, where the client asked for
    /// them and the server has them, or new ones. Their number. For a server that is the first that its client says of
    /// streams.
    ///
    /// It may be given up at any time.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    pub async fn streams_agreed(&self) -> Result<StreamsNumber, ConnectionError> {
        let agreed = |connection: &mut Core| connection.are_streams_agreed().then_some(Ok(()));
        self.awaited(&self.link().agreed, agreed).await?;
        Ok(self.streams_number())
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
        let id = until(self.link(), &self.link().may_open, attempt).await?;
        self.nudge();
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
        let (id, kind) = until(self.link(), &self.link().opened, attempt).await?;
        let (send, recv) = self.halves(id);
        Ok((kind, send, recv))
    }

    fn attempt_streams<T>(&self, act: impl FnOnce(&mut Streams) -> Option<T>) -> Option<Result<T, ConnectionError>> {
        self.with(|connection, now| match connection.close_reason() {
            Some(reason) => Some(Err(reason.clone())),
            None => act(connection.streams(now)).map(Ok),
        })
    }

    fn halves(&self, id: StreamId) -> (SendStream, RecvStream) {
        let home = self.link().home();
        home.note_writer(id);
        (0..2).for_each(|_| home.add_half(self.handle().clone()));
        let recv = RecvStream { home: home.clone(), id, is_over: false };
        (SendStream { home, id, is_over: false, is_reset: false }, recv)
    }
}

/// The half of a stream that is written to.
///
/// Written bytes leave by themselves; flushing does nothing. [`SendStream::finish`] or `shutdown` says that it was all.
/// Dropped before that, the half is reset with code [`DROPPED`]. As long as a half is there the connection stays open; when
/// the last of them and of the [`Connection`]s is dropped it is closed, and what did not arrive is lost: see
/// [`SendStream::arrived`]. A half outlives a connection that is lost: see [`Connection::resume_streams`].
///
/// Cancellation safety: `write` has written nothing where it is given up before it is ready. `write_all` and
/// [`SendStream::write_chunk`] may have written a part of their data.
#[derive(Debug)]
pub struct SendStream {
    home: Arc<Home>,
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
    home: Arc<Home>,
    id: StreamId,
    is_over: bool,
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
        let (id, home) = (self.id, &self.home);
        std::future::poll_fn(|cx| {
            ready!(home.poll_free(cx));
            home.with(|connection, now| {
                if home.is_finished(id) {
                    return Poll::Ready(Ok(()));
                }
                home.standing(connection, now)?;
                let streams = connection.streams(now);
                if let Err(stopped @ StreamError::Stopped(_)) = streams.write(id, Bytes::new()) {
                    return Poll::Ready(Err(stopped.into()));
                }
                if self.is_reset || !streams.contains(id) {
                    return Poll::Ready(Err(StreamError::Closed(id).into()));
                }
                home.wait_to_write(id, cx.waker());
                Poll::Pending
            })
        })
        .await
    }

    /// Writes all of `data`, without a copy of it. Waits while there is no room.
    ///
    /// Cancellation safety: a part may have been written where it is given up before it is ready.
    ///
    /// # Errors
    ///
    /// Where the peer wants no more, or the half or the connection has ended.
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), StreamFault> {
        while !data.is_empty() {
            let put = |cx: &mut Context<'_>| self.poll_put(cx, false, |streams, id| streams.write(id, data.clone()));
            let written = std::future::poll_fn(put).await?;
            data.advance(written);
        }
        Ok(())
    }

    /// Has `write` write something. Where nothing of it was taken, and it `is_empty` not, the task is woken when more may be.
    fn poll_put(
        &self,
        cx: &mut Context<'_>,
        is_empty: bool,
        write: impl FnOnce(&mut Streams, StreamId) -> Result<usize, StreamError>,
    ) -> Poll<Result<usize, StreamFault>> {
        let coop = ready!(tokio::task::coop::poll_proceed(cx));
        let (home, id) = (&self.home, self.id);
        ready!(home.poll_free(cx));
        let looked = home.with(|connection, now| {
            home.standing(connection, now)?;
            let streams = connection.streams(now);
            let is_idle = streams.unsent_bytes() == 0;
            match write(streams, id)? {
                0 if !is_empty => {
                    home.wait_to_write(id, cx.waker());
                    Poll::Pending
                }
                written => Poll::Ready(Ok((written, is_idle))),
            }
        });
        let written = ready!(looked);
        coop.made_progress();
        let (written, is_idle) = written?;
        // Where something waits already, the task of the connection looks for more by itself.
        if is_idle {
            home.nudge();
        }
        Poll::Ready(Ok(written))
    }

    fn do_with(&self, act: impl FnOnce(&mut Streams, StreamId) -> Result<(), StreamError>) -> Result<(), StreamFault> {
        let done = self.home.with(|connection, now| {
            self.home.standing(connection, now)?;
            Poll::Ready(Ok(act(connection.streams(now), self.id)?))
        });
        self.home.nudge();
        match done {
            Poll::Ready(done) => done,
            Poll::Pending => Ok(()),
        }
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
        // Where the connection ended, so has the stream.
        let _ = self.home.with(|connection, now| {
            connection.streams(now).stop(self.id, code);
            Poll::Ready(Ok(()))
        });
        self.home.nudge();
    }

    /// The next bytes, up to a limit, without a copy where possible; `None` at the end. Data that
    /// came before the connection ended is handed out first.
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
        let (home, id) = (&self.home, self.id);
        ready!(home.poll_free(cx));
        let looked = home.with(|connection, now| {
            let data = match connection.streams(now).read(id, most)? {
                Read::Data(data) => Some(data),
                Read::End => None,
                Read::Pending => {
                    home.standing(connection, now)?;
                    home.wait_to_read(id, cx.waker());
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
            self.home.nudge();
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
        let first = &data[..data.len().min(WRITE_MAX)];
        Poll::Ready(Ok(ready!(self.poll_put(cx, data.is_empty(), |streams, id| streams.write_slice(id, first)))?))
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
        self.home.forget_writer(self.id);
        self.home.remove_half();
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.is_over {
            self.stop(DROPPED);
        }
        self.home.forget_reader(self.id);
        self.home.remove_half();
    }
}
