//! Streams that go from one connection to another.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::Connection as Core;
use fairpath_quic_core::streams::{Streams, StreamsToken};

use super::home::{Home, Keeper, MOVED, is_lost};
use super::link::Link;
use super::shared::{Handle, Shared, State};
use crate::stream_fault::{ResumeError, StreamFault};

/// Takes the streams of a connection away, if another may go on with them.
fn take(connection: &mut Core, now: Instant) -> Option<Streams> {
    let may = connection.close_reason().is_none_or(is_lost) && connection.has_streams();
    if !may || !connection.streams(now).is_resumable() {
        return None;
    }
    let streams = connection.take_streams(now);
    connection.close(MOVED, Bytes::from_static(b"its streams go on on another connection"), now);
    streams
}

impl Link {
    /// The peer does not know the streams that it was asked for. New ones may be opened.
    pub(super) fn lose_streams(&self) {
        let home = self.home();
        let next = Home::of(self.number);
        next.set_time_kept(home.time_kept());
        self.set_home(next);
        home.fail(StreamFault::Lost);
    }

    /// Puts streams on the connection that were taken from another, with their home. False where it may not have them.
    fn go_on(&self, streams: Streams, home: &Arc<Home>) -> bool {
        self.core.with(|connection, _| {
            let is_resumed = connection.resume_streams(streams).is_ok();
            if is_resumed {
                // Before anything else happens on this connection.
                self.set_home(home.clone());
            }
            is_resumed
        })
    }
}

impl Handle {
    /// Goes on with the streams of another connection to the same peer.
    pub(crate) fn resume(self: &Arc<Self>, lost: &Self) -> Result<(), ResumeError> {
        // A client asks, and the server's streams follow.
        if !self.link.is_dialed || !lost.link.is_dialed {
            return Err(ResumeError::Accepted);
        }
        let home = lost.link.home();
        // Owners of halves wait for this, and see nothing of what lies between.
        let mut place = home.place();
        if place.at != lost.link.number || home.fault().is_some() {
            return Err(ResumeError::Gone);
        }
        if !self.link.core.with(|connection, _| connection.may_resume_streams()) {
            return Err(ResumeError::Late);
        }
        let taken = lost.link.core.with(take).ok_or(ResumeError::Gone)?;
        if !self.link.go_on(taken, &home) {
            home.fail(StreamFault::Lost);
            return Err(ResumeError::Late);
        }
        let former = Home::move_to(&mut place, self.link.number, || self.clone());
        drop(place);
        drop(former);
        home.tell_all();
        lost.link.core.nudge();
        self.link.core.nudge();
        // Nobody has told the streams, where it is over by now.
        let over = self.link.core.with(|connection, _| connection.close_reason().cloned());
        over.into_iter().for_each(|reason| self.link.keep_streams(reason));
        Ok(())
    }
}

impl State {
    /// Remembers the streams of a connection that was accepted.
    pub(super) fn note_home(&mut self, token: StreamsToken, link: &Arc<Link>) {
        self.homes.retain(|_, (home, _)| home.strong_count() > 0);
        self.homes.insert(token, (Arc::downgrade(&link.home()), Arc::downgrade(link)));
    }
}

impl Shared {
    /// The streams of this name, and the connection that they are on.
    fn find_home(&self, token: StreamsToken) -> Option<(Arc<Home>, Arc<Link>)> {
        let known = self.lock().homes.get(&token).cloned();
        // Without the lock, which closing a connection takes.
        let (home, link) = known?;
        Some((home.upgrade()?, link.upgrade()?))
    }

    /// A client asks on a connection for the streams of this name. What kept the former connection open.
    pub(super) fn answer_asked(self: &Arc<Self>, link: &Arc<Link>, token: StreamsToken) -> Option<Arc<dyn Keeper>> {
        let refuse = || link.core.with(|connection, _| connection.refuse_streams());
        let Some((home, _)) = self.find_home(token) else {
            refuse();
            return None;
        };
        // Owners of halves wait for this, and so does another connection that asks for the same.
        let mut place = home.place();
        let from = self.find_home(token).map(|(_, from)| from).filter(|_| home.fault().is_none());
        let streams = from.as_ref().and_then(|from| {
            let streams = from.core.with(take);
            from.core.nudge();
            streams
        });
        let Some(streams) = streams else {
            refuse();
            return None;
        };
        if !link.go_on(streams, &home) {
            home.fail(StreamFault::Lost);
            return None;
        }
        self.lock().homes.insert(token, (Arc::downgrade(&home), Arc::downgrade(link)));
        let former = Home::move_to(&mut place, link.number, || self.handle(link));
        drop(place);
        home.tell_all();
        former
    }
}
