//! A stream that is sent: standard input or a named pipe, of which nobody knows how long it is.
//!
//! It can be read only once. So the sender holds what the receiver has not confirmed, a window of it at most, and
//! another connection of the same run goes on from there. With the run all of that is lost.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairpath_quic::RECORD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::{Mutex, MutexGuard, mpsc, watch};

use crate::protocol::Digest;
use crate::skip::Reason;

/// Limit on how far a stream's sender is ahead of the receiver's confirmations, in bytes. It is the
/// bandwidth-delay product of 1 Gbit/s and a quarter of a second. Either end holds at most this
/// much of it in memory.
pub(crate) const WINDOW: u64 = 32 << 20;

/// Bytes passed on before the sender is told again, often enough that its window stays open.
pub(crate) const CONFIRM_EVERY: u64 = WINDOW / 32;

/// How many pieces are held at most, however small they are.
const PIECES_MAX: usize = 16 << 10;

/// How many pieces are read ahead of what is sent.
const AHEAD: usize = 4;

/// How much the receiver has confirmed, which the sender's reading waits for.
#[derive(Debug)]
pub(crate) struct Window(watch::Sender<u64>);

impl Window {
    /// The window of something of which the receiver has this much.
    pub(crate) fn after(confirmed: u64) -> Self {
        Self(watch::Sender::new(confirmed))
    }

    fn confirmed(&self) -> u64 {
        *self.0.borrow()
    }

    /// The receiver has confirmed the first `bytes`.
    pub(crate) fn confirm(&self, bytes: u64) {
        self.0.send_if_modified(|before| {
            let is_more = bytes > *before;
            *before = bytes.max(*before);
            is_more
        });
    }

    /// Whether what ends here may be sent now.
    pub(crate) fn admits(&self, end: u64) -> bool {
        end <= self.confirmed().saturating_add(WINDOW)
    }

    /// Waits until what ends here may be sent.
    pub(crate) async fn wait(&self, end: u64) {
        // The channel lives as long as this.
        let _ = self.0.subscribe().wait_for(|confirmed| end <= confirmed.saturating_add(WINDOW)).await;
    }

    async fn wait_for_more_than(&self, before: u64) {
        let _ = self.0.subscribe().wait_for(|confirmed| *confirmed > before).await;
    }
}

/// Where a stream comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Input,
    Pipe(PathBuf),
}

impl Origin {
    /// Opens it; waits until somebody writes to a named pipe.
    fn open(&self) -> io::Result<File> {
        match self {
            Self::Input => io::stdin().as_fd().try_clone_to_owned().map(File::from),
            Self::Pipe(path) => File::open(path),
        }
    }
}

/// A stream that is sent, over as many connections as that takes.
#[derive(Debug)]
pub(crate) struct Feed {
    origin: Origin,
    window: Window,
    read: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The pieces as they are read, once that has begun.
    pieces: Option<mpsc::Receiver<io::Result<Bytes>>>,
    /// The pieces that the receiver may want again, with their offsets.
    held: VecDeque<(u64, Bytes)>,
    hasher: Box<blake3::Hasher>,
    end: Option<Result<Digest, Reason>>,
}

impl Feed {
    /// Standard input.
    pub(crate) fn input() -> Self {
        Self::of(Origin::Input)
    }

    /// A named pipe. It is opened when it is sent: that waits for its writer.
    pub(crate) fn pipe(path: PathBuf) -> Self {
        Self::of(Origin::Pipe(path))
    }

    fn of(origin: Origin) -> Self {
        Self { origin, window: Window::after(0), read: AtomicU64::new(0), state: Mutex::default() }
    }

    /// How much was read so far.
    pub(crate) fn length(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The receiver has confirmed the first `bytes`; false if it cannot have them.
    pub(crate) fn confirm(&self, bytes: u64) -> bool {
        let is_possible = bytes <= self.length();
        if is_possible {
            self.window.confirm(bytes);
        }
        is_possible
    }

    /// The stream, for one connection at a time.
    pub(crate) async fn tap(&self) -> Tap<'_> {
        Tap { feed: self, state: self.state.lock().await }
    }
}

/// A stream in the hands of the connection that sends it.
pub(crate) struct Tap<'a> {
    feed: &'a Feed,
    state: MutexGuard<'a, State>,
}

impl Tap<'_> {
    /// From where on it can still be sent.
    pub(crate) fn begin(&self) -> u64 {
        self.state.held.front().map_or_else(|| self.feed.length(), |(offset, _)| *offset)
    }

    /// The pieces that may have to be sent again.
    pub(crate) fn held(&self) -> Vec<(u64, Bytes)> {
        self.state.held.iter().cloned().collect()
    }

    /// The next piece, as soon as the receiver has room for it and there is one; `None` at the end. Nothing is lost
    /// where this is cancelled.
    pub(crate) async fn next(&mut self) -> Option<(u64, Bytes)> {
        if self.state.end.is_some() {
            return None;
        }
        self.wait_for_room().await;
        let pieces = self.state.pieces.get_or_insert_with(|| pump(self.feed.origin.clone()));
        let end = match pieces.recv().await {
            Some(Ok(piece)) => {
                let offset = self.feed.read.fetch_add(piece.len() as u64, Ordering::Relaxed);
                self.state.hasher.update(&piece);
                self.state.held.push_back((offset, piece.clone()));
                return Some((offset, piece));
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a stream cannot be read any further");
                Err(Reason::ReadFailed)
            }
            None => Ok(*self.state.hasher.finalize().as_bytes()),
        };
        self.state.end = Some(end);
        None
    }

    /// The digest of all of it, once its end was read.
    pub(crate) fn end(&self) -> Result<Digest, Reason> {
        self.state.end.unwrap_or(Err(Reason::ReadFailed))
    }

    async fn wait_for_room(&mut self) {
        loop {
            let confirmed = self.feed.window.confirmed();
            let is_past = |(offset, piece): &(u64, Bytes)| offset + piece.len() as u64 <= confirmed;
            while self.state.held.front().is_some_and(is_past) {
                self.state.held.pop_front();
            }
            let has_room = self.feed.window.admits(self.feed.length() + RECORD as u64);
            if has_room && self.state.held.len() < PIECES_MAX {
                return;
            }
            self.feed.window.wait_for_more_than(confirmed).await;
        }
    }
}

/// Reads in a thread of its own, which nobody waits for: a read cannot be given up.
fn pump(origin: Origin) -> mpsc::Receiver<io::Result<Bytes>> {
    let (pieces, taken) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        if let Err(error) = origin.open().and_then(|file| read_all(&file, &pieces)) {
            // Where nobody listens any more, nobody misses it.
            let _ = pieces.blocking_send(Err(error));
        }
    });
    taken
}

fn read_all(mut file: &File, pieces: &mpsc::Sender<io::Result<Bytes>>) -> io::Result<()> {
    let mut buffer = vec![0; RECORD];
    loop {
        let mut filled = read(&mut file, &mut buffer)?;
        // More that is there already travels along; nothing waits for what is not.
        while filled > 0 && filled < RECORD && is_ready(file) {
            match read(&mut file, &mut buffer[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        if filled == 0 || pieces.blocking_send(Ok(Bytes::copy_from_slice(&buffer[..filled]))).is_err() {
            return Ok(());
        }
    }
}

fn read(file: &mut &File, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Whether a read would return at once.
fn is_ready(file: &File) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut one = [PollFd::new(file, PollFlags::IN)];
    poll(&mut one, Some(&at_once)).is_ok_and(|count| count > 0)
}
