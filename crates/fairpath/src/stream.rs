//! Streams: reliable bytes in order, both ways.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use fairpath_quic as quic;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::{StreamError, io_failed, stream_failed};
use crate::session::Session;

/// The name of a stream, the same at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(quic::StreamId);

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The half of a stream that is written to.
///
/// Written bytes leave by themselves; flushing does nothing. [`SendStream::finish`], or `shutdown` of
/// [`AsyncWriteExt`](tokio::io::AsyncWriteExt), says that it was all. Dropped before that, the half is reset with code
/// 0. A write waits while the peer's reader has not made room.
///
/// The connection stays open as long as one of its streams is there. When the last handle is dropped, what has not
/// arrived is lost: wait for [`SendStream::arrived`]. A stream outlives a connection that is lost: see
/// [`Connection`](crate::Connection#when-all-paths-are-gone).
///
/// # Errors
///
/// Those of `write`, `write_all` and `shutdown` have a [`StreamError`] inside, which says how to find it.
///
/// # Cancellation safety
///
/// `write` has written nothing where it is given up before it is ready. `write_all` may have written a part.
#[derive(Debug)]
pub struct SendStream {
    half: quic::SendStream,
    /// Keeps the connection open, and the ones that follow it.
    _session: Arc<Session>,
}

impl SendStream {
    pub(crate) fn of(half: quic::SendStream, session: &Arc<Session>) -> Self {
        Self { half, _session: session.clone() }
    }

    /// The name of the stream.
    pub fn id(&self) -> StreamId {
        StreamId(self.half.id())
    }

    /// Writes all of `data`, without the copy that `write_all` makes. Waits while the peer's reader has not made room.
    ///
    /// # Errors
    ///
    /// Where the peer stopped reading, or the half or the connection has ended.
    ///
    /// # Cancellation safety
    ///
    /// A part may have been written where it is given up before it is ready.
    pub async fn write_chunk(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.half.write_chunk(data).await.map_err(stream_failed)
    }

    /// Says that no more is written: the peer reads the end after all that was.
    ///
    /// # Errors
    ///
    /// Where the half or the connection has ended already.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.half.finish().map_err(stream_failed)
    }

    /// Gives up: the peer's reader gets `code` in place of all that it has not read. Codes go up to 2⁶² − 1; a larger one is
    /// sent as that. Nothing happens where the peer has everything already, or the connection ended.
    pub fn reset(&mut self, code: u64) {
        self.half.reset(code);
    }

    /// Waits until the peer has all that was written, and its end after [`SendStream::finish`]. Whether its program has
    /// read it, only an answer says.
    ///
    /// # Errors
    ///
    /// Where the peer stopped reading, or the stream was reset or the connection ended before.
    ///
    /// # Cancellation safety
    ///
    /// It may be given up at any time.
    pub async fn arrived(&mut self) -> Result<(), StreamError> {
        self.half.arrived().await.map_err(stream_failed)
    }
}

/// The half of a stream that is read from. Dropped before its end, the peer is asked to stop with code 0.
///
/// # Errors
///
/// Those of `read` and what is built on it have a [`StreamError`] inside, which says how to find it. `read_exact` says
/// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) by itself where the stream ends before.
///
/// # Cancellation safety
///
/// `read` has read nothing where it is given up before it is ready. `read_exact` and `read_to_end` may have read a
/// part.
#[derive(Debug)]
pub struct RecvStream {
    half: quic::RecvStream,
    _session: Arc<Session>,
}

impl RecvStream {
    pub(crate) fn of(half: quic::RecvStream, session: &Arc<Session>) -> Self {
        Self { half, _session: session.clone() }
    }

    /// The name of the stream.
    pub fn id(&self) -> StreamId {
        StreamId(self.half.id())
    }

    /// Wants no more: the peer's writer gets `code`. Codes go up to 2⁶² − 1; a larger one is sent as that. Nothing happens
    /// where all was read, or the connection ended.
    pub fn stop(&mut self, code: u64) {
        self.half.stop(code);
    }

    /// The next bytes, at least one and at most `most`, of which 0 counts as 1, without a copy where possible; `None` at the
    /// end. Bytes that came before the connection ended are handed out first.
    ///
    /// # Errors
    ///
    /// Where the peer reset the stream, or the connection ended before its end.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost where it is given up before it is ready.
    pub async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, StreamError> {
        self.half.read_chunk(most).await.map_err(stream_failed)
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_read(cx, to).map_err(io_failed)
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.half).poll_write(cx, data).map_err(io_failed)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_flush(cx).map_err(io_failed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.half).poll_shutdown(cx).map_err(io_failed)
    }
}
