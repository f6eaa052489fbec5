//! An endpoint as its connections have it in common.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::streams::StreamsToken;
use fairpath_quic_core::{Connection as Core, Router};
use noq_proto::{ConnectionEvent, ConnectionHandle, EndpointEvent};
use tokio::sync::{Notify, mpsc};

use super::home::{Home, Keeper};
use super::link::Link;
use crate::accept::AdmissionControl;
use crate::path_control::PathControl;
use crate::sockets::Sockets;

/// An endpoint, as the tasks and the handles share it.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the task that reads the sockets.
    nudge: Notify,
    /// Where the connections are driven.
    pub(super) runtime: tokio::runtime::Handle,
    pub(crate) sockets: Sockets,
    /// Changes the terms of paths.
    pub(crate) control: PathControl,
}

/// All that only one may look at at a time. No connection is among it, nor is one locked meanwhile.
#[derive(Debug)]
pub(crate) struct State {
    pub(super) router: Router,
    /// The connections that the router knows.
    pub(super) links: BTreeMap<ConnectionHandle, Arc<Link>>,
    /// The streams of connections that were accepted, for clients that ask for them on another.
    pub(super) homes: BTreeMap<StreamsToken, (Weak<Home>, Weak<Link>)>,
    /// The handles of connections that the router knows: all who have one share it.
    handles: BTreeMap<ConnectionHandle, Weak<Handle>>,
    pub(crate) admission: Option<AdmissionControl<Arc<Handle>>>,
    /// How many owners are left that may make connections.
    owners: usize,
    /// Nobody drives it any more.
    pub(super) is_dead: bool,
}

/// An event of a connection that the endpoint has to know of.
#[derive(Debug)]
pub(super) enum News {
    /// The handshake of a peer is complete. The name of its streams.
    Connected(Option<StreamsToken>),
    Closed,
}

/// The answer of the endpoint.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Events of the router for the connection.
    pub(super) events: Vec<ConnectionEvent>,
    /// Where the connection comes out, which is let in.
    pub(super) accepted: Option<mpsc::Sender<Arc<Handle>>>,
    /// It is not let in.
    pub(super) is_refused: bool,
}

/// Keeps a connection open: as long as there is one, somebody has the connection. When it is dropped the connection is
/// closed with code 0.
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
    fn look(&self, act: &mut dyn FnMut(&mut Core, Instant)) {
        self.link.core.with(act);
    }

    fn poll_free(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.link.core.poll_released(cx)
    }

    fn nudge(&self) {
        self.link.core.nudge();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.link.core.with(|connection, now| connection.close(0, Bytes::new(), now));
        self.link.core.nudge();
    }
}

impl Shared {
    /// Must be called within the runtime that is to drive the connections.
    pub(crate) fn new(
        mut router: Router,
        sockets: Sockets,
        admission: Option<AdmissionControl<Arc<Handle>>>,
        control: PathControl,
    ) -> Arc<Self> {
        router.set_interfaces(sockets.interfaces());
        let (links, homes, handles) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let state = Mutex::new(State { router, links, homes, handles, admission, owners: 0, is_dead: false });
        Arc::new(Self { state, nudge: Notify::new(), runtime: tokio::runtime::Handle::current(), sockets, control })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic concerns one connection; the others are to go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the task look that reads the sockets.
    pub(crate) fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// Ready when somebody nudged since this was last ready.
    pub(super) fn nudged(&self) -> tokio::sync::futures::Notified<'_> {
        self.nudge.notified()
    }

    /// The right to make connections: as long as there is one, the endpoint is driven.
    pub(crate) fn owner(self: &Arc<Self>) -> Owner {
        self.lock().owners += 1;
        Owner { shared: self.clone(), is_first: true }
    }

    /// The handle of a connection, which all share.
    pub(crate) fn handle(self: &Arc<Self>, link: &Arc<Link>) -> Arc<Handle> {
        let mut state = self.lock();
        let known = state.handles.get(&link.handle).and_then(Weak::upgrade);
        let is_driven = state.is_driven(link);
        known.filter(|_| is_driven).unwrap_or_else(|| {
            let handle = Arc::new(Handle { shared: self.clone(), link: link.clone() });
            if is_driven {
                state.handles.insert(link.handle, Arc::downgrade(&handle));
            }
            handle
        })
    }

    fn links(&self) -> Vec<Arc<Link>> {
        self.lock().links.values().cloned().collect()
    }

    /// Looks at all connections that are driven.
    pub(crate) fn with_all(&self, mut act: impl FnMut(&mut Core, Instant)) {
        for link in self.links() {
            link.core.with(&mut act);
            link.core.nudge();
        }
    }

    /// Does with the endpoint what follows from what happened on a connection. Where that `is_over`, its handle is another's
    /// from now on.
    pub(super) fn settle(&self, link: &Arc<Link>, news: Vec<News>, said: Vec<EndpointEvent>, is_over: bool) -> Answer {
        let (mut state, mut answer) = (self.lock(), Answer::default());
        let State { router, admission, .. } = &mut *state;
        let mut named = None;
        for one in news {
            let Some(admission) = admission.as_mut() else { continue };
            match one {
                News::Connected(token) => {
                    answer.accepted = admission.accepted().filter(|_| admission.connected(link.handle));
                    answer.is_refused = answer.accepted.is_none();
                    named = token.filter(|_| !answer.is_refused);
                }
                News::Closed => admission.left(link.handle),
            }
        }
        answer.events.extend(said.into_iter().filter_map(|event| router.hear(link.handle, event)));
        named.into_iter().for_each(|token| state.note_home(token, link));
        if is_over {
            state.remove(link);
        }
        answer
    }

    /// Nobody drives the connection any more.
    pub(super) fn forget(&self, link: &Link) {
        let mut state = self.lock();
        if state.is_driven(link) {
            state.remove(link);
            if let Some(admission) = &mut state.admission {
                admission.left(link.handle);
            }
            state.router.hear(link.handle, EndpointEvent::drained());
        }
    }

    /// The peer of a connection has proved itself. Nothing happens where it is no guest.
    pub(crate) fn welcome(&self, link: &Link) {
        let mut state = self.lock();
        let is_driven = state.is_driven(link);
        let is_guest = is_driven && state.admission.as_mut().is_some_and(|admission| admission.welcome(link.handle));
        drop(state);
        if is_guest {
            link.core.with(|connection, now| connection.trust(now));
            link.trust();
            link.core.nudge();
        }
    }

    /// Tells the connections which addresses have sockets.
    pub(crate) fn sockets_changed(&self) {
        let interfaces = self.sockets.interfaces();
        self.lock().router.set_interfaces(interfaces.clone());
        self.with_all(|connection, _| connection.set_interfaces(interfaces.clone()));
        // There may be others to read.
        self.nudge();
    }

    /// Closes all connections, and makes no more. What there were.
    pub(crate) fn close_all(&self, code: u32, reason: &str) -> Vec<Arc<Link>> {
        if let Some(admission) = &mut self.lock().admission {
            admission.shut();
        }
        let links = self.links();
        for link in &links {
            link.core.with(|connection, now| connection.close(code, Bytes::copy_from_slice(reason.as_bytes()), now));
            link.core.nudge();
        }
        self.nudge();
        links
    }

    /// Nobody reads the sockets any more: all waiting is over.
    pub(super) fn die(&self) {
        let mut state = self.lock();
        (state.is_dead, state.admission) = (true, None);
        drop(state);
        for link in self.links() {
            link.core.with(|connection, now| connection.close(0, Bytes::new(), now));
            link.core.nudge();
            link.tell_all();
        }
    }
}

impl State {
    /// Whether the router knows the connection.
    fn is_driven(&self, link: &Link) -> bool {
        self.links.get(&link.handle).is_some_and(|known| std::ptr::eq(&**known, link))
    }

    fn remove(&mut self, link: &Link) {
        self.links.remove(&link.handle);
        self.handles.remove(&link.handle);
    }

    /// Whether there is nothing left to drive.
    pub(super) fn is_over(&self) -> bool {
        self.owners == 0 && self.links.is_empty()
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
        if let Some(admission) = state.admission.as_mut().filter(|_| self.is_first) {
            admission.shut();
        }
        drop(state);
        self.shared.nudge();
    }
}
