//! Connections that peers make: those that go on with an earlier one are given to it, and the program gets the others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fairpath_quic as quic;
use quic::{Listener, StreamsConfig, StreamsNumber};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::session::Session;

/// How long the first word of streams is waited for, which a peer says as soon as it is connected. A program that has
/// none says nothing.
const FIRST_WORD: Duration = Duration::from_secs(1);

/// Takes in the connections that come to a listener. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: Arc<Listener>,
    sessions: Sessions,
    accepted: tokio::sync::Mutex<mpsc::Receiver<Connection>>,
    task: AbortHandle,
}

/// The sessions of peers, by the numbers of their streams.
#[derive(Clone, Debug, Default)]
struct Sessions(Arc<Mutex<BTreeMap<StreamsNumber, Weak<Session>>>>);

impl Acceptor {
    /// Begins. Must be called within a tokio runtime.
    /// The peers of one that is guarded may open no streams yet.
    pub(crate) fn begin(listener: Listener, streams: StreamsConfig, is_guarded: bool, connections_max: usize) -> Self {
        let (listener, sessions) = (Arc::new(listener), Sessions::default());
        let (to, accepted) = mpsc::channel(connections_max.max(1));
        let task = tokio::spawn(take_in(listener.clone(), streams, is_guarded, sessions.clone(), to)).abort_handle();
        Self { listener, sessions, accepted: accepted.into(), task }
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The next connection of a new peer.
    pub(crate) async fn accept(&self) -> Option<Connection> {
        self.accepted.lock().await.recv().await
    }

    pub(crate) async fn close(&self, code: u32, reason: &str) {
        // They would take their connections for lost.
        let sessions: Vec<_> = self.sessions.lock().values().filter_map(Weak::upgrade).collect();
        sessions.iter().for_each(|session| session.end(ConnectionError::LocallyClosed));
        drop(sessions);
        self.listener.close(code, reason).await;
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<StreamsNumber, Weak<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection came whose streams have this number. What the program gets.
    fn settle(
        &self,
        connection: quic::Connection,
        number: StreamsNumber,
        (kept, is_guest): (Duration, bool),
    ) -> Option<Connection> {
        let mut sessions = self.lock();
        if let Some(session) = sessions.get(&number).and_then(Weak::upgrade) {
            drop(sessions);
            session.succeed_by(connection);
            return None;
        }
        sessions.retain(|_, session| session.strong_count() > 0);
        let session = Session::begin(connection, kept, is_guest, None);
        sessions.insert(number, Arc::downgrade(&session));
        Some(Connection::of(session))
    }
}

/// Takes in what comes until the listener is closed.
async fn take_in(
    listener: Arc<Listener>,
    streams: StreamsConfig,
    is_guarded: bool,
    sessions: Sessions,
    to: mpsc::Sender<Connection>,
) {
    let mut settling = JoinSet::new();
    loop {
        tokio::select! {
            connection = listener.accept() => {
                let Some(connection) = connection else { return };
                if !is_guarded {
                    connection.begin_streams(streams.clone());
                }
                let (to, sessions, kept) = (to.clone(), sessions.clone(), streams.kept);
                settling.spawn(async move {
                    let agreed = tokio::time::timeout(FIRST_WORD, connection.streams_agreed()).await;
                    // One that ended may have something to hand out.
                    let number = agreed.ok().and_then(Result::ok).unwrap_or(connection.streams_number());
                    if let Some(connection) = sessions.settle(connection, number, (kept, is_guarded)) {
                        // Where nobody accepts any more, the connection is closed.
                        let _ = to.send(connection).await;
                    }
                });
            }
            Some(_) = settling.join_next() => {}
        }
    }
}
