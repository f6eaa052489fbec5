//! The sending side of a transfer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairpath_core::ByteCount;
use fairpath_quic::Connection;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::admission::{authenticate, say_goodbye};
use crate::collect::Selection;
use crate::error::SendError;
use crate::feed::Window;
use crate::flow::{Flow, last_words, next, stopped_reading};
use crate::greeting::{Purpose, SenderId};
use crate::ledger::Ledger;
use crate::offer::LeftOut;
use crate::progress::{Phase, Progress};
use crate::proof::{Known, Seal, Witness, digest_of_all};
use crate::protocol::{Control, DONE_CODE, DONE_WORD, FromReceiver, FromSender, Proof, ProtocolError, is_done};
use crate::ranges::RangeSet;
use crate::reader::{self, Job, Piece};
use crate::resumption::Resumption;
use crate::skip::{Reason, Skipped};
use crate::ticket::Secret;
use crate::words::printable;
use crate::workers::Workers;

/// How many bytes of names one message carries, about; well within the largest.
const NAMES_PER_MESSAGE: usize = 256 << 10;

/// How many names that are not sent one message tells, of 4 kB at most each.
const UNSENT_PER_MESSAGE: usize = 200;

/// Pieces read ahead of what is sent.
const READ_AHEAD: usize = 32;

/// How many tags one message carries: full packets, and far from the largest.
const TAGS_PER_MESSAGE: usize = 1000;

/// The most ranges that a receiver may claim to have, of all files together: 16 bytes each on the wire,
/// and some 64 in memory.
const MAX_RANGES_IN_ALL: usize = 1 << 20;

/// A complete transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Files in place, those that the receiver had before included.
    pub files: u64,
    /// Their sizes.
    pub bytes: ByteCount,
    /// How much was sent over the last connection.
    pub sent: ByteCount,
    /// How much of it the receiver had before.
    pub resumed: ByteCount,
    /// The entries that either end left out after the selection was made.
    pub skipped: Vec<Skipped>,
    /// From the answer to the greeting to the receiver's word that all is in place. The time in which its user was
    /// asked, or in which it served another sender, does not count.
    pub elapsed: Duration,
    /// How many connections took the place of one that was lost.
    pub reconnections: u32,
}

/// Sends a selection to the receiver that gave the secret.
#[derive(Debug)]
pub struct Sender {
    /// The selection: what the user named, without what the receiver does not take.
    selection: Mutex<Arc<Selection>>,
    secret: Secret,
    // By it the receiver knows that a new connection comes from the same run as one that died.
    id: SenderId,
    known: Arc<Known>,
    progress: Arc<Progress>,
    /// The entries that were left out, as the last connection on which there was something had it.
    left_out: Mutex<Vec<Skipped>>,
    not_taken: Mutex<LeftOut>,
    /// How long the receiver had this sender wait: while its user was asked, and while it served another sender.
    waited: Mutex<Duration>,
    pub(crate) resumption: Resumption,
    workers: Workers,
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
        Ok(Self::with_id(selection, secret, id))
    }

    /// The number by which the receiver knows this sender again.
    pub fn id(&self) -> SenderId {
        self.id
    }

    /// The same under the number of an earlier sender, as whose continuation it is taken: that may have been
    /// killed.
    pub fn with_id(selection: Selection, secret: Secret, id: SenderId) -> Self {
        Self {
            selection: Mutex::new(Arc::new(selection)),
            secret,
            id,
            known: Arc::default(),
            progress: Arc::default(),
            left_out: Mutex::default(),
            not_taken: Mutex::default(),
            waited: Mutex::default(),
            resumption: Resumption::DEFAULT,
            workers: Workers::default(),
        }
    }

    /// The same in a simulation: its number is given, and it reads files in the task that sends.
    #[cfg(feature = "simulation")]
    pub fn simulated(selection: Selection, secret: Secret, id: SenderId, resumption: Resumption) -> Self {
        Self { workers: Workers::Inline, resumption, ..Self::with_id(selection, secret, id) }
    }

    /// How far the transfer is, as the receiver confirms it.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// Sends everything over the connection, which must reach the receiver whose fingerprint is in
    /// the ticket, and closes it. Where an earlier connection brought everything, but not the word that
    /// all is in place, that word is what this one brings. The receiver is believed only what it proves: that it
    /// has computed the digest of every file.
    ///
    /// # Errors
    ///
    /// One variant per cause. The receiver has been told what it did not cause itself.
    pub async fn send(&self, connection: &Connection) -> Result<Sent, SendError> {
        let (start, waited_before) = (Instant::now(), self.waited());
        self.progress.enter(Phase::Preparing);
        self.progress.set_open(self.selection().streams());
        let sent = match self.converse(connection).await {
            Ok(sent) => sent,
            Err(SendError::PeerGone(_)) if is_done(connection) => return Err(SendError::Unproved),
            Err(error) => {
                // A closed connection keeps the reason why.
                if connection.close_reason().is_none() {
                    connection.close(1, "the transfer ended early");
                }
                return Err(error);
            }
        };
        connection.close(DONE_CODE, DONE_WORD);
        let progress = self.progress.snapshot();
        self.progress.set_done(progress.bytes_total.get());
        self.progress.enter(Phase::Done);
        Ok(Sent {
            files: progress.files_total,
            bytes: progress.bytes_total,
            sent,
            resumed: progress.bytes_resumed,
            skipped: self.left_out().clone(),
            elapsed: start.elapsed().saturating_sub(self.waited() - waited_before),
            reconnections: 0,
        })
    }

    /// The entries that the receiver does not take, since it takes no hidden names; known once it has said so.
    pub fn not_taken(&self) -> LeftOut {
        self.not_taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long the receiver had this sender wait so far.
    pub(crate) fn waited(&self) -> Duration {
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The receiver has had this sender wait since then.
    pub(crate) fn has_waited_since(&self, since: Instant) {
        *self.waited.lock().unwrap_or_else(PoisonError::into_inner) += since.elapsed();
    }

    pub(crate) fn selection(&self) -> Arc<Selection> {
        self.selection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves out hidden names, for good: the receiver of one ticket does not change its mind.
    fn without_hidden(&self) {
        let (selection, not_taken) = self.selection().without_hidden();
        if not_taken.count > 0 {
            self.known.forget();
            *self.selection.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(selection);
            *self.not_taken.lock().unwrap_or_else(PoisonError::into_inner) = not_taken;
        }
    }

    fn left_out(&self) -> MutexGuard<'_, Vec<Skipped>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn converse(&self, connection: &Connection) -> Result<ByteCount, SendError> {
        // A receiver that serves somebody else may take its time to let this end in.
        let since = Instant::now();
        let admitted = authenticate(connection, &self.secret, Purpose::Transfer, self.id).await;
        self.has_waited_since(since);
        admitted?;
        let control = Control::new(connection);
        let seal = Seal::of(connection)?;
        let result = match next(&control).await {
            Ok(FromReceiver::Terms { hidden, has_all, in_order }) => {
                if !hidden {
                    self.without_hidden();
                }
                match has_all {
                    true => self.hear_what_arrived(&control, seal).await.map(|()| ByteCount::ZERO),
                    false => self.run(&control, seal, in_order).await,
                }
            }
            Ok(_) => Err(ProtocolError::Unexpected("the terms were expected").into()),
            Err(error) => Err(error),
        };
        if let Err(error) = &result
            && let Some(fault) = error.fault()
        {
            let failed = FromSender::Failed { fault, text: printable(&error.to_string()) };
            if control.write(&failed).await.is_ok() {
                say_goodbye(connection).await;
            }
        }
        result
    }

    /// An earlier connection of this sender has brought everything, maybe one of a process that was killed.
    async fn hear_what_arrived(&self, control: &Control, seal: Seal) -> Result<(), SendError> {
        let selection = self.selection();
        let mut ledger = Ledger::new(&selection.manifest);
        self.progress.set_totals(selection.manifest.bytes(), selection.manifest.files());
        let claimed = loop {
            match next(control).await? {
                FromReceiver::LeftOut(left_out) => {
                    for (entry, reason) in left_out {
                        let is_news = ledger.leave_out(entry, reason).map_err(|_| SendError::OtherFiles)?;
                        if is_news {
                            self.progress.leave_out(selection.manifest.entries()[entry as usize].size(), 0);
                        }
                    }
                }
                FromReceiver::Arrived(proof) => break proof,
                _ => return Err(ProtocolError::Unexpected("the proof of what arrived was expected").into()),
            }
        };
        self.read_again(&selection, &ledger, &seal).await?;
        let in_place = (0..).zip(selection.manifest.entries()).filter(|(file, _)| ledger.is_owed(*file));
        let digests = in_place.map(|(file, entry)| Some((entry, self.known.get(file)?)));
        let digests = digests.collect::<Option<Vec<_>>>().ok_or(SendError::OtherFiles)?;
        let proof: Proof = seal.proof_of_all(&digest_of_all(digests.into_iter()));
        if proof != claimed {
            return Err(SendError::OtherFiles);
        }
        self.progress.add_resumed(self.progress.snapshot().bytes_total.get());
        *self.left_out() = ledger.skipped(&selection);
        Ok(())
    }

    /// Reads what the receiver says to have and this process has not read.
    async fn read_again(&self, selection: &Arc<Selection>, ledger: &Ledger, seal: &Seal) -> Result<(), SendError> {
        let files = 0..selection.manifest.entries().len() as u32;
        let unread = files.filter(|file| ledger.is_owed(*file) && self.known.get(*file).is_none());
        let (jobs, inbox) = mpsc::unbounded_channel();
        for file in unread {
            let _ = jobs.send(Job { file, have: RangeSet::default(), with_data: false });
        }
        drop(jobs);
        let (outbox, mut pieces) = mpsc::channel(READ_AHEAD);
        let thread = self.read(selection, None, seal, inbox, outbox);
        // A file that cannot be read stays unknown, and nothing can be proved of it.
        while pieces.recv().await.is_some() {}
        finish(Ok(ByteCount::ZERO), thread).await.map(drop)
    }

    /// Begins to read what the jobs name.
    fn read(
        &self,
        selection: &Arc<Selection>,
        window: Option<Arc<Window>>,
        seal: &Seal,
        inbox: mpsc::UnboundedReceiver<Job>,
        outbox: mpsc::Sender<Piece>,
    ) -> JoinHandle<()> {
        let (selection, progress, known, seal) =
            (selection.clone(), self.progress.clone(), self.known.clone(), seal.clone());
        self.workers.begin(async move {
            let witness = Witness { seal: &seal, known: &known };
            reader::run((&selection, window.as_deref()), &progress, witness, inbox, &outbox).await;
        })
    }

    async fn run(&self, control: &Control, seal: Seal, in_order: bool) -> Result<ByteCount, SendError> {
        let selection = self.selection();
        let manifest = &selection.manifest;
        let counted = (0..manifest.entries().len() as u32).map(|number| selection.counted(number)).sum();
        self.progress.set_totals(counted, manifest.files());
        let window = in_order.then(|| Arc::new(Window::after(0)));
        if in_order {
            self.progress.be_patient();
        }
        let (jobs, inbox) = mpsc::unbounded_channel();
        let (outbox, mut pieces) = mpsc::channel(READ_AHEAD);
        let thread = self.read(&selection, window.clone(), &seal, inbox, outbox);
        let witness = Witness { seal: &seal, known: &self.known };
        let mut kept = Kept { ledger: Ledger::new(manifest), selection: &selection, left_out: &self.left_out };
        let ledger = &mut kept.ledger;
        let conversation = async {
            self.send_manifest(control).await?;
            self.compare(control, ledger, &jobs, &mut pieces).await?;
            for job in self.hear_plan(control, ledger, witness).await? {
                if let Some(window) = &window {
                    window.confirm(job.have.prefix());
                }
                // It fails when the thread has ended; the closed pieces then tell.
                let _ = jobs.send(job);
            }
            self.progress.enter(Phase::Transferring);
            let (selection, window) = (&*selection, window.as_deref());
            Flow { selection, window, progress: &self.progress, witness, ledger, jobs, pieces }.run(control).await
        };
        let result = conversation.await;
        drop(kept);
        finish(result, thread).await
    }

    async fn send_manifest(&self, control: &Control) -> Result<(), SendError> {
        let mut part = Vec::new();
        let mut names = 0;
        for entry in self.selection().manifest.entries() {
            // A refusal of the first part ends the sending of the others.
            names += entry.names_bytes() + 32;
            part.push(entry.clone());
            if names >= NAMES_PER_MESSAGE {
                unless_refused(control, control.write(&FromSender::Entries(std::mem::take(&mut part)))).await?;
                names = 0;
            }
        }
        unless_refused(control, control.write(&FromSender::Entries(part))).await?;
        for unsent in self.selection().unsent.chunks(UNSENT_PER_MESSAGE) {
            unless_refused(control, control.write(&FromSender::Unsent(unsent.to_vec()))).await?;
        }
        unless_refused(control, control.write(&FromSender::Hidden(self.not_taken()))).await?;
        unless_refused(control, control.write(&FromSender::EntriesEnd)).await
    }

    /// The receiver's first answer to the list. Its user may be asked before.
    async fn agreed(&self, control: &Control) -> Result<FromReceiver, SendError> {
        let message = next(control).await?;
        if message != FromReceiver::Asking {
            return Ok(message);
        }
        let since = Instant::now();
        self.progress.enter(Phase::Asking);
        let answer = next(control).await;
        self.has_waited_since(since);
        self.progress.enter(Phase::Preparing);
        answer
    }

    /// Answers with the tags of the files that the receiver may have already.
    async fn compare(
        &self,
        control: &Control,
        ledger: &mut Ledger,
        jobs: &mpsc::UnboundedSender<Job>,
        pieces: &mut mpsc::Receiver<Piece>,
    ) -> Result<(), SendError> {
        let mut wanted: usize = 0;
        let mut first = Some(self.agreed(control).await?);
        loop {
            let message = match first.take() {
                Some(message) => message,
                None => next(control).await?,
            };
            match message {
                FromReceiver::Compare(files) if files.is_empty() => break,
                FromReceiver::Compare(files) => {
                    for file in files {
                        ledger.compare(file)?;
                        let _ = jobs.send(Job { file, have: RangeSet::default(), with_data: false });
                        wanted += 1;
                    }
                }
                _ => return Err(ProtocolError::Unexpected("the files to compare were expected").into()),
            }
        }
        let mut tags = Vec::new();
        while wanted > 0 {
            tokio::select! {
                biased;
                message = next(control) => match message? {
                    FromReceiver::Examined(bytes) => self.progress.set_examined_there(bytes),
                    _ => return Err(ProtocolError::Unexpected("it spoke before the tags were complete").into()),
                },
                piece = pieces.recv() => match piece {
                    Some(Piece::Compared { file, tag }) => {
                        if let Err(reason) = tag {
                            self.leave_out(ledger, file, reason)?;
                        }
                        tags.push(tag);
                        wanted -= 1;
                    }
                    // The thread has ended, and says why.
                    _ => return Err(stopped_reading()),
                },
            }
            if tags.len() == TAGS_PER_MESSAGE || wanted == 0 {
                control.write(&FromSender::Tags(std::mem::take(&mut tags))).await?;
            }
        }
        Ok(())
    }

    /// The plan of what is to be sent, in the order of the manifest.
    async fn hear_plan(
        &self,
        control: &Control,
        ledger: &mut Ledger,
        witness: Witness<'_>,
    ) -> Result<Vec<Job>, SendError> {
        let selection = self.selection();
        let entries = selection.manifest.entries();
        let mut partly = BTreeMap::new();
        let mut ranges_count = 0;
        loop {
            match next(control).await? {
                FromReceiver::Same(files) => {
                    for (file, proof) in files {
                        witness.check(file, &proof)?;
                        ledger.settle(file)?;
                        self.progress.add_resumed(entries[file as usize].size());
                        self.progress.add_file();
                    }
                }
                FromReceiver::Have { file, ranges } => {
                    ranges_count += ranges.len();
                    if !ledger.is_owed(file) || ranges_count > MAX_RANGES_IN_ALL {
                        return Err(ProtocolError::Unexpected("it claims to have more than was offered").into());
                    }
                    let have = RangeSet::from_pairs(&ranges, selection.counted(file))
                        .ok_or(ProtocolError::Unexpected("it claims to have what does not exist"))?;
                    self.progress.add_resumed(have.total());
                    partly.insert(file, have);
                }
                FromReceiver::LeftOut(left_out) => {
                    for (entry, reason) in left_out {
                        self.leave_out(ledger, entry, reason)?;
                    }
                }
                FromReceiver::Examined(bytes) => self.progress.set_examined_there(bytes),
                FromReceiver::Begin => break,
                _ => return Err(ProtocolError::Unexpected("the plan was expected").into()),
            }
        }
        let owed = (0..entries.len() as u32).filter(|file| ledger.is_owed(*file));
        let job = |file| Job { file, have: partly.remove(&file).unwrap_or_default(), with_data: true };
        Ok(owed.map(job).collect())
    }

    fn leave_out(&self, ledger: &mut Ledger, entry: u32, reason: Reason) -> Result<(), SendError> {
        if ledger.leave_out(entry, reason)? {
            self.progress.leave_out(self.selection().counted(entry), 0);
        }
        Ok(())
    }
}

/// The books of one connection. They keep the list of left-out entries however the conversation
/// ends. If another connection is quicker, this one is dropped, and the other may bring nothing but
/// the word that all is in place.
struct Kept<'a> {
    ledger: Ledger,
    selection: &'a Selection,
    left_out: &'a Mutex<Vec<Skipped>>,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        let left_out = self.ledger.skipped(self.selection);
        if !left_out.is_empty() {
            *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = left_out;
        }
    }
}

/// Writes, unless the receiver speaks first: at this point that can only be a refusal.
async fn unless_refused(
    control: &Control,
    write: impl Future<Output = Result<(), ProtocolError>>,
) -> Result<(), SendError> {
    let written = tokio::select! {
        biased;
        written = write => written,
        message = next(control) => {
            message?;
            return Err(ProtocolError::Unexpected("it answered before the list of files was complete").into());
        }
    };
    match written {
        Ok(()) => Ok(()),
        Err(error) => Err(last_words(control, error.into()).await),
    }
}

/// The end of the conversation, after that of the reading thread: a fault there must not pass in silence.
async fn finish(result: Result<ByteCount, SendError>, thread: JoinHandle<()>) -> Result<ByteCount, SendError> {
    match thread.await.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        _ => result,
    }
}
