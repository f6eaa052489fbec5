//! The receiver's side of the time in which data flow.

use std::time::Duration;

use fairpath_quic::Connection;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::error::ReceiveError;
use crate::outlet::Passage;
use crate::progress::Progress;
use crate::protocol::{Control, FromReceiver, FromSender, ProtocolError};
use crate::words::printable;
use crate::workers::Workers;
use crate::writer::{Command, Event, Finished, Writer};

const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// How often the writing thread is woken where nothing else does.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// Records that wait for the writing thread. They take at most as many megabytes; behind them the channel's
/// window is filled, and everything else stays with the sender.
const COMMANDS: usize = 32;

/// The taker of what comes.
pub(crate) enum Taker {
    Files(Box<Writer>),
    Pipe(Box<Passage>),
}

/// Passes records to the writing thread and its news to the sender. Messages are heard all the time, however
/// long the disk takes.
pub(crate) struct Session<'a> {
    control: &'a Control,
    commands: mpsc::Sender<Command>,
    events: mpsc::UnboundedReceiver<Event>,
    thread: JoinHandle<Result<Finished, ReceiveError>>,
}

impl<'a> Session<'a> {
    pub(crate) fn start(control: &'a Control, taker: Taker, workers: Workers) -> Self {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (outbox, events) = mpsc::unbounded_channel();
        let thread = match taker {
            Taker::Files(files) => workers.begin(files.run(inbox, outbox)),
            Taker::Pipe(passage) => workers.begin(passage.run(inbox, outbox)),
        };
        Self { control, commands, events, thread }
    }

    /// Runs until everything is in place; answers what that is. On every way out the writing
    /// thread has ended before.
    pub(crate) async fn run(mut self, progress: &Progress) -> Result<Finished, ReceiveError> {
        let talked = self.talk(progress).await;
        // Without commands the thread saves its journals and ends.
        drop(self.commands);
        let written = joined(self.thread).await;
        match (talked, written) {
            (_, Err(cause)) => Err(cause),
            (Err(error), Ok(_)) => Err(error),
            (Ok(()), Ok(finished)) => Ok(finished),
        }
    }

    /// Passes everything on; ends in success when the thread has ended.
    async fn talk(&mut self, progress: &Progress) -> Result<(), ReceiveError> {
        let control = self.control;
        let mut report = tokio::time::interval(REPORT_INTERVAL);
        let mut wake = tokio::time::interval(WAKE_INTERVAL);
        let mut examined = Examined::new(progress);
        report.set_missed_tick_behavior(MissedTickBehavior::Delay);
        wake.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let pump = pump(&control.connection, &self.commands);
        tokio::pin!(pump);
        loop {
            // In order: the same in each run of a simulation.
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(Event::Taken(file, bytes)) => control.write(&FromReceiver::Taken { file, bytes }).await?,
                    Some(Event::Done(files)) => control.write(&FromReceiver::Done(files)).await?,
                    Some(Event::Again(file)) => control.write(&FromReceiver::Again(file)).await?,
                    Some(Event::LeftOut(entries)) => control.write(&FromReceiver::LeftOut(entries)).await?,
                    Some(Event::Complete) | None => return Ok(()),
                },
                // The sender's own reason comes before the end of the connection, if there is one.
                error = &mut pump => return Err(next(control).await.err().unwrap_or(error)),
                message = next(control) => return Err(match message {
                    Ok(_) => ProtocolError::Unexpected("only data follow the plan").into(),
                    Err(error) => error,
                }),
                _ = report.tick() => {
                    control.write(&FromReceiver::Written(progress.snapshot().bytes_done.get())).await?;
                    examined.tell(control).await?;
                }
                // A thread that has something to do looks at the clock by itself.
                _ = wake.tick() => { let _ = self.commands.try_send(Command::Wake); }
            }
        }
    }
}

/// Tells the sender how far the reading of what is there has come.
pub(crate) struct Examined<'a> {
    progress: &'a Progress,
    told: u64,
}

impl<'a> Examined<'a> {
    pub(crate) fn new(progress: &'a Progress) -> Self {
        Self { progress, told: progress.examined_here() }
    }

    /// Tells, where there is anything new to tell.
    async fn tell(&mut self, control: &Control) -> Result<(), ProtocolError> {
        let now = self.progress.examined_here();
        if now != self.told {
            self.told = now;
            control.write(&FromReceiver::Examined(now)).await?;
        }
        Ok(())
    }

    /// Does some work, and tells of it meanwhile.
    pub(crate) async fn during<T>(
        mut self,
        control: &Control,
        work: impl Future<Output = Result<T, ReceiveError>>,
    ) -> Result<T, ReceiveError> {
        let mut report = tokio::time::interval(REPORT_INTERVAL);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                _ = report.tick() => self.tell(control).await?,
            }
        }
    }
}

/// Passes records to the thread until the connection ends. Where the thread is slow, the sender is held back
/// by the credit of what was not taken.
async fn pump(connection: &Connection, commands: &mpsc::Sender<Command>) -> ReceiveError {
    loop {
        match connection.recv_record().await {
            Ok(record) => {
                if commands.send(Command::Record(record)).await.is_err() {
                    // The thread has ended; the closed event channel then tells why.
                    std::future::pending::<()>().await;
                }
            }
            Err(error) => return ProtocolError::from(error).into(),
        }
    }
}

/// The result of a thread.
pub(crate) async fn joined<T>(task: JoinHandle<Result<T, ReceiveError>>) -> Result<T, ReceiveError> {
    match task.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ReceiveError::PeerGone("this program is ending".to_owned())),
        },
    }
}

/// The next message, with the sender's giving up already turned into an error.
pub(crate) async fn next(control: &Control) -> Result<FromSender, ReceiveError> {
    match control.read().await? {
        FromSender::Failed { fault, text } => Err(ReceiveError::Sender { fault, text: printable(&text) }),
        message => Ok(message),
    }
}
