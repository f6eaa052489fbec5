//! Bulk data over lanes: several unidirectional streams that share the work.
//!
//! One stream over paths of unequal delay holds many separate pieces out of order, and the QUIC
//! stack ends a connection whose stream holds more than 1,024 of them. With a stream window of
//! [`STREAM_WINDOW`] a lane filled by full packets cannot: even of the smallest datagrams, 1,200 bytes
//! with some 1,160 of data, it holds 1,724, and where every second one is missing that is 862 pieces.
//! What one lane may not hold, several can.
//!
//! The unit is a [`Record`]: a piece of a numbered object with its offset, so the receiver can put
//! it in its place whatever the order of arrival. A lane that is slow takes fewer records.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use noq::{Connection, RecvStream, SendStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Flow-control window of one stream, in bytes.
pub const STREAM_WINDOW: u32 = 2_000_000;

/// How many lanes a bulk transfer opens: enough that one waiting for a lost packet of a slow path
/// does not hold up a fast one (16 · 2 MB covers 200 Mbit/s for 1.2 s).
pub const LANES: usize = 16;

/// The largest data of one record, in bytes.
pub const MAX_RECORD: usize = 1 << 20;

/// The data size that suits a record of a bulk transfer, in bytes.
pub const RECORD: usize = 64 << 10;

/// How many bytes of records are written at once, if so many wait.
const BATCH: usize = 256 << 10;

const HEADER: usize = 16;

/// A piece of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Which object, as the two ends have agreed.
    pub object: u32,
    /// Where in the object the data begins, in bytes.
    pub offset: u64,
    /// The data, up to [`MAX_RECORD`] bytes.
    pub data: Bytes,
}

impl Record {
    /// What stands before the data: the object, the offset, and in one word the length, which takes three bytes
    /// at most, and the conversation.
    fn header(&self, conversation: u8) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&self.object.to_be_bytes());
        header[4..12].copy_from_slice(&self.offset.to_be_bytes());
        header[12..].copy_from_slice(&(self.data.len() as u32).to_be_bytes());
        header[12] = conversation;
        header
    }
}

/// Why a lane ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum LaneError {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] noq::ConnectionError),
    /// The peer refused the lane.
    #[error("the peer stopped reading (code {0})")]
    Stopped(u64),
    /// The peer gave up on the lane.
    #[error("the peer stopped writing (code {0})")]
    Reset(u64),
    /// The peer announced a record larger than [`MAX_RECORD`].
    #[error("the peer announced a record of {0} bytes, more than the {MAX_RECORD} allowed")]
    RecordTooLarge(usize),
    /// A lane ended inside a record.
    #[error("a lane ended in the middle of a record")]
    Truncated,
    /// The sender was closed.
    #[error("the lanes are closed")]
    Closed,
}

impl From<noq::WriteError> for LaneError {
    fn from(error: noq::WriteError) -> Self {
        match error {
            noq::WriteError::Stopped(code) => Self::Stopped(code.into_inner()),
            noq::WriteError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Closed,
        }
    }
}

impl From<noq::ReadExactError> for LaneError {
    fn from(error: noq::ReadExactError) -> Self {
        match error {
            noq::ReadExactError::FinishedEarly(_) => Self::Truncated,
            noq::ReadExactError::ReadError(noq::ReadError::Reset(code)) => Self::Reset(code.into_inner()),
            noq::ReadExactError::ReadError(noq::ReadError::ConnectionLost(error)) => Self::Connection(error),
            noq::ReadExactError::ReadError(_) => Self::Closed,
        }
    }
}

/// The sending end of a bulk transfer.
///
/// It writes in the task of its owner, and only while that waits in one of these methods: every write
/// takes the lock of the connection, which its driver holds most of the time. A task that the driver
/// wakes runs after it on the same thread; several tasks would run beside it, and wait for the lock.
/// For the same reason records are written several at a time where they come fast.
#[derive(Debug)]
pub struct LaneSender {
    waiting: Vec<Record>,
    free: VecDeque<SendStream>,
    busy: FuturesUnordered<Writing>,
    conversation: u8,
}

/// A lane that comes back when its records are written.
type Writing = Pin<Box<dyn Future<Output = Result<SendStream, LaneError>> + Send>>;

impl LaneSender {
    /// Opens `lanes` lanes on the connection.
    pub async fn open(connection: &Connection, lanes: usize) -> Result<Self, LaneError> {
        let mut free = VecDeque::new();
        for _ in 0..lanes.max(1) {
            free.push_back(connection.open_uni().await?);
        }
        Ok(Self { waiting: Vec::new(), free, busy: FuturesUnordered::new(), conversation: 0 })
    }

    /// The same, for one of several conversations of the connection, which a receiver tells apart: what is still
    /// under way of an earlier one is none of the later one's business.
    pub fn of_conversation(self, conversation: u8) -> Self {
        Self { conversation, ..self }
    }

    /// Takes a record; waits while no lane has room for it. It is on its way once the owner calls
    /// [`LaneSender::while_writing`] or [`LaneSender::flush`], if not before.
    pub async fn send(&mut self, record: Record) -> Result<(), LaneError> {
        if record.data.len() > MAX_RECORD {
            return Err(LaneError::RecordTooLarge(record.data.len()));
        }
        self.waiting.push(record);
        if self.waiting.iter().map(|record| record.data.len()).sum::<usize>() >= BATCH {
            while !self.start() {
                self.lane_done().await?;
            }
            // As far as it goes without waiting.
            while let Some(done) = self.lane_done().now_or_never() {
                done?;
            }
        }
        Ok(())
    }

    /// Waits for something else, and writes meanwhile.
    pub async fn while_writing<T>(&mut self, other: impl Future<Output = T>) -> Result<T, LaneError> {
        tokio::pin!(other);
        if let Some(done) = (&mut other).now_or_never() {
            return Ok(done);
        }
        loop {
            self.start();
            tokio::select! {
                done = &mut other => return Ok(done),
                done = self.lane_done() => done?,
            }
        }
    }

    /// Writes everything taken so far.
    pub async fn flush(&mut self) -> Result<(), LaneError> {
        while !self.start() || !self.busy.is_empty() {
            self.lane_done().await?;
        }
        Ok(())
    }

    /// Ends all lanes once everything is written. That the peer has read it, its application says.
    pub async fn finish(mut self) -> Result<(), LaneError> {
        self.flush().await?;
        for mut lane in self.free {
            // It cannot have been finished before: only this sender has it.
            let _ = lane.finish();
        }
        Ok(())
    }

    /// Gives what waits to a free lane. False where there is none.
    fn start(&mut self) -> bool {
        if self.waiting.is_empty() {
            return true;
        }
        let Some(lane) = self.free.pop_front() else { return false };
        self.busy.push(Box::pin(write(lane, std::mem::take(&mut self.waiting), self.conversation)));
        true
    }

    /// Waits until a lane is free again; for ever while none is busy.
    async fn lane_done(&mut self) -> Result<(), LaneError> {
        match self.busy.next().await {
            Some(lane) => self.free.push_back(lane?),
            None => std::future::pending().await,
        }
        Ok(())
    }
}

async fn write(mut lane: SendStream, records: Vec<Record>, conversation: u8) -> Result<SendStream, LaneError> {
    let mut pieces: Vec<Bytes> = Vec::with_capacity(2 * records.len());
    for record in records {
        pieces.push(Bytes::copy_from_slice(&record.header(conversation)));
        pieces.push(record.data);
    }
    lane.write_all_chunks(&mut pieces).await?;
    Ok(lane)
}

/// The receiving end of a bulk transfer.
#[derive(Debug)]
pub struct LaneReceiver {
    records: mpsc::Receiver<Result<Record, LaneError>>,
    _acceptor: AbortOnDrop,
}

#[derive(Debug)]
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl LaneReceiver {
    /// Takes every unidirectional stream of the connection as a lane.
    pub fn new(connection: &Connection) -> Self {
        Self::of_conversation(connection, 0)
    }

    /// The same for one of several conversations of the connection: lanes of others are not read.
    pub fn of_conversation(connection: &Connection, conversation: u8) -> Self {
        let (sender, records) = mpsc::channel(2 * LANES);
        let acceptor = tokio::spawn(accept_lanes(connection.clone(), sender, conversation));
        Self { records, _acceptor: AbortOnDrop(acceptor) }
    }

    /// The next record of any lane; `None` after the connection was closed in an orderly way.
    pub async fn recv(&mut self) -> Option<Result<Record, LaneError>> {
        self.records.recv().await
    }
}

async fn accept_lanes(connection: Connection, records: mpsc::Sender<Result<Record, LaneError>>, conversation: u8) {
    let mut lanes = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.accept_uni() => match stream {
                Ok(stream) => { lanes.spawn(read_lane(stream, records.clone(), conversation)); }
                Err(noq::ConnectionError::ApplicationClosed(_) | noq::ConnectionError::LocallyClosed) => return,
                Err(error) => {
                    // The receiver may be gone, and then nobody is left to tell.
                    let _ = records.send(Err(error.into())).await;
                    return;
                }
            },
            Some(_) = lanes.join_next() => {}
        }
    }
}

async fn read_lane(mut stream: RecvStream, records: mpsc::Sender<Result<Record, LaneError>>, conversation: u8) {
    loop {
        match read_record(&mut stream, conversation).await {
            Ok(None) => return,
            Ok(Some(record)) => {
                if records.send(Ok(record)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                let _ = records.send(Err(error)).await;
                return;
            }
        }
    }
}

/// The next record; `None` at the end of the lane, and where it belongs to another conversation.
async fn read_record(stream: &mut RecvStream, conversation: u8) -> Result<Option<Record>, LaneError> {
    let Some(header) = read_header(stream).await?.filter(|header| header.conversation == conversation) else {
        return Ok(None);
    };
    let mut data = vec![0; header.length];
    stream.read_exact(&mut data).await?;
    Ok(Some(Record { object: header.object, offset: header.offset, data: data.into() }))
}

/// What stands before the data of a record.
struct Header {
    object: u32,
    offset: u64,
    length: usize,
    conversation: u8,
}

/// The next header; `None` at the end of the lane.
async fn read_header(stream: &mut RecvStream) -> Result<Option<Header>, LaneError> {
    let mut header = [0; HEADER];
    match stream.read_exact(&mut header).await {
        Ok(()) => {}
        Err(noq::ReadExactError::FinishedEarly(0)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let object = u32::from_be_bytes(header[..4].try_into().expect("four bytes"));
    let offset = u64::from_be_bytes(header[4..12].try_into().expect("eight bytes"));
    let conversation = std::mem::take(&mut header[12]);
    let length = u32::from_be_bytes(header[12..].try_into().expect("four bytes")) as usize;
    match length > MAX_RECORD {
        true => Err(LaneError::RecordTooLarge(length)),
        false => Ok(Some(Header { object, offset, length, conversation })),
    }
}

/// Reads every lane of the connection and keeps nothing: `counter` rises by what arrives, piece by
/// piece. Ends with the connection.
pub(crate) async fn count(connection: Connection, counter: Arc<AtomicU64>) {
    let mut lanes = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.accept_uni() => match stream {
                Ok(stream) => { lanes.spawn(count_lane(stream, counter.clone())); }
                Err(_) => return,
            },
            Some(_) = lanes.join_next() => {}
        }
    }
}

async fn count_lane(mut stream: RecvStream, counter: Arc<AtomicU64>) -> Result<(), LaneError> {
    while let Some(header) = read_header(&mut stream).await? {
        let mut missing = header.length;
        while missing > 0 {
            let Ok(Some(piece)) = stream.read_chunk(missing).await else { return Err(LaneError::Truncated) };
            missing -= piece.len();
            counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
    }
    Ok(())
}
