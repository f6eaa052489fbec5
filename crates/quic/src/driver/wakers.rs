//! Tasks that wait for something on a stream.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use fairpath_quic_core::streams::{StreamEvent, StreamId};
use tokio::sync::Notify;

/// The tasks that wait for streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct StreamWakers {
    pub(crate) opened: Notify,
    pub(crate) may_open: Notify,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Halves that are written to, and whether all of each is known to have arrived.
    open: BTreeMap<StreamId, bool>,
    readers: BTreeMap<StreamId, Waker>,
    writers: BTreeMap<StreamId, Waker>,
}

impl StreamWakers {
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

    /// Wakes those who wait for `event`.
    pub(crate) fn tell(&self, event: StreamEvent) {
        let waker = match event {
            StreamEvent::Opened => return self.opened.notify_waiters(),
            StreamEvent::MayOpen => return self.may_open.notify_waiters(),
            StreamEvent::Readable(id) => self.waiting().readers.remove(&id),
            StreamEvent::Writable(id) | StreamEvent::Finished(id) => self.waiting().writers.remove(&id),
            StreamEvent::Lost => return self.tell_all(),
        };
        // Not under the lock: a task that is woken may come here at once.
        waker.into_iter().for_each(Waker::wake);
    }

    /// Wakes everybody.
    pub(crate) fn tell_all(&self) {
        self.opened.notify_waiters();
        self.may_open.notify_waiters();
        let (readers, writers) = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.readers), std::mem::take(&mut waiting.writers))
        };
        readers.into_values().chain(writers.into_values()).for_each(Waker::wake);
    }
}
