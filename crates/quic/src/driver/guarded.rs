//! One connection behind its lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use fairpath_quic_core::Connection as Core;
use tokio::sync::Notify;

use crate::clock;

/// A connection, which its task and its handles share. It is there as long as anybody has it: what came may be taken
/// after its end.
#[derive(Debug)]
pub(crate) struct Guarded {
    core: Mutex<Core>,
    /// Whether its task has the lock, for a turn, or is about to take it.
    is_held: AtomicBool,
    /// Wakes handles: the task let go of the lock.
    released: Notify,
    /// Halves of streams that wait for the same.
    blocked: Mutex<Vec<Waker>>,
    /// Wakes the task: a handle did something, or something came.
    nudge: Notify,
}

impl Guarded {
    pub(super) fn new(core: Core) -> Self {
        let (released, nudge) = (Notify::new(), Notify::new());
        Self { core: Mutex::new(core), is_held: AtomicBool::new(false), released, blocked: Mutex::default(), nudge }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic concerns one operation; others may go on.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the connection, whether it is driven or over.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Core, Instant) -> T) -> T {
        let mut core = self.lock();
        act(&mut core, clock::now())
    }

    /// Takes the lock for a turn of its task.
    pub(super) fn hold(&self) -> StateGuard<'_> {
        self.is_held.store(true, Ordering::SeqCst);
        StateGuard { core: Some(self.lock()), guarded: self }
    }

    /// Waits until the task does not have the lock for a turn. A handle that waited for the lock itself would have its
    /// thread wait, which could drive the other end of the connection meanwhile.
    pub(crate) async fn released(&self) {
        loop {
            // From here on nothing is missed.
            let released = self.released.notified();
            if !self.is_held.load(Ordering::SeqCst) {
                return;
            }
            released.await;
        }
    }

    /// The same for what is polled.
    pub(super) fn poll_released(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_held.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        self.blocked().push(cx.waker().clone());
        // The task may have let go before it could see the waker.
        if self.is_held.load(Ordering::SeqCst) { Poll::Pending } else { Poll::Ready(()) }
    }

    fn blocked(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the task look.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Ready when somebody nudged since this was last ready.
    pub(super) fn nudged(&self) -> tokio::sync::futures::Notified<'_> {
        self.nudge.notified()
    }
}

/// The lock, as the task has it.
pub(super) struct StateGuard<'a> {
    core: Option<MutexGuard<'a, Core>>,
    guarded: &'a Guarded,
}

impl StateGuard<'_> {
    pub(super) fn core(&mut self) -> &mut Core {
        self.core.as_mut().expect("held until it is dropped")
    }
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        self.core = None;
        self.guarded.is_held.store(false, Ordering::SeqCst);
        self.guarded.released.notify_waiters();
        let blocked = std::mem::take(&mut *self.guarded.blocked());
        blocked.into_iter().for_each(Waker::wake);
    }
}
