//! The beginning of a program's connection, read piece by piece: split and pipelined as it may come.

use std::io;
use std::net::SocketAddr;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A TCP connection, and what came on it and has not been understood yet.
#[derive(Debug)]
pub(super) struct Conversation {
    tcp: TcpStream,
    waiting: BytesMut,
}

/// Why the next words were not understood.
#[derive(Debug)]
pub(super) enum Fault<E> {
    /// The program has gone.
    Gone,
    /// It said more than any words of this kind are long.
    TooLong,
    /// The words are not right.
    Bad(E),
}

impl Conversation {
    pub(super) fn new(tcp: TcpStream) -> Self {
        // An answer to the second words must not wait until the program's system acknowledges that to the first.
        let _ = tcp.set_nodelay(true);
        Self { tcp, waiting: BytesMut::new() }
    }

    /// Reads words of at most `most` bytes. `parse` gives the words at the beginning of what it is shown and their length,
    /// or `None` where more is needed. Later bytes stay for later.
    pub(super) async fn next<T, E>(
        &mut self,
        most: usize,
        parse: impl Fn(&[u8]) -> Result<Option<(T, usize)>, E>,
    ) -> Result<T, Fault<E>> {
        loop {
            let shown = &self.waiting[..self.waiting.len().min(most)];
            if let Some((words, length)) = parse(shown).map_err(Fault::Bad)? {
                self.waiting.advance(length);
                return Ok(words);
            }
            if self.waiting.len() >= most {
                return Err(Fault::TooLong);
            }
            self.waiting.reserve(1024);
            match self.tcp.read_buf(&mut self.waiting).await {
                Ok(0) | Err(_) => return Err(Fault::Gone),
                Ok(_) => {}
            }
        }
    }

    pub(super) async fn say(&mut self, words: &[u8]) -> io::Result<()> {
        self.tcp.write_all(words).await
    }

    /// The last words, after which the connection ends.
    pub(super) async fn end(mut self, words: &[u8]) -> io::Result<()> {
        self.tcp.write_all(words).await?;
        self.tcp.shutdown().await?;
        // Closed with bytes unread, the system would reset the connection before the program has read the words.
        let mut rest = [0; 4096];
        for _ in 0..16 {
            if self.tcp.read(&mut rest).await? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The address here, as the program sees it.
    pub(super) fn local_address(&self) -> Option<SocketAddr> {
        self.tcp.local_addr().ok()
    }

    /// The program's address.
    pub(super) fn peer_address(&self) -> Option<SocketAddr> {
        self.tcp.peer_addr().ok()
    }

    /// The connection, and the bytes that came behind the words.
    pub(super) fn into_parts(self) -> (TcpStream, Bytes) {
        (self.tcp, self.waiting.freeze())
    }
}
