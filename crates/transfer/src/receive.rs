//! The receiving side of a transfer.

mod pipe;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fairpath_core::ByteCount;
use fairpath_quic::{ChannelId, Connection};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::admission::{Admission, AdmissionError, say_goodbye};
use crate::destination::{Destination, DirectoryModes};
use crate::error::ReceiveError;
use crate::greeting::{Purpose, SenderId};
use crate::manifest::{Limits, Manifest, ManifestBuilder};
use crate::offer::{Consent, LeftOut, Offer};
use crate::outlet::Outlet;
use crate::partial::Partial;
use crate::placing::Placing;
use crate::plan::{self, Existing};
use crate::progress::{Phase, Progress};
use crate::proof::Seal;
use crate::protocol::{
    Control, DONE_CODE, DONE_WORD, Digest, ENTRIES_PER_MESSAGE, FromReceiver, FromSender, ProtocolError, is_done,
    is_interrupted,
};
use crate::session::{Examined, Session, Taker, joined, next};
use crate::skip::{Reason, Skipped};
use crate::ticket::Secret;
use crate::words::printable;
use crate::workers::Workers;
use crate::writer::{Finished, Writer};

/// The settings of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiveConfig {
    /// Where the files go; created once a sender has proved itself.
    pub directory: PathBuf,
    /// How existing files with other content are treated.
    pub existing: Existing,
    /// Whether the ticket stays good after a complete transfer, also for other senders: those have their turn one after
    /// another.
    pub keep: bool,
    /// The secret of the ticket.
    pub secret: Secret,
    /// The limits of what is accepted.
    pub limits: Limits,
    /// The judge of an offer that is acceptable.
    pub consent: Consent,
}

/// A complete transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Files in place, those that were there before included.
    pub files: u64,
    /// Their sizes.
    pub bytes: ByteCount,
    /// How much of it was there before.
    pub resumed: ByteCount,
    /// The first files that are in place, as they are named here, and their sizes.
    pub arrived: Vec<(String, ByteCount)>,
    /// The things that either end left out; the ticket stays good for it, but for what a user did not want.
    pub skipped: Vec<Skipped>,
    /// The things that the sender could not offer. No other try brings them.
    pub unsent: Vec<Skipped>,
    /// From the first proof of the secret to the last file in place, without the time in which the user was asked.
    pub elapsed: Duration,
    /// How many connections of the sender took the place of one that was lost.
    pub reconnections: u32,
    /// Whether the sender has been heard to know that everything is in place. Where not, it may come back
    /// to ask, and is to be answered.
    pub is_confirmed: bool,
    /// Whether this connection only brought the sender the word for what was in place before.
    pub is_repeat: bool,
}

impl Received {
    /// Whether everything that was offered is in place, but for what a user did not want.
    pub fn is_complete(&self) -> bool {
        is_complete(&self.skipped)
    }
}

fn is_complete(skipped: &[Skipped]) -> bool {
    skipped.iter().all(|one| one.reason.is_expected())
}

/// The state of one sender, over all its connections.
#[derive(Clone, Debug)]
struct Run {
    sender: SenderId,
    since: Instant,
    /// How long the user was asked meanwhile.
    asked: Duration,
    connections: u32,
    /// The files that it has brought, once all of them are in place.
    received: Option<InPlace>,
}

/// The files that one sender has brought.
#[derive(Clone, Debug)]
struct InPlace {
    received: Received,
    /// One digest over all of it.
    all: Digest,
    /// The entries that are not in place, by number.
    left_out: Vec<(u32, Reason)>,
}

/// How long the sender that uses the ticket may be silent before another one takes its place. Sooner a
/// lost link would give the ticket away; with it, both ends take a peer for dead.
pub const SILENCE: Duration = Duration::from_secs(10);

/// How long packets of a sender that is gone may still come: longer than most queues of modems hold them.
const QUEUED: Duration = Duration::from_secs(3);

/// A connection whose peer was let in.
#[derive(Debug)]
pub struct Admitted {
    sender: SenderId,
    control: Control,
    number: u64,
}

impl Admitted {
    /// The sender that was let in: the same for all connections of one sender.
    pub fn sender(&self) -> SenderId {
        self.sender
    }
}

/// The sender that uses the ticket.
#[derive(Clone, Debug)]
struct Holder {
    sender: SenderId,
    connection: Connection,
    /// Tells its connections apart.
    number: u64,
}

impl Holder {
    fn is_connected(&self) -> bool {
        self.connection.close_reason().is_none()
    }

    /// Whether anything is heard of it within [`SILENCE`]: an idle path asks for a sign of life more
    /// often than that. Packets of the first moments prove nothing: they may have waited in a queue since their
    /// sender was killed.
    async fn is_alive(&self) -> bool {
        let heard = || self.connection.datagrams_received();
        tokio::select! {
            biased;
            _ = self.connection.closed() => return false,
            () = tokio::time::sleep(QUEUED) => {}
        }
        let before = heard();
        let word = async {
            while self.is_connected() && heard() == before {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let _ = tokio::time::timeout(SILENCE.saturating_sub(QUEUED), word).await;
        self.is_connected() && heard() != before
    }
}

/// Receives what senders with the right secret send; one transfer at a time.
#[derive(Debug)]
pub struct Receiver {
    config: ReceiveConfig,
    admission: Admission,
    progress: Arc<Progress>,
    // The holder of the ticket. Only the same sender takes over from itself.
    current: Mutex<Option<Holder>>,
    running: tokio::sync::Mutex<()>,
    run: Mutex<Option<Run>>,
    /// The offer that was agreed to last, and its sender.
    offer: Mutex<Option<(SenderId, Offer)>>,
    /// Takes what comes in the directory's place.
    outlet: Option<Outlet>,
    workers: Workers,
}

impl Receiver {
    /// A receiver; nothing is touched before a sender has proved itself.
    pub fn new(config: ReceiveConfig) -> Self {
        Self {
            admission: Admission::new(config.secret.clone(), Purpose::Transfer),
            config,
            progress: Arc::default(),
            current: Mutex::default(),
            running: tokio::sync::Mutex::default(),
            run: Mutex::default(),
            offer: Mutex::default(),
            outlet: None,
            workers: Workers::default(),
        }
    }

    /// The same in a simulation: files are written in the task that receives.
    #[cfg(feature = "simulation")]
    pub fn simulated(config: ReceiveConfig) -> Self {
        Self { workers: Workers::Inline, ..Self::new(config) }
    }

    /// How far the transfer is.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.clone()
    }

    /// The offer of the sender, once it was agreed to.
    pub fn offer(&self) -> Option<Offer> {
        self.agreed().as_ref().map(|(_, offer)| offer.clone())
    }

    fn agreed(&self) -> MutexGuard<'_, Option<(SenderId, Offer)>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks whether the offer is taken, unless it was before: the sender may have come back.
    async fn agree(&self, sender: SenderId, control: &Control, offer: Offer) -> Result<(), ReceiveError> {
        if self.agreed().as_ref().is_some_and(|(whose, agreed)| *whose == sender && agreed.is_same(&offer)) {
            return Ok(());
        }
        let is_taken = match self.config.consent.given(&offer) {
            Ok(is_taken) => is_taken,
            Err(answer) => {
                let since = Instant::now();
                self.progress.enter(Phase::Asking);
                let answered = self.answered(control, answer).await;
                self.progress.enter(Phase::Preparing);
                if let Some(run) = &mut *self.sender_run() {
                    run.asked += since.elapsed();
                }
                answered?
            }
        };
        if !is_taken {
            return Err(ReceiveError::Declined);
        }
        *self.agreed() = Some((sender, offer));
        // The same sender may come back with other files.
        self.progress.begin_anew();
        Ok(())
    }

    /// Waits for the user's answer, and has the sender know that.
    async fn answered(&self, control: &Control, answer: oneshot::Receiver<bool>) -> Result<bool, ReceiveError> {
        control.write(&FromReceiver::Asking).await?;
        tokio::select! {
            biased;
            is_taken = answer => Ok(is_taken.unwrap_or(false)),
            gone = control.connection.closed() => Err(ProtocolError::from(gone).into()),
        }
    }

    /// Whether a sender can still be admitted.
    pub fn is_open(&self) -> bool {
        self.admission.is_open()
    }

    /// Waits for the peer's proof and answers it. The ticket is bound to the first sender that proves it:
    /// a second one is refused while that is there, and lets go once its connection is closed or has been
    /// silent for [`SILENCE`]. The same sender takes over from its own connection at once.
    ///
    /// # Errors
    ///
    /// [`ReceiveError::Admission`]. The peer has been told, and the connection is closed.
    pub async fn admit(&self, connection: &Connection) -> Result<Admitted, ReceiveError> {
        let guest = self.admission.hear_or_know(connection, |sender| self.received_from(sender).is_some()).await?;
        let sender = guest.sender;
        let number = match self.bind(connection, sender).await {
            Ok(number) => number,
            Err(taken) => {
                self.admission.send_away(connection, &taken);
                return Err(taken.into());
            }
        };
        Ok(Admitted { sender, control: guest.admit().await?, number })
    }

    /// Makes `sender` the one that uses the ticket, unless another one does; answers the number of its connection.
    async fn bind(&self, connection: &Connection, sender: SenderId) -> Result<u64, AdmissionError> {
        loop {
            let other = {
                let mut current = self.current();
                match &*current {
                    Some(holder) if holder.sender != sender && holder.is_connected() => holder.clone(),
                    before => {
                        let number = before.as_ref().map_or(0, |before| before.number + 1);
                        let holder = Holder { sender, connection: connection.clone(), number };
                        if let Some(before) = current.replace(holder) {
                            before.connection.close(1, "a newer connection of the same sender took over");
                        }
                        return Ok(number);
                    }
                }
            };
            if other.is_alive().await {
                return Err(if self.config.keep { AdmissionError::Busy } else { AdmissionError::Taken });
            }
            other.connection.close(1, "nothing was heard for a while, and another sender came");
        }
    }

    /// Serves a connection that was let in to its end. Several may be served at the same time: the
    /// later one takes over from the earlier one.
    ///
    /// # Errors
    ///
    /// One variant per cause; [`ReceiveError::is_retryable`] tells whether it makes sense to wait
    /// for another connection. The sender has been told, and the connection is closed.
    pub async fn serve(&self, admitted: Admitted) -> Result<Received, ReceiveError> {
        let Admitted { sender, control, number } = admitted;
        let connection = &control.connection;
        let _running = self.running.lock().await;
        let result = match self.received_from(sender) {
            Some(in_place) => self.repeat(&control, in_place).await,
            None => self.run(sender, &control).await,
        };
        let result = match result {
            // Whatever becomes of the connection: everything is in place.
            Ok((received, last)) => Ok(Received { is_confirmed: say_last(&control, &last).await, ..received }),
            Err(error) => Err(error),
        };
        match &result {
            Ok(_) => connection.close(DONE_CODE, DONE_WORD),
            Err(error) => {
                self.progress.enter(Phase::Waiting);
                if matches!(error, ReceiveError::Conflicts(_) | ReceiveError::NotOne(_)) {
                    // No connection was lost: whatever comes next begins anew.
                    self.sender_run().take();
                }
                match error {
                    ReceiveError::Admission(late) => self.admission.send_away(connection, late),
                    error => refuse(&control, error).await,
                }
            }
        }
        result.map_err(|error| self.superseded_or(number, error, is_interrupted(connection)))
    }

    /// Tells a sender that came back what is in place, and proves it.
    async fn repeat(&self, control: &Control, in_place: InPlace) -> Result<(Received, FromReceiver), ReceiveError> {
        let InPlace { received, all, left_out } = in_place;
        let seal = Seal::of(&control.connection)?;
        let told = async {
            control.write(&self.terms(true)).await?;
            for some in left_out.chunks(ENTRIES_PER_MESSAGE) {
                control.write(&FromReceiver::LeftOut(some.to_vec())).await?;
            }
            Ok::<_, ProtocolError>(())
        };
        // Whatever becomes of the connection: everything is in place.
        let _ = told.await;
        Ok((Received { is_repeat: true, ..received }, FromReceiver::Arrived(seal.proof_of_all(&all))))
    }

    /// The conversation of one connection, but for the last word, which is answered with what was received.
    async fn run(&self, sender: SenderId, control: &Control) -> Result<(Received, FromReceiver), ReceiveError> {
        if !self.admission.is_open() {
            return Err(AdmissionError::Used.into());
        }
        self.begin(sender);
        self.progress.enter(Phase::Preparing);
        let seal = Seal::of(&control.connection)?;
        control.write(&self.terms(false)).await?;
        let Listed { manifest, hidden, unsent } = read_manifest(control, self.config.limits, self.workers).await?;
        let manifest = Arc::new(manifest);
        let passed_on = self.outlet.as_ref().map(|outlet| outlet.admit(&manifest)).transpose()?;
        self.agree(sender, control, Offer::new(&manifest, hidden)).await?;
        self.progress.set_totals(manifest.bytes(), manifest.files());
        self.progress.set_open(manifest.entries().iter().filter(|entry| entry.is_stream()).count());
        let taker = match (&self.outlet, passed_on) {
            (Some(outlet), Some(entry)) => {
                Taker::Pipe(Box::new(self.prepare_pipe(outlet, entry, control, seal).await?))
            }
            _ => Taker::Files(Box::new(self.prepare(&manifest, control, seal).await?)),
        };
        self.progress.enter(Phase::Transferring);
        let finished = Session::start(control, taker, self.workers).run(&self.progress).await?;
        let Finished { all, arrived, left_out } = finished;
        let skipped: Vec<_> = left_out.iter().map(|(_, skipped)| skipped.clone()).collect();
        if !self.config.keep && is_complete(&skipped) {
            self.admission.use_up();
        }
        self.progress.enter(Phase::Done);
        let progress = self.progress.snapshot();
        let mut received = Received {
            files: progress.files_total,
            bytes: progress.bytes_total,
            resumed: progress.bytes_resumed,
            arrived,
            skipped,
            unsent,
            elapsed: Duration::ZERO,
            reconnections: 0,
            is_confirmed: false,
            is_repeat: false,
        };
        if let Some(run) = &mut *self.sender_run() {
            (received.elapsed, received.reconnections) =
                (run.since.elapsed().saturating_sub(run.asked), run.connections - 1);
            let left_out = left_out.into_iter().map(|(entry, skipped)| (entry, skipped.reason)).collect();
            run.received = Some(InPlace { received: received.clone(), all, left_out });
        }
        Ok((received, FromReceiver::Complete))
    }

    fn terms(&self, has_all: bool) -> FromReceiver {
        FromReceiver::Terms { hidden: self.config.limits.hidden, has_all, in_order: self.outlet.is_some() }
    }

    /// A connection of `sender` begins.
    fn begin(&self, sender: SenderId) {
        let mut current = self.sender_run();
        match &mut *current {
            Some(run) if run.sender == sender => run.connections += 1,
            _ => {
                *current =
                    Some(Run { sender, since: Instant::now(), asked: Duration::ZERO, connections: 1, received: None });
                self.progress.begin_anew();
            }
        }
    }

    /// The files that this sender has brought, once all of them are in place.
    fn received_from(&self, sender: SenderId) -> Option<InPlace> {
        let run = self.sender_run();
        run.as_ref().filter(|run| run.sender == sender).and_then(|run| run.received.clone())
    }

    /// Everything between the manifest and the data: what exists is compared, the plan is sent.
    async fn prepare(&self, manifest: &Arc<Manifest>, control: &Control, seal: Seal) -> Result<Writer, ReceiveError> {
        let (directory, existing) = (self.config.directory.clone(), self.config.existing);
        let Limits { modes: keeps_modes, archive, .. } = self.config.limits;
        let (list, progress) = (manifest.clone(), self.progress.clone());
        let (mut destination, mut survey) = blocking(self.workers, move || {
            let mut destination = Destination::open(&directory)?.telling(progress);
            destination.modes = DirectoryModes::of(&list, keeps_modes, archive);
            let survey = plan::survey(&mut destination, &list, existing)?;
            Ok((destination, survey))
        })
        .await?;
        let compare = std::mem::take(&mut survey.compare);
        for numbers in compare.chunks(ENTRIES_PER_MESSAGE) {
            let numbers = numbers.iter().map(|(number, _)| *number).collect();
            control.write(&FromReceiver::Compare(numbers)).await?;
        }
        control.write(&FromReceiver::Compare(vec![])).await?;

        let (list, numbers, progress) = (manifest.clone(), compare.clone(), self.progress.clone());
        let own = self.workers.begin(async move {
            let digests = plan::digest_existing(&mut destination, &list, &numbers, &progress);
            Ok((destination, digests))
        });
        let both = async { Ok((read_tags(control, compare.len()).await?, joined(own).await?)) };
        let (sent, (destination, own)) = Examined::new(&self.progress).during(control, both).await?;
        let compared: Vec<_> = compare.into_iter().zip(own.into_iter().zip(sent)).collect();

        let (list, progress) = (manifest.clone(), self.progress.clone());
        let (files, answers) = blocking(self.workers, move || {
            let mut destination = destination;
            let (partial, unfinished) = Partial::open(&destination)?;
            let there = (&partial, &unfinished);
            let plan = plan::decide(&mut destination, there, &list, (survey, compared), &seal, existing)?;
            let answers = plan.answers(&seal);
            let how = Placing { existing, keeps_modes };
            Ok((Writer::new(destination, partial, list, how, progress, seal, plan), answers))
        })
        .await?;
        for answer in answers {
            control.write(&answer).await?;
        }
        control.write(&FromReceiver::Begin).await?;
        Ok(files)
    }

    fn superseded_or(&self, number: u64, error: ReceiveError, is_interrupted: bool) -> ReceiveError {
        let is_current = self.current().as_ref().is_some_and(|now| now.number == number);
        match error {
            ReceiveError::PeerGone(_) if !is_current => ReceiveError::Superseded,
            other => self.of_a_stream(other, is_interrupted),
        }
    }

    fn sender_run(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> MutexGuard<'_, Option<Holder>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the sender that everything is in place; whether it has heard. An acknowledgement is enough, but a
/// sender may close before that is seen. How long this takes QUIC bounds: a peer that is there acknowledges,
/// and one that is not is found out.
async fn say_last(control: &Control, word: &FromReceiver) -> bool {
    let is_heard = control.write(word).await.is_ok() && control.connection.flushed(ChannelId::Messages).await.is_ok();
    is_heard || is_done(&control.connection)
}

/// Tells the sender why, where it can still hear, and closes.
async fn refuse(control: &Control, error: &ReceiveError) {
    if let Some(fault) = error.fault() {
        let failed = FromReceiver::Failed { fault, text: printable(&error.to_string()) };
        if control.write(&failed).await.is_ok() {
            return say_goodbye(&control.connection).await;
        }
    }
    control.connection.close(1, "the transfer ended early");
}

async fn blocking<T: Send + 'static>(
    workers: Workers,
    work: impl FnOnce() -> Result<T, ReceiveError> + Send + 'static,
) -> Result<T, ReceiveError> {
    joined(workers.begin(async move { work() })).await
}

/// The sender's list, and the things that are not in it.
struct Listed {
    manifest: Manifest,
    hidden: LeftOut,
    unsent: Vec<Skipped>,
}

/// Reads the list of files and judges each entry as it comes: a peer that sends what is refused is
/// told so at once, and what it sends behind that is never held.
async fn read_manifest(control: &Control, limits: Limits, workers: Workers) -> Result<Listed, ReceiveError> {
    let (mut builder, mut hidden, mut unsent) = (ManifestBuilder::new(limits), LeftOut::default(), Vec::new());
    loop {
        match next(control).await? {
            FromSender::Entries(more) => more.into_iter().try_for_each(|entry| builder.push(entry))?,
            FromSender::Unsent(more) => {
                for (name, reason) in more {
                    builder.count_name(&name)?;
                    unsent.push(Skipped { path: name.as_path().to_owned(), reason });
                }
            }
            FromSender::Hidden(names) => hidden = names.safe(),
            FromSender::EntriesEnd => break,
            _ => return Err(ProtocolError::Unexpected("the list of files was expected").into()),
        }
    }
    blocking(workers, move || Ok(Listed { manifest: builder.finish()?, hidden, unsent })).await
}

/// Reads the sender's tags of `count` files, in the order in which they were asked for.
async fn read_tags(control: &Control, count: usize) -> Result<Vec<Result<Digest, Reason>>, ReceiveError> {
    let mut tags = Vec::with_capacity(count);
    while tags.len() < count {
        match next(control).await? {
            FromSender::Tags(more) if !more.is_empty() && more.len() <= count - tags.len() => {
                tags.extend(more);
            }
            _ => return Err(ProtocolError::Unexpected("the tags of the existing files were expected").into()),
        }
    }
    Ok(tags)
}
