//! The task of one connection: it takes in what came, does what is due, and makes and sends packets.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::streams::{StreamEvent, StreamsToken};
use fairpath_quic_core::{Arrival, BeginError, Connecting, Connection as Core, Event};
use noq_proto::EndpointEvent;
use tokio::time::Sleep;

use super::home::Keeper;
use super::link::Link;
use super::outbox::Outbox;
use super::shared::{News, Shared};
use crate::clock;

/// Drives a connection until the stack knows nothing of it any more. No lock may be held: where the runtime of the endpoint
/// has ended, the connection ends here.
pub(super) fn spawn(shared: &Arc<Shared>, link: &Arc<Link>) {
    let task = Task {
        shared: shared.clone(),
        link: link.clone(),
        arrived: Vec::new(),
        outbox: Outbox::new(),
        timer: None,
        timeout: None,
        heard: 0,
    };
    shared.runtime.spawn(task.run());
}

impl Shared {
    /// Begins a handshake.
    pub(crate) fn begin(self: &Arc<Self>, connecting: Connecting<'_>) -> Result<Arc<Link>, BeginError> {
        let mut state = self.lock();
        let (handle, core) = state.router.connect(connecting, clock::now())?;
        let link = Link::new(handle, core, true, true);
        state.links.insert(handle, link.clone());
        let is_dead = state.is_dead;
        drop(state);
        if is_dead {
            link.core.with(|connection, now| connection.close(0, Bytes::new(), now));
        }
        spawn(self, &link);
        Ok(link)
    }
}

struct Task {
    shared: Arc<Shared>,
    link: Arc<Link>,
    /// Datagrams for this turn.
    arrived: Vec<Arrival>,
    outbox: Outbox,
    timer: Option<Pin<Box<Sleep>>>,
    /// When the timer fires; `None`: it is not asked.
    timeout: Option<Instant>,
    /// The changes of terms of paths that the connection has heard of.
    heard: u64,
}

/// The rest of a turn, for which the connection need not be locked.
#[derive(Default)]
struct Turn {
    /// More could be sent or taken in.
    is_unfinished: bool,
    is_over: bool,
    events: Vec<Event>,
    /// The events that the endpoint has to know of.
    news: Vec<News>,
    /// Events of the stack for the router.
    said: Vec<EndpointEvent>,
    /// The names of streams that the client asks for.
    asked: Vec<StreamsToken>,
    /// Handles that kept connections open whose streams are gone. Dropping one takes a lock.
    former: Vec<Arc<dyn Keeper>>,
}

impl Task {
    async fn run(mut self) {
        let mut is_unfinished = true;
        loop {
            let has_waited = self.wait(is_unfinished).await;
            let mut turn = self.turn();
            self.settle(&mut turn);
            turn.events.drain(..).for_each(|event| self.link.tell(event));
            turn.former.clear();
            if self.outbox.leave(&self.shared.sockets) {
                // One task waits for room.
                self.shared.nudge();
            }
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

    /// Waits until something came, something is due, or a handle did something; not at all where something `is_unfinished`.
    /// Says whether it waited.
    async fn wait(&mut self, is_unfinished: bool) -> bool {
        let Self { link, timer, timeout, .. } = self;
        let mut nudged = std::pin::pin!(link.core.nudged());
        let mut has_waited = false;
        std::future::poll_fn(|cx| {
            let is_nudged = nudged.as_mut().poll(cx).is_ready();
            let due = timer.as_mut().filter(|_| timeout.is_some());
            let is_due = due.is_some_and(|timer| timer.as_mut().poll(cx).is_ready());
            if is_unfinished || is_nudged || is_due {
                return Poll::Ready(());
            }
            has_waited = true;
            Poll::Pending
        })
        .await;
        has_waited
    }

    /// Takes in, makes and collects under the lock of the connection.
    fn turn(&mut self) -> Turn {
        let (link, mut turn) = (self.link.clone(), Turn::default());
        let sockets = self.shared.sockets.all();
        let datagrams_max = sockets.iter().map(|socket| socket.train_datagrams()).min().unwrap_or(1);
        let has_more = link.intake.take(&mut self.arrived);
        let mut held = link.core.hold();
        let core = held.core();
        let now = clock::now();
        // Before what came is read: it may tell of what left.
        self.outbox.forget(core);
        self.outbox.begin(datagrams_max);
        self.arrived.drain(..).for_each(|arrival| core.take_in(arrival, now));
        if core.next_timeout(now).is_some_and(|at| at <= now) {
            core.handle_timeout(now);
        }
        for spent in sockets.iter().filter(|socket| socket.is_spent()) {
            core.shut_address(spent.name, "its quota is used up", now);
        }
        if let Some(changes) = self.shared.control.news(&mut self.heard) {
            core.change_terms(changes, now);
        }
        turn.is_unfinished = self.make(core) || has_more;
        turn.collect(&link, core);
        turn.said = core.take_endpoint_events();
        turn.is_over = core.is_drained();
        let now = clock::now();
        if core.notes_arrivals(now) {
            sockets.iter().for_each(|socket| socket.stamp_arrivals());
        }
        self.set_timer(core.next_timeout(now));
        turn
    }

    /// Makes packets; true where more could be made.
    fn make(&mut self, core: &mut Core) -> bool {
        let now = clock::now();
        while !self.outbox.is_full() {
            let datagrams_max = self.outbox.datagrams_max();
            match core.poll_transmit(now, datagrams_max, self.outbox.space()) {
                Some(transmit) => self.outbox.add(&transmit),
                None => return false,
            }
        }
        true
    }

    fn set_timer(&mut self, timeout: Option<Instant>) {
        if timeout != self.timeout {
            self.timeout = timeout;
            match (&mut self.timer, timeout) {
                (Some(timer), Some(at)) => timer.as_mut().reset(at.into()),
                (None, Some(at)) => self.timer = Some(Box::pin(tokio::time::sleep_until(at.into()))),
                (_, None) => {}
            }
        }
    }

    /// Does with the endpoint what follows, without the lock of the connection.
    fn settle(&self, turn: &mut Turn) {
        let Turn { news, said, asked, .. } = turn;
        if !news.is_empty() || !said.is_empty() {
            let answer = self.shared.settle(&self.link, std::mem::take(news), std::mem::take(said), turn.is_over);
            turn.is_unfinished |= !answer.events.is_empty() || answer.is_refused;
            self.link.core.with(|core, now| {
                answer.events.into_iter().for_each(|event| core.hear(event));
                if answer.is_refused {
                    core.close(0, Bytes::new(), now);
                }
            });
            if let Some(sender) = answer.accepted {
                // Where nobody accepts any more, the connection is closed.
                let _ = sender.try_send(self.shared.handle(&self.link));
            }
        }
        for token in asked.drain(..) {
            turn.former.extend(self.shared.answer_asked(&self.link, token));
            turn.is_unfinished = true;
        }
    }
}

impl Turn {
    /// Takes what happened on the connection.
    fn collect(&mut self, link: &Link, core: &mut Core) {
        while let Some(event) = core.poll_event() {
            match &event {
                Event::Connected if !link.is_dialed => {
                    self.news.push(News::Connected(core.streams(clock::now()).token()));
                }
                Event::Closed(_) => self.news.push(News::Closed),
                Event::Streams(StreamEvent::Finished(id)) => link.home().note_finished(*id),
                Event::Streams(StreamEvent::Lost) => link.lose_streams(),
                Event::StreamsAsked(token) => self.asked.push(*token),
                _ => {}
            }
            self.events.push(event);
        }
        link.look(core);
    }
}

impl Drop for Task {
    /// Whatever ends it, nobody may wait for ever.
    fn drop(&mut self) {
        self.link.intake.shut();
        self.shared.forget(&self.link);
        self.link.core.with(|core, now| core.close(0, Bytes::new(), now));
        self.link.tell_all();
        // The endpoint may be over.
        self.shared.nudge();
    }
}
