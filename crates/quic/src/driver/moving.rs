//! Streams that go from one connection to another.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use fairpath_quic_core::Connection as Core;
use fairpath_quic_core::streams::{Streams, StreamsToken};
use noq_proto::ConnectionHandle;

use super::home::{Home, Keeper, MOVED, is_lost};
use super::link::Link;
use super::shared::{Handle, Shared, State};
use crate::clock;
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
}

impl Handle {
    /// Goes on with the streams of another connection to the same peer.
    pub(crate) fn resume(self: &Arc<Self>, lost: &Self) -> Result<(), ResumeError> {
        // Else this and the driver might take the same two locks in two orders.
        if !self.link.is_dialed || !lost.link.is_dialed {
            return Err(ResumeError::Accepted);
        }
        let home = lost.link.home();
        // Owners of halves wait for this, and see nothing of what lies between.
        let mut place = home.place();
        if place.at != lost.link.number || home.fault().is_some() {
            return Err(ResumeError::Gone);
        }
        let may = self.shared.with(&self.link, |connection, _| connection.may_resume_streams());
        if may != Some(true) {
            return Err(ResumeError::Late);
        }
        let taken = lost.shared.with(&lost.link, take).flatten().ok_or(ResumeError::Gone)?;
        let is_resumed = self.shared.with(&self.link, |connection, _| {
            let resumed = connection.resume_streams(taken);
            // Before anything else happens on this connection.
            self.link.set_home(home.clone());
            resumed.is_ok()
        });
        if is_resumed != Some(true) {
            home.fail(StreamFault::Lost);
            return Err(ResumeError::Late);
        }
        let former = Home::move_to(&mut place, self.link.number, || self.clone());
        drop(place);
        drop(former);
        home.tell_all();
        lost.shared.nudge();
        self.shared.nudge();
        // Nobody has told the streams, where it is over by now.
        let over = self.shared.with(&self.link, |connection, _| connection.close_reason().cloned()).flatten();
        over.into_iter().for_each(|reason| self.link.keep_streams(reason));
        Ok(())
    }
}

impl State {
    /// Remembers the streams of connections that were accepted.
    pub(super) fn note_homes(&mut self, found: Vec<(Option<StreamsToken>, Arc<Link>)>) {
        if !found.is_empty() {
            self.homes.retain(|_, (home, _)| home.strong_count() > 0);
        }
        for (token, link) in found {
            self.homes.extend(token.map(|token| (token, (Arc::downgrade(&link.home()), Arc::downgrade(&link)))));
        }
    }

    /// A client asks on a connection for the streams of this name. What kept the former connection open.
    pub(super) fn answer_asked(
        &mut self,
        handle: ConnectionHandle,
        token: StreamsToken,
        shared: &Arc<Shared>,
    ) -> Option<Arc<dyn Keeper>> {
        let known = self.homes.get(&token).and_then(|(home, link)| Some((home.upgrade()?, link.upgrade()?)));
        let known = known.filter(|(home, _)| home.fault().is_none());
        let streams = known.as_ref().and_then(|(_, from)| self.take_from(from));
        let (Some((home, _)), Some(streams), Some(link)) = (known, streams, self.links.get(&handle).cloned()) else {
            self.endpoint.connection(handle)?.refuse_streams();
            return None;
        };
        if self.endpoint.connection(handle)?.resume_streams(streams).is_err() {
            home.fail(StreamFault::Lost);
            return None;
        }
        link.set_home(home.clone());
        self.homes.insert(token, (Arc::downgrade(&home), Arc::downgrade(&link)));
        let former = Home::move_to(&mut home.place(), link.number, || self.handle(shared, &link));
        home.tell_all();
        former
    }

    /// Takes the streams from a connection, whether it is driven or over.
    fn take_from(&mut self, from: &Link) -> Option<Streams> {
        let now = clock::now();
        match self.connection(from) {
            Some(connection) => take(connection, now),
            None => take(from.rest().as_mut()?, now),
        }
    }
}
