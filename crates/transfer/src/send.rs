//! The sending side of a transfer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fairpath_core::Bytes;
use fairpath_quic::lanes::{LANES, LaneSender};
use noq::Connection;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::admission::{knock, say_goodbye};
use crate::collect::Selection;
use crate::error::{Fault, SendError};
use crate::greeting::{Purpose, SenderId};
use crate::manifest::Entry;
use crate::progress::{Phase, Progress};
use crate::protocol::{ControlReader, ControlWriter, FromReceiver, FromSender, ProtocolError, printable};
use crate::ranges::RangeSet;
use crate::reader::{self, Job, Piece};
use crate::ticket::Secret;

/// How many bytes of names one message carries, about; well within a frame.
const NAMES_PER_MESSAGE: usize = 256 << 10;

/// Pieces read ahead of the lanes.
const READ_AHEAD: usize = 32;

/// A complete transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Files, those that the receiver had included.
    pub files: u64,
    /// Their sizes.
    pub bytes: Bytes,
    /// How much of it was put on the lanes.
    pub sent: Bytes,
    /// How much of it the receiver had before.
    pub resumed: Bytes,
    /// From the greeting to the receiver's word that all is in place.
    pub elapsed: Duration,
}

/// Sends a selection to the receiver that gave the secret.
#[derive(Debug)]
pub struct Sender {
    selection: Arc<Selection>,
    secret: Secret,
    // By it the receiver knows that a new connection comes from the same run as one that died.
    id: SenderId,
    progress: Arc<Progress>,
}

impl Sender {
    /// A sender of this selection. The receiver takes all its connections for one sender, and those of
    /// another `Sender` for a second one, which has to wait.
    ///
    /// # Errors
    ///
    /// The system gives no randomness.
    pub fn new(selection: Selection, secret: Secret) -> Result<Self, SendError> {
        let id = SenderId::generate().map_err(SendError::NoRandomness)?;
        Ok(Self { selection: Arc::new(selection), secret, id, progress: Arc::default() })
    }

    /// How far the transfer is, as the receiver confirms it.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Sends everything over the connection, which must reach the receiver whose fingerprint is in
    /// the ticket, and closes it.
    ///
    /// # Errors
    ///
    /// One variant per cause. The receiver has been told what it did not cause itself.
    pub async fn send(&self, connection: &Connection) -> Result<Sent, SendError> {
        let start = Instant::now();
        self.progress.enter(Phase::Preparing);
        let (send, recv) = knock(connection, &self.secret, Purpose::Transfer, self.id).await?;
        let mut writer = ControlWriter { stream: send, connection: connection.clone() };
        let reader = ControlReader { stream: recv, connection: connection.clone() };
        match self.run(connection, &mut writer, reader).await {
            Ok(sent) => {
                connection.close(0u32.into(), b"done");
                let resumed = self.progress.snapshot().bytes_resumed;
                let manifest = &self.selection.manifest;
                let bytes = Bytes::new(manifest.bytes());
                Ok(Sent { files: manifest.files(), bytes, sent, resumed, elapsed: start.elapsed() })
            }
            Err(error) => {
                if let Some(fault) = error.fault() {
                    let failed = FromSender::Failed { fault, text: printable(&error.to_string()) };
                    if writer.write(&failed).await.is_ok() {
                        writer.finish();
                        say_goodbye(connection).await;
                    }
                }
                connection.close(1u32.into(), b"the transfer ended early");
                Err(error)
            }
        }
    }

    async fn run(
        &self,
        connection: &Connection,
        writer: &mut ControlWriter,
        reader: ControlReader,
    ) -> Result<Bytes, SendError> {
        self.progress.set_totals(self.selection.manifest.bytes(), self.selection.manifest.files());
        // From here on a task reads, so that giving up is heard at any time.
        let mut control = listen(reader);
        let (jobs, inbox) = mpsc::unbounded_channel();
        let (outbox, mut pieces) = mpsc::channel(READ_AHEAD);
        let selection = self.selection.clone();
        let thread = tokio::task::spawn_blocking(move || reader::run(&selection, inbox, &outbox));

        let conversation = async {
            self.send_manifest(writer, &mut control).await?;
            self.compare(writer, &mut control, &jobs, &mut pieces).await?;
            let plan = self.hear_plan(&mut control).await?;
            for job in plan {
                // It fails when the thread has ended; the closed pieces then tell.
                let _ = jobs.send(job);
            }
            self.progress.enter(Phase::Transferring);
            let flow = Flow { sender: self, jobs, pieces };
            flow.run(connection, writer, &mut control).await
        };
        let result = conversation.await;
        finish(result, thread).await.inspect(|_| self.progress.enter(Phase::Done))
    }

    async fn send_manifest(&self, writer: &mut ControlWriter, control: &mut Control) -> Result<(), SendError> {
        let mut part = Vec::new();
        let mut names = 0;
        for entry in self.selection.manifest.entries() {
            // A refusal of the first part ends the sending of the others.
            names += entry.path().len() + 32;
            part.push(entry.clone());
            if names >= NAMES_PER_MESSAGE {
                unless_refused(control, writer.write(&FromSender::Entries(std::mem::take(&mut part)))).await?;
                names = 0;
            }
        }
        unless_refused(control, writer.write(&FromSender::Entries(part))).await?;
        unless_refused(control, writer.write(&FromSender::EntriesEnd)).await
    }

    /// Answers with the digests of the files that the receiver may have already.
    async fn compare(
        &self,
        writer: &mut ControlWriter,
        control: &mut Control,
        jobs: &mpsc::UnboundedSender<Job>,
        pieces: &mut mpsc::Receiver<Piece>,
    ) -> Result<(), SendError> {
        let mut wanted = 0;
        loop {
            match heard(control.recv().await)? {
                FromReceiver::Compare(files) if files.is_empty() => break,
                FromReceiver::Compare(files) => {
                    for file in files {
                        self.check_file(file)?;
                        let _ = jobs.send(Job { file, have: RangeSet::default(), with_data: false });
                        wanted += 1;
                    }
                }
                _ => return Err(ProtocolError::Unexpected("the files to compare were expected").into()),
            }
        }
        for _ in 0..wanted {
            tokio::select! {
                message = control.recv() => {
                    heard(message)?;
                    return Err(ProtocolError::Unexpected("it spoke before the digests were complete").into());
                }
                piece = pieces.recv() => match piece {
                    Some(Piece::Digest { file, digest }) => writer.write(&FromSender::Digest { file, digest }).await?,
                    // The thread has ended, and says why.
                    _ => return Err(stopped_reading()),
                },
            }
        }
        Ok(())
    }

    /// What is to be sent, in the order of the manifest.
    async fn hear_plan(&self, control: &mut Control) -> Result<Vec<Job>, SendError> {
        let entries = self.selection.manifest.entries();
        let mut jobs: Vec<Option<Job>> = Vec::with_capacity(entries.len());
        for (number, entry) in entries.iter().enumerate() {
            let job = Job { file: number as u32, have: RangeSet::default(), with_data: true };
            jobs.push(matches!(entry, Entry::File { .. }).then_some(job));
        }
        loop {
            match heard(control.recv().await)? {
                FromReceiver::Skip(files) => {
                    for file in files {
                        let size = self.check_file(file)?;
                        jobs[file as usize] = None;
                        self.progress.add_resumed(size);
                        self.progress.add_file();
                    }
                }
                FromReceiver::Have { file, ranges } => {
                    let size = self.check_file(file)?;
                    let have = RangeSet::from_pairs(&ranges, size)
                        .ok_or(ProtocolError::Unexpected("it claims to have what does not exist"))?;
                    self.progress.add_resumed(have.total());
                    jobs[file as usize] = Some(Job { file, have, with_data: true });
                }
                FromReceiver::Begin => return Ok(jobs.into_iter().flatten().collect()),
                _ => return Err(ProtocolError::Unexpected("the plan was expected").into()),
            }
        }
    }

    /// The size of a file that the receiver names.
    fn check_file(&self, file: u32) -> Result<u64, SendError> {
        match self.selection.manifest.entries().get(file as usize) {
            Some(Entry::File { size, .. }) => Ok(*size),
            _ => Err(ProtocolError::Unexpected("it names a file that was not offered").into()),
        }
    }
}

/// The time in which data flows.
struct Flow<'a> {
    sender: &'a Sender,
    jobs: mpsc::UnboundedSender<Job>,
    pieces: mpsc::Receiver<Piece>,
}

impl Flow<'_> {
    async fn run(
        self,
        connection: &Connection,
        writer: &mut ControlWriter,
        control: &mut Control,
    ) -> Result<Bytes, SendError> {
        let Self { sender, jobs, mut pieces } = self;
        let mut sent = Bytes::ZERO;
        let mut lanes = LaneSender::open(connection, LANES).await.map_err(ProtocolError::from)?;
        let pump = async {
            while let Some(piece) = lanes.while_writing(pieces.recv()).await.map_err(ProtocolError::from)? {
                match piece {
                    Piece::Record(record) => {
                        sent += Bytes::new(record.data.len() as u64);
                        lanes.send(record).await.map_err(ProtocolError::from)?;
                    }
                    Piece::Digest { file, digest } => writer.write(&FromSender::Digest { file, digest }).await?,
                }
            }
            Err::<(), SendError>(stopped_reading())
        };
        let answers = async {
            loop {
                match heard(control.recv().await)? {
                    FromReceiver::Written(bytes) => sender.progress.set_done(bytes),
                    FromReceiver::Done(_) => sender.progress.add_file(),
                    FromReceiver::Again(file) => {
                        sender.check_file(file)?;
                        let _ = jobs.send(Job { file, have: RangeSet::default(), with_data: true });
                    }
                    FromReceiver::Complete => return Ok::<_, SendError>(()),
                    _ => return Err(ProtocolError::Unexpected("it spoke of the plan after the plan").into()),
                }
            }
        };
        tokio::select! {
            biased;
            answered = answers => answered?,
            Err(error) = pump => return Err(prefer_refusal(control, error).await),
        }
        sender.progress.set_done(sender.selection.manifest.bytes());
        Ok(sent)
    }
}

type Control = mpsc::Receiver<Result<FromReceiver, SendError>>;

fn listen(mut reader: ControlReader) -> Control {
    let (heard, control) = mpsc::channel(64);
    tokio::spawn(async move {
        loop {
            let message = next(&mut reader).await;
            let is_last = message.is_err();
            if heard.send(message).await.is_err() || is_last {
                return;
            }
        }
    });
    control
}

/// The next message, with the receiver's giving up already turned into an error.
async fn next(reader: &mut ControlReader) -> Result<FromReceiver, SendError> {
    match reader.read().await? {
        FromReceiver::Failed { fault, text } => Err(SendError::Receiver { fault, text: printable(&text) }),
        message => Ok(message),
    }
}

fn heard(message: Option<Result<FromReceiver, SendError>>) -> Result<FromReceiver, SendError> {
    message.unwrap_or_else(|| Err(SendError::PeerGone("it ended the conversation".to_owned())))
}

/// Writes, unless the receiver speaks first: at this point that can only be a refusal.
async fn unless_refused(
    control: &mut Control,
    write: impl Future<Output = Result<(), ProtocolError>>,
) -> Result<(), SendError> {
    let written = tokio::select! {
        biased;
        written = write => written,
        message = control.recv() => {
            heard(message)?;
            return Err(ProtocolError::Unexpected("it answered before the list of files was complete").into());
        }
    };
    match written {
        Ok(()) => Ok(()),
        Err(error) => Err(prefer_refusal(control, error.into()).await),
    }
}

/// A lane or stream that broke because the receiver gave up: its words count, if they arrive.
async fn prefer_refusal(control: &mut Control, error: SendError) -> SendError {
    if !matches!(error, SendError::PeerGone(_)) {
        return error;
    }
    let words = async {
        loop {
            if let Err(refusal @ SendError::Receiver { .. }) = heard(control.recv().await) {
                return refusal;
            }
            if control.is_closed() && control.is_empty() {
                return error_gone();
            }
        }
    };
    match tokio::time::timeout(Duration::from_secs(1), words).await {
        Ok(refusal @ SendError::Receiver { .. }) => refusal,
        _ => error,
    }
}

fn error_gone() -> SendError {
    SendError::PeerGone("it ended the conversation".to_owned())
}

/// Stands for "the reading thread knows why" until that is asked.
fn stopped_reading() -> SendError {
    SendError::Receiver { fault: Fault::Io, text: String::new() }
}

/// The thread's error is the cause where it has one: the conversation then only saw its silence.
async fn finish(
    result: Result<Bytes, SendError>,
    thread: JoinHandle<Result<(), SendError>>,
) -> Result<Bytes, SendError> {
    match (result, thread.await) {
        (Ok(sent), _) => Ok(sent),
        (Err(_), Ok(Err(cause))) => Err(cause),
        (Err(error), Ok(Ok(()))) => Err(error),
        (Err(error), Err(panic)) => match panic.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(error),
        },
    }
}
