//! The receiver's side of the time in which data flow.

use std::time::Duration;

use fairpath_quic::lanes::{LaneError, LaneReceiver};
use noq::Connection;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::error::ReceiveError;
use crate::progress::Progress;
use crate::protocol::{ControlReader, ControlWriter, FromReceiver, FromSender, ProtocolError};
use crate::receive::{joined, next};
use crate::skip::Skipped;
use crate::writer::{Command, Event, Writer};

const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// How often the writing thread is woken where nothing else does.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// Records that wait for the writing thread. With those in front of them they take at most as many
/// megabytes; what is not taken stays with the sender.
const COMMANDS: usize = 32;

/// How long a sender's reason may come behind the end of its lanes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Passes records to the writing thread and its news to the sender. The control stream is read all
/// the time, however long the disk takes.
pub(crate) struct Session {
    connection: Connection,
    conversation: u8,
    control: mpsc::Receiver<Result<FromSender, ReceiveError>>,
    commands: mpsc::Sender<Command>,
    events: mpsc::UnboundedReceiver<Event>,
    thread: JoinHandle<Result<Vec<Skipped>, ReceiveError>>,
}

impl Session {
    pub(crate) fn start(connection: &Connection, conversation: u8, mut reader: ControlReader, files: Writer) -> Self {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (outbox, events) = mpsc::unbounded_channel();
        let thread = tokio::task::spawn_blocking(move || files.run(inbox, outbox));
        let (heard, control) = mpsc::channel(1);
        tokio::spawn(async move {
            loop {
                let message = next(&mut reader).await;
                let is_last = message.is_err();
                if heard.send(message).await.is_err() || is_last {
                    return;
                }
            }
        });
        Self { connection: connection.clone(), conversation, control, commands, events, thread }
    }

    /// Runs until everything is in place; answers what was left out. On every way out the writing
    /// thread has ended before.
    pub(crate) async fn run(
        mut self,
        writer: &mut ControlWriter,
        progress: &Progress,
    ) -> Result<Vec<Skipped>, ReceiveError> {
        let talked = self.talk(writer, progress).await;
        // Without commands the thread saves its journals and ends.
        drop(self.commands);
        let written = joined(self.thread).await;
        match (talked, written) {
            (_, Err(cause)) => Err(cause),
            (Err(error), Ok(_)) => Err(error),
            (Ok(()), Ok(skipped)) => Ok(skipped),
        }
    }

    /// Passes everything on; ends in success when the thread has ended.
    async fn talk(&mut self, writer: &mut ControlWriter, progress: &Progress) -> Result<(), ReceiveError> {
        let mut report = tokio::time::interval(REPORT_INTERVAL);
        let mut wake = tokio::time::interval(WAKE_INTERVAL);
        report.set_missed_tick_behavior(MissedTickBehavior::Delay);
        wake.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let pump = pump(&self.connection, self.conversation, &self.commands);
        tokio::pin!(pump);
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(Event::Done(files)) => writer.write(&FromReceiver::Done(files)).await?,
                    Some(Event::Again(file)) => writer.write(&FromReceiver::Again(file)).await?,
                    Some(Event::LeftOut(entries)) => writer.write(&FromReceiver::LeftOut(entries)).await?,
                    Some(Event::Complete) | None => return Ok(()),
                },
                error = &mut pump => return Err(last_words(&mut self.control, error).await),
                message = self.control.recv() => return Err(match message {
                    Some(Ok(_)) => ProtocolError::Unexpected("only data follow the plan").into(),
                    Some(Err(error)) => error,
                    None => ended(&self.connection),
                }),
                _ = report.tick() => {
                    writer.write(&FromReceiver::Written(progress.snapshot().bytes_done.get())).await?;
                }
                // A thread that has something to do looks at the clock by itself.
                _ = wake.tick() => { let _ = self.commands.try_send(Command::Wake); }
            }
        }
    }
}

/// Passes records from the lanes to the thread until the lanes break.
async fn pump(connection: &Connection, conversation: u8, commands: &mpsc::Sender<Command>) -> ReceiveError {
    let mut lanes = LaneReceiver::of_conversation(connection, conversation);
    loop {
        match lanes.recv().await {
            Some(Ok(record)) => {
                if commands.send(Command::Record(record)).await.is_err() {
                    // The thread has ended; the closed event channel then tells why.
                    std::future::pending::<()>().await;
                }
            }
            Some(Err(error)) => return lane_error(connection, error),
            None => return ended(connection),
        }
    }
}

/// A lane that ends early is the sender's giving up, or the end of the connection.
fn lane_error(connection: &Connection, error: LaneError) -> ReceiveError {
    match (connection.close_reason(), error) {
        (Some(reason), _) => ProtocolError::from(reason).into(),
        (None, LaneError::Truncated) => ReceiveError::PeerGone("it stopped sending".to_owned()),
        (None, error) => ProtocolError::from(error).into(),
    }
}

/// The sender's own reason, if one comes soon; lanes and words take different ways.
async fn last_words(
    control: &mut mpsc::Receiver<Result<FromSender, ReceiveError>>,
    error: ReceiveError,
) -> ReceiveError {
    match tokio::time::timeout(LAST_WORDS, control.recv()).await {
        Ok(Some(Err(words))) => words,
        _ => error,
    }
}

fn ended(connection: &Connection) -> ReceiveError {
    match connection.close_reason() {
        Some(reason) => ProtocolError::from(reason).into(),
        None => ReceiveError::PeerGone("it ended the conversation".to_owned()),
    }
}
