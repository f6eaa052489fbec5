//! One connection for the program: connections that follow one another, each with the streams of the one before.
//!
//! The end that dialed makes the next connection. The one that accepted is given it by its endpoint, which tells it from
//! those of new peers by the streams that are asked for on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fairpath_quic::{self as quic, PathNotice, Pauses};
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;

use crate::error::{ConnectionError, ended};
use crate::event::Event;

/// How many events a slow listener may be behind.
const EVENTS: usize = 256;

/// The connection that there is, and how it stands. When the last is dropped that has one, it is closed.
#[derive(Debug)]
pub(crate) struct Session {
    /// With its number, which rises.
    current: Mutex<(u64, quic::Connection)>,
    state: watch::Sender<State>,
    events: broadcast::Sender<Event>,
    /// Takes connections of the peer that go on with this one.
    successors: mpsc::UnboundedSender<quic::Connection>,
    terms: Terms,
    /// Said to the peer once it is in reach again, where the program closed the session meanwhile.
    farewell: Mutex<Option<Farewell>>,
    /// Whether it was told, or never will be.
    is_settled: watch::Sender<bool>,
    /// Whether the peer has not proved itself: it has no streams that could go on, and may be sent away for others.
    is_guest: AtomicBool,
}

/// The end of a session, as the peer is to be told.
#[derive(Clone, Debug)]
struct Farewell {
    code: u32,
    reason: String,
}

/// How long a session outlives a connection, and how it gets the next.
#[derive(Clone, Copy, Debug)]
struct Terms {
    kept: Duration,
    is_dialed: bool,
}

/// How a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has the connection of this number.
    Up(u64),
    /// Its connection was lost, and another is waited for.
    Interrupted,
    Ended(ConnectionError),
}

/// Makes the next connection.
#[derive(Debug)]
pub(crate) struct Redial {
    pub(crate) dialer: quic::Dialer,
    pub(crate) config: quic::ConnectConfig,
}

impl Session {
    /// Begins with a connection that was just made. It outlives it for `kept` where that is lost; where no way to dial is
    /// given, it waits for the peer to do so.
    pub(crate) fn begin(first: quic::Connection, kept: Duration, is_guest: bool, redial: Option<Redial>) -> Arc<Self> {
        let (successors, coming) = mpsc::unbounded_channel();
        let (streams, watched) = (first.streams_number(), Watched::of(&first));
        let session = Arc::new(Self {
            current: (0, first).into(),
            state: watch::Sender::new(State::Up(0)),
            events: broadcast::channel(EVENTS).0,
            successors,
            farewell: Mutex::default(),
            is_settled: watch::Sender::new(false),
            terms: Terms { kept, is_dialed: redial.is_some() },
            is_guest: is_guest.into(),
        });
        let (weak, events) = (Arc::downgrade(&session), session.events.clone());
        let source = redial.map_or(Source::Peer(coming), |redial| Source::Redial(Box::new(redial)));
        tokio::spawn(Keeper { session: weak, events, source, kept, streams }.run(watched));
        session
    }

    /// The connection that there is, or was last.
    pub(crate) fn current(&self) -> quic::Connection {
        self.numbered().1
    }

    fn numbered(&self) -> (u64, quic::Connection) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The peer has proved itself.
    pub(crate) fn welcome(&self, mut streams: quic::StreamsConfig) {
        streams.kept = self.terms.kept;
        self.is_guest.store(false, Ordering::Relaxed);
        let connection = self.current();
        connection.welcome();
        connection.begin_streams(streams);
    }

    /// A connection of the peer goes on with the streams of this one.
    pub(crate) fn succeed_by(&self, next: quic::Connection) {
        // Only those know the streams who have proved themselves before.
        next.welcome();
        // Where the session is over, the connection is dropped and so closed.
        let _ = self.successors.send(next);
    }

    /// Does something on the connection, and where that is lost, on the next one.
    pub(crate) async fn through<T, F: Future<Output = Result<T, quic::ConnectionError>>>(
        &self,
        act: impl Fn(quic::Connection) -> F,
    ) -> Result<T, ConnectionError> {
        loop {
            let (number, connection) = self.numbered();
            match act(connection).await {
                Ok(done) => return Ok(done),
                Err(error) => self.after(number, error).await?,
            }
        }
    }

    /// The connection of this number ended so: waits for the next.
    async fn after(&self, number: u64, error: quic::ConnectionError) -> Result<(), ConnectionError> {
        if !self.outlives(&error) {
            return Err(self.reason().unwrap_or(ended(error)));
        }
        let mut state = self.state.subscribe();
        let is_decided = |state: &State| match state {
            State::Up(other) => *other > number,
            State::Interrupted => false,
            State::Ended(_) => true,
        };
        let decided = state.wait_for(is_decided).await.map(|state| state.clone());
        match decided {
            Ok(State::Ended(reason)) => Err(reason),
            _ => Ok(()),
        }
    }

    /// Whether the session goes on after a connection that ended so.
    fn outlives(&self, error: &quic::ConnectionError) -> bool {
        self.reason().is_none() && !self.is_guest.load(Ordering::Relaxed) && self.terms.outlive(error)
    }

    fn reason(&self) -> Option<ConnectionError> {
        if let State::Ended(reason) = &*self.state.borrow() { Some(reason.clone()) } else { None }
    }

    /// Whether another connection is waited for.
    pub(crate) fn is_interrupted(&self) -> bool {
        *self.state.borrow() == State::Interrupted
    }

    /// Why it ended; `None` where it goes on.
    pub(crate) fn close_reason(&self) -> Option<ConnectionError> {
        let of_connection = || self.current().close_reason().filter(|reason| !self.outlives(reason)).map(ended);
        self.reason().or_else(of_connection)
    }

    /// Waits for its end.
    pub(crate) async fn closed(&self) -> ConnectionError {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| matches!(state, State::Ended(_))).await;
        match ended.as_deref() {
            Ok(State::Ended(reason)) => reason.clone(),
            _ => ConnectionError::LocallyClosed,
        }
    }

    /// Its program wants no more of it. Before its connection is closed: else that might seem lost.
    pub(crate) fn end(&self, reason: ConnectionError) {
        self.state.send_if_modified(|state| {
            let is_new = !matches!(state, State::Ended(_));
            if is_new {
                *state = State::Ended(reason);
            }
            is_new
        });
    }

    /// Its program wants no more of it, and the peer is to be told. Waits until it was, `patience` at most: where the peer is
    /// out of reach this end tries further as long as it would have tried to go on.
    pub(crate) async fn close(&self, code: u32, reason: &str, patience: Duration) {
        let farewell = Farewell { code, reason: reason.to_owned() };
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(farewell);
        let is_out_of_reach = self.is_interrupted() && self.terms.is_dialed;
        self.end(ConnectionError::LocallyClosed);
        match is_out_of_reach {
            true => _ = tokio::time::timeout(patience, self.is_settled.subscribe().wait_for(|settled| *settled)).await,
            false => self.current().end(code, reason).await,
        }
    }

    /// Its events from now on, and how it stands.
    pub(crate) fn events(&self) -> (broadcast::Receiver<Event>, Option<ConnectionError>) {
        // In this order: what happens between is seen twice, and not missed.
        (self.events.subscribe(), self.reason())
    }
}

impl Terms {
    fn outlive(self, error: &quic::ConnectionError) -> bool {
        // The endpoint closes the connection that seems to live where the peer has made another.
        let is_replaced = !self.is_dialed && matches!(error, quic::ConnectionError::LocallyClosed);
        !self.kept.is_zero() && (is_replaced || quic::is_lost(error))
    }
}

/// The part of a connection that is watched without keeping it open.
struct Watched {
    notices: broadcast::Receiver<PathNotice>,
    closed: std::pin::Pin<Box<dyn Future<Output = quic::ConnectionError> + Send>>,
}

impl Watched {
    fn of(connection: &quic::Connection) -> Self {
        Self { notices: connection.notices(), closed: Box::pin(connection.on_closed()) }
    }
}

/// Where the next connection comes from.
enum Source {
    Redial(Box<Redial>),
    Peer(mpsc::UnboundedReceiver<quic::Connection>),
}

/// Watches over a session, without keeping its connection open.
struct Keeper {
    session: Weak<Session>,
    events: broadcast::Sender<Event>,
    source: Source,
    kept: Duration,
    /// The number of its streams, which they have on every connection.
    streams: quic::StreamsNumber,
}

/// The result of watching a connection.
enum Outcome {
    Ended(quic::ConnectionError),
    /// The peer has made another.
    Succeeded(quic::Connection),
}

impl Keeper {
    async fn run(mut self, mut watched: Watched) {
        let end = loop {
            let next = match self.watch(&mut watched).await {
                Outcome::Succeeded(next) => Ok(next),
                Outcome::Ended(reason) => self.follow(reason).await,
            };
            match next.map(|next| self.adopt(next)) {
                Ok(Some(next)) => watched = next,
                Ok(None) => break ConnectionError::LocallyClosed,
                Err(reason) => break reason,
            }
        };
        let session = self.session.upgrade();
        session.iter().for_each(|session| session.end(end.clone()));
        let end = session.and_then(|session| session.reason()).unwrap_or(end);
        let _ = self.events.send(Event::Closed(end));
    }

    /// Passes on what happens to the paths, until the connection is over.
    async fn watch(&mut self, watched: &mut Watched) -> Outcome {
        let Self { source, events, .. } = self;
        loop {
            tokio::select! {
                biased;
                Some(event) = notice(&mut watched.notices) => { let _ = events.send(event); }
                next = source.succeeded() => return Outcome::Succeeded(next),
                reason = &mut watched.closed => return Outcome::Ended(reason),
            }
        }
    }

    /// The next connection after one that ended so.
    async fn follow(&mut self, reason: quic::ConnectionError) -> Result<quic::Connection, ConnectionError> {
        let Some(session) = self.session.upgrade().filter(|session| session.outlives(&reason)) else {
            return Err(ended(reason));
        };
        let reason = ended(reason);
        session.state.send_if_modified(|state| {
            let is_up = matches!(state, State::Up(_));
            if is_up {
                *state = State::Interrupted;
            }
            is_up
        });
        let _ = self.events.send(Event::Interrupted(reason.clone()));
        let state = session.state.subscribe();
        drop(session);
        let Self { session, source, streams, kept, .. } = self;
        let until = Instant::now() + *kept;
        let mut next = std::pin::pin!(async {
            match source {
                Source::Redial(redial) => redial.next(session, *streams, reason.clone()).await,
                Source::Peer(_) => Ok(source.succeeded().await),
            }
        });
        let end = tokio::select! {
            biased;
            end = over(state) => end,
            next = &mut next => return next,
            () = tokio::time::sleep_until(until) => return Err(reason.clone()),
        };
        if let Some(session) = session.upgrade() {
            session.bid_farewell(until, next).await;
        }
        Err(end)
    }

    /// The session goes on on this connection. `None` where nobody has it any more.
    fn adopt(&self, next: quic::Connection) -> Option<Watched> {
        let session = self.session.upgrade()?;
        let watched = Watched::of(&next);
        let number = session.replace(next);
        session.state.send_if_modified(|state| {
            let goes_on = !matches!(state, State::Ended(_));
            if goes_on {
                *state = State::Up(number);
            }
            goes_on
        });
        let _ = self.events.send(Event::Resumed);
        Some(watched)
    }
}

impl Session {
    /// Tells the peer that this is the end, on the next connection, which is waited for until then.
    async fn bid_farewell(
        &self,
        until: Instant,
        next: impl Future<Output = Result<quic::Connection, ConnectionError>>,
    ) {
        let farewell = self.farewell.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Farewell { code, reason }) = farewell
            && self.terms.is_dialed
            && let Ok(Ok(next)) = tokio::time::timeout_at(until, next).await
        {
            next.end(code, &reason).await;
        }
        self.is_settled.send_replace(true);
    }

    /// Has this connection in place of the one before. Its number.
    fn replace(&self, next: quic::Connection) -> u64 {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let number = current.0 + 1;
        let former = std::mem::replace(&mut *current, (number, next));
        // The last handle closes its connection, for which it takes a lock.
        drop(current);
        drop(former);
        number
    }
}

impl Source {
    /// The next connection that the peer makes.
    async fn succeeded(&mut self) -> quic::Connection {
        if let Self::Peer(coming) = self
            && let Some(next) = coming.recv().await
        {
            return next;
        }
        std::future::pending().await
    }
}

impl Redial {
    /// Connects until the peer goes on with the streams, or does not know them.
    async fn next(
        &mut self,
        session: &Weak<Session>,
        streams: quic::StreamsNumber,
        reason: ConnectionError,
    ) -> Result<quic::Connection, ConnectionError> {
        let mut pause = Duration::ZERO;
        loop {
            let next = Pauses::DEFAULT.until(|| self.dial(session)).await;
            let lost = || session.upgrade().map(|session| (session.current(), session));
            let (former, session) = lost().ok_or(ConnectionError::LocallyClosed)?;
            next.resume_streams(&former).map_err(|_| reason.clone())?;
            // Where this one is lost too, the streams are there.
            session.replace(next.clone());
            drop((former, session));
            match next.streams_agreed().await {
                Ok(agreed) if agreed == streams => return Ok(next),
                Ok(_) => return Err(ConnectionError::Reset),
                Err(error) => tracing::debug!(%error, "lost again before the peer answered"),
            }
            pause = Pauses::DEFAULT.after(pause);
            tokio::time::sleep(pause).await;
        }
    }

    /// One try.
    fn dial(&mut self, session: &Weak<Session>) -> impl Future<Output = Option<quic::Connection>> + use<> {
        // The peer may have told of others.
        let known = session.upgrade().map(|session| session.current().peer_addresses()).unwrap_or_default();
        let remotes = &mut self.config.remotes;
        let new: Vec<_> = known.into_iter().filter(|address| !remotes.contains(address)).collect();
        remotes.extend(new);
        let (dialer, config) = (self.dialer.clone(), self.config.clone());
        async move {
            let tried = dialer.connect(config).await;
            tried.inspect_err(|error| tracing::debug!(%error, "not connected again yet")).ok()
        }
    }
}

/// Ready when the session ended, or nobody has it any more.
async fn over(mut state: watch::Receiver<State>) -> ConnectionError {
    match state.wait_for(|state| matches!(state, State::Ended(_))).await.as_deref() {
        Ok(State::Ended(reason)) => reason.clone(),
        _ => ConnectionError::LocallyClosed,
    }
}

/// The next event of a path.
async fn notice(notices: &mut broadcast::Receiver<PathNotice>) -> Option<Event> {
    match notices.recv().await {
        Ok(notice) => Some(Event::of(notice)),
        Err(broadcast::error::RecvError::Lagged(count)) => Some(Event::Missed(count)),
        Err(broadcast::error::RecvError::Closed) => None,
    }
}
