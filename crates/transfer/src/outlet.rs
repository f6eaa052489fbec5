//! Received data go to a pipe instead of into files: one file or stream, in order.
//!
//! Data that were passed on cannot be taken back. So a later connection has to bring the rest of the same, and whoever
//! reads the pipe knows only from the end of the transfer that all of it was right.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes as Data;
use fairpath_core::ByteCount;
use fairpath_quic::Record;
use tokio::sync::mpsc;

use crate::entry::Entry;
use crate::error::ReceiveError;
use crate::feed::{CONFIRM_EVERY, WINDOW};
use crate::manifest::Manifest;
use crate::parcel::{self, Item, PARCEL, ZEROS_MAX};
use crate::progress::Progress;
use crate::proof::{Seal, digest_of_all};
use crate::protocol::{Digest, FromReceiver, ProtocolError};
use crate::writer::{Command, Event, Finished};

/// How much is written at once.
const WRITTEN_AT_ONCE: usize = 64 << 10;

/// A pipe that takes what is received, over all connections of a receiver.
#[derive(Clone)]
pub(crate) struct Outlet(Arc<Pipe>);

struct Pipe {
    /// Locked as long as a write takes, which may be for ever.
    output: Mutex<Box<dyn Write + Send>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The thing that is passed on, once something of it was.
    begun: Option<Entry>,
    written: u64,
    hasher: Box<blake3::Hasher>,
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outlet")
    }
}

impl Outlet {
    pub(crate) fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Pipe { output: Mutex::new(Box::new(output)), state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much was passed on, where the thing is begun.
    pub(crate) fn begun(&self) -> Option<u64> {
        let state = self.state();
        state.begun.as_ref().map(|_| state.written)
    }

    /// Writes the beginning of this part of an entry; answers how much.
    fn write(&self, entry: &Entry, piece: &[u8]) -> Result<u64, ReceiveError> {
        self.state().begun.get_or_insert_with(|| entry.clone());
        let mut output = self.0.output.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = loop {
            match output.write(piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                taken => break taken,
            }
        };
        let mut state = self.state();
        let taken = taken.map_err(|source| ReceiveError::Pipe { written: ByteCount::new(state.written), source })?;
        state.hasher.update(&piece[..taken]);
        state.written += taken as u64;
        Ok(taken as u64)
    }

    /// The only thing in the list, if it can be passed on: nothing else was begun before.
    pub(crate) fn admit(&self, manifest: &Manifest) -> Result<Entry, ReceiveError> {
        let [entry] = manifest.entries() else { return Err(ReceiveError::NotOne(manifest.entries().len())) };
        if !entry.is_file() {
            return Err(ReceiveError::NotOne(1));
        }
        let state = self.state();
        match &state.begun {
            Some(begun) if begun != entry => Err(ReceiveError::BrokeOff { written: ByteCount::new(state.written) }),
            _ => Ok(entry.clone()),
        }
    }

    /// The part that need not be sent again, in the words of the protocol.
    pub(crate) fn plan(&self) -> Vec<FromReceiver> {
        match self.begun() {
            Some(written @ 1..) => vec![FromReceiver::Have { file: 0, ranges: vec![(0, written)] }],
            _ => Vec::new(),
        }
    }
}

/// A part that came before its turn.
#[derive(Clone, Debug)]
enum Run {
    Data(Data),
    Zeros(u64),
}

impl Run {
    fn length(&self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Zeros(length) => *length,
        }
    }

    /// How much memory it takes.
    fn held(&self) -> u64 {
        match self {
            Self::Data(data) => data.len() as u64,
            Self::Zeros(_) => 0,
        }
    }
}

/// Passes on what one connection brings.
#[derive(Debug)]
pub(crate) struct Passage {
    outlet: Outlet,
    entry: Entry,
    seal: Seal,
    progress: Arc<Progress>,
    /// Parts that wait for others before them, by their beginnings.
    waiting: BTreeMap<u64, Run>,
    held: u64,
    /// The size and the tag, once the end was told.
    end: Option<(u64, Digest)>,
    confirmed: u64,
}

impl Passage {
    pub(crate) fn new(outlet: Outlet, entry: Entry, seal: Seal, progress: Arc<Progress>) -> Self {
        let confirmed = outlet.begun().unwrap_or(0);
        if entry.is_stream() {
            progress.grow(confirmed);
        }
        progress.add_resumed(confirmed);
        Self { outlet, entry, seal, progress, waiting: BTreeMap::new(), held: 0, end: None, confirmed }
    }

    /// Works until all was passed on, something fails, or nobody sends commands any more. Blocks between its
    /// awaits, as long as whoever reads the pipe takes nothing.
    pub(crate) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        events: mpsc::UnboundedSender<Event>,
    ) -> Result<Finished, ReceiveError> {
        while let Some(command) = commands.recv().await {
            match command {
                Command::Record(record) => self.take(&record, &events)?,
                Command::Wake => self.confirm(1, &events),
            }
            if let Some(finished) = self.finish(&events)? {
                return Ok(finished);
            }
        }
        // The sender of commands knows why it has stopped.
        Ok(Finished::default())
    }

    fn take(&mut self, record: &Record, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        if record.object != PARCEL {
            return match record.object {
                0 => self.arrived(record.offset, Run::Data(record.data.clone()), events),
                _ => Err(unwanted()),
            };
        }
        for item in parcel::items(&record.data) {
            match item? {
                Item::Content { file: 0, tag, data } if data.len() as u64 == self.entry.size() => {
                    self.end = Some((data.len() as u64, tag));
                    self.arrived(0, Run::Data(Data::copy_from_slice(data)), events)?;
                }
                Item::Zeros { file: 0, length, .. } if length > ZEROS_MAX => {
                    return Err(ProtocolError::Unexpected("a run of zeros is too long").into());
                }
                Item::Zeros { file: 0, offset, length } => self.arrived(offset, Run::Zeros(length), events)?,
                Item::Tag { file: 0, tag } => self.end = Some((self.entry.size(), tag)),
                Item::Ended { file: 0, size, tag } => self.end = Some((size, tag)),
                Item::LeftOut { file: 0, reason } => {
                    return Err(ReceiveError::LeftOff { path: self.entry.path.clone(), reason });
                }
                _ => return Err(unwanted()),
            }
        }
        Ok(())
    }

    /// Passes on what has its turn, and keeps the rest.
    fn arrived(&mut self, offset: u64, run: Run, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        let written = self.outlet.state().written;
        let end = offset.checked_add(run.length()).filter(|end| *end <= written.saturating_add(WINDOW));
        let Some(end) = end else {
            return Err(ProtocolError::Unexpected("data came too far ahead of what was passed on").into());
        };
        if !self.entry.is_stream() && end > self.entry.size() {
            return Err(ProtocolError::Unexpected("data behind the end of a file").into());
        }
        if end <= written {
            return Ok(());
        }
        self.held += run.held();
        if let Some(before) = self.waiting.insert(offset, run) {
            self.held -= before.held();
        }
        if self.held > WINDOW {
            return Err(ProtocolError::Unexpected("the same data came again and again").into());
        }
        while let Some(first) = self.waiting.first_entry() {
            if *first.key() > self.outlet.state().written {
                break;
            }
            let (offset, run) = first.remove_entry();
            self.held -= run.held();
            self.pass_on(offset, &run, events)?;
        }
        Ok(())
    }

    /// Writes what is new of a part.
    fn pass_on(&mut self, offset: u64, run: &Run, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        let zeros = vec![0; if matches!(run, Run::Zeros(_)) { WRITTEN_AT_ONCE } else { 0 }];
        loop {
            let written = self.outlet.state().written;
            let at = written - offset;
            if at >= run.length() {
                return Ok(());
            }
            let length = (run.length() - at).min(WRITTEN_AT_ONCE as u64) as usize;
            let piece = match run {
                Run::Data(data) => &data[at as usize..at as usize + length],
                Run::Zeros(_) => &zeros[..length],
            };
            let taken = self.outlet.write(&self.entry, piece)?;
            if self.entry.is_stream() {
                self.progress.grow(taken);
            }
            self.progress.add_done(taken);
            self.confirm(CONFIRM_EVERY, events);
        }
    }

    /// Tells the sender how much was passed on, if that is at least `least` more than it knows.
    fn confirm(&mut self, least: u64, events: &mpsc::UnboundedSender<Event>) {
        let written = self.outlet.state().written;
        if written >= self.confirmed + least {
            self.confirmed = written;
            let _ = events.send(Event::Taken(0, written));
        }
    }

    /// The outcome, once everything was passed on and is right.
    fn finish(&mut self, events: &mpsc::UnboundedSender<Event>) -> Result<Option<Finished>, ReceiveError> {
        let state = self.outlet.state();
        let Some((size, tag)) = self.end.filter(|(size, _)| *size <= state.written) else { return Ok(None) };
        let digest: Digest = *state.hasher.finalize().as_bytes();
        if size != state.written || tag != self.seal.tag(0, &digest) {
            return Err(ReceiveError::Mangled {
                path: self.entry.path.clone(),
                written: ByteCount::new(state.written),
            });
        }
        let arrived = vec![(self.entry.path.to_string(), ByteCount::new(size))];
        self.progress.add_file();
        self.progress.close();
        let _ = events.send(Event::Done(vec![(0, self.seal.proof(0, &digest))]));
        let _ = events.send(Event::Complete);
        let all = digest_of_all(std::iter::once((&self.entry, digest)));
        Ok(Some(Finished { all, arrived, left_out: Vec::new() }))
    }
}

fn unwanted() -> ReceiveError {
    ProtocolError::Unexpected("data of a file that is not wanted").into()
}
