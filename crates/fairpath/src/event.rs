//! Events of a connection.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use fairpath_quic::PathNotice;
use tokio::sync::{broadcast, mpsc};

use crate::error::ConnectionError;

/// How many events wait for a program that does not take them.
const WAITING: usize = 64;

/// Something that happened to a connection. Paths go by the name of their interface, with an address where several
/// start there. As text it is a sentence for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A path carries data, for the first time or again.
    #[non_exhaustive]
    PathOpened {
        /// The path.
        path: String,
        /// Whether it carried data before.
        again: bool,
    },
    /// A path was closed; it is tried again by itself.
    #[non_exhaustive]
    PathClosed {
        /// The path.
        path: String,
        /// Why, in words.
        reason: String,
        /// The paths that carry its data now.
        carriers: Vec<String>,
    },
    /// No address of the peer can be reached over an interface.
    #[non_exhaustive]
    NoWay {
        /// The interface.
        interface: String,
        /// The addresses that were tried, with the reasons, in words.
        tried: String,
    },
    /// Nothing is heard of the peer any more, for this reason. Streams wait while it is tried to connect again.
    Interrupted(ConnectionError),
    /// The connection is there again, and its streams go on. The end that is dialed may not have noticed that it was gone.
    Resumed,
    /// Events that are not told, since they came faster than they were taken: how many.
    Missed(u64),
    /// The connection ended. Nothing follows.
    Closed(ConnectionError),
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathOpened { path, again: false } => write!(f, "{path}: path open"),
            Self::PathOpened { path, again: true } => write!(f, "{path}: path open again"),
            Self::PathClosed { path, reason, carriers } if carriers.is_empty() => {
                write!(f, "{path}: path closed, {reason}")
            }
            Self::PathClosed { path, reason, carriers } => {
                write!(f, "{path}: path closed, {reason}; its data goes over {}", carriers.join(" and "))
            }
            Self::NoWay { interface, tried } => write!(f, "{interface}: no way to the peer: {tried}"),
            Self::Interrupted(reason) => write!(f, "interrupted: {reason}"),
            Self::Resumed => f.write_str("connected again: streams go on"),
            Self::Missed(count) => write!(f, "{count} events were missed"),
            Self::Closed(reason) => write!(f, "{reason}"),
        }
    }
}

impl Event {
    pub(crate) fn of(notice: PathNotice) -> Self {
        match notice {
            PathNotice::Opened { interface } => Self::PathOpened { path: interface, again: false },
            PathNotice::Reopened { interface } => Self::PathOpened { path: interface, again: true },
            PathNotice::Closed { interface, reason, carriers } => {
                Self::PathClosed { path: interface, reason, carriers }
            }
            PathNotice::NoWay { interface, tried } => Self::NoWay { interface, tried },
        }
    }
}

/// The events of a connection from when [`Connection::events`](crate::Connection::events) was called, the last of them
/// [`Event::Closed`]. It does not keep the connection open. As a [`Stream`](futures_core::Stream) it has combinators.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// Those that come from `from`, of a connection that may have ended.
    pub(crate) fn of(from: broadcast::Receiver<Event>, ended: Option<ConnectionError>) -> Self {
        let (to, events) = mpsc::channel(WAITING);
        match ended {
            Some(reason) => _ = to.try_send(Event::Closed(reason)),
            None => _ = tokio::spawn(hand_over(from, to)),
        }
        Self(events)
    }

    /// The next event; `None` after [`Event::Closed`].
    ///
    /// # Cancellation safety
    ///
    /// No event is lost where it is given up before it is ready.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
}

impl futures_core::Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll_recv(cx)
    }
}

/// Hands events over until the connection has ended, or nobody takes them any more.
async fn hand_over(mut from: broadcast::Receiver<Event>, to: mpsc::Sender<Event>) {
    loop {
        let event = tokio::select! {
            biased;
            () = to.closed() => return,
            event = from.recv() => event,
        };
        let event = match event {
            Ok(event) => event,
            Err(broadcast::error::RecvError::Lagged(count)) => Event::Missed(count),
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let is_last = matches!(event, Event::Closed(_));
        if to.send(event).await.is_err() || is_last {
            return;
        }
    }
}
