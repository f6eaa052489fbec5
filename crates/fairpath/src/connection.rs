//! Connections.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fairpath_engine::ByteCount;
use fairpath_quic::{self as quic, ChannelId};

use crate::error::{ConnectionError, SendError, ended};
use crate::event::Events;
use crate::limits::StreamLimits;
use crate::live::{Arrived, LiveConfig, LivePacket, LiveStats};
use crate::path::{Path, Sharing, paths, sharing};
use crate::session::Session;
use crate::stream::{RecvStream, SendStream};

/// The most data of one record, in bytes.
pub const RECORD_MAX: usize = quic::MAX_RECORD;

/// How long the end of a connection that is interrupted waits for the peer to hear of it.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection over all paths there are. They are opened, watched and opened again behind the scenes.
///
/// This is a handle; clones are the same connection. When the last handle and the last of its streams are dropped it is
/// closed with code 0, and what has not arrived is lost. What arrived is handed out also after the connection ended.
///
/// Several kinds of data share it. [Streams](Connection::open_bi) are what most programs want. Messages come in order,
/// records in any, each whole and once. Datagrams and [live packets](Connection::begin_live) may be lost.
///
/// # When all paths are gone
///
/// Where nothing is heard of the peer for nine seconds on any path, the end that dialed connects again by itself, for
/// [60 s](crate::Builder::resume_within). This object is then the next connection, at both ends, and its streams go on
/// where they were: each byte arrives once, and nobody who reads or writes notices more than that it takes long.
/// [`Event::Interrupted`](crate::Event::Interrupted) and [`Event::Resumed`](crate::Event::Resumed) tell of it, and
/// [`Connection::is_interrupted`] says whether it is so now. It does not help where one of the programs was started anew.
///
/// Streams alone go on. Messages and records that had not arrived are lost, and live packets are to be
/// [begun](Connection::begin_live) again.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Session>);

/// A piece of an object, which arrives whole and once, before or after others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The object, as the two ends have agreed.
    pub object: u32,
    /// Where in the object the data begins, in bytes.
    pub offset: u64,
    /// The data, at most [`RECORD_MAX`] bytes.
    pub data: Bytes,
}

/// Figures of a connection, at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The paths, in the order of first use.
    pub paths: Vec<Path>,
    /// UDP payload that was sent and acknowledged, over all paths.
    pub acked: ByteCount,
    /// UDP payload that was sent and lost, over all paths.
    pub lost: ByteCount,
    /// UDP payload that came, over all paths.
    pub received: ByteCount,
    /// UDP datagrams that came.
    pub datagrams_received: u64,
    /// Live packets; `None` before [`Connection::begin_live`].
    pub live: Option<LiveStats>,
}

impl Connection {
    pub(crate) fn of(session: Arc<Session>) -> Self {
        Self(session)
    }

    /// The connection that there is.
    pub(crate) fn now(&self) -> quic::Connection {
        self.0.current()
    }

    /// The peer of a [guarded](crate::Builder::guard) endpoint has proved itself. From now on it is no guest and may open
    /// streams within `limits`. It stays so after an interruption.
    pub fn welcome(&self, limits: StreamLimits) {
        self.0.welcome(limits.0);
    }

    // ---- streams

    /// Opens a stream. Waits while the peer allows no more; one that is [guarded](crate::Builder::guard) allows none before
    /// it [welcomes](Connection::welcome) this end. The peer hears of a stream with its first bytes, which cost no round
    /// trip.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    ///
    /// # Cancellation safety
    ///
    /// No stream is opened where this is given up before it is ready.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let open = |connection: quic::Connection| async move { connection.open_bi(quic::StreamKind(0)).await };
        let (send, recv) = self.0.through(open).await?;
        Ok((SendStream::of(send, &self.0), RecvStream::of(recv, &self.0)))
    }

    /// The next stream that the peer opened and has sent something on.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    ///
    /// # Cancellation safety
    ///
    /// No stream is lost where this is given up before it is ready.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let accept = |connection: quic::Connection| async move { connection.accept_bi().await };
        let (_, send, recv) = self.0.through(accept).await?;
        Ok((SendStream::of(send, &self.0), RecvStream::of(recv, &self.0)))
    }

    // ---- messages, records, datagrams

    /// Queues a message of at most [`RECORD_MAX`] bytes, which arrives once, after all messages before it. Waits while there
    /// is no room.
    ///
    /// # Errors
    ///
    /// [`SendError::TooLarge`], or [`SendError::Connection`] where the connection ended or is interrupted.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is queued where this is given up before it is ready.
    pub async fn send_message(&self, message: impl Into<Bytes>) -> Result<(), SendError> {
        let message = message.into();
        let bytes = message.len();
        self.now().send_message(message).await.map_err(|error| not_sent(error, bytes))
    }

    /// The next message of the peer.
    ///
    /// # Errors
    ///
    /// Where the connection ended, after all messages that came before.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost where this is given up before it is ready.
    pub async fn recv_message(&self) -> Result<Bytes, ConnectionError> {
        self.0.through(|connection| async move { connection.recv_message().await }).await
    }

    /// Queues a record. Waits while there is no room.
    ///
    /// # Errors
    ///
    /// [`SendError::TooLarge`], or [`SendError::Connection`] where the connection ended or is interrupted.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is queued where this is given up before it is ready.
    pub async fn send_record(&self, record: Record) -> Result<(), SendError> {
        let Record { object, offset, data } = record;
        let bytes = data.len();
        self.now().send_record(quic::Record { object, offset, data }).await.map_err(|error| not_sent(error, bytes))
    }

    /// The next record of the peer that is whole.
    ///
    /// # Errors
    ///
    /// Where the connection ended, after all records that came before.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost where this is given up before it is ready.
    pub async fn recv_record(&self) -> Result<Record, ConnectionError> {
        let recv = |connection: quic::Connection| async move { connection.recv_record().await };
        let quic::Record { object, offset, data } = self.0.through(recv).await?;
        Ok(Record { object, offset, data })
    }

    /// Waits until the peer has all messages and records that were queued. Streams have
    /// [`SendStream::arrived`].
    ///
    /// # Errors
    ///
    /// Where the connection ended before, or was interrupted.
    ///
    /// # Cancellation safety
    ///
    /// It may be given up at any time.
    pub async fn flushed(&self) -> Result<(), ConnectionError> {
        let connection = self.now();
        for channel in [ChannelId::Messages, ChannelId::Bulk] {
            connection.flushed(channel).await.map_err(ended)?;
        }
        Ok(())
    }

    /// Queues a datagram, which arrives once or not at all. One that is larger than any path carries, about 1,150 bytes
    /// before a path was measured, is dropped in silence. Where datagrams wait for more than 5 ms during 100 ms, the oldest
    /// are dropped one by one until the wait is short (CoDel).
    ///
    /// # Errors
    ///
    /// [`SendError::Full`] where too many wait, [`SendError::Connection`] where the connection ended.
    pub fn send_datagram(&self, datagram: &[u8]) -> Result<(), SendError> {
        let connection = self.now();
        queued(&connection, connection.send_datagram(datagram))
    }

    /// The next datagram of the peer. Of those that nobody takes the oldest are dropped.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost where this is given up before it is ready.
    pub async fn recv_datagram(&self) -> Result<Bytes, ConnectionError> {
        self.0.through(|connection| async move { connection.recv_datagram().await }).await
    }

    // ---- live packets

    /// From now on [live packets](crate::live) may be sent and are taken in. Both ends call this. A deadline or a number of
    /// flows beyond its bounds counts as the nearest that is within.
    pub fn begin_live(&self, config: LiveConfig) {
        self.now().begin_flows(config.as_flows());
    }

    /// Queues a live packet.
    ///
    /// # Errors
    ///
    /// [`SendError::TooLarge`], [`SendError::Full`] where much more is sent than the paths take, and
    /// [`SendError::Connection`] where the connection ended. A flow that was not begun takes nothing, as if it were full.
    pub fn send_live(&self, packet: LivePacket<'_>) -> Result<(), SendError> {
        let connection = self.now();
        if let Some(reason) = connection.close_reason() {
            return Err(ended(reason).into());
        }
        let LivePacket { flow, data, marked } = packet;
        connection.send_packet(quic::flows::FlowId(flow), data, marked).map_err(|error| match error {
            quic::flows::SendError::TooLarge(bytes) => SendError::TooLarge { bytes, most: crate::live::PACKET_MAX },
            _ => SendError::Full,
        })
    }

    /// The next live packet of the peer that is to be handed out.
    ///
    /// # Errors
    ///
    /// Where the connection ended.
    ///
    /// # Cancellation safety
    ///
    /// Nothing is lost where this is given up before it is ready.
    pub async fn recv_live(&self) -> Result<Arrived, ConnectionError> {
        let packet = self.0.through(|connection| async move { connection.recv_packet().await }).await?;
        Ok(Arrived { flow: packet.flow.0, data: packet.packet })
    }

    // ---- paths and figures

    /// Every pair of addresses that has carried a path, in the order of first use, as it was when the paths were last
    /// looked at: up to 50 ms ago.
    pub fn paths(&self) -> Vec<Path> {
        paths(self.now().paths())
    }

    /// The detector's verdicts about each two open paths; none where it is fixed which are coupled.
    pub fn sharing(&self) -> Vec<Sharing> {
        let connection = self.now();
        sharing(&connection.paths(), &connection.verdicts())
    }

    /// The largest UDP payload that every path was found to carry so far, in bytes.
    pub fn datagram_max(&self) -> u16 {
        self.now().datagram_max()
    }

    /// Waits until `count` paths are open, at most for `patience`. False where that time ran out.
    ///
    /// # Cancellation safety
    ///
    /// It may be given up at any time.
    pub async fn paths_open(&self, count: usize, patience: Duration) -> bool {
        self.now().paths_open(count, patience).await
    }

    /// Closes the path on a pair of addresses. The end that dials may open it again. False where there is none, or no
    /// other.
    pub fn close_path(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.now().close_path(local, remote)
    }

    /// The figures of this moment.
    ///
    /// # Cancellation safety
    ///
    /// It may be given up at any time.
    pub async fn stats(&self) -> Stats {
        let connection = self.now();
        let paths = paths(connection.paths_now().await);
        let sum = |of: fn(&Path) -> ByteCount| paths.iter().map(of).sum();
        Stats {
            acked: sum(|path| path.acked),
            lost: sum(|path| path.lost),
            received: sum(|path| path.received),
            datagrams_received: connection.datagrams_received(),
            live: connection.flows().map(|(status, counts)| LiveStats::of(&status, &counts)),
            paths,
        }
    }

    /// The events of the connection from now on.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn events(&self) -> Events {
        let (from, ended) = self.0.events();
        Events::of(from, ended)
    }

    /// Fills `output` with bytes that both ends of this connection find for the same label and context, and nobody else
    /// (RFC 5705): to prove a secret without sending it. After an interruption they are others. False where more are asked
    /// for than 255 digests of the cipher suite's hash, which are 8,160 bytes at least.
    #[must_use]
    pub fn export_keying_material(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.now().export_keying_material(output, label, context).is_ok()
    }

    // ---- the end

    /// Ends the connection and tells the peer `code` and `reason`. Waits until the peer has confirmed it, at most two
    /// seconds. Data that has not arrived by now may not: see [`SendStream::arrived`] and [`Connection::flushed`].
    ///
    /// Where the connection is [interrupted](Connection#when-all-paths-are-gone), the end that dialed goes on connecting in
    /// the background to tell the peer, until the time for that is over or the runtime ends. A peer that does not hear of it
    /// waits for this end as long as [it is set to](crate::Builder::resume_within).
    ///
    /// # Cancellation safety
    ///
    /// It is closed when this is first polled. Given up before it is ready, the peer may hear of it later.
    pub async fn close(&self, code: u32, reason: &str) {
        self.0.close(code, reason, FAREWELL).await;
    }

    /// Waits for the end of the connection, and says why it ended. An interruption is none before its time is over.
    ///
    /// # Cancellation safety
    ///
    /// It may be given up at any time.
    pub async fn closed(&self) -> ConnectionError {
        self.0.closed().await
    }

    /// Why the connection ended; `None` while it is open or interrupted.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.close_reason()
    }

    /// Whether nothing is heard of the peer, and it is tried to connect again: streams wait meanwhile.
    pub fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

/// The result of queueing a datagram.
fn queued(connection: &quic::Connection, is_queued: bool) -> Result<(), SendError> {
    match (connection.close_reason(), is_queued) {
        (Some(reason), _) => Err(ended(reason).into()),
        (None, true) => Ok(()),
        (None, false) => Err(SendError::Full),
    }
}

fn not_sent(error: quic::SendError, bytes: usize) -> SendError {
    match error {
        quic::SendError::Connection(reason) => ended(reason).into(),
        quic::SendError::RecordTooLarge(_) => SendError::TooLarge { bytes, most: RECORD_MAX },
    }
}
