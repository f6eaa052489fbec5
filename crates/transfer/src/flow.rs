//! The sender's side of the time in which data flow.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairpath_core::ByteCount;
use tokio::sync::mpsc;

use crate::collect::Selection;
use crate::error::SendError;
use crate::feed::Window;
use crate::ledger::Ledger;
use crate::progress::{Phase, Progress};
use crate::proof::Witness;
use crate::protocol::{Control, FromReceiver, ProtocolError, is_done};
use crate::ranges::RangeSet;
use crate::reader::{Job, Piece};
use crate::skip::Reason;
use crate::words::printable;

/// Sends what is read, and hears what becomes of it.
pub(crate) struct Flow<'a> {
    pub(crate) selection: &'a Selection,
    /// The window of a file that the receiver passes on in order.
    pub(crate) window: Option<&'a Window>,
    pub(crate) progress: &'a Progress,
    pub(crate) witness: Witness<'a>,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    pub(crate) pieces: mpsc::Receiver<Piece>,
}

/// The state that both directions of the conversation look at.
struct Books<'a> {
    selection: &'a Selection,
    window: Option<&'a Window>,
    progress: &'a Progress,
    witness: Witness<'a>,
    ledger: Mutex<&'a mut Ledger>,
}

impl Flow<'_> {
    /// Runs until the receiver calls everything complete; answers how many bytes of files were sent.
    pub(crate) async fn run(self, control: &Control) -> Result<ByteCount, SendError> {
        let Self { selection, window, progress, witness, ledger, jobs, mut pieces } = self;
        let books = Books { selection, window, progress, witness, ledger: Mutex::new(ledger) };
        let mut sent = ByteCount::ZERO;
        let pump = async {
            while let Some(piece) = pieces.recv().await {
                match piece {
                    Piece::Record(record, bytes) => {
                        sent += ByteCount::new(bytes);
                        control.connection.send_record(record).await.map_err(ProtocolError::from)?;
                    }
                    Piece::LeftOut { file, reason } => books.leave_out(file, reason)?,
                    // Nothing is compared after the plan.
                    Piece::Compared { .. } => {}
                }
            }
            Err::<(), SendError>(stopped_reading())
        };
        let answers = async {
            loop {
                match next(control).await {
                    Ok(message) => {
                        if !books.answer(message, &jobs)? {
                            return Ok::<_, SendError>(());
                        }
                    }
                    // Its last word is lost; all that it could be about is proved.
                    Err(_) if is_done(&control.connection) && books.ledger().check_complete().is_ok() => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        };
        tokio::select! {
            biased;
            answered = answers => answered?,
            Err(error) = pump => return Err(last_words(control, error).await),
        }
        progress.set_done(progress.snapshot().bytes_total.get());
        // From now on no other connection is wanted, also while the reading ends.
        progress.enter(Phase::Done);
        Ok(sent)
    }
}

impl<'a> Books<'a> {
    /// Takes the receiver's word; false after the last.
    fn answer(&self, message: FromReceiver, jobs: &mpsc::UnboundedSender<Job>) -> Result<bool, SendError> {
        match message {
            FromReceiver::Written(bytes) => {
                self.progress.set_done(bytes.min(self.progress.snapshot().bytes_total.get()))
            }
            FromReceiver::Taken { file, bytes } => self.confirm(file, bytes)?,
            FromReceiver::Examined(bytes) => self.progress.set_examined_there(bytes),
            FromReceiver::Done(files) => {
                for (file, proof) in files {
                    self.witness.check(file, &proof)?;
                    self.ledger().settle(file)?;
                    self.progress.add_file();
                }
            }
            FromReceiver::Again(file) => {
                let mut ledger = self.ledger();
                ledger.repeat(file)?;
                if ledger.is_owed(file) {
                    let _ = jobs.send(Job { file, have: RangeSet::default(), with_data: true });
                }
            }
            FromReceiver::LeftOut(entries) => {
                for (entry, reason) in entries {
                    self.leave_out(entry, reason)?;
                }
            }
            FromReceiver::Complete => {
                self.ledger().check_complete()?;
                return Ok(false);
            }
            _ => return Err(ProtocolError::Unexpected("it spoke of the plan after the plan").into()),
        }
        Ok(true)
    }

    /// The receiver has passed on the first `bytes` of a file.
    fn confirm(&self, file: u32, bytes: u64) -> Result<(), ProtocolError> {
        let is_possible = match (self.selection.feed(file), self.window) {
            (Some(feed), _) => feed.confirm(bytes),
            (None, Some(window)) => {
                window.confirm(bytes);
                true
            }
            (None, None) => false,
        };
        match is_possible {
            true => Ok(()),
            false => Err(ProtocolError::Unexpected("it has taken more than it was sent")),
        }
    }

    fn leave_out(&self, entry: u32, reason: Reason) -> Result<(), SendError> {
        if self.ledger().leave_out(entry, reason)? {
            // The receiver's reports leave out the part of it that was done.
            self.progress.leave_out(self.selection.counted(entry), 0);
        }
        Ok(())
    }

    fn ledger(&self) -> MutexGuard<'_, &'a mut Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next message, with the receiver's giving up already turned into an error.
pub(crate) async fn next(control: &Control) -> Result<FromReceiver, SendError> {
    match control.read().await? {
        FromReceiver::Failed { fault, text } => Err(SendError::Receiver { fault, text: printable(&text) }),
        message => Ok(message),
    }
}

/// The connection ended because the receiver gave up: its words count, if they have come.
pub(crate) async fn last_words(control: &Control, error: SendError) -> SendError {
    // Messages before the end are heard before it, so this waits for nothing.
    while control.connection.close_reason().is_some() {
        match next(control).await {
            Ok(_) => {}
            Err(refusal @ SendError::Receiver { .. }) => return refusal,
            Err(_) => break,
        }
    }
    error
}

/// The reading thread ended before its time.
pub(crate) fn stopped_reading() -> SendError {
    SendError::PeerGone("this program is ending".to_owned())
}
