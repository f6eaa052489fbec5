//! The streams of one end, which may outlive the connection that they are on.
//!
//! The halves that a program has know a home, and the home knows the connection. When streams go to another connection,
//! the home goes along, and its halves notice nothing. Whoever moves streams
//! locks their place first, and then the one connection and the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use fairpath_quic_core::Connection as Core;
use fairpath_quic_core::streams::{StreamEvent, StreamId};
use noq_proto::ConnectionError;

use crate::stream_fault::StreamFault;

/// The code with which a connection is closed whose streams go on on another.
pub(super) const MOVED: u32 = 0x1f2;

/// The connection that streams are on, their halves, and the tasks that wait for something on them.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// That of the connection that they began on.
    number: LinkNumber,
    place: Mutex<Place>,
    waiting: Mutex<Waiting>,
    /// Why there are no streams any more.
    fault: Mutex<Option<StreamFault>>,
    /// How long they are kept where their connection is lost.
    kept: Mutex<Duration>,
}

/// Keeps a connection open, and has it looked at.
pub(crate) trait Keeper: std::fmt::Debug + Send + Sync {
    /// Looks at the connection, whether it is driven or over.
    fn look(&self, act: &mut dyn FnMut(&mut Core, Instant));

    /// Ready when its task does not have the connection for a turn. A caller that waited for the
    /// lock would block its thread, which could drive the other end meanwhile.
    fn poll_free(&self, cx: &mut Context<'_>) -> Poll<()>;

    /// Has its task look.
    fn nudge(&self);
}

/// A number by which a connection is told from all others of the process.
pub(crate) type LinkNumber = u64;

/// The connection that streams are on.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) at: LinkNumber,
    /// Keeps the connection open as long as there are halves.
    handle: Option<Arc<dyn Keeper>>,
    halves: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Halves that are written to, and whether all of each is known to have arrived.
    open: BTreeMap<StreamId, bool>,
    readers: BTreeMap<StreamId, Waker>,
    writers: BTreeMap<StreamId, Waker>,
}

/// Whether a connection that ended so was lost, and another may go on with its streams.
pub fn is_lost(reason: &ConnectionError) -> bool {
    match reason {
        ConnectionError::TimedOut | ConnectionError::Reset => true,
        ConnectionError::ApplicationClosed(close) => close.error_code == MOVED.into(),
        _ => false,
    }
}

impl Home {
    /// The home of the streams of a connection.
    pub(super) fn of(link: LinkNumber) -> Arc<Self> {
        let place = Place { at: link, ..Place::default() };
        Arc::new(Self { number: link, place: place.into(), ..Self::default() })
    }

    /// A number that these streams have on every connection, and no others.
    pub(crate) fn number(&self) -> LinkNumber {
        self.number
    }

    /// Where the streams are. It does not change while this is held.
    pub(crate) fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when the task of their connection has not got them for a turn.
    pub(crate) fn poll_free(&self, cx: &mut Context<'_>) -> Poll<()> {
        let handle = self.place().handle.clone();
        handle.map_or(Poll::Ready(()), |handle| handle.poll_free(cx))
    }

    /// Does something with the streams.
    pub(crate) fn with<T>(
        &self,
        act: impl FnOnce(&mut Core, Instant) -> Poll<Result<T, StreamFault>>,
    ) -> Poll<Result<T, StreamFault>> {
        let (mut act, mut before): (_, Option<Arc<dyn Keeper>>) = (Some(act), None);
        loop {
            let handle = self.place().handle.clone();
            let is_new = |handle: &Arc<dyn Keeper>| before.as_ref().is_none_or(|before| !Arc::ptr_eq(before, handle));
            let Some(handle) = handle.filter(is_new) else { break };
            let mut done = None;
            handle.look(&mut |connection, now| {
                done = match self.fault() {
                    // The streams that are there now are others.
                    Some(fault @ StreamFault::Lost) => Some(Poll::Ready(Err(fault))),
                    _ => act.take_if(|_| connection.has_streams()).map(|act| act(connection, now)),
                };
            });
            match done {
                Some(done) => return done,
                // They were moved meanwhile.
                None => before = Some(handle),
            }
        }
        Poll::Ready(Err(self.fault().unwrap_or(ConnectionError::LocallyClosed.into())))
    }

    /// Why nothing more will happen, where the connection is over and no other may go on with its streams. What has come
    /// may still be read.
    pub(crate) fn standing(&self, connection: &mut Core, now: Instant) -> Result<(), StreamFault> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        match connection.close_reason().cloned() {
            Some(reason) if !is_lost(&reason) || !connection.streams(now).is_resumable() => Err(reason.into()),
            _ => Ok(()),
        }
    }

    /// Has the connection looked at.
    pub(crate) fn nudge(&self) {
        let handle = self.place().handle.clone();
        if let Some(handle) = handle {
            handle.nudge();
        }
    }

    // ---- halves

    /// There is one more half. `handle` is that of the connection on which its stream was found.
    pub(crate) fn add_half(&self, handle: Arc<dyn Keeper>) {
        let mut place = self.place();
        place.halves += 1;
        place.handle.get_or_insert(handle);
    }

    /// A half is gone.
    pub(crate) fn remove_half(&self) {
        let mut place = self.place();
        place.halves -= 1;
        let handle = if place.halves == 0 { place.handle.take() } else { None };
        // The last handle closes its connection, for which it takes the lock.
        drop(place);
        drop(handle);
    }

    // ---- the way from one connection to another

    /// The streams are on another connection now, of which there is this handle. What kept the former one open is to be
    /// dropped without a lock.
    #[must_use = "it is dropped where no lock is held"]
    pub(crate) fn move_to(
        place: &mut Place,
        link: LinkNumber,
        handle: impl FnOnce() -> Arc<dyn Keeper>,
    ) -> Option<Arc<dyn Keeper>> {
        place.at = link;
        // Where there are no halves none is made, whose drop would close the connection.
        let next = (place.halves > 0).then(handle);
        std::mem::replace(&mut place.handle, next)
    }

    /// Why there are no streams any more.
    pub(crate) fn fault(&self) -> Option<StreamFault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// There are none any more.
    pub(crate) fn fail(&self, fault: StreamFault) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
        self.tell_all();
    }

    /// How long streams are kept where their connection is lost.
    pub(crate) fn time_kept(&self) -> Duration {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how long that is.
    pub(crate) fn set_time_kept(&self, time: Duration) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// The connection was lost. Its streams may move to another one within this time.
    pub(crate) fn keep(self: &Arc<Self>, at: LinkNumber, reason: ConnectionError, time: Duration) {
        let expiry = Expiry { home: Arc::downgrade(self), at, reason };
        // Without a runtime nobody counts the time, and it is over.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _expiry = expiry;
                tokio::time::sleep(time).await;
            });
        }
    }

    // ---- waiting

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a half that is written to.
    pub(crate) fn note_writer(&self, id: StreamId) {
        self.waiting().open.insert(id, false);
    }

    /// All that was written to a half has arrived, and its end. Under the lock of the connection, which may have
    /// forgotten the stream.
    pub(crate) fn note_finished(&self, id: StreamId) {
        if let Some(has_arrived) = self.waiting().open.get_mut(&id) {
            *has_arrived = true;
        }
    }

    /// Whether all that was written to the half has arrived, and its end.
    pub(crate) fn is_finished(&self, id: StreamId) -> bool {
        self.waiting().open.get(&id) == Some(&true)
    }

    /// Under the lock of the connection: so nothing is told between the look and this.
    pub(crate) fn wait_to_read(&self, id: StreamId, waker: &Waker) {
        self.waiting().readers.insert(id, waker.clone());
    }

    /// The same for a writer.
    pub(crate) fn wait_to_write(&self, id: StreamId, waker: &Waker) {
        self.waiting().writers.insert(id, waker.clone());
    }

    pub(crate) fn forget_reader(&self, id: StreamId) {
        self.waiting().readers.remove(&id);
    }

    pub(crate) fn forget_writer(&self, id: StreamId) {
        let mut waiting = self.waiting();
        waiting.writers.remove(&id);
        waiting.open.remove(&id);
    }

    /// Wakes those who wait for `event` on a stream.
    pub(super) fn tell(&self, event: StreamEvent) {
        let waker = match event {
            StreamEvent::Readable(id) => self.waiting().readers.remove(&id),
            StreamEvent::Writable(id) | StreamEvent::Finished(id) => self.waiting().writers.remove(&id),
            StreamEvent::Opened | StreamEvent::MayOpen | StreamEvent::Lost => None,
        };
        // Not under the lock: a task that is woken may come here at once.
        waker.into_iter().for_each(Waker::wake);
    }

    /// Wakes everybody.
    pub(crate) fn tell_all(&self) {
        let (readers, writers) = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.readers), std::mem::take(&mut waiting.writers))
        };
        readers.into_values().chain(writers.into_values()).for_each(Waker::wake);
    }
}

/// Ends what is kept when it is dropped: after its time, or with the runtime that counts it.
struct Expiry {
    home: Weak<Home>,
    at: LinkNumber,
    reason: ConnectionError,
}

impl Drop for Expiry {
    fn drop(&mut self) {
        let Some(home) = self.home.upgrade() else { return };
        let place = home.place();
        // Else they have gone on.
        if place.at == self.at {
            home.fail(self.reason.clone().into());
        }
    }
}
