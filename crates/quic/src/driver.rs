//! The loop that drives an endpoint in real time: reads its sockets, hands what came to the core, sends what
//! the core has to send, and wakes who waits.
//!
//! One task does this for all connections of an endpoint. It holds the lock that the handles need only while
//! it hands over what it has read, and while packets are made; both are bounded, so that a handle does not
//! wait long. The kernel is called outside of it.

mod home;
mod inbox;
mod link;
mod moving;
mod outbox;
mod shared;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fairpath_quic_core::guests::Verdict;
use fairpath_quic_core::streams::StreamEvent;
use fairpath_quic_core::{Accepting, Event, Received, Trust};
use noq_proto::{Incoming, Transmit};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use crate::accept::{CROWDED, Decision, Door, way};
use crate::clock;
use home::Keeper;
use inbox::{Arrived, Inbox};
use outbox::Outbox;

pub(crate) use home::Home;
pub use home::is_lost;
pub(crate) use link::{Awaited, Link};
use shared::State;
pub(crate) use shared::{Handle, Owner, Shared};

/// Drives an endpoint until nobody can make connections on it any more and all are over. Must be called within a
/// tokio runtime.
pub(crate) fn spawn(shared: &Arc<Shared>) {
    let driver = Driver {
        shared: shared.clone(),
        inbox: Inbox::new(),
        outbox: Outbox::new(),
        answer: Vec::new(),
        timer: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
        timeout: None,
    };
    tokio::spawn(driver.run());
}

struct Driver {
    shared: Arc<Shared>,
    inbox: Inbox,
    outbox: Outbox,
    /// What the core answers at once.
    answer: Vec<u8>,
    timer: Pin<Box<Sleep>>,
    /// When the timer fires; `None`: it is not asked.
    timeout: Option<Instant>,
}

/// What a turn leaves to be done without the lock.
#[derive(Debug, Default)]
struct Turn {
    /// More could be sent.
    is_unfinished: bool,
    is_over: bool,
    /// Who waits for what happened.
    events: Vec<(Arc<Link>, Event)>,
    /// Connections that were accepted. Not under the lock: dropping one takes it.
    accepted: Vec<(mpsc::Sender<Arc<Handle>>, Arc<Handle>)>,
    /// Handles that kept connections open whose streams are gone. The same holds for these.
    former: Vec<Arc<dyn Keeper>>,
}

impl Driver {
    async fn run(mut self) {
        // Whatever ends this task, nobody may wait for ever.
        let _death = Death(self.shared.clone());
        let mut is_unfinished = true;
        loop {
            let has_waited = self.wait(is_unfinished).await;
            let turn = self.turn();
            for (link, event) in turn.events {
                link.tell(event);
            }
            for (sender, handle) in turn.accepted {
                // Where nobody accepts any more, the connection is closed.
                let _ = sender.try_send(handle);
            }
            drop(turn.former);
            self.outbox.leave(&self.shared.sockets);
            if turn.is_over {
                return;
            }
            is_unfinished = turn.is_unfinished;
            if !has_waited {
                // Others may have something to do on this thread too.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads what has come, and waits until something has, something is due, or a handle did something; not at
    /// all where something `is_unfinished`. Says whether it waited.
    async fn wait(&mut self, is_unfinished: bool) -> bool {
        let shared = self.shared.clone();
        let mut nudged = std::pin::pin!(shared.nudged());
        let mut has_waited = false;
        std::future::poll_fn(|cx| {
            let is_nudged = nudged.as_mut().poll(cx).is_ready();
            let is_due = self.timeout.is_some() && self.timer.as_mut().poll(cx).is_ready();
            self.poll_sockets(cx);
            if is_unfinished || is_nudged || is_due || !self.inbox.is_empty() {
                return Poll::Ready(());
            }
            has_waited = true;
            Poll::Pending
        })
        .await;
        has_waited
    }

    /// Writes and reads what can be.
    fn poll_sockets(&mut self, cx: &mut Context<'_>) {
        let sockets = self.shared.sockets.all();
        for socket in &*sockets {
            let _ = socket.poll_flush(cx);
        }
        self.inbox.poll_fill(&sockets, cx);
    }

    /// What is done under the lock.
    fn turn(&mut self) -> Turn {
        let shared = self.shared.clone();
        let sockets = shared.sockets.all();
        let datagrams_max = sockets.iter().map(|socket| socket.train_datagrams()).min().unwrap_or(1);
        let (mut turn, mut held) = (Turn::default(), shared.hold());
        let state = held.state();
        let now = clock::now();
        // Before what came is read: it may tell of what left.
        self.outbox.forget(&mut state.endpoint);
        self.outbox.begin(datagrams_max);
        for arrived in self.inbox.take() {
            take_in(state, arrived, now, &mut self.answer, &mut self.outbox);
        }
        state.endpoint.handle_timeout(now);
        for spent in sockets.iter().filter(|socket| socket.is_spent()) {
            for (_, connection) in state.endpoint.connections() {
                connection.shut_address(spent.name, "its quota is used up", now);
            }
        }
        state.close_late(now);
        turn.is_unfinished = self.make(state);
        turn.collect(state, &shared);
        state.take_drained();
        turn.is_over = state.is_over();
        let now = clock::now();
        if state.endpoint.connections().any(|(_, connection)| connection.notes_arrivals(now)) {
            sockets.iter().for_each(|socket| socket.stamp_arrivals());
        }
        self.set_timer(state.next_timeout(now));
        turn
    }

    /// Makes packets; true where more could be made.
    fn make(&mut self, state: &mut State) -> bool {
        let now = clock::now();
        while !self.outbox.is_full() {
            let datagrams_max = self.outbox.datagrams_max();
            match state.endpoint.poll_transmit(now, datagrams_max, self.outbox.space()) {
                Some((handle, transmit)) => self.outbox.add(Some(handle), &transmit),
                None => return false,
            }
        }
        true
    }

    fn set_timer(&mut self, timeout: Option<Instant>) {
        if timeout != self.timeout {
            self.timeout = timeout;
            if let Some(at) = timeout {
                self.timer.as_mut().reset(at.into());
            }
        }
    }
}

/// Hands datagrams to the core.
fn take_in(state: &mut State, arrived: Arrived, now: Instant, answer: &mut Vec<u8>, outbox: &mut Outbox) {
    let Arrived { remote, local, ecn, datagram, mut contents, at, is_spent } = arrived;
    while !contents.is_empty() {
        let one: BytesMut = contents.split_to(datagram.min(contents.len()));
        answer.clear();
        let transmit = match state.endpoint.handle_datagram((remote, local), ecn, one, at, now, answer) {
            Some(Received::New(incoming)) if is_spent => {
                state.endpoint.ignore(*incoming);
                None
            }
            Some(Received::New(incoming)) => state.meet(*incoming, now, answer),
            Some(Received::Answer(transmit)) => Some(transmit),
            Some(Received::Connection(_)) | None => None,
        };
        if let Some(transmit) = transmit {
            outbox.push(&transmit, answer);
        }
    }
}

impl State {
    /// Does with a peer that wants in what was decided; what is to be sent for it is in `answer`.
    fn meet(&mut self, incoming: Incoming, now: Instant, answer: &mut Vec<u8>) -> Option<Transmit> {
        let Some(door) = &mut self.door else {
            self.endpoint.ignore(incoming);
            return None;
        };
        let Decision { verdict, leaves, is_invited } = door.decide(&incoming, now);
        if let Some(connection) = leaves.and_then(|handle| self.endpoint.connection(handle)) {
            let (code, reason): (u32, &[u8]) = match connection.is_connected() {
                true => (CROWDED, b"too many peers at once have not proved themselves, try again"),
                false => (0, b""),
            };
            connection.close(code, Bytes::from_static(reason), now);
        }
        match verdict {
            Verdict::Accept(number) => self.let_in(incoming, (number, is_invited), now, answer),
            Verdict::Retry => self.endpoint.retry(incoming, answer),
            Verdict::Refuse => Some(self.endpoint.refuse(incoming, answer)),
        }
    }

    fn let_in(
        &mut self,
        incoming: Incoming,
        (number, is_invited): (u64, bool),
        now: Instant,
        answer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        // The newcomer may get the handle of one of them.
        self.take_drained();
        let door = self.door.as_mut()?;
        let (manners, trust) = (door.manners.clone(), door.manners.trust());
        let datagrams = manners.machine.search(way(&incoming), manners.datagram_max);
        let accepting = Accepting { engine: &manners.engine, datagrams, trust };
        match self.endpoint.accept(incoming, accepting, now, answer) {
            Ok(handle) => {
                door.entered(number, handle, is_invited, now);
                self.link(handle, false, trust == Trust::Full);
                None
            }
            Err(transmit) => {
                door.failed(number);
                transmit
            }
        }
    }

    /// Gives up on handshakes that take too long.
    fn close_late(&mut self, now: Instant) {
        let late = self.door.as_mut().map(|door| door.late(now)).unwrap_or_default();
        for handle in late {
            if let Some(connection) = self.endpoint.connection(handle) {
                connection.close(0, Bytes::new(), now);
            }
        }
    }

    fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let handshakes = self.door.as_ref().and_then(Door::next_timeout);
        self.endpoint.next_timeout(now).into_iter().chain(handshakes).min()
    }
}

impl Turn {
    /// Takes what happened on the connections.
    fn collect(&mut self, state: &mut State, shared: &Arc<Shared>) {
        let State { endpoint, links, door, .. } = &mut *state;
        let (mut entered, mut homes, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for (handle, connection) in endpoint.connections() {
            let Some(link) = links.get(&handle) else { continue };
            while let Some(event) = connection.poll_event() {
                match (&event, &mut *door) {
                    (Event::Connected, Some(door)) if !link.is_dialed => {
                        match door.accepted().filter(|_| door.connected(handle)) {
                            Some(sender) => {
                                entered.push((sender, link.clone()));
                                homes.push((connection.streams(clock::now()).token(), link.clone()));
                            }
                            None => {
                                connection.close(0, Bytes::new(), clock::now());
                                self.is_unfinished = true;
                            }
                        }
                    }
                    (Event::Closed(_), Some(door)) => door.left(handle),
                    (Event::Streams(StreamEvent::Finished(id)), _) => link.home().note_finished(*id),
                    (Event::Streams(StreamEvent::Lost), _) => link.lose_streams(),
                    (Event::StreamsAsked(token), _) => asked.push((handle, *token)),
                    _ => {}
                }
                self.events.push((link.clone(), event));
            }
            link.look(connection);
        }
        let handles = entered.into_iter().map(|(sender, link)| (sender, state.handle(shared, &link)));
        self.accepted.extend(handles);
        state.note_homes(homes);
        for (handle, token) in asked {
            self.former.extend(state.answer_asked(handle, token, shared));
            self.is_unfinished = true;
        }
    }
}

/// Tells everybody when an endpoint is not driven any more.
struct Death(Arc<Shared>);

impl Drop for Death {
    fn drop(&mut self) {
        self.0.lock().die(clock::now());
    }
}
