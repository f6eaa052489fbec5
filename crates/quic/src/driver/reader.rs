//! The task of an endpoint: it reads the sockets, says whose each datagram is, and lets peers in.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use fairpath_quic_core::guests::IncomingAction;
use fairpath_quic_core::{Accepting, Arrival, ReceivedDatagram, Routed, Trust};
use noq_proto::{Incoming, Transmit};
use tokio::time::Sleep;

use super::inbox::{Arrived, Inbox};
use super::link::Link;
use super::outbox::Outbox;
use super::shared::{Shared, State};
use super::task;
use crate::accept::{AdmissionControl, CROWDED, Decision, way};
use crate::clock;

/// Drives an endpoint until nobody can make connections on it any more and all are over. Must be called within a
/// tokio runtime, in which its connections are driven, too.
pub(crate) fn spawn(shared: &Arc<Shared>) {
    let reader = Reader {
        shared: shared.clone(),
        inbox: Inbox::new(),
        outbox: Outbox::new(),
        answer: Vec::new(),
        timer: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
        timeout: None,
    };
    tokio::spawn(reader.run());
}

struct Reader {
    shared: Arc<Shared>,
    inbox: Inbox,
    /// Answers to those who have no connection.
    outbox: Outbox,
    /// The last of them.
    answer: Vec<u8>,
    timer: Pin<Box<Sleep>>,
    /// When the timer fires; `None`: it is not asked.
    timeout: Option<Instant>,
}

/// The rest of a turn, for which no lock is needed.
#[derive(Default)]
struct Turn {
    /// Connections that something came for.
    woken: Vec<Arc<Link>>,
    /// Connections that were accepted, whose tasks begin.
    begun: Vec<Arc<Link>>,
    /// Handshakes that took too long, and guests that have to leave.
    leaving: Vec<Leaving>,
    is_over: bool,
}

struct Leaving {
    link: Arc<Link>,
    /// Whether others need its place.
    is_crowded: bool,
}

impl Reader {
    async fn run(mut self) {
        // Whatever ends this task, nobody may wait for ever.
        let _death = Death(self.shared.clone());
        loop {
            let has_waited = self.wait().await;
            let turn = self.turn();
            turn.begun.iter().for_each(|link| task::spawn(&self.shared, link));
            turn.leaving.iter().for_each(Leaving::close);
            turn.woken.iter().for_each(|link| link.core.nudge());
            // A part that is kept back is sent while this waits.
            let _ = self.outbox.leave(&self.shared.sockets);
            self.outbox.clear();
            if turn.is_over {
                return;
            }
            if !has_waited {
                // Others may have something to do on this thread too.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads what has come, and waits until something has, something is due, or the endpoint was changed. Says whether it
    /// waited.
    async fn wait(&mut self) -> bool {
        let shared = self.shared.clone();
        let mut nudged = std::pin::pin!(shared.nudged());
        let mut has_waited = false;
        std::future::poll_fn(|cx| {
            let is_nudged = nudged.as_mut().poll(cx).is_ready();
            let is_due = self.timeout.is_some() && self.timer.as_mut().poll(cx).is_ready();
            self.poll_sockets(cx);
            if is_nudged || is_due || !self.inbox.is_empty() {
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

    /// Sorts datagrams under the lock.
    fn turn(&mut self) -> Turn {
        let shared = self.shared.clone();
        let sockets = shared.sockets.all();
        self.outbox.begin(sockets.iter().map(|socket| socket.train_datagrams()).min().unwrap_or(1));
        let (mut turn, mut state) = (Turn::default(), shared.lock());
        let now = clock::now();
        let mut post = Post { of: None, datagrams: Vec::new() };
        for arrived in self.inbox.take() {
            let Self { answer, outbox, .. } = self;
            Sorting { state: &mut state, turn: &mut turn, post: &mut post, now }.sort(arrived, answer, outbox);
        }
        post.deliver(&mut turn);
        state.close_late(&mut turn, now);
        turn.is_over = state.is_over();
        let timeout = state.admission.as_ref().and_then(AdmissionControl::next_timeout);
        drop(state);
        self.set_timer(timeout);
        turn
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

impl Leaving {
    fn close(&self) {
        self.link.core.with(|connection, now| {
            let (code, reason): (u32, &[u8]) = match self.is_crowded && connection.is_connected() {
                true => (CROWDED, b"too many peers at once have not proved themselves, try again"),
                false => (0, b""),
            };
            connection.close(code, Bytes::from_static(reason), now);
        });
        self.link.core.nudge();
    }
}

/// Datagrams of one connection that came one after the other, which are handed over together.
struct Post {
    of: Option<Arc<Link>>,
    datagrams: Vec<Arrival>,
}

impl Post {
    fn deliver(&mut self, turn: &mut Turn) {
        if let Some(link) = self.of.take() {
            link.intake.put(self.datagrams.drain(..), link.is_guest());
            turn.woken.push(link);
        }
        self.datagrams.clear();
    }
}

/// All that is needed to sort a train.
struct Sorting<'a> {
    state: &'a mut State,
    turn: &'a mut Turn,
    post: &'a mut Post,
    now: Instant,
}

impl Sorting<'_> {
    fn sort(&mut self, arrived: Arrived, answer: &mut Vec<u8>, outbox: &mut Outbox) {
        let Arrived { remote, local, ecn, datagram, mut contents, at, is_spent } = arrived;
        while !contents.is_empty() {
            let one: BytesMut = contents.split_to(datagram.min(contents.len()));
            answer.clear();
            let one = ReceivedDatagram { remote, local, ecn, contents: one, at };
            let transmit = match self.state.router.route(one, self.now, answer) {
                Some(Routed::Connection(handle, arrival)) => {
                    if self.post.of.as_ref().is_none_or(|of| of.handle != handle) {
                        self.post.deliver(self.turn);
                        self.post.of = self.state.links.get(&handle).cloned();
                    }
                    self.post.datagrams.push(arrival);
                    None
                }
                Some(Routed::New(incoming)) if is_spent => {
                    self.state.router.ignore(*incoming);
                    None
                }
                Some(Routed::New(incoming)) => self.meet(*incoming, answer),
                Some(Routed::Answer(transmit)) => Some(transmit),
                None => None,
            };
            if let Some(transmit) = transmit {
                outbox.push(&transmit, answer);
            }
        }
    }

    /// Does with a peer that wants in what was decided; what is to be sent for it is in `answer`.
    fn meet(&mut self, incoming: Incoming, answer: &mut Vec<u8>) -> Option<Transmit> {
        let State { router, admission, links, .. } = &mut *self.state;
        let Some(admission) = admission else {
            router.ignore(incoming);
            return None;
        };
        let Decision { action, leaves, is_invited } = admission.decide(&incoming, self.now);
        let leaving = leaves.and_then(|handle| links.get(&handle).cloned());
        self.turn.leaving.extend(leaving.map(|link| Leaving { link, is_crowded: true }));
        match action {
            IncomingAction::Accept(number) => self.let_in(incoming, (number, is_invited), answer),
            IncomingAction::Retry => router.retry(incoming, answer),
            IncomingAction::Refuse => Some(router.refuse(incoming, answer)),
        }
    }

    fn let_in(
        &mut self,
        incoming: Incoming,
        (number, is_invited): (u64, bool),
        answer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let State { router, admission, .. } = &mut *self.state;
        let admission = admission.as_mut()?;
        let (config, trust) = (admission.config.clone(), admission.config.trust());
        let datagrams = config.machine.search(way(&incoming), config.datagram_max);
        let accepting = Accepting { engine: &config.engine, datagrams, trust };
        match router.accept(incoming, accepting, self.now, answer) {
            Ok((handle, core)) => {
                admission.entered(number, handle, is_invited, self.now);
                let link = Link::new(handle, core, false, trust == Trust::Full);
                self.state.links.insert(handle, link.clone());
                self.turn.begun.push(link);
                None
            }
            Err(transmit) => {
                admission.failed(number);
                transmit
            }
        }
    }
}

impl State {
    /// Gives up on handshakes that take too long.
    fn close_late(&mut self, turn: &mut Turn, now: Instant) {
        let late = self.admission.as_mut().map(|admission| admission.late(now)).unwrap_or_default();
        let late = late.iter().filter_map(|handle| self.links.get(handle).cloned());
        turn.leaving.extend(late.map(|link| Leaving { link, is_crowded: false }));
    }
}

/// Tells everybody when an endpoint is not driven any more.
struct Death(Arc<Shared>);

impl Drop for Death {
    fn drop(&mut self) {
        self.0.die();
    }
}
