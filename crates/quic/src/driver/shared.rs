//! The endpoint with its connections, which the driver and the handles share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::streams::StreamsToken;
use fairpath_quic_core::{BeginError, Connecting, Connection as Core, Endpoint, Event};
use noq_proto::ConnectionHandle;
use tokio::sync::Notify;

use super::home::{Home, Keeper};
use super::link::Link;
use crate::accept::Door;
use crate::clock;
use crate::sockets::Sockets;

/// What the driver and the handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Whether the driver has the lock, for a turn, or is about to take it.
    is_held: AtomicBool,
    /// Wakes handles: the driver let go of the lock.
    released: Notify,
    /// Halves of streams that wait for the same.
    blocked: Mutex<Vec<Waker>>,
    /// Wakes the driver: a handle did something.
    nudge: Notify,
    pub(crate) sockets: Sockets,
}

/// What only one may look at at a time.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) endpoint: Endpoint,
    pub(super) links: BTreeMap<ConnectionHandle, Arc<Link>>,
    /// The streams of connections that were accepted, for clients that ask for them on another.
    pub(super) homes: BTreeMap<StreamsToken, (Weak<Home>, Weak<Link>)>,
    /// The handles that all share who have a connection.
    handles: BTreeMap<ConnectionHandle, Weak<Handle>>,
    pub(crate) door: Option<Door<Arc<Handle>>>,
    /// Who may still make connections.
    owners: usize,
    /// Nobody drives it any more.
    is_dead: bool,
}

/// What keeps a connection open: as long as there is one, somebody has the connection; when it is dropped the connection is closed with code 0.
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Arc<Link>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Keeper for Handle {
    fn look(&self, act: &mut dyn FnMut(&mut Core, Instant)) -> bool {
        self.shared.with(&self.link, act).is_some()
    }

    fn poll_free(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.poll_released(cx)
    }

    fn nudge(&self) {
        self.shared.nudge();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(&self.link, |connection, now| connection.close(0, Bytes::new(), now));
        self.shared.nudge();
    }
}

impl Shared {
    pub(crate) fn new(mut endpoint: Endpoint, sockets: Sockets, door: Option<Door<Arc<Handle>>>) -> Arc<Self> {
        endpoint.set_interfaces(sockets.interfaces());
        let state = State {
            endpoint,
            links: BTreeMap::new(),
            homes: BTreeMap::new(),
            handles: BTreeMap::new(),
            door,
            owners: 0,
            is_dead: false,
        };
        let (is_held, released, nudge) = (AtomicBool::new(false), Notify::new(), Notify::new());
        let blocked = Mutex::default();
        Arc::new(Self { state: Mutex::new(state), is_held, released, blocked, nudge, sockets })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Who panicked did so with one connection; the others are to go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock for a turn of the driver.
    pub(super) fn hold(&self) -> Held<'_> {
        self.is_held.store(true, Ordering::SeqCst);
        Held { state: Some(self.lock()), shared: self }
    }

    /// Waits until the driver does not hold the lock. A task that waited for the lock itself would have its thread
    /// wait, which could drive another endpoint meanwhile.
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
    fn poll_released(&self, cx: &Context<'_>) -> Poll<()> {
        if !self.is_held.load(Ordering::SeqCst) {
            return Poll::Ready(());
        }
        self.blocked().push(cx.waker().clone());
        // The driver may have let go before it could see the waker.
        if self.is_held.load(Ordering::SeqCst) { Poll::Pending } else { Poll::Ready(()) }
    }

    fn blocked(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the driver look.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Ready when a handle did something since this was last ready.
    pub(super) fn nudged(&self) -> tokio::sync::futures::Notified<'_> {
        self.nudge.notified()
    }

    /// The right to make connections: as long as there is one, the endpoint is driven.
    pub(crate) fn owner(self: &Arc<Self>) -> Owner {
        self.lock().owners += 1;
        Owner { shared: self.clone(), is_first: true }
    }

    /// Looks at a connection, whether it is driven or over.
    pub(crate) fn with<T>(&self, link: &Link, act: impl FnOnce(&mut Core, Instant) -> T) -> Option<T> {
        let mut state = self.lock();
        let now = clock::now();
        if let Some(connection) = state.connection(link) {
            return Some(act(connection, now));
        }
        // Connections come here under the lock of the others.
        link.rest().as_mut().map(|connection| act(connection, now))
    }

    /// Looks at all connections that are driven.
    pub(crate) fn with_all(&self, mut act: impl FnMut(&mut Core, Instant)) {
        let mut state = self.lock();
        let now = clock::now();
        state.endpoint.connections().for_each(|(_, connection)| act(connection, now));
    }

    /// Begins a handshake.
    pub(crate) fn begin(&self, connecting: Connecting<'_>) -> Result<Arc<Link>, BeginError> {
        let mut state = self.lock();
        state.take_drained();
        let handle = state.endpoint.connect(connecting, clock::now())?;
        let link = state.link(handle, true, true);
        if state.is_dead {
            state.die(clock::now());
        }
        drop(state);
        self.nudge();
        Ok(link)
    }

    /// The handle of a connection that was begun.
    pub(crate) fn handle(self: &Arc<Self>, link: &Arc<Link>) -> Arc<Handle> {
        self.lock().handle(self, link)
    }

    /// The peer of a connection has proved itself. False where it is no guest.
    pub(crate) fn welcome(&self, link: &Link) -> bool {
        let mut state = self.lock();
        let is_driven = state.connection(link).is_some();
        let is_guest = is_driven && state.door.as_mut().is_some_and(|door| door.welcome(link.handle));
        if let Some(connection) = state.connection(link).filter(|_| is_guest) {
            connection.trust(clock::now());
            link.keeps_datagrams.store(true, Ordering::Relaxed);
        }
        is_guest
    }

    /// Tells the connections which addresses have sockets.
    pub(crate) fn sockets_changed(&self) {
        self.lock().endpoint.set_interfaces(self.sockets.interfaces());
        self.nudge();
    }

    /// Closes all connections, and makes no more. What there were.
    pub(crate) fn close_all(&self, code: u32, reason: &str) -> Vec<Arc<Link>> {
        let mut state = self.lock();
        let State { endpoint, links, door, .. } = &mut *state;
        if let Some(door) = door {
            door.shut();
        }
        let now = clock::now();
        for (_, connection) in endpoint.connections() {
            connection.close(code, Bytes::copy_from_slice(reason.as_bytes()), now);
        }
        let links = links.values().cloned().collect();
        drop(state);
        self.nudge();
        links
    }
}

/// The lock, as the driver has it.
pub(super) struct Held<'a> {
    state: Option<MutexGuard<'a, State>>,
    shared: &'a Shared,
}

impl Held<'_> {
    pub(super) fn state(&mut self) -> &mut State {
        self.state.as_mut().expect("held until it is dropped")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.state = None;
        self.shared.is_held.store(false, Ordering::SeqCst);
        self.shared.released.notify_waiters();
        let blocked = std::mem::take(&mut *self.shared.blocked());
        blocked.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// The connection of a link that is driven.
    pub(crate) fn connection(&mut self, link: &Link) -> Option<&mut Core> {
        let is_meant = self.links.get(&link.handle).is_some_and(|known| std::ptr::eq(&**known, link));
        is_meant.then(|| self.endpoint.connection(link.handle)).flatten()
    }

    /// The link of a connection that was made.
    pub(super) fn link(&mut self, handle: ConnectionHandle, is_dialed: bool, keeps_datagrams: bool) -> Arc<Link> {
        let link = Link::new(handle, is_dialed, keeps_datagrams);
        self.links.insert(handle, link.clone());
        link
    }

    /// The handle that all share who have a connection, which is driven.
    pub(super) fn handle(&mut self, shared: &Arc<Shared>, link: &Arc<Link>) -> Arc<Handle> {
        let known = self.handles.entry(link.handle).or_default();
        known.upgrade().unwrap_or_else(|| {
            let handle = Arc::new(Handle { shared: shared.clone(), link: link.clone() });
            *known = Arc::downgrade(&handle);
            handle
        })
    }

    /// Whether there is nothing left to drive.
    pub(super) fn is_over(&self) -> bool {
        self.owners == 0 && self.links.is_empty()
    }

    /// Lets go of connections of which the stack knows nothing any more. Whoever has a handle takes the rest.
    pub(super) fn take_drained(&mut self) {
        for (handle, mut connection) in self.endpoint.take_drained() {
            let Some(link) = self.links.remove(&handle) else { continue };
            self.handles.remove(&handle);
            while let Some(event) = connection.poll_event() {
                if let (Event::Closed(_), Some(door)) = (&event, &mut self.door) {
                    door.left(handle);
                }
                link.tell(event);
            }
            *link.rest() = Some(connection);
            link.tell_all();
        }
    }

    /// Nobody drives it any more: all waiting is over.
    pub(super) fn die(&mut self, now: Instant) {
        self.is_dead = true;
        self.door = None;
        for (_, connection) in self.endpoint.connections() {
            connection.close(0, Bytes::new(), now);
        }
        self.links.values().for_each(|link| link.tell_all());
    }
}

/// The right to make connections.
#[derive(Debug)]
pub(crate) struct Owner {
    shared: Arc<Shared>,
    /// Nobody is let in any more when it is gone.
    is_first: bool,
}

impl Clone for Owner {
    fn clone(&self) -> Self {
        self.shared.lock().owners += 1;
        Self { shared: self.shared.clone(), is_first: false }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.owners -= 1;
        if let Some(door) = state.door.as_mut().filter(|_| self.is_first) {
            door.shut();
        }
        drop(state);
        self.shared.nudge();
    }
}
